//! Journal entries as rows of SQLite: see [`rows::entry`](crate::store::rows::entry) for their meaning.

use rusqlite::{Connection, OptionalExtension, Row, named_params};

use crate::domain::{CallbackUrl, Status, UnixMillis};
use crate::store::rows::entry::OPEN;
pub(super) use crate::store::rows::entry::{EntryRow, NewEntry};
use crate::store::rows::{direction_number, status_number};
use crate::store::{Backlog, EntryId, PendingCreate, Unanswered};

/// Inserts an open entry under a number. Returns `false` if the number exists.
pub(super) fn insert(connection: &Connection, new: &NewEntry, id: EntryId) -> rusqlite::Result<bool> {
    let PendingCreate { merchant, direction, order_id, api_key, amount, currency, shop, created_at, .. } = &new.intent;
    let inserted = connection.prepare_cached(INSERT)?.execute(named_params! {
        ":entry": id.0,
        ":order_key": new.order_key.0,
        ":direction": direction_number(*direction),
        ":state": OPEN,
        ":status": status_number(Status::Pending),
        ":created_at": created_at.0,
        ":amount": amount.hundredths().cast_signed(),
        ":fingerprint": new.intent.fingerprint.0,
        ":currency": currency.as_str(),
        ":merchant": merchant.as_str(),
        ":order_id": order_id.as_str(),
        ":api_key": api_key,
        ":shop": shop.as_deref().unwrap_or_default(),
        ":v1_callback_url": new.intent.callback_url.as_ref().map(CallbackUrl::as_str),
        ":body": new.body,
    })?;
    Ok(inserted == 1)
}

const INSERT: &str = "INSERT INTO journal (entry, order_key, direction, state, status, created_at, amount, fingerprint, \
    currency, merchant, order_id, api_key, shop, v1_callback_url, body) \
    VALUES (:entry, :order_key, :direction, :state, :status, :created_at, :amount, :fingerprint, \
    :currency, :merchant, :order_id, :api_key, :shop, :v1_callback_url, :body) ON CONFLICT DO NOTHING";

/// In the order of [`EntryRow::read`].
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT entry, direction, state, status, created_at, amount, fingerprint, currency, merchant, order_id, \
             api_key, shop, v1_callback_url, transaction_id, redirect_url, account, body, doubted_at, order_key FROM journal ",
            $rest
        )
    };
}

impl EntryRow {
    pub(super) fn by_id(connection: &Connection, id: EntryId) -> rusqlite::Result<Option<Self>> {
        connection.prepare_cached(Self::BY_ID)?.query_row([id.0], Self::read).optional()
    }

    pub(super) fn of_transaction(connection: &Connection, transaction_id: &str) -> rusqlite::Result<Option<Self>> {
        connection.prepare_cached(Self::OF_TRANSACTION)?.query_row([transaction_id], Self::read).optional()
    }

    /// One entry; the parameter is the engine's `transaction_id`.
    pub(super) const OF_TRANSACTION: &str = select!("WHERE transaction_id = ?1");

    /// One entry; the parameter is its number.
    pub(super) const BY_ID: &str = select!("WHERE entry = ?1");

    /// The partial index `journal_open` contains only these.
    pub(super) const OPEN_AFTER: &str = select!("WHERE state = 0 AND entry > ?1 ORDER BY entry LIMIT ?2");

    /// Entries after a number, in order; the second parameter is the limit.
    pub(super) const SLICE: &str = select!("WHERE entry > ?1 ORDER BY entry LIMIT ?2");

    /// A page of a merchant's answered entries: see [`super::lists::page`].
    pub(super) const PAGE: &str = select!(
        "INDEXED BY journal_by_v1 WHERE state = 2 AND merchant = ?1 AND created_at BETWEEN ?2 AND ?3 \
         AND (?4 IS NULL OR direction = ?4) AND (?5 IS NULL OR shop = ?5) AND (?6 IS NULL OR currency = ?6) \
         AND (?7 IS NULL OR status = ?7) ORDER BY created_at DESC, entry DESC LIMIT ?8 OFFSET ?9"
    );

    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            direction: row.get(1)?,
            state: row.get(2)?,
            status: row.get(3)?,
            created_at: row.get(4)?,
            amount: row.get(5)?,
            fingerprint: row.get(6)?,
            currency: row.get(7)?,
            merchant: row.get(8)?,
            order_id: row.get(9)?,
            api_key: row.get(10)?,
            shop: row.get(11)?,
            v1_callback_url: row.get(12)?,
            transaction_id: row.get(13)?,
            redirect_url: row.get(14)?,
            account: row.get(15)?,
            body: row.get(16)?,
            doubted_at: row.get(17)?,
            order_key: row.get(18)?,
        })
    }
}

/// Counts open entries, those in doubt and retried jobs, up to a limit each, with the time of the oldest. Partial indexes
/// contain only these.
pub(super) const UNANSWERED: &str = "SELECT \
    (SELECT count(*) FROM (SELECT entry FROM journal INDEXED BY journal_open WHERE state = 0 LIMIT ?1)), \
    (SELECT created_at FROM journal INDEXED BY journal_open WHERE state = 0 ORDER BY entry LIMIT 1), \
    (SELECT count(*) FROM (SELECT entry FROM journal INDEXED BY journal_in_doubt WHERE state = 1 LIMIT ?1)), \
    (SELECT created_at FROM journal INDEXED BY journal_in_doubt WHERE state = 1 ORDER BY entry LIMIT 1), \
    (SELECT count(*) FROM (SELECT key FROM tasks INDEXED BY tasks_retried WHERE kind = 0 AND attempts > 2 LIMIT ?1)), \
    (SELECT queued_at FROM tasks INDEXED BY tasks_retried WHERE kind = 0 AND attempts > 2 ORDER BY queued_at LIMIT 1)";

/// Counts what has no answer.
pub(super) fn unanswered(connection: &Connection, most: u16) -> rusqlite::Result<Unanswered> {
    let backlog = |row: &Row<'_>, first: usize| {
        let oldest = row.get::<_, Option<i64>>(first + 1)?.map(UnixMillis);
        Ok::<_, rusqlite::Error>(Backlog { count: row.get::<_, i64>(first)?.unsigned_abs(), oldest })
    };
    let read =
        |row: &Row<'_>| Ok(Unanswered { open: backlog(row, 0)?, in_doubt: backlog(row, 2)?, jobs: backlog(row, 4)? });
    connection.prepare_cached(UNANSWERED)?.query_row([most], read)
}
