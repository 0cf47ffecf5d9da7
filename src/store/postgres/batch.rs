//! Creates that share a statement, and with it a round trip and a commit: as SQLite's writer shares them.
//!
//! While batches are under way, what comes next gathers; an idle store sends a lone create at once. A crowd is waited for:
//! callers who were told come again, and two halves of them that take turns would cost the database twice. Only creates
//! that have nothing to decide are here: no limit, no balance that has to cover them, no ledger to be opened. They wait for
//! nobody but who stores or changes the same order, and not for long. The rows of a batch are in the order of their keys:
//! two batches that meet wait for each other in one direction only.

use std::cell::Cell;
use std::collections::HashSet;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::errors::{PgError, closed};
use super::insert;
use super::node::PgNode;
use super::permits::{InsertConflict, LIMIT, MOST, WaitingCreate};
use super::row::{self, bucket_in};
use crate::domain::Fingerprint;
use crate::store::StoreError;
use crate::store::rows::operation::NewRow;

/// The most statements under way. While one is, the next fills: what a statement costs beside its rows is shared by more.
const UNDER_WAY: usize = 1;

/// A batch that takes so long is not waited for by the next one.
const SLOW: Duration = Duration::from_millis(250);

/// Stores a row with others.
///
/// # Errors
/// The database does not answer.
pub(super) async fn create(node: &Rc<PgNode>, new: Arc<NewRow>) -> Result<InsertConflict, StoreError> {
    let (reply, met) = oneshot::channel();
    node.batches.push(WaitingCreate { new, reply });
    if node.batches.under_way.get() < UNDER_WAY {
        node.batches.under_way.set(node.batches.under_way.get() + 1);
        tokio::task::spawn_local(work_off(Rc::clone(node)));
    }
    match timeout(LIMIT, met).await {
        Ok(met) => met.unwrap_or_else(|_| Err(closed())),
        Err(_) => Err(PgError::Silence.reported()),
    }
}

/// Sends batches until nothing waits.
async fn work_off(node: Rc<PgNode>) {
    let mut reported = 0;
    loop {
        let crowd = reported + node.batches.waiting.borrow().len();
        node.batches.gather(crowd).await;
        // Whoever is ready to ask goes first: their creates fill this batch.
        tokio::task::yield_now().await;
        let batch: Vec<WaitingCreate> = {
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
        reported = batch.len();
        sent(&node, batch).await;
    }
}

/// Sends a batch and waits for its end, or goes on without it when that takes long: it may wait for somebody's lock.
async fn sent(node: &Rc<PgNode>, batch: Vec<WaitingCreate>) {
    let sending = Rc::clone(node);
    let mut sending = tokio::task::spawn_local(async move { send(&sending, apart(batch)).await });
    let slow = Arc::clone(&node.batches.slow).try_acquire_owned();
    match slow {
        Ok(slow) => {
            if timeout(SLOW, &mut sending).await.is_err() {
                tokio::task::spawn_local(async move {
                    let _ = sending.await;
                    drop(slow);
                });
            }
        }
        Err(_) => _ = sending.await,
    }
}

/// Stores a batch, and tells each what it met.
async fn send(node: &PgNode, mut batch: Vec<WaitingCreate>) {
    batch.sort_by_key(|waiting| waiting.new.order_key().0);
    store_part(node, batch, &Cell::new(0)).await;
}

/// What one row meets must not be the fate of all: a part that comes to nothing is parted again.
fn store_part<'n>(
    node: &'n PgNode,
    mut part: Vec<WaitingCreate>,
    tries: &'n Cell<u32>,
) -> Pin<Box<dyn Future<Output = ()> + 'n>> {
    Box::pin(async move {
        // Nobody waits for ever, and so this does not.
        part.retain(|waiting| !waiting.reply.is_closed());
        let rows: Vec<&NewRow> = part.iter().map(|waiting| &*waiting.new).collect();
        if rows.is_empty() {
            return;
        }
        match store(node, &rows, tries).await {
            Ok(Outcome::Waited) => match order_row(node, &rows).await {
                Ok(order_row) if order_row.is_empty() => halve(node, part, tries, &taken()).await,
                Ok(order_row) => store_part(node, without(part, &order_row), tries).await,
                Err(error) => answer_all(part, &error),
            },
            Ok(Outcome::Stored { ids, in_doubt }) => {
                for waiting in part {
                    let met = if ids.contains(&waiting.id()) {
                        InsertConflict::Nothing
                    } else {
                        InsertConflict::Something { in_doubt }
                    };
                    waiting.answer(Ok(met));
                }
            }
            // One row that the database refuses must not take the others with it.
            Err(error @ StoreError::Corrupt(_)) => halve(node, part, tries, &error).await,
            Err(error) => answer_all(part, &error),
        }
    })
}

