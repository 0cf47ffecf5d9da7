//! The row operations of a transaction on callbacks and their attempts. A change of a callback by its name locks the
//! row first, then its task.

use tokio_postgres::types::ToSql;

use super::subject::bucket_in_key;
use crate::domain::UnixMillis;
use crate::store::callbacks::{CallbackRow, CallbackRows, NewCallback};
use crate::store::postgres::errors::PgError;
use crate::store::postgres::row::{get, narrow, small};
use crate::store::postgres::tasks;
use crate::store::postgres::transaction::PgRows;
use crate::store::rows::CorruptRow;
use crate::store::rows::callback::{FAILED, PENDING, columns_of, state_number, state_of};
use crate::store::tasks::{NewTask, TaskKind, TaskRows};
use crate::store::{CallbackState, CallbackSubject, CallbackTarget, CallbackTry, ExpireRequest, TryOutcome};

impl CallbackRows for PgRows<'_> {
    async fn queue_callback(&mut self, callback: NewCallback<'_>) -> Result<(), PgError> {
        let NewCallback { id, target, at } = &callback;
        let (key, nonce) = (id.subject().key(), id.nonce().cast_signed());
        let statement = self
            .0
            .prepare_cached(
                "INSERT INTO callbacks (bucket, key, nonce, merchant, target, state, queued_at, tries) \
                 VALUES ($1, $2, $3, $4, $5, 0, $6, 0)",
            )
            .await?;
        self.0
            .execute(&statement, &[&bucket_in_key(key), &key, &nonce, &target.merchant(), &target.origin(), &at.0])
            .await?;
        let task = NewTask { kind: TaskKind::Callback, key, queue: target.as_queue(), queued_at: *at, due_at: *at };
        self.put_task(task).await
    }

    async fn locked_callback(&mut self, subject: CallbackSubject) -> Result<Option<CallbackRow>, PgError> {
        let statement = self.0.prepare_cached(LOCKED).await?;
        let key = subject.key();
        let Some(row) = self.0.query_opt(&statement, &[&bucket_in_key(key), &key]).await? else { return Ok(None) };
        Ok(Some(CallbackRow {
            subject,
            nonce: get(&row, 0)?,
            state: state_of(small(&row, 1)?).ok_or(CorruptRow("state"))?,
            target: CallbackTarget::of_queue(get::<String>(&row, 2)?),
            queued_at: UnixMillis(get(&row, 3)?),
            tries: get(&row, 4)?,
            task: tasks::locked(self.0, TaskKind::Callback, key).await?,
        }))
    }

    async fn insert_try(&mut self, subject: CallbackSubject, number: i64, tried: &CallbackTry) -> Result<(), PgError> {
        let (key, (status, error)) = (subject.key(), columns(&tried.outcome));
        let statement = self
            .0
            .prepare_cached(
                "INSERT INTO callback_tries (bucket, key, number, began_at, duration_us, status, error) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7)",
            )
            .await?;
        self.0
            .execute(&statement, &[&bucket_in_key(key), &key, &number, &tried.at.0, &duration(tried), &status, &error])
            .await?;
        Ok(())
    }

    async fn is_try(&mut self, subject: CallbackSubject, number: i64, tried: &CallbackTry) -> Result<bool, PgError> {
        let (key, (status, error)) = (subject.key(), columns(&tried.outcome));
        let statement = self
            .0
            .prepare_cached(
                "SELECT EXISTS (SELECT FROM callback_tries WHERE bucket = $1 AND key = $2 AND number = $3 \
                 AND began_at = $4 AND duration_us = $5 AND status IS NOT DISTINCT FROM $6::integer \
                 AND error IS NOT DISTINCT FROM $7::text)",
            )
            .await?;
        let found = self
            .0
            .query_one(
                &statement,
                &[&bucket_in_key(key), &key, &number, &tried.at.0, &duration(tried), &status, &error],
            )
            .await?;
        get(&found, 0)
    }

    async fn remove_tries(&mut self, subject: CallbackSubject, until: i64) -> Result<(), PgError> {
        let key = subject.key();
        let statement =
            self.0.prepare_cached("DELETE FROM callback_tries WHERE bucket = $1 AND key = $2 AND number <= $3").await?;
        self.0.execute(&statement, &[&bucket_in_key(key), &key, &until]).await?;
        Ok(())
    }

    async fn set_tried(
        &mut self,
        subject: CallbackSubject,
        state: CallbackState,
        tries: i64,
        outcome: &TryOutcome,
    ) -> Result<(), PgError> {
        let (key, state, (status, error)) = (subject.key(), narrow(state_number(state)), columns(outcome));
        let statement = self
            .0
            .prepare_cached(
                "UPDATE callbacks SET state = $3, tries = $4, last_status = $5, last_error = $6 \
                 WHERE bucket = $1 AND key = $2",
            )
            .await?;
        self.0.execute(&statement, &[&bucket_in_key(key), &key, &state, &tries, &status, &error]).await?;
        Ok(())
    }

    async fn count_try(&mut self, subject: CallbackSubject, tries: i64) -> Result<(), PgError> {
        let key = subject.key();
        let statement = self.0.prepare_cached("UPDATE callbacks SET tries = $3 WHERE bucket = $1 AND key = $2").await?;
        self.0.execute(&statement, &[&bucket_in_key(key), &key, &tries]).await?;
        Ok(())
    }

    async fn set_queued(
        &mut self,
        subject: CallbackSubject,
        target: &CallbackTarget,
        queued_at: UnixMillis,
    ) -> Result<(), PgError> {
        let key = subject.key();
        let statement = self
            .0
            .prepare_cached(
                "UPDATE callbacks SET state = 0, target = $3, queued_at = $4, last_status = NULL, last_error = NULL \
                 WHERE bucket = $1 AND key = $2",
            )
            .await?;
        self.0.execute(&statement, &[&bucket_in_key(key), &key, &target.origin(), &queued_at.0]).await?;
        Ok(())
    }

    async fn late_callbacks(&mut self, expiry: &ExpireRequest) -> Result<Vec<i64>, PgError> {
        let (merchants, origins): (Vec<&str>, Vec<&str>) =
            expiry.targets.iter().map(|target| (target.merchant(), target.origin())).unzip();
        let limit = i64::try_from(expiry.limit).unwrap_or(i64::MAX);
        let statement = self.0.prepare_cached(LATE).await?;
        let rows = self.0.query(&statement, &[&origins, &expiry.queued_until.0, &limit, &merchants]).await?;
        rows.iter().map(|row| get(row, 0)).collect()
    }

    async fn give_up(&mut self, keys: &[i64], reason: &str) -> Result<(), PgError> {
        let buckets: Vec<i16> = keys.iter().map(|key| bucket_in_key(*key)).collect();
        let statement = self.0.prepare_cached(GIVE_UP).await?;
        self.0.execute(&statement, &[&buckets, &keys, &narrow(FAILED), &reason]).await?;
        Ok(())
    }

    async fn queue_failed(&mut self, keys: &[i64], now: UnixMillis) -> Result<usize, PgError> {
        let buckets: Vec<i16> = keys.iter().map(|key| bucket_in_key(*key)).collect();
        let statement = self.0.prepare_cached(QUEUE_FAILED).await?;
        let due = now.0.saturating_sub(self.1);
        let parameters: [&(dyn ToSql + Sync); 6] = [&buckets, &keys, &narrow(FAILED), &now.0, &narrow(PENDING), &due];
        let queued = self.0.execute(&statement, &parameters).await?;
        Ok(usize::try_from(queued).unwrap_or(usize::MAX))
    }

    async fn remove_callback(&mut self, subject: CallbackSubject) -> Result<(), PgError> {
        let key = subject.key();
        // A change of a callback by its name locks its row first.
        if self.locked_callback(subject).await?.is_none() {
            return Ok(());
        }
        self.end_task(TaskKind::Callback, key).await?;
        for sql in [
            "DELETE FROM callback_tries WHERE bucket = $1 AND key = $2",
            "DELETE FROM callbacks WHERE bucket = $1 AND key = $2",
        ] {
            let statement = self.0.prepare_cached(sql).await?;
            self.0.execute(&statement, &[&bucket_in_key(key), &key]).await?;
        }
        Ok(())
    }
}

