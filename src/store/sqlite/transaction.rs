//! The row operations of the writer's transaction: see [`Rows`].
//!
//! Nobody else writes meanwhile, so that everything is locked. Every operation is done when it is asked for: what is said over
//! them needs no runtime ([`at_once`]).

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use rusqlite::{Connection, OptionalExtension, Row};

use super::journal::{self, EntryRow, NewEntry};
use super::row::{direction_number, direction_of, finished_at, status_number};
use super::{homes, ledger, preparations};
use crate::domain::{
    Currency, Fingerprint, LedgerAccount, MerchantId, Posting, RedirectUrl, State, TransactionId, UnixDay,
};
use crate::store::homes::{Home, HomeRows};
use crate::store::journal::moves::EntryRows;
use crate::store::rows::Transaction;
use crate::store::rows::entry::ANSWERED;
use crate::store::rows::ledger::{LedgerEntry, PostingSource};
use crate::store::rows::operation::NewRow;
use crate::store::rows::{CorruptRow, status_of};
use crate::store::transaction::{Customer, OperationState, Rows, Usage};
use crate::store::{EngineAnswer, EntryId};

/// Days of usage that are kept before the newest: creations arrive a little late.
const KEPT_DAYS: i32 = 2;

/// The most old rows of usage removed when a new one is made: their number falls, and the writer is never held up.
const REMOVED: i64 = 8;

/// The writer's transaction.
pub(in crate::store) struct SqliteRows<'a>(pub(super) &'a Connection);

/// Something was waited for.
#[derive(Debug, thiserror::Error)]
#[error("a transaction of SQLite waited for something")]
struct Waited;

/// Runs what only waits for row operations.
///
/// # Errors
/// Its own; or it waited for something else, which is a defect.
pub(super) fn at_once<T>(work: impl Future<Output = rusqlite::Result<T>>) -> rusqlite::Result<T> {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => Err(rusqlite::Error::ToSqlConversionFailure(Box::new(Waited))),
    }
}

impl From<CorruptRow> for rusqlite::Error {
    fn from(CorruptRow(column): CorruptRow) -> Self {
        Self::InvalidColumnType(0, column.to_owned(), rusqlite::types::Type::Null)
    }
}

impl Transaction for SqliteRows<'_> {
    type Error = rusqlite::Error;
}

impl HomeRows for SqliteRows<'_> {
    async fn claim_homes(&mut self, orders: &[Fingerprint], home: Home) -> rusqlite::Result<Vec<Option<Home>>> {
        let claim = |order: &Fingerprint| {
            if homes::claim(self.0, *order, home)? { Ok(None) } else { homes::of(self.0, *order) }
        };
        orders.iter().map(claim).collect()
    }

    async fn home(&mut self, _: &MerchantId, order: Fingerprint) -> rusqlite::Result<Option<Home>> {
        homes::of(self.0, order)
    }
}

