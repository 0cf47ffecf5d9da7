//! The connections of a node, and the order in which work gets them. A server may accept fewer connections than
//! `store.connections` allows, by a limit of its own, of the role or of a pooler: work then waits for those that exist.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, timeout_at};

use super::errors::{ConnectionRefusal, PgError, closed};

/// After a refusal, the time until another connection is tried; trying one where nothing responds takes seconds.
const GROW_INTERVAL: Duration = Duration::from_secs(1);
const GROW_INTERVAL_SILENT: Duration = Duration::from_secs(15);

/// How often connecting is tried while no connection exists, and the wait in between: others of this process may be
/// about to connect.
const CONNECT_TRIES: u32 = 4;
const CONNECT_PAUSE: Duration = Duration::from_millis(250);

/// The pool, and the places for work that uses its connections: first come, first served.
pub(super) struct Connections {
    pub(super) pool: Pool,
    places: Semaphore,
    /// The places that were closed because the server refused a connection for them.
    closed: Cell<usize>,
    /// When the next of them is opened again.
    grow_at: Cell<Instant>,
}

impl Connections {
    pub(super) fn new(pool: Pool) -> Self {
        let places = Semaphore::new(pool.status().max_size);
        Self { pool, places, closed: Cell::default(), grow_at: Cell::new(Instant::now()) }
    }

    /// Returns a connection, at the latest at `deadline`. `may_be_gone`: the database was unreachable the last time, so
    /// that silence is no reason to wait.
    ///
    /// # Errors
    /// None became free in time, or the server cannot be connected to.
    pub(super) async fn get(&self, deadline: Instant, may_be_gone: bool) -> Result<PooledClient<'_>, PgError> {
        let (mut tries, mut last) = (0, None);
        loop {
            self.reopen_place();
            let Ok(place) = timeout_at(deadline, self.places.acquire()).await else {
                return Err(last.unwrap_or_else(PgError::no_connection));
            };
            let place = place.map_err(|_| PgError::Store(closed()))?;
            let error = match self.pool.get().await.map_err(PgError::from) {
                Ok(object) => return Ok(self.placed(object, place)),
                Err(error) => error,
            };
            let is_alone = self.pool.status().size == 0;
            match error.connection_refusal() {
                Some(ConnectionRefusal::Stated) if is_alone => {
                    drop(place);
                    tries += 1;
                    if tries == CONNECT_TRIES || Instant::now() + CONNECT_PAUSE >= deadline {
                        return Err(error);
                    }
                    sleep(CONNECT_PAUSE).await;
                }
                Some(ConnectionRefusal::Stated) => self.close_place(place, GROW_INTERVAL),
                Some(ConnectionRefusal::Silent) if !is_alone && !may_be_gone => {
                    self.close_place(place, GROW_INTERVAL_SILENT);
                }
                Some(ConnectionRefusal::Silent) | None => return Err(error),
            }
            last = Some(error);
        }
    }

    fn placed<'a>(&'a self, object: Object, place: SemaphorePermit<'a>) -> PooledClient<'a> {
        if Object::metrics(&object).recycle_count == 0 {
            // The server accepts more connections.
            self.grow_at.set(Instant::now());
        }
        PooledClient { object, place }
    }

    /// Closes the place of work that was refused a connection. Every connection was made in a place that stays open, so
    /// that one of them at least is left.
    fn close_place(&self, place: SemaphorePermit<'_>, interval: Duration) {
        place.forget();
        self.closed.set(self.closed.get() + 1);
        self.grow_at.set(Instant::now() + interval);
    }

    fn reopen_place(&self) {
        if self.closed.get() > 0 && Instant::now() >= self.grow_at.get() {
            self.closed.set(self.closed.get() - 1);
            self.grow_at.set(Instant::now() + GROW_INTERVAL);
            self.places.add_permits(1);
        }
    }
}

/// A connection in its place. It returns to the pool before the place is free again.
pub(super) struct PooledClient<'a> {
    object: Object,
    place: SemaphorePermit<'a>,
}

impl PooledClient<'_> {
    /// Returns the connection for work of any length, which frees its place.
    pub(super) fn into_object(self) -> Object {
        drop(self.place);
        self.object
    }
}

impl Deref for PooledClient<'_> {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.object
    }
}

impl DerefMut for PooledClient<'_> {
    fn deref_mut(&mut self) -> &mut Object {
        &mut self.object
    }
}
