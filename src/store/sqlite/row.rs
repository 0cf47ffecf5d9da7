//! Operations and their contexts as rows of SQLite: see [`rows`](crate::store::rows) for what they mean.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::domain::{State, TransactionId, UnixDay};
use crate::store::NewOperation;
use crate::store::rows::context::NewContext;
pub(super) use crate::store::rows::operation::{NewRow, StoredContext, StoredRow};
pub(super) use crate::store::rows::{direction_number, direction_of, finished_at, status_number};

impl NewRow {
    /// Inserts the operation in `state`, which counts for its customer on `counted_day`; `false` when its id exists.
    pub(in crate::store::sqlite) fn insert(
        &self,
        connection: &Connection,
        state: &State,
        counted_day: Option<UnixDay>,
    ) -> rusqlite::Result<bool> {
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

/// The columns of an operation `o` and of its context `x`. The order is [`StoredRow::read`]'s.
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

    /// Reads operations, as far as they are there and readable, by their ids.
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

    /// Operations after an id, in order; the second parameter is how many.
    pub(in crate::store::sqlite) const SLICE: &str = select!(
        "FROM operations o LEFT JOIN contexts x ON x.id = o.context WHERE o.transaction_id > ?1 \
         ORDER BY o.transaction_id LIMIT ?2"
    );

    /// A page of a merchant's v1 list: see [`super::lists::page`]; more is the merchant's number. What is left out is passed over in the index alone.
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

/// Reads what is sealed of an operation, its payer aside.
pub(super) fn sealed(connection: &Connection, id: TransactionId) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .prepare_cached("SELECT sealed FROM operations WHERE transaction_id = ?1")?
        .query_row([id.to_stored()], |row| row.get(0))
        .optional()
}
