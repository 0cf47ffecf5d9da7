//! The durable queue in the table `tasks`: see [`tasks`](crate::store::tasks).

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row};

use super::transaction::SqliteRows;
use crate::domain::UnixMillis;
use crate::store::tasks::{
    ClaimedTask, NewTask, QueueList, TaskClaim, TaskKind, TaskQueue, TaskRows, TaskState, group_of,
};
use crate::store::{Misdated, MisdatedWaits};

impl TaskRows for SqliteRows<'_> {
    async fn put_task(&mut self, task: NewTask<'_>) -> rusqlite::Result<()> {
        self.0
            .prepare_cached(
                "INSERT INTO tasks (kind, key, queue, queued_at, due_at, leased, attempts) VALUES (?1, ?2, ?3, ?4, ?5, 0, 0) \
                 ON CONFLICT DO UPDATE SET queue = excluded.queue, queued_at = excluded.queued_at, \
                 due_at = excluded.due_at, leased = 0, attempts = 0",
            )?
            .execute((task.kind.number(), task.key, task.queue, task.queued_at.0, task.due_at.0))
            .map(drop)
    }

    async fn release_task(&mut self, kind: TaskKind, key: i64, due: UnixMillis) -> rusqlite::Result<()> {
        self.0
            .prepare_cached("UPDATE tasks SET due_at = ?3, leased = 0 WHERE kind = ?1 AND key = ?2")?
            .execute((kind.number(), key, due.0))
            .map(drop)
    }

    async fn end_task(&mut self, kind: TaskKind, key: i64) -> rusqlite::Result<()> {
        self.0.prepare_cached("DELETE FROM tasks WHERE kind = ?1 AND key = ?2")?.execute((kind.number(), key)).map(drop)
    }
}

/// Reads the state of a task.
pub(super) fn of(connection: &Connection, kind: TaskKind, key: i64) -> rusqlite::Result<Option<TaskState>> {
    let read = |row: &Row<'_>| {
        Ok(TaskState {
            queued_at: UnixMillis(row.get(0)?),
            due_at: UnixMillis(row.get(1)?),
            is_leased: row.get(2)?,
            attempts: row.get(3)?,
        })
    };
    connection
        .prepare_cached("SELECT queued_at, due_at, leased, attempts FROM tasks WHERE kind = ?1 AND key = ?2")?
        .query_row((kind.number(), key), read)
        .optional()
}

/// The due tasks of a queue, earliest first.
pub(super) const DUE: &str = "SELECT key, queued_at, attempts FROM tasks INDEXED BY tasks_by_due \
    WHERE kind = ?1 AND queue = ?2 AND due_at <= ?3 ORDER BY due_at, key LIMIT ?4";

/// Claims the due tasks of each queue, earliest first, with a lease.
pub(super) fn claim(connection: &Connection, claim: &TaskClaim) -> rusqlite::Result<Vec<ClaimedTask>> {
    let mut due = connection.prepare_cached(DUE)?;
    let mut lease = connection.prepare_cached(
        "UPDATE tasks SET due_at = ?3, leased = 1, attempts = attempts + 1 WHERE kind = ?1 AND key = ?2",
    )?;
    let (kind, mut claimed) = (claim.kind.number(), Vec::new());
    for (queue, share) in &claim.shares {
        let limit = i64::try_from(*share).unwrap_or(i64::MAX);
        let read = |row: &Row<'_>| {
            let (key, queued_at, attempts) = (row.get(0)?, UnixMillis(row.get(1)?), row.get(2)?);
            Ok(ClaimedTask { key, queue: queue.clone(), queued_at, attempts })
        };
        let found: Vec<ClaimedTask> =
            due.query_map((kind, queue, claim.now.0, limit), read)?.collect::<Result<_, _>>()?;
        for task in &found {
            lease.execute((kind, task.key, claim.lease_until.0))?;
        }
        claimed.extend(found);
    }
    Ok(claimed)
}

/// The tasks of a queue that wait for longer than any may, earliest first.
pub(super) const OVERLONG: &str = "SELECT key FROM tasks INDEXED BY tasks_by_due \
    WHERE kind = ?1 AND queue = ?2 AND due_at > ?3 ORDER BY due_at, key LIMIT ?4";

