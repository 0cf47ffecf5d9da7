//! Reads operations with their contexts, homes and preparations from SQLite: see [`rows`](crate::store::rows) for the
//! meaning of the columns. [`super::transaction`] writes them.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row};

use crate::domain::{Currency, Fingerprint, MerchantId, OrderId, TransactionId};
use crate::store::create::{Home, OrderRow};
use crate::store::rows::CorruptRow;
use crate::store::rows::operation::StatusColumns;

pub(super) use crate::store::rows::operation::{NewRow, StoredContext, StoredRow, V1Status, V2Status};
pub(super) use crate::store::rows::{direction_number, direction_of, finished_at, status_number};

/// The columns of an operation `o` and of its context `x`, in the order of [`StoredRow::read`].
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT o.transaction_id, o.status, o.created_at, o.finished_at, o.amount, o.customer_account_id, o.fingerprint, \
             o.order_id, o.callback_url, o.sealed, o.payer, x.direction, x.provider, x.origin, x.merchant, x.api_key, \
             x.shop, x.currency, x.method, x.payment_method, x.kept ",
            $rest
        )
    };
}

impl StoredRow {
    pub(in crate::store::sqlite) fn by_id(
        connection: &Connection,
        id: TransactionId,
    ) -> rusqlite::Result<Option<Self>> {
        let mut statement = connection.prepare_cached(Self::BY_ID)?;
        statement.query_row([id.to_stored()], Self::read).optional()
    }

    /// Reads operations by their ids; leaves out those that do not exist or cannot be decoded.
    pub(in crate::store::sqlite) fn by_ids(
        connection: &Connection,
        ids: &[i64],
    ) -> rusqlite::Result<HashMap<i64, Self>> {
        let mut statement = connection.prepare_cached(Self::BY_ID)?;
        let mut found = HashMap::with_capacity(ids.len());
        for id in ids {
            let row = statement.query_row([id], |row| Ok(Self::read(row).ok())).optional()?;
            found.extend(row.flatten().map(|row| (*id, row)));
        }
        Ok(found)
    }

    /// One operation; the parameter is its id.
    pub(in crate::store::sqlite) const BY_ID: &str =
        select!("FROM operations o LEFT JOIN contexts x ON x.id = o.context WHERE o.transaction_id = ?1");

    /// Operations after an id, in order; the second parameter is the limit.
    pub(in crate::store::sqlite) const SLICE: &str = select!(
        "FROM operations o LEFT JOIN contexts x ON x.id = o.context WHERE o.transaction_id > ?1 \
         ORDER BY o.transaction_id LIMIT ?2"
    );

    /// A page of a merchant's v1 list: see [`super::lists::page`]; `more` is the merchant's number. Entries are skipped
    /// in the index alone.
    pub(in crate::store::sqlite) const V1_PAGE: &str = select!(
        "FROM (SELECT transaction_id AS id FROM operations INDEXED BY v1_list \
         WHERE listed = ?10 AND transaction_id BETWEEN ?2 AND ?3 AND (?7 IS NULL OR status = ?7) \
         AND context IN (SELECT id FROM contexts WHERE merchant = ?1 AND (?4 IS NULL OR direction = ?4) \
         AND (?5 IS NULL OR shop = ?5) AND (?6 IS NULL OR currency = ?6)) \
         ORDER BY transaction_id DESC LIMIT ?8 OFFSET ?9) AS page \
         CROSS JOIN operations o ON o.transaction_id = page.id CROSS JOIN contexts x ON x.id = o.context \
         ORDER BY page.id DESC"
    );

    pub(in crate::store::sqlite) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            status: row.get(1)?,
            created_at: row.get(2)?,
            finished_at: row.get(3)?,
            amount: row.get(4)?,
            customer_account_id: row.get(5)?,
            fingerprint: row.get(6)?,
            order_id: row.get(7)?,
            callback_url: row.get(8)?,
            sealed: row.get(9)?,
            payer: row.get(10)?,
            context: StoredContext {
                direction: row.get(11)?,
                provider: row.get(12)?,
                origin: row.get(13)?,
                merchant: row.get(14)?,
                api_key: row.get(15)?,
                shop: row.get(16)?,
                currency: row.get(17)?,
                method: row.get(18)?,
                payment_method: row.get(19)?,
                kept: row.get(20)?,
            },
        })
    }
}

