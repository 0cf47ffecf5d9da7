//! The PostgreSQL store: one database, any number of gateways (contract section 11).
//!
//! ```text
//! create               what has nothing to decide: up to 128 in one statement and one commit
//!                      the rest: a transaction of its own
//! settle, claim, ...   a transaction each
//! by_id, by_order, ... a statement each
//! ```
//!
//! All of it runs on one thread of the process, which owns all connections ([`node`], `store.connections` at most). Seals and hashes are the
//! caller's. Nodes owe each other nothing: a unique key settles races, row locks order those who decide, leases hand
//! over the work of those who died. What a lost connection leaves unknown is asked for again, never assumed ([`fault`]).

mod audit;
mod backend;
mod batch;
mod clock;
mod connect;
pub mod copying;
mod create;
mod fault;
mod given;
mod history;
mod homes;
mod hosts;
mod insert;
mod journal;
mod ledger;
mod node;
mod opening;
mod outbox;
mod preparations;
mod refusals;
mod row;
mod schema;
mod statuses;
mod tasks;
#[cfg(test)]
mod tests;
mod transaction;
mod turns;
mod words;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

use create::Created;
use fault::Fault;
use node::Thread;
pub use opening::{open, open_beside, rewrap_keys};
use row::{StoredRow, bucket_in, bucket_of, get};
use transaction::PgRows;

use super::vault::Vault;
use super::{
    Answer, Audit, AuditProgress, Claim, Comparer, Creation, Digest, Draft, Fields, ProviderJob, ProviderQueue,
    Reservations, Settlement, Standing, Store, StoreError, Stored,
};
use crate::clock::Random;
use crate::domain::{
    Amount, Balance, Currency, Direction, HistoryQuery, MerchantId, Operation, OrderId, Outcome, Page, Preparation,
    Record, Shown, TransactionId, UnixMillis,
};
use crate::store::complete::{self, Completion};
use crate::store::homes::Home;
use crate::store::rows::context::{Contexts, merchant_number};
use crate::store::rows::details::opened_fields;
use crate::store::rows::operation::{NewRow, sealed_payer};
use crate::store::rows::preparation;
use crate::store::tasks::{ClaimedTask, TaskClaim, TaskKind, TaskRows};

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    thread: Thread,
    queued: Arc<Notify>,
    vault: Arc<Vault>,
    contexts: Contexts,
    /// How often a server had been lost when contexts were last forgotten.
    remembered_since: AtomicU64,
    random: Arc<dyn Random>,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PostgresStore(..)")
    }
}

impl PostgresStore {
    async fn store(&self, draft: Draft) -> Result<Creation, StoreError> {
        let losses = self.remembering();
        let new = Arc::new(NewRow::new(draft, &self.vault, &self.contexts));
        let context = new.context.clone();
        let nonce = self.random.number();
        let created = self.thread.run(async move |node| create::create(&node, new, nonce).await).await?;
        if matches!(created, Created::Stored { .. }) && losses == self.thread.losses() {
            self.contexts.stored(&context);
        }
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

    /// What is known to be stored was stored on a server that may be lost, with commits that no other server has: then all
    /// of it is asked for again. How often that was.
    fn remembering(&self) -> u64 {
        let losses = self.thread.losses();
        if self.remembered_since.swap(losses, Ordering::AcqRel) != losses {
            self.contexts.forget();
        }
        losses
    }

    async fn operation(&self, id: TransactionId) -> Result<Option<Stored>, StoreError> {
        let read = self.thread.run(async move |node| {
            node.ask(async |client| {
                let statement = client.prepare_cached(row::BY_ID).await?;
                let found = client.query_opt(&statement, &[&bucket_in(id), &id.to_stored()]).await?;
                found.as_ref().map(row::read).transpose()
            })
            .await
        });
        read.await?.map(|row| row.decode(&self.vault)).transpose()
    }

    async fn book(&self, id: TransactionId, outcome: Outcome, at: UnixMillis) -> Result<Settlement, StoreError> {
        let payer = match &outcome {
            Outcome::Success { payer } => sealed_payer(&self.vault, id, payer.as_ref()),
            Outcome::Failed => None,
        };
        let completion = Completion { id, outcome, payer, at, nonce: self.random.number() };
        let completed = self.thread.run(async move |node| {
            node.transact(async |transaction| complete::complete(&mut PgRows(transaction), &completion).await).await
        });
        let settlement = completed.await?;
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
        let claimed = self.thread.run(async move |node| {
            node.clock.require_right()?;
            let claimed = node.ask(async |client| tasks::claim(client, &claim).await).await?;
            let keys: Vec<i64> = claimed.iter().map(|task| task.key).collect();
            let rows = node.ask(async |client| row::by_ids(client, &keys).await).await?;
            Ok((claimed, rows))
        });
        let (claimed, mut rows): (Vec<ClaimedTask>, HashMap<i64, StoredRow>) = claimed.await?;
        let mut jobs = Vec::new();
        for ClaimedTask { key, attempts, .. } in claimed {
            let Some(row) = rows.remove(&key) else { continue };
            match row.decode(&self.vault) {
                Ok(stored) => jobs.push(ProviderJob { operation: stored.operation, attempts }),
                // One bad row must not stop the queue.
                Err(error) => tracing::error!(%error, "a provider job cannot be read and is left for later"),
            }
        }
        Ok(jobs)
    }
}

impl Store for PostgresStore {
    fn comparer(&self) -> &Comparer {
        self.vault.comparer()
    }

