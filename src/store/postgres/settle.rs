//! The transaction of a result.

use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use super::fault::Fault;
use super::ledger::{self, Booking, Occasion};
use super::outbox::{self, NewCallback};
use super::row::{bucket_in, get, narrow, small};
use super::usage::{self, Customer};
use super::{jobs, preparations};
use crate::domain::{Direction, Outcome, State, Status, TransactionId, UnixDay, UnixMillis};
use crate::store::rows::{NotOurs, bare_state, direction_number, direction_of, finished_at, status_number, status_of};
use crate::store::{CallbackId, CallbackSubject, Settlement};

/// What of an operation decides about a result. Nobody else books one until the end of the transaction.
struct Standing {
    direction: Direction,
    status: Status,
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
    async fn of(transaction: &Transaction<'_>, id: TransactionId) -> Result<Option<Self>, Fault> {
        let statement = transaction
            .prepare_cached(
                "SELECT direction, status, finished_at, amount, merchant, currency, shop, customer_account_id, \
                 counted_day, CASE WHEN relayed THEN v1_callback_url ELSE callback_url END \
                 FROM operations WHERE bucket = $1 AND transaction_id = $2 FOR UPDATE",
            )
            .await?;
        let found = transaction.query_opt(&statement, &[&bucket_in(id), &id.to_stored()]).await?;
        found.as_ref().map(Self::read).transpose()
    }

    fn read(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            direction: direction_of(small(row, 0)?).ok_or(NotOurs("direction"))?,
            status: status_of(small(row, 1)?).ok_or(NotOurs("status"))?,
            finished_at: get(row, 2)?,
            amount: get(row, 3)?,
            merchant: get(row, 4)?,
            currency: get(row, 5)?,
            shop: get(row, 6)?,
            customer_account_id: get(row, 7)?,
            counted_day: get(row, 8)?,
            told_url: get(row, 9)?,
        })
    }
}

/// Books a result with all that follows from it.
pub(super) async fn settle(
    transaction: &Transaction<'_>,
    id: TransactionId,
    outcome: &Outcome,
    payer: Option<&[u8]>,
    at: UnixMillis,
    nonce: u64,
) -> Result<Settlement, Fault> {
    let Some(standing) = Standing::of(transaction, id).await? else { return Ok(Settlement::Unknown) };
    let (settlement, finished) = match bare_state(standing.status, standing.finished_at).finish(outcome.clone(), at) {
        Ok(Ok(finished)) => {
            let postings = ledger::of_result(standing.direction, finished.status());
            ledger::book(transaction, postings, booking(id, &standing, at)).await?;
            if let Some(url) = &standing.told_url {
                let (id, target) = (CallbackId::new(CallbackSubject::Operation(id), nonce), outbox::origin_of(url)?);
                NewCallback { id, merchant: &standing.merchant, target: &target, at }.queue(transaction).await?;
            }
            (Settlement::Booked, Some(finished))
        }
        Ok(Err(_)) => (Settlement::AlreadyBooked, None),
        Err(contradiction) => (Settlement::Contradicts(contradiction.booked), None),
    };
    // A finished operation has no work left, whoever finished it.
    jobs::end(transaction, id).await?;
    if standing.direction == Direction::Payin {
        preparations::end(transaction, id).await?;
    }
    if let Some(finished) = finished {
        write(transaction, id, &standing, &finished, payer).await?;
    }
    Ok(settlement)
}

/// Writes the state; a failure no longer counts for its customer's day.
///
/// The operation is changed last: whoever repeats its create would wait for a row that was changed, with the batch that it
/// is in, and does not for one that is only locked.
async fn write(
    transaction: &Transaction<'_>,
    id: TransactionId,
    standing: &Standing,
    finished: &State,
    payer: Option<&[u8]>,
) -> Result<(), Fault> {
    let failed = finished.status() == Status::Failed;
    let counted_day = standing.counted_day.filter(|_| !failed);
    let bucket = bucket_in(id);
    if let (true, Some(day), Some(account_id)) = (failed, standing.counted_day, standing.customer_account_id) {
        let customer = Customer {
            bucket,
            merchant: &standing.merchant,
            shop: &standing.shop,
            direction: narrow(direction_number(standing.direction)),
            account_id,
        };
        usage::give_back(transaction, customer, UnixDay(day), standing.amount).await?;
    }
    let statement = transaction
        .prepare_cached(
            "UPDATE operations SET status = $3, finished_at = $4, payer = $5, counted_day = $6 \
             WHERE bucket = $1 AND transaction_id = $2",
        )
        .await?;
    let status = narrow(status_number(finished.status()));
    transaction
        .execute(&statement, &[&bucket, &id.to_stored(), &status, &finished_at(finished), &payer, &counted_day])
        .await?;
    Ok(())
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
