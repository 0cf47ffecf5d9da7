//! Creates: everything that belongs to a new operation in one transaction, or nothing.
//!
//! A create without a decision shares a statement with others ([`batch`](super::batch)). Any other has a transaction of
//! its own, which takes locks in this order: the merchant's first operation, the customer's day, the balance, the order.

use std::cell::Cell;

use tokio::time::Instant;

use super::node::PgNode;
use crate::domain::{Direction, Status};
use crate::store::create;
use crate::store::lookups::{OrderRow, order_row};
use crate::store::rows::operation::{NewRow, StoredRow};
use crate::store::rows::status_number;
use crate::store::{CreateOutcome, InsertOutcome, NewOperation, StoreError};

/// Withdrawals up to this amount are held without reading the balance, unless the balance is enforced: a million of
/// them do not bring an account out of its range.
const SMALL: i64 = 1_000_000_000_000;

/// Stores a new operation in a transaction of its own.
///
/// # Errors
/// The database does not respond: nothing was acknowledged.
pub(super) async fn create_alone(
    node: &PgNode,
    new: &NewRow,
    nonce: u64,
) -> Result<InsertOutcome<StoredRow>, StoreError> {
    let since = Instant::now();
    let _permit = node.limits.permit_to_decide(&new.draft().operation.merchant).await?;
    match decide(node, new, nonce, since).await? {
        Ok(outcome) => Ok(InsertOutcome::Created(outcome)),
        Err(Taken { in_doubt }) => load_existing(node, new, in_doubt).await,
    }
}

/// Reports whether something has to be read or posted before the operation is stored.
pub(super) fn needs_decision(draft: &NewOperation) -> bool {
    let operation = &draft.operation;
    let is_large = operation.direction() == Direction::Payout && operation.amount.signed() > SMALL;
    draft.opening.is_some()
        || draft.enforce_balance
        || is_large
        || operation.state.status() != Status::Pending
        || (operation.customer_account_id.is_some() && draft.daily_limit.is_some())
}

/// Reads what is stored under the order, in a new statement, which sees the transaction that was faster. `in_doubt`: it
/// may be from an earlier attempt of the same create whose result is unknown.
///
/// # Errors
/// The database does not respond.
pub(super) async fn load_existing(
    node: &PgNode,
    new: &NewRow,
    in_doubt: bool,
) -> Result<InsertOutcome<StoredRow>, StoreError> {
    let id = new.draft().operation.id.to_stored();
    Ok(match node.run(async |tx| order_row(tx, new.order_key()).await).await? {
        OrderRow::Operation(found) if in_doubt && found.id == id => {
            InsertOutcome::Created(outcome_of_earlier_attempt(new, &found))
        }
        found @ (OrderRow::Operation(_) | OrderRow::Elsewhere | OrderRow::Free) => found.into(),
    })
}

/// Returns the outcome of an earlier attempt that was committed. Why it failed is needed for metrics only.
fn outcome_of_earlier_attempt(new: &NewRow, found: &StoredRow) -> CreateOutcome {
    let draft = new.draft();
    let failed_at_once = found.status == status_number(Status::Failed) && found.finished_at == Some(found.created_at);
    match draft.operation.state.status() {
        Status::Pending if failed_at_once && draft.enforce_balance => CreateOutcome::NotCovered,
        Status::Pending if failed_at_once => CreateOutcome::OverDailyLimit,
        Status::Pending | Status::Success | Status::Failed => CreateOutcome::AsDrafted,
    }
}

/// The order has a home, or the id is taken.
struct Taken {
    in_doubt: bool,
}

async fn decide(
    node: &PgNode,
    new: &NewRow,
    nonce: u64,
    since: Instant,
) -> Result<Result<CreateOutcome, Taken>, StoreError> {
    let tries = Cell::new(0_u32);
    node.transact_or_leave(since, async |tx| {
        let in_doubt = tries.replace(tries.get() + 1) > 0;
        Ok(match create::create(tx, new, nonce).await? {
            Some(outcome) => Ok(Ok(outcome)),
            // The transaction must be rolled back.
            None => Err(Err(Taken { in_doubt })),
        })
    })
    .await
}
