//! Pending callbacks of some targets that are not being sent, the earliest first: counted, and made due.

use crate::domain::UnixMillis;
use crate::store::rows::task::TaskKind;
use crate::store::sql::{Columns, Sql, Transaction, params, sql};
use crate::store::transaction::OwnStatements;
use crate::store::{CallbackCursor, PendingQuery};

/// Tasks of a queue behind a position that no worker holds a valid lease of, the earliest first.
pub(in crate::store) const WAITING_BEHIND: Sql = sql!(
    "SELECT due_at, key FROM tasks", indexed by "tasks_by_due",
    "WHERE kind = ?1 AND queue = ?2 AND (due_at, key) > (?3, ?4) AND (state = 0 OR due_at <= ?5) \
     ORDER BY due_at, key LIMIT ?6",
);

/// How many queues are read at a time.
const QUEUES_AT_ONCE: usize = 64;

/// Reads the positions of pending callbacks as of `now`.
pub(in crate::store) async fn places<T: Transaction>(
    tx: &T,
    query: &PendingQuery,
    now: UnixMillis,
) -> Result<Vec<CallbackCursor>, T::Error> {
    let after = query.after.unwrap_or(CallbackCursor { at: UnixMillis(i64::MIN), key: i64::MIN });
    let (kind, limit) = (TaskKind::Callback.number(), i64::try_from(query.limit).unwrap_or(i64::MAX));
    let read = |row: &dyn Columns| Ok(CallbackCursor { at: row.get(0)?, key: row.get(1)? });
    let mut places = Vec::new();
    for targets in query.targets.chunks(QUEUES_AT_ONCE) {
        let set = |queue| params![kind, queue, after.at, after.key, now, limit];
        let sets: Vec<_> = targets.iter().map(|target| set(target.as_queue())).collect();
        places.extend(tx.query_each(WAITING_BEHIND, &sets, read).await?.into_iter().flatten());
        places.sort_unstable();
        places.truncate(query.limit);
    }
    Ok(places)
}

/// Changes nothing of a task that was claimed, or ended, since its position was read.
const MAKE_DUE: Sql = sql!("UPDATE tasks SET due_at = ?3 WHERE kind = ?1 AND key = ?2 AND state = 0 AND due_at > ?3");

/// Makes callbacks due that are not being sent; returns how many were due later. They are locked in the order of their keys.
pub(in crate::store) async fn make_due<T: OwnStatements>(
    tx: &T,
    places: &[CallbackCursor],
    now: UnixMillis,
) -> Result<u64, T::Error> {
    let mut keys: Vec<i64> = places.iter().filter(|place| place.at > now).map(|place| place.key).collect();
    keys.sort_unstable();
    let (kind, due) = (TaskKind::Callback.number(), tx.due(now));
    let sets: Vec<_> = keys.iter().map(|key| params![kind, *key, due]).collect();
    tx.execute_each(MAKE_DUE, &sets).await.map(|changed| changed.into_iter().sum())
}
