//! Reads the queues of the outbox. Of a merchant with very many queues, each read lists a part, and the next one continues
//! there: so no merchant's queues hide those of another, nor make a read long.

use std::collections::{HashMap, HashSet};

use crate::store::{CallbackQueue, CallbackTarget, Store, StoreError};

/// The last target that was listed of each merchant whose list was cut.
type Places = HashMap<Box<str>, CallbackTarget>;

/// Lists the queues, one part after the other.
#[derive(Debug, Default)]
pub(super) struct QueueReader {
    after: Places,
}

/// The queues that one read listed.
#[derive(Debug)]
pub(super) struct ListedQueues {
    pub queues: Vec<CallbackQueue>,
    /// Where the lists of some merchants began and ended. Those of all others are whole.
    after: Places,
    last: Places,
}

impl QueueReader {
    /// Reads the next part.
    ///
    /// # Errors
    /// The store is unavailable.
    pub(super) async fn read(&mut self, store: &dyn Store) -> Result<ListedQueues, StoreError> {
        let queues = store.callback_queues(self.after.values().cloned().collect()).await?;
        let last = last_of_cut_lists(&queues);
        let after = std::mem::replace(&mut self.after, last.clone());
        Ok(ListedQueues { queues, after, last })
    }
}

fn last_of_cut_lists(queues: &[CallbackQueue]) -> Places {
    let mut lists: HashMap<&str, (usize, &CallbackTarget)> = HashMap::new();
    for CallbackQueue { target, .. } in queues {
        let (count, last) = lists.entry(target.merchant()).or_insert((0, target));
        *count += 1;
        *last = target.max(last);
    }
    lists.retain(|_, (count, _)| *count >= CallbackQueue::MAX_OF_MERCHANT);
    lists.into_iter().map(|(merchant, (_, last))| (merchant.into(), last.clone())).collect()
}

impl ListedQueues {
    /// Reports whether there may be more queues than these.
    pub(super) fn is_partial(&self) -> bool {
        !self.after.is_empty() || !self.last.is_empty()
    }

    /// Returns which targets certainly have no pending callback.
    pub(super) fn idle(&self) -> impl Fn(&CallbackTarget) -> bool {
        let queued: HashSet<&CallbackTarget> = self.queues.iter().map(|queue| &queue.target).collect();
        move |target| {
            let merchant = target.merchant();
            !queued.contains(target)
                && self.after.get(merchant).is_none_or(|after| target > after)
                && self.last.get(merchant).is_none_or(|last| target <= last)
        }
    }
}
