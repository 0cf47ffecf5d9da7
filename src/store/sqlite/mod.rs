//! The SQLite store: one file, WAL, `synchronous=FULL`, group commit (contract section 11).
//!
//! ```text
//! create, settle, claim  seal, hash (caller's thread) -> queue -> writer: up to 256 in one commit -> answers
//! by_id, by_order, ...   a pooled connection, on the caller's thread
//! the log                checkpoints on a thread of their own; the writer restarts it only past 64 MiB
//! ```
//!
//! At most 16 idle connections and two threads belong to a store. The command line may open the same file while a
//! gateway serves: whoever finds the write lock taken waits two seconds for it.

mod checkpoints;
mod connection;
#[cfg(test)]
mod faults;
mod jobs;
mod kept;
#[cfg(test)]
mod measure;
mod readers;
mod reports;
mod row;
mod schema;
#[cfg(test)]
mod tests;
mod writer;

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use checkpoints::Checkpointer;
use connection::{Checkpoint, Role, Source};
use kept::KeptLists;
use readers::Readers;
use row::{NewRow, StoredRow};
use writer::Writer;

use super::secret_file::{directory_of, private_directory};
use super::vault::Vault;
use super::{
    Answer, Claim, Comparer, Creation, Draft, Fields, Kept, OpenError, Opened, ProviderJob, ProviderKind,
    ProviderQueue, Reservations, Settlement, Standing, Store, StoreError, Stored, Verdict,
};
use crate::clock::Random;
use crate::domain::{
    Balance, Currency, Direction, MerchantId, OrderId, Outcome, Preparation, ShopCode, TransactionId, UnixMillis,
};
use crate::rules::StoreKeys;
use crate::telemetry::Metrics;

/// A store in one SQLite file.
pub struct SqliteStore {
    writer: Writer,
    readers: Readers,
    vault: Vault,
    kept: KeptLists,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SqliteStore(..)")
    }
}

/// Opens the store in `path`; makes the directory, the file and the key file when they are missing and the store is new,
/// and migrates an older store. What an earlier process left in the log is moved into the file first, so that all that
/// will be read is on disk.
///
/// # Errors
/// One clear line: see [`OpenError`].
pub fn open(
    path: &Path,
    keys: &StoreKeys,
    random: Arc<dyn Random>,
    metrics: Arc<Metrics>,
) -> Result<Opened<SqliteStore>, OpenError> {
    open_source(Source::new(path), keys, random, metrics)
}

fn open_source(
    source: Source,
    keys: &StoreKeys,
    random: Arc<dyn Random>,
    metrics: Arc<Metrics>,
) -> Result<Opened<SqliteStore>, OpenError> {
    let source = Arc::new(source);
    let path = source.path();
    make_file(path)?;
    let mut connection = source.connect(Role::Writer).map_err(OpenError::sqlite(path))?;
    schema::recognize(&connection, path)?;
    write_ahead(&connection, path)?;
    let prepared = schema::prepare(&mut connection, path, keys, random)?;
    tell_if_new(&prepared, path);
    jobs::release(&connection).map_err(OpenError::sqlite(path))?;
    let log = connection::checkpoint(&connection, Checkpoint::Truncate).map_err(OpenError::sqlite(path))?;
    if log.busy {
        tracing::warn!(path = %path.display(), "another process reads the store; its log is moved later");
    }
    let anchor = source.connect(Role::Reader).map_err(OpenError::sqlite(path))?;
    connection::touch(&anchor).map_err(OpenError::sqlite(path))?;
    source.pin().map_err(|error| OpenError::io(path, "look at the files of", error))?;
    let failed = |error| OpenError::io(path, "start a thread for", error);
    let checkpointer = Checkpointer::start(Arc::clone(&source)).map_err(failed)?;
    let writer = Writer::start(connection, anchor, Arc::clone(&source), checkpointer, metrics).map_err(failed)?;
    let schema::Prepared { vault, holds_rows, .. } = prepared;
    let kept = KeptLists::new(vault.comparer().clone());
    Ok(Opened { store: SqliteStore { writer, readers: Readers::new(source), vault, kept }, holds_rows })
}

