//! Opens the database: to serve it, or beside nodes that serve it.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::ledger::fold::{self, Pass};
use super::node::{PgNode, Thread};
use super::presence::OldestFormat;
use super::schema::{OpenMode, PreparedStore};
use super::{PostgresStore, batch, claims, connect, schema};
use crate::clock::{Clock, Random};
use crate::store::rows::context::Contexts;
use crate::store::{OpenError, Opened, Rewrapped, StoreAccess, StoreFormat};
use crate::store_settings::{PostgresUrl, StoreKeys};
use crate::telemetry::Metrics;

/// How often this machine's clock is compared with the database's, while it is right and while it is wrong.
const BETWEEN_MEASUREMENTS: Duration = Duration::from_secs(10);
const UNTIL_CORRECTED: Duration = Duration::from_secs(1);

/// The time between two passes that fold balances, when the last pass found nothing more.
const BETWEEN_FOLDS: Duration = Duration::from_secs(1);

/// Opens the store of a database for a node that serves it. Creates the tables of a new store, and adds to
/// one of the format before.
///
/// # Errors
/// One line: see [`OpenError`].
pub fn open(
    url: &PostgresUrl,
    keys: &StoreKeys,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    metrics: Arc<Metrics>,
) -> Result<Opened<PostgresStore>, OpenError> {
    let opened = open_as(url, keys, random, metrics, OpenMode::Serve)?;
    let machine = Arc::clone(&clock);
    let measured = on_thread(&opened.store.thread, url, async move |node| Ok(node.measure_clock(&*machine).await))?;
    if let Err(error) = measured {
        tracing::warn!(%error, "the database's clock cannot be read");
    }
    // Sent before any other work, since the store was opened just now.
    let _ = opened.store.thread.send(async move |node| drop(tokio::task::spawn_local(run_periodic_work(node, clock))));
    Ok(opened)
}

/// Opens a store beside nodes that may be serving it. Creates and upgrades nothing, and leaves their leases unchanged.
///
/// # Errors
/// One line: see [`OpenError`]; also if there is no store, or one of an older format.
pub fn open_beside(
    url: &PostgresUrl,
    keys: &StoreKeys,
    access: StoreAccess,
    random: Arc<dyn Random>,
    metrics: Arc<Metrics>,
) -> Result<PostgresStore, OpenError> {
    Ok(open_as(url, keys, random, metrics, OpenMode::Beside(access))?.store)
}

/// Wraps the data keys of a store with the first of `keys`, in one transaction.
///
/// # Errors
/// As [`open_beside`].
pub fn rewrap_keys(url: &PostgresUrl, keys: &StoreKeys, random: Arc<dyn Random>) -> Result<Rewrapped, OpenError> {
    let thread = started(url, &random, Arc::default())?;
    let (place, keys) = (url.clone(), keys.clone());
    on_thread(&thread, url, async move |node| schema::rewrap_keys(&node, &place, &keys, &random).await)
}

/// Reads the formats that a store names, whether or not this release can serve it.
///
/// # Errors
/// There is no store, or the database does not respond.
pub fn read_format(url: &PostgresUrl, random: &Arc<dyn Random>) -> Result<StoreFormat, OpenError> {
    let (thread, place) = (started(url, random, Arc::default())?, url.clone());
    on_thread(&thread, url, async move |node| schema::read_format(&node, &place).await)
}

fn open_as(
    url: &PostgresUrl,
    keys: &StoreKeys,
    random: Arc<dyn Random>,
    metrics: Arc<Metrics>,
    mode: OpenMode,
) -> Result<Opened<PostgresStore>, OpenError> {
    let thread = started(url, &random, metrics)?;
    let (place, keys, drawing) = (url.clone(), keys.clone(), Arc::clone(&random));
    let prepare = async move |node: Rc<PgNode>| schema::prepare(&node, &place, &keys, drawing, mode).await;
    let PreparedStore { vault, holds } = on_thread(&thread, url, prepare)?;
    let start_batches = async |node: Rc<PgNode>| {
        tokio::task::spawn_local(batch::send_batches(Rc::clone(&node)));
        tokio::task::spawn_local(claims::send_batches(node));
        Ok(())
    };
    on_thread(&thread, url, start_batches)?;
    let contexts = Contexts::new(vault.fingerprint_key().clone());
    let (queued, vault) = (Arc::new(Notify::new()), Arc::new(vault));
    let store = PostgresStore { thread, queued, vault, contexts, random };
    Ok(Opened { store, holds })
}

/// Starts the thread of a store.
///
/// # Errors
/// `sslrootcert` cannot be read, or the system cannot start a thread.
pub(super) fn started(url: &PostgresUrl, random: &Arc<dyn Random>, metrics: Arc<Metrics>) -> Result<Thread, OpenError> {
    let oldest = Arc::<OldestFormat>::default();
    let pool = connect::pool(url, Arc::clone(&oldest)).map_err(|reason| failed(url, reason))?;
    Thread::start(pool, oldest, Arc::clone(random), metrics).map_err(|error| failed(url, error.to_string()))
}

/// Blocks until work on the thread is done: opening a store has nothing else to do.
///
/// # Errors
/// The work failed, or the thread has ended.
pub(super) fn on_thread<T: Send + 'static>(
    thread: &Thread,
    url: &PostgresUrl,
    work: impl AsyncFnOnce(Rc<PgNode>) -> Result<T, OpenError> + Send + 'static,
) -> Result<T, OpenError> {
    let (reply, result) = std::sync::mpsc::channel();
    let sent = thread.send(async move |node| {
        let _ = reply.send(work(node).await);
    });
    sent.map_err(|error| failed(url, error.to_string()))?;
    result.recv().unwrap_or_else(|_| Err(failed(url, "the store's thread has ended".to_owned())))
}

fn failed(url: &PostgresUrl, reason: String) -> OpenError {
    OpenError::Database { store: url.to_string(), reason }
}

/// Runs the periodic work of a node for as long as the store is open. Several nodes run it side by side.
async fn run_periodic_work(node: Rc<PgNode>, machine: Arc<dyn Clock>) {
    tokio::join!(fold_periodically(&node), measure_periodically(&node, &*machine));
}

async fn measure_periodically(node: &PgNode, machine: &dyn Clock) {
    while !node.is_closed() {
        let is_right = node.clock.require_right().is_ok();
        tokio::time::sleep(if is_right { BETWEEN_MEASUREMENTS } else { UNTIL_CORRECTED }).await;
        if let Err(error) = node.measure_clock(machine).await {
            // A request that needs the database logs that it is unreachable.
            tracing::debug!(%error, "the database's clock cannot be read");
        }
    }
}

async fn fold_periodically(node: &PgNode) {
    let (mut after, mut reported) = (None, None);
    while !node.is_closed() {
        match fold::pass(node, after.take().as_ref()).await {
            Ok(Pass::UpTo(account)) => after = Some(account),
            Ok(Pass::Busy) => {}
            Ok(Pass::Done) => tokio::time::sleep(BETWEEN_FOLDS).await,
            Err(error) => {
                // Folding can wait; each error is logged once.
                let reason = error.to_string();
                if reported.as_ref() != Some(&reason) && !node.is_closed() {
                    tracing::warn!(error = reason, "balances cannot be folded now");
                    reported = Some(reason);
                }
                tokio::time::sleep(BETWEEN_FOLDS).await;
                continue;
            }
        }
        reported = None;
    }
}
