//! The SQLite store: one file, WAL, `synchronous=FULL`, group commit (contract section 11).
//!
//! ```text
//! create, settle, claim  seal, hash (caller's thread) -> queue -> writer: up to 256 in one commit -> answers
//! by_id, by_order, ...   a pooled connection, on the caller's thread
//! lists                  the same, on blocking threads, two at once
//! the log                checkpoints on a thread of their own; the writer moves the last pages, and begins it anew
//! ```
//!
//! At most 16 idle connections and two threads belong to a store, and a connection and a thread to each audit. The command line may open the same file while a
//! gateway serves: whoever finds the write lock taken waits two seconds for it.

mod answers;
mod audit;
mod backend;
pub mod backup;
mod checkpoints;
mod connection;
pub(super) mod copying;
mod create;
#[cfg(test)]
mod faults;
mod homes;
mod journal;
mod ledger;
mod lists;
mod moved;
mod opening;
mod outbox;
mod preparations;
mod readers;
mod reports;
mod row;
mod schema;
mod statuses;
mod tasks;
#[cfg(test)]
mod tests;
mod transaction;
mod unconfirmed;
mod writer;

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, oneshot};

use create::Created;
use lists::Lists;
pub use opening::{open, open_beside, rewrap_keys};
use readers::Readers;
use row::{NewRow, StoredRow};
use statuses::{V1Status, V2Status};
use transaction::{SqliteRows, at_once};
use writer::Writer;

use super::complete::{self, Completion};
use super::homes::Home;
use super::rows::context::{Contexts, merchant_number};
use super::rows::details::opened_fields;
use super::tasks::{ClaimedTask, TaskClaim, TaskKind, TaskRows};
use super::vault::Vault;
use super::{
    Answer, Audit, AuditProgress, Claim, Comparer, Creation, Draft, Fields, ProviderJob, ProviderQueue, Reservations,
    Settlement, Standing, Store, StoreError, Stored,
};
use crate::clock::Random;
use crate::domain::{
    Amount, Balance, Currency, Direction, HistoryQuery, MerchantId, Operation, OrderId, Outcome, Page, Preparation,
    Record, Shown, TransactionId, UnixMillis,
};

/// A store in one SQLite file.
pub struct SqliteStore {
    writer: Writer,
    readers: Arc<Readers>,
    histories: Lists,
    /// Lists of callbacks: beside histories, so that neither waits for the other.
    lists: Lists,
    queued: Notify,
    vault: Arc<Vault>,
    contexts: Contexts,
    random: Arc<dyn Random>,
    /// Held by the one process that serves the store. Declared last: whoever waits for it finds everything else closed.
    lock: Mutex<Option<File>>,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SqliteStore(..)")
    }
}

impl SqliteStore {
    /// What a create met, told.
    fn told(&self, created: Created) -> Result<Creation, StoreError> {
        Ok(match created {
            Created::Stored { verdict, queued } => {
                if queued {
                    self.queued.notify_one();
                }
                Creation::Created(verdict)
            }
            Created::Existing(row) => Creation::Existing(Box::new(row.decode(&self.vault)?)),
            Created::Reserved => Creation::Reserved,
            Created::IdTaken => Creation::IdTaken,
        })
    }

    async fn book(&self, id: TransactionId, outcome: Outcome, at: UnixMillis) -> Result<Settlement, StoreError> {
        let payer = match &outcome {
            Outcome::Success { payer } => row::sealed_payer(&self.vault, id, payer.as_ref()),
            Outcome::Failed => None,
        };
        let completion = Completion { id, outcome, payer, at, nonce: self.random.number() };
        let complete = move |connection: &rusqlite::Connection| {
            at_once(complete::complete(&mut SqliteRows(connection), &completion))
        };
        let settlement = self.writer.submit(complete).await?;
        if settlement == Settlement::Booked {
            // To look for what nobody is told of costs the worker little.
            self.queued.notify_one();
        }
        Ok(settlement)
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<ProviderJob>, StoreError> {
        let claim = TaskClaim {
            kind: TaskKind::ProviderJob,
            shares: vec![(claim.shop.as_str().into(), claim.limit)],
            now: claim.now,
            lease_until: claim.lease_until,
        };
        let claimed = self.writer.submit(move |connection| {
            let claimed = tasks::claim(connection, &claim)?.into_iter();
            let with_operation = |task: ClaimedTask| {
                let row = TransactionId::from_stored(task.key).map(|id| StoredRow::by_id(connection, id));
                Ok(row.transpose()?.flatten().map(|row| (row, task.attempts)))
            };
            claimed.filter_map(|task| with_operation(task).transpose()).collect::<rusqlite::Result<Vec<_>>>()
        });
        let jobs = claimed.await?.into_iter().filter_map(|(row, attempts)| match row.decode(&self.vault) {
            Ok(stored) => Some(ProviderJob { operation: stored.operation, attempts }),
            Err(error) => {
                // One bad row must not stop the queue.
                tracing::error!(%error, "a provider job cannot be read and is left for later");
                None
            }
        });
        Ok(jobs.collect())
    }
}

impl Store for SqliteStore {
    fn comparer(&self) -> &Comparer {
        self.vault.comparer()
    }

