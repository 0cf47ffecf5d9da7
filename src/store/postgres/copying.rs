//! Copies a SQLite store into a database: see [`copy`](crate::store::copy).

mod batch;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::types::ToSql;

use super::audit;
use super::errors::{PgError, closed};
use super::node::{PgNode, Thread};
use super::opening::{on_thread, started};
use super::schema::{self, FORMATS, OpenFailure};
use super::transaction::get;
use crate::clock::Random;
use crate::store::copy::{CopiedTable, CopyError, TABLES};
use crate::store::sqlite::copying::{CopySource, take};
use crate::store::vault::WrappedKey;
use crate::store::{Audit, AuditProgress, OpenError, StoreError};
use crate::store_settings::{PostgresUrl, StoreKeys};
use batch::{Batch, RowBatches, TableColumns};

/// A copy reads and writes for long.
const SESSION: &str = "SET statement_timeout = 0; SET lock_timeout = '60s'";

/// The progress of a copy: rows done, and rows in all.
pub type RowsProgress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// A copy in progress: no gateway serves the source, and the target is marked.
pub struct Copying {
    thread: Thread,
    /// The target, for messages.
    to: String,
    /// On the store's thread while that works.
    source: Option<CopySource>,
}

impl std::fmt::Debug for Copying {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Copying(..)")
    }
}

/// Begins to copy a SQLite store to an empty database, or continues an unfinished copy of the same store.
///
/// # Errors
/// The source cannot be opened or is being served; the target does not respond, holds a store, or is the unfinished
/// copy of another one; or the source was moved before. Nothing is changed then.
pub fn begin_copy(
    from: &Path,
    to: &PostgresUrl,
    keys: &StoreKeys,
    random: &Arc<dyn Random>,
) -> Result<Copying, CopyError> {
    let source = take(from, keys, Arc::clone(random)).map_err(CopyError::of_source)?;
    let thread = started(to, random, Arc::default())?;
    let (place, keys) = (to.clone(), source.keys.clone());
    let (from, moved_to) = (from.to_owned(), source.moved_to.clone());
    let moved = move || moved_to.clone().map(|to| OpenError::Moved { path: from.clone(), to });
    on_thread(&thread, to, async move |node: Rc<PgNode>| {
        schema::exclusively(&node, &place, async |transaction| mark(transaction, &place, &keys, &moved).await).await
    })?;
    Ok(Copying { thread, to: to.to_string(), source: Some(source) })
}

/// Creates the tables with the source's keys and the mark, unless that was done before. A source that was moved before
/// (`moved`) is copied only to finish the same copy.
async fn mark(
    transaction: &Transaction<'_>,
    url: &PostgresUrl,
    keys: &[WrappedKey],
    moved: &dyn Fn() -> Option<OpenError>,
) -> Result<(), OpenFailure> {
    let store = PathBuf::from(url.to_string());
    let formats = schema::read_formats(transaction, &store).await?;
    if formats.count() > 0 {
        formats.require_copied(FORMATS, &store).map_err(OpenFailure::Open)?;
        if !schema::is_unfinished(transaction).await? {
            return Err(OpenFailure::Open(moved().unwrap_or(OpenError::Occupied { path: store })));
        }
        let found = schema::stored_keys(transaction).await?;
        let same = found.len() == keys.len() && keys.iter().all(|key| found.contains(key));
        return if same { Ok(()) } else { Err(OpenFailure::Open(OpenError::OtherCopy { path: store })) };
    }
    if let Some(moved) = moved() {
        return Err(OpenFailure::Open(moved));
    }
    schema::add(transaction, FORMATS, &store, 0, schema::MAX_STEP_TIME).await?;
    schema::insert_keys(transaction, keys).await?;
    for table in TABLES {
        transaction.execute("INSERT INTO copying (name, copied) VALUES ($1, 0)", &[&table.name]).await?;
    }
    Ok(())
}

impl Copying {
    /// Copies the rows that the target lacks, and returns how many there are in all.
    ///
    /// # Errors
    /// The source cannot be read, or the target cannot be written; what was committed remains.
    pub async fn fill(&mut self, progress: RowsProgress) -> Result<u64, CopyError> {
        self.with_source(async move |node: &PgNode, source: &CopySource| fill(node, source, &*progress).await).await
    }

    /// Compares the number of rows and the sums of the columns of the target's tables with the source's.
    ///
    /// # Errors
    /// They differ, or the source or the target cannot be read.
    pub async fn compare(&mut self, progress: RowsProgress) -> Result<(), CopyError> {
        self.with_source(async move |node: &PgNode, source: &CopySource| compare(node, source, &*progress).await).await
    }

    /// Runs work with the source on the store's thread.
    async fn with_source<T: Send + 'static>(
        &mut self,
        work: impl AsyncFnOnce(&PgNode, &CopySource) -> Result<T, CopyError> + Send + 'static,
    ) -> Result<T, CopyError> {
        let source = self.source.take().ok_or_else(closed)?;
        let work = async move |node: Rc<PgNode>| {
            let done = work(&node, &source).await;
            Ok((source, done))
        };
        let (source, done) = self.thread.run_while_awaited(work).await?;
        self.source = Some(source);
        done
    }

    /// Checks the invariants of the target: see [`Store::audit`](crate::store::Store::audit).
    ///
    /// # Errors
    /// The target cannot be read.
    pub async fn audit(&self, progress: Arc<dyn Fn(AuditProgress) + Send + Sync>) -> Result<Audit, CopyError> {
        let vault = self.source.as_ref().map(|source| Arc::clone(&source.vault)).ok_or_else(closed)?;
        Ok(self.thread.run_while_awaited(async move |node| audit::run(&node, vault, progress).await).await?)
    }

    /// Marks the source as moved, then removes the mark of the target: from now on gateways serve the target. A crash
    /// in between leaves neither of them served, and a copy that can be continued.
    ///
    /// # Errors
    /// The source was changed meanwhile, by a tool that takes no lock, or cannot be marked; or the target does not
    /// respond.
    pub async fn finish(self) -> Result<(), CopyError> {
        let source = self.source.as_ref().ok_or_else(closed)?;
        if !source.mark_moved(&self.to).map_err(CopyError::Mark)? {
            return Err(CopyError::Changed);
        }
        let unmark = async |node: Rc<PgNode>| {
            node.with_client(async |client| Ok(client.execute("DELETE FROM copying", &[]).await.map(drop)?)).await
        };
        let finished = self.thread.run(unmark).await;
        self.thread.close().await;
        Ok(finished?)
    }
}

