//! Claims and lists of the durable queue: see [`tasks`](crate::store::tasks). All nodes share it: a claim skips rows that
//! another node is claiming, and a list is one statement, since each step of it would be a round trip.

use super::errors::PgError;
use super::transaction::{Executor, get};
use crate::domain::UnixMillis;
use crate::store::rows::task::{ClaimedTask, QueueList, TaskClaim, TaskKind, TaskQueue};

/// Claims the due tasks of each queue, earliest first, with a lease.
pub(super) async fn claim(executor: Executor<'_>, claim: &TaskClaim) -> Result<Vec<ClaimedTask>, PgError> {
    let queues: Vec<&str> = claim.shares.iter().map(|(queue, _)| &**queue).collect();
    let shares: Vec<i64> = claim.shares.iter().map(|(_, share)| i64::try_from(*share).unwrap_or(i64::MAX)).collect();
    let together = shares.iter().fold(0_i64, |sum, share| sum.saturating_add(*share));
    let (kind, now, until) = (kind_of(claim.kind), claim.now.0, claim.lease_until.0);
    let statement = executor.prepare(CLAIM).await?;
    let rows = executor.query(&statement, &[&queues, &shares, &now, &until, &together, &kind]).await?;
    rows.iter()
        .map(|row| {
            Ok(ClaimedTask {
                key: get(row, 0)?,
                queue: get(row, 1)?,
                queued_at: UnixMillis(get(row, 2)?),
                attempts: u32::try_from(get::<i32>(row, 3)?).unwrap_or(0),
            })
        })
        .collect()
}

/// The sum of the shares limits nothing: it lets the planner know how few rows these are.
pub(super) const CLAIM: &str = "WITH due AS MATERIALIZED (SELECT next.*, share.number \
     FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS share (queue, most, number) CROSS JOIN LATERAL \
     (SELECT key, due_at FROM tasks WHERE kind = $6 AND queue = share.queue AND due_at <= $3 \
     ORDER BY due_at, key LIMIT share.most FOR UPDATE SKIP LOCKED) AS next LIMIT $5), \
     taken AS (UPDATE tasks AS t SET due_at = $4, state = 1, attempts = t.attempts + 1 FROM due \
     WHERE t.kind = $6 AND t.key = due.key \
     RETURNING t.key, t.queue, t.queued_at, t.attempts - 1 AS attempts, due.number, due.due_at) \
     SELECT key, queue, queued_at, attempts FROM taken ORDER BY number, due_at, key";

/// Lists queues with tasks.
pub(super) async fn queues(executor: Executor<'_>, list: &QueueList) -> Result<Vec<TaskQueue>, PgError> {
    let after: Vec<&str> = list.after.iter().map(|queue| &**queue).collect();
    let limit = i64::try_from(list.limit).unwrap_or(i64::MAX);
    let statement = executor.prepare(QUEUES).await?;
    let rows = executor.query(&statement, &[&kind_of(list.kind), &after, &limit]).await?;
    rows.iter()
        .map(|row| Ok(TaskQueue { queue: get(row, 0)?, due_at: UnixMillis(get(row, 1)?), tried: get(row, 2)? }))
        .collect()
}

/// One step into the index for each group and for each queue, however many tasks wait. No queue of a group is behind its
/// end: `!` follows the space, and precedes all that names contain.
pub(super) const QUEUES: &str = "WITH RECURSIVE groups AS (\
    (SELECT split_part(queue, ' ', 1) AS name FROM tasks WHERE kind = $1 ORDER BY queue LIMIT 1) UNION ALL \
    SELECT next.* FROM groups CROSS JOIN LATERAL (SELECT split_part(queue, ' ', 1) FROM tasks \
    WHERE kind = $1 AND queue > groups.name || '!' ORDER BY queue LIMIT 1) AS next) \
    SELECT listed.* FROM groups \
    LEFT JOIN unnest($2::text[]) AS given (queue) ON split_part(given.queue, ' ', 1) = groups.name \
    CROSS JOIN LATERAL (WITH RECURSIVE next_queue AS (\
    (SELECT queue, due_at, attempts > 0 FROM tasks WHERE kind = $1 AND queue >= groups.name \
    AND queue > coalesce(given.queue, '') AND queue < groups.name || '!' ORDER BY queue, due_at, key LIMIT 1) UNION ALL \
    SELECT next.* FROM next_queue CROSS JOIN LATERAL \
    (SELECT queue, due_at, attempts > 0 FROM tasks WHERE kind = $1 AND queue > next_queue.queue \
    AND queue < groups.name || '!' ORDER BY queue, due_at, key LIMIT 1) AS next) \
    SELECT * FROM next_queue LIMIT $3) AS listed";

fn kind_of(kind: TaskKind) -> i16 {
    i16::try_from(kind.number()).unwrap_or(i16::MAX)
}
