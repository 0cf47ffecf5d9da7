//! What a database backend implements: connections, transactions, and what it does in batches.

use std::sync::Arc;

use tokio::sync::Notify;

use super::homes::Home;
use super::rows::context::Contexts;
use super::rows::operation::{NewRow, StoredRow};
use super::transaction::OwnStatements;
use super::vault::Vault;
use super::{Audit, AuditProgress, InsertOutcome, StoreError};
use crate::clock::Random;
use crate::domain::Fingerprint;

/// How a read is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadKind {
    /// A few rows by their keys: in SQLite on the thread of the caller, for which it takes microseconds.
    Lookup,
    /// More rows: not on a thread that serves requests.
    Rows,
    /// A page of a merchant's list: as [`ReadKind::Page`], beside those.
    History,
    /// What an operator is shown, such as a page of a list: as of one moment, two at a time, each for two seconds at most.
    Page,
}

/// A database, its connections and its transactions.
pub(super) trait Backend: Send + Sync + 'static {
    type Error;
    type Tx<'a>: OwnStatements<Error = Self::Error>;

    fn vault(&self) -> &Vault;

    fn contexts(&self) -> &Contexts;

    /// Returns how often a server was lost, perhaps with commits that no other server has.
    fn losses(&self) -> u64;

    fn random(&self) -> &dyn Random;

    /// Returns the notification to send after a commit that queued a callback or made one due.
    fn queued(&self) -> &Notify;

    /// Fails if this node's clock is known to be wrong, for work that depends on it.
    fn require_right_clock(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Runs `work` in a transaction and waits for its commit. Runs it again after a conflict with other transactions,
    /// or when the outcome of the commit was lost.
    fn transact<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&Self::Tx<'_>) -> Result<T, Self::Error> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;

    /// Runs a single statement, which is a transaction of its own, as [`Backend::transact`] runs several.
    fn run_alone<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&Self::Tx<'_>) -> Result<T, Self::Error> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;

    /// Runs queries. Runs them again when the database was lost meanwhile.
    fn read<T: Send + 'static>(
        &self,
        kind: ReadKind,
        work: impl AsyncFn(&Self::Tx<'_>) -> Result<T, Self::Error> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;

    /// Creates an operation in a transaction. Queues it before returning the future. `nonce` becomes part of its
    /// callback's id.
    fn insert(
        &self,
        new: NewRow,
        nonce: u64,
    ) -> impl Future<Output = Result<InsertOutcome<StoredRow>, StoreError>> + Send + use<Self>;

    /// Claims the home of an order, together with other claims, and returns its home.
    fn claim_home(
        &self,
        order: Fingerprint,
        home: Home,
    ) -> impl Future<Output = Result<Home, StoreError>> + Send + use<Self>;

    /// Audits the store: see [`Store::audit`](super::Store::audit).
    fn run_audit(
        &self,
        progress: Arc<dyn Fn(AuditProgress) + Send + Sync>,
    ) -> impl Future<Output = Result<Audit, StoreError>> + Send;

    /// Returns the oldest format whose releases can serve the store, if the backend knows that this release is locked out.
    fn locked_out(&self) -> Option<u32>;

    /// Reports whether an older release uses the store: see [`Upgrade::is_used_by_older`](super::Upgrade::is_used_by_older).
    fn is_used_by_older(&self) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Narrows the store: see [`Upgrade::narrow`](super::Upgrade::narrow).
    fn narrow(&self) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Finishes the accepted work, then closes.
    fn finish(&self) -> impl Future<Output = ()> + Send;
}
