//! Pages of a merchant's list, newest first. A page is one statement, along indexes that cover the filters: skipping costs
//! an entry of an index, so a late page of a long list, or one with few matches, takes a while.

use std::ops::RangeInclusive;

use super::list_indexes::{in_operations_by_merchant, in_pending_v1};
use super::rows::CorruptRow;
use super::rows::operation::{StoredRow, select_operations};
use super::rows::{direction_number, status_number};
use super::sql::{Columns, Parameter, Sql, Transaction, params, sql};
use crate::domain::{Currency, HistoryQuery, Page, ShopCode};

/// The operations of the merchant's list in one of its two indexes that match the filters. `IS TRUE` makes the contexts be looked
/// up once.
macro_rules! matching {
    ($columns:literal, $from:literal, $condition:expr, $range:literal, $status:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM ",
            $from,
            " WHERE ",
            $condition,
            " AND ",
            $range,
            " AND (",
            $status,
            " = ?7 OR ?7 IS NULL) \
             AND (context IN (SELECT id FROM contexts WHERE merchant = ?1 AND (direction = ?4 OR ?4 IS NULL) \
             AND (shop = ?5 OR ?5 IS NULL) AND (currency = ?6 OR ?6 IS NULL))) IS TRUE"
        )
    };
}

/// A page of the operations of both indexes, which are read side by side. PostgreSQL does that if each has an order.
macro_rules! v1_page {
    ($columns:literal, $by_merchant:literal, $pending:literal, $range:literal, $order:literal, $of_each:literal) => {
        select_operations!(concat!(
            "FROM (SELECT listed_id FROM (SELECT * FROM (",
            matching!($columns, $by_merchant, in_operations_by_merchant!(), $range, "status"),
            $of_each,
            ") AS its UNION ALL SELECT * FROM (",
            matching!($columns, $pending, in_pending_v1!(), $range, "0"),
            $of_each,
            ") AS pending) AS its ORDER BY ",
            $order,
            " LIMIT ?8 OFFSET ?9) AS page \
             CROSS JOIN operations CROSS JOIN contexts WHERE transaction_id = listed_id AND id = context \
             ORDER BY listed_id DESC"
        ))
    };
}

/// A page of the operations that were created through v1. Parameters: see [`page`]; 10 is the merchant's number.
pub(super) const V1_PAGE: Sql = sql!(
    sqlite: v1_page!(
        "transaction_id AS listed_id",
        "operations INDEXED BY operations_by_merchant",
        "operations INDEXED BY pending_v1",
        "listed = ?10 AND transaction_id BETWEEN ?2 AND ?3",
        "listed_id DESC",
        ""
    ),
    // The primary key, along which other merchants' operations would have to be skipped, is no way to read these rows.
    postgres: v1_page!(
        "listed, transaction_id AS listed_id",
        "operations",
        "operations",
        "(listed, transaction_id) >= (?10, ?2) AND (listed, transaction_id) <= (?10, ?3)",
        "listed DESC, listed_id DESC",
        " ORDER BY listed DESC, transaction_id DESC"
    ),
);

/// Reads a page of a merchant's operations that were created through v1; `listed` is the merchant's number.
pub(super) async fn v1_page<T: Transaction>(
    tx: &T,
    query: &HistoryQuery,
    within: RangeInclusive<i64>,
    listed: i64,
) -> Result<Page<StoredRow>, T::Error> {
    page(tx, V1_PAGE, query, within, Some(listed), StoredRow::read).await
}

/// Reads a page of a merchant's list. The parameters of `sql` are: 1 the merchant; 2 and 3 the first and the last position; 4
/// to 7 direction, shop, currency and status, each NULL for all; 8 the limit; 9 the offset; and `more`.
pub(super) async fn page<R, T: Transaction>(
    tx: &T,
    sql: Sql,
    query: &HistoryQuery,
    within: RangeInclusive<i64>,
    more: Option<i64>,
    read: fn(&dyn Columns) -> Result<R, CorruptRow>,
) -> Result<Page<R>, T::Error> {
    let parameters = params![
        &query.merchant,
        *within.start(),
        *within.end(),
        query.direction.map(direction_number),
        query.shop.as_ref().map(ShopCode::as_str),
        query.currency.as_ref().map(Currency::as_str),
        query.status.map(status_number),
        // One more, to find out whether there is a next page.
        i64::from(query.limit) + 1,
        i64::try_from(query.skip).unwrap_or(i64::MAX),
    ];
    let parameters: Vec<_> = parameters.into_iter().chain(more.map(Parameter::from)).collect();
    let mut items = tx.query(sql, &parameters, read).await?;
    let limit = usize::from(query.limit);
    let has_more = items.len() > limit;
    items.truncate(limit);
    Ok(Page { items, has_more })
}
