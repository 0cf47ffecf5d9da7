//! The list of callbacks, newest first: by `queued_at`, then by the number of their subject.
//!
//! The callbacks of one state are read along an index, of all merchants or of one, no further than the slice needs; rows are
//! read only for the callbacks that are shown. The states of a query are merged.

use std::cmp::Reverse;
use std::time::Duration;

use crate::domain::{CallbackUrl, Fingerprint, MerchantId, OrderId};
use crate::store::rows::callback::{outcome_of, state_number, state_of};
use crate::store::rows::context::OF_V1_RELAYED;
use crate::store::rows::{CorruptRow, OrCorrupt, direction_of};
use crate::store::sql::{Columns, Parameter, Sql, Transaction, params, sql};
use crate::store::tasks::{LEASED, WAITING};
use crate::store::{
    CallbackCursor, CallbackId, CallbackQuery, CallbackRecord, CallbackSubject, CallbackTarget, CallbackTry, OutboxSize,
};

/// The callbacks that a query covers.
#[derive(Debug, Clone)]
pub(in crate::store) enum Scope {
    All,
    Merchant(MerchantId),
    /// Those of the orders with these keys.
    Orders([Fingerprint; 2]),
    Nothing,
}

/// A position in the list of callbacks with its record, or the column with an invalid value.
pub(in crate::store) type ListedCallback = (CallbackCursor, Result<CallbackRecord, CorruptRow>);

/// Reads a slice of the list.
pub(in crate::store) async fn slice<T: Transaction>(
    tx: &T,
    query: &CallbackQuery,
    scope: &Scope,
) -> Result<Vec<ListedCallback>, T::Error> {
    let places = places(tx, query, scope).await?;
    let sets: Vec<_> = places.iter().map(|place| params![place.key]).collect();
    let records = tx.query_each(RECORD, &sets, |row| Ok(record(row))).await?.into_iter();
    let records = records.map(|found| found.into_iter().next().unwrap_or(Err(CorruptRow::new("key"))));
    Ok(places.into_iter().zip(records).collect())
}

/// Reads the positions of a slice of the list.
pub(in crate::store) async fn places<T: Transaction>(
    tx: &T,
    query: &CallbackQuery,
    scope: &Scope,
) -> Result<Vec<CallbackCursor>, T::Error> {
    let mut places = match scope {
        Scope::Nothing => Vec::new(),
        Scope::Orders(keys) => of_orders(tx, query, keys).await?,
        Scope::All => along(tx, query, [AT_ITS_TIME, BEFORE_ITS_TIME], None).await?,
        Scope::Merchant(merchant) => {
            along(tx, query, [AT_ITS_TIME_OF_MERCHANT, BEFORE_ITS_TIME_OF_MERCHANT], Some(merchant)).await?
        }
    };
    places.sort_unstable_by_key(|place| Reverse(*place));
    places.truncate(query.limit);
    Ok(places)
}

/// Callbacks in a state that were queued at the time of a position, before it; newest first. Thousands may be queued at one
/// time, and SQLite would not seek a position among them if it were compared as a whole.
pub(in crate::store) const AT_ITS_TIME: Sql = sql!(
    "SELECT queued_at, key FROM callbacks", indexed by "callbacks_by_time",
    "WHERE state = ?1 AND queued_at = ?2 AND key < ?3 ORDER BY key DESC LIMIT ?4"
);

/// Callbacks in a state that were queued before a time, and not before another; newest first.
pub(in crate::store) const BEFORE_ITS_TIME: Sql = sql!(
    "SELECT queued_at, key FROM callbacks", indexed by "callbacks_by_time",
    "WHERE state = ?1 AND queued_at < ?2 AND queued_at >= ?3 ORDER BY queued_at DESC, key DESC LIMIT ?4"
);

/// As [`AT_ITS_TIME`], of one merchant.
pub(in crate::store) const AT_ITS_TIME_OF_MERCHANT: Sql = sql!(
    "SELECT queued_at, key FROM callbacks", indexed by "callbacks_by_merchant",
    "WHERE merchant = ?5 AND state = ?1 AND queued_at = ?2 AND key < ?3 ORDER BY key DESC LIMIT ?4"
);

