//! The row operations of the writer's transaction: see [`Rows`].
//!
//! Nothing else writes meanwhile, so every row is locked. Every operation completes at once, so the logic over them
//! needs no runtime ([`at_once`]).

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::journal::{self, EntryRow, NewEntry};
use super::row::{self, NewRow, direction_number, direction_of, finished_at, status_number};
use crate::domain::{
    Balance, Currency, Fingerprint, LedgerAccount, MerchantId, Posting, RedirectUrl, State, TransactionId, UnixDay,
};
use crate::store::create::{self, Home, HomeRows, Inserted, OrderRow};
use crate::store::journal::moves::EntryRows;
use crate::store::rows::context::NewContext;
use crate::store::rows::entry::ANSWERED;
use crate::store::rows::ledger::{LedgerEntry, PostingSource, account_number, posting_number};
use crate::store::rows::{CorruptRow, Transaction, status_of};
use crate::store::transaction::{Customer, OperationState, Rows, Usage};
use crate::store::{EngineAnswer, EntryId, NewOperation};

pub(super) use crate::store::create::InsertedRow;

/// The days of usage that are kept before the newest: creates may arrive a little late.
const KEPT_DAYS: i32 = 2;

/// The most old usage rows that are deleted when a new one is inserted: their number falls, and the writer is not
/// delayed.
const REMOVED: i64 = 8;

/// The writer's transaction.
pub(in crate::store) struct SqliteRows<'a>(pub(super) &'a Connection);

/// The error of a transaction that waited for something other than rows.
#[derive(Debug, thiserror::Error)]
#[error("a transaction of SQLite waited for something")]
struct Waited;

/// Runs logic that waits for row operations only.
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
            if claim_home(self.0, *order, home)? { Ok(None) } else { row::home_of(self.0, *order) }
        };
        orders.iter().map(claim).collect()
    }

    async fn home(&mut self, _: &MerchantId, order: Fingerprint) -> rusqlite::Result<Option<Home>> {
        row::home_of(self.0, order)
    }
}

impl EntryRows for SqliteRows<'_> {
    async fn insert_entry(&mut self, new: &NewEntry, id: EntryId) -> rusqlite::Result<bool> {
        if !claim_home(self.0, new.order_key, Home::Entry(id))? {
            return Ok(false);
        }
        let inserted = journal::insert(self.0, new, id)?;
        if !inserted {
            release_home(self.0, new.order_key)?;
        }
        Ok(inserted)
    }

    async fn entry(&mut self, id: EntryId) -> rusqlite::Result<Option<EntryRow>> {
        EntryRow::by_id(self.0, id)
    }

    async fn locked_entry(&mut self, id: EntryId) -> rusqlite::Result<Option<EntryRow>> {
        EntryRow::by_id(self.0, id)
    }

    async fn belongs_to_another_order(&mut self, transaction_id: &str, order: Fingerprint) -> rusqlite::Result<bool> {
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
        release_home(self.0, Fingerprint(entry.order_key))
    }
}

