//! The queues: one a target, each in the order in which its callbacks are due. They are of all nodes: a claim takes
//! rows that nobody else is taking.

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::Row;

use super::standing::Standing;
use super::subject::bucket_in_key;
use crate::domain::UnixMillis;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::row::{get, narrow};
use crate::store::rows::callback::{FAILED, target_of};
use crate::store::transaction::NewCallback;
use crate::store::{
    CallbackClaim, CallbackId, CallbackLease, CallbackQueue, CallbackSubject, CallbackTarget, Expiry, StoreError,
};

/// Queues a callback, due at once. It fails when its subject has one.
pub(in crate::store::postgres) async fn queue_callback(
    transaction: &Transaction<'_>,
    callback: &NewCallback<'_>,
) -> Result<(), Fault> {
    let NewCallback { id, merchant, target, at } = callback;
    let (key, nonce) = (id.subject().key(), id.nonce().cast_signed());
    let statement = transaction.prepare_cached(QUEUE).await?;
    let queued = transaction.execute(&statement, &[&bucket_in_key(key), &key, &nonce, merchant, target, &at.0]).await?;
    if queued == 1 { Ok(()) } else { Err(Fault::Said(StoreError::Corrupt(format!("{id}: it was told")))) }
}

/// The key of `callbacks` refuses what waits, the condition what was told.
const QUEUE: &str = "INSERT INTO callbacks \
     (bucket, key, nonce, merchant, target, queued_at, due_at, leased, attempts, tries) \
     SELECT $1::smallint, $2::bigint, $3::bigint, $4::text, $5::text, $6::bigint, $6, false, 0, 0 \
     WHERE NOT EXISTS (SELECT FROM callbacks_told WHERE bucket = $1 AND key = $2)";

/// The targets with pending callbacks: one step of the index a target, however many callbacks wait.
pub(super) async fn queues(client: &impl GenericClient) -> Result<Vec<CallbackQueue>, Fault> {
    let statement = client.prepare_cached(QUEUES).await?;
    let rows = client.query(&statement, &[]).await?;
    rows.iter()
        .map(|row| {
            Ok(CallbackQueue { target: target_of(get(row, 0)?), due: UnixMillis(get(row, 1)?), tried: get(row, 2)? })
        })
        .collect()
}

pub(super) const QUEUES: &str = "WITH RECURSIVE queue AS (\
    (SELECT target, due_at, attempts > 0 FROM callbacks ORDER BY target, due_at, key LIMIT 1) UNION ALL \
    SELECT next.* FROM queue CROSS JOIN LATERAL \
    (SELECT target, due_at, attempts > 0 FROM callbacks WHERE target > queue.target \
    ORDER BY target, due_at, key LIMIT 1) AS next) \
    SELECT * FROM queue";

/// A claimed callback, before what it is about was read.
pub(super) struct Due {
    pub(super) bucket: i16,
    pub(super) key: i64,
    pub(super) nonce: i64,
    pub(super) target: CallbackTarget,
    pub(super) attempts: u32,
    pub(super) queued_at: UnixMillis,
}

impl Due {
    fn read(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            bucket: get(row, 0)?,
            key: get(row, 1)?,
            nonce: get(row, 2)?,
            target: target_of(get(row, 3)?),
            attempts: u32::try_from(get::<i32>(row, 4)?).unwrap_or(0),
            queued_at: UnixMillis(get(row, 5)?),
        })
    }
}

/// Takes what is due of each target, earliest first, and leases it.
pub(super) async fn claim(client: &impl GenericClient, claim: &CallbackClaim) -> Result<Vec<Due>, Fault> {
    let targets: Vec<&str> = claim.shares.iter().map(|(target, _)| target.as_str()).collect();
    let shares: Vec<i64> = claim.shares.iter().map(|(_, share)| i64::try_from(*share).unwrap_or(i64::MAX)).collect();
    let together = shares.iter().fold(0_i64, |sum, share| sum.saturating_add(*share));
    let statement = client.prepare_cached(CLAIM).await?;
    let rows = client.query(&statement, &[&targets, &shares, &claim.now.0, &claim.lease_until.0, &together]).await?;
    rows.iter().map(Due::read).collect()
}

/// The sum of the shares takes nothing away: it tells the planner how few rows these are.
pub(super) const CLAIM: &str = "WITH due AS MATERIALIZED (SELECT next.*, share.number \
     FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS share (target, most, number) CROSS JOIN LATERAL \
     (SELECT bucket, key, due_at FROM callbacks WHERE target = share.target AND due_at <= $3 \
     ORDER BY due_at, key LIMIT share.most FOR UPDATE SKIP LOCKED) AS next LIMIT $5), \
     taken AS (UPDATE callbacks AS c SET due_at = $4, leased = true, attempts = c.attempts + 1 FROM due \
     WHERE c.bucket = due.bucket AND c.key = due.key \
     RETURNING c.bucket, c.key, c.nonce, c.target, c.attempts - 1 AS attempts, c.queued_at, due.number, due.due_at) \
     SELECT bucket, key, nonce, target, attempts, queued_at FROM taken ORDER BY number, due_at, key";

