//! v1 histories: pages of the journal; the status of pending rows is requested from the engine first.

use tokio::task::JoinSet;

use super::client::Remote;
use super::deadline::RequestDeadline;
use super::v1::{may_change, shown};
use crate::auth::Caller;
use crate::domain::{HistoryQuery, OperationView, Page, Status};
use crate::error::ApiError;
use crate::store::JournalEntry;

impl Remote {
    /// Lists a page of the operations that v1 requests created, newest first.
    ///
    /// The journal's last known status decides which rows are on a page. So before a list is filtered by status, the statuses of
    /// the newest page of pending rows are requested; rows without a response in time are shown with their last status.
    pub(crate) async fn list_journal(
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

    /// Updates the entries with their status at the engine, where it responds. When it is busy, no more is requested.
    async fn refreshed(
        &self,
        caller: &Caller,
        mut entries: Vec<JournalEntry>,
        deadline: RequestDeadline,
    ) -> Vec<JournalEntry> {
        let mut requests = JoinSet::new();
        for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| may_change(entry)) {
            let (remote, caller, entry) = (self.clone(), caller.clone(), entry.clone());
            requests.spawn(async move { (index, remote.refresh(&caller, entry, deadline).await) });
        }
        while let Some(done) = requests.join_next().await {
            match done {
                Ok((index, Ok(Some(entry)))) => {
                    if let Some(row) = entries.get_mut(index) {
                        *row = entry;
                    }
                }
                Ok((_, Ok(None))) => {}
                Ok((_, Err(ApiError::EngineBusy { .. }))) => requests.abort_all(),
                Ok((_, Err(failure))) => {
                    tracing::debug!(failure = failure.cause(), "a row is shown with its last known status");
                }
                Err(error) if error.is_cancelled() => {}
                Err(panic) => tracing::error!(%panic, "a row is shown with its last known status"),
            }
        }
        entries
    }

    /// Updates one entry; `None` when its status was requested a moment ago, or there was no time left.
    async fn refresh(
        &self,
        caller: &Caller,
        entry: JournalEntry,
        deadline: RequestDeadline,
    ) -> Result<Option<JournalEntry>, ApiError> {
        let refresher = &self.parts.refresher;
        let place = refresher.at_once.wait(&entry.create.merchant);
        let Some(Some(_place)) = deadline.bounds(place).await else { return Ok(None) };
        if !refresher.is_due(entry.id) {
            return Ok(None);
        }
        self.with_status(caller.api_key(), entry, deadline).await.map(Some)
    }
}
