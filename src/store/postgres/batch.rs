//! Creates that share a statement, and with it a round trip and a commit: as SQLite's writer shares them.
//!
//! While batches are under way, what comes next gathers; an idle store sends a lone create at once. A crowd is waited for:
//! callers who were told come again, and two halves of them that take turns would cost the database twice. Only creates that have
//! nothing to decide are here: no limit, no balance that has to cover them, no ledger to be opened. They wait for nobody
//! but another create of the same order. The rows of a batch are in the order of their keys: two batches that meet wait for
//! each other in one direction only.

use std::cell::{Cell, RefCell};
use std::collections::{HashSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use super::fault::{Fault, closed};
use super::insert::{self, New};
use super::node::{LIMIT, Node};
use crate::store::StoreError;

/// What a create met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Met {
    /// It was stored.
    Nothing,
    /// Its order, its id or a reservation was there.
    Something {
        /// What is there may be of an earlier try of the same create, whose end nobody heard of.
        in_doubt: bool,
    },
}

/// The most creates of one statement.
const MOST: usize = 128;

/// The most statements under way. While one is, the next fills: what a statement costs beside its rows is shared by more.
const UNDER_WAY: usize = 1;

/// So many creates are a crowd.
const CROWD: usize = 16;

/// The longest that a batch waits for a crowd to come again.
const GATHERING: Duration = Duration::from_millis(1);

struct Waiting {
    new: Arc<New>,
    reply: oneshot::Sender<Result<Met, StoreError>>,
}

/// What gathers.
#[derive(Default)]
pub(super) struct Batches {
    waiting: RefCell<VecDeque<Waiting>>,
    under_way: Cell<usize>,
    /// When so many wait, they are together; zero: they are not waited for.
    awaited: Cell<usize>,
    together: Notify,
}

impl Batches {
    fn push(&self, one: Waiting) {
        let mut waiting = self.waiting.borrow_mut();
        waiting.push_back(one);
        if waiting.len() == self.awaited.get() {
            self.together.notify_one();
        }
    }

    /// Waits for a crowd that was together before.
    async fn gather(&self, crowd: usize) {
        let crowd = crowd.min(MOST);
        if crowd < CROWD || self.waiting.borrow().len() >= crowd {
            return;
        }
        self.awaited.set(crowd);
        let _ = timeout(GATHERING, self.together.notified()).await;
        self.awaited.set(0);
    }
}

/// Stores a row with others.
///
/// # Errors
/// The database does not answer.
pub(super) async fn create(node: &Rc<Node>, new: Arc<New>) -> Result<Met, StoreError> {
    let (reply, met) = oneshot::channel();
    node.batches.push(Waiting { new, reply });
    if node.batches.under_way.get() < UNDER_WAY {
        node.batches.under_way.set(node.batches.under_way.get() + 1);
        tokio::task::spawn_local(work_off(Rc::clone(node)));
    }
    match timeout(LIMIT, met).await {
        Ok(met) => met.unwrap_or_else(|_| Err(closed())),
        Err(_) => Err(Fault::Silence.told()),
    }
}

/// Sends batches until nothing waits.
async fn work_off(node: Rc<Node>) {
    let mut told = 0;
    loop {
        let crowd = told + node.batches.waiting.borrow().len();
        node.batches.gather(crowd).await;
        // Whoever is ready to ask goes first: their creates fill this batch.
        tokio::task::yield_now().await;
        let batch: Vec<Waiting> = {
            let mut waiting = node.batches.waiting.borrow_mut();
            // Who waited for too long was told to come again: that create is asked for anew, or not at all.
            waiting.retain(|waiting| !waiting.reply.is_closed());
            let count = waiting.len().min(MOST);
            waiting.drain(..count).collect()
        };
        if batch.is_empty() {
            node.batches.under_way.set(node.batches.under_way.get() - 1);
            return;
        }
        told = batch.len();
        send(&node, batch).await;
    }
}

async fn send(node: &Node, batch: Vec<Waiting>) {
    let mut batch = apart(batch);
    batch.sort_by_key(|waiting| waiting.new.order_key().0);
    let rows: Vec<&New> = batch.iter().map(|waiting| &*waiting.new).collect();
    let stored = match store(node, &rows).await {
        // One row that the database refuses must not take the others with it.
        Err(StoreError::Corrupt(_)) if batch.len() > 1 => {
            for waiting in batch {
                let stored = store(node, &[&waiting.new]).await;
                tell(waiting, &stored);
            }
            return;
        }
        stored => stored,
    };
    for waiting in batch {
        tell(waiting, &stored);
    }
}

/// Those that have an id of their own. What a statement stored is told by its ids: of two creates that drew the same one,
/// in the same millisecond, one is stored, and both would be told that they were.
fn apart(batch: Vec<Waiting>) -> Vec<Waiting> {
    let mut ids = HashSet::new();
    let (apart, taken): (Vec<_>, Vec<_>) =
        batch.into_iter().partition(|waiting| ids.insert(waiting.new.draft().operation.id.to_stored()));
    for waiting in taken {
        // It looks for what is in its way, finds that it is the id, and draws another one.
        let _ = waiting.reply.send(Ok(Met::Something { in_doubt: false }));
    }
    apart
}

/// Whoever asked may have gone.
fn tell(waiting: Waiting, stored: &Result<Stored, StoreError>) {
    let met = stored.as_ref().map_err(Clone::clone).map(|stored| stored.met(&waiting.new));
    let _ = waiting.reply.send(met);
}

/// What became of a batch.
struct Stored {
    ids: HashSet<i64>,
    /// An earlier try may have been committed, and only the word of it lost.
    in_doubt: bool,
}

impl Stored {
    fn met(&self, row: &New) -> Met {
        if self.ids.contains(&row.draft().operation.id.to_stored()) {
            Met::Nothing
        } else {
            Met::Something { in_doubt: self.in_doubt }
        }
    }
}

async fn store(node: &Node, rows: &[&New]) -> Result<Stored, StoreError> {
    let tries = Cell::new(0_u32);
    node.ask(async |client| {
        let in_doubt = tries.replace(tries.get() + 1) > 0;
        for row in rows {
            insert::named(client, row).await?;
        }
        let ids = insert::pending(client, rows).await?;
        Ok(Stored { ids, in_doubt })
    })
    .await
}
