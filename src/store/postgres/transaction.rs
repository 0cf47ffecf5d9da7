//! The row operations of a transaction: see [`Rows`]. Other transactions write meanwhile: a documented lock is a locked
//! row, which is inserted first if there is none.

use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use super::errors::PgError;
use super::insert;
use super::journal::entry_row;
use super::ledger::{self, fold};
use super::row::{self, bucket_in, bucket_in_number, bucket_of, get, key, narrow, small};
use crate::domain::{
    Bucket, Currency, Fingerprint, LedgerAccount, MerchantId, Posting, RedirectUrl, State, TransactionId, UnixDay,
};
use crate::store::create::{Home, HomeRows};
use crate::store::journal::moves::EntryRows;
use crate::store::rows::entry::{EntryRow, NewEntry};
use crate::store::rows::ledger::{LedgerEntry, PostingSource};
use crate::store::rows::operation::NewRow;
use crate::store::rows::{CorruptRow, direction_number, direction_of, finished_at, status_number, status_of};
use crate::store::transaction::{Customer, OperationState, Rows, Usage};
use crate::store::{EngineAnswer, EntryId, rows};

/// The days of usage that are kept before the newest: creates may arrive a little late, and other nodes' clocks differ.
const KEPT_DAYS: i32 = 2;

/// The most old usage rows that are deleted when a new one is inserted: their number falls, and nothing is delayed.
const REMOVED: i64 = 8;

/// A transaction.
///
/// The number is by how many milliseconds this node's clock is wrongly ahead: see
/// [`Offset::wrong_by`](super::node::Offset::wrong_by).
pub(in crate::store) struct PgRows<'a>(pub(super) &'a Transaction<'a>, pub(super) i64);

impl rows::Transaction for PgRows<'_> {
    type Error = PgError;
}

impl HomeRows for PgRows<'_> {
    async fn claim_homes(&mut self, orders: &[Fingerprint], home: Home) -> Result<Vec<Option<Home>>, PgError> {
        row::claim_homes(self.0, bucket_in_number(home.columns().1), orders, home).await
    }

    async fn home(&mut self, merchant: &MerchantId, order: Fingerprint) -> Result<Option<Home>, PgError> {
        row::home_of(self.0, bucket_of(merchant), order).await
    }
}

impl EntryRows for PgRows<'_> {
    async fn insert_entry(&mut self, new: &NewEntry, id: EntryId) -> Result<bool, PgError> {
        let bucket = bucket_in_number(id.0);
        if !row::claim_home(self.0, bucket, new.order_key, Home::Entry(id)).await? {
            return Ok(false);
        }
        let inserted = entry_row::insert(self.0, new, id).await?;
        if !inserted {
            row::release_home(self.0, bucket, new.order_key).await?;
        }
        Ok(inserted)
    }

    async fn entry(&mut self, id: EntryId) -> Result<Option<EntryRow>, PgError> {
        entry_row::by_id(self.0, id).await
    }

    async fn locked_entry(&mut self, id: EntryId) -> Result<Option<EntryRow>, PgError> {
        entry_row::locked(self.0, id).await
    }

    /// No unique index can ensure it, since the same name may occur in another bucket.
    async fn belongs_to_another_order(&mut self, transaction_id: &str, order: Fingerprint) -> Result<bool, PgError> {
        let statement = self.0.prepare_cached("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))").await?;
        self.0.execute(&statement, &[&transaction_id]).await?;
        let statement = self.0.prepare_cached(BELONGS_TO_ANOTHER_ORDER).await?;
        get(&self.0.query_one(&statement, &[&transaction_id, &key(&order)]).await?, 0)
    }

    async fn answer_entry(&mut self, id: EntryId, answer: &EngineAnswer) -> Result<(), PgError> {
        let redirect_url = answer.redirect_url.as_ref().map(RedirectUrl::expose);
        let statement = self
            .0
            .prepare_cached(
                "UPDATE journal SET state = 2, transaction_id = $3, redirect_url = $4, doubted_at = NULL \
                 WHERE bucket = $1 AND entry = $2",
            )
            .await?;
        self.0.execute(&statement, &[&bucket_in_number(id.0), &id.0, &&*answer.transaction_id, &redirect_url]).await?;
        Ok(())
    }

    async fn set_doubt(&mut self, id: EntryId, state: i64, doubted_at: i64) -> Result<(), PgError> {
        let update = "UPDATE journal SET state = $3, doubted_at = $4 WHERE bucket = $1 AND entry = $2";
        let statement = self.0.prepare_cached(update).await?;
        self.0.execute(&statement, &[&bucket_in_number(id.0), &id.0, &narrow(state), &doubted_at]).await?;
        Ok(())
    }

    async fn set_received(&mut self, entry: &EntryRow) -> Result<(), PgError> {
        let update = "UPDATE journal SET shop = $3, status = $4, account = $5 WHERE bucket = $1 AND entry = $2";
        let statement = self.0.prepare_cached(update).await?;
        let (bucket, status) = (bucket_in_number(entry.id), narrow(entry.status));
        self.0.execute(&statement, &[&bucket, &entry.id, &&*entry.shop, &status, &entry.account]).await?;
        Ok(())
    }

    async fn remove_entry(&mut self, id: EntryId) -> Result<(), PgError> {
        let statement = self.0.prepare_cached("DELETE FROM journal WHERE bucket = $1 AND entry = $2").await?;
        self.0.execute(&statement, &[&bucket_in_number(id.0), &id.0]).await?;
        Ok(())
    }

    async fn release_home(&mut self, entry: &EntryRow) -> Result<(), PgError> {
        row::release_home(self.0, bucket_in_number(entry.id), Fingerprint(entry.order_key)).await
    }
}

