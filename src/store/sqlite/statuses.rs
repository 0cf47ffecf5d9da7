//! What status replies tell of an operation: some of its columns. Nothing else of it is read.

use rusqlite::{Connection, OptionalExtension, Row};

use crate::domain::{Currency, Fingerprint, MerchantId, OrderId, TransactionId};
use crate::store::rows::operation::StatusColumns;
pub(super) use crate::store::rows::operation::{V1Status, V2Status};

/// The columns of an operation `o` and of its context `x` that both API versions tell of.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT o.status, o.amount, x.currency, CASE x.direction WHEN 1 THEN o.sealed ELSE o.payer END, ",
            $rest
        )
    };
}

/// The number of the first column behind those of [`StatusColumns`].
const REST: usize = 4;

fn columns(row: &Row<'_>) -> rusqlite::Result<StatusColumns> {
    let currency = Currency::new(row.get_ref(2)?.as_str()?);
    Ok(StatusColumns { status: row.get(0)?, amount: row.get(1)?, currency, account: row.get(3)? })
}

impl V1Status {
    /// That of the operation which a v1 request made under an order.
    pub(in crate::store::sqlite) fn of_order(
        connection: &Connection,
        key: Fingerprint,
    ) -> rusqlite::Result<Option<Self>> {
        let mut statement = connection.prepare_cached(select!(
            "o.transaction_id, o.created_at, x.shop FROM operations o LEFT JOIN contexts x ON x.id = o.context \
             WHERE o.transaction_id = (SELECT ref FROM homes WHERE order_key = ?1 AND home = 0) AND o.listed IS NOT NULL"
        ))?;
        statement.query_row([key.0], Self::read).optional()
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            columns: columns(row)?,
            id: row.get(REST)?,
            created_at: row.get(REST + 1)?,
            shop: row.get(REST + 2)?,
        })
    }
}

impl V2Status {
    /// That of an operation, if it is this merchant's.
    pub(in crate::store::sqlite) fn of_id(
        connection: &Connection,
        merchant: &MerchantId,
        id: TransactionId,
    ) -> rusqlite::Result<Option<Self>> {
        let mut statement = connection.prepare_cached(select!(
            "x.merchant, x.direction, o.order_id, coalesce(x.method, x.payment_method, 'unknown') \
             FROM operations o LEFT JOIN contexts x ON x.id = o.context WHERE o.transaction_id = ?1"
        ))?;
        let found = statement.query_row([id.to_stored()], |row| {
            let is_its_own = row.get_ref(REST)?.as_str()? == merchant.as_str();
            is_its_own.then(|| Self::read(row)).transpose()
        });
        found.optional().map(Option::flatten)
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            columns: columns(row)?,
            direction: row.get(REST + 1)?,
            order_id: OrderId::new(row.get_ref(REST + 2)?.as_str()?),
            method: row.get(REST + 3)?,
        })
    }
}
