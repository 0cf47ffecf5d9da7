//! Recovery at start: creates in the journal that the last process left without a response and without a reply to their
//! caller. They are sent again until the engine has responded to each. An entry that it refuses now stays unknown: the
//! interrupted request may still be in progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::client::Remote;
use super::deadline::RequestDeadline;
use super::resolve::{Declined, Delivered, Signer, Unresolved};
use crate::backoff;
use crate::error::ApiError;
use crate::rules::RuleSet;
use crate::store::{EntryId, EntryProgress, JournalEntry, StoreError};

/// The most creates sent at once.
const AT_ONCE: usize = 8;
/// The number of entries read at once.
const PAGE: u16 = 64;
/// The first and the longest wait for an engine that does not respond.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Resolves the entries that were open when the process started. Entries made since belong to their callers, and so do those
/// that are unknown: their callers got a 504, and a payout must not be made long after its caller has given it up.
pub struct Recovery {
    remote: Remote,
    newest: Option<EntryId>,
    /// The number of entries left, as far as is known.
    left: AtomicUsize,
}

/// The result of resolving an entry.
enum Recovered {
    /// It is resolved, or unknown and left to its caller.
    Done,
    /// It has to be sent again: why.
    Unknown(ApiError),
}

impl Remote {
    /// Finds the interrupted creates; called before requests are served.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn recovery(&self) -> Result<Recovery, StoreError> {
        let (mut newest, mut left) = (None, 0);
        loop {
            let page = self.journal().open_entries(newest, PAGE).await?;
            let Some(last) = page.last() else { break };
            (newest, left) = (Some(last.id), left + page.len());
        }
        self.metrics().journal_recovering(left);
        Ok(Recovery { remote: self.clone(), newest, left: AtomicUsize::new(left) })
    }
}