/// Ends the lease of callbacks that cannot be read.
pub(super) async fn put_off(
    client: &impl GenericClient,
    unreadable: &[(i16, i64)],
    lease_until: UnixMillis,
    until: UnixMillis,
) -> Result<(), Fault> {
    let (buckets, keys): (Vec<i16>, Vec<i64>) = unreadable.iter().copied().unzip();
    let statement = client.prepare_cached(PUT_OFF).await?;
    client.execute(&statement, &[&buckets, &keys, &lease_until.0, &until.0]).await?;
    Ok(())
}

/// Whatever somebody else holds or has claimed since is not ours any more.
const PUT_OFF: &str = "WITH own AS MATERIALIZED (SELECT c.bucket, c.key \
     FROM unnest($1::smallint[], $2::bigint[]) AS given (bucket, key) JOIN callbacks c USING (bucket, key) \
     WHERE c.leased AND c.due_at = $3 FOR UPDATE OF c SKIP LOCKED) \
     UPDATE callbacks AS c SET due_at = $4, leased = false FROM own WHERE c.bucket = own.bucket AND c.key = own.key";

/// Ends a lease with another time to be due at.
pub(super) async fn postpone(client: &impl GenericClient, lease: CallbackLease, due: UnixMillis) -> Result<(), Fault> {
    let (key, nonce) = (lease.id.subject().key(), lease.id.nonce().cast_signed());
    let (queued_at, attempt) = (lease.queued_at.0, lease.attempt());
    let statement = client
        .prepare_cached(
            "UPDATE callbacks SET due_at = $6, leased = false WHERE bucket = $1 AND key = $2 AND nonce = $3 AND leased \
             AND queued_at = $4 AND attempts = $5::bigint",
        )
        .await?;
    client.execute(&statement, &[&bucket_in_key(key), &key, &nonce, &queued_at, &attempt, &due.0]).await?;
    Ok(())
}

/// Moves a callback from the engine's queue to the one of its merchant's target, where its time begins; whether it did.
pub(super) async fn ready(
    client: &impl GenericClient,
    id: CallbackId,
    target: &str,
    now: UnixMillis,
) -> Result<bool, Fault> {
    let key = id.subject().key();
    let statement = client
        .prepare_cached(
            "UPDATE callbacks SET target = $4, queued_at = greatest($6, queued_at + 1), due_at = $6, leased = false, \
             attempts = 0 WHERE bucket = $1 AND key = $2 AND nonce = $3 AND target = $5",
        )
        .await?;
    let (nonce, engine) = (id.nonce().cast_signed(), CallbackTarget::Engine.as_str());
    let changed = client.execute(&statement, &[&bucket_in_key(key), &key, &nonce, &target, &engine, &now.0]).await?;
    Ok(changed == 1)
}

/// Removes a claimed callback of an entry with its tries, unless it was announced anew or claimed by somebody else since.
/// An operation's result is always told.
pub(super) async fn remove(transaction: &Transaction<'_>, lease: CallbackLease) -> Result<(), Fault> {
    let CallbackSubject::Entry(_) = lease.id.subject() else { return Ok(()) };
    if !Standing::of(transaction, lease.id).await?.is_some_and(|standing| standing.is_leased_for(lease)) {
        return Ok(());
    }
    let key = lease.id.subject().key();
    for sql in [
        "DELETE FROM callbacks WHERE bucket = $1 AND key = $2",
        "DELETE FROM callback_tries WHERE bucket = $1 AND key = $2",
    ] {
        let statement = transaction.prepare_cached(sql).await?;
        transaction.execute(&statement, &[&bucket_in_key(key), &key]).await?;
    }
    Ok(())
}

/// Gives up what was queued until a time for some targets and what nobody is at: a lease that ended by then was
/// somebody's who is gone. What another node changes at this moment is left to it.
pub(super) async fn expire(client: &impl GenericClient, expiry: &Expiry) -> Result<usize, Fault> {
    let targets: Vec<&str> = expiry.targets.iter().map(CallbackTarget::as_str).collect();
    let limit = i64::try_from(expiry.limit).unwrap_or(i64::MAX);
    let statement = client.prepare_cached(EXPIRE).await?;
    let expired = client
        .execute(&statement, &[&targets, &expiry.queued_until.0, &limit, &narrow(FAILED), &expiry.reason])
        .await?;
    Ok(usize::try_from(expired).unwrap_or(usize::MAX))
}

/// Along the index by time, since what is so old waits behind a dead target or has its last try.
pub(super) const EXPIRE: &str = "WITH late AS MATERIALIZED (SELECT bucket, key FROM callbacks \
     WHERE queued_at <= $2 AND target = ANY($1::text[]) AND (NOT leased OR due_at <= $2) \
     ORDER BY queued_at, key LIMIT $3 FOR UPDATE SKIP LOCKED), \
     gone AS (DELETE FROM callbacks AS c USING late WHERE c.bucket = late.bucket AND c.key = late.key RETURNING c.*) \
     INSERT INTO callbacks_told \
     (bucket, key, nonce, queued_at, due_at, attempts, tries, state, last_error, merchant, target) \
     SELECT bucket, key, nonce, queued_at, due_at, attempts, tries, $4::smallint, $5::text, merchant, target FROM gone";