impl Rows for SqliteRows<'_> {
    async fn is_new_merchant(&mut self, merchant: &MerchantId) -> rusqlite::Result<bool> {
        is_known(self.0, merchant).map(|known| !known)
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
        balance(self.0, merchant.as_str(), currency.as_str(), account)
    }

    async fn insert_operation(
        &mut self,
        new: &NewRow,
        state: &State,
        counted_day: Option<UnixDay>,
    ) -> rusqlite::Result<bool> {
        let order = new.order_key();
        if !claim_home(self.0, order, Home::Operation(new.draft().operation.id))? {
            return Ok(false);
        }
        let inserted = new.insert(self.0, state, counted_day)?;
        if !inserted {
            release_home(self.0, order)?;
        }
        Ok(inserted)
    }

    async fn post(&mut self, postings: &[Posting], entry: LedgerEntry<'_>) -> rusqlite::Result<()> {
        postings.iter().try_for_each(|posting| post(self.0, *posting, entry))
    }

    async fn has_entries(&mut self, source: PostingSource) -> rusqlite::Result<bool> {
        self.0
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM entries WHERE transaction_id = ?1)")?
            .query_row([source.to_stored()], |row| row.get(0))
    }

    async fn put_preparation(&mut self, id: TransactionId, sealed: &[u8]) -> rusqlite::Result<()> {
        let put = "INSERT INTO preparations (transaction_id, sealed) VALUES (?1, ?2) \
        ON CONFLICT DO UPDATE SET sealed = excluded.sealed";
        self.0.prepare_cached(put)?.execute((id.to_stored(), sealed)).map(drop)
    }

    async fn remove_preparation(&mut self, id: TransactionId) -> rusqlite::Result<()> {
        self.0.prepare_cached("DELETE FROM preparations WHERE transaction_id = ?1")?.execute([id.to_stored()]).map(drop)
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

/// Creates an operation, or reads the existing one. That one may be of the same batch, so its caller waits for the
/// commit, too.
pub(super) fn create_operation(connection: &Connection, row: &NewRow, nonce: u64) -> rusqlite::Result<InsertedRow> {
    Ok(match at_once(create::create(&mut SqliteRows(connection), row, nonce))? {
        Inserted::New { verdict, queued } => InsertedRow::Stored { verdict, queued },
        Inserted::Taken => match row::order_row(connection, row.order_key())? {
            OrderRow::Operation(existing) => InsertedRow::Existing(existing),
            OrderRow::Elsewhere => InsertedRow::Reserved,
            OrderRow::Free => InsertedRow::IdTaken,
        },
    })
}

impl NewRow {
    /// Inserts the operation in `state`, counted for its customer on `counted_day`. Returns `false` if its id exists.
    fn insert(&self, connection: &Connection, state: &State, counted_day: Option<UnixDay>) -> rusqlite::Result<bool> {
        let NewOperation { operation, comparison, .. } = self.draft();
        let inserted = connection.prepare_cached(INSERT)?.execute(params![
            operation.id.to_stored(),
            self.context.number(),
            self.listed(),
            status_number(state.status()),
            operation.created_at.0,
            finished_at(state),
            operation.amount.hundredths().cast_signed(),
            operation.customer_account_id.map(|id| id.0),
            counted_day.map(|day| day.0),
            operation.order_id.as_str(),
            comparison.fingerprint.0,
            self.callback_url(),
            self.sealed,
            self.payer,
        ])?;
        if inserted == 1 && !self.context.is_known() {
            self.insert_context(connection)?;
        }
        Ok(inserted == 1)
    }

    fn insert_context(&self, connection: &Connection) -> rusqlite::Result<()> {
        let context = NewContext::of(self.draft());
        let insert = "INSERT INTO contexts (id, direction, provider, origin, merchant, api_key, shop, currency, method, \
            payment_method, kept) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT DO NOTHING";
        connection
            .prepare_cached(insert)?
            .execute(params![
                self.context.number(),
                context.direction,
                context.provider,
                context.origin,
                context.merchant,
                context.api_key,
                context.shop,
                context.currency,
                context.method,
                context.payment_method,
                context.kept(),
            ])
            .map(drop)
    }
}

const INSERT: &str = "INSERT INTO operations (transaction_id, context, listed, status, created_at, finished_at, amount, \
    customer_account_id, counted_day, order_id, fingerprint, callback_url, sealed, payer) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) ON CONFLICT DO NOTHING";

/// Claims the home of an order. Returns `false` if it has one already.
fn claim_home(connection: &Connection, order: Fingerprint, home: Home) -> rusqlite::Result<bool> {
    let (home, reference) = home.columns();
    let claim = "INSERT INTO homes (order_key, home, ref) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    Ok(connection.prepare_cached(claim)?.execute((order.0, home, reference))? == 1)
}

/// Claims the home of an order, unless it has one; returns its home.
pub(super) fn claim_or_read(connection: &Connection, order: Fingerprint, home: Home) -> rusqlite::Result<Home> {
    if claim_home(connection, order, home)? {
        return Ok(home);
    }
    row::home_of(connection, order)?.ok_or_else(|| CorruptRow("homes").into())
}

/// Releases the home of an order.
fn release_home(connection: &Connection, order: Fingerprint) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM homes WHERE order_key = ?1")?.execute([order.0]).map(drop)
}

/// The error of a balance outside the range of a signed 64-bit number.
#[derive(Debug, thiserror::Error)]
#[error("an account's balance would be out of range, so nothing was posted")]
struct OutOfRange;

/// Returns `balance` plus `amount`.
///
/// # Errors
/// It is out of range.
fn sum(balance: i64, amount: i64) -> rusqlite::Result<i64> {
    balance.checked_add(amount).ok_or_else(|| rusqlite::Error::ToSqlConversionFailure(Box::new(OutOfRange)))
}