pub(in crate::store::postgres) const LOCKED: &str = "SELECT nonce, state, merchant || ' ' || target, queued_at, tries \
     FROM callbacks WHERE bucket = $1 AND key = $2 FOR UPDATE";

fn duration(tried: &CallbackTry) -> i64 {
    i64::try_from(tried.duration.as_micros()).unwrap_or(i64::MAX)
}

fn columns(outcome: &TryOutcome) -> (Option<i32>, Option<&str>) {
    let (status, error) = columns_of(outcome);
    (status.map(i32::from), error)
}

/// Read along the index by time, since so old a callback waits for a dead target or has its last attempt.
pub(in crate::store::postgres) const LATE: &str = "SELECT c.key FROM callbacks c \
     LEFT JOIN tasks t ON t.bucket = c.bucket AND t.kind = 1 AND t.key = c.key \
     WHERE c.state = 0 AND c.queued_at <= $2 \
     AND (c.merchant, c.target) IN (SELECT * FROM unnest($4::text[], $1::text[])) AND coalesce(NOT t.leased OR t.due_at <= $2, true) \
     ORDER BY c.queued_at, c.key LIMIT $3 FOR UPDATE OF c SKIP LOCKED";

const GIVE_UP: &str = "WITH given AS (SELECT * FROM unnest($1::smallint[], $2::bigint[]) AS given (bucket, key)), \
     ended AS (DELETE FROM tasks AS t USING given \
     WHERE t.bucket = given.bucket AND t.kind = 1 AND t.key = given.key) \
     UPDATE callbacks AS c SET state = $3, last_status = NULL, last_error = $4 FROM given \
     WHERE c.bucket = given.bucket AND c.key = given.key";

pub(in crate::store::postgres) const QUEUE_FAILED: &str = "WITH own AS MATERIALIZED (SELECT c.bucket, c.key \
     FROM unnest($1::smallint[], $2::bigint[]) AS given (bucket, key) JOIN callbacks c USING (bucket, key) \
     WHERE c.state = $3 ORDER BY c.bucket, c.key FOR UPDATE OF c), \
     queued AS (UPDATE callbacks AS c SET state = $5, queued_at = greatest($4::bigint, c.queued_at + 1), \
     last_status = NULL, last_error = NULL FROM own WHERE c.bucket = own.bucket AND c.key = own.key \
     RETURNING c.bucket, c.key, c.merchant || ' ' || c.target AS queue, c.queued_at) \
     INSERT INTO tasks (bucket, kind, key, queue, queued_at, due_at, leased, attempts) \
     SELECT bucket, 1, key, queue, queued_at, $6, false, 0 FROM queued";
