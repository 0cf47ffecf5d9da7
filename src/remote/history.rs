//! v1 history: pages of the journal, whose pending rows are asked of the engine first.

use tokio::task::JoinSet;

use super::client::Remote;
use super::deadline::RequestDeadline;
use super::v1::{may_change, shown};
use crate::auth::Caller;
use crate::domain::{HistoryQuery, OperationView, Page, Status};
use crate::failure::ApiError;
use crate::store::JournalEntry;

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
        let refresher = &self.parts.refresher;
        let Some(Ok(_permit)) = deadline.bounds(refresher.at_once.acquire()).await else { return Ok(None) };
        if !refresher.is_due(entry.id) {
            return Ok(None);
        }
        self.with_status(caller.api_key(), entry, deadline).await.map(Some)
    }
}
