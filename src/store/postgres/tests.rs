//! The conformance suite over PostgreSQL, and what only a database with several nodes can show.
//!
//! The server is started from the installed binaries. Where there are none the tests say so and pass, unless
//! `PAYBRIDGE_REQUIRE_TOOLS=1`.

mod balances;
mod batches;
mod clocks;
mod crowds;
mod formats;
mod histories;
mod nodes;
mod plans;
#[path = "../../../tests/support/postgres.rs"]
pub(super) mod server;
mod servers;
mod silence;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::*;
use crate::clock::{SystemClock, SystemRandomness};
use crate::domain::{
    Balance, Currency, Direction, MerchantId, OrderId, Outcome, Page, Secret, TransactionId, UnixMillis,
};
use crate::store::conformance::{TestBackend, conformance};
use crate::store::{Claim, InsertOutcome, NewOperation, OpenError, Store, StoreError};
use crate::store::{OrderHomes as _, OrderLookups as _, ProviderJobs as _};
use crate::store_settings::{PostgresUrl, StoreKeys};

/// A database of its own.
struct Place(server::Database);

impl Place {
    /// `None` where PostgreSQL is not installed.
    fn new() -> Option<Self> {
        server::server().map(|server| Self(server.database()))
    }

    fn url(&self) -> PostgresUrl {
        PostgresUrl::parse(&self.0.url(), |path| path.into()).unwrap()
    }

    fn open_with(&self, keys: &StoreKeys) -> Result<PostgresStore, OpenError> {
        open(&self.url(), keys, Arc::new(SystemClock), Arc::new(SystemRandomness::default()), Arc::default())
            .map(|opened| opened.store)
    }

    fn open_node(&self) -> PostgresStore {
        self.open_with(&key(1)).unwrap()
    }
}

/// Returns a database of its own and two nodes on it; `None` where PostgreSQL is not installed.
pub(crate) fn two_nodes() -> Option<(impl Drop, Vec<Arc<dyn Store>>)> {
    let place = Place::new()?;
    let nodes = [place.open_node(), place.open_node()].map(|node| Arc::new(node) as Arc<dyn Store>);
    Some((place.0, nodes.into()))
}

fn key(byte: u8) -> StoreKeys {
    StoreKeys { create_at: None, keys: vec![Secret::new(&[byte; 32])] }
}

impl TestBackend for Place {
    fn open(&self) -> Pin<Box<dyn Future<Output = Arc<dyn Store>> + Send + '_>> {
        Box::pin(async { Arc::new(self.open_node()) as Arc<dyn Store> })
    }
}

conformance!(match Place::new() {
    Some(place) => place,
    None => return,
});
