//! What the end of the process before cut off: creates that were written down and have neither an answer nor a caller who
//! was told that there is none. They are sent again until the engine has answered each.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::Remote;
use super::settle::{Declined, Delivered};
use crate::provider::CurrentRules;
use crate::rules::{KeyEntry, RuleSet};
use crate::store::{Entry, EntryId, StoreError};

/// How many creates are sent at once.
const AT_ONCE: usize = 8;
/// How many entries are read at once.
const PAGE: u16 = 64;
/// The first wait for an engine that cannot answer; it doubles up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Settles the entries that were open when the process started. Those made since are their callers' business, and so are
/// those in doubt: their callers were told, and a payout must not be made long after its caller has given it up.
pub struct Recovery {
    remote: Remote,
    rules: CurrentRules,
    newest: Option<EntryId>,
}

/// What became of an entry.
enum Recovered {
    Made,
    Refused,
    /// There is nobody to sign for it any more.
    Left,
    /// The engine has to be asked again.
    Unknown,
}

impl Remote {
    /// Looks for what was cut off; to be called before requests are served.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn recovery(&self, rules: CurrentRules) -> Result<Recovery, StoreError> {
        let newest = self.newest_open().await?;
        Ok(Recovery { remote: self.clone(), rules, newest })
    }

    /// The newest open entry: what a start finds was cut off by the end of the process before.
    async fn newest_open(&self) -> Result<Option<EntryId>, StoreError> {
        let mut newest = None;
        loop {
            let page = self.journal().open_entries(newest, PAGE).await?;
            match page.last() {
                Some(last) => newest = Some(last.id),
                None => return Ok(newest),
            }
        }
    }
}

impl Recovery {
    /// Works until nothing of the process before is open, or until `stop` is sent to or its sender is dropped. Dropping
    /// the task at any await leaves the journal sound.
    pub async fn run(self, mut stop: oneshot::Receiver<()>) {
        let Some(newest) = self.newest else { return };
        tracing::info!("creates that the last end of the process cut off are sent to the engine again");
        let mut wait = FIRST_WAIT;
        loop {
            let unknown = tokio::select! {
                _ = &mut stop => return,
                round = self.round(newest) => round.unwrap_or_else(|error| {
                    tracing::warn!(%error, "recovery is waiting for the store");
                    1
                }),
            };
            self.remote.metrics().journal_recovering(unknown);
            if unknown == 0 {
                tracing::info!("nothing of the process before is left without an answer");
                return;
            }
            tracing::warn!(unknown, "the engine does not tell what became of creates that were cut off; asking again");
            tokio::select! {
                _ = &mut stop => return,
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(LONGEST_WAIT),
            }
        }
    }

    /// Sends every open entry up to `newest` once; how many are open still.
    async fn round(&self, newest: EntryId) -> Result<usize, StoreError> {
        let mut after = None;
        let mut unknown = 0;
        loop {
            let mut page = self.remote.journal().open_entries(after, PAGE).await?;
            page.retain(|entry| entry.id <= newest);
            let Some(last) = page.last() else { return Ok(unknown) };
            after = Some(last.id);
            unknown += self.page(page).await?;
        }
    }

    async fn page(&self, page: Vec<Entry>) -> Result<usize, StoreError> {
        let rules = (self.rules)();
        let mut unknown = 0;
        let mut sending = JoinSet::new();
        let mut waiting = page.into_iter();
        loop {
            while sending.len() < AT_ONCE
                && let Some(entry) = waiting.next()
            {
                let (remote, rules) = (self.remote.clone(), Arc::clone(&rules));
                sending.spawn(async move { remote.recover(&rules, entry).await });
            }
            match sending.join_next().await {
                Some(Ok(Ok(Recovered::Unknown))) => unknown += 1,
                Some(Ok(Ok(Recovered::Made | Recovered::Refused | Recovered::Left))) => {}
                Some(Ok(Err(error))) => return Err(error),
                Some(Err(panic)) => {
                    tracing::error!(%panic, "a recovery failed; it is tried again");
                    unknown += 1;
                }
                None => return Ok(unknown),
            }
        }
    }
}

impl Remote {
    async fn recover(&self, rules: &RuleSet, entry: Entry) -> Result<Recovered, StoreError> {
        let (id, intent) = (entry.id, &entry.intent);
        // An order id is the merchant's own text, and may be anything: its `Debug` has no line breaks.
        let (merchant, order) = (intent.merchant.to_string(), format!("{:?}", intent.order_id.as_str()));
        let direction = intent.direction.as_str();
        let Some(signer) = signer(rules, &entry) else {
            tracing::warn!(merchant, direction, external_id = %order,
                "nobody's key is left to ask for a create that was cut off; it stays in doubt");
            self.journal().doubt(id).await?;
            return Ok(Recovered::Left);
        };
        match self.deliver(signer.api_key(), &entry, self.deadline()).await {
            Delivered::Made(answer) => {
                let entry = self.journal().answer(entry, answer).await?;
                tracing::info!(merchant, direction, external_id = %order, entry = entry.id.0, "recovered: the engine has it");
                Ok(Recovered::Made)
            }
            Delivered::Declined(Declined::Invalid(_) | Declined::Conflict(_)) => {
                tracing::warn!(merchant, direction, external_id = %order,
                    "withdrawn: the engine refuses a create that was cut off");
                self.journal().withdraw(id).await?;
                Ok(Recovered::Refused)
            }
            Delivered::Unknown(failure) => {
                tracing::debug!(?failure, merchant, direction, external_id = %order, "not recovered yet");
                Ok(Recovered::Unknown)
            }
        }
    }
}

/// The key that an entry came with, or the first of its merchant's that can sign.
fn signer(rules: &RuleSet, entry: &Entry) -> Option<KeyEntry> {
    let intent = &entry.intent;
    let signs = |key: &KeyEntry| key.merchant.id == intent.merchant && key.api_key().v2_secrets.is_some();
    let own = rules.api_key(&intent.api_key).filter(|key| signs(key)).cloned();
    own.or_else(|| {
        let merchant = rules.merchants.get(&intent.merchant)?;
        let keys = (0..merchant.api_keys.len()).map(|index| KeyEntry { merchant: Arc::clone(merchant), index });
        keys.into_iter().find(|key| signs(key))
    })
}
