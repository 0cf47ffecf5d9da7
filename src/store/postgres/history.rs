//! Pages of a merchant's list, newest first. A page is one statement, along one index that covers the filters, and so
//! has the state of one moment. Two lists are read at once, for two seconds at most.

use std::ops::RangeInclusive;
use std::rc::Rc;
use std::time::Duration;

use deadpool_postgres::Transaction;
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::errors::PgError;
use super::node::PgNode;
use super::row::{bucket_of, narrow, operation};
use crate::domain::{Currency, HistoryQuery, Page, ShopCode};
use crate::store::StoreError;
use crate::store::rows::{direction_number, status_number};

/// How long a list waits for a permit.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long its statement may take, including a wait for a lock on the whole table.
const LONGEST: &str = "SET TRANSACTION READ ONLY; SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = '2s'";

/// Reads a page once a permit is free. `within` are the first and the last position; the parameters of the statement
/// are those of [`PAGE`], the last of them `more`.
///
/// # Errors
/// No permit became free, reading takes too long, or the database failed.
pub(super) async fn page<T>(
    node: &Rc<PgNode>,
    statement: &str,
    query: &HistoryQuery,
    within: &RangeInclusive<i64>,
    more: Option<i64>,
    read: fn(&Row) -> Result<T, PgError>,
) -> Result<Page<T>, StoreError> {
    let unavailable = |why: &str| StoreError::Unavailable(why.to_owned());
    let turn = timeout(PATIENCE, node.turns.lists.acquire()).await;
    let turn = turn.map_err(|_| unavailable("too many lists are read"))?;
    let _turn = turn.map_err(|_| unavailable("the store is closed"))?;
    node.transact(async |transaction| rows(transaction, statement, query, within, more.as_ref(), read).await).await
}

async fn rows<T>(
    transaction: &Transaction<'_>,
    statement: &str,
    query: &HistoryQuery,
    within: &RangeInclusive<i64>,
    more: Option<&i64>,
    read: fn(&Row) -> Result<T, PgError>,
) -> Result<Page<T>, PgError> {
    transaction.batch_execute(LONGEST).await?;
    let statement = transaction.prepare_cached(statement).await?;
    let bucket = bucket_of(&query.merchant);
    let direction = query.direction.map(|direction| narrow(direction_number(direction)));
    let (shop, currency) = (query.shop.as_ref().map(ShopCode::as_str), query.currency.as_ref().map(Currency::as_str));
    let status = query.status.map(|status| narrow(status_number(status)));
    let (merchant, skip) = (query.merchant.as_str(), i64::try_from(query.skip).unwrap_or(i64::MAX));
    // One more, to find out whether there is a next page.
    let limit = i64::from(query.limit) + 1;
    let mut parameters: Vec<&(dyn ToSql + Sync)> =
        vec![&bucket, &merchant, within.start(), within.end(), &direction, &shop, &currency, &status, &skip, &limit];
    if let Some(more) = more {
        parameters.push(more);
    }
    let found = transaction.query(&statement, &parameters).await?;
    let mut items: Vec<T> = found.iter().map(read).collect::<Result<_, _>>()?;
    let limit = usize::from(query.limit);
    let has_more = items.len() > limit;
    items.truncate(limit);
    Ok(Page { items, has_more })
}

/// A page of operations that were created through v1. Parameters: 1 the bucket, 2 the merchant, 3 and 4 the first and
/// the last position, 5 to 8 direction, shop, currency and status, each NULL for all, 9 the offset, 10 the limit, 11
/// the merchant's number. `IS TRUE` makes the contexts be looked up once.
pub(super) const PAGE: &str = concat!(
    "WITH page AS MATERIALIZED (SELECT transaction_id FROM operations \
     WHERE bucket = $1 AND listed = $11 AND transaction_id BETWEEN $3 AND $4 \
     AND ($8::smallint IS NULL OR status = $8) \
     AND (context IN (SELECT id FROM contexts WHERE bucket = $1 AND merchant = $2 \
     AND ($5::smallint IS NULL OR direction = $5) AND ($6::text IS NULL OR shop = $6) \
     AND ($7::text IS NULL OR currency = $7))) IS TRUE \
     ORDER BY transaction_id DESC OFFSET $9 LIMIT $10) ",
    operation!(
        "FROM page JOIN operations o ON o.bucket = $1 AND o.transaction_id = page.transaction_id \
         LEFT JOIN contexts x ON x.bucket = o.bucket AND x.id = o.context \
         ORDER BY o.transaction_id DESC"
    )
);
