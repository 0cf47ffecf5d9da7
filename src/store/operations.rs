//! The trait [`Store`], implemented for every [`Backend`]: what creates and completes operations.

use std::sync::Arc;

use super::backend::{Backend, ReadKind};
use super::complete::{self, Completion};
use super::rows::operation::NewRow;
use super::rows::preparation;
use super::sql::{Sql, Transaction as _, sql};
use super::{
    Audit, AuditProgress, AuditTrail, BackupMark, CheckCounts, CompletionOutcome, CreateOutcome, Exports,
    InsertOutcome, JobEnd, Journal, NewOperation, OperationList, OrderHomes, OrderLookups, Outbox, ProviderJob,
    ProviderJobs, Resolutions, ResultSource, StoreFuture, Upgrade, create, lookups,
};
use crate::domain::{
    Amount, Currency, FingerprintKey, MerchantId, Outcome, Preparation, State, TransactionId, UnixMillis,
};

/// The durable store: operations, callbacks, the audit trail, and the journal of creates that were forwarded to a remote
/// engine.
pub trait Store:
    OrderLookups
    + OperationList
    + OrderHomes
    + ProviderJobs
    + Resolutions
    + Journal
    + Outbox
    + CheckCounts
    + AuditTrail
    + Exports
    + BackupMark
    + Upgrade
    + Send
    + Sync
    + 'static
{
    /// Returns the key of the hashes that requests are compared by. It never changes during the life of a store.
    fn fingerprint_key(&self) -> &FingerprintKey;

    /// Stores a new operation with everything that belongs to it in one commit, unless its merchant, direction and
    /// `order_id` already name an operation or are reserved. Resolves only after the commit is on disk.
    ///
    /// The commit contains, in this order: the merchant's opening balances, if the merchant is not known yet; for a
    /// pending operation the checks of the customer's daily limit and then, for a withdrawal, of the balance (either
    /// may turn it FAILED, see [`CreateOutcome`]); the operation; the hold of a pending withdrawal; the provider job of
    /// a pending operation; the callback of a finished one.
    fn create(&self, draft: NewOperation) -> StoreFuture<'_, InsertOutcome>;

    /// Completes an operation. One commit writes the result, its ledger entries and its callback, gives back the daily
    /// usage of a failed operation, and removes the provider job, whose last state it keeps, and the preparation. A
    /// repeated result changes nothing.
    fn complete(
        &self,
        id: TransactionId,
        outcome: Outcome,
        source: ResultSource,
        at: UnixMillis,
    ) -> StoreFuture<'_, CompletionOutcome>;

    /// Stores what a provider prepared for the customer of a pending deposit, replacing an earlier preparation, and
    /// ends the operation's provider job as `end`, in one commit. Returns `false`, with nothing stored, when there is no such
    /// pending deposit.
    fn prepare(
        &self,
        id: TransactionId,
        preparation: Preparation,
        end: JobEnd,
        at: UnixMillis,
    ) -> StoreFuture<'_, bool>;

    /// Gives up a claimed provider job. A deposit that has no preparation gets [`Preparation::Stopped`], so that its customer
    /// does not wait for one. `failure`: why there was no result. Returns `false`, with nothing changed, if the job has ended
    /// meanwhile, or this claim of it.
    fn give_up_provider_job<'a>(
        &'a self,
        job: &'a ProviderJob,
        failure: &'a str,
        at: UnixMillis,
    ) -> StoreFuture<'a, bool>;

    /// Posts a merchant's opening balances on their own, unless the merchant is known: it has operations, or its ledger
    /// was opened before. Resolves only after the commit is on disk.
    fn open_ledger<'a>(
        &'a self,
        merchant: &'a MerchantId,
        opening: Arc<[(Currency, Amount)]>,
        at: UnixMillis,
    ) -> StoreFuture<'a, ()>;

    /// Checks the invariants on one snapshot, without blocking writers: the entries of a merchant and currency sum to
    /// zero, and its accounts are their sums; every operation has the postings that its state requires, and no posting
    /// lacks its operation; every result has its callback; callbacks and their tries belong to a completed operation or
    /// entry, and to its target; jobs and preparations belong to pending operations; journal entries match their
    /// states; everything sealed can be decrypted. `progress` is called from time to time, from another thread.
    fn audit(&self, progress: Arc<dyn Fn(AuditProgress) + Send + Sync>) -> StoreFuture<'_, Audit>;

    /// Checks that the store can still commit.
    fn probe(&self) -> StoreFuture<'_, ()>;

    /// Finishes the accepted work, then closes. Later calls fail with [`StoreError::Unavailable`](super::StoreError::Unavailable).
    fn close(&self) -> StoreFuture<'_, ()>;
}

