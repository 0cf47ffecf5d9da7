//! Reads whole tables for exports, a page after the other along the primary key. A page is a range of keys that is found
//! first, and then read with the filters: it costs the same however few of its rows match, and holds neither a snapshot
//! nor the write-ahead log for long.
//!
//! The keys of operations and of the audit trail hold their time. A ledger entry has the key of its operation and may be
//! posted long after it, and a callback may be resent: an export of these reads all keys.

use std::array;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::thread::yield_now;
use std::time::Duration;

use tokio::time::Instant;

use super::backend::{Backend, ReadKind};
use super::lookups::{OrderRow, select_orders};
use super::outbox::list::{SHOP_OF_CALLBACK, record, select_callbacks};
use super::resolve::read_failure;
use super::rows::ledger::{account_of, posting_of};
use super::rows::operation::{STORED_COLUMNS, StoredRow, select_operations};
use super::rows::{CorruptRow, OrCorrupt as _};
use super::sql::{Columns, Parameter, Sql, Transaction as _, params, sql};
use super::trail::select_actions;
use super::{ActionRecord, CallbackRecord, StoreError, StoreFuture, Stored};
use crate::domain::{
    Currency, Direction, FailureCause, Fingerprint, LedgerAccount, MerchantId, Operation, OrderId, Posting,
    ProviderReason, ShopCode, TransactionId, UnixMillis,
};

/// What an export reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportTable {
    /// Operations, by the time of their creation.
    Operations,
    /// Entries of the ledger, by the time of their posting.
    Entries,
    /// Callbacks, by the time when they were queued or last resent.
    Callbacks,
    /// The audit trail, by the time when an action began.
    Audit,
}

impl ExportTable {
    /// Returns its name on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operations => "operations",
            Self::Entries => "entries",
            Self::Callbacks => "callbacks",
            Self::Audit => "audit",
        }
    }
}

/// Selects the rows of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportQuery {
    /// From this time on.
    pub from: UnixMillis,
    /// Before this time.
    pub to: UnixMillis,
    /// Only of this merchant.
    pub merchant: Option<MerchantId>,
    /// Only of this shop; of the audit trail, no row has one.
    pub shop: Option<ShopCode>,
}

/// The keys of an export that were not read yet.
pub type ExportKeys = RangeInclusive<i64>;

/// A page of an export.
#[derive(Debug)]
pub struct ExportPage<R> {
    /// The rows that match, in the order of their keys.
    pub rows: Vec<R>,
    /// The keys behind it; `None`: the export is complete.
    pub rest: Option<ExportKeys>,
    /// Lets other threads run at each row.
    pub turns: Turns,
}

/// Lets other threads run while a page is read and written: one of the gateway that is woken meanwhile would wait until this
/// thread's slice ends, some milliseconds, of any priority.
#[derive(Debug)]
pub struct Turns {
    /// The time that others may still take of this page. Where programs take all processors, a single turn takes more.
    left: Duration,
}

impl Turns {
    const fn of_a_page() -> Self {
        Self { left: Duration::from_millis(4) }
    }

    /// Lets another thread run.
    pub fn give(&mut self) {
        if !self.left.is_zero() {
            let began = Instant::now();
            yield_now();
            self.left = self.left.saturating_sub(began.elapsed());
        }
    }
}

/// An entry of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedEntry {
    /// The operation that it was posted for; `None` for an opening balance.
    pub operation: Option<(TransactionId, OrderId, ShopCode)>,
    /// The merchant whose ledger it is in.
    pub merchant: MerchantId,
    /// Why money moved.
    pub posting: Posting,
    /// The account that the money left or entered.
    pub account: LedgerAccount,
    /// The currency.
    pub currency: Currency,
    /// The amount in hundredths, below zero where the money left.
    pub amount: i64,
    /// When it was posted.
    pub posted_at: UnixMillis,
}