impl EntryRows for SqliteRows<'_> {
    async fn insert_entry(&mut self, new: &NewEntry, id: EntryId) -> rusqlite::Result<bool> {
        if !homes::claim(self.0, new.order_key, Home::Entry(id))? {
            return Ok(false);
        }
        let inserted = journal::insert(self.0, new, id)?;
        if !inserted {
            homes::release(self.0, new.order_key)?;
        }
        Ok(inserted)
    }

    async fn entry(&mut self, id: EntryId) -> rusqlite::Result<Option<EntryRow>> {
        EntryRow::by_id(self.0, id)
    }

    async fn locked_entry(&mut self, id: EntryId) -> rusqlite::Result<Option<EntryRow>> {
        EntryRow::by_id(self.0, id)
    }

    async fn is_another_orders(&mut self, transaction_id: &str, order: Fingerprint) -> rusqlite::Result<bool> {
        self.0
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM journal WHERE transaction_id = ?1 AND order_key <> ?2)")?
            .query_row((transaction_id, order.0), |row| row.get(0))
    }

    async fn answer_entry(&mut self, id: EntryId, answer: &EngineAnswer) -> rusqlite::Result<()> {
        let redirect_url = answer.redirect_url.as_ref().map(RedirectUrl::expose);
        self.0
            .prepare_cached(
                "UPDATE journal SET state = ?2, transaction_id = ?3, redirect_url = ?4, doubted_at = NULL \
                 WHERE entry = ?1",
            )?
            .execute((id.0, ANSWERED, &answer.transaction_id, redirect_url))
            .map(drop)
    }

    async fn set_doubt(&mut self, id: EntryId, state: i64, doubted_at: i64) -> rusqlite::Result<()> {
        let update = "UPDATE journal SET state = ?2, doubted_at = ?3 WHERE entry = ?1";
        self.0.prepare_cached(update)?.execute((id.0, state, doubted_at)).map(drop)
    }

    async fn set_received(&mut self, entry: &EntryRow) -> rusqlite::Result<()> {
        let update = "UPDATE journal SET shop = ?2, status = ?3, account = ?4 WHERE entry = ?1";
        self.0.prepare_cached(update)?.execute((entry.id, &entry.shop, entry.status, &entry.account)).map(drop)
    }

    async fn remove_entry(&mut self, id: EntryId) -> rusqlite::Result<()> {
        self.0.prepare_cached("DELETE FROM journal WHERE entry = ?1")?.execute([id.0]).map(drop)
    }

    async fn release_home(&mut self, entry: &EntryRow) -> rusqlite::Result<()> {
        homes::release(self.0, Fingerprint(entry.order_key))
    }
}

