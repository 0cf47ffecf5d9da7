//! Where a callback stands. Whoever changes one by name, in a command of the writer, looks at that first.

use rusqlite::{Connection, OptionalExtension};

use crate::domain::UnixMillis;
use crate::store::rows::callback::{FAILED, PENDING};
use crate::store::{CallbackId, CallbackLease, CallbackTarget};

pub(super) struct Standing {
    nonce: i64,
    pub(super) state: i64,
    leased: bool,
    queued_at: UnixMillis,
    pub(super) due_at: UnixMillis,
    attempts: i64,
    pub(super) tries: i64,
    waits_for_engine: bool,
}

impl Standing {
    /// The callback of this name; `None`: there is none.
    pub(super) fn of(connection: &Connection, id: CallbackId) -> rusqlite::Result<Option<Self>> {
        let found = Self::of_key(connection, id.subject().key())?;
        Ok(found.filter(|found| found.nonce == id.nonce().cast_signed()))
    }

    /// The callback of what has this number; `None`: there is none.
    pub(super) fn of_key(connection: &Connection, key: i64) -> rusqlite::Result<Option<Self>> {
        connection
            .prepare_cached(
                "SELECT nonce, state, leased, queued_at, due_at, attempts, tries, target FROM callbacks WHERE key = ?1",
            )?
            .query_row([key], |row| {
                Ok(Self {
                    nonce: row.get(0)?,
                    state: row.get(1)?,
                    leased: row.get(2)?,
                    queued_at: UnixMillis(row.get(3)?),
                    due_at: UnixMillis(row.get(4)?),
                    attempts: row.get(5)?,
                    tries: row.get(6)?,
                    waits_for_engine: row.get_ref(7)?.as_str().is_ok_and(|it| it == CallbackTarget::Engine.as_str()),
                })
            })
            .optional()
    }

    /// Whether somebody has claimed it.
    pub(super) const fn is_leased(&self) -> bool {
        self.state == PENDING && self.leased
    }

    /// Whether this claim of it is the latest, and it was not queued anew since.
    pub(super) fn is_leased_for(&self, lease: CallbackLease) -> bool {
        let same = self.queued_at == lease.queued_at && self.attempts == lease.attempt();
        self.is_leased() && same
    }

    /// Whether an announcement has the engine asked once more: it was asked for before, or given up.
    pub(super) fn may_be_asked_anew(&self) -> bool {
        self.waits_for_engine && (self.state == FAILED || self.state == PENDING && self.attempts > 0)
    }
}
