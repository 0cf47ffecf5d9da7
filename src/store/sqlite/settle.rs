//! The transaction of a result.

use rusqlite::{Connection, OptionalExtension, Row};

use super::ledger::{self, Booking, Occasion};
use super::outbox::{self, NewCallback};
use super::usage::{self, Customer};
use super::{jobs, preparations, row};
use crate::domain::{Direction, Outcome, State, Status, TransactionId, UnixDay, UnixMillis};
use crate::store::rows::{bare_state, status_of};
use crate::store::{CallbackId, CallbackSubject, Settlement};

/// What of an operation decides about a result.
struct Standing {
    direction: i64,
    status: i64,
    finished_at: Option<i64>,
    amount: i64,
    merchant: Box<str>,
    currency: Box<str>,
    shop: Box<str>,
    customer_account_id: Option<i64>,
    counted_day: Option<i32>,
    /// Where it is told.
    told_url: Option<Box<str>>,
}

impl Standing {
    fn of(connection: &Connection, id: TransactionId) -> rusqlite::Result<Option<Self>> {
        connection
            .prepare_cached(
                "SELECT direction, status, finished_at, amount, merchant, currency, shop, customer_account_id, \
                 counted_day, CASE relayed WHEN 0 THEN callback_url ELSE v1_callback_url END \
                 FROM operations WHERE transaction_id = ?1",
            )?
            .query_row([id.to_stored()], Self::read)
            .optional()
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            direction: row.get(0)?,
            status: row.get(1)?,
            finished_at: row.get(2)?,
            amount: row.get(3)?,
            merchant: row.get(4)?,
            currency: row.get(5)?,
            shop: row.get(6)?,
            customer_account_id: row.get(7)?,
            counted_day: row.get(8)?,
            told_url: row.get(9)?,
        })
    }

    fn direction(&self) -> rusqlite::Result<Direction> {
        row::direction_of(self.direction).ok_or(rusqlite::Error::IntegralValueOutOfRange(0, self.direction))
    }

    /// The state without what is sealed in it.
    fn state(&self) -> rusqlite::Result<State> {
        let status = status_of(self.status).ok_or(rusqlite::Error::IntegralValueOutOfRange(1, self.status))?;
        Ok(bare_state(status, self.finished_at))
    }
}

/// Books a result with all that follows from it.
pub(super) fn settle(
    connection: &Connection,
    id: TransactionId,
    outcome: &Outcome,
    payer: Option<&[u8]>,
    at: UnixMillis,
    nonce: u64,
) -> rusqlite::Result<Settlement> {
    let Some(standing) = Standing::of(connection, id)? else { return Ok(Settlement::Unknown) };
    let settlement = match standing.state()?.finish(outcome.clone(), at) {
        Ok(Ok(finished)) => {
            write(connection, id, &standing, &finished, payer)?;
            let direction = standing.direction()?;
            for posting in ledger::of_result(direction, finished.status()) {
                ledger::book(connection, *posting, booking(id, &standing, at))?;
            }
            if let Some(url) = &standing.told_url {
                let (id, target) = (CallbackId::new(CallbackSubject::Operation(id), nonce), outbox::origin_of(url)?);
                NewCallback { id, merchant: &standing.merchant, target: &target, at }.queue(connection)?;
            }
            Settlement::Booked
        }
        Ok(Err(_)) => Settlement::AlreadyBooked,
        Err(contradiction) => Settlement::Contradicts(contradiction.booked),
    };
    // A finished operation has no work left, whoever finished it.
    jobs::end(connection, id)?;
    preparations::end(connection, id)?;
    Ok(settlement)
}

/// Writes the state; a failure no longer counts for its customer's day.
fn write(
    connection: &Connection,
    id: TransactionId,
    standing: &Standing,
    finished: &State,
    payer: Option<&[u8]>,
) -> rusqlite::Result<()> {
    let failed = finished.status() == Status::Failed;
    let counted_day = standing.counted_day.filter(|_| !failed);
    connection
        .prepare_cached(
            "UPDATE operations SET status = ?2, finished_at = ?3, payer = ?4, counted_day = ?5 \
             WHERE transaction_id = ?1",
        )?
        .execute((
            id.to_stored(),
            row::status_number(finished.status()),
            row::finished_at(finished),
            payer,
            counted_day,
        ))?;
    match (failed, standing.counted_day, standing.customer_account_id) {
        (true, Some(day), Some(account_id)) => {
            let customer = Customer {
                merchant: &standing.merchant,
                shop: &standing.shop,
                direction: standing.direction,
                account_id,
            };
            usage::give_back(connection, customer, UnixDay(day), standing.amount)
        }
        _ => Ok(()),
    }
}

fn booking(id: TransactionId, standing: &Standing, at: UnixMillis) -> Booking<'_> {
    Booking {
        occasion: Occasion::Operation(id),
        merchant: &standing.merchant,
        currency: &standing.currency,
        amount: standing.amount,
        at,
    }
}
