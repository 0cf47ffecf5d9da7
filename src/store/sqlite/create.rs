//! The transaction of a create: everything that belongs to a new operation, or nothing.

use rusqlite::Connection;

use super::ledger::{self, Booking, Occasion};
use super::outbox::{self, NewCallback};
use super::row::{self, NewRow, StoredRow};
use super::usage::{self, Customer, Usage};
use super::{jobs, reserved};
use crate::domain::{Amount, Currency, Direction, LedgerAccount, Operation, Outcome, State, Status};
use crate::store::{CallbackId, CallbackSubject, Draft, Verdict};

/// What a create met.
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

/// How an operation is to be stored: all that is read before the first write.
struct Judged {
    verdict: Verdict,
    /// The customer's usage with this operation, when it counts.
    usage: Option<Usage>,
}

/// Stores a new operation. The opening and the limits are looked at first and written last, after the insert has shown
/// that the order is new: nothing has to be taken back.
pub(super) fn create(connection: &Connection, row: &NewRow, nonce: u64) -> rusqlite::Result<Created> {
    if reserved::holds(connection, row.order_key())? {
        return Ok(Created::Reserved);
    }
    let draft = row.draft();
    let operation = &draft.operation;
    let first = match &draft.opening {
        Some(opening) if !ledger::knows(connection, &operation.merchant)? => Some(&**opening),
        _ => None,
    };
    let opening = first.unwrap_or_default();
    let judged = judge(connection, draft, opening)?;
    let state = match judged.verdict {
        Verdict::AsDrafted => operation.state.clone(),
        Verdict::OverDailyLimit | Verdict::NotCovered => {
            State::Finished { outcome: Outcome::Failed, at: operation.created_at }
        }
    };
    let day = judged.usage.and(draft.daily_limit).map(|limit| limit.day);
    if !row.insert(connection, &state, day)? {
        // What stands may be of the same batch: the answer is sent after its commit too.
        let existing = StoredRow::by_order(connection, row.order_key())?;
        return Ok(existing.map_or(Created::IdTaken, |existing| Created::Existing(Box::new(existing))));
    }
    if first.is_some() {
        let occasion = Occasion::Operation(operation.id);
        ledger::open(connection, occasion, &operation.merchant, opening, operation.created_at)?;
    }
    if let (Some(customer), Some(usage), Some(day)) = (customer(operation), judged.usage, day) {
        usage::write(connection, customer, day, usage)?;
    }
    for posting in ledger::of_creation(operation.direction(), state.status()) {
        ledger::book(connection, *posting, booking(operation))?;
    }
    let mut queued = false;
    match state {
        State::Pending => {
            if let Some(job) = draft.provider_job {
                jobs::queue(connection, operation.id, &operation.shop, job)?;
            }
        }
        State::Finished { at, .. } => {
            if let Some(url) = outbox::address(&operation.callback_url, draft.v1.as_ref()) {
                let id = CallbackId::new(CallbackSubject::Operation(operation.id), nonce);
                let merchant = operation.merchant.as_str();
                NewCallback { id, merchant, target: &url.origin(), at }.queue(connection)?;
                queued = true;
            }
        }
    }
    Ok(Created::Stored { verdict: judged.verdict, queued })
}

/// The limits of a pending operation, in their order: the customer's day, then the balance.
fn judge(connection: &Connection, draft: &Draft, opening: &[(Currency, Amount)]) -> rusqlite::Result<Judged> {
    let operation = &draft.operation;
    if operation.state.status() != Status::Pending {
        return Ok(Judged { verdict: Verdict::AsDrafted, usage: None });
    }
    let usage = match (customer(operation), &draft.daily_limit) {
        (Some(customer), Some(limit)) => {
            let usage = usage::with_one_more(connection, customer, limit, ledger::signed(operation.amount))?;
            if usage.is_none() {
                return Ok(Judged { verdict: Verdict::OverDailyLimit, usage: None });
            }
            usage
        }
        _ => None,
    };
    let covered = operation.direction() == Direction::Payin || can_be_held(connection, draft, opening)?;
    if covered {
        Ok(Judged { verdict: Verdict::AsDrafted, usage })
    } else {
        Ok(Judged { verdict: Verdict::NotCovered, usage: None })
    }
}

/// Whether a withdrawal's amount can be held: it is covered, where that is asked for, and no balance leaves its range.
fn can_be_held(connection: &Connection, draft: &Draft, opening: &[(Currency, Amount)]) -> rusqlite::Result<bool> {
    let operation = &draft.operation;
    let (merchant, currency) = (operation.merchant.as_str(), operation.currency.as_str());
    let available = available(connection, operation, opening)?;
    let held = ledger::balance(connection, merchant, currency, LedgerAccount::Held)?;
    let amount = ledger::signed(operation.amount);
    let in_range = available.checked_sub(amount).is_some() && held.checked_add(amount).is_some();
    Ok(in_range && (!draft.enforce_balance || available >= amount))
}

/// What the merchant can withdraw in the operation's currency, with what is about to be opened.
fn available(connection: &Connection, operation: &Operation, opening: &[(Currency, Amount)]) -> rusqlite::Result<i64> {
    let (merchant, currency) = (operation.merchant.as_str(), operation.currency.as_str());
    let booked = ledger::balance(connection, merchant, currency, LedgerAccount::Available)?;
    let opened = opening.iter().find(|(currency, _)| *currency == operation.currency);
    ledger::sum(booked, opened.map_or(0, |(_, amount)| ledger::signed(*amount)))
}

fn customer(operation: &Operation) -> Option<Customer<'_>> {
    operation.customer_account_id.map(|id| Customer {
        merchant: operation.merchant.as_str(),
        shop: operation.shop.as_str(),
        direction: row::direction_number(operation.direction()),
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
