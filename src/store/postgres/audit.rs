//! Reads the rows that an [audit](crate::store::audit) checks, in one snapshot, a slice at a time, while nodes continue
//! to write.
//!
//! Slices are in the order of the keys, bucket first, so that memory stays bounded and each slice is one step into an
//! index. They are read on the store's thread and checked on another, since unsealing takes time.

mod auditor;
mod callbacks;
mod journal;
mod ledger;
mod operations;
mod structure;
#[cfg(test)]
pub(super) mod tests;

use std::sync::Arc;

use deadpool_postgres::Object;
use tokio_postgres::IsolationLevel;

use self::auditor::{Auditor, ProgressReport};
use super::errors::PgError;
use super::node::PgNode;
use super::row::get;
use crate::store::audit::AuditFindings;
use crate::store::vault::Vault;
use crate::store::{Audit, StoreError};

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

/// Counts the rows that are checked slice by slice.
const TOTAL: &str = "SELECT (SELECT count(*) FROM operations) + (SELECT count(*) FROM journal) \
    + (SELECT count(*) FROM callbacks)";

/// Audits the store as it is when this begins.
///
/// # Errors
/// The store cannot be read.
pub(super) async fn run(node: &PgNode, vault: Arc<Vault>, progress: ProgressReport) -> Result<Audit, StoreError> {
    audited(node, AuditFindings::new(vault, true), progress).await.map_err(PgError::reported)
}

async fn audited(node: &PgNode, findings: AuditFindings, progress: ProgressReport) -> Result<Audit, PgError> {
    // The connection ends with the audit, so that a cancelled audit leaves no running statement in the pool.
    let mut client = Object::take(node.client().await?.into_object());
    let builder = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    let snapshot = builder.start().await?;
    snapshot.batch_execute(SESSION).await?;
    let total = get::<i64>(&snapshot.query_one(TOTAL, &[]).await?, 0)?.unsigned_abs();
    let auditor = Auditor { snapshot, progress, total };
    let AuditFindings { found, .. } = all(&auditor, findings).await?;
    auditor.snapshot.commit().await?;
    Ok(found)
}

async fn all(auditor: &Auditor<'_>, mut findings: AuditFindings) -> Result<AuditFindings, PgError> {
    auditor.report(&findings);
    structure::compare(&auditor.snapshot, &mut findings).await?;
    operations::references(&auditor.snapshot, &mut findings).await?;
    ledger::usage(&auditor.snapshot, &mut findings).await?;
    auditor.snapshot.batch_execute(BY_INDEXES).await?;
    findings = operations::all(auditor, findings).await?;
    findings = journal::all(auditor, findings).await?;
    findings = callbacks::all(auditor, findings).await?;
    ledger::balances(&auditor.snapshot, &mut findings).await?;
    Ok(findings)
}
