//! Batches of creates that share a statement, and so a round trip and a commit, as in SQLite's writer.
//!
//! While a batch is running, the next one fills; an idle store sends a single create at once. The next batch waits a
//! moment for a crowd: callers that were just answered send their next create, and two halves that alternate would cost
//! the database twice. A batch contains only creates without decisions: no limit, no balance to cover them, no opening
//! balances. They wait only for transactions that store or change the same order, and not for long. The rows of a batch
//! are sorted by key, so that two batches wait for each other in one direction only.

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
use crate::telemetry::Stopwatch;

/// The most statements in flight. While one is, the next batch fills, and its rows share the fixed cost of a statement.
const MAX_IN_FLIGHT: usize = 1;

/// The next batch does not wait longer than this for a batch.
const SLOW: Duration = Duration::from_millis(250);

/// Stores a row in a batch.
///
/// # Errors
/// The database does not respond.
pub(super) async fn create(node: &Rc<PgNode>, new: Arc<NewRow>) -> Result<InsertConflict, StoreError> {
    let (reply, outcome) = oneshot::channel();
    node.batches.push(WaitingCreate { new, reply });
    if node.batches.in_flight.get() < MAX_IN_FLIGHT {
        node.batches.in_flight.set(node.batches.in_flight.get() + 1);
        tokio::task::spawn_local(send_batches(Rc::clone(node)));
    }
    match timeout(LIMIT, outcome).await {
        Ok(outcome) => outcome.unwrap_or_else(|_| Err(closed())),
        Err(_) => Err(PgError::Silence.reported()),
    }
}

/// Sends batches until nothing waits.
async fn send_batches(node: Rc<PgNode>) {
    let mut last_size = 0;
    loop {
        let crowd = last_size + node.batches.waiting.borrow().len();
        node.batches.gather(crowd).await;
        // Callers that are ready to run go first: their creates fill this batch.
        tokio::task::yield_now().await;
        let batch: Vec<WaitingCreate> = {
            let mut waiting = node.batches.waiting.borrow_mut();
            // A caller that waited too long got an error: its create must not be stored now.
            waiting.retain(|waiting| !waiting.reply.is_closed());
            let count = waiting.len().min(MOST);
            waiting.drain(..count).collect()
        };
        if batch.is_empty() {
            node.batches.in_flight.set(node.batches.in_flight.get() - 1);
            return;
        }
        last_size = batch.len();
        send_or_detach(&node, batch).await;
    }
}

/// Sends a batch and waits for its end, or continues without it if that takes long: it may wait for a lock.
async fn send_or_detach(node: &Rc<PgNode>, batch: Vec<WaitingCreate>) {
    let sending = Rc::clone(node);
    let mut sending = tokio::task::spawn_local(async move { send(&sending, with_distinct_ids(batch)).await });
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

/// Stores a batch, and sends each create its outcome.
async fn send(node: &PgNode, mut batch: Vec<WaitingCreate>) {
    batch.sort_by_key(|waiting| waiting.new.order_key().0);
    store_part(node, batch, &Cell::new(0)).await;
}

/// Stores a part of a batch. If one row prevents it, the part is split, so that the others are stored.
fn store_part<'n>(
    node: &'n PgNode,
    mut part: Vec<WaitingCreate>,
    tries: &'n Cell<u32>,
) -> Pin<Box<dyn Future<Output = ()> + 'n>> {
    Box::pin(async move {
        // Every caller has a time limit, so this ends.
        part.retain(|waiting| !waiting.reply.is_closed());
        let rows: Vec<&NewRow> = part.iter().map(|waiting| &*waiting.new).collect();
        if rows.is_empty() {
            return;
        }
        match store(node, &rows, tries).await {
            Ok(Outcome::Waited) => match positions_with_home(node, &rows).await {
                Ok(existing) if existing.is_empty() => halve(node, part, tries, &order_is_busy()).await,
                Ok(existing) => store_part(node, answer_existing(part, &existing), tries).await,
                Err(error) => answer_all(part, &error),
            },
            Ok(Outcome::Stored { ids, in_doubt }) => {
                for waiting in part {
                    let outcome = if ids.contains(&waiting.id()) {
                        InsertConflict::Nothing
                    } else {
                        InsertConflict::Something { in_doubt }
                    };
                    waiting.answer(Ok(outcome));
                }
            }
            // A row that the database rejects must not prevent the others.
            Err(error @ StoreError::Corrupt(_)) => halve(node, part, tries, &error).await,
            Err(error) => answer_all(part, &error),
        }
    })
}

