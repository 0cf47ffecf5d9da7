//! Keeps releases off a store that a newer one has locked them out of (contract section 15), without a statement in the
//! transactions of requests.
//!
//! ```text
//! a new connection      once connections are known to have sessions of their own: takes a shared advisory lock of its
//!                       release's format, which lasts as long as its session; then reads the oldest format
//! store finish-upgrade  commits the oldest format; waits until sessions of older releases did nothing for a while; ends
//!                       those that are left; narrows while it has their lock exclusively
//! ```
//!
//! A session of an older release either has the lock, and is waited for or ended, or meets the new oldest format. So a
//! gateway that was frozen or cut off meanwhile finds its connections ended and gets no other.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use deadpool_postgres::HookError;
use tokio_postgres::Client;

use super::transaction::value;
use crate::store::format::{self, FORMAT};

/// The key of the store's advisory locks (`PBrg`): alone, of a node that opens, and perhaps adds to, the store, while others
/// wait and find the work done; with a format, of the sessions of that format's release.
pub(super) const LOCK: i32 = 0x5042_7267;

/// The oldest format of the store as a node last read it. Zero until the store is open: opening compares the formats
/// itself, and names both.
#[derive(Debug, Default)]
pub(super) struct OldestFormat {
    format: AtomicU32,
    /// Whether the database was [checked](super::server::check). A lock that is taken through a pooler in transaction mode
    /// stays behind, in a session that others use.
    is_checked: AtomicBool,
}

impl OldestFormat {
    pub(super) fn set(&self, oldest: u32) {
        self.format.store(oldest, Ordering::Release);
    }

    /// Returns the oldest format, if this release was locked out.
    pub(super) fn locked_out(&self) -> Option<u32> {
        Some(self.format.load(Ordering::Acquire)).filter(|oldest| *oldest > FORMAT)
    }

    /// Records that the database was checked. Returns whether it was before.
    pub(super) fn set_checked(&self) -> bool {
        self.is_checked.swap(true, Ordering::AcqRel)
    }

    fn is_known(&self) -> bool {
        self.format.load(Ordering::Acquire) > 0
    }
}

/// Takes the lock for a new connection, and refuses it if this release was locked out. Does nothing before the database was
/// checked.
pub(super) async fn enter(client: &Client, oldest: &OldestFormat) -> Result<(), HookError> {
    if !oldest.is_checked.load(Ordering::Acquire) {
        return Ok(());
    }
    let lock = format!("SELECT pg_try_advisory_lock_shared({LOCK}, {FORMAT})");
    if value(client, &lock).await.map_err(HookError::Backend)? != "t" {
        return Err(HookError::message("a newer release finishes its upgrade of the store"));
    }
    if oldest.is_known() {
        let found = value(client, format::OLDEST.postgres).await.map_err(HookError::Backend)?;
        oldest.set(found.parse().unwrap_or(format::FIRST));
    }
    match oldest.locked_out() {
        Some(oldest) => Err(HookError::message(format::locked_out(oldest))),
        None => Ok(()),
    }
}
