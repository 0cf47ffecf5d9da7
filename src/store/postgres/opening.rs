//! Opening the database: to serve, or beside nodes that serve.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::node::{Node, Thread};
use super::schema::{Asked, Prepared};
use super::{PostgresStore, connect, ledger, schema};
use crate::clock::Random;
use crate::rules::{PostgresUrl, StoreKeys};
use crate::store::rows::kept::KeptLists;
use crate::store::{OpenError, Opened};

/// Between looks for balances to be folded, when there was nothing more to do.
const BETWEEN_FOLDS: Duration = Duration::from_secs(1);

/// Opens the store of a database for a node that serves: makes its tables when there are none, and migrates older ones.
///
/// # Errors
/// One clear line: see [`OpenError`].
pub fn open(url: &PostgresUrl, keys: &StoreKeys, random: Arc<dyn Random>) -> Result<Opened<PostgresStore>, OpenError> {
    let opened = open_as(url, keys, random, Asked::Serve)?;
    // Sent before anything else: the store was opened now.
    let _ = opened.store.thread.send(async |node| drop(tokio::task::spawn_local(keep_house(node))));
    Ok(opened)
}

/// Opens a store beside nodes that may be serving it: nothing is made or migrated, and what they leased stays theirs.
///
/// # Errors
/// One clear line: see [`OpenError`]; also that there is no store, or one of an older version.
pub fn open_beside(url: &PostgresUrl, keys: &StoreKeys, random: Arc<dyn Random>) -> Result<PostgresStore, OpenError> {
    Ok(open_as(url, keys, random, Asked::Beside)?.store)
}

fn open_as(
    url: &PostgresUrl,
    keys: &StoreKeys,
    random: Arc<dyn Random>,
    asked: Asked,
) -> Result<Opened<PostgresStore>, OpenError> {
    let failed = |reason: String| OpenError::Database { store: url.to_string(), reason };
    let pool = connect::pool(url).map_err(failed)?;
    let thread = Thread::start(pool, Arc::clone(&random)).map_err(|error| failed(error.to_string()))?;
    let Prepared { vault, holds } = prepared(&thread, url, keys, &random, asked)?;
    let kept = KeptLists::new(vault.comparer().clone());
    let store = PostgresStore { thread, queued: Arc::new(Notify::new()), vault: Arc::new(vault), kept, random };
    Ok(Opened { store, holds })
}

/// Waits for the thread: whoever opens a store has nothing else to do.
fn prepared(
    thread: &Thread,
    url: &PostgresUrl,
    keys: &StoreKeys,
    random: &Arc<dyn Random>,
    asked: Asked,
) -> Result<Prepared, OpenError> {
    let (reply, result) = std::sync::mpsc::channel();
    let (place, keys, random) = (url.clone(), keys.clone(), Arc::clone(random));
    let sent = thread.send(async move |node| {
        let _ = reply.send(schema::prepare(&node, &place, &keys, random, asked).await);
    });
    let lost = |reason: String| OpenError::Database { store: url.to_string(), reason };
    sent.map_err(|error| lost(error.to_string()))?;
    result.recv().unwrap_or_else(|_| Err(lost("the store's thread has ended".to_owned())))
}

/// What a node does by itself, for as long as the store is open. Several nodes do it side by side.
async fn keep_house(node: Rc<Node>) {
    while !node.is_closed() {
        match ledger::fold(&node).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) if node.is_closed() => tracing::debug!(%error, "the store was closed"),
            Err(error) => tracing::warn!(%error, "balances cannot be folded now"),
        }
        tokio::time::sleep(BETWEEN_FOLDS).await;
    }
}
