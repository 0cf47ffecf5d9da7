//! Creates: everything that belongs to a new operation in one transaction, or nothing.
//!
//! What has nothing to decide shares a statement with others ([`batch`]). The rest has a transaction of its
//! own, which waits for others in this order: the merchant's first operation, the customer's day, the balance, the order.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use deadpool_postgres::Transaction;
use tokio::time::Instant;

use super::batch::{self, Met};
use super::fault::Fault;
use super::insert::{self, New};
use super::ledger::{self, Booking, Occasion, fold};
use super::node::Node;
use super::outbox::{self, NewCallback};
use super::row::{self, StoredRow, bucket_in, key, narrow};
use super::usage::{self, Customer};
use super::{jobs, reserved};
use crate::domain::{Direction, LedgerAccount, Operation, Outcome, State, Status};
use crate::store::rows::{direction_number, status_number};
use crate::store::{CallbackId, CallbackSubject, Draft, StoreError, Verdict};

/// Withdrawals up to this amount are held without a look at the balance when nothing asks for it: a million of them do not
/// bring an account out of its range.
const SMALL: i64 = 1_000_000_000_000;

/// What became of a create.
pub(super) enum Created {
    Stored {
        verdict: Verdict,
        /// A callback was queued.
        queued: bool,
    },
    Existing(Box<StoredRow>),
    Reserved,
    IdTaken,
}

/// Stores a new operation.
///
/// # Errors
/// The database does not answer: nothing was acknowledged.
pub(super) async fn create(node: &Rc<Node>, new: Arc<New>, nonce: u64) -> Result<Created, StoreError> {
    let met = if decides(new.draft()) {
        let since = Instant::now();
        let _turn = node.turns.to_decide(&new.draft().operation.merchant).await?;
        match decide(node, &new, nonce, since).await? {
            Decided::Stored { verdict, queued } => return Ok(Created::Stored { verdict, queued }),
            Decided::Met(met) => met,
        }
    } else {
        batch::create(node, Arc::clone(&new)).await?
    };
    match met {
        Met::Nothing => Ok(Created::Stored { verdict: Verdict::AsDrafted, queued: false }),
        Met::Something { in_doubt } => what_stands(node, &new, in_doubt).await,
    }
}

/// Whether something has to be looked at, or booked, before the operation is stored.
fn decides(draft: &Draft) -> bool {
    let operation = &draft.operation;
    let is_large = operation.direction() == Direction::Payout && ledger::signed(operation.amount) > SMALL;
    draft.opening.is_some()
        || draft.enforce_balance
        || is_large
        || operation.state.status() != Status::Pending
        || (operation.customer_account_id.is_some() && draft.daily_limit.is_some())
}

/// What stood in the way: whoever lost reads the winner, in a new statement.
async fn what_stands(node: &Node, new: &New, in_doubt: bool) -> Result<Created, StoreError> {
    let operation = &new.draft().operation;
    node.ask(async |client| {
        let statement = client.prepare_cached(row::BY_ORDER).await?;
        let bucket = bucket_in(operation.id);
        match client.query_opt(&statement, &[&bucket, &key(&new.order_key())]).await? {
            Some(found) => {
                let found = row::read(&found)?;
                if in_doubt && found.id == operation.id.to_stored() {
                    return Ok(made_before(new, &found));
                }
                Ok(Created::Existing(Box::new(found)))
            }
            None if reserved::holds(client, bucket, new.order_key()).await? => Ok(Created::Reserved),
            None => Ok(Created::IdTaken),
        }
    })
    .await
}

/// The commit of an earlier try stands, with the callback that was queued in it. What made it fail is told by metrics alone.
fn made_before(new: &New, found: &StoredRow) -> Created {
    let draft = new.draft();
    let failed_at_once = found.status == status_number(Status::Failed) && found.finished_at == Some(found.created_at);
    let verdict = match draft.operation.state.status() {
        Status::Pending if failed_at_once && draft.enforce_balance => Verdict::NotCovered,
        Status::Pending if failed_at_once => Verdict::OverDailyLimit,
        _ => Verdict::AsDrafted,
    };
    Created::Stored { verdict, queued: true }
}

enum Decided {
    Stored { verdict: Verdict, queued: bool },
    Met(Met),
}

async fn decide(node: &Node, new: &New, nonce: u64, since: Instant) -> Result<Decided, StoreError> {
    let tries = Cell::new(0_u32);
    node.transact_or_leave(since, async |transaction| {
        let in_doubt = tries.replace(tries.get() + 1) > 0;
        let stored = store(transaction, new, nonce).await?;
        Ok(stored.ok_or(Decided::Met(Met::Something { in_doubt })))
    })
    .await
}

