//! The row operations of a transaction on callbacks and their attempts.

use std::collections::HashSet;

use rusqlite::{OptionalExtension, Row, named_params};

use crate::domain::UnixMillis;
use crate::store::callbacks::{CallbackRow, CallbackRows, NewCallback};
use crate::store::rows::CorruptRow;
use crate::store::rows::callback::{FAILED, PENDING, columns_of, state_number, state_of};
use crate::store::sqlite::tasks;
use crate::store::sqlite::transaction::SqliteRows;
use crate::store::tasks::{NewTask, TaskKind, TaskRows};
use crate::store::{CallbackState, CallbackSubject, CallbackTarget, CallbackTry, ExpireRequest, TryOutcome};

impl CallbackRows for SqliteRows<'_> {
    async fn queue_callback(&mut self, callback: NewCallback<'_>) -> rusqlite::Result<()> {
        let NewCallback { id, target, at } = &callback;
        let key = id.subject().key();
        self.0
            .prepare_cached(
                "INSERT INTO callbacks (key, nonce, merchant, target, state, queued_at, tries) \
                 VALUES (:key, :nonce, :merchant, :target, 0, :at, 0)",
            )?
            .execute(named_params! {
                ":key": key,
                ":nonce": id.nonce().cast_signed(),
                ":merchant": target.merchant(),
                ":target": target.origin(),
                ":at": at.0,
            })?;
        let task = NewTask { kind: TaskKind::Callback, key, queue: target.as_queue(), queued_at: *at, due_at: *at };
        self.put_task(task).await
    }

    async fn locked_callback(&mut self, subject: CallbackSubject) -> rusqlite::Result<Option<CallbackRow>> {
        let task = tasks::of(self.0, TaskKind::Callback, subject.key())?;
        let read = |row: &Row<'_>| {
            Ok(CallbackRow {
                subject,
                nonce: row.get(0)?,
                state: state_of(row.get(1)?).ok_or(CorruptRow("state"))?,
                target: CallbackTarget::of_queue(row.get::<_, String>(2)?),
                queued_at: UnixMillis(row.get(3)?),
                tries: row.get(4)?,
                task,
            })
        };
        self.0
            .prepare_cached(
                "SELECT nonce, state, merchant || ' ' || target, queued_at, tries FROM callbacks WHERE key = ?1",
            )?
            .query_row([subject.key()], read)
            .optional()
    }

    async fn insert_try(&mut self, subject: CallbackSubject, number: i64, tried: &CallbackTry) -> rusqlite::Result<()> {
        let (status, error) = columns_of(&tried.outcome);
        let duration_us = i64::try_from(tried.duration.as_micros()).unwrap_or(i64::MAX);
        self.0
            .prepare_cached(
                "INSERT INTO callback_tries (key, number, began_at, duration_us, status, error) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute((subject.key(), number, tried.at.0, duration_us, status, error))
            .map(drop)
    }

    /// A commit of the one process is never in doubt while it serves.
    async fn is_try(&mut self, _: CallbackSubject, _: i64, _: &CallbackTry) -> rusqlite::Result<bool> {
        Ok(false)
    }

    async fn remove_tries(&mut self, subject: CallbackSubject, until: i64) -> rusqlite::Result<()> {
        self.0
            .prepare_cached("DELETE FROM callback_tries WHERE key = ?1 AND number <= ?2")?
            .execute((subject.key(), until))
            .map(drop)
    }

    async fn set_tried(
        &mut self,
        subject: CallbackSubject,
        state: CallbackState,
        tries: i64,
        outcome: &TryOutcome,
    ) -> rusqlite::Result<()> {
        let (status, error) = columns_of(outcome);
        self.0
            .prepare_cached(
                "UPDATE callbacks SET state = ?2, tries = ?3, last_status = ?4, last_error = ?5 WHERE key = ?1",
            )?
            .execute((subject.key(), state_number(state), tries, status, error))
            .map(drop)
    }

    async fn count_try(&mut self, subject: CallbackSubject, tries: i64) -> rusqlite::Result<()> {
        let update = "UPDATE callbacks SET tries = ?2 WHERE key = ?1";
        self.0.prepare_cached(update)?.execute((subject.key(), tries)).map(drop)
    }

    async fn set_queued(
        &mut self,
        subject: CallbackSubject,
        target: &CallbackTarget,
        queued_at: UnixMillis,
    ) -> rusqlite::Result<()> {
        self.0
            .prepare_cached(
                "UPDATE callbacks SET state = ?2, target = ?3, queued_at = ?4, last_status = NULL, last_error = NULL \
                 WHERE key = ?1",
            )?
            .execute((subject.key(), PENDING, target.origin(), queued_at.0))
            .map(drop)
    }

    async fn late_callbacks(&mut self, expiry: &ExpireRequest) -> rusqlite::Result<Vec<i64>> {
        let mut found = self.0.prepare_cached(LATE)?;
        let mut keys: Vec<i64> = Vec::new();
        let merchants: HashSet<&str> = expiry.targets.iter().map(CallbackTarget::merchant).collect();
        for merchant in merchants {
            let mut rows = found.query((merchant, expiry.queued_until.0))?;
            while keys.len() < expiry.limit
                && let Some(row) = rows.next()?
            {
                if expiry.targets.contains(&CallbackTarget::of_columns(merchant, row.get_ref(1)?.as_str()?)) {
                    keys.push(row.get(0)?);
                }
            }
        }
        Ok(keys)
    }

    async fn give_up(&mut self, keys: &[i64], reason: &str) -> rusqlite::Result<()> {
        let mut fail = self
            .0
            .prepare_cached("UPDATE callbacks SET state = ?2, last_status = NULL, last_error = ?3 WHERE key = ?1")?;
        for key in keys {
            fail.execute((key, FAILED, reason))?;
            self.end_task(TaskKind::Callback, *key).await?;
        }
        Ok(())
    }

    async fn queue_failed(&mut self, keys: &[i64], now: UnixMillis) -> rusqlite::Result<usize> {
        let mut queue = self.0.prepare_cached(
            "UPDATE callbacks SET state = ?2, queued_at = max(?4, queued_at + 1), last_status = NULL, last_error = NULL \
             WHERE key = ?1 AND state = ?3 RETURNING merchant || ' ' || target, queued_at",
        )?;
        let mut count = 0;
        for key in keys {
            let queued =
                queue.query_row((key, PENDING, FAILED, now.0), |row| Ok((row.get::<_, String>(0)?, row.get(1)?)));
            let Some((queue, queued_at)) = queued.optional()? else { continue };
            let queued_at = UnixMillis(queued_at);
            let task = NewTask { kind: TaskKind::Callback, key: *key, queue: &queue, queued_at, due_at: now };
            self.put_task(task).await?;
            count += 1;
        }
        Ok(count)
    }

    async fn remove_callback(&mut self, subject: CallbackSubject) -> rusqlite::Result<()> {
        self.end_task(TaskKind::Callback, subject.key()).await?;
        self.0.prepare_cached("DELETE FROM callback_tries WHERE key = ?1")?.execute([subject.key()])?;
        self.0.prepare_cached("DELETE FROM callbacks WHERE key = ?1")?.execute([subject.key()]).map(drop)
    }
}

/// Pending callbacks of a merchant that were queued until a time, without a lease in force: a lease that ended by then
/// belonged to a process that has ended. So old a callback waits for a dead target or has its last attempt, so they are
/// read once for all targets of the merchant.
pub(in crate::store::sqlite) const LATE: &str = "SELECT c.key, c.target FROM callbacks c \
     INDEXED BY callbacks_by_merchant LEFT JOIN tasks t ON t.kind = 1 AND t.key = c.key \
     WHERE c.merchant = ?1 AND c.state = 0 AND c.queued_at <= ?2 AND coalesce(t.leased = 0 OR t.due_at <= ?2, 1) \
     ORDER BY c.queued_at, c.key";
