//! v1 history: pages of the journal, whose pending rows are asked of the engine first.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Remote;
use super::exchange::RequestDeadline;
use super::v1::{may_change, shown};
use crate::auth::Caller;
use crate::domain::{HistoryQuery, OperationView, Page, Status};
use crate::failure::ApiError;
use crate::store::{EntryId, JournalEntry};

/// How many records the engine is asked for at once, for all histories together.
const AT_ONCE: usize = 16;
/// For how long what was heard of a row is good enough for a history.
const FRESH: Duration = Duration::from_secs(2);
/// How many rows are remembered as asked for; beyond, they are asked for again.
const REMEMBERED: usize = 16 * 1024;

impl Remote {
    /// A page of what v1 requests made, newest first.
    ///
    /// Which rows are on a page goes by what was last heard of them. So before rows of a status are looked for, the
    /// newest page of pending ones is asked for; rows that could not be asked in time are shown as last heard.
    pub(super) async fn list_journal(
        &self,
        caller: &Caller,
        query: HistoryQuery,
    ) -> Result<Page<OperationView>, ApiError> {
        let deadline = self.deadline();
        if let Some(status) = query.status {
            let skip = if status == Status::Pending { query.skip } else { 0 };
            let pending = HistoryQuery { status: Some(Status::Pending), skip, ..query.clone() };
            let pending = self.journal().passed(pending).await?;
            self.refreshed(caller, pending.items, deadline).await;
        }
        let by_status = query.status.is_some();
        let Page { items, has_more } = self.journal().passed(query).await?;
        let items = if by_status { items } else { self.refreshed(caller, items, deadline).await };
        Ok(Page { items: items.into_iter().map(shown).collect::<Result<_, _>>()?, has_more })
    }

    /// The entries with what the engine says of them now, where it could be asked. When it says that it is asked too much,
    /// it is left alone.
    async fn refreshed(
        &self,
        caller: &Caller,
        mut entries: Vec<JournalEntry>,
        deadline: RequestDeadline,
    ) -> Vec<JournalEntry> {
        let mut asking = JoinSet::new();
        for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| may_change(entry)) {
            let (remote, caller, entry) = (self.clone(), caller.clone(), entry.clone());
            asking.spawn(async move { (index, remote.refresh(&caller, entry, deadline).await) });
        }
        while let Some(asked) = asking.join_next().await {
            match asked {
                Ok((index, Ok(Some(entry)))) => entries[index] = entry,
                Ok((_, Ok(None))) => {}
                Ok((_, Err(ApiError::EngineBusy { .. }))) => asking.abort_all(),
                Ok((_, Err(failure))) => tracing::debug!(?failure, "a row is shown as it was last heard"),
                Err(error) if error.is_cancelled() => {}
                Err(panic) => tracing::error!(%panic, "a row is shown as it was last heard"),
            }
        }
        entries
    }

    /// One of the entries; `None` when it was asked for a moment ago, or there was no time left.
    async fn refresh(
        &self,
        caller: &Caller,
        entry: JournalEntry,
        deadline: RequestDeadline,
    ) -> Result<Option<JournalEntry>, ApiError> {
        let refreshes = &self.parts.refreshes;
        let Some(Ok(_permit)) = deadline.bounds(refreshes.at_once.acquire()).await else { return Ok(None) };
        if !refreshes.is_due(entry.id) {
            return Ok(None);
        }
        self.with_status(caller.api_key(), entry, deadline).await.map(Some)
    }
}

/// What histories ask of the engine: many rows for one request, so it is bounded for all of them together.
pub(super) struct StatusRefresher {
    at_once: Semaphore,
    asked: Mutex<HashMap<EntryId, Instant>>,
}

impl Default for StatusRefresher {
    fn default() -> Self {
        Self { at_once: Semaphore::new(AT_ONCE), asked: Mutex::default() }
    }
}

impl StatusRefresher {
    /// Whether an entry was not asked for a moment ago; if so, it counts as asked for now.
    fn is_due(&self, id: EntryId) -> bool {
        let now = Instant::now();
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.len() >= REMEMBERED {
            asked.retain(|_, at| now.duration_since(*at) < FRESH);
        }
        let due = asked.get(&id).is_none_or(|at| now.duration_since(*at) >= FRESH);
        if due && asked.len() < REMEMBERED {
            asked.insert(id, now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_entry_is_asked_for_now_and_then() {
        let refreshes = StatusRefresher::default();
        assert!(refreshes.is_due(EntryId(1)));
        assert!(!refreshes.is_due(EntryId(1)));
        assert!(refreshes.is_due(EntryId(2)));
        tokio::time::advance(FRESH).await;
        assert!(refreshes.is_due(EntryId(1)));
        for id in 0..2 * REMEMBERED {
            assert!(refreshes.is_due(EntryId(10 + i64::try_from(id).unwrap())));
        }
        assert!(refreshes.asked.lock().unwrap().len() <= REMEMBERED);
    }
}
