//! What customers did on a day, counted for their limits. The row of a customer and a day is what concurrent creates of
//! that customer wait for.

use deadpool_postgres::Transaction;

use super::fault::Fault;
use super::ledger::signed;
use crate::domain::{Amount, UnixDay};
use crate::store::DailyLimit;

/// Days that are kept before the newest: creations arrive a little late, and other nodes' clocks differ.
const KEPT_DAYS: i32 = 2;

/// The most old rows removed when a new one is made: their number falls, and nobody is held up.
const REMOVED: i64 = 8;

/// What counts together. The day is apart, since giving back happens on another one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Customer<'a> {
    pub(super) bucket: i16,
    pub(super) merchant: &'a str,
    pub(super) shop: &'a str,
    pub(super) direction: i16,
    pub(super) account_id: i64,
}

/// Counts one more operation of a customer, unless that is over the limit: then nothing changes, and it is `false`.
pub(super) async fn one_more(
    transaction: &Transaction<'_>,
    customer: Customer<'_>,
    limit: &DailyLimit,
    amount: Amount,
) -> Result<bool, Fault> {
    let Customer { bucket, merchant, shop, direction, account_id } = customer;
    let (amount, day) = (signed(amount), limit.day.0);
    let most_operations = limit.operations.map_or(i64::MAX, i64::from);
    let most_amount = limit.amount.map_or(i64::MAX, signed);
    if most_operations < 1 || most_amount < amount {
        return Ok(false);
    }
    let statement = transaction
        .prepare_cached(
            "INSERT INTO daily_usage (operations, amount, customer_account_id, day, bucket, direction, merchant, shop) \
             VALUES (1, $1, $2, $3, $4, $5, $6, $7) \
             ON CONFLICT (bucket, day, merchant, shop, direction, customer_account_id) DO UPDATE \
             SET operations = daily_usage.operations + 1, amount = daily_usage.amount + excluded.amount \
             WHERE daily_usage.operations < $8 AND daily_usage.amount <= $9::bigint - excluded.amount \
             RETURNING operations",
        )
        .await?;
    let counted = transaction
        .query_opt(
            &statement,
            &[&amount, &account_id, &day, &bucket, &direction, &merchant, &shop, &most_operations, &most_amount],
        )
        .await?;
    let Some(counted) = counted else { return Ok(false) };
    if counted.try_get::<_, i64>(0)? == 1 {
        remove_old(transaction, bucket, limit.day).await?;
    }
    Ok(true)
}

/// Takes a failed operation out of the usage of its day; nothing happens when that day was removed, and less than
/// nothing is never left (it would be an allowance).
pub(super) async fn give_back(
    transaction: &Transaction<'_>,
    customer: Customer<'_>,
    day: UnixDay,
    amount: i64,
) -> Result<(), Fault> {
    let Customer { bucket, merchant, shop, direction, account_id } = customer;
    let statement = transaction
        .prepare_cached(
            "UPDATE daily_usage SET operations = greatest(operations - 1, 0), amount = greatest(amount - $7, 0) \
             WHERE bucket = $1 AND day = $2 AND merchant = $3 AND shop = $4 AND direction = $5 \
             AND customer_account_id = $6",
        )
        .await?;
    transaction.execute(&statement, &[&bucket, &day.0, &merchant, &shop, &direction, &account_id, &amount]).await?;
    Ok(())
}

async fn remove_old(transaction: &Transaction<'_>, bucket: i16, newest: UnixDay) -> Result<(), Fault> {
    let statement = transaction
        .prepare_cached(
            "DELETE FROM daily_usage WHERE (bucket, day, merchant, shop, direction, customer_account_id) IN \
             (SELECT bucket, day, merchant, shop, direction, customer_account_id FROM daily_usage \
             WHERE bucket = $1 AND day < $2 LIMIT $3 FOR UPDATE SKIP LOCKED)",
        )
        .await?;
    transaction.execute(&statement, &[&bucket, &newest.0.saturating_sub(KEPT_DAYS), &REMOVED]).await?;
    Ok(())
}
