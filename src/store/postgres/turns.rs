//! What is done by turns, so that no kind of work takes every connection: reading deep pages, and deciding, where whoever
//! waits for a row of the database keeps a connection meanwhile.

use std::rc::Rc;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::node::{Node, PATIENCE};
use super::row::bucket_of;
use crate::domain::{HistoryQuery, MerchantId};
use crate::store::StoreError;

/// Of so many connections deciding creates have most: the rest stays for everything else.
const fn deciding(connections: usize) -> usize {
    if connections < 2 { 1 } else { connections * 5 / 8 }
}

/// The same of a merchant. They go one after the other wherever they ask for the same row, and the next one is there.
const DECIDING_OF_MERCHANT: usize = 3;

/// Merchants share so many queues, by their bucket.
const QUEUES: usize = 64;

/// The most deep pages read at once, and asked for by the merchants of a queue; one more is refused.
const DEEP: usize = 2;
const DEEP_ASKED: usize = 8;

/// Up to so many entries are passed without a turn.
const SHALLOW: u64 = 4000;

/// The turns of a node.
pub(super) struct Turns {
    deciding: Semaphore,
    of_merchants: Vec<Semaphore>,
    deep: Semaphore,
    deep_asked: Vec<Semaphore>,
}

impl Turns {
    pub(super) fn new(connections: usize) -> Self {
        Self {
            deciding: Semaphore::new(deciding(connections)),
            of_merchants: (0..QUEUES).map(|_| Semaphore::new(DECIDING_OF_MERCHANT)).collect(),
            deep: Semaphore::new(DEEP),
            deep_asked: (0..QUEUES).map(|_| Semaphore::new(DEEP_ASKED)).collect(),
        }
    }

    /// The turn of a create that decides. First the merchant's own, so that one merchant's crowd keeps no other's out. What
    /// is done then has the rest of [`LIMIT`](super::node::LIMIT).
    ///
    /// # Errors
    /// It did not come.
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

/// Reads a page; a deep one when its turn comes. It is read to its end, whether somebody waits for it or not: its statement
/// would go on, and whoever had the connection next would wait for it.
///
/// # Errors
/// Too many deep pages are asked for; the page's own.
pub(super) async fn page<T>(
    node: &Rc<Node>,
    query: &HistoryQuery,
    read: impl AsyncFnOnce(&Node) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    if query.skip <= SHALLOW {
        return read(node).await;
    }
    let too_many = || unavailable("too many deep pages are asked for");
    let _asked = node.turns.deep_asked[queue_of(&query.merchant)].try_acquire().map_err(|_| too_many())?;
    let turn = timeout(PATIENCE, node.turns.deep.acquire()).await.map_err(|_| too_many())?;
    let _turn = turn.map_err(|_| unavailable("the store is closed"))?;
    read(node).await
}

fn unavailable(why: &str) -> StoreError {
    StoreError::Unavailable(why.to_owned())
}
