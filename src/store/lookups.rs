//! Lookups of orders and operations by their names.

use std::collections::HashMap;

use super::backend::{Backend, ReadKind};
use super::homes::Home;
use super::pages;
use super::rows::context::merchant_number;
use super::rows::details::opened_fields;
use super::rows::operation::{STORED_COLUMNS, StoredRow, V1Status, V2Status, select_operations, select_status};
use super::rows::{CorruptRow, preparation};
use super::sql::{Columns, Sql, Transaction, params, sql};
use super::transaction::OwnStatements as _;
use super::{OrderLookup, StoreFuture, Stored};
use crate::domain::{
    Balance, Currency, Direction, Fields, Fingerprint, HistoryQuery, MerchantId, Operation, OperationView, OrderId,
    Page, Preparation, StatusRecord, TransactionId,
};

/// Reads of orders and operations, most of them by their names.
pub trait OrderLookups: Send + Sync + 'static {
    /// Returns what is stored under a merchant's `order_id`.
    fn by_order<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, OrderLookup>;

    /// Returns an operation by its id, of any merchant.
    fn by_id(&self, id: TransactionId) -> StoreFuture<'_, Option<Stored>>;

    /// Returns the v1 status of the operation that the merchant created through v1 under an `order_id`; `None` when
    /// there is none, or it was created through v2. Cheaper than [`OrderLookups::by_order`].
    fn v1_status<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, Option<OperationView>>;

    /// Returns the v2 status of an operation that the merchant created through v2; `None` when there is none, or it is
    /// another merchant's or was created through v1. Cheaper than [`OrderLookups::by_id`].
    fn v2_status<'a>(&'a self, merchant: &'a MerchantId, id: TransactionId) -> StoreFuture<'a, Option<StatusRecord>>;

    /// Returns the decrypted `fields` of an operation.
    fn fields(&self, id: TransactionId) -> StoreFuture<'_, Option<Fields>>;

    /// Returns what a provider prepared for a deposit that is still pending.
    fn preparation(&self, id: TransactionId) -> StoreFuture<'_, Option<Preparation>>;

    /// Returns a merchant's balances, sorted by currency. Currencies without any ledger entry are absent.
    fn balances<'a>(&'a self, merchant: &'a MerchantId) -> StoreFuture<'a, Vec<(Currency, Balance)>>;

    /// Returns a page of a merchant's operations created through v1, newest first, from one snapshot. The query scans
    /// two indexes, which cover all filters, and then reads the matching rows; skipped index entries cost some 0.1 us
    /// each. Two lists are read at a time, on threads that serve no requests. A query that takes over two seconds, or
    /// waits as long for its turn, fails with [`StoreError::Unavailable`](super::StoreError::Unavailable).
    ///
    /// Times are the ones encoded in the `transaction_id`s (see [`TransactionId::first_of`]): `created_at` to the
    /// millisecond.
    fn history(&self, query: HistoryQuery) -> StoreFuture<'_, Page<Operation>>;
}

impl<B: Backend> OrderLookups for B {
    fn by_order<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, OrderLookup> {
        Box::pin(async move {
            let order = self.vault().fingerprint_key().order_key(merchant, direction, order_id);
            Ok(match self.read(ReadKind::Lookup, async move |tx| order_row(tx, order).await).await? {
                OrderRow::Free => OrderLookup::Free,
                OrderRow::Operation(row) => OrderLookup::Operation(Box::new(row.decode(self.vault())?)),
                OrderRow::Elsewhere => OrderLookup::Reserved,
            })
        })
    }

