//! The rows of journal entries, and the lists of them.

use crate::domain::{CallbackUrl, Fingerprint, HistoryQuery, MerchantId, Page, RedirectUrl, ShopCode, UnixMillis};
use crate::store::homes::{self, Home};
use crate::store::pages;
use crate::store::rows::entry::{EntryRow, NewEntry, select_entries};
use crate::store::rows::{direction_number, status_number};
use crate::store::sql::{Columns, CorruptRow, Sql, Transaction, params, sql};
use crate::store::{Backlog, EngineAnswer, EntryId, OperationQuery, PendingCreate, Unanswered};

const INSERT: Sql = sql!(
    "INSERT INTO journal (entry, order_key, direction, state, status, created_at, amount, fingerprint, currency, merchant, \
     order_id, api_key, shop, v1_callback_url, body) \
     VALUES (?1, ?2, ?3, 0, 0, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT DO NOTHING"
);

/// Inserts an open entry with this number, and claims the home of its order. Returns `false`, with nothing inserted, when the
/// order has a home or the number exists.
pub(super) async fn insert<T: Transaction>(tx: &T, new: &NewEntry, id: EntryId) -> Result<bool, T::Error> {
    if !homes::claim(tx, new.order_key, Home::Entry(id)).await? {
        return Ok(false);
    }
    let PendingCreate { merchant, direction, order_id, api_key, amount, currency, shop, created_at, .. } = &new.create;
    let columns = params![
        id.0,
        &new.order_key,
        direction_number(*direction),
        *created_at,
        amount.hundredths().cast_signed(),
        &new.create.fingerprint,
        currency.as_str(),
        merchant,
        order_id.as_str(),
        api_key,
        shop.as_deref().unwrap_or_default(),
        new.create.callback_url.as_ref().map(CallbackUrl::as_str),
        &new.body,
    ];
    let inserted = tx.execute(INSERT, &columns).await? == 1;
    if !inserted {
        homes::release(tx, new.order_key).await?;
    }
    Ok(inserted)
}

pub(in crate::store) const BY_ID: Sql = sql!(select_entries!("FROM journal WHERE entry = ?1"));

/// Reads an entry.
pub(in crate::store) async fn by_id<T: Transaction>(tx: &T, id: EntryId) -> Result<Option<EntryRow>, T::Error> {
    tx.query_opt(BY_ID, &params![id.0], EntryRow::read).await
}

const LOCKED: Sql = sql!(select_entries!("FROM journal WHERE entry = ?1"), postgres adds "FOR UPDATE");

/// Reads and locks an entry.
pub(super) async fn locked<T: Transaction>(tx: &T, id: EntryId) -> Result<Option<EntryRow>, T::Error> {
    tx.query_opt(LOCKED, &params![id.0], EntryRow::read).await
}

/// Reads entries by their numbers; leaves out those that are missing or cannot be read.
pub(in crate::store) async fn by_numbers<T: Transaction>(tx: &T, numbers: &[i64]) -> Result<Vec<EntryRow>, T::Error> {
    let sets: Vec<_> = numbers.iter().map(|number| params![*number]).collect();
    let found = tx.query_each(BY_ID, &sets, |row| Ok(EntryRow::read(row).ok())).await?;
    Ok(found.into_iter().flatten().flatten().collect())
}

pub(in crate::store) const OF_TRANSACTION: Sql = sql!(select_entries!("FROM journal WHERE transaction_id = ?1"));

/// Reads the entry with the engine's `transaction_id`.
pub(super) async fn of_transaction<T: Transaction>(tx: &T, transaction_id: &str) -> Result<Option<EntryRow>, T::Error> {
    tx.query_opt(OF_TRANSACTION, &params![transaction_id], EntryRow::read).await
}

const BELONGS_TO_ANOTHER_ORDER: Sql =
    sql!("SELECT EXISTS (SELECT 1 FROM journal WHERE transaction_id = ?1 AND order_key <> ?2)");

