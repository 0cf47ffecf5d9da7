//! Checks the daily usage of customers.

use super::AuditFindings;
use crate::domain::Direction;
use crate::store::rows::direction_of;
use crate::store::sql::{Columns, Sql, Transaction, params, sql};

/// Selects usage rows that are wrong or missing: some of them, each with the count of all. The parameter is the first
/// day whose rows are not yet deleted.
pub(super) const WRONG: Sql = sql!(
    "SELECT coalesce(u.day, o.counted_day), coalesce(u.merchant, o.merchant), coalesce(u.shop, o.shop), \
     coalesce(u.direction, o.direction), coalesce(u.customer_account_id, o.customer_account_id), count(*) OVER () \
     FROM daily_usage u FULL JOIN \
     (SELECT counted_day, merchant, shop, direction, customer_account_id, count(*) AS operations, sum(amount) AS amount \
     FROM operations JOIN contexts ON contexts.id = operations.context \
     WHERE counted_day IS NOT NULL AND status <> 2 AND customer_account_id IS NOT NULL \
     GROUP BY counted_day, merchant, shop, direction, customer_account_id) AS o \
     ON o.counted_day = u.day AND o.merchant = u.merchant AND o.shop = u.shop AND o.direction = u.direction \
     AND o.customer_account_id = u.customer_account_id WHERE (u.day IS NOT NULL OR o.counted_day >= ?1) \
     AND (coalesce(u.operations, 0) <> coalesce(o.operations, 0) OR coalesce(u.amount, 0) <> coalesce(o.amount, 0)) \
     ORDER BY 1, 2, 3, 4, 5 LIMIT 100"
);

/// The day before today, by the database's clock.
const YESTERDAY: Sql = sql!(
    sqlite: "SELECT unixepoch() / 86400 - 1",
    postgres: "SELECT floor(extract(epoch FROM now()) / 86400)::bigint - 1",
);

/// Compares daily usage with its operations, in one pass over them, since there may be many customers.
pub(super) async fn check<T: Transaction>(tx: &T, findings: &mut AuditFindings) -> Result<(), T::Error> {
    let yesterday: i64 = tx.query_value(YESTERDAY, &[]).await?;
    let mut count = 0;
    let read = |row: &dyn Columns| {
        count = row.get(5)?;
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
    };
    let wrong = tx.query(WRONG, &params![yesterday], read).await?;
    findings.usage(wrong, count);
    Ok(())
}

/// A row of [`WRONG`], without the count.
type WrongUsage = (i64, Box<str>, Box<str>, i64, i64);

impl AuditFindings {
    /// Adds the problems that [`WRONG`] found: usage must be the sum of the customer's operations of the day, unless
    /// the day's rows were deleted.
    fn usage(&mut self, wrong: Vec<WrongUsage>, count: u64) {
        let reported = wrong.into_iter().map(|(day, merchant, shop, direction, customer)| {
            let of = direction_of(direction).map_or("unknown", Direction::as_str);
            format!(
                "merchant {merchant}, shop {shop}: the {of} usage of customer {customer} on day {day} is not the sum of \
                 the operations that count for it"
            )
        });
        self.problems(reported.collect(), count);
    }
}
