//! Connections for point lookups.
//!
//! A lookup runs on the thread that asks: it takes microseconds, and handing it to another thread would cost more than
//! the lookup itself. It never waits for the writer, and sees what was committed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use super::connection::{self, ConnectionRole, StoreFile};
use crate::store::StoreError;
use crate::telemetry::Stopwatch;

/// The most connections kept; more readers at once open and close their own.
const MAX_IDLE: usize = 16;

/// After so many steps of SQLite's machine it is looked whether a lookup has taken too long: well under a millisecond.
const STEPS: i32 = 10_000;

/// A stack of idle connections; `None` after the store was closed.
pub(super) struct Readers {
    source: Arc<StoreFile>,
    idle: Mutex<Option<Vec<Connection>>>,
}

impl Readers {
    pub(super) fn new(source: Arc<StoreFile>) -> Self {
        Self { source, idle: Mutex::new(Some(Vec::new())) }
    }

    /// Runs a lookup on a connection of its own.
    ///
    /// # Errors
    /// The store is closed, or the lookup failed.
    pub(super) fn read<T>(&self, lookup: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let connection = self.take()?;
        let found = lookup(&connection);
        self.end(connection, found)
    }

    /// Runs a lookup that ends with an error when it takes longer than so.
    ///
    /// # Errors
    /// As [`Readers::read`].
    pub(super) fn read_within<T>(
        &self,
        longest: Duration,
        lookup: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let (mut connection, watch) = (self.take()?, Stopwatch::start());
        let too_long = move || watch.elapsed() >= longest;
        let found = connection.progress_handler(STEPS, Some(too_long)).and_then(|()| lookup(&connection));
        let unbounded = connection.progress_handler(0, None::<fn() -> bool>);
        self.end(connection, found.and_then(|found| unbounded.map(|()| found)))
    }

    /// A connection with which something failed is not used again: it may have been what failed.
    fn end<T>(&self, connection: Connection, found: rusqlite::Result<T>) -> Result<T, StoreError> {
        let found = found.map_err(|error| connection::store_error(&error))?;
        self.put_back(connection);
        Ok(found)
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
        idle.map_or_else(
            || self.source.connect(ConnectionRole::Reader).map_err(|error| connection::store_error(&error)),
            Ok,
        )
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
