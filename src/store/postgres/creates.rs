//! Creates that wait to be stored together.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::time::timeout;

use crate::store::StoreError;
use crate::store::rows::operation::NewRow;

/// What a create met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InsertConflict {
    /// It was stored.
    Nothing,
    /// Its order has a home, or its id was there.
    Something {
        /// What is there may be of an earlier try of the same create, whose end nobody heard of.
        in_doubt: bool,
    },
}

/// The most creates of one statement.
pub(super) const MOST: usize = 128;

/// The longest that a batch waits for a crowd to come again.
const GATHERING: Duration = Duration::from_millis(1);

/// So many creates are a crowd.
const CROWD: usize = 16;

/// A create that waits for its batch.
pub(super) struct WaitingCreate {
    pub(super) new: Arc<NewRow>,
    pub(super) reply: oneshot::Sender<Result<InsertConflict, StoreError>>,
}

impl WaitingCreate {
    pub(super) fn id(&self) -> i64 {
        self.new.draft().operation.id.to_stored()
    }

    /// Sends the outcome; the caller may be gone.
    pub(super) fn answer(self, met: Result<InsertConflict, StoreError>) {
        let _ = self.reply.send(met);
    }
}

/// The most of those at once.
const MOST_SLOW: usize = 4;

/// The creates that wait.
pub(super) struct CreateBatches {
    pub(super) waiting: RefCell<VecDeque<WaitingCreate>>,
    pub(super) under_way: Cell<usize>,
    /// When so many wait, they are together; zero: they are not waited for.
    awaited: Cell<usize>,
    together: Notify,
    pub(super) slow: Arc<Semaphore>,
}

impl Default for CreateBatches {
    fn default() -> Self {
        Self {
            waiting: RefCell::default(),
            under_way: Cell::default(),
            awaited: Cell::default(),
            together: Notify::new(),
            slow: Arc::new(Semaphore::new(MOST_SLOW)),
        }
    }
}

impl CreateBatches {
    pub(super) fn push(&self, one: WaitingCreate) {
        let mut waiting = self.waiting.borrow_mut();
        waiting.push_back(one);
        if waiting.len() == self.awaited.get() {
            self.together.notify_one();
        }
    }

    /// Waits for a crowd that was together before.
    pub(super) async fn gather(&self, crowd: usize) {
        let crowd = crowd.min(MOST);
        if crowd < CROWD || self.waiting.borrow().len() >= crowd {
            return;
        }
        self.awaited.set(crowd);
        let _ = timeout(GATHERING, self.together.notified()).await;
        self.awaited.set(0);
    }
}
