//! The dependencies that the services of a process share: made once, by the composition root.

#[cfg(test)]
mod testing;

use std::sync::Arc;

use crate::clock::{Clock, Random};
use crate::outbound::Outbound;
use crate::rules::CurrentRules;
use crate::store::Store;
use crate::telemetry::Metrics;

/// What services need of their process. Clones share everything.
///
/// `rules` is for background work. A service that is called for a request takes the rules of its caller, which serve the
/// request to its end.
#[derive(Clone)]
pub struct Deps {
    /// Holds what is on disk.
    pub store: Arc<dyn Store>,
    /// Returns the rules in force.
    pub rules: CurrentRules,
    /// Sends requests to other servers.
    pub outbound: Arc<Outbound>,
    /// Dates what is stored, signed and shown.
    pub clock: Arc<dyn Clock>,
    /// Draws ids and nonces, and spreads retries.
    pub random: Arc<dyn Random>,
    /// The metrics of the process.
    pub metrics: Arc<Metrics>,
}
