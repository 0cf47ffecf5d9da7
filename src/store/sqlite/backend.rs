//! Implements [`Backend`] for SQLite.

use std::sync::{Arc, PoisonError};

use rusqlite::Connection;
use tokio::sync::{Notify, oneshot};

use super::lists::at_one_moment;
use super::transaction::{SqliteTransaction, at_once};
use super::{SqliteStore, audit, lock, schema};
use crate::clock::Random;
use crate::domain::Fingerprint;
use crate::store::backend::{Backend, ReadKind};
use crate::store::create;
use crate::store::homes::{self, Home};
use crate::store::lookups::order_row;
use crate::store::rows::context::Contexts;
use crate::store::rows::operation::{NewRow, StoredRow};
use crate::store::sql::CorruptRow;
use crate::store::vault::Vault;
use crate::store::{Audit, AuditProgress, InsertOutcome, StoreError};

impl Backend for SqliteStore {
    type Error = rusqlite::Error;
    type Tx<'a> = SqliteTransaction<'a>;

    fn vault(&self) -> &Vault {
        &self.vault
    }

    fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// There is no other server whose data could be older.
    fn losses(&self) -> u64 {
        0
    }

    fn random(&self) -> &dyn Random {
        &*self.random
    }

    fn queued(&self) -> &Notify {
        &self.queued
    }

    /// One process writes, so there is no other clock to compare with.
    async fn require_right_clock(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn transact<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&SqliteTransaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send {
        self.writer.submit(move |connection| at_once(work(&SqliteTransaction(connection))))
    }

    /// The writer's commits are shared in any case.
    fn run_alone<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&SqliteTransaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send {
        self.transact(work)
    }

    async fn read<T: Send + 'static>(
        &self,
        kind: ReadKind,
        work: impl AsyncFn(&SqliteTransaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let read = move |connection: &Connection| at_once(work(&SqliteTransaction(connection)));
        match kind {
            ReadKind::Lookup => self.readers.read(read),
            ReadKind::Rows => self.readers.read_aside(read).await,
            ReadKind::History => self.histories.read(&self.readers, |connection| at_one_moment(connection, read)).await,
            ReadKind::Page => self.lists.read(&self.readers, |connection| at_one_moment(connection, read)).await,
        }
    }

    fn insert(
        &self,
        new: NewRow,
        nonce: u64,
    ) -> impl Future<Output = Result<InsertOutcome<StoredRow>, StoreError>> + Send + use<> {
        self.writer.submit(move |connection| at_once(create_operation(&SqliteTransaction(connection), &new, nonce)))
    }

    fn claim_home(
        &self,
        order: Fingerprint,
        home: Home,
    ) -> impl Future<Output = Result<Home, StoreError>> + Send + use<> {
        self.writer.submit(move |connection| {
            let claimed = at_once(homes::claim_each(&SqliteTransaction(connection), &[(order, home)]))?;
            claimed.into_iter().next().flatten().ok_or_else(|| CorruptRow::new("homes").into())
        })
    }

    /// Runs the audit on a thread of its own, since it reads for long.
    async fn run_audit(&self, progress: Arc<dyn Fn(AuditProgress) + Send + Sync>) -> Result<Audit, StoreError> {
        let (connection, vault) = (self.readers.lend()?, Arc::clone(&self.vault));
        let (reply, result) = oneshot::channel();
        let thread = std::thread::Builder::new().name("store-audit".to_owned()).spawn(move || {
            let audited = audit::run(&connection, vault, &*progress, &|| !reply.is_closed());
            let _ = reply.send(audited);
        });
        thread.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        result.await.unwrap_or_else(|_| Err(StoreError::Corrupt("the audit came to no end".to_owned())))
    }

    /// The file can always be read.
    fn locked_out(&self) -> Option<u32> {
        None
    }

    /// A gateway has the lock. A tool reads the formats in each of its transactions.
    async fn is_used_by_older(&self) -> Result<bool, StoreError> {
        lock::is_held_by_older(self.readers.path()).map_err(|error| StoreError::Unavailable(error.to_string()))
    }

    fn narrow(&self) -> impl Future<Output = Result<bool, StoreError>> + Send {
        self.writer.submit(schema::narrow)
    }

    /// The readers close after the writer: its last answers may need a lookup.
    async fn finish(&self) {
        self.writer.close().await;
        self.readers.close();
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Creates an operation, or reads the existing one. That one may be of the same batch, so its caller waits for the
/// commit, too.
async fn create_operation(
    tx: &SqliteTransaction<'_>,
    row: &NewRow,
    nonce: u64,
) -> rusqlite::Result<InsertOutcome<StoredRow>> {
    match create::create(tx, row, nonce).await? {
        Some(outcome) => Ok(InsertOutcome::Created(outcome)),
        None => order_row(tx, row.order_key()).await.map(InsertOutcome::from),
    }
}
