//! Pages of a merchant's list, newest first, out of one index.
//!
//! A lane is a range of the index in which ids are in order, and every filter is a choice of lanes ([`lanes`](super::lanes)
//! knows those that exist): a page is merged from their newest entries. It is one statement, and so of one moment. To leave
//! out the first entries of a list costs each lane a pass over as many of its own.

use deadpool_postgres::GenericClient;

use super::fault::Fault;
use super::row::{self, StoredRow, bucket_of, narrow, operation};
use crate::domain::{Currency, HistoryQuery, Page, ShopCode, TransactionId};
use crate::store::rows::{direction_number, status_number};

/// Which lanes a query leaves.
pub(super) struct Choice<'q> {
    pub(super) bucket: i16,
    pub(super) merchant: &'q str,
    pub(super) direction: Option<i16>,
    pub(super) shop: Option<&'q str>,
    pub(super) currency: Option<&'q str>,
    pub(super) status: Option<i16>,
}

impl<'q> Choice<'q> {
    pub(super) fn of(query: &'q HistoryQuery) -> Self {
        Self {
            bucket: bucket_of(&query.merchant),
            merchant: query.merchant.as_str(),
            direction: query.direction.map(|direction| narrow(direction_number(direction))),
            shop: query.shop.as_ref().map(ShopCode::as_str),
            currency: query.currency.as_ref().map(Currency::as_str),
            status: query.status.map(|status| narrow(status_number(status))),
        }
    }
}

/// How many entries a query leaves out, and how many it needs: one more than the page has, to see whether the list goes on.
pub(super) fn slice(query: &HistoryQuery) -> (i64, i64) {
    let skip = i64::try_from(query.skip).unwrap_or(i64::MAX / 2);
    (skip, i64::from(query.limit) + 1)
}

/// A page of what was read, which may be one too many.
pub(super) fn page_of<T>(mut items: Vec<T>, query: &HistoryQuery) -> Page<T> {
    let limit = usize::from(query.limit);
    let has_more = items.len() > limit;
    items.truncate(limit);
    Page { items, has_more }
}

/// The rows of a page of operations that were made through v1.
pub(super) async fn page(client: &impl GenericClient, query: &HistoryQuery) -> Result<Page<StoredRow>, Fault> {
    let Choice { bucket, merchant, direction, shop, currency, status } = Choice::of(query);
    let least = query.created_from.map_or(0, |at| TransactionId::first_of(at).to_stored());
    let greatest = query.created_to.map_or(i64::MAX, |at| TransactionId::last_of(at).to_stored());
    let (skip, count) = slice(query);
    let deep = skip.saturating_add(count);
    let statement = client.prepare_cached(PAGE).await?;
    let found = client
        .query(
            &statement,
            &[&bucket, &merchant, &direction, &shop, &currency, &status, &least, &greatest, &deep, &skip, &count],
        )
        .await?;
    let rows = found.iter().map(row::read).collect::<Result<_, _>>()?;
    Ok(page_of(rows, query))
}

/// Parameters: 1 the bucket, 2 the merchant, 3 to 6 direction, shop, currency and status, each NULL where all are asked for,
/// 7 and 8 the ids, 9 how many of a lane may be of the page, 10 how many are left out before it, 11 its length.
pub(super) const PAGE: &str = concat!(
    "WITH lane AS (SELECT lane, status FROM lanes CROSS JOIN (VALUES (0::smallint), (1), (2)) AS each (status) \
     WHERE bucket = $1 AND merchant = $2 AND ($3::smallint IS NULL OR direction = $3) \
     AND ($4::text IS NULL OR shop = $4) AND ($5::text IS NULL OR currency = $5) \
     AND ($6::smallint IS NULL OR status = $6)), \
     page AS MATERIALIZED (SELECT entry.transaction_id FROM lane CROSS JOIN LATERAL \
     (SELECT o.transaction_id FROM operations o WHERE o.bucket = $1 AND o.lane = lane.lane AND o.status = lane.status \
     AND o.transaction_id BETWEEN $7 AND $8 ORDER BY o.transaction_id DESC LIMIT $9) AS entry \
     ORDER BY entry.transaction_id DESC OFFSET $10 LIMIT $11) ",
    operation!(
        "FROM page JOIN operations o ON o.bucket = $1 AND o.transaction_id = page.transaction_id \
         ORDER BY o.transaction_id DESC"
    )
);
