//! Turns to read the lists of v1 callers and operators. Skipping costs about 50 ns an entry of an index, so a late page of a
//! long list, or one with few matches, takes a while. Lists are read on blocking threads, two at once, for two seconds at
//! most.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::connection::Readers;
use crate::store::StoreError;

/// How long a list waits for a permit, and how long it may be read.
pub(super) const MAX_LIST_TIME: Duration = Duration::from_secs(2);

/// How many lists are read at once. Each keeps a processor busy.
const AT_ONCE: usize = 2;

/// The permits to read lists.
#[derive(Debug)]
pub(super) struct ListTurns {
    permits: Arc<Semaphore>,
    longest: Duration,
}

impl ListTurns {
    pub(super) fn new(longest: Duration) -> Self {
        Self { permits: Arc::new(Semaphore::new(AT_ONCE)), longest }
    }

    /// Reads a list once a permit is free.
    ///
    /// # Errors
    /// No permit became free, reading takes too long, or it failed.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        readers: &Arc<Readers>,
        list: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let unavailable = |why: &str| StoreError::Unavailable(why.to_owned());
        let permit = timeout(MAX_LIST_TIME, Arc::clone(&self.permits).acquire_owned()).await;
        let permit = permit.map_err(|_| unavailable("too many lists are read"))?;
        let permit = permit.map_err(|_| unavailable("the store is closed"))?;
        let (readers, longest) = (Arc::clone(readers), self.longest);
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            readers.read_within(longest, list)
        });
        reading.await.unwrap_or_else(|_| Err(StoreError::Corrupt("a list came to no end".to_owned())))
    }
}

/// Reads in one transaction, so that everything has the state of one moment. After an error the connection must not be
/// used again.
pub(super) fn at_one_moment<T>(
    connection: &Connection,
    read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let execute = |sql| connection.prepare_cached(sql)?.execute([]).map(drop);
    execute("BEGIN")?;
    let found = read(connection)?;
    execute("COMMIT")?;
    Ok(found)
}