    fn by_id(&self, id: TransactionId) -> StoreFuture<'_, Option<Stored>> {
        Box::pin(async move {
            let read = self.read(ReadKind::Lookup, async move |tx| operation(tx, id).await).await?;
            read.map(|row| row.decode(self.vault())).transpose()
        })
    }

    fn v1_status<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> StoreFuture<'a, Option<OperationView>> {
        Box::pin(async move {
            let order = self.vault().fingerprint_key().order_key(merchant, direction, order_id);
            let read = self.read(ReadKind::Lookup, async move |tx| v1_status(tx, order).await).await?;
            read.map(|status| status.decode(self.vault(), direction, order_id)).transpose()
        })
    }

    fn v2_status<'a>(&'a self, merchant: &'a MerchantId, id: TransactionId) -> StoreFuture<'a, Option<StatusRecord>> {
        Box::pin(async move {
            let merchant = merchant.clone();
            let read = self.read(ReadKind::Lookup, async move |tx| v2_status(tx, &merchant, id).await).await?;
            read.map(|status| status.decode(self.vault(), id)).transpose()
        })
    }

    fn fields(&self, id: TransactionId) -> StoreFuture<'_, Option<Fields>> {
        Box::pin(async move {
            let sealed = self.read(ReadKind::Lookup, async move |tx| sealed_details(tx, id).await).await?;
            sealed.map(|sealed| opened_fields(self.vault(), id, &sealed)).transpose()
        })
    }

    fn preparation(&self, id: TransactionId) -> StoreFuture<'_, Option<Preparation>> {
        Box::pin(async move {
            let sealed = self.read(ReadKind::Lookup, async move |tx| sealed_preparation(tx, id).await).await?;
            sealed.map(|sealed| preparation::open(self.vault(), id, &sealed)).transpose()
        })
    }

    fn balances<'a>(&'a self, merchant: &'a MerchantId) -> StoreFuture<'a, Vec<(Currency, Balance)>> {
        let merchant = merchant.clone();
        Box::pin(self.read(ReadKind::Lookup, async move |tx| tx.balances(&merchant).await))
    }

    fn history(&self, query: HistoryQuery) -> StoreFuture<'_, Page<Operation>> {
        Box::pin(async move {
            // An id contains the millisecond of its operation's creation, so bounds of time are bounds of ids.
            let first = query.created_from.map_or(0, |at| TransactionId::first_of(at).to_stored());
            let last = query.created_to.map_or(i64::MAX, |at| TransactionId::last_of(at).to_stored());
            let listed = merchant_number(self.vault().fingerprint_key(), &query.merchant);
            let page = async move |tx: &B::Tx<'_>| pages::v1_page(tx, &query, first..=last, listed).await;
            let Page { items, has_more } = self.read(ReadKind::History, page).await?;
            let operations = items.into_iter().map(|row| row.decode(self.vault()).map(|stored| stored.operation));
            Ok(Page { items: operations.collect::<Result<_, _>>()?, has_more })
        })
    }
}

/// What is stored under an order.
pub(super) enum OrderRow {
    Free,
    Operation(Box<StoredRow>),
    /// Its home is no operation.
    Elsewhere,
}

impl OrderRow {
    pub(super) fn read(row: &dyn Columns) -> Result<Self, CorruptRow> {
        match Home::of_columns(row.get(STORED_COLUMNS)?, row.get(STORED_COLUMNS + 1)?)? {
            Home::Operation(_) if row.integer(0)?.is_none() => Err(CorruptRow::new("ref")),
            Home::Operation(_) => Ok(Self::Operation(Box::new(StoredRow::read(row)?))),
            Home::Entry(_) | Home::Claimed(_) | Home::Imported(_) | Home::Native(_) | Home::Lost(_) => {
                Ok(Self::Elsewhere)
            }
        }
    }
}

/// Selects the homes of orders, with their operations and the orders' keys.
macro_rules! select_orders {
    ($condition:expr) => {
        $crate::store::rows::operation::select_operations!(concat!(
            ", home, ref, order_key FROM homes LEFT JOIN operations ON home = 0 AND transaction_id = ref \
             LEFT JOIN contexts ON id = context WHERE order_key ",
            $condition
        ))
    };
}
pub(super) use select_orders;

