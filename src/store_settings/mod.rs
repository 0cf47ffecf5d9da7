//! Where a store is, and which keys open it, as the rules name them: values, of which the store makes connections.

mod url;

use std::path::PathBuf;

pub(crate) use url::host_and_port;
pub use url::{PostgresTls, PostgresUrl, StoreUrl};

use crate::domain::Secret;

/// What `[store]` configures.
#[derive(Debug, Clone)]
pub struct StoreSettings {
    /// The location of the store.
    pub url: StoreUrl,
    /// The most connections to the database; a [`PostgresUrl`] contains it too.
    pub connections: usize,
    /// The keys that wrap the store's data keys.
    pub keys: StoreKeys,
}

/// The keys that wrap the store's data keys: the first wraps, all unwrap.
#[derive(Debug, Clone)]
pub struct StoreKeys {
    /// The file in which the first key is created when it is missing and the store is new.
    pub create_at: Option<PathBuf>,
    /// The keys, 32 bytes each. Empty only when `create_at` names a file that does not exist yet.
    pub keys: Vec<Secret>,
}