impl Recovery {
    /// Runs until no entry of the last process is open, or until `stop` is sent to or its sender is dropped. Dropping the task
    /// at any await leaves the journal consistent.
    pub async fn run(self, mut stop: oneshot::Receiver<()>) {
        let Some(newest) = self.newest else { return };
        let creates = self.left.load(Ordering::Relaxed);
        tracing::info!(creates, "creates that the last process left without a response are sent to the engine again");
        let recovery = Arc::new(self);
        for rounds in 0.. {
            let round = tokio::select! {
                _ = &mut stop => return,
                round = Arc::clone(&recovery).round(newest) => round,
            };
            match round {
                Ok((0, _)) => break,
                Ok((left, failure)) => {
                    // Callers may have resolved some meanwhile.
                    recovery.left.store(left, Ordering::Relaxed);
                    recovery.remote.metrics().journal_recovering(left);
                    tracing::warn!(
                        left,
                        failure = failure.as_ref().map(ApiError::cause),
                        "the engine does not respond to interrupted creates; sending them again"
                    );
                }
                Err(error) => tracing::warn!(%error, "recovery is waiting for the store"),
            }
            let random = recovery.remote.parts.deps.random.number();
            let wait = backoff::wait(FIRST_WAIT, LONGEST_WAIT, rounds, None, random);
            tokio::select! {
                _ = &mut stop => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
        recovery.remote.metrics().journal_recovering(0);
        tracing::info!("every create of the last process has a response");
    }

    /// Sends every open entry up to `newest` once; returns how many are still open, and why one of them is.
    async fn round(self: Arc<Self>, newest: EntryId) -> Result<(usize, Option<ApiError>), StoreError> {
        let (mut after, mut open, mut why) = (None, 0, None);
        loop {
            let mut page = self.remote.journal().open_entries(after, PAGE).await?;
            page.retain(|entry| entry.id <= newest);
            let Some(last) = page.last() else { return Ok((open, why)) };
            after = Some(last.id);
            let unknown = Arc::clone(&self).page(page).await?;
            open += unknown.len();
            why = unknown.into_iter().next().or(why);
        }
    }

    async fn page(self: Arc<Self>, page: Vec<JournalEntry>) -> Result<Vec<ApiError>, StoreError> {
        let rules = self.remote.parts.deps.rules.load_full();
        let mut unknown = Vec::new();
        let mut sending = JoinSet::new();
        let mut waiting = page.into_iter();
        loop {
            while sending.len() < AT_ONCE
                && let Some(entry) = waiting.next()
            {
                let (remote, rules) = (self.remote.clone(), Arc::clone(&rules));
                sending.spawn(async move { remote.recover(&rules, &entry).await });
            }
            match sending.join_next().await {
                Some(Ok(Ok(Recovered::Done))) => self.count_down(),
                Some(Ok(Ok(Recovered::Unknown(failure)))) => unknown.push(failure),
                Some(Ok(Err(error))) => return Err(error),
                Some(Err(panic)) => {
                    unknown.push(ApiError::Internal { cause: format!("a recovery failed: {panic}") });
                }
                None => return Ok(unknown),
            }
        }
    }

    fn count_down(&self) {
        let before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        self.remote.metrics().journal_recovering(before.unwrap_or(1).saturating_sub(1));
    }
}

impl Remote {
    async fn recover(&self, rules: &RuleSet, entry: &JournalEntry) -> Result<Recovered, StoreError> {
        let create = &entry.create;
        let deadline = self.deadline();
        // A repeat of the create, or a status request, is resolving it already.
        let Ok(_guard) = self.parts.orders.lock(&create.merchant, create.direction, &create.order_id, deadline).await
        else {
            return Ok(Recovered::Unknown(ApiError::EngineTimeout));
        };
        match self.journal().entry(&create.merchant, create.direction, &create.order_id).await? {
            Some(entry) if entry.progress == EntryProgress::Open => self.recover_open(rules, entry, deadline).await,
            _ => Ok(Recovered::Done),
        }
    }

    async fn recover_open(
        &self,
        rules: &RuleSet,
        entry: JournalEntry,
        deadline: RequestDeadline,
    ) -> Result<Recovered, StoreError> {
        let (id, now) = (entry.id, self.parts.deps.clock.now());
        let signer = Signer::of(rules, &entry.create).filter(|_| !self.is_old_by_itself(&entry));
        let Some(signer) = signer else {
            warn(&entry, "it is too old to be sent again, or its merchant has no key to sign it with");
            return self.journal().mark_unknown(id, now).await.map(|()| Recovered::Done);
        };
        self.journal().sent_again(id, now).await?;
        let Delivered { outcome, .. } = self.deliver(signer.key(), &entry, deadline).await;
        match outcome {
            Ok(answer) => {
                match self.keep(entry.clone(), answer).await {
                    Ok(_) => tracing::info!(merchant = entry.create.merchant.as_str(),
                        direction = entry.create.direction.as_str(), external_id = ?entry.create.order_id.as_str(),
                        "recovered: the engine has it"),
                    Err(ApiError::BadEngineReply { cause }) => warn(&entry, &cause),
                    Err(failure) => return Ok(Recovered::Unknown(failure)),
                }
                Ok(Recovered::Done)
            }
            Err(Unresolved::Declined(Declined::Invalid(error) | Declined::Conflict(error))) => {
                warn(&entry, &format!("the engine refuses it now: {error}"));
                self.journal().mark_unknown(id, now).await.map(|()| Recovered::Done)
            }
            Err(Unresolved::Failed(failure)) => Ok(Recovered::Unknown(failure)),
        }
    }
}

/// Logs an entry whose outcome stays unknown.
fn warn(entry: &JournalEntry, why: &str) {
    let create = &entry.create;
    // An order id is the merchant's own text, and may be anything: its `Debug` has no line breaks.
    tracing::warn!(merchant = create.merchant.as_str(), direction = create.direction.as_str(),
        external_id = ?create.order_id.as_str(), why, "the outcome of an interrupted create stays unknown");
}