/// As [`BEFORE_ITS_TIME`], of one merchant.
pub(in crate::store) const BEFORE_ITS_TIME_OF_MERCHANT: Sql = sql!(
    "SELECT queued_at, key FROM callbacks", indexed by "callbacks_by_merchant",
    "WHERE merchant = ?5 AND state = ?1 AND queued_at < ?2 AND queued_at >= ?3 \
     ORDER BY queued_at DESC, key DESC LIMIT ?4"
);

/// Reads the newest callbacks of each of the query's states.
async fn along<T: Transaction>(
    tx: &T,
    query: &CallbackQuery,
    [at_its_time, before_its_time]: [Sql; 2],
    merchant: Option<&MerchantId>,
) -> Result<Vec<CallbackCursor>, T::Error> {
    let (end, begin) = (query.end(), query.begin());
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let mut places = Vec::new();
    for state in &query.states {
        let state = state_number(*state);
        if end.at >= begin {
            let parameters = with(params![state, end.at, end.key, limit], merchant);
            places.extend(tx.query(at_its_time, &parameters, place).await?);
        }
        let parameters = with(params![state, end.at, begin, limit], merchant);
        places.extend(tx.query(before_its_time, &parameters, place).await?);
    }
    Ok(places)
}

fn with<'a>(parameters: [Parameter<'a>; 4], merchant: Option<&'a MerchantId>) -> Vec<Parameter<'a>> {
    parameters.into_iter().chain(merchant.map(Parameter::from)).collect()
}

fn place(row: &dyn Columns) -> Result<CallbackCursor, CorruptRow> {
    Ok(CallbackCursor { at: row.get(0)?, key: row.get(1)? })
}

pub(in crate::store) const OF_ORDER: Sql = sql!(
    "SELECT queued_at, key, state FROM callbacks WHERE key = \
     (SELECT CASE home WHEN 0 THEN ref ELSE -ref END FROM homes WHERE order_key = ?1 AND home IN (0, 1))"
);

/// The callbacks of orders: each has one at most.
async fn of_orders<T: Transaction>(
    tx: &T,
    query: &CallbackQuery,
    keys: &[Fingerprint],
) -> Result<Vec<CallbackCursor>, T::Error> {
    let (end, begin) = (query.end(), query.begin());
    let sets: Vec<_> = keys.iter().map(|key| params![key]).collect();
    let found = tx.query_each(OF_ORDER, &sets, |row| Ok((place(row)?, state_of(row.get(2)?)))).await?;
    let is_wanted = |(place, state): &(CallbackCursor, _)| {
        let has_state = matches!(state, Some(state) if query.states.contains(state));
        has_state && *place < end && place.at >= begin
    };
    Ok(found.into_iter().flatten().filter(is_wanted).map(|(place, _)| place).collect())
}

/// Selects callbacks, each with its task and its subject, in the order of [`record`]; the subject's shop follows.
macro_rules! select_callbacks {
    ($rest:literal) => {
        concat!(
            "SELECT c.key, c.nonce, c.merchant, c.target, c.state, c.queued_at, coalesce(t.due_at, c.queued_at), \
             coalesce(t.state, 0), c.tries, c.last_status, c.last_error, coalesce(x.direction, j.direction), \
             coalesce(o.order_id, j.order_id), coalesce(o.callback_url, j.v1_callback_url), x.origin, \
             j.transaction_id, coalesce(x.shop, j.shop) \
             FROM callbacks c LEFT JOIN tasks t ON t.kind = 1 AND t.key = c.key \
             LEFT JOIN operations o ON o.transaction_id = c.key LEFT JOIN contexts x ON x.id = o.context \
             LEFT JOIN journal j ON j.entry = -c.key ",
            $rest
        )
    };
}
pub(in crate::store) use select_callbacks;

/// The column of the shop behind those of [`record`].
pub(in crate::store) const SHOP_OF_CALLBACK: usize = 16;

pub(in crate::store) const RECORD: Sql = sql!(select_callbacks!("WHERE c.key = ?1"));

