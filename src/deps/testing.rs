//! The dependencies of a service under test.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::Deps;
use crate::clock::{Clock, SystemClock, SystemRandomness};
use crate::rules::RuleSet;
use crate::store::{Store, open_store};
use crate::telemetry::Metrics;

impl Deps {
    /// Opens the store that the rules name. The store goes by the machine's clock, and all else by `clock`.
    pub(crate) fn open(rules: RuleSet, clock: Arc<dyn Clock>) -> Self {
        let (random, metrics) = (Arc::new(SystemRandomness::default()), Arc::<Metrics>::default());
        let opened = open_store(&rules.gateway.store, Arc::new(SystemClock), random, Arc::clone(&metrics)).unwrap();
        Self { metrics, ..Self::over(opened.store, Arc::new(rules), clock) }
    }

    /// Takes a store that is open.
    pub(crate) fn over(store: Arc<dyn Store>, rules: Arc<RuleSet>, clock: Arc<dyn Clock>) -> Self {
        let random = Arc::new(SystemRandomness::default());
        let (outbound, metrics) = (Arc::default(), Arc::default());
        Self { store, rules: Arc::new(ArcSwap::new(rules)), outbound, clock, random, metrics }
    }
}