/// A new store is worth a line; beside a key that was made with another one it is most likely a mistake.
fn tell_if_new(prepared: &schema::Prepared, path: &Path) {
    match (prepared.new, prepared.key_was_there) {
        (false, _) => {}
        (true, false) => tracing::info!("made a new store at {}", path.display()),
        (true, true) => tracing::warn!(
            "made a new, empty store at {} although its key already existed: is the disk of the old one mounted?",
            path.display()
        ),
    }
}

/// Makes an empty file for its owner only; SQLite gives its log the same mode.
fn make_file(path: &Path) -> Result<(), OpenError> {
    private_directory(directory_of(path))?;
    let made = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    made.map(drop).map_err(|error| OpenError::io(path, "open", error))
}

fn write_ahead(connection: &rusqlite::Connection, path: &Path) -> Result<(), OpenError> {
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
        .map_err(OpenError::sqlite(path))?;
    if mode.eq_ignore_ascii_case("wal") { Ok(()) } else { Err(OpenError::NoWal { path: path.into() }) }
}

/// What an insert met, within the transaction.
enum Inserted {
    Created,
    Existing(Box<StoredRow>),
    IdTaken,
}

impl SqliteStore {
    async fn create_draft(&self, draft: Draft) -> Result<Creation, StoreError> {
        let names = match &draft.comparison.kept {
            Kept::Everything => None,
            Kept::Names(names) => Some((self.kept.prepare(names), Arc::clone(names))),
        };
        let list = names.as_ref().map(|(list, _)| list.clone());
        let row = NewRow::new(draft, &self.vault, list);
        let inserted = self
            .writer
            .submit(move |connection| {
                if row.insert(connection)? {
                    return Ok(Inserted::Created);
                }
                // What stands may be of the same batch: the answer is sent after its commit too.
                let existing = StoredRow::by_order(connection, row.order_key())?;
                Ok(existing.map_or(Inserted::IdTaken, |existing| Inserted::Existing(Box::new(existing))))
            })
            .await?;
        match inserted {
            Inserted::Created => {
                if let Some((list, names)) = names
                    && list.unstored.is_some()
                {
                    self.kept.remember(list.id, &names);
                }
                Ok(Creation::Created(Verdict::AsDrafted))
            }
            Inserted::Existing(row) => Ok(Creation::Existing(Box::new(self.decode(*row)?))),
            Inserted::IdTaken => Ok(Creation::IdTaken),
        }
    }

    fn decode(&self, row: StoredRow) -> Result<Stored, StoreError> {
        let kept = match row.kept {
            None => Kept::Everything,
            Some(id) => Kept::Names(self.kept_names(id)?),
        };
        row.decode(&self.vault, kept)
    }

    fn kept_names(&self, id: i64) -> Result<kept::Names, StoreError> {
        if let Some(names) = self.kept.recall(id) {
            return Ok(names);
        }
        let names = self
            .readers
            .read(|connection| kept::load(connection, id))?
            .ok_or_else(|| StoreError::Corrupt(format!("kept_names {id} is missing")))?;
        self.kept.remember(id, &names);
        Ok(names)
    }

    async fn book(&self, id: TransactionId, outcome: Outcome, at: UnixMillis) -> Result<Settlement, StoreError> {
        let payer = match &outcome {
            Outcome::Success { payer } => row::sealed_payer(&self.vault, id, payer.as_ref()),
            Outcome::Failed => None,
        };
        self.writer
            .submit(move |connection| {
                let Some(state) = row::state_of(connection, id)? else { return Ok(Settlement::Unknown) };
                let settlement = match state.finish(outcome.clone(), at) {
                    Ok(Ok(finished)) => {
                        row::write_state(connection, id, &finished, payer.as_deref())?;
                        Settlement::Booked
                    }
                    Ok(Err(_)) => Settlement::AlreadyBooked,
                    Err(contradiction) => Settlement::Contradicts(contradiction.booked),
                };
                // A finished operation has no work left, whoever finished it.
                jobs::end(connection, id)?;
                Ok(settlement)
            })
            .await
    }

