//! Where a callback stands, held until the end of a transaction. Whoever changes a callback by name holds it first.

use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use super::subject::bucket_in_key;
use crate::domain::UnixMillis;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::row::{get, small};
use crate::store::rows::callback::PENDING;
use crate::store::{CallbackId, CallbackLease, StoreError};

/// How often a callback is looked for that others move meanwhile.
const LOOKS: u32 = 8;

pub(super) struct Standing {
    nonce: i64,
    pub(super) state: i64,
    leased: bool,
    queued_at: UnixMillis,
    pub(super) due_at: UnixMillis,
    pub(super) attempts: i32,
    pub(super) tries: i64,
    pub(super) target: String,
}

impl Standing {
    /// Holds the callback of this name; `None`: there is none.
    pub(super) async fn of(transaction: &Transaction<'_>, id: CallbackId) -> Result<Option<Self>, Fault> {
        let found = Self::of_key(transaction, id.subject().key()).await?;
        Ok(found.filter(|found| found.nonce == id.nonce().cast_signed()))
    }

    /// Holds the callback of what has this number; `None`: there is none.
    pub(super) async fn of_key(transaction: &Transaction<'_>, key: i64) -> Result<Option<Self>, Fault> {
        let bucket = bucket_in_key(key);
        let hold = transaction.prepare_cached(HOLD).await?;
        let exists = transaction.prepare_cached(EXISTS).await?;
        for _ in 0..LOOKS {
            if let Some(row) = transaction.query(&hold, &[&bucket, &key]).await?.first() {
                return Self::read(row).map(Some);
            }
            // A row that left for the other table while it was waited for is in neither of what HOLD saw.
            if !get::<bool>(&transaction.query_one(&exists, &[&bucket, &key]).await?, 0)? {
                return Ok(None);
            }
        }
        Err(Fault::Said(StoreError::Unavailable("a callback is changed by others all the time".to_owned())))
    }

    fn read(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            nonce: get(row, 0)?,
            state: small(row, 1)?,
            leased: get(row, 2)?,
            queued_at: UnixMillis(get(row, 3)?),
            due_at: UnixMillis(get(row, 4)?),
            attempts: get(row, 5)?,
            tries: get(row, 6)?,
            target: get(row, 7)?,
        })
    }

    pub(super) const fn is_pending(&self) -> bool {
        self.state == PENDING
    }

    /// Whether somebody has claimed it.
    pub(super) const fn is_leased(&self) -> bool {
        self.is_pending() && self.leased
    }

    /// Whether this claim of it is the latest, and it was not queued anew since.
    pub(super) fn is_leased_for(&self, lease: CallbackLease) -> bool {
        let same = self.queued_at == lease.queued_at && i64::from(self.attempts) == lease.attempt();
        self.is_leased() && same
    }
}

/// The row of a callback, in whichever table it is, locked.
pub(super) const HOLD: &str = "WITH queued AS MATERIALIZED (\
     SELECT nonce, 0::smallint, leased, queued_at, due_at, attempts, tries, target FROM callbacks \
     WHERE bucket = $1 AND key = $2 FOR UPDATE), \
     told AS MATERIALIZED (\
     SELECT nonce, state, false, queued_at, due_at, attempts, tries, target FROM callbacks_told \
     WHERE bucket = $1 AND key = $2 FOR UPDATE) \
     SELECT * FROM queued UNION ALL SELECT * FROM told";

/// Whether a callback is in one of its tables, both seen at one moment.
const EXISTS: &str = "SELECT EXISTS (SELECT FROM callbacks WHERE bucket = $1 AND key = $2) \
     OR EXISTS (SELECT FROM callbacks_told WHERE bucket = $1 AND key = $2)";