/// Posts the two entries of a posting, and updates the balances of their accounts.
///
/// # Errors
/// The source has this posting already, or a balance would be out of range. The transaction must not be committed then.
pub(super) fn post(connection: &Connection, posting: Posting, entry: LedgerEntry<'_>) -> rusqlite::Result<()> {
    let LedgerEntry { source, merchant, currency, amount, at } = entry;
    let (from, to) = posting.from_to();
    for (account, amount) in [(from, -amount), (to, amount)] {
        connection
            .prepare_cached(
                "INSERT INTO entries (transaction_id, posting, currency, account, amount, merchant, booked_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute((
                source.to_stored(),
                posting_number(posting),
                currency,
                account_number(account),
                amount,
                merchant,
                at.0,
            ))?;
        let balance = sum(balance(connection, merchant, currency, account)?, amount)?;
        connection
            .prepare_cached(
                "INSERT INTO accounts (merchant, currency, account, balance) VALUES (?1, ?2, ?3, ?4) \
                 ON CONFLICT DO UPDATE SET balance = excluded.balance",
            )?
            .execute((merchant, currency, account_number(account), balance))?;
    }
    Ok(())
}

/// Reports whether a merchant is known: its opening balances were posted, or never will be.
pub(super) fn is_known(connection: &Connection, merchant: &MerchantId) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM merchants WHERE merchant = ?1)")?
        .query_row([merchant.as_str()], |row| row.get(0))
}

/// Returns the balance of an account; zero if nothing was posted.
pub(super) fn balance(
    connection: &Connection,
    merchant: &str,
    currency: &str,
    account: LedgerAccount,
) -> rusqlite::Result<i64> {
    let balance = connection
        .prepare_cached("SELECT balance FROM accounts WHERE merchant = ?1 AND currency = ?2 AND account = ?3")?
        .query_row((merchant, currency, account_number(account)), |row| row.get(0))
        .optional()?;
    Ok(balance.unwrap_or(0))
}

/// Returns a merchant's balance in each currency, sorted by currency.
pub(super) fn balances(connection: &Connection, merchant: &str) -> rusqlite::Result<Vec<(String, Balance)>> {
    let mut statement = connection.prepare_cached(
        "SELECT currency, sum(balance) FILTER (WHERE account = ?2), sum(balance) FILTER (WHERE account = ?3) \
         FROM accounts WHERE merchant = ?1 GROUP BY currency ORDER BY currency",
    )?;
    let accounts = (merchant, account_number(LedgerAccount::Available), account_number(LedgerAccount::Held));
    statement
        .query_map(accounts, |row| {
            let (available, held): (Option<i64>, Option<i64>) = (row.get(1)?, row.get(2)?);
            Ok((row.get(0)?, Balance { available: available.unwrap_or(0), held: held.unwrap_or(0) }))
        })?
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Amount, Bucket, Currency, UnixMillis};
    use crate::store::create::open_alone;
    use crate::store::sqlite::schema::MIGRATIONS;
    use crate::store::sqlite::transaction::{SqliteRows, at_once};

    #[test]
    fn openings_with_the_same_random_id_do_not_collide() {
        let connection = Connection::open_in_memory().unwrap();
        for migration in MIGRATIONS {
            connection.execute_batch(migration).unwrap();
        }
        let first = MerchantId::new("m0").unwrap();
        let same_bucket = (1..).map(|number| MerchantId::new(&format!("m{number}")).unwrap());
        let second = same_bucket.into_iter().find(|other| Bucket::of(other) == Bucket::of(&first)).unwrap();
        let opening = [(Currency::new("EUR").unwrap(), Amount::from_hundredths(700).unwrap())];
        let at = UnixMillis(1_790_000_000_000);
        for merchant in [&first, &second, &first] {
            at_once(open_alone(&mut SqliteRows(&connection), merchant, &opening, at, 0xfff)).unwrap();
            assert!(is_known(&connection, merchant).unwrap());
        }
        for merchant in [&first, &second] {
            let balances = balances(&connection, merchant.as_str()).unwrap();
            assert_eq!(balances, [("EUR".to_owned(), Balance { available: 700, held: 0 })]);
        }
        let ids: Vec<i64> = connection
            .prepare("SELECT DISTINCT transaction_id FROM entries")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let bucket = i64::from(Bucket::of(&first).number());
        assert_eq!(ids.len(), 2);
        assert!(ids.iter().all(|id| *id < 0 && (id >> 12) & 1023 == bucket), "{ids:?} in bucket {bucket}");
    }
}
