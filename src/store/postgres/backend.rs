//! Implements [`Backend`] for PostgreSQL.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use super::errors::PgError;
use super::node::PgNode;
use super::queue::NewClaim;
use super::transaction::PgTransaction;
use super::{PostgresStore, audit, create, narrowing};
use crate::clock::Random;
use crate::domain::Fingerprint;
use crate::store::backend::{Backend, ReadKind};
use crate::store::homes::Home;
use crate::store::rows::context::Contexts;
use crate::store::rows::operation::{NewRow, StoredRow};
use crate::store::vault::Vault;
use crate::store::{Audit, AuditProgress, InsertOutcome, StoreError};

/// How long a list may be read. What comes later than one of its statements may take ends with the list.
const MAX_LIST_TIME: Duration = Duration::from_secs(2);

/// Returns the work that reads a list, as [`ReadKind`] states.
fn list<T>(
    kind: ReadKind,
    read: impl AsyncFn(&PgTransaction<'_>) -> Result<T, PgError> + Send + 'static,
) -> impl AsyncFnOnce(Rc<PgNode>) -> Result<T, StoreError> + Send + 'static {
    async move |node| {
        let _permit = node.limits.permit_to_list(kind).await?;
        timeout(MAX_LIST_TIME, node.at_one_moment(read)).await.unwrap_or(Err(StoreError::TooLong))
    }
}

impl Backend for PostgresStore {
    type Error = PgError;
    type Tx<'a> = PgTransaction<'a>;

    fn vault(&self) -> &Vault {
        &self.vault
    }

    fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    fn losses(&self) -> u64 {
        self.thread.losses()
    }

    fn random(&self) -> &dyn Random {
        &*self.random
    }

    fn queued(&self) -> &Notify {
        &self.queued
    }

    async fn require_right_clock(&self) -> Result<(), StoreError> {
        self.thread.run(async |node| node.clock.require_right()).await
    }

    fn transact<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&PgTransaction<'_>) -> Result<T, PgError> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send {
        self.thread.run(async move |node| node.transact(work).await)
    }

    fn run_alone<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&PgTransaction<'_>) -> Result<T, PgError> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send {
        self.thread.run(async move |node| node.run(work).await)
    }

    async fn read<T: Send + 'static>(
        &self,
        kind: ReadKind,
        work: impl AsyncFn(&PgTransaction<'_>) -> Result<T, PgError> + Send + 'static,
    ) -> Result<T, StoreError> {
        match kind {
            ReadKind::Lookup | ReadKind::Rows => self.thread.run(async move |node| node.run(work).await).await,
            ReadKind::History | ReadKind::Page => self.thread.run_while_awaited(list(kind, work)).await,
        }
    }

    fn insert(
        &self,
        new: NewRow,
        nonce: u64,
    ) -> impl Future<Output = Result<InsertOutcome<StoredRow>, StoreError>> + Send + use<> {
        let created = if create::needs_decision(new.draft()) {
            Err(self.thread.run(async move |node| create::create_alone(&node, &new, nonce).await))
        } else {
            Ok(self.thread.enqueue(|queues| &queues.creates, new))
        };
        async move {
            match created {
                Ok(batched) => batched.await,
                Err(alone) => alone.await,
            }
        }
    }

    fn claim_home(
        &self,
        order: Fingerprint,
        home: Home,
    ) -> impl Future<Output = Result<Home, StoreError>> + Send + use<> {
        self.thread.enqueue(|queues| &queues.claims, NewClaim { order, home })
    }

    async fn run_audit(&self, progress: Arc<dyn Fn(AuditProgress) + Send + Sync>) -> Result<Audit, StoreError> {
        let vault = Arc::clone(&self.vault);
        self.thread.run_while_awaited(async move |node| audit::run(&node, vault, progress).await).await
    }

    fn locked_out(&self) -> Option<u32> {
        self.thread.locked_out()
    }

    async fn is_used_by_older(&self) -> Result<bool, StoreError> {
        self.thread.run(async |node| narrowing::older_is_active(&node).await).await
    }

    async fn narrow(&self) -> Result<bool, StoreError> {
        self.thread.run(async |node| narrowing::narrow(&node).await).await
    }

    async fn finish(&self) {
        self.thread.close().await;
    }
}