/// Reads the sealed details of an operation, without its payer.
pub(super) fn sealed(connection: &Connection, id: TransactionId) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .prepare_cached("SELECT sealed FROM operations WHERE transaction_id = ?1")?
        .query_row([id.to_stored()], |row| row.get(0))
        .optional()
}

/// Reads the home of an order.
pub(super) fn home_of(connection: &Connection, order: Fingerprint) -> rusqlite::Result<Option<Home>> {
    let mut statement = connection.prepare_cached("SELECT home, ref FROM homes WHERE order_key = ?1")?;
    let found = statement.query_row([order.0], |row| Ok(Home::of_columns(row.get(0)?, row.get(1)?)?));
    found.optional()
}

/// Reads what is stored under an order, within one transaction, so that an operation that is a home exists.
pub(super) fn order_row(connection: &Connection, order: Fingerprint) -> rusqlite::Result<OrderRow> {
    Ok(match home_of(connection, order)? {
        None => OrderRow::Free,
        Some(Home::Operation(id)) => match StoredRow::by_id(connection, id)? {
            Some(row) => OrderRow::Operation(Box::new(row)),
            None => Err(CorruptRow("ref"))?,
        },
        Some(Home::Entry(_) | Home::Claimed(_) | Home::Imported(_) | Home::Native(_)) => OrderRow::Elsewhere,
    })
}

/// The columns of an operation `o` and of its context `x` that the replies of both API versions contain.
macro_rules! select_status {
    ($rest:literal) => {
        concat!(
            "SELECT o.status, o.amount, x.currency, CASE x.direction WHEN 1 THEN o.sealed ELSE o.payer END, ",
            $rest
        )
    };
}

/// The number of the first column after those of [`StatusColumns`].
const REST: usize = 4;

fn status_columns(row: &Row<'_>) -> rusqlite::Result<StatusColumns> {
    let currency = Currency::new(row.get_ref(2)?.as_str()?);
    Ok(StatusColumns { status: row.get(0)?, amount: row.get(1)?, currency, account: row.get(3)? })
}

impl V1Status {
    /// Reads the status of the operation that a v1 request created under an order.
    pub(in crate::store::sqlite) fn of_order(
        connection: &Connection,
        key: Fingerprint,
    ) -> rusqlite::Result<Option<Self>> {
        let mut statement = connection.prepare_cached(select_status!(
            "o.transaction_id, o.created_at, x.shop FROM operations o LEFT JOIN contexts x ON x.id = o.context \
             WHERE o.transaction_id = (SELECT ref FROM homes WHERE order_key = ?1 AND home = 0) AND o.listed IS NOT NULL"
        ))?;
        statement.query_row([key.0], Self::read).optional()
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            columns: status_columns(row)?,
            id: row.get(REST)?,
            created_at: row.get(REST + 1)?,
            shop: row.get(REST + 2)?,
        })
    }
}

impl V2Status {
    /// Reads the status of an operation that a native v2 request of this merchant created; `None` for every other id.
    pub(in crate::store::sqlite) fn of_id(
        connection: &Connection,
        merchant: &MerchantId,
        id: TransactionId,
    ) -> rusqlite::Result<Option<Self>> {
        let mut statement = connection.prepare_cached(select_status!(
            "x.merchant, x.direction, o.order_id, coalesce(x.method, x.payment_method, 'unknown') \
             FROM operations o LEFT JOIN contexts x ON x.id = o.context \
             WHERE o.transaction_id = ?1 AND o.listed IS NULL"
        ))?;
        let found = statement.query_row([id.to_stored()], |row| {
            let is_its_own = row.get_ref(REST)?.as_str()? == merchant.as_str();
            is_its_own.then(|| Self::read(row)).transpose()
        });
        found.optional().map(Option::flatten)
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            columns: status_columns(row)?,
            direction: row.get(REST + 1)?,
            order_id: OrderId::new(row.get_ref(REST + 2)?.as_str()?),
            method: row.get(REST + 3)?,
        })
    }
}

/// Reads the sealed preparation of an operation.
pub(super) fn preparation_of(connection: &Connection, id: TransactionId) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .prepare_cached("SELECT sealed FROM preparations WHERE transaction_id = ?1")?
        .query_row([id.to_stored()], |row| row.get(0))
        .optional()
}
