//! The interface between the admin listener and the process.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use super::rules::RulesInfo;
use crate::auth::Interface;
use crate::callback::Sampled;
use crate::clock::Random;
use crate::domain::{CallbackUrl, MerchantId, UnixMillis};
use crate::operations::Overdue;
use crate::rules::{Merchant, RuleSet};
use crate::shadow::Readiness;
use crate::store::{AttentionCounts, Store, StoreError};
use crate::telemetry::{HistorySnapshot, RefusedRequests};

/// The future of an [`AdminSource`].
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The process, as the admin listener sees it.
pub trait AdminSource: Send + Sync + 'static {
    /// Reports whether requests can be served now, or why not: draining, or a check that failed.
    fn ready(&self) -> Pending<'_, Result<(), String>>;

    /// Returns the rule set in force.
    fn rule_set(&self) -> Arc<RuleSet>;

    /// Describes the rule set in force.
    fn rules(&self) -> RulesInfo;

    /// Reloads the rules now; [`RulesInfo::error`] is set when they were rejected.
    fn reload(&self) -> Pending<'_, RulesInfo>;

    /// Writes the metrics.
    fn metrics(&self) -> String;

    /// Returns the store.
    fn store(&self) -> &dyn Store;

    /// Counts the operations that need attention, or returns counts of a moment ago.
    fn attention(&self) -> Pending<'_, Result<AttentionCounts, String>>;

    /// Returns the figures of the last hour.
    fn history(&self) -> HistorySnapshot;

    /// Returns which waits of operations and resolutions are over.
    fn overdue(&self) -> Overdue;

    /// Counts a resolution, by its outcome.
    fn count_resolution(&self, outcome: &'static str);

    /// Returns the last refused requests.
    fn refused(&self) -> &RefusedRequests;

    /// Returns at how many origins the circuit of a merchant or more is open, and the first of them.
    fn open_circuits(&self) -> (usize, Vec<String>);

    /// Returns the directory of the rules.
    fn rules_directory(&self) -> String;

    /// Returns the name of the machine.
    fn node(&self) -> String;

    /// Returns the source of random numbers.
    fn random(&self) -> &dyn Random;

    /// Sends a sample to a merchant's receiver, or returns why it cannot.
    fn sample(&self, request: SampleRequest) -> Pending<'_, Result<Sampled, String>>;

    /// Reports whether merchants of the rules in force can move to v2.
    fn readiness(&self, merchants: Vec<Arc<Merchant>>) -> Pending<'_, Result<Readiness, StoreError>>;

    /// Returns the time.
    fn now(&self) -> UnixMillis;

    /// Returns a reading of the monotonic clock: sessions and waits of failed sign-ins go by it.
    fn monotonic(&self) -> Instant;
}

/// A request to send a sample.
#[derive(Debug, Clone)]
pub struct SampleRequest {
    /// The merchant that receives it.
    pub merchant: MerchantId,
    /// The key that signs; `None`: the merchant's first key with a secret.
    pub api_key: Option<String>,
    /// The callback format; `None`: the one in the merchant's rules.
    pub through: Option<Interface>,
    /// The address; `None`: the merchant's default address.
    pub url: Option<CallbackUrl>,
}
