//! Opens the store that the rules configure.

use std::sync::Arc;

use super::{OpenError, Opened, Rewrapped, Store, StoreAccess, StoreFormat, postgres, sqlite};
use crate::clock::{Clock, Random};
use crate::store_settings::{StoreSettings, StoreUrl};
use crate::telemetry::Metrics;

/// Opens the store that the rules configure, and creates or upgrades it as needed.
///
/// # Errors
/// One line for the operator: what failed, on which path, and what to do. A backup that was not adopted is refused.
pub fn open_store(
    rules: &StoreSettings,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    metrics: Arc<Metrics>,
) -> Result<Opened<Arc<dyn Store>>, OpenError> {
    match &rules.url {
        StoreUrl::Sqlite(path) => {
            let Opened { store, holds } = sqlite::open(path, &rules.keys, random, metrics)?;
            Ok(Opened { store: Arc::new(store), holds })
        }
        StoreUrl::Postgres(url) => {
            let Opened { store, holds } = postgres::open(url, &rules.keys, clock, random, metrics)?;
            Ok(Opened { store: Arc::new(store), holds })
        }
    }
}

/// Opens the store that the rules configure for a tool, while a gateway may be serving it. Creates and upgrades
/// nothing, and leaves the gateway's leases and write-ahead log unchanged.
///
/// # Errors
/// As [`open_store`]; also when there is no store, or its format is older. A backup that was not adopted can be read.
pub fn open_beside(
    rules: &StoreSettings,
    access: StoreAccess,
    random: Arc<dyn Random>,
    metrics: Arc<Metrics>,
) -> Result<Arc<dyn Store>, OpenError> {
    match &rules.url {
        StoreUrl::Sqlite(path) => Ok(Arc::new(sqlite::open_beside(path, &rules.keys, access, random, metrics)?)),
        StoreUrl::Postgres(url) => Ok(Arc::new(postgres::open_beside(url, &rules.keys, access, random, metrics)?)),
    }
}

/// Wraps the data keys of the configured store with the first of `store.keys`, in one transaction. Gateways that are
/// serving the store are not affected: they have the unwrapped data keys in memory.
///
/// # Errors
/// As [`open_beside`]. Nothing is changed then, unless the connection to the database was lost during the commit.
pub fn rewrap_keys(rules: &StoreSettings, random: Arc<dyn Random>) -> Result<Rewrapped, OpenError> {
    match &rules.url {
        StoreUrl::Sqlite(path) => sqlite::rewrap_keys(path, &rules.keys, &random),
        StoreUrl::Postgres(url) => postgres::rewrap_keys(url, &rules.keys, random),
    }
}

/// Reads the formats that the configured store names, whether or not this release can serve it. Changes nothing.
///
/// # Errors
/// There is no store, an unreleased build made it, or it cannot be read.
pub fn read_format(rules: &StoreSettings, random: &Arc<dyn Random>) -> Result<StoreFormat, OpenError> {
    match &rules.url {
        StoreUrl::Sqlite(path) => sqlite::read_format(path),
        StoreUrl::Postgres(url) => postgres::read_format(url, random),
    }
}
