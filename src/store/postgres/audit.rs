//! Reads what an [audit](crate::store::audit) looks at, on one snapshot, a slice at a time, beside whoever writes.
//!
//! Slices are in the order of the keys, bucket first, so that memory stays bounded and each is one step into an index.
//! They are read on the store's thread and looked at on another: unsealing takes its time.

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

/// An audit reads for long, and its snapshot is idle while a slice is looked at. Plans are made for the slice at hand. A
/// server that knows how ends a statement whose audit is gone.
const SESSION: &str = "SET LOCAL statement_timeout = 0; \
    SET LOCAL idle_in_transaction_session_timeout = 0; \
    SET LOCAL plan_cache_mode = force_custom_plan; \
    SELECT set_config(name, '5s', true) FROM pg_settings WHERE name = 'client_connection_check_interval'";

/// A slice is some hundreds of steps into indexes. To pass over a whole table for one may look cheaper; for all of them it is
/// not.
const BY_INDEXES: &str =
    "SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off";

/// Everything that is looked at slice by slice.
const TOTAL: &str = "SELECT (SELECT count(*) FROM operations) + (SELECT count(*) FROM journal) \
    + (SELECT count(*) FROM callbacks)";

/// Audits the store as it stands when this begins.
///
/// # Errors
/// The store cannot be read.
pub(super) async fn run(node: &PgNode, vault: Arc<Vault>, progress: ProgressReport) -> Result<Audit, StoreError> {
    audited(node, AuditFindings::new(vault, true), progress).await.map_err(PgError::reported)
}

async fn audited(node: &PgNode, findings: AuditFindings, progress: ProgressReport) -> Result<Audit, PgError> {
    // The connection ends with the audit, wherever that is: nobody after it waits for a statement of its.
    let mut client = Object::take(node.client().await?);
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
