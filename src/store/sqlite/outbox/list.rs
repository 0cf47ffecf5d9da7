//! The list of callbacks, newest first: by `queued_at`, then by the number of their subject.
//!
//! The callbacks of one state are read along an index, of all merchants or of one; rows are read only for the callbacks
//! that are shown. The states of a query are merged.

use std::cmp::Reverse;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, Rows};

use crate::domain::{CallbackUrl, Fingerprint, MerchantId, OrderId, UnixMillis};
use crate::store::backend::{ListedCallback, Scope};
use crate::store::rows::callback::{outcome_of, state_number, state_of};
use crate::store::rows::{CorruptRow, OrCorrupt, direction_of};
use crate::store::sqlite::lists::at_one_moment;
use crate::store::{
    CallbackCursor, CallbackId, CallbackQuery, CallbackRecord, CallbackState, CallbackSubject, CallbackTarget,
    CallbackTry, OutboxSize,
};

/// The error of a column with an invalid value.
type Column = &'static str;

/// The content of a row, if it exists and is valid.
type Understood<T> = Option<Result<T, Column>>;

/// Reads a slice of the list, as of one moment.
pub(in crate::store::sqlite) fn slice(
    connection: &Connection,
    query: &CallbackQuery,
    scope: &Scope,
) -> rusqlite::Result<Vec<ListedCallback>> {
    at_one_moment(connection, || {
        let places = found(connection, query, scope)?.into_iter();
        places.map(|place| Ok((place, record(connection, place.key)?.unwrap_or(Err("key"))))).collect()
    })
}

/// Reads the positions of a slice of the list, as of one moment.
pub(in crate::store::sqlite) fn places(
    connection: &Connection,
    query: &CallbackQuery,
    scope: &Scope,
) -> rusqlite::Result<Vec<CallbackCursor>> {
    at_one_moment(connection, || found(connection, query, scope))
}

fn found(connection: &Connection, query: &CallbackQuery, scope: &Scope) -> rusqlite::Result<Vec<CallbackCursor>> {
    let mut places = match scope {
        Scope::Nothing => Vec::new(),
        Scope::Orders(_, keys) => of_orders(connection, query, keys)?,
        // Skipped callbacks cost no row.
        Scope::All | Scope::Merchant(_) => {
            let mut places = Vec::new();
            for state in [CallbackState::Pending, CallbackState::Delivered, CallbackState::Failed] {
                if query.states.contains(&state) {
                    along(connection, query, state, &mut places)?;
                }
            }
            places
        }
    };
    places.sort_unstable_by_key(|place| Reverse(*place));
    places.truncate(query.limit);
    Ok(places)
}

/// Reads positions along an index, so that what is left out costs no row.
macro_rules! select_places {
    ($rest:literal) => {
        concat!("SELECT queued_at, key FROM callbacks INDEXED BY ", $rest)
    };
}

/// Callbacks in a state that were queued at the time of a position, before it; newest first. Thousands may be queued at
/// one time, and SQLite would not seek a position among them if it were compared as a whole.
pub(in crate::store::sqlite) const OF_ITS_TIME: &str =
    select_places!("callbacks_by_time WHERE state = ?1 AND queued_at = ?2 AND key < ?3 ORDER BY key DESC");

/// Callbacks in a state that were queued before a time, newest first.
pub(in crate::store::sqlite) const BEFORE_ITS_TIME: &str =
    select_places!("callbacks_by_time WHERE state = ?1 AND queued_at < ?2 ORDER BY queued_at DESC, key DESC");

/// As [`OF_ITS_TIME`], of one merchant.
pub(in crate::store::sqlite) const OF_ITS_TIME_AND_MERCHANT: &str = select_places!(
    "callbacks_by_merchant WHERE merchant = ?4 AND state = ?1 AND queued_at = ?2 AND key < ?3 ORDER BY key DESC"
);

/// As [`BEFORE_ITS_TIME`], of one merchant.
pub(in crate::store::sqlite) const BEFORE_ITS_TIME_OF_MERCHANT: &str = select_places!(
    "callbacks_by_merchant WHERE merchant = ?3 AND state = ?1 AND queued_at < ?2 ORDER BY queued_at DESC, key DESC"
);