/// Both halves are tried, side by side, unless there is only one row.
async fn halve(node: &PgNode, mut part: Vec<WaitingCreate>, tries: &Cell<u32>, error: &StoreError) {
    if part.len() < 2 {
        return answer_all(part, error);
    }
    let second = part.split_off(part.len() / 2);
    tokio::join!(store_part(node, part, tries), store_part(node, second, tries));
}

/// Those whose order is not there. Whose is, needs no place and is told so; the rest is in nobody's way.
fn without(part: Vec<WaitingCreate>, order_row: &HashSet<i64>) -> Vec<WaitingCreate> {
    let mut rest = Vec::with_capacity(part.len());
    for (place, waiting) in (1..).zip(part) {
        if order_row.contains(&place) {
            waiting.answer(Ok(InsertConflict::Something { in_doubt: true }));
        } else {
            rest.push(waiting);
        }
    }
    rest
}

fn answer_all(part: Vec<WaitingCreate>, error: &StoreError) {
    for waiting in part {
        waiting.answer(Err(error.clone()));
    }
}

/// Another create of the order, of another node, has no end yet.
fn taken() -> StoreError {
    StoreError::Unavailable("the order is being stored by somebody else".to_owned())
}

/// Those that have an id of their own. What a statement stored is told by its ids: of two creates that drew the same one,
/// in the same millisecond, one is stored, and both would be told that they were.
fn apart(batch: Vec<WaitingCreate>) -> Vec<WaitingCreate> {
    let mut ids = HashSet::new();
    let (apart, taken): (Vec<_>, Vec<_>) = batch.into_iter().partition(|waiting| ids.insert(waiting.id()));
    for waiting in taken {
        // It looks for what is in its way, finds that it is the id, and draws another one.
        waiting.answer(Ok(InsertConflict::Something { in_doubt: false }));
    }
    apart
}

/// What became of a statement.
enum Outcome {
    Stored {
        ids: HashSet<i64>,
        /// An earlier try may have been committed, and only the word of it lost.
        in_doubt: bool,
    },
    /// Somebody held what one of the rows needs for too long.
    Waited,
}

/// `tries` counts the statements that were sent for any of the rows, each of which may have been committed.
async fn store(node: &PgNode, rows: &[&NewRow], tries: &Cell<u32>) -> Result<Outcome, StoreError> {
    node.with_client(async |client| {
        let in_doubt = tries.replace(tries.get() + 1) > 0;
        let inserted = async {
            for row in rows {
                insert::context(client, row).await?;
            }
            insert::pending(client, rows).await
        };
        match inserted.await {
            Ok(ids) => Ok(Outcome::Stored { ids, in_doubt }),
            Err(fault) if fault.waited() => Ok(Outcome::Waited),
            Err(fault) => Err(fault),
        }
    })
    .await
}

/// The places, from 1, of the rows whose orders have a home. To look waits for nobody.
async fn order_row(node: &PgNode, rows: &[&NewRow]) -> Result<HashSet<i64>, StoreError> {
    let buckets: Vec<i16> = rows.iter().map(|new| bucket_in(new.draft().operation.id)).collect();
    let keys: Vec<Fingerprint> = rows.iter().map(|new| new.order_key()).collect();
    node.with_client(async |client| {
        let homes = row::homes_of(client, &buckets, &keys).await?;
        Ok((1..).zip(homes).filter(|(_, home)| home.is_some()).map(|(place, _)| place).collect())
    })
    .await
}
