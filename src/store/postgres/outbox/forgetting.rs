//! Deletes callbacks that were delivered long ago.

use deadpool_postgres::GenericClient;

use crate::domain::UnixMillis;
use crate::store::postgres::errors::PgError;
use crate::store::postgres::row::{get, narrow};
use crate::store::rows::callback::{DELIVERED, FAILED};

/// Deletes callbacks with their attempts, and records up to which time: an audit does not expect them.
pub(in crate::store::postgres) async fn forget(
    client: &impl GenericClient,
    until: UnixMillis,
    limit: usize,
) -> Result<usize, PgError> {
    let statement = client.prepare_cached(FORGET).await?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut forgotten = 0;
    for state in [DELIVERED, FAILED] {
        let row = client.query_one(&statement, &[&narrow(state), &until.0, &limit]).await?;
        forgotten += usize::try_from(get::<i64>(&row, 0)?).unwrap_or(0);
    }
    Ok(forgotten)
}

/// Callbacks that are being resent at this moment are skipped.
pub(in crate::store::postgres) const FORGET: &str = "WITH old AS MATERIALIZED (SELECT bucket, key FROM callbacks \
    WHERE state = $1 AND queued_at <= $2 ORDER BY queued_at, key LIMIT $3 FOR UPDATE SKIP LOCKED), \
    gone AS (DELETE FROM callbacks AS c USING old WHERE c.bucket = old.bucket AND c.key = old.key \
    RETURNING c.bucket, c.key), \
    tries AS (DELETE FROM callback_tries AS t USING gone WHERE t.bucket = gone.bucket AND t.key = gone.key), \
    noted AS (INSERT INTO forgotten SELECT 1, $2 WHERE EXISTS (SELECT FROM gone) \
    ON CONFLICT (id) DO UPDATE SET until = greatest(forgotten.until, excluded.until)) \
    SELECT count(*) FROM gone";
