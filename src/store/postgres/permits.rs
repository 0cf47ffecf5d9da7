//! What is done by turns, so that no kind of work takes every connection: reading lists, and deciding, where whoever
//! waits for a row of the database keeps a connection meanwhile.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit, oneshot};
use tokio::time::timeout;

use super::row::bucket_of;
use crate::domain::MerchantId;
use crate::store::StoreError;
use crate::store::rows::operation::NewRow;

/// After so long nothing is tried again, and nobody waits for a connection that others use.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Nobody waits longer for an answer: most callers give up after ten seconds or more, and one who was told to come again
/// knows more than one who was told nothing.
pub(super) const LIMIT: Duration = Duration::from_secs(8);

/// Of so many connections deciding creates have most: the rest stays for everything else.
const fn deciding(connections: usize) -> usize {
    if connections < 2 { 1 } else { connections * 5 / 8 }
}

/// The same of a merchant. They go one after the other wherever they ask for the same row, and the next one is there.
const DECIDING_OF_MERCHANT: usize = 3;

/// Merchants share so many queues, by their bucket.
const QUEUES: usize = 64;

/// How many lists are read at once.
const LISTS: usize = 2;

/// The turns of a node.
pub(super) struct ConcurrencyLimits {
    deciding: Semaphore,
    of_merchants: Vec<Semaphore>,
    pub(super) lists: Semaphore,
}

impl ConcurrencyLimits {
    pub(super) fn new(connections: usize) -> Self {
        Self {
            deciding: Semaphore::new(deciding(connections)),
            of_merchants: (0..QUEUES).map(|_| Semaphore::new(DECIDING_OF_MERCHANT)).collect(),
            lists: Semaphore::new(LISTS),
        }
    }

    /// The turn of a create that decides. First the merchant's own, so that one merchant's crowd keeps no other's out. What
    /// is done then has the rest of [`LIMIT`].
    ///
    /// # Errors
    /// It did not come.
    #[expect(clippy::indexing_slicing, reason = "the bucket is below the number of queues")]
    pub(super) async fn to_decide(&self, merchant: &MerchantId) -> Result<[SemaphorePermit<'_>; 2], StoreError> {
        let turn = async {
            let own = self.of_merchants[queue_of(merchant)].acquire().await?;
            Ok([own, self.deciding.acquire().await?])
        };
        let turn: Result<_, tokio::sync::AcquireError> =
            timeout(PATIENCE, turn).await.map_err(|_| unavailable("too many creates wait to be decided"))?;
        turn.map_err(|_| unavailable("the store is closed"))
    }
}

fn queue_of(merchant: &MerchantId) -> usize {
    usize::from(bucket_of(merchant).unsigned_abs()) % QUEUES
}

fn unavailable(why: &str) -> StoreError {
    StoreError::Unavailable(why.to_owned())
}

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
