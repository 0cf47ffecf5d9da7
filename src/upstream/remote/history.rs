//! v1 history: pages of the journal, whose pending rows are asked of the engine first.

use std::collections::VecDeque;

use tokio::task::JoinSet;

use super::Remote;
use super::asking::Deadline;
use super::v1::{may_change, shown};
use crate::auth::Caller;
use crate::domain::{HistoryQuery, Page, Shown, Status};
use crate::failure::Failure;
use crate::store::Entry;

/// How many records one request asks the engine for at once.
const AT_ONCE: usize = 16;

impl Remote {
    /// A page of what v1 requests made, newest first.
    ///
    /// Which rows are on a page goes by what was last heard of them. So before rows of a status are looked for, the
    /// newest page of pending ones is asked for; rows that could not be asked in time are shown as last heard.
    pub(in crate::upstream) async fn v1_history(
        &self,
        caller: &Caller,
        query: HistoryQuery,
    ) -> Result<Page<Shown>, Failure> {
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

    /// The entries with what the engine says of them now, where it could be asked.
    async fn refreshed(&self, caller: &Caller, mut entries: Vec<Entry>, deadline: Deadline) -> Vec<Entry> {
        let mut waiting: VecDeque<usize> = (0..entries.len()).filter(|&index| may_change(&entries[index])).collect();
        let mut asking = JoinSet::new();
        loop {
            while asking.len() < AT_ONCE
                && let Some(index) = waiting.pop_front()
            {
                let (remote, caller, entry) = (self.clone(), caller.clone(), entries[index].clone());
                asking.spawn(async move { (index, remote.heard(caller.api_key(), entry, deadline).await) });
            }
            match asking.join_next().await {
                Some(Ok((index, Ok(entry)))) => entries[index] = entry,
                Some(Ok((_, Err(failure)))) => tracing::debug!(?failure, "a row is shown as it was last heard"),
                Some(Err(panic)) => tracing::error!(%panic, "a row is shown as it was last heard"),
                None => return entries,
            }
        }
    }
}