/// Finds misdated tasks.
pub(super) fn misdated(connection: &Connection, misdated: &Misdated) -> rusqlite::Result<Vec<i64>> {
    let (kind, limit) = (misdated.kind.number(), |found: &Vec<i64>| {
        i64::try_from(misdated.limit.saturating_sub(found.len())).unwrap_or(i64::MAX)
    });
    let mut found = Vec::new();
    match &misdated.waits {
        MisdatedWaits::QueuedAfter(after) => {
            let sql =
                "SELECT key FROM tasks WHERE kind = ?1 AND leased = 0 AND due_at > ?2 AND queued_at > ?3 LIMIT ?4";
            let mut waiting = connection.prepare_cached(sql)?;
            let parameters = (kind, misdated.now.0, after.0, limit(&found));
            found.extend(waiting.query_map(parameters, |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?);
        }
        MisdatedWaits::Overlong(queues) => {
            let mut overlong = connection.prepare_cached(OVERLONG)?;
            for (queue, latest) in queues {
                let parameters = (kind, queue, latest.0, limit(&found));
                found.extend(overlong.query_map(parameters, |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?);
            }
        }
    }
    Ok(found)
}

/// Makes misdated tasks due; returns how many.
pub(super) fn make_due(connection: &Connection, given: &Misdated) -> rusqlite::Result<usize> {
    let mut release =
        connection.prepare_cached("UPDATE tasks SET due_at = ?3, leased = 0 WHERE kind = ?1 AND key = ?2")?;
    let found = misdated(connection, given)?;
    for key in &found {
        release.execute((given.kind.number(), key, given.now.0))?;
    }
    Ok(found.len())
}

/// Postpones claimed tasks that cannot be decoded.
pub(super) fn postpone_tasks(
    connection: &Connection,
    kind: TaskKind,
    keys: &[i64],
    lease_until: UnixMillis,
    until: UnixMillis,
) -> rusqlite::Result<()> {
    let mut postpone_tasks = connection.prepare_cached(
        "UPDATE tasks SET due_at = ?4, leased = 0 WHERE kind = ?1 AND key = ?2 AND leased = 1 AND due_at = ?3",
    )?;
    keys.iter().try_for_each(|key| postpone_tasks.execute((kind.number(), key, lease_until.0, until.0)).map(drop))
}

/// Releases every claimed task, and leaves postponed ones at their time. One gateway serves a file, so the process that
/// claimed them has ended.
pub(super) fn release_all(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("UPDATE tasks SET due_at = queued_at, leased = 0 WHERE leased <> 0", []).map(drop)
}

/// The next queue after one, and its earliest task.
pub(super) const NEXT_QUEUE: &str = "SELECT queue, due_at, attempts > 0 FROM tasks INDEXED BY tasks_by_due \
    WHERE kind = ?1 AND queue > ?2 ORDER BY queue, due_at LIMIT 1";

/// Lists queues with tasks: one step into the index for each queue, however many tasks wait.
pub(super) fn queues(connection: &Connection, list: &QueueList) -> rusqlite::Result<Vec<TaskQueue>> {
    let mut next = connection.prepare_cached(NEXT_QUEUE)?;
    let after: HashMap<&str, &str> = list.after.iter().map(|queue| (group_of(queue), &**queue)).collect();
    let read =
        |row: &Row<'_>| Ok(TaskQueue { queue: row.get(0)?, due_at: UnixMillis(row.get(1)?), tried: row.get(2)? });
    let mut queues: Vec<TaskQueue> = Vec::new();
    // The place in the index, and how many queues of its group are listed.
    let (mut place, mut count) = (String::new(), 0);
    while let Some(queue) = next.query_row((list.kind.number(), &place), read).optional()? {
        let group = group_of(&queue.queue);
        if let Some(after) = after.get(group).filter(|after| **after >= &*queue.queue) {
            (*after).clone_into(&mut place);
            continue;
        }
        let is_next = queues.last().is_some_and(|last| group_of(&last.queue) == group);
        count = if is_next { count + 1 } else { 1 };
        // No queue of a group is behind its end: `!` follows the space, and precedes all that names contain.
        place = if count < list.limit { queue.queue.clone() } else { format!("{group}!") };
        queues.push(queue);
    }
    Ok(queues)
}
