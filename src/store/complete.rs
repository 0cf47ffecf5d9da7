//! Completes an operation with everything that follows from its result, and stores what a provider prepared for a
//! pending operation.

use super::backend::Backend;
use super::callbacks::{self, NewCallback};
use super::rows::callback::origin_of;
use super::rows::ledger::{LedgerEntry, PostingSource};
use super::rows::operation::{cause_number, sealed_payer};
use super::rows::{CorruptRow, bare_state, direction_of, finished_at, status_number, status_of};
use super::sql::{Sql, Transaction, params, sql};
use super::tasks::{self, ClaimedJob};
use super::transaction::OwnStatements;
use super::usage::{self, Customer};
use super::{CallbackId, CallbackSubject, CallbackTarget, CompletionOutcome, JobEnd};
use crate::domain::{
    Direction, FailureCause, Outcome, Posting, ProviderReason, Status, TransactionId, UnixDay, UnixMillis,
};

/// The source of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultSource {
    /// A report of the provider, with its words about a failure.
    Provider(ProviderReason),
    /// An operator.
    Operator,
}

impl ResultSource {
    /// A provider that gives no reasons.
    pub const PROVIDER: Self = Self::Provider(ProviderReason { code: None, text: None });

    /// Returns the columns `cause`, `cause_code` and `cause_text` of a result.
    pub(super) fn cause_columns(&self, status: Status) -> (Option<i64>, Option<&str>, Option<&str>) {
        match self {
            _ if status != Status::Failed => (None, None, None),
            Self::Provider(reason) => {
                (Some(cause_number(FailureCause::Provider)), reason.code.as_deref(), reason.text.as_deref())
            }
            Self::Operator => (Some(cause_number(FailureCause::Operator)), None, None),
        }
    }
}

/// A result of an operation.
#[derive(Debug)]
pub(super) struct Completion {
    pub(super) id: TransactionId,
    pub(super) outcome: Outcome,
    pub(super) source: ResultSource,
    /// The payer of the outcome, encrypted.
    pub(super) payer: Option<Vec<u8>>,
    pub(super) at: UnixMillis,
    /// Becomes part of the id of the operation's callback.
    pub(super) nonce: u64,
}

impl Completion {
    /// Prepares the columns of a result.
    pub(super) fn new<B: Backend>(
        backend: &B,
        id: TransactionId,
        outcome: Outcome,
        source: ResultSource,
        at: UnixMillis,
    ) -> Self {
        let payer = match &outcome {
            Outcome::Success { payer } => sealed_payer(backend.vault(), id, payer.as_ref()),
            Outcome::Failed => None,
        };
        Self { id, outcome, source, payer, at, nonce: backend.random().number() }
    }
}

/// Writes a result, its postings and its callback. Also ends the work of an operation that was completed before.
///
/// The operation's row is written last. In PostgreSQL a repeated create would wait for a row that has been updated, but
/// not for one that is only locked.
pub(super) async fn complete<T: OwnStatements>(tx: &T, completion: &Completion) -> Result<CompletionOutcome, T::Error> {
    let Completion { id, outcome, source, payer, at, nonce } = completion;
    let Some(operation) = unfinished(tx, *id).await? else { return Ok(CompletionOutcome::Unknown) };
    let (outcome, finished) = match bare_state(operation.status, operation.finished_at).finish(outcome.clone(), *at) {
        Ok(Ok(finished)) => (CompletionOutcome::Completed, Some(finished)),
        Ok(Err(_)) => (CompletionOutcome::AlreadyCompleted, None),
        Err(contradiction) => (CompletionOutcome::Contradicts(contradiction.completed), None),
    };
    if let Some(finished) = &finished {
        tx.post(Posting::of_result(operation.direction, finished.status()), ledger_entry(*id, &operation, *at)).await?;
        if let Some(url) = &operation.callback_url {
            let target = CallbackTarget::of_columns(&operation.merchant, &origin_of(url)?);
            let id = CallbackId::new(CallbackSubject::Operation(*id), *nonce);
            callbacks::queue(tx, NewCallback { id, target: &target, at: *at }).await?;
        }
    }
    let job = tasks::remove_job(tx, *id).await?;
    if operation.direction == Direction::Payin {
        tx.execute(REMOVE_PREPARATION, &params![*id]).await?;
    }
    if let Some(finished) = &finished {
        // A failed operation does not count for its customer's day.
        let counts = operation.counted_day.filter(|_| finished.status() != Status::Failed);
        if let (None, Some(day), Some(customer)) = (counts, operation.counted_day, customer(&operation)) {
            usage::reduce(tx, customer, day, operation.amount).await?;
        }
        let (status, finished_at) = (status_number(finished.status()), finished_at(finished));
        let counted_day = counts.map(|day| i64::from(day.0));
        let (cause, code, text) = source.cause_columns(finished.status());
        let [attempts, ended_at, kind, failure] = tasks::ended_columns(job.as_ref(), *at);
        let result =
            params![*id, status, finished_at, payer, counted_day, cause, code, text, attempts, ended_at, kind, failure];
        tx.execute(FINISH, &result).await?;
    }
    Ok(outcome)
}

