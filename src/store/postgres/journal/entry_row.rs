//! Entries of the journal as rows of PostgreSQL: see [`rows::entry`](crate::store::rows::entry) for what they mean.

use tokio_postgres::Row;

use crate::store::postgres::fault::Fault;
use crate::store::postgres::row::{bytes, get, small};
use crate::store::rows::entry::EntryRow;

/// The columns of an entry. The order is [`read`]'s.
macro_rules! entry {
    ($rest:literal) => {
        concat!(
            "SELECT j.entry, j.direction, j.state, j.status, j.created_at, j.amount, j.digest, j.currency, j.merchant, \
             j.order_id, j.api_key, j.shop, j.v1_callback_url, j.transaction_id, j.redirect_url, j.account, j.body, \
             j.doubted_at ",
            $rest
        )
    };
}
pub(in crate::store::postgres) use entry;

/// One entry of a bucket and a number.
pub(in crate::store::postgres) const BY_ID: &str = entry!("FROM journal j WHERE j.bucket = $1 AND j.entry = $2");

/// One entry of a bucket and an order key.
pub(in crate::store::postgres) const BY_ORDER: &str = entry!("FROM journal j WHERE j.bucket = $1 AND j.order_key = $2");

/// A page of a merchant's answered entries; places are times. Parameters as of a page of operations.
pub(in crate::store::postgres) const PAGE: &str = concat!(
    "WITH page AS MATERIALIZED (SELECT created_at, entry FROM journal \
     WHERE bucket = $1 AND merchant = $2 AND state = 2 AND created_at BETWEEN $3 AND $4 \
     AND ($5::smallint IS NULL OR direction = $5) AND ($6::text IS NULL OR shop = $6) \
     AND ($7::text IS NULL OR currency = $7) AND ($8::smallint IS NULL OR status = $8) \
     ORDER BY created_at DESC, entry DESC OFFSET $9 LIMIT $10) ",
    entry!(
        "FROM page JOIN journal j ON j.bucket = $1 AND j.entry = page.entry \
         ORDER BY j.created_at DESC, j.entry DESC"
    )
);

/// The number of columns that [`read`] takes.
pub(in crate::store::postgres) const COLUMNS: usize = 18;

/// Reads the columns of an entry, which are the first of the row.
///
/// # Errors
/// A column is of another type than it was made.
pub(in crate::store::postgres) fn read(row: &Row) -> Result<EntryRow, Fault> {
    Ok(EntryRow {
        id: get(row, 0)?,
        direction: small(row, 1)?,
        state: small(row, 2)?,
        status: small(row, 3)?,
        created_at: get(row, 4)?,
        amount: get(row, 5)?,
        digest: bytes(row, 6)?,
        currency: get(row, 7)?,
        merchant: get(row, 8)?,
        order_id: get(row, 9)?,
        api_key: get(row, 10)?,
        shop: get(row, 11)?,
        v1_callback_url: get(row, 12)?,
        transaction_id: get(row, 13)?,
        redirect_url: get(row, 14)?,
        account: get(row, 15)?,
        body: get(row, 16)?,
        doubted_at: get(row, 17)?,
    })
}