/// Reads whole tables, in pages of short reads. Rows that are created after the call of [`Exports::export_keys`] are
/// left out, except for those of nodes whose clocks are behind; every other row is read exactly once.
pub trait Exports: Send + Sync + 'static {
    /// Returns the keys of an export that begins now; `None`: there are no rows.
    fn export_keys(&self, table: ExportTable, query: ExportQuery) -> StoreFuture<'_, Option<ExportKeys>>;

    /// Returns the first operations of these keys.
    fn export_operations(&self, query: ExportQuery, keys: ExportKeys)
    -> StoreFuture<'_, ExportPage<ExportedOperation>>;

    /// Returns the first entries of these keys; those of an operation are never in two pages.
    fn export_entries(&self, query: ExportQuery, keys: ExportKeys) -> StoreFuture<'_, ExportPage<ExportedEntry>>;

    /// Returns the first callbacks of these keys, each with the shop of its operation.
    fn export_callbacks(
        &self,
        query: ExportQuery,
        keys: ExportKeys,
    ) -> StoreFuture<'_, ExportPage<(CallbackRecord, Box<str>)>>;

    /// Returns the first actions of these keys. Those of a merchant have it as their target or as a parameter.
    fn export_actions(&self, query: ExportQuery, keys: ExportKeys) -> StoreFuture<'_, ExportPage<ActionRecord>>;

    /// Returns the merchants with operations of a shop, sorted: also those that the rules no longer have.
    fn merchants_of_shop(&self, shop: ShopCode) -> StoreFuture<'_, Vec<MerchantId>>;

    /// Returns the operation of each id; `None` where there is none.
    fn operations_by_ids(&self, ids: Vec<TransactionId>) -> StoreFuture<'_, Vec<Option<Operation>>>;

    /// Returns the operation of each order; `None` where there is none.
    fn operations_by_orders(&self, orders: Vec<OrderName>) -> StoreFuture<'_, Vec<Option<Operation>>>;
}

/// An operation, and why it FAILED.
pub type ExportedOperation = (Stored, Option<(FailureCause, ProviderReason)>);

/// What names an order.
pub type OrderName = (MerchantId, Direction, OrderId);

impl<B: Backend> Exports for B {
    fn export_keys(&self, table: ExportTable, query: ExportQuery) -> StoreFuture<'_, Option<ExportKeys>> {
        Box::pin(async move {
            let all = self.read(ReadKind::Lookup, async move |tx| {
                let read = |row: &dyn Columns| Ok((row.get(0)?, row.get(1)?));
                tx.query_opt(walk_of(table).keys, &[], read).await
            });
            let Some((Some(first), Some(last))) = all.await? else { return Ok(None) };
            let keys = match table {
                ExportTable::Operations | ExportTable::Audit => {
                    let begin = TransactionId::first_of(query.from).to_stored();
                    let end = TransactionId::last_of(UnixMillis(query.to.0.saturating_sub(1))).to_stored();
                    begin.max(first)..=end.min(last)
                }
                ExportTable::Entries | ExportTable::Callbacks => first..=last,
            };
            Ok((!keys.is_empty()).then_some(keys))
        })
    }

    fn export_operations(
        &self,
        query: ExportQuery,
        keys: ExportKeys,
    ) -> StoreFuture<'_, ExportPage<ExportedOperation>> {
        Box::pin(async move {
            let read = |row: &dyn Columns| Ok((StoredRow::read(row)?, read_failure(row, STORED_COLUMNS)?));
            let ExportPage { rows, rest, mut turns } = page(self, ExportTable::Operations, query, keys, read).await?;
            let rows = rows.into_iter().map(|(row, failure)| {
                turns.give();
                Ok((row.decode(self.vault())?, failure))
            });
            Ok(ExportPage { rows: rows.collect::<Result<_, _>>()?, rest, turns })
        })
    }

    fn export_entries(&self, query: ExportQuery, keys: ExportKeys) -> StoreFuture<'_, ExportPage<ExportedEntry>> {
        Box::pin(page(self, ExportTable::Entries, query, keys, entry))
    }

    fn export_callbacks(
        &self,
        query: ExportQuery,
        keys: ExportKeys,
    ) -> StoreFuture<'_, ExportPage<(CallbackRecord, Box<str>)>> {
        let read = |row: &dyn Columns| Ok((record(row)?, row.get(SHOP_OF_CALLBACK)?));
        Box::pin(page(self, ExportTable::Callbacks, query, keys, read))
    }

    fn export_actions(&self, query: ExportQuery, keys: ExportKeys) -> StoreFuture<'_, ExportPage<ActionRecord>> {
        Box::pin(async move {
            let merchant = query.merchant.clone();
            let mut page = page(self, ExportTable::Audit, query, keys, ActionRecord::read).await?;
            if let Some(merchant) = &merchant {
                page.rows.retain(|action| action.names_merchant(merchant));
            }
            Ok(page)
        })
    }

    fn merchants_of_shop(&self, shop: ShopCode) -> StoreFuture<'_, Vec<MerchantId>> {
        Box::pin(async move {
            let found = self.read(ReadKind::Rows, async move |tx| {
                let read = |row: &dyn Columns| MerchantId::new(&row.get::<Box<str>>(0)?).or_corrupt("merchant");
                tx.query(MERCHANTS_OF_SHOP, &params![shop.as_str()], read).await
            });
            let mut merchants = found.await?;
            merchants.sort_unstable();
            merchants.dedup();
            Ok(merchants)
        })
    }

    fn operations_by_ids(&self, ids: Vec<TransactionId>) -> StoreFuture<'_, Vec<Option<Operation>>> {
        Box::pin(async move {
            let wanted = ids.clone();
            let read = self.read(ReadKind::Rows, async move |tx| {
                let names: Vec<_> = wanted.iter().map(|id| Parameter::from(*id)).collect();
                tx.query_each(BY_IDS, &sets_of(&names), StoredRow::read).await
            });
            let rows = read.await?.into_iter().flatten().map(|row| Ok((row.id, decoded(self, row)?)));
            let found = rows.collect::<Result<HashMap<_, _>, StoreError>>()?;
            Ok(ids.iter().map(|id| found.get(&id.to_stored()).cloned()).collect())
        })
    }

    fn operations_by_orders(&self, orders: Vec<OrderName>) -> StoreFuture<'_, Vec<Option<Operation>>> {
        Box::pin(async move {
            let key = self.vault().fingerprint_key();
            let orders: Vec<_> =
                orders.iter().map(|(merchant, direction, id)| key.order_key(merchant, *direction, id)).collect();
            let wanted = orders.clone();
            let read = self.read(ReadKind::Rows, async move |tx| {
                let names: Vec<_> = wanted.iter().map(Parameter::from).collect();
                let row = |row: &dyn Columns| Ok((Fingerprint(row.get(STORED_COLUMNS + 2)?), OrderRow::read(row)?));
                tx.query_each(BY_ORDERS, &sets_of(&names), row).await
            });
            let rows = read.await?.into_iter().flatten().filter_map(|(order, row)| match row {
                OrderRow::Operation(row) => Some(decoded(self, *row).map(|operation| (order, operation))),
                OrderRow::Free | OrderRow::Elsewhere => None,
            });
            let found = rows.collect::<Result<HashMap<_, _>, _>>()?;
            Ok(orders.iter().map(|order| found.get(order).cloned()).collect())
        })
    }
}

