//! What passed through to the engine, a page at a time.

use rusqlite::{Connection, params};

use super::row::EntryRow;
use crate::domain::{Currency, HistoryQuery, ShopCode};
use crate::store::sqlite::row::{direction_number, status_number};

/// The rows of a page, and one more where the list goes on.
pub(super) fn page(connection: &Connection, query: &HistoryQuery) -> rusqlite::Result<Vec<EntryRow>> {
    let mut statement = connection.prepare_cached(EntryRow::PASSED)?;
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
        EntryRow::read,
    )?;
    rows.collect()
}