/// Stores what a provider prepared for the customer of a pending deposit, and ends the provider job. Returns `false`
/// when there is no such deposit.
pub(super) async fn prepare<T: OwnStatements>(
    tx: &T,
    id: TransactionId,
    sealed: &[u8],
    end: JobEnd,
    at: UnixMillis,
) -> Result<bool, T::Error> {
    match unfinished(tx, id).await? {
        Some(OperationState { direction: Direction::Payin, status: Status::Pending, .. }) => {}
        _ => return Ok(false),
    }
    tx.execute(PUT_PREPARATION, &params![id, sealed]).await?;
    tasks::end_job(tx, id, end.kind(), at, true).await?;
    Ok(true)
}

/// Gives up a pending operation's claimed provider job, and stores that the preparation of a deposit stopped, if it has none.
/// Reports whether it did.
pub(super) async fn give_up<T: OwnStatements>(
    tx: &T,
    job: ClaimedJob,
    failure: &str,
    stopped: &[u8],
    at: UnixMillis,
) -> Result<bool, T::Error> {
    let Some(OperationState { direction, status: Status::Pending, .. }) = unfinished(tx, job.id).await? else {
        return Ok(false);
    };
    let given_up = tasks::give_up_job(tx, job, at, failure).await?;
    if given_up && direction == Direction::Payin {
        tx.execute(STOP_PREPARATION, &params![job.id, stopped]).await?;
    }
    Ok(given_up)
}

const STOP_PREPARATION: Sql =
    sql!("INSERT INTO preparations (transaction_id, sealed) VALUES (?1, ?2) ON CONFLICT (transaction_id) DO NOTHING");

const PUT_PREPARATION: Sql = sql!(
    "INSERT INTO preparations (transaction_id, sealed) VALUES (?1, ?2) \
     ON CONFLICT (transaction_id) DO UPDATE SET sealed = excluded.sealed"
);

const REMOVE_PREPARATION: Sql = sql!("DELETE FROM preparations WHERE transaction_id = ?1");

const FINISH: Sql = sql!(
    "UPDATE operations SET status = ?2, finished_at = ?3, payer = ?4, counted_day = ?5, cause = ?6, cause_code = ?7, \
     cause_text = ?8, job_attempts = ?9, job_ended_at = ?10, job_kind = ?11, job_failure = ?12 WHERE transaction_id = ?1"
);

/// The columns that completing an operation needs.
#[derive(Debug)]
pub(super) struct OperationState {
    direction: Direction,
    pub(super) status: Status,
    pub(super) finished_at: Option<i64>,
    amount: i64,
    merchant: Box<str>,
    currency: Box<str>,
    shop: Box<str>,
    customer_account_id: Option<i64>,
    counted_day: Option<UnixDay>,
    /// The merchant's callback address; `None`: the merchant is not called back.
    callback_url: Option<Box<str>>,
}

pub(super) const UNFINISHED: Sql = sql!(
    "SELECT x.direction, o.status, o.finished_at, o.amount, x.merchant, x.currency, x.shop, o.customer_account_id, \
     o.counted_day, o.callback_url FROM operations o LEFT JOIN contexts x ON x.id = o.context \
     WHERE o.transaction_id = ?1",
    postgres adds "FOR UPDATE OF o"
);

/// Reads and locks the columns that completing an operation needs.
pub(super) async fn unfinished<T: Transaction>(tx: &T, id: TransactionId) -> Result<Option<OperationState>, T::Error> {
    tx.query_opt(UNFINISHED, &params![id], |row| {
        Ok(OperationState {
            direction: direction_of(row.get(0)?).ok_or(CorruptRow::new("direction"))?,
            status: status_of(row.get(1)?).ok_or(CorruptRow::new("status"))?,
            finished_at: row.get(2)?,
            amount: row.get(3)?,
            merchant: row.get(4)?,
            currency: row.get(5)?,
            shop: row.get(6)?,
            customer_account_id: row.get(7)?,
            counted_day: row.get::<Option<i32>>(8)?.map(UnixDay),
            callback_url: row.get(9)?,
        })
    })
    .await
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