/// Decides about an operation and stores it; `None`: something is in its place, and nothing of this is to stay.
async fn store(transaction: &Transaction<'_>, new: &New, nonce: u64) -> Result<Option<Decided>, Fault> {
    let draft = new.draft();
    let operation = &draft.operation;
    let opening = match &draft.opening {
        Some(opening) if ledger::meet(transaction, &operation.merchant).await? => &**opening,
        _ => &[],
    };
    if !opening.is_empty() {
        let occasion = Occasion::Operation(operation.id);
        ledger::open(transaction, occasion, &operation.merchant, opening, operation.created_at).await?;
    }
    let (verdict, counted) = judge(transaction, draft).await?;
    let state = match verdict {
        Verdict::AsDrafted => operation.state.clone(),
        Verdict::OverDailyLimit | Verdict::NotCovered => {
            State::Finished { outcome: Outcome::Failed, at: operation.created_at }
        }
    };
    let day = draft.daily_limit.filter(|_| counted).map(|limit| limit.day);
    insert::named(transaction, new).await?;
    if !insert::alone(transaction, new, &state, day).await? {
        return Ok(None);
    }
    let postings = ledger::of_creation(operation.direction(), state.status());
    ledger::book(transaction, postings, booking(operation)).await?;
    let queued = follow(transaction, draft, &state, nonce).await?;
    Ok(Some(Decided::Stored { verdict, queued }))
}

/// Queues what has to be done for an operation in its first state; whether that is a callback.
async fn follow(transaction: &Transaction<'_>, draft: &Draft, state: &State, nonce: u64) -> Result<bool, Fault> {
    let operation = &draft.operation;
    match state {
        State::Pending => {
            if let Some(due) = draft.provider_job {
                jobs::queue(transaction, operation.id, &operation.shop, due).await?;
            }
            Ok(false)
        }
        State::Finished { at, .. } => {
            let Some(url) = outbox::address(&operation.callback_url, draft.v1.as_ref()) else { return Ok(false) };
            let id = CallbackId::new(CallbackSubject::Operation(operation.id), nonce);
            let merchant = operation.merchant.as_str();
            NewCallback { id, merchant, target: &url.origin(), at: *at }.queue(transaction).await?;
            Ok(true)
        }
    }
}

/// The limits of a pending operation, in their order: the customer's day, then the balance. Whether it counts for the day.
async fn judge(transaction: &Transaction<'_>, draft: &Draft) -> Result<(Verdict, bool), Fault> {
    let operation = &draft.operation;
    if operation.state.status() != Status::Pending {
        return Ok((Verdict::AsDrafted, false));
    }
    let counted = match (customer(operation), &draft.daily_limit) {
        (Some(customer), Some(limit)) => {
            if !usage::one_more(transaction, customer, limit, operation.amount).await? {
                return Ok((Verdict::OverDailyLimit, false));
            }
            Some((customer, limit.day))
        }
        _ => None,
    };
    if operation.direction() == Direction::Payin || can_be_held(transaction, draft).await? {
        return Ok((Verdict::AsDrafted, counted.is_some()));
    }
    if let Some((customer, day)) = counted {
        usage::give_back(transaction, customer, day, ledger::signed(operation.amount)).await?;
    }
    Ok((Verdict::NotCovered, false))
}

/// Whether a withdrawal's amount can be held: it is covered, where that is asked for, and no balance leaves its range.
async fn can_be_held(transaction: &Transaction<'_>, draft: &Draft) -> Result<bool, Fault> {
    let operation = &draft.operation;
    let (merchant, currency) = (&operation.merchant, operation.currency);
    if draft.enforce_balance {
        ledger::lock(transaction, merchant, currency, LedgerAccount::Available).await?;
    }
    let (available, changes) = ledger::balance(transaction, merchant, currency, LedgerAccount::Available).await?;
    if draft.enforce_balance && changes >= fold::MANY {
        fold::own(transaction, merchant, currency, LedgerAccount::Available).await?;
    }
    let (held, _) = ledger::balance(transaction, merchant, currency, LedgerAccount::Held).await?;
    let amount = ledger::signed(operation.amount);
    let in_range = available.checked_sub(amount).is_some() && held.checked_add(amount).is_some();
    Ok(in_range && (!draft.enforce_balance || available >= amount))
}

fn customer(operation: &Operation) -> Option<Customer<'_>> {
    operation.customer_account_id.map(|id| Customer {
        bucket: bucket_in(operation.id),
        merchant: operation.merchant.as_str(),
        shop: operation.shop.as_str(),
        direction: narrow(direction_number(operation.direction())),
        account_id: id.0,
    })
}

fn booking(operation: &Operation) -> Booking<'_> {
    Booking {
        occasion: Occasion::Operation(operation.id),
        merchant: operation.merchant.as_str(),
        currency: operation.currency.as_str(),
        amount: ledger::signed(operation.amount),
        at: operation.created_at,
    }
}