impl<B: Backend> Store for B {
    fn fingerprint_key(&self) -> &FingerprintKey {
        self.vault().fingerprint_key()
    }

    /// Queues the create before returning; the future waits for its commit.
    fn create(&self, draft: NewOperation) -> StoreFuture<'_, InsertOutcome> {
        let losses = self.losses();
        let is_finished = draft.operation.state != State::Pending;
        let new = NewRow::new(draft, self.vault(), self.contexts().since(losses));
        let context = new.context.clone();
        let created = self.insert(new, self.random().number());
        Box::pin(async move {
            Ok(match created.await? {
                InsertOutcome::Created(outcome) => {
                    if losses == self.losses() {
                        self.contexts().stored(&context);
                    }
                    // Not every result has a callback, but a needless wake-up costs the worker little.
                    if is_finished || outcome != CreateOutcome::AsDrafted {
                        self.queued().notify_one();
                    }
                    InsertOutcome::Created(outcome)
                }
                InsertOutcome::Existing(row) => InsertOutcome::Existing(Box::new(row.decode(self.vault())?)),
                InsertOutcome::Reserved => InsertOutcome::Reserved,
                InsertOutcome::IdTaken => {
                    // Perhaps the context was lost with a server: the create with the next id stores it again.
                    self.contexts().forget(&context);
                    InsertOutcome::IdTaken
                }
            })
        })
    }

    fn complete(
        &self,
        id: TransactionId,
        outcome: Outcome,
        source: ResultSource,
        at: UnixMillis,
    ) -> StoreFuture<'_, CompletionOutcome> {
        let completion = Completion::new(self, id, outcome, source, at);
        Box::pin(async move {
            let outcome = self.transact(async move |tx| complete::complete(tx, &completion).await).await?;
            if outcome == CompletionOutcome::Completed {
                // Not every result has a callback.
                self.queued().notify_one();
            }
            Ok(outcome)
        })
    }

    fn prepare(
        &self,
        id: TransactionId,
        preparation: Preparation,
        end: JobEnd,
        at: UnixMillis,
    ) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let sealed = preparation::seal(self.vault(), id, &preparation)?;
            self.transact(async move |tx| complete::prepare(tx, id, &sealed, end, at).await).await
        })
    }

    fn give_up_provider_job<'a>(
        &'a self,
        job: &'a ProviderJob,
        failure: &'a str,
        at: UnixMillis,
    ) -> StoreFuture<'a, bool> {
        let (job, failure) = (job.claimed(), Box::<str>::from(failure));
        Box::pin(async move {
            let stopped = preparation::seal(self.vault(), job.id, &Preparation::Stopped)?;
            self.transact(async move |tx| complete::give_up(tx, job, &failure, &stopped, at).await).await
        })
    }

    fn open_ledger<'a>(
        &'a self,
        merchant: &'a MerchantId,
        opening: Arc<[(Currency, Amount)]>,
        at: UnixMillis,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            // Almost every merchant is known; then nothing is committed.
            let (of, merchant, random) = (merchant.clone(), merchant.clone(), self.random().number());
            if self.read(ReadKind::Lookup, async move |tx| lookups::is_known_merchant(tx, &of).await).await? {
                return Ok(());
            }
            let open = async move |tx: &B::Tx<'_>| create::open_alone(tx, &merchant, &opening, at, random).await;
            self.transact(open).await
        })
    }

    fn audit(&self, progress: Arc<dyn Fn(AuditProgress) + Send + Sync>) -> StoreFuture<'_, Audit> {
        Box::pin(self.run_audit(progress))
    }

    fn probe(&self) -> StoreFuture<'_, ()> {
        const PROBE: Sql = sql!("UPDATE probe SET count = count + 1 WHERE id = 1");
        Box::pin(self.run_alone(async |tx| tx.execute(PROBE, &[]).await.map(drop)))
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.finish().await;
            Ok(())
        })
    }
}
