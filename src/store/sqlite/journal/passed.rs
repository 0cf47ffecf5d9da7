//! What passed through to the engine, a page at a time (contract section 4, `transactions`).

use std::ops::RangeInclusive;

use rusqlite::Connection;

use super::row::{EntryRow, first_place, last_place};
use crate::domain::{HistoryQuery, Page};
use crate::store::sqlite::lanes::{self, LaneIndex, lane_index};

/// Entries that were answered, by their places.
pub(in crate::store::sqlite) const ANSWERED_ENTRIES: LaneIndex =
    lane_index!("journal", "journal_by_v1", "place", "state = 2");

/// The rows of a page, all of one moment. With nothing when the page is not `wanted` any more.
pub(super) fn page(
    connection: &Connection,
    query: &HistoryQuery,
    wanted: &dyn Fn() -> bool,
) -> rusqlite::Result<Page<EntryRow>> {
    lanes::at_one_moment(connection, || {
        let found = lanes::page(connection, &ANSWERED_ENTRIES, query, &places(query), wanted)?;
        let mut by_place = connection.prepare_cached(EntryRow::BY_PLACE)?;
        let rows = found.ids.iter().map(|place| by_place.query_row([place], EntryRow::read));
        Ok(Page { items: rows.collect::<Result<_, _>>()?, has_more: found.has_more })
    })
}

/// A place begins with the time of its entry: times are bounds of places.
fn places(query: &HistoryQuery) -> RangeInclusive<i64> {
    query.created_from.map_or(0, first_place)..=query.created_to.map_or(i64::MAX - 1, last_place)
}
