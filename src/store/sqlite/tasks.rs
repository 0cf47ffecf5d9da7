//! Claims and lists of the durable queue: see [`tasks`](crate::store::tasks). There is no other process to skip the claims of.

use std::collections::HashMap;

use rusqlite::Connection;

use super::transaction::SqliteTransaction;
use crate::store::rows::task::{ClaimedTask, QueueList, TaskClaim, TaskQueue, group_of};
use crate::store::sql::{Columns, Sql, Transaction, params, sql};

/// The due tasks of a queue, earliest first.
pub(super) const DUE: Sql = sql!(
    "SELECT key, queued_at, attempts FROM tasks", indexed by "tasks_by_due",
    "WHERE kind = ?1 AND queue = ?2 AND due_at <= ?3 ORDER BY due_at, key LIMIT ?4"
);

const LEASE: Sql =
    sql!("UPDATE tasks SET due_at = ?3, state = 1, attempts = attempts + 1 WHERE kind = ?1 AND key = ?2");

/// Claims the due tasks of each queue, earliest first, with a lease.
pub(super) async fn claim(tx: &SqliteTransaction<'_>, claim: &TaskClaim) -> rusqlite::Result<Vec<ClaimedTask>> {
    let (kind, mut claimed) = (claim.kind.number(), Vec::new());
    for (queue, share) in &claim.shares {
        let limit = i64::try_from(*share).unwrap_or(i64::MAX);
        let read = |row: &dyn Columns| {
            let (key, queued_at, attempts) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(ClaimedTask { key, queue: queue.clone(), queued_at, attempts })
        };
        claimed.extend(tx.query(DUE, &params![kind, queue, claim.now, limit], read).await?);
    }
    let leases: Vec<_> = claimed.iter().map(|task| params![kind, task.key, claim.lease_until]).collect();
    tx.execute_each(LEASE, &leases).await?;
    Ok(claimed)
}

/// Releases every claimed task, and leaves postponed ones at their time. One gateway serves a file, so the process that
/// claimed them has ended.
pub(super) fn release_all(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("UPDATE tasks SET due_at = queued_at, state = 0 WHERE state = 1", []).map(drop)
}

/// The next queue after one, and its earliest task.
pub(super) const NEXT_QUEUE: Sql = sql!(
    "SELECT queue, due_at, attempts > 0 FROM tasks", indexed by "tasks_by_due",
    "WHERE kind = ?1 AND queue > ?2 ORDER BY queue, due_at LIMIT 1"
);

/// Lists queues with tasks: one step into the index for each queue, however many tasks wait.
pub(super) async fn queues(tx: &SqliteTransaction<'_>, list: &QueueList) -> rusqlite::Result<Vec<TaskQueue>> {
    let after: HashMap<&str, &str> = list.after.iter().map(|queue| (group_of(queue), &**queue)).collect();
    let read = |row: &dyn Columns| Ok(TaskQueue { queue: row.get(0)?, due_at: row.get(1)?, tried: row.get(2)? });
    let mut queues: Vec<TaskQueue> = Vec::new();
    // The place in the index, and how many queues of its group are listed.
    let (mut place, mut count) = (String::new(), 0);
    while let Some(queue) = tx.query_opt(NEXT_QUEUE, &params![list.kind.number(), &place], read).await? {
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
