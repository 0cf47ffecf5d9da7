//! Permits and waiting creates of a node. Lists and decisions need a permit, so that they never use every connection: a
//! decision that waits for a row holds its connection meanwhile.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit, oneshot};
use tokio::time::timeout;

use super::row::bucket_of;
use crate::domain::{Fingerprint, MerchantId};
use crate::store::StoreError;
use crate::store::create::Home;
use crate::store::rows::operation::NewRow;

/// After this time nothing is retried.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The longest that a caller waits for a result: most give up after ten seconds or more, and an error is worth
/// more than silence.
pub(super) const LIMIT: Duration = Duration::from_secs(8);

/// The end of [`LIMIT`] in which no connection is given out: a statement that could not finish would look like a server
/// that does not respond.
pub(super) const RESERVE: Duration = Duration::from_secs(1);

/// Returns how many of the connections deciding creates may use at once; the rest stay for everything else.
const fn deciding(connections: usize) -> usize {
    if connections < 2 { 1 } else { connections * 5 / 8 }
}

/// The same for one merchant. Its decisions about the same row run one after the other, and the next one is ready.
const DECIDING_OF_MERCHANT: usize = 3;

/// The number of semaphores that merchants share, by bucket.
const QUEUES: usize = 64;

/// How many lists are read at once.
const LISTS: usize = 2;

/// The permits of a node.
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

    /// Acquires the permits of a deciding create, the merchant's own first, so that one merchant's crowd does not keep
    /// others out. The create then has the rest of [`LIMIT`].
    ///
    /// # Errors
    /// No permit became free in time.
    #[expect(clippy::indexing_slicing, reason = "the bucket is below the number of queues")]
    pub(super) async fn permit_to_decide(&self, merchant: &MerchantId) -> Result<[SemaphorePermit<'_>; 2], StoreError> {
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

/// The outcome of an insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InsertConflict {
    /// The operation was stored.
    Nothing,
    /// Its order has a home, or its id is taken.
    Something {
        /// Whether the existing row may be from an earlier attempt of the same create whose result is unknown.
        in_doubt: bool,
    },
}

/// The most creates in one statement.
pub(super) const MOST: usize = 128;

/// The longest that a batch waits for a crowd.
const GATHERING: Duration = Duration::from_millis(1);

/// This many creates are a crowd.
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

    /// Sends the outcome; the caller may have gone.
    pub(super) fn answer(self, outcome: Result<InsertConflict, StoreError>) {
        let _ = self.reply.send(outcome);
    }
}

/// The most slow batches at once.
const MOST_SLOW: usize = 4;

/// The waiting creates.
pub(super) struct CreateBatches {
    pub(super) waiting: RefCell<VecDeque<WaitingCreate>>,
    pub(super) in_flight: Cell<usize>,
    /// The number of waiting creates at which the batch is complete; zero: no batch waits.
    awaited: Cell<usize>,
    together: Notify,
    pub(super) slow: Arc<Semaphore>,
}

impl Default for CreateBatches {
    fn default() -> Self {
        Self {
            waiting: RefCell::default(),
            in_flight: Cell::default(),
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

    /// Waits until as many creates as in the last crowd are waiting again, or for a moment.
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

/// A claim of a home that waits for its batch.
pub(super) struct WaitingClaim {
    pub(super) order: Fingerprint,
    pub(super) home: Home,
    pub(super) reply: oneshot::Sender<Result<Home, StoreError>>,
}

impl WaitingClaim {
    /// Sends the outcome; the caller may have gone.
    pub(super) fn answer(self, outcome: Result<Home, StoreError>) {
        let _ = self.reply.send(outcome);
    }
}

/// The waiting claims.
#[derive(Default)]
pub(super) struct ClaimBatches {
    pub(super) waiting: RefCell<Vec<WaitingClaim>>,
    pub(super) is_sending: Cell<bool>,
}
