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

/// Receives the progress of an audit.
pub(super) type ProgressReport = Arc<dyn Fn(AuditProgress) + Send + Sync>;

/// An audit in progress: its snapshot, and the number of rows.
pub(super) struct Auditor<'a> {
    pub(super) snapshot: Transaction<'a>,
    pub(super) progress: ProgressReport,
    pub(super) total: u64,
}

impl Auditor<'_> {
    pub(super) fn report(&self, findings: &AuditFindings) {
        (self.progress)(AuditProgress { done: findings.done(), total: self.total });
    }

    /// Reads the rows of a slice after a position.
    pub(super) async fn after(&self, statement: &str, after: RowPlace) -> Result<Vec<Row>, PgError> {
        let (bucket, number) = after;
        self.read(statement, &[&bucket, &number]).await
    }

    /// Reads the rows between two positions, the first excluded.
    pub(super) async fn between(&self, statement: &str, after: RowPlace, last: RowPlace) -> Result<Vec<Row>, PgError> {
        let ((bucket, number), (last_bucket, last_number)) = (after, last);
        self.read(statement, &[&bucket, &number, &last_bucket, &last_number]).await
    }

    pub(super) async fn read(&self, statement: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, PgError> {
        let statement = self.snapshot.prepare_cached(statement).await?;
        Ok(self.snapshot.query(&statement, parameters).await?)
    }

    /// Checks the homes that the rows of a slice must have.
    pub(super) async fn homes(&self, findings: &mut AuditFindings) -> Result<(), PgError> {
        let (orders, buckets): (Vec<Fingerprint>, Vec<i16>) =
            findings.homes.iter().map(|(order, home)| (*order, bucket_in_number(home.columns().1))).unzip();
        let found = row::homes_of(&self.snapshot, &buckets, &orders).await?;
        findings.compare_homes(found);
        Ok(())
    }

    /// Checks a slice on a thread of its own and reports the progress. The findings move there and back.
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