fn decoded<B: Backend>(backend: &B, row: StoredRow) -> Result<Operation, StoreError> {
    row.decode(backend.vault()).map(|stored| stored.operation)
}

/// How many operations a statement reads by their names: PostgreSQL takes longer for a statement than for its rows.
const AT_ONCE: usize = 32;

/// Returns the parameters of statements that read by these names; the first name fills up the last statement.
fn sets_of<'a>(names: &[Parameter<'a>]) -> Vec<[Parameter<'a>; AT_ONCE]> {
    let chunks = names.chunks(AT_ONCE).filter_map(|names| Some((names, names.first()?)));
    chunks.map(|(names, first)| array::from_fn(|at| *names.get(at).unwrap_or(first))).collect()
}

/// As many parameters.
macro_rules! names {
    () => {
        "IN (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, \
         ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32)"
    };
}

pub(super) const BY_IDS: Sql = sql!(select_operations!(concat!(
    "FROM operations LEFT JOIN contexts ON id = context WHERE transaction_id ",
    names!()
)));

pub(super) const BY_ORDERS: Sql = sql!(select_orders!(names!()));

/// A merchant comes once for each of its contexts, which are few.
const MERCHANTS_OF_SHOP: Sql = sql!("SELECT merchant FROM contexts WHERE shop = ?1");

/// The statements that read a table.
struct Walk {
    /// The least and the greatest key.
    keys: Sql,
    /// The last key of a page. Parameters: the first and the last key that are left.
    end: Sql,
    /// The rows of a page. Parameters: its first and its last key, and the filters: times, merchant and shop.
    rows: Sql,
    /// How many of the parameters the rows have.
    parameters: usize,
}

/// The statements of a table and its key; a page is of 200 rows.
macro_rules! walk {
    ($table:literal, $key:literal, $parameters:literal, $rows:expr) => {
        Walk {
            keys: sql!(concat!(
                "SELECT (SELECT min(",
                $key,
                ") FROM ",
                $table,
                "), (SELECT max(",
                $key,
                ") FROM ",
                $table,
                ")"
            )),
            end: sql!(concat!(
                "SELECT ",
                $key,
                " FROM ",
                $table,
                " WHERE ",
                $key,
                " >= ?1 AND ",
                $key,
                " <= ?2 ORDER BY ",
                $key,
                " LIMIT 1 OFFSET 199"
            )),
            rows: sql!($rows),
            parameters: $parameters,
        }
    };
}

const OPERATIONS: Walk = walk!(
    "operations",
    "transaction_id",
    6,
    select_operations!(
        ", cause, cause_code, cause_text FROM operations LEFT JOIN contexts ON id = context WHERE transaction_id >= ?1 AND transaction_id <= ?2 \
     AND created_at >= ?3 AND created_at < ?4 AND (merchant = ?5 OR ?5 IS NULL) AND (shop = ?6 OR ?6 IS NULL) \
     ORDER BY transaction_id"
    )
);