    /// Queues the transaction at once; what is given waits for its commit.
    fn create(&self, draft: Draft) -> Answer<'_, Creation> {
        let row = NewRow::new(draft, &self.vault, &self.contexts);
        let context = row.context.clone();
        let nonce = self.random.number();
        let create = move |connection: &rusqlite::Connection| create::create(connection, &row, nonce);
        let committed = self.writer.submit(create);
        Box::pin(async move {
            let created = committed.await?;
            if let Created::Stored { .. } = created {
                self.contexts.stored(&context);
            }
            self.told(created)
        })
    }

    fn by_order<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> Answer<'a, Standing> {
        Box::pin(async move {
            let key = self.comparer().order_key(merchant, direction, order_id);
            Ok(match self.readers.read(|connection| homes::standing(connection, key))? {
                super::homes::Standing::Free => Standing::Free,
                super::homes::Standing::Operation(row) => Standing::Operation(Box::new(row.decode(&self.vault)?)),
                super::homes::Standing::Elsewhere => Standing::Reserved,
            })
        })
    }

    fn by_id(&self, id: TransactionId) -> Answer<'_, Option<Stored>> {
        Box::pin(async move {
            let row = self.readers.read(|connection| StoredRow::by_id(connection, id))?;
            row.map(|row| row.decode(&self.vault)).transpose()
        })
    }

    fn v1_status<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> Answer<'a, Option<Shown>> {
        Box::pin(async move {
            let key = self.comparer().order_key(merchant, direction, order_id);
            let read = self.readers.read(|connection| V1Status::of_order(connection, key))?;
            read.map(|status| status.understand(&self.vault, direction, order_id)).transpose()
        })
    }

    fn v2_status<'a>(&'a self, merchant: &'a MerchantId, id: TransactionId) -> Answer<'a, Option<Record>> {
        Box::pin(async move {
            let read = self.readers.read(|connection| V2Status::of_id(connection, merchant, id))?;
            read.map(|status| status.understand(&self.vault, id)).transpose()
        })
    }

    fn fields(&self, id: TransactionId) -> Answer<'_, Option<Fields>> {
        Box::pin(async move {
            let sealed = self.readers.read(|connection| row::sealed(connection, id))?;
            sealed.map(|sealed| opened_fields(&self.vault, id, &sealed)).transpose()
        })
    }

    fn settle(&self, id: TransactionId, outcome: Outcome, at: UnixMillis) -> Answer<'_, Settlement> {
        Box::pin(self.book(id, outcome, at))
    }

    fn prepare(&self, id: TransactionId, preparation: Preparation) -> Answer<'_, bool> {
        Box::pin(async move {
            let sealed = preparations::sealed(&self.vault, id, &preparation)?;
            let keep = move |connection: &rusqlite::Connection| {
                at_once(complete::prepare(&mut SqliteRows(connection), id, &sealed))
            };
            self.writer.submit(keep).await
        })
    }

    fn preparation(&self, id: TransactionId) -> Answer<'_, Option<Preparation>> {
        Box::pin(async move {
            let sealed = self.readers.read(|connection| preparations::of(connection, id))?;
            sealed.map(|sealed| preparations::opened(&self.vault, id, &sealed)).transpose()
        })
    }

    fn provider_queues(&self) -> Answer<'_, Vec<ProviderQueue>> {
        Box::pin(async move {
            self.readers
                .read(|connection| tasks::queues(connection, TaskKind::ProviderJob))?
                .into_iter()
                .map(ProviderQueue::of)
                .collect()
        })
    }

    fn claim_provider_jobs(&self, claim: Claim) -> Answer<'_, Vec<ProviderJob>> {
        Box::pin(self.claim(claim))
    }

    fn postpone_provider_job(&self, id: TransactionId, due: UnixMillis) -> Answer<'_, ()> {
        Box::pin(self.writer.submit(move |connection| {
            at_once(SqliteRows(connection).release_task(TaskKind::ProviderJob, id.to_stored(), due))
        }))
    }

    fn reserve<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_ids: &'a [OrderId],
        at: UnixMillis,
    ) -> Answer<'a, Reservations> {
        Box::pin(async move {
            let key = |order_id| self.comparer().order_key(merchant, direction, order_id);
            let keys: Vec<_> = order_ids.iter().map(key).collect();
            let imported = Home::imported(merchant, at);
            let reserve = move |connection: &rusqlite::Connection| {
                at_once(super::homes::reserve(&mut SqliteRows(connection), &keys, imported))
            };
            self.writer.submit(reserve).await
        })
    }

    fn open_ledger<'a>(
        &'a self,
        merchant: &'a MerchantId,
        opening: Arc<[(Currency, Amount)]>,
        at: UnixMillis,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            // Almost every merchant is known: that costs no commit.
            if self.readers.read(|connection| ledger::knows(connection, merchant))? {
                return Ok(());
            }
            let (merchant, random) = (merchant.clone(), self.random.number());
            let open = move |connection: &rusqlite::Connection| {
                at_once(super::create::open_alone(&mut SqliteRows(connection), &merchant, &opening, at, random))
            };
            self.writer.submit(open).await
        })
    }

    fn balances<'a>(&'a self, merchant: &'a MerchantId) -> Answer<'a, Vec<(Currency, Balance)>> {
        Box::pin(async move {
            let found = self.readers.read(|connection| ledger::balances(connection, merchant.as_str()))?;
            let understood = |(currency, balance): (String, Balance)| match Currency::new(&currency) {
                Ok(currency) => Ok((currency, balance)),
                Err(_) => Err(StoreError::Corrupt("an account names no currency".to_owned())),
            };
            found.into_iter().map(understood).collect()
        })
    }

    fn end_provider_job(&self, id: TransactionId) -> Answer<'_, ()> {
        Box::pin(
            self.writer.submit(move |connection| {
                at_once(SqliteRows(connection).end_task(TaskKind::ProviderJob, id.to_stored()))
            }),
        )
    }

    fn history(&self, query: HistoryQuery) -> Answer<'_, Page<Operation>> {
        Box::pin(async move {
            // An id names the millisecond in which its operation was created: times are bounds of ids.
            let first = query.created_from.map_or(0, |at| TransactionId::first_of(at).to_stored());
            let last = query.created_to.map_or(i64::MAX, |at| TransactionId::last_of(at).to_stored());
            let listed = merchant_number(self.comparer(), &query.merchant);
            let read = move |connection: &rusqlite::Connection| {
                lists::page(connection, StoredRow::V1_PAGE, &query, &(first..=last), Some(listed), StoredRow::read)
            };
            let Page { items, has_more } = self.histories.read(&self.readers, read).await?;
            let operation = |row: StoredRow| row.decode(&self.vault).map(|stored| stored.operation);
            Ok(Page { items: items.into_iter().map(operation).collect::<Result<_, _>>()?, has_more })
        })
    }

    fn audit(&self, progress: Arc<dyn Fn(AuditProgress) + Send + Sync>) -> Answer<'_, Audit> {
        Box::pin(async move {
            let (connection, vault) = (self.readers.lend()?, Arc::clone(&self.vault));
            let (reply, result) = oneshot::channel();
            // It reads for long: not on a thread that serves.
            let thread = std::thread::Builder::new().name("store-audit".to_owned()).spawn(move || {
                let audited = audit::run(&connection, vault, &*progress, &|| !reply.is_closed());
                let _ = reply.send(audited);
            });
            thread.map_err(|error| StoreError::Unavailable(error.to_string()))?;
            result.await.unwrap_or_else(|_| Err(StoreError::Corrupt("the audit came to no end".to_owned())))
        })
    }

    fn probe(&self) -> Answer<'_, ()> {
        Box::pin(self.writer.submit(connection::write_probe))
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            // What the writer still answers may need a lookup.
            self.writer.close().await;
            self.readers.close();
            self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
            Ok(())
        })
    }
}
