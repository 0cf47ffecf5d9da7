//! The SQLite store: one file, WAL, `synchronous=FULL`, group commit (contract section 11).
//!
//! ```text
//! create, complete, ... seal, hash (caller's thread) -> queue -> writer: up to 256 in one commit -> answers
//! by_id, by_order, ...   a pooled connection, on the caller's thread
//! lists                  the same, on blocking threads, two at once
//! the log                checkpoints on a thread of their own; the writer moves the last pages and restarts the log
//! ```
//!
//! A store has at most 16 idle connections and two threads; each audit has a connection and a thread. The command line may
//! open the same file while a gateway serves it: a process that finds the write lock taken waits two seconds for it.

mod audit;
mod backend;
pub mod backup;
mod connection;
pub(super) mod copying;
mod failures;
mod ledger;
mod lists;
mod lock;
mod opening;
mod schema;
mod statements;
mod tasks;
#[cfg(test)]
mod tests;
mod transaction;
mod writer;

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use connection::Readers;
use lists::ListTurns;
use lock::StoreLock;
pub use opening::{open, open_beside, read_format, rewrap_keys};
use writer::Writer;

use super::rows::context::Contexts;
use super::vault::Vault;
use crate::clock::Random;

/// A store in one SQLite file.
pub struct SqliteStore {
    writer: Writer,
    readers: Arc<Readers>,
    histories: ListTurns,
    /// The lists of callbacks, apart from histories, so that neither waits for the other.
    lists: ListTurns,
    queued: Notify,
    vault: Arc<Vault>,
    contexts: Contexts,
    random: Arc<dyn Random>,
    /// Held by the one process that serves the store. Declared last, so that everything else is closed when it is released.
    lock: Mutex<Option<StoreLock>>,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SqliteStore(..)")
    }
}
