//! Daily usage: what a customer did on a UTC day, counted for the limits of shops.

use super::rows::direction_number;
use super::sql::{Columns, Parameter, Sql, Transaction, params, sql};
use crate::domain::{Direction, UnixDay};

/// The days of usage that are kept before the newest: creates may arrive a little late, and other nodes' clocks differ.
const KEPT_DAYS: i32 = 2;

/// The most old rows that are deleted when a new one is inserted: their number falls, and nothing is delayed.
const REMOVED: i64 = 8;

/// Identifies the operations whose usage is counted together, with the day.
#[derive(Debug, Clone, Copy)]
pub(super) struct Customer<'a> {
    pub(super) merchant: &'a str,
    pub(super) shop: &'a str,
    pub(super) direction: Direction,
    pub(super) account_id: i64,
}

impl<'a> Customer<'a> {
    fn key(self, day: UnixDay) -> [Parameter<'a>; 5] {
        params![day.0, self.merchant, self.shop, direction_number(self.direction), self.account_id]
    }
}

/// A customer's usage on a day: the count of operations and their sum in hundredths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) operations: i64,
    pub(super) amount: i64,
}

/// The row of a customer's day, with the parameters of [`Customer::key`].
macro_rules! of_day {
    ($before:literal) => {
        concat!(
            $before,
            " WHERE day = ?1 AND merchant = ?2 AND shop = ?3 AND direction = ?4 AND customer_account_id = ?5"
        )
    };
}

pub(super) const USED: Sql = sql!(of_day!("SELECT operations, amount FROM daily_usage"), postgres adds "FOR UPDATE");

const ADD: Sql = sql!(
    "INSERT INTO daily_usage (day, merchant, shop, direction, customer_account_id, operations, amount) \
     VALUES (?1, ?2, ?3, ?4, ?5, 0, 0) ON CONFLICT DO NOTHING"
);

/// Reads and locks a customer's usage on a day. Where others write meanwhile, there has to be a row to lock.
pub(super) async fn used<T: Transaction>(tx: &T, customer: Customer<'_>, day: UnixDay) -> Result<Usage, T::Error> {
    if T::IS_SHARED {
        tx.execute(ADD, &customer.key(day)).await?;
    }
    let read = |row: &dyn Columns| Ok(Usage { operations: row.get(0)?, amount: row.get(1)? });
    let found = tx.query_opt(USED, &customer.key(day), read).await?;
    Ok(found.unwrap_or(Usage { operations: 0, amount: 0 }))
}

const SET: Sql = sql!(
    "INSERT INTO daily_usage (day, merchant, shop, direction, customer_account_id, operations, amount) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
     ON CONFLICT (day, merchant, shop, direction, customer_account_id) \
     DO UPDATE SET operations = excluded.operations, amount = excluded.amount"
);

pub(super) const REMOVE_OLD: Sql = sql!(
    sqlite: "DELETE FROM daily_usage WHERE (day, merchant, shop, direction, customer_account_id) IN \
     (SELECT day, merchant, shop, direction, customer_account_id FROM daily_usage WHERE day < ?1 LIMIT ?2)",
    // Another node may be deleting them.
    postgres: "DELETE FROM daily_usage WHERE (day, merchant, shop, direction, customer_account_id) IN \
     (SELECT day, merchant, shop, direction, customer_account_id FROM daily_usage WHERE day < ?1 LIMIT ?2 \
     FOR UPDATE SKIP LOCKED)",
);

/// Writes a customer's usage on a day. With the first operation of a day, also deletes some rows of days long past.
pub(super) async fn set<T: Transaction>(
    tx: &T,
    customer: Customer<'_>,
    day: UnixDay,
    usage: Usage,
) -> Result<(), T::Error> {
    let [day_number, merchant, shop, direction, account_id] = customer.key(day);
    let [operations, amount] = params![usage.operations, usage.amount];
    tx.execute(SET, &[day_number, merchant, shop, direction, account_id, operations, amount]).await?;
    if usage.operations <= 1 {
        tx.execute(REMOVE_OLD, &params![day.0.saturating_sub(KEPT_DAYS), REMOVED]).await?;
    }
    Ok(())
}

const REDUCE: Sql = sql!(of_day!(
    "UPDATE daily_usage SET operations = CASE WHEN operations > 1 THEN operations - 1 ELSE 0 END, \
     amount = CASE WHEN amount > ?6 THEN amount - ?6 ELSE 0 END"
));

/// Subtracts an operation from a customer's usage on a day, down to zero. Does nothing if the day's row was deleted.
pub(super) async fn reduce<T: Transaction>(
    tx: &T,
    customer: Customer<'_>,
    day: UnixDay,
    amount: i64,
) -> Result<(), T::Error> {
    let [day, merchant, shop, direction, account_id] = customer.key(day);
    let [amount] = params![amount];
    tx.execute(REDUCE, &[day, merchant, shop, direction, account_id, amount]).await.map(drop)
}
