//! What passed through to the engine, a page at a time (contract section 4, `transactions`): as a page of operations is
//! read, see [`history`](crate::store::postgres::history), but in the order of `created_at` and then of numbers. An entry's
//! shop may become known late, so that its lane is its columns: those that exist are found by leaps, one step of the index
//! each.

use deadpool_postgres::GenericClient;

use super::entry_row::{self, entry};
use crate::domain::{HistoryQuery, Page};
use crate::store::postgres::fault::Fault;
use crate::store::postgres::history::{Choice, page_of, slice};
use crate::store::rows::entry::EntryRow;

/// The rows of a page, all of one moment.
pub(super) async fn page(client: &impl GenericClient, query: &HistoryQuery) -> Result<Page<EntryRow>, Fault> {
    let Choice { bucket, merchant, direction, shop, currency, status } = Choice::of(query);
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
    "WITH RECURSIVE lanes AS ((SELECT direction, shop, currency, status FROM journal \
     WHERE bucket = $1 AND merchant = $2 AND state = 2 ORDER BY direction, shop, currency, status LIMIT 1) UNION ALL \
     SELECT next.* FROM lanes CROSS JOIN LATERAL (SELECT direction, shop, currency, status FROM journal \
     WHERE bucket = $1 AND merchant = $2 AND state = 2 \
     AND (direction, shop, currency, status) > (lanes.direction, lanes.shop, lanes.currency, lanes.status) \
     ORDER BY direction, shop, currency, status LIMIT 1) AS next), \
     lane AS (SELECT * FROM lanes WHERE ($3::smallint IS NULL OR direction = $3) \
     AND ($4::text IS NULL OR shop = $4) AND ($5::text IS NULL OR currency = $5) \
     AND ($6::smallint IS NULL OR status = $6)), \
     page AS MATERIALIZED (SELECT passed.created_at, passed.entry FROM lane CROSS JOIN LATERAL \
     (SELECT j.created_at, j.entry FROM journal j WHERE j.bucket = $1 AND j.merchant = $2 AND j.state = 2 \
     AND j.direction = lane.direction AND j.shop = lane.shop AND j.currency = lane.currency AND j.status = lane.status \
     AND j.created_at BETWEEN $7 AND $8 ORDER BY j.created_at DESC, j.entry DESC LIMIT $9) AS passed \
     ORDER BY passed.created_at DESC, passed.entry DESC OFFSET $10 LIMIT $11) ",
    entry!(
        "FROM page JOIN journal j ON j.bucket = $1 AND j.entry = page.entry \
         ORDER BY j.created_at DESC, j.entry DESC"
    )
);
