//! The mark of a backup (contract section 15). A copy of a store knows no later orders, so repeats of these would be made anew:
//! it is not served, nor changed, until an operator has adopted it.

use std::path::Path;

use jiff::Timestamp;

use super::backend::{Backend, ReadKind};
use super::sql::{Sql, Transaction, params, sql};
use super::{OpenError, StoreFuture, checks};
use crate::domain::UnixMillis;

const MARK: Sql = sql!("INSERT INTO backup_mark (id, known_until) VALUES (1, ?1) ON CONFLICT DO NOTHING");
const KNOWN_UNTIL: Sql = sql!("SELECT known_until FROM backup_mark WHERE id = 1");
const UNMARK: Sql = sql!("DELETE FROM backup_mark WHERE id = 1");

/// Marks a copy of a store. The mark of a store that is a backup itself stays: the copy knows no more than it.
pub(super) async fn mark<T: Transaction>(tx: &T, known_until: UnixMillis) -> Result<(), T::Error> {
    tx.execute(MARK, &params![known_until]).await.map(drop)
}

/// Returns until when a backup knows orders; `None`: the store is no backup, or was adopted.
pub(super) async fn known_until<T: Transaction>(tx: &T) -> Result<Option<UnixMillis>, T::Error> {
    tx.query_opt(KNOWN_UNTIL, &[], |row| row.get(0)).await
}

/// Refuses a backup that was not adopted.
///
/// # Errors
/// The store has a mark.
pub(super) fn refuse(known_until: Option<UnixMillis>, store: &Path) -> Result<(), OpenError> {
    let Some(UnixMillis(known_until)) = known_until else { return Ok(()) };
    let known_until = Timestamp::from_millisecond(known_until).unwrap_or(Timestamp::MAX);
    Err(OpenError::Backup { path: store.into(), known_until: format!("{known_until:.3}") })
}

/// The mark of a backup.
pub trait BackupMark: Send + Sync + 'static {
    /// Returns until when this backup knows orders; `None`: the store is no backup, or was adopted.
    fn known_until(&self) -> StoreFuture<'_, Option<UnixMillis>>;

    /// Removes the mark: from now on gateways serve the store. Also removes the marks of complete lists of old ids, of which the
    /// old service may have got more since the backup.
    fn adopt(&self) -> StoreFuture<'_, ()>;
}

impl<B: Backend> BackupMark for B {
    fn known_until(&self) -> StoreFuture<'_, Option<UnixMillis>> {
        Box::pin(self.read(ReadKind::Lookup, async |tx| known_until(tx).await))
    }

    fn adopt(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.transact(async |tx| {
            checks::mark_all_incomplete(tx).await?;
            tx.execute(UNMARK, &[]).await.map(drop)
        }))
    }
}
