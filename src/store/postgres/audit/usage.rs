//! What an audit looks at in daily usage.

use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use super::Findings;
use crate::domain::Direction;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::row::{get, small};
use crate::store::rows::direction_of;

/// Usage that is not the sum of its operations, or is missing: some of it, each with the number of all. The database sums, in
/// one pass over the operations: there may be many customers. The rows of yesterday and later are not removed yet.
const WRONG: &str = "WITH yesterday AS (SELECT floor(extract(epoch FROM now()) / 86400)::integer - 1 AS day) \
    SELECT coalesce(u.day, o.counted_day), coalesce(u.merchant, o.merchant), coalesce(u.shop, o.shop), \
    coalesce(u.direction, o.direction), coalesce(u.customer_account_id, o.customer_account_id), count(*) OVER () \
    FROM daily_usage u FULL JOIN \
    (SELECT bucket, counted_day, merchant, shop, direction, customer_account_id, count(*) AS operations, \
    sum(amount) AS amount FROM operations \
    WHERE counted_day >= least((SELECT min(day) FROM daily_usage), (SELECT day FROM yesterday)) AND status <> 2 AND customer_account_id IS NOT NULL \
    GROUP BY bucket, counted_day, merchant, shop, direction, customer_account_id) AS o \
    ON o.bucket = u.bucket AND o.counted_day = u.day AND o.merchant = u.merchant AND o.shop = u.shop \
    AND o.direction = u.direction AND o.customer_account_id = u.customer_account_id \
    WHERE (u.day IS NOT NULL OR o.counted_day >= (SELECT day FROM yesterday)) \
    AND (coalesce(u.operations, 0) <> coalesce(o.operations, 0) OR coalesce(u.amount, 0) <> coalesce(o.amount, 0)) \
    ORDER BY coalesce(u.bucket, o.bucket), 1, 2, 3, 4, 5 LIMIT 100";

/// What customers did on a day is what their operations of that day sum to. The rows of old days may be gone.
pub(super) async fn compare(snapshot: &Transaction<'_>, findings: &mut Findings) -> Result<(), Fault> {
    let rows = snapshot.query(WRONG, &[]).await?;
    let told = rows.iter().map(problem).collect::<Result<_, _>>()?;
    let count = rows.first().map_or(Ok(0), |row| get(row, 5))?;
    findings.problems(told, i64::unsigned_abs(count));
    Ok(())
}

fn problem(row: &Row) -> Result<String, Fault> {
    let (day, merchant, shop): (i32, &str, &str) = (get(row, 0)?, get(row, 1)?, get(row, 2)?);
    let of = direction_of(small(row, 3)?).map_or("unknown", Direction::as_str);
    let customer: i64 = get(row, 4)?;
    Ok(format!(
        "merchant {merchant}, shop {shop}: the {of} usage of customer {customer} on day {day} is not the sum of the \
         operations that count for it"
    ))
}