    fn create(&self, draft: Draft) -> Answer<'_, Creation> {
        Box::pin(self.store(draft))
    }

    fn by_order<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> Answer<'a, Standing> {
        Box::pin(async move {
            let (bucket, order) = (bucket_of(merchant), self.comparer().order_key(merchant, direction, order_id));
            let read = self
                .thread
                .run(async move |node| node.ask(async |client| homes::standing(client, bucket, order).await).await);
            Ok(match read.await? {
                super::homes::Standing::Free => Standing::Free,
                super::homes::Standing::Operation(row) => Standing::Operation(Box::new(row.decode(&self.vault)?)),
                super::homes::Standing::Elsewhere => Standing::Reserved,
            })
        })
    }

    fn by_id(&self, id: TransactionId) -> Answer<'_, Option<Stored>> {
        Box::pin(self.operation(id))
    }

    fn v1_status<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_id: &'a OrderId,
    ) -> Answer<'a, Option<Shown>> {
        Box::pin(async move {
            let order = self.comparer().order_key(merchant, direction, order_id);
            let merchant = merchant.clone();
            let read = self
                .thread
                .run(async move |node| node.ask(async |client| statuses::v1(client, &merchant, order).await).await);
            read.await?.map(|status| status.understand(&self.vault, direction, order_id)).transpose()
        })
    }

    fn v2_status<'a>(&'a self, merchant: &'a MerchantId, id: TransactionId) -> Answer<'a, Option<Record>> {
        Box::pin(async move {
            let merchant = merchant.clone();
            let read = self
                .thread
                .run(async move |node| node.ask(async |client| statuses::v2(client, &merchant, id).await).await);
            read.await?.map(|status| status.understand(&self.vault, id)).transpose()
        })
    }

    fn fields(&self, id: TransactionId) -> Answer<'_, Option<Fields>> {
        Box::pin(async move {
            let read = self.thread.run(async move |node| {
                node.ask(async |client| {
                    let statement = client
                        .prepare_cached("SELECT sealed FROM operations WHERE bucket = $1 AND transaction_id = $2")
                        .await?;
                    let found = client.query_opt(&statement, &[&bucket_in(id), &id.to_stored()]).await?;
                    found.map(|row| get::<Vec<u8>>(&row, 0)).transpose()
                })
                .await
            });
            read.await?.map(|sealed| opened_fields(&self.vault, id, &sealed)).transpose()
        })
    }

    fn settle(&self, id: TransactionId, outcome: Outcome, at: UnixMillis) -> Answer<'_, Settlement> {
        Box::pin(self.book(id, outcome, at))
    }

    fn prepare(&self, id: TransactionId, preparation: Preparation) -> Answer<'_, bool> {
        Box::pin(async move {
            let sealed = preparation::sealed(&self.vault, id, &preparation)?;
            let kept = self.thread.run(async move |node| {
                node.transact(async |transaction| complete::prepare(&mut PgRows(transaction), id, &sealed).await).await
            });
            kept.await
        })
    }

    fn preparation(&self, id: TransactionId) -> Answer<'_, Option<Preparation>> {
        Box::pin(async move {
            let read =
                self.thread.run(async move |node| node.ask(async |client| preparations::of(client, id).await).await);
            read.await?.map(|sealed| preparation::opened(&self.vault, id, &sealed)).transpose()
        })
    }

    fn provider_queues(&self) -> Answer<'_, Vec<ProviderQueue>> {
        Box::pin(async move {
            let read = self.thread.run(async move |node| {
                node.ask(async |client| tasks::queues(client, TaskKind::ProviderJob).await).await
            });
            read.await?.into_iter().map(ProviderQueue::of).collect()
        })
    }

    fn claim_provider_jobs(&self, claim: Claim) -> Answer<'_, Vec<ProviderJob>> {
        Box::pin(self.claim(claim))
    }

    fn postpone_provider_job(&self, id: TransactionId, due: UnixMillis) -> Answer<'_, ()> {
        Box::pin(self.thread.run(async move |node| {
            node.transact(async |transaction| {
                PgRows(transaction).release_task(TaskKind::ProviderJob, id.to_stored(), due).await
            })
            .await
        }))
    }

    fn end_provider_job(&self, id: TransactionId) -> Answer<'_, ()> {
        Box::pin(self.thread.run(async move |node| {
            node.transact(async |transaction| PgRows(transaction).end_task(TaskKind::ProviderJob, id.to_stored()).await)
                .await
        }))
    }

    fn reserve<'a>(
        &'a self,
        merchant: &'a MerchantId,
        direction: Direction,
        order_ids: &'a [OrderId],
        at: UnixMillis,
    ) -> Answer<'a, Reservations> {
        let key = |order_id| self.comparer().order_key(merchant, direction, order_id);
        let (imported, keys): (_, Vec<Digest>) = (Home::imported(merchant, at), order_ids.iter().map(key).collect());
        Box::pin(self.thread.run(async move |node| {
            node.transact(async |transaction| super::homes::reserve(&mut PgRows(transaction), &keys, imported).await)
                .await
        }))
    }

    fn open_ledger<'a>(
        &'a self,
        merchant: &'a MerchantId,
        opening: Arc<[(Currency, Amount)]>,
        at: UnixMillis,
    ) -> Answer<'a, ()> {
        let (merchant, random) = (merchant.clone(), self.random.number());
        Box::pin(self.thread.run(async move |node| {
            // Almost every merchant is known: that costs no commit.
            if node.ask(async |client| ledger::knows(client, &merchant).await).await? {
                return Ok(());
            }
            let open = async |transaction: &deadpool_postgres::Transaction<'_>| {
                crate::store::create::open_alone(&mut PgRows(transaction), &merchant, &opening, at, random).await
            };
            node.transact(open).await
        }))
    }

    fn balances<'a>(&'a self, merchant: &'a MerchantId) -> Answer<'a, Vec<(Currency, Balance)>> {
        let merchant = merchant.clone();
        Box::pin(
            self.thread.run(async move |node| node.ask(async |client| ledger::balances(client, &merchant).await).await),
        )
    }

    fn history(&self, query: HistoryQuery) -> Answer<'_, Page<Operation>> {
        Box::pin(async move {
            // An id names the millisecond in which its operation was created: times are bounds of ids.
            let first = query.created_from.map_or(0, |at| TransactionId::first_of(at).to_stored());
            let last = query.created_to.map_or(i64::MAX, |at| TransactionId::last_of(at).to_stored());
            let listed = Some(merchant_number(self.comparer(), &query.merchant));
            let read = self.thread.run(async move |node| {
                history::page(&node, history::PAGE, &query, (first, last), listed, row::read).await
            });
            let Page { items, has_more } = read.await?;
            let operation = |row: StoredRow| row.decode(&self.vault).map(|stored| stored.operation);
            Ok(Page { items: items.into_iter().map(operation).collect::<Result<_, _>>()?, has_more })
        })
    }

    fn audit(&self, progress: Arc<dyn Fn(AuditProgress) + Send + Sync>) -> Answer<'_, Audit> {
        let vault = Arc::clone(&self.vault);
        Box::pin(self.thread.run_while_asked(async move |node| audit::run(&node, vault, progress).await))
    }

    fn probe(&self) -> Answer<'_, ()> {
        Box::pin(self.thread.run(async move |node| {
            node.ask(async |client| {
                let statement = client.prepare_cached("UPDATE probe SET count = count + 1 WHERE id = 1").await?;
                client.execute(&statement, &[]).await.map(drop).map_err(Fault::from)
            })
            .await
        }))
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            self.thread.close().await;
            Ok(())
        })
    }
}
