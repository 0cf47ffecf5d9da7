//! The list of callbacks, newest first: by `queued_at`, then by the number of their subject.
//!
//! Each state is read along an index in this order, no further than the slice needs, and the database merges the
//! states. Rows are read only for the callbacks that are shown.

use std::time::Duration;

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::types::{FromSql, ToSql};
use tokio_postgres::{IsolationLevel, Row};

use super::subject::bucket_in_key;
use crate::domain::{CallbackUrl, Fingerprint, MerchantId, OrderId, UnixMillis};
use crate::store::backend::{ListedCallback, Scope};
use crate::store::postgres::errors::PgError;
use crate::store::postgres::node::PgNode;
use crate::store::postgres::row::{bucket_of, get, key, narrow};
use crate::store::rows::callback::{outcome_of, state_number, state_of};
use crate::store::rows::{CorruptRow, OrCorrupt, direction_of};
use crate::store::{
    CallbackCursor, CallbackId, CallbackQuery, CallbackRecord, CallbackSubject, CallbackTarget, CallbackTry,
    OutboxSize, StoreError,
};

/// The error of a column with an invalid value.
type Column = &'static str;

/// Runs statements that see the store as of one moment.
async fn at_one_moment<T>(
    node: &PgNode,
    read: impl AsyncFn(&Transaction<'_>) -> Result<T, PgError>,
) -> Result<T, StoreError> {
    node.persist(async |limit| {
        let mut client = node.client_before(limit).await?;
        let moment = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
        let transaction = moment.start().await?;
        let found = read(&transaction).await?;
        transaction.commit().await?;
        Ok(found)
    })
    .await
}

/// Reads a slice of the list, as of one moment.
///
/// # Errors
/// The database does not respond.
pub(in crate::store::postgres) async fn slice_of(
    node: &PgNode,
    query: &CallbackQuery,
    scope: &Scope,
) -> Result<Vec<ListedCallback>, StoreError> {
    at_one_moment(node, async |transaction| {
        let places = found(transaction, query, scope).await?;
        let records = records_at(transaction, &places).await?.into_iter();
        Ok(places.into_iter().zip(records.map(|record| record.map_err(|CorruptRow(column)| column))).collect())
    })
    .await
}

/// Reads the positions of a slice of the list, as of one moment.
///
/// # Errors
/// The database does not respond.
pub(in crate::store::postgres) async fn places(
    node: &PgNode,
    query: &CallbackQuery,
    scope: &Scope,
) -> Result<Vec<CallbackCursor>, StoreError> {
    at_one_moment(node, async |transaction| found(transaction, query, scope).await).await
}

/// Counts the callbacks of a slice of the list, as of one moment, in the database: thousands of positions are not sent.
///
/// # Errors
/// The database does not respond.
pub(in crate::store::postgres) async fn count(
    node: &PgNode,
    query: &CallbackQuery,
    scope: &Scope,
) -> Result<usize, StoreError> {
    at_one_moment(node, async |transaction| {
        let counted =
            rows(transaction, query, scope, |places| format!("SELECT count(*) FROM ({places}) AS places")).await?;
        let count = counted.first().map_or(Ok(0), |row| get::<i64>(row, 0))?;
        Ok(usize::try_from(count).unwrap_or_default())
    })
    .await
}

async fn found(
    transaction: &Transaction<'_>,
    query: &CallbackQuery,
    scope: &Scope,
) -> Result<Vec<CallbackCursor>, PgError> {
    let rows = rows(transaction, query, scope, str::to_owned).await?;
    rows.iter().map(|row| Ok(CallbackCursor { queued_at: UnixMillis(get(row, 0)?), key: get(row, 1)? })).collect()
}

/// Runs what `select` makes of the statement that selects the positions of a slice; no rows if nothing can match.
async fn rows(
    transaction: &Transaction<'_>,
    query: &CallbackQuery,
    scope: &Scope,
    select: fn(&str) -> String,
) -> Result<Vec<Row>, PgError> {
    match scope {
        Scope::Nothing => Ok(Vec::new()),
        Scope::All => slice(transaction, query, &select(ALL), &[]).await,
        Scope::Merchant(merchant) => {
            slice(transaction, query, &select(OF_MERCHANT), &[&bucket_of(merchant), &merchant.as_str()]).await
        }
        Scope::Orders(merchant, orders) => {
            let bucket = bucket_of(merchant);
            let about = keys_of(transaction, bucket, orders).await?;
            slice(transaction, query, &select(OF_ORDERS), &[&bucket, &about]).await
        }
    }
}

/// Returns the numbers of the subjects that orders name.
async fn keys_of(transaction: &Transaction<'_>, bucket: i16, orders: &[Fingerprint; 2]) -> Result<Vec<i64>, PgError> {
    let statement = transaction
        .prepare_cached(
            "SELECT CASE home WHEN 0 THEN ref ELSE -ref END FROM homes \
             WHERE bucket = $1 AND order_key IN ($2, $3) AND home IN (0, 1)",
        )
        .await?;
    let [payin, payout] = orders;
    let rows = transaction.query(&statement, &[&bucket, &key(payin), &key(payout)]).await?;
    rows.iter().map(|row| get(row, 0)).collect()
}

/// The positions of a query's states, each read as far as the slice needs. Parameters: 1 and 2 the position where they
/// end, 3 the time when they begin, 4 the limit, 5 the states, 6 and 7 those of the condition.
macro_rules! places {
    ($condition:literal) => {
        concat!(
            "SELECT place.queued_at, place.key FROM unnest($5::smallint[]) AS wanted (state) CROSS JOIN LATERAL \
             (SELECT queued_at, key FROM callbacks \
             WHERE state = wanted.state AND (queued_at, key) < ($1, $2) AND queued_at >= $3",
            $condition,
            " ORDER BY queued_at DESC, key DESC LIMIT $4) AS place \
             ORDER BY place.queued_at DESC, place.key DESC LIMIT $4"
        )
    };
}

pub(super) const ALL: &str = places!("");
pub(in crate::store::postgres) const OF_MERCHANT: &str = places!(" AND bucket = $6 AND merchant = $7");
pub(in crate::store::postgres) const OF_ORDERS: &str = places!(" AND bucket = $6 AND key = ANY($7)");

async fn slice(
    transaction: &Transaction<'_>,
    query: &CallbackQuery,
    sql: &str,
    condition: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, PgError> {
    let (end, begin) = (query.end(), query.begin().0);
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let states: Vec<i16> = query.states.iter().map(|state| narrow(state_number(*state))).collect();
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&end.queued_at.0, &end.key, &begin, &limit, &states];
    parameters.extend(condition);
    let statement = transaction.prepare_cached(sql).await?;
    Ok(transaction.query(&statement, &parameters).await?)
}

/// Reads the records at positions, in their order; an error is the column with an invalid value.
async fn records_at(
    transaction: &Transaction<'_>,
    places: &[CallbackCursor],
) -> Result<Vec<Result<CallbackRecord, CorruptRow>>, PgError> {
    let keys: Vec<i64> = places.iter().map(|place| place.key).collect();
    let buckets: Vec<i16> = keys.iter().map(|key| bucket_in_key(*key)).collect();
    let statement = transaction.prepare_cached(RECORDS).await?;
    let rows = transaction.query(&statement, &[&buckets, &keys]).await?;
    let mut records: Vec<_> = rows.iter().map(decoded).collect();
    // The subject of the callback is missing.
    records.resize_with(places.len(), || Err(CorruptRow("key")));
    Ok(records)
}

/// The columns of records and their subjects, in the order of [`decoded`]. The limits let the planner know that there
/// is one of each.
pub(super) const RECORDS: &str = "SELECT c.key, c.nonce, c.merchant, c.target, c.state, c.queued_at, \
     coalesce(t.due_at, c.queued_at), coalesce(t.leased, false), c.tries, c.last_status, c.last_error, \
     about.direction, about.order_id, about.url, about.relayed, about.transaction_id \
     FROM unnest($1::smallint[], $2::bigint[]) WITH ORDINALITY AS place (bucket, key, number) \
     JOIN callbacks c ON c.bucket = place.bucket AND c.key = place.key \
     LEFT JOIN tasks t ON t.bucket = place.bucket AND t.kind = 1 AND t.key = place.key CROSS JOIN LATERAL (\
     SELECT x.direction, o.order_id, o.callback_url AS url, x.origin = 2 AS relayed, o.transaction_id::text \
     FROM operations o LEFT JOIN contexts x ON x.bucket = o.bucket AND x.id = o.context \
     WHERE o.bucket = place.bucket AND o.transaction_id = place.key UNION ALL \
     SELECT direction, order_id, v1_callback_url, true, transaction_id \
     FROM journal WHERE bucket = place.bucket AND entry = -place.key LIMIT 1) AS about ORDER BY place.number";

fn decoded(row: &Row) -> Result<CallbackRecord, CorruptRow> {
    fn column<'a, T: FromSql<'a>>(row: &'a Row, at: usize, name: Column) -> Result<T, CorruptRow> {
        row.try_get(at).map_err(|_| CorruptRow(name))
    }
    let number = |at, name| column::<i16>(row, at, name).map(i64::from);
    let text = |at, name| column::<&str>(row, at, name);
    let subject = CallbackSubject::from_key(column(row, 0, "key")?).ok_or(CorruptRow("key"))?;
    let status = column::<Option<i32>>(row, 9, "last_status")?.map(i64::from);
    let outcome = outcome_of(status, column(row, 10, "last_error")?);
    let merchant = MerchantId::new(text(2, "merchant")?).or_corrupt("merchant")?;
    Ok(CallbackRecord {
        id: CallbackId::new(subject, column::<i64>(row, 1, "nonce")?.cast_unsigned()),
        direction: direction_of(number(11, "direction")?).ok_or(CorruptRow("direction"))?,
        order_id: OrderId::new(text(12, "order_id")?).or_corrupt("order_id")?,
        transaction_id: column(row, 15, "transaction_id")?,
        url: CallbackUrl::new_allowing_http(text(13, "callback_url")?).or_corrupt("callback_url")?,
        is_v1: column(row, 14, "relayed")?,
        state: state_of(number(4, "state")?).ok_or(CorruptRow("state"))?,
        target: CallbackTarget::new(&merchant, text(3, "target")?),
        merchant,
        is_claimed: column(row, 7, "leased")?,
        queued_at: UnixMillis(column(row, 5, "queued_at")?),
        due: UnixMillis(column(row, 6, "due_at")?),
        tries: u32::try_from(column::<i64>(row, 8, "tries")?).map_err(|_| CorruptRow("tries"))?,
        last: outcome.map_err(CorruptRow)?,
    })
}

/// Reads a callback with its attempts.
///
/// # Errors
/// The database does not respond, or a column has an invalid value.
pub(in crate::store::postgres) async fn one(
    node: &PgNode,
    key: i64,
) -> Result<Option<(CallbackRecord, Vec<CallbackTry>)>, StoreError> {
    let not_ours = |column| StoreError::Corrupt(format!("the callback of {key}: the column {column} is invalid"));
    at_one_moment(node, async |transaction| {
        let statement = transaction.prepare_cached(RECORDS).await?;
        let found = transaction.query_opt(&statement, &[&vec![bucket_in_key(key)], &vec![key]]).await?;
        let record = found.as_ref().map(decoded).transpose().map_err(|CorruptRow(column)| not_ours(column))?;
        let Some(record) = record else { return Ok(None) };
        Ok(Some((record, tries_of(transaction, key).await?.map_err(not_ours)?)))
    })
    .await
}

/// Decodes a callback's attempts, oldest first; the error is the column with an invalid value.
async fn tries_of(transaction: &Transaction<'_>, key: i64) -> Result<Result<Vec<CallbackTry>, Column>, PgError> {
    let statement = transaction
        .prepare_cached(
            "SELECT began_at, duration_us, status, error FROM callback_tries WHERE bucket = $1 AND key = $2 \
             ORDER BY number",
        )
        .await?;
    let rows = transaction.query(&statement, &[&bucket_in_key(key), &key]).await?;
    rows.iter().map(read_try).collect()
}

fn read_try(row: &Row) -> Result<Result<CallbackTry, Column>, PgError> {
    let (at, duration_us): (_, i64) = (get(row, 0)?, get(row, 1)?);
    let (status, error): (Option<i32>, _) = (get(row, 2)?, get(row, 3)?);
    let decoded = || {
        Ok(CallbackTry {
            at: UnixMillis(at),
            duration: Duration::from_micros(u64::try_from(duration_us).map_err(|_| "duration_us")?),
            outcome: outcome_of(status.map(i64::from), error)?.ok_or("status")?,
        })
    };
    Ok(decoded())
}

/// Counts pending callbacks, with the time of the first, and failed ones. Pending ones are counted by their tasks,
/// among which delivered callbacks leave no rows to skip.
pub(super) const SIZE: &str = "SELECT count(*), min(queued_at), (SELECT count(*) FROM callbacks WHERE state = 2) \
     FROM tasks WHERE kind = 1";

/// Counts pending and failed callbacks.
pub(in crate::store::postgres) async fn size(client: &impl GenericClient) -> Result<OutboxSize, PgError> {
    let statement = client.prepare_cached(SIZE).await?;
    let found = client.query_one(&statement, &[]).await?;
    let count = |at| get::<i64>(&found, at).map(i64::unsigned_abs);
    let oldest = get::<Option<i64>>(&found, 1)?.map(UnixMillis);
    Ok(OutboxSize { pending: count(0)?, failed: count(2)?, oldest })
}
