//! Permits of a node. Lists and decisions need a permit, so that they never use every connection: a
//! decision that waits for a row holds its connection meanwhile.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::domain::{Bucket, MerchantId};
use crate::store::StoreError;
use crate::store::backend::ReadKind;

/// After this time nothing is retried.
pub(super) const MAX_RETRY_TIME: Duration = Duration::from_secs(5);

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

/// How many lists of each kind are read at once: of merchants, and of operators.
const LISTS: usize = 2;

/// How long a list waits for a permit.
const LIST_PATIENCE: Duration = Duration::from_secs(2);

/// The most batches at once that take long.
const SLOW_BATCHES: usize = 4;

/// The permits of a node.
pub(super) struct ConcurrencyLimits {
    deciding: Semaphore,
    of_merchants: Vec<Semaphore>,
    histories: Semaphore,
    pages: Semaphore,
    pub(super) slow_batches: Arc<Semaphore>,
}

impl ConcurrencyLimits {
    pub(super) fn new(connections: usize) -> Self {
        Self {
            deciding: Semaphore::new(deciding(connections)),
            of_merchants: (0..QUEUES).map(|_| Semaphore::new(DECIDING_OF_MERCHANT)).collect(),
            histories: Semaphore::new(LISTS),
            pages: Semaphore::new(LISTS),
            slow_batches: Arc::new(Semaphore::new(SLOW_BATCHES)),
        }
    }

    /// Acquires the permit to read a list: [`ReadKind::History`] of a merchant, or [`ReadKind::Page`] of operators.
    ///
    /// # Errors
    /// No permit became free in time.
    pub(super) async fn permit_to_list(&self, kind: ReadKind) -> Result<SemaphorePermit<'_>, StoreError> {
        let lists = if kind == ReadKind::History { &self.histories } else { &self.pages };
        let turn = timeout(LIST_PATIENCE, lists.acquire()).await;
        turn.map_err(|_| unavailable("too many lists are read"))?.map_err(|_| unavailable("the store is closed"))
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
            timeout(MAX_RETRY_TIME, turn).await.map_err(|_| unavailable("too many creates wait to be decided"))?;
        turn.map_err(|_| unavailable("the store is closed"))
    }
}

fn queue_of(merchant: &MerchantId) -> usize {
    usize::from(Bucket::of(merchant).number()) % QUEUES
}

fn unavailable(why: &str) -> StoreError {
    StoreError::Unavailable(why.to_owned())
}