/// Decodes the record of a callback.
pub(in crate::store) fn record(row: &dyn Columns) -> Result<CallbackRecord, CorruptRow> {
    let subject = CallbackSubject::from_key(row.get(0)?).ok_or(CorruptRow::new("key"))?;
    let merchant = MerchantId::new(&row.get::<Box<str>>(2)?).or_corrupt("merchant")?;
    // The subject is missing.
    let direction = row.integer(11)?.ok_or(CorruptRow::new("key"))?;
    let (is_v1, transaction_id) = match subject {
        CallbackSubject::Operation(id) => (row.get::<i64>(14)? == OF_V1_RELAYED, Some(id.to_string().into())),
        CallbackSubject::Entry(_) => (true, row.get(15)?),
    };
    Ok(CallbackRecord {
        id: CallbackId::new(subject, row.get::<i64>(1)?.cast_unsigned()),
        direction: direction_of(direction).ok_or(CorruptRow::new("direction"))?,
        order_id: OrderId::new(&row.get::<Box<str>>(12)?).or_corrupt("order_id")?,
        transaction_id,
        url: CallbackUrl::new_allowing_http(&row.get::<Box<str>>(13)?).or_corrupt("callback_url")?,
        is_v1,
        state: state_of(row.get(4)?).ok_or(CorruptRow::new("state"))?,
        target: CallbackTarget::new(&merchant, &row.get::<Box<str>>(3)?),
        merchant,
        is_claimed: match row.get(7)? {
            WAITING => false,
            LEASED => true,
            _ => return Err(CorruptRow::new("tasks.state")),
        },
        queued_at: row.get(5)?,
        due: row.get(6)?,
        tries: row.get(8)?,
        last: outcome_of(row.get(9)?, row.get(10)?).map_err(CorruptRow::new)?,
    })
}

const TRIES: Sql =
    sql!("SELECT began_at, duration_us, status, error FROM callback_tries WHERE key = ?1 ORDER BY number");

/// Reads a callback with its tries, oldest first.
pub(in crate::store) async fn one<T: Transaction>(
    tx: &T,
    subject: CallbackSubject,
) -> Result<Option<(CallbackRecord, Vec<CallbackTry>)>, T::Error> {
    let parameters = params![subject.key()];
    let Some(record) = tx.query_opt(RECORD, &parameters, record).await? else { return Ok(None) };
    Ok(Some((record, tx.query(TRIES, &parameters, read_try).await?)))
}

fn read_try(row: &dyn Columns) -> Result<CallbackTry, CorruptRow> {
    let duration_us: u64 = row.get(1)?;
    let outcome = outcome_of(row.get(2)?, row.get(3)?).map_err(CorruptRow::new)?;
    Ok(CallbackTry {
        at: row.get(0)?,
        duration: Duration::from_micros(duration_us),
        outcome: outcome.ok_or(CorruptRow::new("status"))?,
    })
}

/// Pending and failed callbacks, up to a bound, with the time of the first pending one. Pending ones are counted by their
/// tasks, among which delivered callbacks leave no rows to skip.
pub(in crate::store) const SIZE: Sql = sql!(
    "SELECT (SELECT count(*) FROM (SELECT key FROM tasks WHERE kind = 1 LIMIT ?1) AS pending), \
     (SELECT count(*) FROM (SELECT key FROM callbacks WHERE state = 2 LIMIT ?1) AS failed), \
     (SELECT queued_at FROM callbacks WHERE state = 0 ORDER BY queued_at, key LIMIT 1)"
);

/// Counts pending and failed callbacks, each up to [`OutboxSize::MAX_COUNTED`].
pub(in crate::store) async fn size<T: Transaction>(tx: &T) -> Result<OutboxSize, T::Error> {
    let bound = params![i64::from(OutboxSize::MAX_COUNTED)];
    let read = |row: &dyn Columns| Ok(OutboxSize { pending: row.get(0)?, failed: row.get(1)?, oldest: row.get(2)? });
    Ok(tx.query_opt(SIZE, &bound, read).await?.unwrap_or_default())
}