    async fn claim(
        &self,
        now: UnixMillis,
        lease_until: UnixMillis,
        limit: usize,
    ) -> Result<Vec<ProviderJob>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let claimed = self.writer.submit(move |connection| jobs::claim(connection, now, lease_until, limit)).await?;
        let jobs = claimed.into_iter().filter_map(|job| match self.decode(job.row) {
            Ok(stored) => Some(ProviderJob {
                operation: stored.operation,
                attempts: job.attempts,
                provider: ProviderKind::Sandbox,
            }),
            Err(error) => {
                // One bad row must not stop the queue.
                tracing::error!(%error, "a provider job cannot be read and is left for later");
                None
            }
        });
        Ok(jobs.collect())
    }
}

fn unavailable<T>() -> Answer<'static, T> {
    Box::pin(async { Err(StoreError::Unavailable("not there yet".to_owned())) })
}

impl Store for SqliteStore {
    fn comparer(&self) -> &Comparer {
        self.vault.comparer()
    }

    fn create(&self, draft: Draft) -> Answer<'_, Creation> {
        Box::pin(self.create_draft(draft))
    }

    fn by_order<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> Answer<'a, Standing> {
        Box::pin(async move {
            let key = row::order_key(self.comparer(), merchant, direction, order_id);
            let row = self.readers.read(|connection| StoredRow::by_order(connection, key))?;
            Ok(match row.map(|row| self.decode(row)).transpose()? {
                Some(stored) => Standing::Operation(Box::new(stored)),
                None => Standing::Free,
            })
        })
    }

    fn by_id(&self, id: TransactionId) -> Answer<'_, Option<Stored>> {
        Box::pin(async move {
            let row = self.readers.read(|connection| StoredRow::by_id(connection, id))?;
            row.map(|row| self.decode(row)).transpose()
        })
    }

    fn fields(&self, id: TransactionId) -> Answer<'_, Option<Fields>> {
        Box::pin(async move {
            let sealed = self.readers.read(|connection| row::fields_of(connection, id))?;
            sealed.map(|sealed| row::opened_fields(&self.vault, id, &sealed)).transpose()
        })
    }

    fn settle(&self, id: TransactionId, outcome: Outcome, at: UnixMillis) -> Answer<'_, Settlement> {
        Box::pin(self.book(id, outcome, at))
    }

    fn prepare(&self, _: TransactionId, _: Preparation) -> Answer<'_, bool> {
        unavailable()
    }

    fn preparation(&self, _: TransactionId) -> Answer<'_, Option<Preparation>> {
        unavailable()
    }

    fn provider_queues(&self) -> Answer<'_, Vec<ProviderQueue>> {
        Box::pin(async move {
            let due = self.readers.read(jobs::next)?;
            Ok(due.map(|due| ProviderQueue { shop: ShopCode::new("any").unwrap(), due }).into_iter().collect())
        })
    }

    fn claim_provider_jobs(&self, claim: Claim) -> Answer<'_, Vec<ProviderJob>> {
        Box::pin(self.claim(claim.now, claim.lease_until, claim.limit))
    }

    fn postpone_provider_job(&self, _: TransactionId, _: UnixMillis) -> Answer<'_, ()> {
        unavailable()
    }

    fn reserve<'a>(&'a self, _: &'a MerchantId, _: Direction, _: &'a [OrderId]) -> Answer<'a, Reservations> {
        unavailable()
    }

    fn balances<'a>(&'a self, _: &'a MerchantId) -> Answer<'a, Vec<(Currency, Balance)>> {
        unavailable()
    }

    fn end_provider_job(&self, id: TransactionId) -> Answer<'_, ()> {
        Box::pin(self.writer.submit(move |connection| jobs::end(connection, id)))
    }

    fn probe(&self) -> Answer<'_, ()> {
        Box::pin(self.writer.submit(connection::write_probe))
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            // What the writer still answers may need a lookup.
            self.writer.close().await;
            self.readers.close();
            Ok(())
        })
    }
}
