//! Audits one snapshot while nodes continue to write: see [`audit`](crate::store::audit). Slices are read on the store's thread
//! and checked on another, since unsealing takes time.

mod structure;
#[cfg(test)]
pub(super) mod tests;

use std::sync::Arc;

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::IsolationLevel;

use super::errors::{PgError, closed};
use super::node::PgNode;
use super::transaction::{Executor, PgTransaction};
use crate::store::audit::{AuditFindings, AuditRun, AuditSlice, audited};
use crate::store::vault::Vault;
use crate::store::{Audit, AuditProgress, StoreError};

/// An audit reads for long, and its snapshot is idle while a slice is checked. Statements are planned for the slice at
/// hand. A server that supports it cancels a statement when the connection of its audit is gone.
const SESSION: &str = "SET LOCAL statement_timeout = 0; \
    SET LOCAL idle_in_transaction_session_timeout = 0; \
    SET LOCAL plan_cache_mode = force_custom_plan; \
    SELECT set_config(name, '5s', true) FROM pg_settings WHERE name = 'client_connection_check_interval'";

/// A slice is some hundreds of steps into indexes. A scan of the whole table may look cheaper for one slice, but not
/// for all of them.
const BY_INDEXES: &str =
    "SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off";

/// Audits the store as it is when this begins.
///
/// # Errors
/// The store cannot be read.
pub(super) async fn run(
    node: &PgNode,
    vault: Arc<Vault>,
    progress: Arc<dyn Fn(AuditProgress) + Send + Sync>,
) -> Result<Audit, StoreError> {
    let mut findings = AuditFindings::new(vault);
    at_one_moment(node, &mut findings, progress).await.map_err(PgError::reported)?;
    Ok(findings.found)
}

async fn at_one_moment(
    node: &PgNode,
    findings: &mut AuditFindings,
    progress: Arc<dyn Fn(AuditProgress) + Send + Sync>,
) -> Result<(), PgError> {
    // The connection ends with the audit, so that a cancelled audit leaves no running statement in the pool.
    let mut client = Object::take(node.client().await?.into_object());
    let builder = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    let snapshot = builder.start().await?;
    snapshot.batch_execute(SESSION).await?;
    all(&snapshot, findings, progress).await?;
    Ok(snapshot.commit().await?)
}

async fn all(
    snapshot: &Transaction<'_>,
    findings: &mut AuditFindings,
    progress: Arc<dyn Fn(AuditProgress) + Send + Sync>,
) -> Result<(), PgError> {
    structure::compare(snapshot, findings).await?;
    let tx = PgTransaction { executor: Executor::Transaction(snapshot), ahead: 0 };
    audited(&tx, findings, &PgRun { snapshot, progress }).await
}

struct PgRun<'a> {
    snapshot: &'a Transaction<'a>,
    progress: Arc<dyn Fn(AuditProgress) + Send + Sync>,
}

impl AuditRun<PgTransaction<'_>> for PgRun<'_> {
    async fn before_slices(&self) -> Result<(), PgError> {
        Ok(self.snapshot.batch_execute(BY_INDEXES).await?)
    }

    /// The findings move to another thread and back.
    async fn check(&self, findings: &mut AuditFindings, slice: AuditSlice) -> Result<(), PgError> {
        let empty = AuditFindings::new(Arc::clone(&findings.vault));
        let mut moved = std::mem::replace(findings, empty);
        let checked = tokio::task::spawn_blocking(move || {
            slice.check(&mut moved);
            moved
        });
        *findings = checked.await.map_err(|_| closed())?;
        Ok(())
    }

    /// An audit that nothing waits for is cancelled by its caller.
    fn report(&self, progress: AuditProgress) -> bool {
        (self.progress)(progress);
        true
    }
}
