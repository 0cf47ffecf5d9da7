//! Completes an operation with everything that follows from its result, and stores what a provider prepared for a
//! pending operation.

use super::callbacks::NewCallback;
use super::rows::bare_state;
use super::rows::callback::origin_of;
use super::rows::ledger::{LedgerEntry, PostingSource};
use super::tasks::TaskKind;
use super::transaction::{Customer, OperationState, Rows};
use super::{CallbackId, CallbackSubject, CallbackTarget, CompletionOutcome};
use crate::domain::{Direction, Outcome, Posting, Status, TransactionId, UnixMillis};

/// A result of an operation.
#[derive(Debug)]
pub(super) struct Completion {
    pub(super) id: TransactionId,
    pub(super) outcome: Outcome,
    /// The payer of the outcome, encrypted.
    pub(super) payer: Option<Vec<u8>>,
    pub(super) at: UnixMillis,
    /// Becomes part of the id of the operation's callback.
    pub(super) nonce: u64,
}

/// Writes a result, its postings and its callback. Also ends the work of an operation that was completed before.
///
/// The operation's row is written last. In PostgreSQL a repeated create would wait for a row that has been updated, but
/// not for one that is only locked.
pub(super) async fn complete<R: Rows>(rows: &mut R, completion: &Completion) -> Result<CompletionOutcome, R::Error> {
    let Completion { id, outcome, payer, at, nonce } = completion;
    let Some(operation) = rows.unfinished(*id).await? else { return Ok(CompletionOutcome::Unknown) };
    let (outcome, finished) = match bare_state(operation.status, operation.finished_at).finish(outcome.clone(), *at) {
        Ok(Ok(finished)) => (CompletionOutcome::Completed, Some(finished)),
        Ok(Err(_)) => (CompletionOutcome::AlreadyCompleted, None),
        Err(contradiction) => (CompletionOutcome::Contradicts(contradiction.completed), None),
    };
    if let Some(finished) = &finished {
        rows.post(Posting::of_result(operation.direction, finished.status()), ledger_entry(*id, &operation, *at))
            .await?;
        if let Some(url) = &operation.callback_url {
            let target = CallbackTarget::of_columns(&operation.merchant, &origin_of(url)?);
            let id = CallbackId::new(CallbackSubject::Operation(*id), *nonce);
            rows.queue_callback(NewCallback { id, target: &target, at: *at }).await?;
        }
    }
    rows.end_task(TaskKind::ProviderJob, id.to_stored()).await?;
    if operation.direction == Direction::Payin {
        rows.remove_preparation(*id).await?;
    }
    if let Some(finished) = &finished {
        // A failed operation does not count for its customer's day.
        let counts = operation.counted_day.filter(|_| finished.status() != Status::Failed);
        if let (None, Some(day), Some(customer)) = (counts, operation.counted_day, customer(&operation)) {
            rows.reduce_usage(customer, day, operation.amount).await?;
        }
        rows.finish(*id, finished, payer.as_deref(), counts).await?;
    }
    Ok(outcome)
}

/// Stores what a provider prepared for the customer of a pending deposit, and ends the provider job. Returns `false`
/// when there is no such deposit.
pub(super) async fn prepare<R: Rows>(rows: &mut R, id: TransactionId, sealed: &[u8]) -> Result<bool, R::Error> {
    match rows.unfinished(id).await? {
        Some(OperationState { direction: Direction::Payin, status: Status::Pending, .. }) => {}
        _ => return Ok(false),
    }
    rows.put_preparation(id, sealed).await?;
    rows.end_task(TaskKind::ProviderJob, id.to_stored()).await?;
    Ok(true)
}

fn customer(operation: &OperationState) -> Option<Customer<'_>> {
    operation.customer_account_id.map(|account_id| Customer {
        merchant: &operation.merchant,
        shop: &operation.shop,
        direction: operation.direction,
        account_id,
    })
}

fn ledger_entry(id: TransactionId, operation: &OperationState, at: UnixMillis) -> LedgerEntry<'_> {
    LedgerEntry {
        source: PostingSource::Operation(id),
        merchant: &operation.merchant,
        currency: &operation.currency,
        amount: operation.amount,
        at,
    }
}
