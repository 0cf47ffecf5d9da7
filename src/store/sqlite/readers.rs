//! Connections for point lookups.
//!
//! A lookup runs on the thread that asks: it takes microseconds, and handing it to another thread would cost more than
//! the lookup itself. It never waits for the writer, and sees what was committed.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use super::connection::{self, Role, Source};
use crate::store::StoreError;

/// The most connections kept; more readers at once open and close their own.
const MAX_IDLE: usize = 16;

/// A stack of idle connections; `None` after the store was closed.
pub(super) struct Readers {
    source: Arc<Source>,
    idle: Mutex<Option<Vec<Connection>>>,
}

impl Readers {
    pub(super) fn new(source: Arc<Source>) -> Self {
        Self { source, idle: Mutex::new(Some(Vec::new())) }
    }

    /// Runs a lookup on a connection of its own.
    ///
    /// # Errors
    /// The store is closed, or the lookup failed.
    pub(super) fn read<T>(&self, lookup: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let connection = self.take()?;
        match lookup(&connection) {
            Ok(found) => {
                self.put_back(connection);
                Ok(found)
            }
            // The connection is not used again: it may have been what failed.
            Err(error) => Err(connection::store_error(&error)),
        }
    }

    /// Runs a lookup that may be long aside of the threads that serve.
    ///
    /// # Errors
    /// As [`Readers::read`].
    pub(super) async fn read_aside<T: Send + 'static>(
        self: &Arc<Self>,
        lookup: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let readers = Arc::clone(self);
        let reading = tokio::task::spawn_blocking(move || readers.read(lookup));
        reading.await.unwrap_or_else(|_| Err(StoreError::Corrupt("a lookup came to no end".to_owned())))
    }

    /// A connection to be kept for long.
    ///
    /// # Errors
    /// The store is closed, or there is no connection.
    pub(super) fn lend(&self) -> Result<Connection, StoreError> {
        self.take()
    }

    /// Closes all connections; later lookups are refused.
    pub(super) fn close(&self) {
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn take(&self) -> Result<Connection, StoreError> {
        let idle = match &mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(idle) => idle.pop(),
            None => return Err(StoreError::Unavailable("the store is closed".to_owned())),
        };
        idle.map_or_else(|| self.source.connect(Role::Reader).map_err(|error| connection::store_error(&error)), Ok)
    }

    fn put_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *idle {
            Some(idle) if idle.len() < MAX_IDLE => idle.push(connection),
            // Closing may touch the disk: not under the lock.
            _ => {
                drop(idle);
                drop(connection);
            }
        }
    }
}