/// Adds the newest callbacks of a state.
fn along(
    connection: &Connection,
    query: &CallbackQuery,
    state: CallbackState,
    places: &mut Vec<CallbackCursor>,
) -> rusqlite::Result<()> {
    let (end, number) = (query.end(), state_number(state));
    let most = places.len().saturating_add(query.limit);
    let prepared = |sql| connection.prepare_cached(sql);
    match query.merchant.as_ref().map(MerchantId::as_str) {
        None => {
            take(prepared(OF_ITS_TIME)?.query((number, end.queued_at.0, end.key))?, query, most, places)?;
            take(prepared(BEFORE_ITS_TIME)?.query((number, end.queued_at.0))?, query, most, places)
        }
        Some(merchant) => {
            let at_end = (number, end.queued_at.0, end.key, merchant);
            take(prepared(OF_ITS_TIME_AND_MERCHANT)?.query(at_end)?, query, most, places)?;
            let before = (number, end.queued_at.0, merchant);
            take(prepared(BEFORE_ITS_TIME_OF_MERCHANT)?.query(before)?, query, most, places)
        }
    }
}

/// Adds rows of the query's time, until there are `most` positions.
fn take(
    mut rows: Rows<'_>,
    query: &CallbackQuery,
    most: usize,
    places: &mut Vec<CallbackCursor>,
) -> rusqlite::Result<()> {
    let begin = query.begin();
    while places.len() < most {
        let Some(row) = rows.next()? else { break };
        let place = CallbackCursor { queued_at: UnixMillis(row.get(0)?), key: row.get(1)? };
        if place.queued_at < begin {
            break;
        }
        places.push(place);
    }
    Ok(())
}

/// The callbacks of orders: there are at most two for each.
fn of_orders(
    connection: &Connection,
    query: &CallbackQuery,
    keys: &[Fingerprint],
) -> rusqlite::Result<Vec<CallbackCursor>> {
    let mut statement = connection.prepare_cached(OF_ORDER)?;
    let (end, begin) = (query.end(), query.begin());
    let mut places = Vec::new();
    for key in keys {
        let mut rows = statement.query([key.0])?;
        while let Some(row) = rows.next()? {
            let place = CallbackCursor { queued_at: UnixMillis(row.get(0)?), key: row.get(1)? };
            let state = state_of(row.get(2)?);
            if state.is_some_and(|state| query.states.contains(&state)) && place < end && place.queued_at >= begin {
                places.push(place);
            }
        }
    }
    Ok(places)
}

pub(in crate::store::sqlite) const OF_ORDER: &str = "SELECT queued_at, key, state FROM callbacks WHERE key = \
     (SELECT CASE home WHEN 0 THEN ref ELSE -ref END FROM homes WHERE order_key = ?1 AND home IN (0, 1))";

/// The columns of a record and its subject, in the order of [`decoded`].
macro_rules! select {
    ($about:literal) => {
        concat!(
            "SELECT c.key, c.nonce, c.merchant, c.target, c.state, c.queued_at, coalesce(t.due_at, c.queued_at), \
             coalesce(t.leased, 0), c.tries, \
             c.last_status, c.last_error, ",
            $about,
            " LEFT JOIN tasks t ON t.kind = 1 AND t.key = c.key WHERE c.key = ?1"
        )
    };
}

const OF_OPERATION: &str = select!(
    "x.direction, o.order_id, o.callback_url, x.origin = 2, CAST(o.transaction_id AS TEXT) \
     FROM callbacks c JOIN operations o ON o.transaction_id = c.key LEFT JOIN contexts x ON x.id = o.context"
);

const OF_ENTRY: &str = select!(
    "j.direction, j.order_id, j.v1_callback_url, 1, j.transaction_id \
     FROM callbacks c JOIN journal j ON j.entry = -c.key"
);

/// Decodes the record of a callback; the error is the column with an invalid value.
fn record(connection: &Connection, key: i64) -> rusqlite::Result<Understood<CallbackRecord>> {
    let select = if key < 0 { OF_ENTRY } else { OF_OPERATION };
    let read = connection.prepare_cached(select)?.query_row([key], |row| Ok(decoded(row)));
    Ok(read.optional()?.map(|decoded| decoded.map_err(|CorruptRow(column)| column)))
}