impl Rows for PgRows<'_> {
    /// The row is inserted at once, so that other transactions wait for it.
    async fn is_new_merchant(&mut self, merchant: &MerchantId) -> Result<bool, PgError> {
        let statement = self.0.prepare_cached("INSERT INTO merchants VALUES ($1, $2) ON CONFLICT DO NOTHING").await?;
        Ok(self.0.execute(&statement, &[&bucket_of(merchant), &merchant.as_str()]).await? == 1)
    }

    async fn add_merchant(&mut self, _: &MerchantId) -> Result<(), PgError> {
        Ok(())
    }

    async fn usage(&mut self, customer: Customer<'_>, day: UnixDay) -> Result<Usage, PgError> {
        let Customer { merchant, shop, direction, account_id } = customer;
        let statement = self
            .0
            .prepare_cached(
                "INSERT INTO daily_usage (operations, amount, customer_account_id, day, bucket, direction, merchant, shop) \
                 VALUES (0, 0, $1, $2, $3, $4, $5, $6) \
                 ON CONFLICT (bucket, day, merchant, shop, direction, customer_account_id) DO UPDATE \
                 SET operations = daily_usage.operations RETURNING operations, amount",
            )
            .await?;
        let direction = narrow(direction_number(direction));
        let row = self
            .0
            .query_one(&statement, &[&account_id, &day.0, &bucket(merchant), &direction, &merchant, &shop])
            .await?;
        Ok(Usage { operations: get(&row, 0)?, amount: get(&row, 1)? })
    }

    async fn set_usage(&mut self, customer: Customer<'_>, day: UnixDay, usage: Usage) -> Result<(), PgError> {
        let Customer { merchant, shop, direction, account_id } = customer;
        let statement = self
            .0
            .prepare_cached(
                "UPDATE daily_usage SET operations = $7, amount = $8 WHERE bucket = $1 AND day = $2 AND merchant = $3 \
                 AND shop = $4 AND direction = $5 AND customer_account_id = $6",
            )
            .await?;
        let (bucket, direction) = (bucket(merchant), narrow(direction_number(direction)));
        let Usage { operations, amount } = usage;
        self.0
            .execute(&statement, &[&bucket, &day.0, &merchant, &shop, &direction, &account_id, &operations, &amount])
            .await?;
        if operations > 1 {
            return Ok(());
        }
        let statement = self
            .0
            .prepare_cached(
                "DELETE FROM daily_usage WHERE (bucket, day, merchant, shop, direction, customer_account_id) IN \
                 (SELECT bucket, day, merchant, shop, direction, customer_account_id FROM daily_usage \
                 WHERE bucket = $1 AND day < $2 LIMIT $3 FOR UPDATE SKIP LOCKED)",
            )
            .await?;
        self.0.execute(&statement, &[&bucket, &day.0.saturating_sub(KEPT_DAYS), &REMOVED]).await?;
        Ok(())
    }

    async fn reduce_usage(&mut self, customer: Customer<'_>, day: UnixDay, amount: i64) -> Result<(), PgError> {
        let Customer { merchant, shop, direction, account_id } = customer;
        let statement = self
            .0
            .prepare_cached(
                "UPDATE daily_usage SET operations = greatest(operations - 1, 0), amount = greatest(amount - $7, 0) \
                 WHERE bucket = $1 AND day = $2 AND merchant = $3 AND shop = $4 AND direction = $5 \
                 AND customer_account_id = $6",
            )
            .await?;
        let (bucket, direction) = (bucket(merchant), narrow(direction_number(direction)));
        self.0.execute(&statement, &[&bucket, &day.0, &merchant, &shop, &direction, &account_id, &amount]).await?;
        Ok(())
    }

    /// The changes of a busy account are folded while it is locked anyway.
    async fn balance(
        &mut self,
        merchant: &MerchantId,
        currency: Currency,
        account: LedgerAccount,
        lock: bool,
    ) -> Result<i64, PgError> {
        if lock {
            ledger::lock(self.0, merchant, currency, account).await?;
        }
        let (balance, changes) = ledger::balance(self.0, merchant, currency, account).await?;
        if lock && changes >= fold::MANY {
            fold::own(self.0, merchant, currency, account).await?;
        }
        Ok(balance)
    }

    async fn insert_operation(
        &mut self,
        new: &NewRow,
        state: &State,
        counted_day: Option<UnixDay>,
    ) -> Result<bool, PgError> {
        insert::insert_context(self.0, new).await?;
        insert::insert_operation(self.0, new, state, counted_day).await
    }

    async fn post(&mut self, postings: &[Posting], entry: LedgerEntry<'_>) -> Result<(), PgError> {
        ledger::post(self.0, postings, entry).await
    }

    async fn has_entries(&mut self, source: PostingSource) -> Result<bool, PgError> {
        let id = source.to_stored();
        let statement = self
            .0
            .prepare_cached("SELECT EXISTS (SELECT FROM entries WHERE bucket = $1 AND transaction_id = $2)")
            .await?;
        get(&self.0.query_one(&statement, &[&bucket_in_number(id), &id]).await?, 0)
    }

    async fn put_preparation(&mut self, id: TransactionId, sealed: &[u8]) -> Result<(), PgError> {
        row::put_preparation(self.0, id, sealed).await
    }

    async fn remove_preparation(&mut self, id: TransactionId) -> Result<(), PgError> {
        row::remove_preparation(self.0, id).await
    }

    async fn unfinished(&mut self, id: TransactionId) -> Result<Option<OperationState>, PgError> {
        let statement = self
            .0
            .prepare_cached(
                "SELECT x.direction, o.status, o.finished_at, o.amount, x.merchant, x.currency, x.shop, \
                 o.customer_account_id, o.counted_day, o.callback_url \
                 FROM operations o LEFT JOIN contexts x ON x.bucket = o.bucket AND x.id = o.context \
                 WHERE o.bucket = $1 AND o.transaction_id = $2 FOR UPDATE OF o",
            )
            .await?;
        let found = self.0.query_opt(&statement, &[&bucket_in(id), &id.to_stored()]).await?;
        found.as_ref().map(read_state).transpose()
    }

    async fn finish(
        &mut self,
        id: TransactionId,
        finished: &State,
        payer: Option<&[u8]>,
        counted_day: Option<UnixDay>,
    ) -> Result<(), PgError> {
        let statement = self
            .0
            .prepare_cached(
                "UPDATE operations SET status = $3, finished_at = $4, payer = $5, counted_day = $6 \
                 WHERE bucket = $1 AND transaction_id = $2",
            )
            .await?;
        let status = narrow(status_number(finished.status()));
        let (finished_at, counted_day) = (finished_at(finished), counted_day.map(|day| day.0));
        self.0
            .execute(&statement, &[&bucket_in(id), &id.to_stored(), &status, &finished_at, &payer, &counted_day])
            .await?;
        Ok(())
    }
}

pub(super) const BELONGS_TO_ANOTHER_ORDER: &str =
    "SELECT EXISTS (SELECT FROM journal WHERE transaction_id = $1 AND order_key <> $2)";

fn read_state(row: &Row) -> Result<OperationState, PgError> {
    Ok(OperationState {
        direction: direction_of(small(row, 0)?).ok_or(CorruptRow("direction"))?,
        status: status_of(small(row, 1)?).ok_or(CorruptRow("status"))?,
        finished_at: get(row, 2)?,
        amount: get(row, 3)?,
        merchant: get(row, 4)?,
        currency: get(row, 5)?,
        shop: get(row, 6)?,
        customer_account_id: get(row, 7)?,
        counted_day: get::<Option<i32>>(row, 8)?.map(UnixDay),
        callback_url: get(row, 9)?,
    })
}

/// Returns the bucket of a merchant by its name in a row, as a column. An invalid name has a bucket that contains
/// nothing.
fn bucket(merchant: &str) -> i16 {
    MerchantId::new(merchant).map_or(-1, |merchant| i16::try_from(Bucket::of(&merchant).number()).unwrap_or(i16::MAX))
}