/// An opening belongs to no shop, also where it was posted with the first operation of its merchant.
const ENTRIES: Walk = walk!(
    "entries",
    "transaction_id",
    6,
    "SELECT e.transaction_id, posting, account, e.currency, e.amount, e.merchant, posted_at, order_id, shop \
     FROM entries e LEFT JOIN operations o ON o.transaction_id = e.transaction_id LEFT JOIN contexts x ON x.id = context \
     WHERE e.transaction_id >= ?1 AND e.transaction_id <= ?2 AND posted_at >= ?3 AND posted_at < ?4 \
     AND (e.merchant = ?5 OR ?5 IS NULL) AND ((shop = ?6 AND posting <> 0) OR ?6 IS NULL) \
     ORDER BY e.transaction_id, posting, e.currency, account"
);

const CALLBACKS: Walk = walk!(
    "callbacks",
    "key",
    6,
    select_callbacks!(
        "WHERE c.key >= ?1 AND c.key <= ?2 AND c.queued_at >= ?3 AND c.queued_at < ?4 \
     AND (c.merchant = ?5 OR ?5 IS NULL) AND (coalesce(x.shop, j.shop) = ?6 OR ?6 IS NULL) ORDER BY c.key"
    )
);

const ACTIONS: Walk = walk!(
    "actions",
    "id",
    4,
    select_actions!("WHERE id >= ?1 AND id <= ?2 AND began_at >= ?3 AND began_at < ?4 ORDER BY id")
);

const fn walk_of(table: ExportTable) -> &'static Walk {
    match table {
        ExportTable::Operations => &OPERATIONS,
        ExportTable::Entries => &ENTRIES,
        ExportTable::Callbacks => &CALLBACKS,
        ExportTable::Audit => &ACTIONS,
    }
}

/// Reads a page: the rows of the first keys that match.
async fn page<B: Backend, R: Send + 'static>(
    backend: &B,
    table: ExportTable,
    query: ExportQuery,
    keys: ExportKeys,
    read: fn(&dyn Columns) -> Result<R, CorruptRow>,
) -> Result<ExportPage<R>, StoreError> {
    let (walk, (first, last)) = (walk_of(table), keys.into_inner());
    let page = async move |tx: &B::Tx<'_>| {
        let end = tx.query_opt(walk.end, &params![first, last], |row| row.get(0)).await?.unwrap_or(last);
        let merchant = query.merchant.as_ref().map(MerchantId::as_str);
        let shop = query.shop.as_ref().map(ShopCode::as_str);
        let parameters: [Parameter<'_>; 6] = params![first, end, query.from, query.to, merchant, shop];
        let used = parameters.get(..walk.parameters).unwrap_or(&parameters);
        let mut turns = Turns::of_a_page();
        let read = |row: &dyn Columns| {
            turns.give();
            read(row)
        };
        let rows = tx.query(walk.rows, used, read).await?;
        Ok(ExportPage { rows, turns, rest: (end < last).then(|| end.saturating_add(1)..=last) })
    };
    backend.read(ReadKind::Rows, page).await
}

fn entry(row: &dyn Columns) -> Result<ExportedEntry, CorruptRow> {
    let posting = posting_of(row.get(1)?).ok_or(CorruptRow::new("posting"))?;
    let operation = match (posting, TransactionId::from_stored(row.get(0)?)) {
        (Posting::Opened, _) => None,
        (_, Some(id)) => {
            let order_id = OrderId::new(&row.get::<Box<str>>(7)?).or_corrupt("order_id")?;
            Some((id, order_id, ShopCode::new(&row.get::<Box<str>>(8)?).or_corrupt("shop")?))
        }
        (_, None) => return Err(CorruptRow::new("transaction_id")),
    };
    Ok(ExportedEntry {
        operation,
        posting,
        account: account_of(row.get(2)?).ok_or(CorruptRow::new("account"))?,
        currency: Currency::new(&row.get::<Box<str>>(3)?).or_corrupt("currency")?,
        amount: row.get(4)?,
        merchant: MerchantId::new(&row.get::<Box<str>>(5)?).or_corrupt("merchant")?,
        posted_at: row.get(6)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turns_of_a_page_take_a_bounded_time() {
        let mut turns = Turns { left: Duration::from_micros(50) };
        // Each takes some time of a clock that counts nanoseconds.
        (0..100_000).for_each(|_| turns.give());
        assert!(turns.left.is_zero());
    }
}
