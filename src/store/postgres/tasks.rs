//! The durable queue in the table `tasks`: see [`tasks`](crate::store::tasks). All nodes share it: a claim skips rows
//! that another node is claiming.

use deadpool_postgres::{GenericClient, Transaction};

use super::errors::PgError;
use super::outbox::bucket_in_key;
use super::row::{get, narrow};
use super::transaction::PgRows;
use crate::domain::UnixMillis;
use crate::store::tasks::{ClaimedTask, NewTask, QueueList, TaskClaim, TaskKind, TaskQueue, TaskRows, TaskState};
use crate::store::{Misdated, MisdatedWaits};

impl TaskRows for PgRows<'_> {
    async fn put_task(&mut self, task: NewTask<'_>) -> Result<(), PgError> {
        let NewTask { kind, key, queue, queued_at, due_at } = &task;
        let statement = self
            .0
            .prepare_cached(
                "INSERT INTO tasks (bucket, kind, key, queue, queued_at, due_at, leased, attempts) \
                 VALUES ($1, $2, $3, $4, $5, $6, false, 0) ON CONFLICT (bucket, kind, key) DO UPDATE \
                 SET queue = excluded.queue, queued_at = excluded.queued_at, due_at = excluded.due_at, leased = false, \
                 attempts = 0",
            )
            .await?;
        let (kind, due) = (narrow(kind.number()), due_at.0.saturating_sub(self.1));
        self.0.execute(&statement, &[&bucket_in_key(*key), &kind, key, queue, &queued_at.0, &due]).await?;
        Ok(())
    }

    async fn release_task(&mut self, kind: TaskKind, key: i64, due: UnixMillis) -> Result<(), PgError> {
        let update = "UPDATE tasks SET due_at = $4, leased = false WHERE bucket = $1 AND kind = $2 AND key = $3";
        let statement = self.0.prepare_cached(update).await?;
        let due = due.0.saturating_sub(self.1);
        self.0.execute(&statement, &[&bucket_in_key(key), &narrow(kind.number()), &key, &due]).await?;
        Ok(())
    }

    async fn end_task(&mut self, kind: TaskKind, key: i64) -> Result<(), PgError> {
        let statement = self.0.prepare_cached("DELETE FROM tasks WHERE bucket = $1 AND kind = $2 AND key = $3").await?;
        self.0.execute(&statement, &[&bucket_in_key(key), &narrow(kind.number()), &key]).await?;
        Ok(())
    }
}

/// One task, by bucket, kind and key.
pub(super) const STATE: &str =
    "SELECT queued_at, due_at, leased, attempts FROM tasks WHERE bucket = $1 AND kind = $2 AND key = $3";

/// Reads the state of a task.
pub(super) async fn of(client: &impl GenericClient, kind: TaskKind, key: i64) -> Result<Option<TaskState>, PgError> {
    state(client, STATE, kind, key).await
}

/// Reads the state of a task and locks it.
pub(super) async fn locked(
    transaction: &Transaction<'_>,
    kind: TaskKind,
    key: i64,
) -> Result<Option<TaskState>, PgError> {
    let lock = "SELECT queued_at, due_at, leased, attempts FROM tasks \
        WHERE bucket = $1 AND kind = $2 AND key = $3 FOR UPDATE";
    state(transaction, lock, kind, key).await
}

async fn state(client: &impl GenericClient, sql: &str, kind: TaskKind, key: i64) -> Result<Option<TaskState>, PgError> {
    let statement = client.prepare_cached(sql).await?;
    let found = client.query_opt(&statement, &[&bucket_in_key(key), &narrow(kind.number()), &key]).await?;
    let Some(row) = found else { return Ok(None) };
    Ok(Some(TaskState {
        queued_at: UnixMillis(get(&row, 0)?),
        due_at: UnixMillis(get(&row, 1)?),
        is_leased: get(&row, 2)?,
        attempts: get::<i32>(&row, 3)?.into(),
    }))
}

