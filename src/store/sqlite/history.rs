//! A merchant's v1 history, a page at a time (contract section 4, `transactions`).

use std::ops::RangeInclusive;

use rusqlite::Connection;

use super::lanes::{self, LaneIndex, lane_index};
use super::row::StoredRow;
use crate::domain::{HistoryQuery, Page, TransactionId};

/// Operations that were made through v1.
pub(super) const OPERATIONS: LaneIndex = lane_index!("operations", "operations_by_v1", "transaction_id", "from_v1 = 1");

/// The rows of a page, all of one moment. With nothing when the page is not `wanted` any more.
pub(super) fn page(
    connection: &Connection,
    query: &HistoryQuery,
    wanted: &dyn Fn() -> bool,
) -> rusqlite::Result<Page<StoredRow>> {
    lanes::at_one_moment(connection, || {
        let found = lanes::page(connection, &OPERATIONS, query, &ids(query), wanted)?;
        let mut by_id = connection.prepare_cached(StoredRow::BY_ID)?;
        let rows = found.ids.iter().map(|id| by_id.query_row([id], StoredRow::read));
        Ok(Page { items: rows.collect::<Result<_, _>>()?, has_more: found.has_more })
    })
}

/// An id names the millisecond in which its operation was created: times are bounds of ids.
fn ids(query: &HistoryQuery) -> RangeInclusive<i64> {
    let first = query.created_from.map_or(0, |at| TransactionId::first_of(at).to_stored());
    let last = query.created_to.map_or(i64::MAX - 1, |at| TransactionId::last_of(at).to_stored());
    first..=last
}