/// Stores both halves concurrently, unless there is only one row.
async fn halve(node: &PgNode, mut part: Vec<WaitingCreate>, tries: &Cell<u32>, error: &StoreError) {
    if part.len() < 2 {
        return answer_all(part, error);
    }
    let second = part.split_off(part.len() / 2);
    tokio::join!(store_part(node, part, tries), store_part(node, second, tries));
}

/// Answers the creates whose order has a home by now, and returns the rest.
fn answer_existing(part: Vec<WaitingCreate>, existing: &HashSet<i64>) -> Vec<WaitingCreate> {
    let mut rest = Vec::with_capacity(part.len());
    for (place, waiting) in (1..).zip(part) {
        if existing.contains(&place) {
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

/// Another create of the same order, on another node, has not ended yet.
fn order_is_busy() -> StoreError {
    StoreError::Unavailable("another request is storing the order".to_owned())
}

/// Returns the creates with distinct ids. The rows that a statement stored are recognized by their ids: of two creates
/// that drew the same id in the same millisecond, one is stored, and both would be answered as stored.
fn with_distinct_ids(batch: Vec<WaitingCreate>) -> Vec<WaitingCreate> {
    let mut ids = HashSet::new();
    let (distinct, taken): (Vec<_>, Vec<_>) = batch.into_iter().partition(|waiting| ids.insert(waiting.id()));
    for waiting in taken {
        // It reads the existing row, finds that its id is taken, and draws another one.
        waiting.answer(Ok(InsertConflict::Something { in_doubt: false }));
    }
    distinct
}

/// The outcome of a statement.
enum Outcome {
    Stored {
        ids: HashSet<i64>,
        /// Whether an earlier attempt may have been committed although its reply was lost.
        in_doubt: bool,
    },
    /// Another transaction held a lock for too long.
    Waited,
}

/// Sends one statement for the rows. `tries` counts the statements sent for any of them, each of which may have been
/// committed.
async fn store(node: &PgNode, rows: &[&NewRow], tries: &Cell<u32>) -> Result<Outcome, StoreError> {
    node.with_client(async |client| {
        let (in_doubt, begun) = (tries.replace(tries.get() + 1) > 0, Stopwatch::start());
        let inserted = async {
            for row in rows {
                insert::insert_context(client, row).await?;
            }
            insert::insert_pending(client, rows, node.clock.wrong_by()).await
        };
        match inserted.await {
            Ok(ids) => {
                node.metrics.commit(rows.len(), begun.elapsed());
                Ok(Outcome::Stored { ids, in_doubt })
            }
            Err(fault) if fault.is_lock_timeout() => Ok(Outcome::Waited),
            Err(fault) => Err(fault),
        }
    })
    .await
}

/// Returns the positions, from 1, of the rows whose orders have a home. Reading waits for no lock.
async fn positions_with_home(node: &PgNode, rows: &[&NewRow]) -> Result<HashSet<i64>, StoreError> {
    let buckets: Vec<i16> = rows.iter().map(|new| bucket_in(new.draft().operation.id)).collect();
    let keys: Vec<Fingerprint> = rows.iter().map(|new| new.order_key()).collect();
    node.with_client(async |client| {
        let homes = row::homes_of(client, &buckets, &keys).await?;
        Ok((1..).zip(homes).filter(|(_, home)| home.is_some()).map(|(place, _)| place).collect())
    })
    .await
}