/// Reports whether another order than this one has the engine's `transaction_id`. If another transaction stores it at the same
/// time, one of them fails by the unique index, and is run again.
pub(super) async fn belongs_to_another_order<T: Transaction>(
    tx: &T,
    transaction_id: &str,
    order: Fingerprint,
) -> Result<bool, T::Error> {
    tx.query_value(BELONGS_TO_ANOTHER_ORDER, &params![transaction_id, &order]).await
}

const ANSWER: Sql =
    sql!("UPDATE journal SET state = 2, transaction_id = ?2, redirect_url = ?3, doubted_at = NULL WHERE entry = ?1");

/// Writes the engine's answer to an entry without one.
pub(super) async fn set_answer<T: Transaction>(tx: &T, id: EntryId, answer: &EngineAnswer) -> Result<(), T::Error> {
    let redirect_url = answer.redirect_url.as_ref().map(RedirectUrl::expose);
    tx.execute(ANSWER, &params![id.0, &answer.transaction_id, redirect_url]).await.map(drop)
}

const DOUBT: Sql = sql!("UPDATE journal SET state = ?2, doubted_at = ?3 WHERE entry = ?1");

/// Writes the state of an entry without an answer, and when a request for it was last given up or sent again.
pub(super) async fn set_doubt<T: Transaction>(
    tx: &T,
    id: EntryId,
    state: i64,
    doubted_at: i64,
) -> Result<(), T::Error> {
    tx.execute(DOUBT, &params![id.0, state, doubted_at]).await.map(drop)
}

const RECEIVED: Sql = sql!("UPDATE journal SET shop = ?2, status = ?3, account = ?4 WHERE entry = ?1");

/// Writes the shop, the status and the account of an entry.
pub(super) async fn set_received<T: Transaction>(tx: &T, entry: &EntryRow) -> Result<(), T::Error> {
    tx.execute(RECEIVED, &params![entry.id, &entry.shop, entry.status, &entry.account]).await.map(drop)
}

const REMOVE: Sql = sql!("DELETE FROM journal WHERE entry = ?1");

/// Deletes a locked entry and its home.
pub(super) async fn remove<T: Transaction>(tx: &T, entry: &EntryRow) -> Result<(), T::Error> {
    tx.execute(REMOVE, &params![entry.id]).await?;
    homes::release(tx, Fingerprint(entry.order_key)).await
}

macro_rules! unanswered {
    ($open:literal, $in_doubt:literal, $retried:literal) => {
        concat!(
            "SELECT (SELECT count(*) FROM (SELECT entry FROM journal ",
            $open,
            " WHERE state = 0 LIMIT ?1) AS open), \
             (SELECT created_at FROM journal ",
            $open,
            " WHERE state = 0 ORDER BY entry LIMIT 1), \
             (SELECT count(*) FROM (SELECT entry FROM journal ",
            $in_doubt,
            " WHERE state = 1 LIMIT ?1) AS in_doubt), \
             (SELECT created_at FROM journal ",
            $in_doubt,
            " WHERE state = 1 ORDER BY entry LIMIT 1), \
             (SELECT count(*) FROM (SELECT key FROM tasks ",
            $retried,
            " WHERE kind = 0 AND attempts > 2 LIMIT ?1) AS jobs), \
             (SELECT queued_at FROM tasks ",
            $retried,
            " WHERE kind = 0 AND attempts > 2 ORDER BY queued_at LIMIT 1)"
        )
    };
}

/// Counts open entries, those in doubt and retried jobs, up to a limit each, with the time of the oldest. Partial indexes
/// contain only these.
pub(in crate::store) const UNANSWERED: Sql = sql!(
    sqlite: unanswered!("INDEXED BY journal_open", "INDEXED BY journal_in_doubt", "INDEXED BY tasks_retried"),
    postgres: unanswered!("", "", ""),
);