fn failed(fault: impl Into<PgError>) -> CopyError {
    CopyError::Target(fault.into().reported())
}

/// A connection that ends with the work.
async fn session(node: &PgNode) -> Result<Object, CopyError> {
    let client = node.client().await.map_err(failed)?.into_object();
    client.batch_execute(SESSION).await.map_err(failed)?;
    Ok(client)
}

struct RowCounter<'a> {
    done: u64,
    total: u64,
    progress: &'a dyn Fn(u64, u64),
}

impl<'a> RowCounter<'a> {
    fn new(source: &CopySource, progress: &'a dyn Fn(u64, u64)) -> Result<Self, CopyError> {
        let counts = TABLES.iter().map(|table| table.count(&source.connection));
        let total = counts.sum::<rusqlite::Result<i64>>()?.unsigned_abs();
        Ok(Self { done: 0, total, progress })
    }

    fn add(&mut self, rows: i64) {
        self.done += rows.unsigned_abs();
        (self.progress)(self.done, self.total);
    }
}

async fn fill(node: &PgNode, source: &CopySource, progress: &dyn Fn(u64, u64)) -> Result<u64, CopyError> {
    let mut client = Object::take(session(node).await?);
    let mut counter = RowCounter::new(source, progress)?;
    for table in TABLES {
        fill_table(&mut client, source, table, &mut counter).await?;
        client.batch_execute(&format!("ANALYZE {}", table.name)).await.map_err(failed)?;
    }
    Ok(counter.total)
}

async fn fill_table(
    client: &mut deadpool_postgres::ClientWrapper,
    source: &CopySource,
    table: &'static CopiedTable,
    counter: &mut RowCounter<'_>,
) -> Result<(), CopyError> {
    let found = client.query_opt("SELECT copied FROM copying WHERE name = $1", &[&table.name]).await.map_err(failed)?;
    let mut copied: i64 = match found {
        Some(row) => get(&row, 0).map_err(failed)?,
        None => return Err(another_copy().into()),
    };
    counter.add(copied);
    let columns = TableColumns::of(client, table).await.map_err(failed)?;
    let mut statement = columns.rows(&source.connection)?;
    let mut batches = RowBatches::new(statement.query([copied])?, &columns);
    while let Some(batch) = batches.next()? {
        insert(client, &columns, &batch, copied).await?;
        let rows = batch.count();
        copied += rows;
        counter.add(rows);
    }
    Ok(())
}

/// Commits rows together with their number so far.
async fn insert(
    client: &mut deadpool_postgres::ClientWrapper,
    columns: &TableColumns,
    batch: &Batch<'_>,
    copied: i64,
) -> Result<(), CopyError> {
    const COUNT: &str = "UPDATE copying SET copied = copied + $3 WHERE name = $1 AND copied = $2";
    let transaction = client.transaction().await.map_err(failed)?;
    let counted = transaction.execute(COUNT, &[&columns.table.name, &copied, &batch.count()]).await.map_err(failed)?;
    if counted != 1 {
        return Err(another_copy().into());
    }
    let arrays = batch.arrays()?;
    let parameters: Vec<&(dyn ToSql + Sync)> = arrays.iter().map(|array| &**array).collect();
    let statement = transaction.prepare_cached(&columns.insert()).await.map_err(failed)?;
    transaction.execute(&statement, &parameters).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)
}

fn another_copy() -> StoreError {
    StoreError::Unavailable("another process copies to it as well".to_owned())
}

async fn compare(node: &PgNode, source: &CopySource, progress: &dyn Fn(u64, u64)) -> Result<(), CopyError> {
    let client = Object::take(session(node).await?);
    let mut counter = RowCounter::new(source, progress)?;
    for table in TABLES {
        compare_table(&client, source, table, &mut counter).await?;
    }
    Ok(())
}

async fn compare_table(
    client: &deadpool_postgres::ClientWrapper,
    source: &CopySource,
    table: &'static CopiedTable,
    counter: &mut RowCounter<'_>,
) -> Result<(), CopyError> {
    let columns = TableColumns::of(client, table).await.map_err(failed)?;
    let found = client.query_one(&columns.sums(), &[]).await.map_err(failed)?;
    let mut sums = vec![0; columns.count() + 1];
    let mut statement = columns.rows(&source.connection)?;
    let mut batches = RowBatches::new(statement.query([0])?, &columns);
    while let Some(batch) = batches.next()? {
        batch.add_to(&mut sums);
        counter.add(batch.count());
    }
    for (column, sum) in sums.iter().enumerate() {
        if get::<&str>(&found, column).map_err(failed)?.parse() != Ok(*sum) {
            return Err(CopyError::Differs { table: table.name });
        }
    }
    Ok(())
}