fn decoded(row: &Row<'_>) -> Result<CallbackRecord, CorruptRow> {
    fn column<T: rusqlite::types::FromSql>(row: &Row<'_>, at: usize, name: Column) -> Result<T, CorruptRow> {
        row.get(at).map_err(|_| CorruptRow(name))
    }
    let subject = CallbackSubject::from_key(column(row, 0, "key")?).ok_or(CorruptRow("key"))?;
    let text = |at, name| column::<String>(row, at, name);
    let outcome = outcome_of(column(row, 9, "last_status")?, column(row, 10, "last_error")?);
    let merchant = MerchantId::new(&text(2, "merchant")?).or_corrupt("merchant")?;
    Ok(CallbackRecord {
        id: CallbackId::new(subject, column::<i64>(row, 1, "nonce")?.cast_unsigned()),
        direction: direction_of(column(row, 11, "direction")?).ok_or(CorruptRow("direction"))?,
        order_id: OrderId::new(&text(12, "order_id")?).or_corrupt("order_id")?,
        transaction_id: column(row, 15, "transaction_id")?,
        url: CallbackUrl::new_allowing_http(&text(13, "callback_url")?).or_corrupt("callback_url")?,
        is_v1: column(row, 14, "relayed")?,
        state: state_of(column(row, 4, "state")?).ok_or(CorruptRow("state"))?,
        target: CallbackTarget::new(&merchant, &text(3, "target")?),
        merchant,
        is_claimed: column(row, 7, "leased")?,
        queued_at: UnixMillis(column(row, 5, "queued_at")?),
        due: UnixMillis(column(row, 6, "due_at")?),
        tries: column(row, 8, "tries")?,
        last: outcome.map_err(CorruptRow)?,
    })
}

/// Reads a callback with its attempts.
pub(in crate::store::sqlite) fn one(
    connection: &Connection,
    key: i64,
) -> rusqlite::Result<Understood<(CallbackRecord, Vec<CallbackTry>)>> {
    at_one_moment(connection, || {
        Ok(match record(connection, key)? {
            Some(Ok(record)) => Some(tries_of(connection, key)?.map(|tries| (record, tries))),
            Some(Err(column)) => Some(Err(column)),
            None => None,
        })
    })
}

/// Decodes a callback's attempts, oldest first; the error is the column with an invalid value.
fn tries_of(connection: &Connection, key: i64) -> rusqlite::Result<Result<Vec<CallbackTry>, Column>> {
    connection
        .prepare_cached(
            "SELECT began_at, duration_us, status, error FROM callback_tries WHERE key = ?1 ORDER BY number",
        )?
        .query_map([key], read_try)?
        .collect()
}

fn read_try(row: &Row<'_>) -> rusqlite::Result<Result<CallbackTry, Column>> {
    let (at, duration_us, status, error): (_, i64, _, _) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
    let decoded = || {
        Ok(CallbackTry {
            at: UnixMillis(at),
            duration: Duration::from_micros(u64::try_from(duration_us).map_err(|_| "duration_us")?),
            outcome: outcome_of(status, error)?.ok_or("status")?,
        })
    };
    Ok(decoded())
}

/// Reads the number of callbacks in a state, and the time of the first.
pub(in crate::store::sqlite) const SIZE: &str =
    "SELECT count(*), min(queued_at) FROM callbacks INDEXED BY callbacks_by_time WHERE state = ?1";

/// Counts pending and failed callbacks along their index.
pub(in crate::store::sqlite) fn size(connection: &Connection) -> rusqlite::Result<OutboxSize> {
    at_one_moment(connection, || {
        let mut size = connection.prepare_cached(SIZE)?;
        let mut of = |state| {
            size.query_row([state_number(state)], |row| Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?)))
        };
        let (pending, oldest) = of(CallbackState::Pending)?;
        let (failed, _): (_, Option<i64>) = of(CallbackState::Failed)?;
        Ok(OutboxSize { pending, failed, oldest: oldest.map(UnixMillis) })
    })
}