impl Rows for SqliteRows<'_> {
    async fn is_new_merchant(&mut self, merchant: &MerchantId) -> rusqlite::Result<bool> {
        ledger::knows(self.0, merchant).map(|known| !known)
    }

    async fn add_merchant(&mut self, merchant: &MerchantId) -> rusqlite::Result<()> {
        let mut insert = self.0.prepare_cached("INSERT INTO merchants (merchant) VALUES (?1)")?;
        insert.execute([merchant.as_str()]).map(drop)
    }

    async fn usage(&mut self, customer: Customer<'_>, day: UnixDay) -> rusqlite::Result<Usage> {
        let Customer { merchant, shop, direction, account_id } = customer;
        let used = self
            .0
            .prepare_cached(
                "SELECT operations, amount FROM daily_usage WHERE day = ?1 AND merchant = ?2 AND shop = ?3 \
                 AND direction = ?4 AND customer_account_id = ?5",
            )?
            .query_row((day.0, merchant, shop, direction_number(direction), account_id), |row| {
                Ok(Usage { operations: row.get(0)?, amount: row.get(1)? })
            })
            .optional()?;
        Ok(used.unwrap_or(Usage { operations: 0, amount: 0 }))
    }

    async fn set_usage(&mut self, customer: Customer<'_>, day: UnixDay, usage: Usage) -> rusqlite::Result<()> {
        let Customer { merchant, shop, direction, account_id } = customer;
        self.0
            .prepare_cached(
                "INSERT INTO daily_usage (day, merchant, shop, direction, customer_account_id, operations, amount) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
                 ON CONFLICT DO UPDATE SET operations = excluded.operations, amount = excluded.amount",
            )?
            .execute((
                day.0,
                merchant,
                shop,
                direction_number(direction),
                account_id,
                usage.operations,
                usage.amount,
            ))?;
        if usage.operations > 1 {
            return Ok(());
        }
        self.0
            .prepare_cached(
                "DELETE FROM daily_usage WHERE (day, merchant, shop, direction, customer_account_id) IN \
                 (SELECT day, merchant, shop, direction, customer_account_id FROM daily_usage WHERE day < ?1 LIMIT ?2)",
            )?
            .execute((day.0.saturating_sub(KEPT_DAYS), REMOVED))
            .map(drop)
    }

    async fn reduce_usage(&mut self, customer: Customer<'_>, day: UnixDay, amount: i64) -> rusqlite::Result<()> {
        let Customer { merchant, shop, direction, account_id } = customer;
        self.0
            .prepare_cached(
                "UPDATE daily_usage SET operations = max(operations - 1, 0), amount = max(amount - ?6, 0) \
                 WHERE day = ?1 AND merchant = ?2 AND shop = ?3 AND direction = ?4 AND customer_account_id = ?5",
            )?
            .execute((day.0, merchant, shop, direction_number(direction), account_id, amount))
            .map(drop)
    }

    async fn balance(
        &mut self,
        merchant: &MerchantId,
        currency: Currency,
        account: LedgerAccount,
        _lock: bool,
    ) -> rusqlite::Result<i64> {
        ledger::balance(self.0, merchant.as_str(), currency.as_str(), account)
    }

    async fn insert_operation(
        &mut self,
        new: &NewRow,
        state: &State,
        counted_day: Option<UnixDay>,
    ) -> rusqlite::Result<bool> {
        let order = new.order_key();
        if !homes::claim(self.0, order, Home::Operation(new.draft().operation.id))? {
            return Ok(false);
        }
        let inserted = new.insert(self.0, state, counted_day)?;
        if !inserted {
            homes::release(self.0, order)?;
        }
        Ok(inserted)
    }

    async fn post(&mut self, postings: &[Posting], booking: LedgerEntry<'_>) -> rusqlite::Result<()> {
        postings.iter().try_for_each(|posting| ledger::book(self.0, *posting, booking))
    }

    async fn has_entries(&mut self, source: PostingSource) -> rusqlite::Result<bool> {
        self.0
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM entries WHERE transaction_id = ?1)")?
            .query_row([source.to_stored()], |row| row.get(0))
    }

    async fn put_preparation(&mut self, id: TransactionId, sealed: &[u8]) -> rusqlite::Result<()> {
        preparations::put(self.0, id, sealed)
    }

    async fn remove_preparation(&mut self, id: TransactionId) -> rusqlite::Result<()> {
        preparations::remove(self.0, id)
    }

    async fn unfinished(&mut self, id: TransactionId) -> rusqlite::Result<Option<OperationState>> {
        self.0
            .prepare_cached(
                "SELECT x.direction, o.status, o.finished_at, o.amount, x.merchant, x.currency, x.shop, \
                 o.customer_account_id, o.counted_day, o.callback_url \
                 FROM operations o LEFT JOIN contexts x ON x.id = o.context WHERE o.transaction_id = ?1",
            )?
            .query_row([id.to_stored()], read_state)
            .optional()
    }

    async fn finish(
        &mut self,
        id: TransactionId,
        finished: &State,
        payer: Option<&[u8]>,
        counted_day: Option<UnixDay>,
    ) -> rusqlite::Result<()> {
        self.0
            .prepare_cached(
                "UPDATE operations SET status = ?2, finished_at = ?3, payer = ?4, counted_day = ?5 \
                 WHERE transaction_id = ?1",
            )?
            .execute((
                id.to_stored(),
                status_number(finished.status()),
                finished_at(finished),
                payer,
                counted_day.map(|day| day.0),
            ))
            .map(drop)
    }
}

fn read_state(row: &Row<'_>) -> rusqlite::Result<OperationState> {
    Ok(OperationState {
        direction: direction_of(row.get(0)?).ok_or(CorruptRow("direction"))?,
        status: status_of(row.get(1)?).ok_or(CorruptRow("status"))?,
        finished_at: row.get(2)?,
        amount: row.get(3)?,
        merchant: row.get(4)?,
        currency: row.get(5)?,
        shop: row.get(6)?,
        customer_account_id: row.get(7)?,
        counted_day: row.get::<_, Option<i32>>(8)?.map(UnixDay),
        callback_url: row.get(9)?,
    })
}
