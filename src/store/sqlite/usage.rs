//! What customers did on a day, counted for their limits.

use rusqlite::{Connection, OptionalExtension};

use super::ledger;
use crate::domain::UnixDay;
use crate::store::DailyLimit;

/// Days that are kept before the newest: creations arrive a little late, and other nodes' clocks differ.
const KEPT_DAYS: i32 = 2;

/// The most old rows removed when a new one is made: their number falls, and the writer is never held up.
const REMOVED: i64 = 8;

/// What counts together. The day is apart, since giving back happens on another one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Customer<'a> {
    pub(super) merchant: &'a str,
    pub(super) shop: &'a str,
    pub(super) direction: i64,
    pub(super) account_id: i64,
}

/// What a customer did on a day.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    operations: i64,
    amount: i64,
}

/// What a customer's usage becomes with one more operation; `None` when that is over the limit.
pub(super) fn with_one_more(
    connection: &Connection,
    customer: Customer<'_>,
    limit: &DailyLimit,
    amount: i64,
) -> rusqlite::Result<Option<Usage>> {
    let Customer { merchant, shop, direction, account_id } = customer;
    let used = connection
        .prepare_cached(
            "SELECT operations, amount FROM daily_usage WHERE day = ?1 AND merchant = ?2 AND shop = ?3 \
             AND direction = ?4 AND customer_account_id = ?5",
        )?
        .query_row((limit.day.0, merchant, shop, direction, account_id), |row| {
            Ok(Usage { operations: row.get(0)?, amount: row.get(1)? })
        })
        .optional()?
        .unwrap_or(Usage { operations: 0, amount: 0 });
    let Some(amount) = used.amount.checked_add(amount) else { return Ok(None) };
    let usage = Usage { operations: used.operations + 1, amount };
    let over = limit.operations.is_some_and(|most| usage.operations > i64::from(most))
        || limit.amount.is_some_and(|most| usage.amount > ledger::signed(most));
    Ok((!over).then_some(usage))
}

/// Writes a customer's usage.
pub(super) fn write(
    connection: &Connection,
    customer: Customer<'_>,
    day: UnixDay,
    usage: Usage,
) -> rusqlite::Result<()> {
    let Customer { merchant, shop, direction, account_id } = customer;
    connection
        .prepare_cached(
            "INSERT INTO daily_usage (day, merchant, shop, direction, customer_account_id, operations, amount) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
             ON CONFLICT DO UPDATE SET operations = excluded.operations, amount = excluded.amount",
        )?
        .execute((day.0, merchant, shop, direction, account_id, usage.operations, usage.amount))?;
    if usage.operations == 1 { remove_old(connection, day) } else { Ok(()) }
}

/// Takes a failed operation out of the usage of its day; nothing happens when that day was removed, and less than
/// nothing is never left (it would be an allowance).
pub(super) fn give_back(
    connection: &Connection,
    customer: Customer<'_>,
    day: UnixDay,
    amount: i64,
) -> rusqlite::Result<()> {
    let Customer { merchant, shop, direction, account_id } = customer;
    connection
        .prepare_cached(
            "UPDATE daily_usage SET operations = max(operations - 1, 0), amount = max(amount - ?6, 0) WHERE day = ?1 \
             AND merchant = ?2 AND shop = ?3 AND direction = ?4 AND customer_account_id = ?5",
        )?
        .execute((day.0, merchant, shop, direction, account_id, amount))
        .map(drop)
}

fn remove_old(connection: &Connection, newest: UnixDay) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "DELETE FROM daily_usage WHERE (day, merchant, shop, direction, customer_account_id) IN \
             (SELECT day, merchant, shop, direction, customer_account_id FROM daily_usage WHERE day < ?1 LIMIT ?2)",
        )?
        .execute((newest.0.saturating_sub(KEPT_DAYS), REMOVED))
        .map(drop)
}
