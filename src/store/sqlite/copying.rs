//! Opens a SQLite store as the source of a copy to PostgreSQL, and keeps gateways from serving it.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::lock::{StoreLock, lock};
use super::opening::connect_though_moved;
use super::{connection, schema};
use crate::clock::Random;
use crate::store::OpenError;
use crate::store::format::Formats;
use crate::store::vault::{Vault, WrappedKey};
use crate::store_settings::StoreKeys;

/// A snapshot of a store. Holds the store's lock, so that no gateway serves it meanwhile.
pub(in crate::store) struct CopySource {
    /// Within a read transaction.
    pub(in crate::store) connection: Connection,
    pub(in crate::store) vault: Arc<Vault>,
    /// The data keys as they are stored.
    pub(in crate::store) keys: Vec<WrappedKey>,
    /// Where the store was copied to before; that copy may be incomplete.
    pub(in crate::store) moved_to: Option<String>,
    /// SQLite's counter of other connections' commits.
    version: i64,
    /// Declared last, so that everything else is closed when the lock is released.
    _lock: StoreLock,
}

/// Locks a store and opens a snapshot of it.
///
/// # Errors
/// As [`open_beside`](super::open_beside); also if a gateway serves it, or if it has parts that this release does not know.
pub(in crate::store) fn take(path: &Path, keys: &StoreKeys, random: Arc<dyn Random>) -> Result<CopySource, OpenError> {
    let (_, connection) = connect_though_moved(path)?;
    let lock = lock(path)?;
    connection.execute_batch("BEGIN").and_then(|()| connection::touch(&connection)).map_err(OpenError::sqlite(path))?;
    schema::recognize(&connection, path, Formats::require_copied)?;
    let vault = Arc::new(schema::unlock_existing(&connection, path, keys, random)?);
    let keys = schema::stored_keys(&connection, path)?;
    let moved_to = schema::moved_to(&connection).map_err(OpenError::sqlite(path))?;
    let version = version(&connection).map_err(OpenError::sqlite(path))?;
    Ok(CopySource { connection, vault, keys, moved_to, version, _lock: lock })
}

impl CopySource {
    /// Marks the store as moved, so that it is neither served nor written any more. Returns `false`, and marks nothing,
    /// if something was written since it was opened. Ends the read transaction.
    ///
    /// # Errors
    /// The disk fails.
    pub(in crate::store) fn mark_moved(&self, to: &str) -> rusqlite::Result<bool> {
        self.connection.execute_batch("COMMIT")?;
        // Nothing can be written between the check and the mark.
        let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
        if version(&transaction)? != self.version {
            return Ok(false);
        }
        schema::mark_moved(&transaction, to)?;
        transaction.commit()?;
        Ok(true)
    }
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "data_version", |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemRandomness;
    use crate::domain::Secret;
    use crate::store::StoreAccess;

    #[test]
    fn a_source_is_locked_and_detects_changes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("paybridge.db");
        let keys = StoreKeys { create_at: None, keys: vec![Secret::new(&[1; 32])] };
        let random = || Arc::new(SystemRandomness::default());
        let take = || take(&path, &keys, random());
        let open = || super::super::open(&path, &keys, random(), Arc::default());
        assert!(matches!(take(), Err(OpenError::Missing { .. })));
        let store = open().unwrap();
        assert!(matches!(take(), Err(OpenError::Served { .. })));
        drop(store);
        let source = take().unwrap();
        assert!(matches!(open(), Err(OpenError::Served { .. })));
        drop(source);
        let source = take().unwrap();
        Connection::open(&path).unwrap().execute("UPDATE probe SET count = count + 1", []).unwrap();
        assert!(!source.mark_moved("elsewhere").unwrap());
        drop(source);
        open().unwrap();
    }

    #[test]
    fn a_moved_store_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("paybridge.db");
        let keys = StoreKeys { create_at: None, keys: vec![Secret::new(&[1; 32])] };
        let random = || Arc::new(SystemRandomness::default());
        let open = || super::super::open(&path, &keys, random(), Arc::default());
        let beside = || super::super::open_beside(&path, &keys, StoreAccess::Read, random(), Arc::default());
        let is_moved = |refused: &OpenError| matches!(refused, OpenError::Moved { to, .. } if to == "there");
        drop(open().unwrap());
        for _ in 0..2 {
            // The second time as after a crash before the target lost its own mark.
            assert!(take(&path, &keys, random()).unwrap().mark_moved("there").unwrap());
            assert!(is_moved(&open().unwrap_err()) && is_moved(&beside().unwrap_err()));
            assert!(is_moved(&super::super::rewrap_keys(&path, &keys, &(random() as Arc<dyn Random>)).unwrap_err()));
        }
        assert_eq!(take(&path, &keys, random()).unwrap().moved_to.as_deref(), Some("there"));
    }
}
