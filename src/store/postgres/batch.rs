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

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::node::PgNode;
use super::queue::{Waiting, answer};
use super::transaction::{Executor, PgTransaction};
use super::{create, insert};
use crate::domain::Fingerprint;
use crate::store::rows::operation::{NewRow, StoredRow};
use crate::store::{CreateOutcome, InsertOutcome, StoreError, homes};
use crate::telemetry::Stopwatch;

/// The next batch does not wait longer than this for the one in flight.
const SLOW: Duration = Duration::from_millis(250);

/// A create that waits for its batch.
type WaitingCreate = Waiting<NewRow, InsertOutcome<StoredRow>>;

/// Sends batches for as long as the thread runs, one at a time: meanwhile the next one fills.
pub(super) async fn send_batches(node: Rc<PgNode>) {
    let mut last_size = 0;
    loop {
        let batch = node.queues.creates.next_batch(last_size).await;
        last_size = batch.len();
        send_or_detach(&node, batch).await;
    }
}

/// Sends a batch and waits for its end, or continues without it if that takes long: it may wait for a lock.
async fn send_or_detach(node: &Rc<PgNode>, batch: Vec<WaitingCreate>) {
    let sending = Rc::clone(node);
    let mut sending = tokio::task::spawn_local(async move { send(&sending, batch).await });
    let slow = Arc::clone(&node.limits.slow_batches).try_acquire_owned();
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
async fn send(node: &Rc<PgNode>, batch: Vec<WaitingCreate>) {
    let mut batch = with_distinct_ids(node, batch);
    batch.sort_by_key(|waiting| waiting.command.order_key().0);
    store_part(node, batch, &Cell::new(0)).await;
}

/// Stores a part of a batch. If one row prevents it, the part is split, so that the others are stored.
fn store_part<'n>(
    node: &'n Rc<PgNode>,
    mut part: Vec<WaitingCreate>,
    tries: &'n Cell<u32>,
) -> Pin<Box<dyn Future<Output = ()> + 'n>> {
    Box::pin(async move {
        // Every create expires, so this ends.
        part.retain(|waiting| !waiting.has_expired());
        let rows: Vec<&NewRow> = part.iter().map(|waiting| &waiting.command).collect();
        if rows.is_empty() {
            return;
        }
        match store(node, &rows, tries).await {
            Ok(Outcome::Waited) => match positions_with_home(node, &rows).await {
                Ok(existing) if existing.is_empty() => halve(node, part, tries, &order_is_busy()).await,
                Ok(existing) => {
                    let (existing, rest): (Vec<_>, Vec<_>) =
                        (1..).zip(part).partition(|(position, _)| existing.contains(position));
                    answer_existing(node, existing.into_iter().map(|(_, waiting)| waiting), true);
                    store_part(node, rest.into_iter().map(|(_, waiting)| waiting).collect(), tries).await;
                }
                Err(error) => answer_all(part, &error),
            },
            Ok(Outcome::Stored { ids, in_doubt }) => {
                let (stored, existing): (Vec<_>, Vec<_>) =
                    part.into_iter().partition(|waiting| ids.contains(&id(waiting)));
                let as_drafted = |waiting| (waiting, Ok(InsertOutcome::Created(CreateOutcome::AsDrafted)));
                answer(stored.into_iter().map(as_drafted));
                answer_existing(node, existing, in_doubt);
            }
            // A row that the database rejects must not prevent the others.
            Err(error @ StoreError::Corrupt(_)) => halve(node, part, tries, &error).await,
            Err(error) => answer_all(part, &error),
        }
    })
}

/// Stores both halves concurrently, unless there is only one row.
async fn halve(node: &Rc<PgNode>, mut part: Vec<WaitingCreate>, tries: &Cell<u32>, error: &StoreError) {
    if part.len() < 2 {
        return answer_all(part, error);
    }
    let second = part.split_off(part.len() / 2);
    tokio::join!(store_part(node, part, tries), store_part(node, second, tries));
}

/// Reads the orders of creates that were not stored, while the next batch is sent. Answers all at once that are found at
/// the same time.
fn answer_existing(node: &Rc<PgNode>, creates: impl IntoIterator<Item = WaitingCreate>, in_doubt: bool) {
    let mut loading = JoinSet::new();
    for waiting in creates {
        let node = Rc::clone(node);
        loading.spawn_local(async move {
            let found = create::load_existing(&node, &waiting.command, in_doubt).await;
            (waiting, found)
        });
    }
    if !loading.is_empty() {
        tokio::task::spawn_local(async move {
            while let Some(found) = loading.join_next().await {
                let at_hand = std::iter::from_fn(|| loading.try_join_next());
                answer(std::iter::once(found).chain(at_hand).flatten());
            }
        });
    }
}

fn answer_all(part: Vec<WaitingCreate>, error: &StoreError) {
    answer(part.into_iter().map(|waiting| (waiting, Err(error.clone()))));
}

fn id(waiting: &WaitingCreate) -> i64 {
    waiting.command.draft().operation.id.to_stored()
}

/// Another create of the same order, on another node, has not ended yet.
fn order_is_busy() -> StoreError {
    StoreError::Unavailable("another request is storing the order".to_owned())
}

/// Returns the creates with distinct ids. The rows that a statement stored are recognized by their ids: of two creates
/// that drew the same id in the same millisecond, one is stored, and both would be answered as stored.
fn with_distinct_ids(node: &Rc<PgNode>, batch: Vec<WaitingCreate>) -> Vec<WaitingCreate> {
    let mut ids = HashSet::new();
    let (distinct, taken): (Vec<_>, Vec<_>) = batch.into_iter().partition(|waiting| ids.insert(id(waiting)));
    // Their callers find that the id is taken, and draw another one.
    answer_existing(node, taken, false);
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
            let ahead = node.clock.wrong_by();
            let tx = PgTransaction { executor: Executor::Connection(client), ahead };
            for row in rows {
                insert::insert_context(&tx, row).await?;
            }
            insert::insert_pending(client, rows, ahead).await
        };
        match inserted.await {
            Ok(ids) => {
                node.metrics.store().commit(rows.len(), begun.elapsed());
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
    let keys: Vec<Fingerprint> = rows.iter().map(|new| new.order_key()).collect();
    node.run(async |tx| {
        let homes = homes::homes_of(tx, &keys).await?;
        Ok((1..).zip(homes).filter(|(_, home)| home.is_some()).map(|(place, _)| place).collect())
    })
    .await
}
