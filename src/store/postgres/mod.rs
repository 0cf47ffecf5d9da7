//! The PostgreSQL store: one database, any number of gateways (contract section 11).
//!
//! ```text
//! create               without a decision: up to 128 in one statement and one commit
//!                      any other: a transaction of its own
//! complete, claim, ... a transaction each
//! by_id, by_order, ... a statement each
//! ```
//!
//! All of it runs on one thread of the process, which owns all connections ([`node`], `store.connections` at most); sealing
//! and hashing run on the caller's thread. Nodes do not depend on each other: a unique key settles races, row locks order
//! decisions, and leases hand over the work of a node that died. After a lost connection the outcome of a commit is read
//! again, never assumed ([`errors`]).

mod audit;
mod backend;
mod batch;
mod claims;
mod connect;
mod connections;
pub mod copying;
mod create;
mod errors;
mod insert;
mod journal;
mod ledger;
mod narrowing;
mod node;
mod opening;
mod permits;
mod presence;
mod queue;
mod schema;
mod server;
mod statements;
mod tasks;
#[cfg(test)]
pub(crate) mod tests;
mod transaction;

use std::sync::Arc;

use tokio::sync::Notify;

use node::Thread;
pub use opening::{open, open_beside, read_format, rewrap_keys};

use super::rows::context::Contexts;
use super::vault::Vault;
use crate::clock::Random;

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    thread: Thread,
    queued: Arc<Notify>,
    vault: Arc<Vault>,
    contexts: Contexts,
    random: Arc<dyn Random>,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PostgresStore(..)")
    }
}
