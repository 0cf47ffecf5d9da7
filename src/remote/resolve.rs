//! Resolving an entry of the journal: its body is sent, and the outcome is stored before it is used.
//!
//! An entry is cancelled only when it can no longer become an operation. A create that was refused, or never left, proves
//! that only if nothing was sent for the entry before: an earlier request whose response was lost may still be in progress.

use std::time::Duration;

use bytes::Bytes;

use super::client::Remote;
use super::deadline::RequestDeadline;
use super::exchange::{EngineCredentials, EngineResponse, RequestResult};
use super::{messages, responses};
use crate::error::{ApiError, Busy, RequestError};
use crate::rules::{ApiKey, KeyEntry, RuleSet};
use crate::store::{EngineAnswer, EntryProgress, JournalEntry, NotKept, PendingCreate};

/// How many times `engine.timeout` an abandoned request counts as still in progress.
const UNDER_WAY: u32 = 12;

/// The outcome of an entry whose body was sent.
pub(super) enum Resolution {
    /// The engine has an operation for it: the entry with the response, as stored.
    Made(Box<JournalEntry>),
    /// The engine refused it, and the entry is cancelled.
    Declined(Declined),
}

/// Why an engine refused a create, with v1 names except for the member that the error is about.
#[derive(Debug)]
pub(super) enum Declined {
    /// A rule refuses it.
    Invalid(RequestError),
    /// The engine knows the order from other data.
    Conflict(RequestError),
}

/// The result of sending a body.
pub(super) struct Delivered {
    pub outcome: Result<EngineAnswer, Unresolved>,
    /// The engine may have accepted a try whose outcome is unknown.
    pub unsure: bool,
}

/// Why no operation is known.
pub(super) enum Unresolved {
    Declined(Declined),
    Failed(ApiError),
}

/// The key that signs for an entry: the one it came with, or else the merchant's first one that can sign.
pub(super) struct Signer {
    key: KeyEntry,
    /// Whether it is the entry's own: another key may lack its permissions.
    own: bool,
}

impl Signer {
    pub(super) fn of(rules: &RuleSet, create: &PendingCreate) -> Option<Self> {
        let signs = |key: &KeyEntry| key.merchant.id == create.merchant && key.api_key().v2_secrets.is_some();
        if let Some(key) = rules.api_key(&create.api_key).filter(|key| signs(key)) {
            return Some(Self { key: key.clone(), own: true });
        }
        let merchant = rules.merchants.get(&create.merchant)?;
        let mut keys =
            (0..merchant.api_keys.len()).map(|index| KeyEntry { merchant: std::sync::Arc::clone(merchant), index });
        keys.find(signs).map(|key| Self { key, own: false })
    }

    pub(super) fn key(&self) -> &ApiKey {
        self.key.api_key()
    }
}

impl Remote {
    /// Sends an entry's body and stores the outcome. `first`: nothing was sent for the entry before.
    ///
    /// # Errors
    /// The outcome is unknown, or could not be stored: the entry stays, and the same request may be sent again. Or nothing was
    /// sent at all, and the entry is cancelled.
    pub(super) async fn resolve(
        &self,
        signer: &Signer,
        entry: JournalEntry,
        first: bool,
        deadline: RequestDeadline,
    ) -> Result<Resolution, ApiError> {
        if !first && entry.progress == EntryProgress::Open {
            self.journal().sent_again(entry.id, self.parts.deps.clock.now()).await?;
        }
        let Delivered { outcome, unsure } = self.deliver(signer.key(), &entry, deadline).await;
        match outcome {
            Ok(answer) => self.keep(entry, answer).await.map(|entry| Resolution::Made(Box::new(entry))),
            Err(Unresolved::Declined(declined)) => {
                let counts = if signer.own { first || self.is_over(&entry) } else { self.is_old(&entry) };
                if !unsure && counts && self.cancel(&entry).await? {
                    return Ok(Resolution::Declined(declined));
                }
                self.mark_unknown(&entry, unsure).await?;
                Err(ApiError::EngineTimeout)
            }
            Err(Unresolved::Failed(failure)) => {
                if !first || unsure || !self.cancel(&entry).await? {
                    self.mark_unknown(&entry, unsure).await?;
                }
                Err(failure)
            }
        }
    }