pub(super) const ORDER_ROW: Sql = sql!(select_orders!("= ?1"));

/// Reads what is stored under an order.
pub(super) async fn order_row<T: Transaction>(tx: &T, order: Fingerprint) -> Result<OrderRow, T::Error> {
    Ok(tx.query_opt(ORDER_ROW, &params![&order], OrderRow::read).await?.unwrap_or(OrderRow::Free))
}

pub(super) const BY_ID: Sql =
    sql!(select_operations!("FROM operations LEFT JOIN contexts ON id = context WHERE transaction_id = ?1"));

/// Reads an operation.
pub(super) async fn operation<T: Transaction>(tx: &T, id: TransactionId) -> Result<Option<StoredRow>, T::Error> {
    tx.query_opt(BY_ID, &params![id], StoredRow::read).await
}

/// Reads operations by their ids; leaves out those that are missing or cannot be read.
pub(super) async fn operations<T: Transaction>(tx: &T, ids: &[i64]) -> Result<HashMap<i64, StoredRow>, T::Error> {
    let sets: Vec<_> = ids.iter().map(|id| params![*id]).collect();
    let found = tx.query_each(BY_ID, &sets, |row| Ok(StoredRow::read(row).ok())).await?;
    Ok(found.into_iter().flatten().flatten().map(|row| (row.id, row)).collect())
}

/// Reads the v1 status of the operation that was created through v1 under an order.
pub(super) async fn v1_status<T: Transaction>(tx: &T, order: Fingerprint) -> Result<Option<V1Status>, T::Error> {
    tx.query_opt(V1_STATUS, &params![&order], V1Status::read).await
}

pub(super) const V1_STATUS: Sql = sql!(select_status!(
    "transaction_id, created_at, shop FROM homes JOIN operations ON transaction_id = ref \
     LEFT JOIN contexts ON id = context WHERE order_key = ?1 AND home = 0 AND listed >= 0"
));

/// Reads the v2 status of an operation, if this merchant created it through v2; `None` for every other id.
pub(super) async fn v2_status<T: Transaction>(
    tx: &T,
    merchant: &MerchantId,
    id: TransactionId,
) -> Result<Option<V2Status>, T::Error> {
    tx.query_opt(V2_STATUS, &params![id, merchant], V2Status::read).await
}

pub(super) const V2_STATUS: Sql = sql!(select_status!(
    "direction, order_id, coalesce(method, payment_method, 'unknown') FROM operations \
     JOIN contexts ON id = context WHERE transaction_id = ?1 AND listed < 0 AND merchant = ?2"
));

pub(super) const DETAILS: Sql = sql!("SELECT sealed FROM operations WHERE transaction_id = ?1");

/// Reads the sealed details of an operation, without its payer.
pub(super) async fn sealed_details<T: Transaction>(tx: &T, id: TransactionId) -> Result<Option<Vec<u8>>, T::Error> {
    tx.query_opt(DETAILS, &params![id], |row| row.get(0)).await
}

pub(super) const PREPARATION: Sql = sql!("SELECT sealed FROM preparations WHERE transaction_id = ?1");

/// Reads the sealed preparation of a pending operation.
pub(super) async fn sealed_preparation<T: Transaction>(tx: &T, id: TransactionId) -> Result<Option<Vec<u8>>, T::Error> {
    tx.query_opt(PREPARATION, &params![id], |row| row.get(0)).await
}

pub(super) const IS_KNOWN_MERCHANT: Sql = sql!("SELECT EXISTS (SELECT 1 FROM merchants WHERE merchant = ?1)");

/// Reports whether a merchant is known: its opening balances were posted, or never will be.
pub(super) async fn is_known_merchant<T: Transaction>(tx: &T, merchant: &MerchantId) -> Result<bool, T::Error> {
    tx.query_value(IS_KNOWN_MERCHANT, &params![merchant]).await
}
