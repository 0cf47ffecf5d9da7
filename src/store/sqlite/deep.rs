//! Pages that lie deep in a list.
//!
//! To find one costs a pass over all entries before it: too long for a thread that serves others. They are read on
//! threads of their own, a few at once, and few wait for their turn.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use super::readers::Readers;
use crate::store::StoreError;

/// So many entries are passed on the caller's thread: in well under a millisecond, and within some 30 pages of the file.
const SHALLOW: u64 = 4000;

/// The most deep pages read at once. Each keeps a processor busy.
const AT_ONCE: usize = 2;

/// The most deep pages asked for at once; one more is refused.
const ASKED: usize = 64;

/// Who may read deep.
#[derive(Debug)]
pub(super) struct DeepPages {
    pub(super) places: Semaphore,
    turns: Arc<Semaphore>,
}

impl DeepPages {
    pub(super) fn new() -> Self {
        Self { places: Semaphore::new(ASKED), turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Reads a page before which `skip` entries are left out, at once or when its turn comes. `page` is also told how to
    /// find out whether anyone still waits for it.
    ///
    /// # Errors
    /// Too many deep pages are asked for, or the lookup failed.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        readers: &Arc<Readers>,
        skip: u64,
        page: impl FnOnce(&Connection, &dyn Fn() -> bool) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        if skip <= SHALLOW {
            return readers.read(|connection| page(connection, &|| true));
        }
        self.read_aside(readers, page).await
    }

    /// Reads what may be long, whatever it skips, when its turn comes.
    ///
    /// # Errors
    /// As [`DeepPages::read`].
    pub(super) async fn read_aside<T: Send + 'static>(
        &self,
        readers: &Arc<Readers>,
        page: impl FnOnce(&Connection, &dyn Fn() -> bool) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let unavailable = |why: &str| StoreError::Unavailable(why.to_owned());
        let _place = self.places.try_acquire().map_err(|_| unavailable("too many deep pages are asked for"))?;
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| unavailable("the store is closed"))?;
        let (reply, result) = oneshot::channel();
        let readers = Arc::clone(readers);
        tokio::task::spawn_blocking(move || {
            let found = readers.read(|connection| page(connection, &|| !reply.is_closed()));
            drop(turn);
            // Whoever asked may have gone.
            let _ = reply.send(found);
        });
        result.await.unwrap_or_else(|_| Err(StoreError::Corrupt("a page came to no end".to_owned())))
    }
}
