//! What passed through to the engine, a page at a time (contract section 4, `transactions`): as a page of operations is
//! read, see [`history`](crate::store::postgres::history), but in the order of `created_at` and then of numbers.

use deadpool_postgres::GenericClient;

use super::entry_row::{self, entry};
use crate::domain::{HistoryQuery, Page};
use crate::store::postgres::fault::Fault;
use crate::store::postgres::history::{Lanes, lanes, page_of, slice};
use crate::store::rows::entry::EntryRow;

/// The rows of a page, all of one moment.
pub(super) async fn page(client: &impl GenericClient, query: &HistoryQuery) -> Result<Page<EntryRow>, Fault> {
    let Lanes { bucket, merchant, direction, shop, currency, status } = Lanes::of(query);
    let earliest = query.created_from.map_or(i64::MIN, |at| at.0);
    let latest = query.created_to.map_or(i64::MAX, |at| at.0);
    let (skip, count) = slice(query);
    let deep = skip.saturating_add(count);
    let statement = client.prepare_cached(PAGE).await?;
    let found = client
        .query(
            &statement,
            &[&bucket, &merchant, &direction, &shop, &currency, &status, &earliest, &latest, &deep, &skip, &count],
        )
        .await?;
    let rows = found.iter().map(entry_row::read).collect::<Result<_, _>>()?;
    Ok(page_of(rows, query))
}

pub(in crate::store::postgres) const PAGE: &str = concat!(
    "WITH ",
    lanes!("journal", "state = 2"),
    ", page AS MATERIALIZED (SELECT passed.created_at, passed.entry FROM lane CROSS JOIN LATERAL \
     (SELECT j.created_at, j.entry FROM journal j WHERE j.bucket = $1 AND j.merchant = $2 AND j.state = 2 \
     AND j.direction = lane.direction AND j.shop = lane.shop AND j.currency = lane.currency AND j.status = lane.status \
     AND j.created_at BETWEEN $7 AND $8 ORDER BY j.created_at DESC, j.entry DESC LIMIT $9) AS passed \
     ORDER BY passed.created_at DESC, passed.entry DESC OFFSET $10 LIMIT $11) ",
    entry!(
        "FROM page JOIN journal j ON j.bucket = $1 AND j.entry = page.entry \
         ORDER BY j.created_at DESC, j.entry DESC"
    )
);