/// Claims the due tasks of each queue, earliest first, with a lease.
pub(super) async fn claim(client: &impl GenericClient, claim: &TaskClaim) -> Result<Vec<ClaimedTask>, PgError> {
    let queues: Vec<&str> = claim.shares.iter().map(|(queue, _)| &**queue).collect();
    let shares: Vec<i64> = claim.shares.iter().map(|(_, share)| i64::try_from(*share).unwrap_or(i64::MAX)).collect();
    let together = shares.iter().fold(0_i64, |sum, share| sum.saturating_add(*share));
    let (kind, now, until) = (narrow(claim.kind.number()), claim.now.0, claim.lease_until.0);
    let statement = client.prepare_cached(CLAIM).await?;
    let rows = client.query(&statement, &[&queues, &shares, &now, &until, &together, &kind]).await?;
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
     (SELECT bucket, key, due_at FROM tasks WHERE kind = $6 AND queue = share.queue AND due_at <= $3 \
     ORDER BY due_at, key LIMIT share.most FOR UPDATE SKIP LOCKED) AS next LIMIT $5), \
     taken AS (UPDATE tasks AS t SET due_at = $4, leased = true, attempts = t.attempts + 1 FROM due \
     WHERE t.bucket = due.bucket AND t.kind = $6 AND t.key = due.key \
     RETURNING t.key, t.queue, t.queued_at, t.attempts - 1 AS attempts, due.number, due.due_at) \
     SELECT key, queue, queued_at, attempts FROM taken ORDER BY number, due_at, key";

/// Makes misdated tasks due; returns how many. Skips those that another node holds.
pub(super) async fn make_due(client: &impl GenericClient, misdated: &Misdated) -> Result<usize, PgError> {
    let (kind, now) = (narrow(misdated.kind.number()), misdated.now.0);
    let limit = i64::try_from(misdated.limit).unwrap_or(i64::MAX);
    let made = match &misdated.waits {
        MisdatedWaits::QueuedAfter(after) => {
            let statement = client.prepare_cached(QUEUED_AFTER).await?;
            client.execute(&statement, &[&kind, &now, &limit, &after.0]).await?
        }
        MisdatedWaits::Overlong(waits) => {
            let (queues, latest): (Vec<&str>, Vec<i64>) =
                waits.iter().map(|(queue, latest)| (&**queue, latest.0)).unzip();
            let statement = client.prepare_cached(OVERLONG).await?;
            client.execute(&statement, &[&kind, &now, &limit, &queues, &latest]).await?
        }
    };
    Ok(usize::try_from(made).unwrap_or(usize::MAX))
}

macro_rules! made_due {
    ($found:literal) => {
        concat!(
            "WITH found AS MATERIALIZED (",
            $found,
            ") UPDATE tasks AS t SET due_at = $2, leased = false FROM found \
             WHERE t.bucket = found.bucket AND t.kind = $1 AND t.key = found.key"
        )
    };
}

const QUEUED_AFTER: &str = made_due!(
    "SELECT bucket, key FROM tasks WHERE kind = $1 AND NOT leased AND due_at > $2 AND queued_at > $4 \
     LIMIT $3 FOR UPDATE SKIP LOCKED"
);

pub(super) const OVERLONG: &str = made_due!(
    "SELECT next.* FROM unnest($4::text[], $5::bigint[]) AS given (queue, latest) CROSS JOIN LATERAL \
     (SELECT bucket, key FROM tasks WHERE kind = $1 AND queue = given.queue AND due_at > given.latest \
     ORDER BY due_at, key LIMIT $3 FOR UPDATE SKIP LOCKED) AS next LIMIT $3"
);

/// Postpones claimed tasks that cannot be decoded. Tasks that another node holds or has claimed since are left alone.
pub(super) async fn postpone_tasks(
    client: &impl GenericClient,
    kind: TaskKind,
    keys: &[i64],
    lease_until: UnixMillis,
    until: UnixMillis,
) -> Result<(), PgError> {
    let buckets: Vec<i16> = keys.iter().map(|key| bucket_in_key(*key)).collect();
    let statement = client.prepare_cached(PUT_OFF).await?;
    let kind = narrow(kind.number());
    client.execute(&statement, &[&buckets, &keys, &lease_until.0, &until.0, &kind]).await?;
    Ok(())
}

const PUT_OFF: &str = "WITH own AS MATERIALIZED (SELECT t.bucket, t.key \
     FROM unnest($1::smallint[], $2::bigint[]) AS given (bucket, key) JOIN tasks t USING (bucket, key) \
     WHERE t.kind = $5 AND t.leased AND t.due_at = $3 FOR UPDATE OF t SKIP LOCKED) \
     UPDATE tasks AS t SET due_at = $4, leased = false FROM own \
     WHERE t.bucket = own.bucket AND t.kind = $5 AND t.key = own.key";

/// Lists queues with tasks.
pub(super) async fn queues(client: &impl GenericClient, list: &QueueList) -> Result<Vec<TaskQueue>, PgError> {
    let after: Vec<&str> = list.after.iter().map(|queue| &**queue).collect();
    let limit = i64::try_from(list.limit).unwrap_or(i64::MAX);
    let statement = client.prepare_cached(QUEUES).await?;
    let rows = client.query(&statement, &[&narrow(list.kind.number()), &after, &limit]).await?;
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
