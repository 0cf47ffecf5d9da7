//! Reads what an [audit](crate::store::audit) looks at, on one snapshot, a slice at a time, beside whoever writes.
//!
//! Slices are in the order of the keys, bucket first, so that memory stays bounded and each is one step into an index.
//! They are read on the store's thread and looked at on another: unsealing takes its time.

mod callbacks;
mod journal;
mod ledger;
mod operations;
mod structure;
#[cfg(test)]
pub(super) mod tests;

use std::sync::Arc;

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::types::ToSql;
use tokio_postgres::{IsolationLevel, Row};

use super::fault::{PgError, closed};
use super::homes;
use super::node::PgNode;
use super::row::{bucket_in_number, get};
use crate::domain::Fingerprint;
use crate::store::audit::{AuditFindings, RowPlace};
use crate::store::vault::Vault;
use crate::store::{Audit, AuditProgress, StoreError};

/// How an audit tells how far it is.
type EntryProgress = Arc<dyn Fn(AuditProgress) + Send + Sync>;

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
pub(super) async fn run(node: &PgNode, vault: Arc<Vault>, progress: EntryProgress) -> Result<Audit, StoreError> {
    audited(node, AuditFindings::new(vault, true), progress).await.map_err(PgError::reported)
}

async fn audited(node: &PgNode, findings: AuditFindings, progress: EntryProgress) -> Result<Audit, PgError> {
    // The connection ends with the audit, wherever that is: nobody after it waits for a statement of its.
    let mut client = Object::take(node.client().await?);
    let builder = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    let snapshot = builder.start().await?;
    snapshot.batch_execute(SESSION).await?;
    let total = get::<i64>(&snapshot.query_one(TOTAL, &[]).await?, 0)?.unsigned_abs();
    let auditor = Auditor { snapshot, progress, total };
    let AuditFindings { found, .. } = auditor.all(findings).await?;
    auditor.snapshot.commit().await?;
    Ok(found)
}

struct Auditor<'a> {
    snapshot: Transaction<'a>,
    progress: EntryProgress,
    total: u64,
}

impl Auditor<'_> {
    async fn all(&self, mut findings: AuditFindings) -> Result<AuditFindings, PgError> {
        self.tell(&findings);
        structure::compare(&self.snapshot, &mut findings).await?;
        operations::references(&self.snapshot, &mut findings).await?;
        ledger::usage(&self.snapshot, &mut findings).await?;
        self.snapshot.batch_execute(BY_INDEXES).await?;
        findings = operations::all(self, findings).await?;
        findings = journal::all(self, findings).await?;
        findings = callbacks::all(self, findings).await?;
        ledger::balances(&self.snapshot, &mut findings).await?;
        Ok(findings)
    }

    fn tell(&self, findings: &AuditFindings) {
        (self.progress)(AuditProgress { done: findings.done(), total: self.total });
    }

    /// The rows of a slice that begins after a place.
    async fn after(&self, statement: &str, after: RowPlace) -> Result<Vec<Row>, PgError> {
        let (bucket, number) = after;
        self.read(statement, &[&bucket, &number]).await
    }

    /// The rows after a place, up to another.
    async fn between(&self, statement: &str, after: RowPlace, last: RowPlace) -> Result<Vec<Row>, PgError> {
        let ((bucket, number), (last_bucket, last_number)) = (after, last);
        self.read(statement, &[&bucket, &number, &last_bucket, &last_number]).await
    }

    async fn read(&self, statement: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, PgError> {
        let statement = self.snapshot.prepare_cached(statement).await?;
        Ok(self.snapshot.query(&statement, parameters).await?)
    }

    /// Compares the homes that a slice must have.
    async fn homes(&self, findings: &mut AuditFindings) -> Result<(), PgError> {
        let (orders, buckets): (Vec<Fingerprint>, Vec<i16>) =
            findings.homes.iter().map(|(order, home)| (*order, bucket_in_number(home.columns().1))).unzip();
        let found = homes::of_all(&self.snapshot, &buckets, &orders).await?;
        findings.compare_homes(found);
        Ok(())
    }

    /// Looks at a slice on a thread of its own, and tells how far that is. What was found goes there and comes back.
    async fn look<F>(&self, findings: AuditFindings, look: F) -> Result<AuditFindings, PgError>
    where
        F: FnOnce(&mut AuditFindings) -> Result<(), PgError> + Send + 'static,
    {
        let looked = tokio::task::spawn_blocking(move || {
            let mut findings = findings;
            look(&mut findings).map(|()| findings)
        });
        let findings = looked.await.unwrap_or_else(|_| Err(closed().into()))?;
        self.tell(&findings);
        Ok(findings)
    }
}