    /// Stores the engine's response to an entry.
    pub(super) async fn keep(&self, entry: JournalEntry, answer: EngineAnswer) -> Result<JournalEntry, ApiError> {
        let (id, now) = (entry.id, self.parts.deps.clock.now());
        let create = &entry.create;
        let order = (create.merchant.clone(), create.direction, create.order_id.clone());
        match self.journal().answer(entry, answer).await? {
            Ok(kept) => Ok(kept),
            Err(NotKept::OtherOrder) => {
                self.journal().mark_unknown(id, now).await?;
                Err(ApiError::BadEngineReply { cause: "it gave two orders the same transaction_id".to_owned() })
            }
            Err(NotKept::Late) => {
                self.metrics().journal_late_answer();
                let (merchant, direction, order_id) = order;
                // An order id is the merchant's text, and may hold anything: its `Debug` has no line breaks.
                tracing::warn!(merchant = merchant.as_str(), direction = direction.as_str(),
                    external_id = ?order_id.as_str(), "the engine created an operation from a create that it had refused, \
                    and the id was used again: compare them by hand");
                Err(ApiError::EngineTimeout)
            }
        }
    }

    /// Cancels an entry, unless another process has sent it meanwhile.
    async fn cancel(&self, entry: &JournalEntry) -> Result<bool, ApiError> {
        let since = match entry.progress {
            EntryProgress::InDoubt { since } => Some(since),
            EntryProgress::Open | EntryProgress::Answered(_) => None,
        };
        Ok(self.journal().cancel(entry.id, since).await?)
    }

    /// Reports whether no request for an entry can be in progress any more.
    pub(super) fn is_over(&self, entry: &JournalEntry) -> bool {
        let (jumps, time) = (&self.parts.jumps, self.parts.engine.timeout * UNDER_WAY);
        match entry.progress {
            // A clock was ahead then. It is unknown when that was, but it was before the start, or the jump back.
            EntryProgress::InDoubt { since } if since > self.parts.deps.clock.now().plus(time) => {
                jumps.began_until(time, time).is_some()
            }
            EntryProgress::InDoubt { since } => {
                jumps.began_until(time, Duration::ZERO).is_some_and(|until| since <= until)
            }
            EntryProgress::Open | EntryProgress::Answered(_) => false,
        }
    }

    /// Marks an entry's outcome as unknown; `again`: a request for it was abandoned now.
    async fn mark_unknown(&self, entry: &JournalEntry, again: bool) -> Result<(), ApiError> {
        let since = match entry.progress {
            EntryProgress::InDoubt { since } if !again => since,
            EntryProgress::Open | EntryProgress::InDoubt { .. } | EntryProgress::Answered(_) => {
                self.parts.deps.clock.now()
            }
        };
        Ok(self.journal().mark_unknown(entry.id, since).await?)
    }

    /// Sends an entry's body, signed with a key's secret.
    pub(super) async fn deliver(&self, key: &ApiKey, entry: &JournalEntry, deadline: RequestDeadline) -> Delivered {
        let create = &entry.create;
        let body = Bytes::copy_from_slice(&create.body);
        let RequestResult { outcome, unsure } = match EngineCredentials::signing(&create.merchant, key, &body) {
            Ok(credentials) => self.post(create.direction, &credentials, body, deadline).await,
            Err(failure) => RequestResult { outcome: Err(failure), unsure: false },
        };
        let failed = |failure, unsure| Delivered { outcome: Err(Unresolved::Failed(failure)), unsure };
        let declined = |declined| Delivered { outcome: Err(Unresolved::Declined(declined)), unsure };
        match outcome {
            Ok(EngineResponse::Done(body)) => match responses::created(create.direction, &body) {
                Ok(answer) => Delivered { outcome: Ok(answer), unsure },
                Err(cause) => failed(ApiError::BadEngineReply { cause }, true),
            },
            Ok(EngineResponse::Invalid(body)) => declined(Declined::Invalid(messages::error(&body))),
            Ok(EngineResponse::Conflict(body)) => declined(Declined::Conflict(messages::error(&body))),
            // A request over the rate was not accepted; one that the engine cannot take now may have been begun.
            Ok(EngineResponse::Busy(busy, retry_after, _)) => {
                failed(ApiError::EngineBusy { busy, retry_after }, unsure || busy == Busy::Unavailable)
            }
            Ok(EngineResponse::NotFound) => failed(not_found(), true),
            Err(failure) => failed(failure, unsure),
        }
    }
}

/// Makes the error for a 404 to a create, which v2 does not have: the server is no v2 engine.
pub(super) fn not_found() -> ApiError {
    ApiError::BadEngineReply { cause: "it answered HTTP 404 to a create: is engine.url right?".to_owned() }
}
