//! A store that is to be copied elsewhere, while nobody serves it.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;

use super::opening::{connect_beside, lock};
use super::{connection, schema};
use crate::clock::Random;
use crate::rules::StoreKeys;
use crate::store::OpenError;
use crate::store::vault::{Vault, WrappedKey};

/// A store at one moment, and its lock: no gateway starts on it meanwhile.
pub(in crate::store) struct Source {
    /// Within a read transaction.
    pub(in crate::store) connection: Connection,
    pub(in crate::store) vault: Arc<Vault>,
    /// The data keys as they are stored.
    pub(in crate::store) keys: Vec<WrappedKey>,
    /// As SQLite counts the commits of others.
    version: i64,
    /// Declared last: whoever waits for it finds everything else closed.
    _lock: File,
}

/// Takes a store that nobody serves.
///
/// # Errors
/// As [`open_beside`](super::open_beside); also that a gateway serves it.
pub(in crate::store) fn take(path: &Path, keys: &StoreKeys, random: Arc<dyn Random>) -> Result<Source, OpenError> {
    let (_, connection) = connect_beside(path)?;
    let lock = lock(path)?;
    connection.execute_batch("BEGIN").and_then(|()| connection::touch(&connection)).map_err(OpenError::sqlite(path))?;
    let vault = Arc::new(schema::unlock_existing(&connection, path, keys, random)?);
    let keys = schema::stored_keys(&connection, path)?;
    let version = version(&connection).map_err(OpenError::sqlite(path))?;
    Ok(Source { connection, vault, keys, version, _lock: lock })
}

impl Source {
    /// Whether anybody wrote to the store since it was taken. Ends the read transaction.
    ///
    /// # Errors
    /// The disk fails.
    pub(in crate::store) fn has_changed(&self) -> rusqlite::Result<bool> {
        self.connection.execute_batch("COMMIT")?;
        connection::touch(&self.connection)?;
        Ok(version(&self.connection)? != self.version)
    }
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "data_version", |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemRandomness;
    use crate::rules::Secret;

    #[test]
    fn a_source_is_nobody_elses_and_knows_when_it_changed() {
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
        assert!(!source.has_changed().unwrap());
        drop(source);
        let source = take().unwrap();
        Connection::open(&path).unwrap().execute("UPDATE probe SET count = count + 1", []).unwrap();
        assert!(source.has_changed().unwrap());
    }
}
