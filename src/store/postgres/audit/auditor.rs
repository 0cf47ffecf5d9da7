//! An audit in progress.

use std::sync::Arc;

use deadpool_postgres::Transaction;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::domain::Fingerprint;
use crate::store::AuditProgress;
use crate::store::audit::{AuditFindings, RowPlace};
use crate::store::postgres::errors::{PgError, closed};
use crate::store::postgres::row;
use crate::store::postgres::row::bucket_in_number;

/// Called with the progress of an audit.
pub(super) type ProgressReport = Arc<dyn Fn(AuditProgress) + Send + Sync>;

/// An audit in progress: its snapshot, and how far it is.
pub(super) struct Auditor<'a> {
    pub(super) snapshot: Transaction<'a>,
    pub(super) progress: ProgressReport,
    pub(super) total: u64,
}

impl Auditor<'_> {
    pub(super) fn report(&self, findings: &AuditFindings) {
        (self.progress)(AuditProgress { done: findings.done(), total: self.total });
    }

    /// The rows of a slice that begins after a place.
    pub(super) async fn after(&self, statement: &str, after: RowPlace) -> Result<Vec<Row>, PgError> {
        let (bucket, number) = after;
        self.read(statement, &[&bucket, &number]).await
    }

    /// The rows after a place, up to another.
    pub(super) async fn between(&self, statement: &str, after: RowPlace, last: RowPlace) -> Result<Vec<Row>, PgError> {
        let ((bucket, number), (last_bucket, last_number)) = (after, last);
        self.read(statement, &[&bucket, &number, &last_bucket, &last_number]).await
    }

    pub(super) async fn read(&self, statement: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, PgError> {
        let statement = self.snapshot.prepare_cached(statement).await?;
        Ok(self.snapshot.query(&statement, parameters).await?)
    }

    /// Compares the homes that a slice must have.
    pub(super) async fn homes(&self, findings: &mut AuditFindings) -> Result<(), PgError> {
        let (orders, buckets): (Vec<Fingerprint>, Vec<i16>) =
            findings.homes.iter().map(|(order, home)| (*order, bucket_in_number(home.columns().1))).unzip();
        let found = row::homes_of(&self.snapshot, &buckets, &orders).await?;
        findings.compare_homes(found);
        Ok(())
    }

    /// Looks at a slice on a thread of its own, and tells how far that is. What was found goes there and comes back.
    pub(super) async fn look<F>(&self, findings: AuditFindings, look: F) -> Result<AuditFindings, PgError>
    where
        F: FnOnce(&mut AuditFindings) -> Result<(), PgError> + Send + 'static,
    {
        let looked = tokio::task::spawn_blocking(move || {
            let mut findings = findings;
            look(&mut findings).map(|()| findings)
        });
        let findings = looked.await.unwrap_or_else(|_| Err(closed().into()))?;
        self.report(&findings);
        Ok(findings)
    }
}