/// Counts what has no answer, up to `most` of each.
pub(super) async fn unanswered<T: Transaction>(tx: &T, most: u16) -> Result<Unanswered, T::Error> {
    let backlog = |row: &dyn Columns, first: usize| {
        Ok::<_, CorruptRow>(Backlog { count: row.get(first)?, oldest: row.get::<Option<UnixMillis>>(first + 1)? })
    };
    let read = |row: &dyn Columns| {
        Ok(Unanswered { open: backlog(row, 0)?, in_doubt: backlog(row, 2)?, jobs: backlog(row, 4)? })
    };
    Ok(tx.query_opt(UNANSWERED, &params![i64::from(most)], read).await?.unwrap_or_default())
}

/// The partial index `journal_open` contains only these.
pub(in crate::store) const OPEN_AFTER: Sql =
    sql!(select_entries!("FROM journal WHERE state = 0 AND entry > ?1 ORDER BY entry LIMIT ?2"));

/// The number of an entry and its row, or an error if it cannot be read.
pub(super) type NumberedEntry = (i64, Result<EntryRow, CorruptRow>);

/// Reads open entries after a number, ascending.
pub(super) async fn open_after<T: Transaction>(
    tx: &T,
    after: i64,
    limit: usize,
) -> Result<Vec<NumberedEntry>, T::Error> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    tx.query(OPEN_AFTER, &params![after, limit], |row| Ok((row.get(0)?, EntryRow::read(row)))).await
}

/// A page of a merchant's answered entries; positions are times. Parameters: see [`pages::page`].
pub(in crate::store) const PAGE: Sql = sql!(
    select_entries!("FROM (SELECT created_at AS listed_at, entry AS listed_id FROM journal"),
    indexed by "journal_by_v1",
    "WHERE merchant = ?1 AND state = 2 AND created_at BETWEEN ?2 AND ?3 AND (direction = ?4 OR ?4 IS NULL) \
     AND (shop = ?5 OR ?5 IS NULL) AND (currency = ?6 OR ?6 IS NULL) AND (status = ?7 OR ?7 IS NULL) \
     ORDER BY created_at DESC, entry DESC LIMIT ?8 OFFSET ?9) AS page \
     CROSS JOIN journal WHERE entry = listed_id ORDER BY listed_at DESC, listed_id DESC"
);

/// Reads a page of a merchant's answered entries, newest first.
pub(super) async fn answered<T: Transaction>(tx: &T, query: &HistoryQuery) -> Result<Page<EntryRow>, T::Error> {
    let within = query.created_from.map_or(i64::MIN, |at| at.0)..=query.created_to.map_or(i64::MAX, |at| at.0);
    pages::page(tx, PAGE, query, within, None, EntryRow::read).await
}

/// Entries along the primary key. Parameters: the first and the last, merchant, direction, shop and status, each NULL for all;
/// the limit.
pub(in crate::store) const NEWEST: Sql = sql!(select_entries!(
    "FROM journal WHERE entry BETWEEN ?1 AND ?2 AND (merchant = ?3 OR ?3 IS NULL) AND (direction = ?4 OR ?4 IS NULL) \
     AND (shop = ?5 OR ?5 IS NULL) AND (status = ?6 OR ?6 IS NULL) ORDER BY entry DESC LIMIT ?7"
));

/// Reads the entries that match, the newest first.
pub(super) async fn newest<T: Transaction>(tx: &T, query: &OperationQuery) -> Result<Vec<EntryRow>, T::Error> {
    let within = query.within();
    let parameters = params![
        *within.start(),
        *within.end(),
        query.merchant.as_ref().map(MerchantId::as_str),
        query.direction.map(direction_number),
        query.shop.as_ref().map(ShopCode::as_str),
        query.status.map(status_number),
        i64::try_from(query.limit).unwrap_or(i64::MAX),
    ];
    tx.query(NEWEST, &parameters, EntryRow::read).await
}
