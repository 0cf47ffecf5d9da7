//! A merchant's history, a page at a time.

use rusqlite::{Connection, params};

use super::row::{StoredRow, direction_number, status_number};
use crate::domain::{Currency, HistoryQuery, ShopCode};

/// The rows of a page, and one more where the list goes on.
pub(super) fn page(connection: &Connection, query: &HistoryQuery) -> rusqlite::Result<Vec<StoredRow>> {
    let mut statement = connection.prepare_cached(StoredRow::HISTORY)?;
    let rows = statement.query_map(
        params![
            query.merchant.as_str(),
            query.direction.map(direction_number),
            query.status.map(status_number),
            query.shop.as_ref().map(ShopCode::as_str),
            query.currency.as_ref().map(Currency::as_str),
            query.created_from.map(|at| at.0),
            query.created_to.map(|at| at.0),
            i64::from(query.limit) + 1,
            i64::try_from(query.skip).unwrap_or(i64::MAX),
        ],
        StoredRow::read,
    )?;
    rows.collect()
}
