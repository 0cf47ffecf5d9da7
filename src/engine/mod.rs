//! The v2 engine: creates, repeats, results and queries. It knows no HTTP, no SQL and no shape of the wire; `fields` is a
//! domain type to it.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::{Clock, Random};
use crate::domain::{Amount, Currency, Direction, MerchantId, Operation, UnixMillis};
use crate::error::{ApiError, RequestError};
use crate::rules::{ProviderRules, Shop};
use crate::store::{Store, StoreError};
use crate::telemetry::Metrics;

pub use customer::NextAction;
pub use decide::{AcceptedRequest, FailureCause, check_rules};
pub use links::PageSecret;
pub use repeat::EarlierRequest;
pub use report::{Report, Reported};

mod create;
mod customer;
mod decide;
mod links;
mod query;
mod repeat;
mod report;
#[cfg(test)]
pub(crate) mod tests;

/// The embedded v2 engine.
pub struct Engine {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    provider: Arc<dyn Provider>,
    page_secret: PageSecret,
    metrics: Arc<Metrics>,
    openings: OpeningBalances,
}

impl Engine {
    /// An engine over a store. `page_secret` signs links where the rules name no secret of their own.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        provider: Arc<dyn Provider>,
        page_secret: PageSecret,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self { store, clock, random, provider, page_secret, metrics, openings: OpeningBalances::default() }
    }

    /// The store behind it.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Makes and verifies the links of deposits.
    #[must_use]
    pub const fn links(&self) -> &PageSecret {
        &self.page_secret
    }

    /// The process's metrics.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}

/// What the engine needs from the providers behind the shops, whose module is above this one.
pub trait Provider: Send + Sync + 'static {
    /// What a provider makes of an operation about to be created.
    fn at_creation(&self, shop: &Shop, direction: Direction, amount: Amount, now: UnixMillis) -> AtCreation;

    /// Returns the next step for the customer of a pending deposit, if the provider can decide it without the store;
    /// `None`: the deposit's preparation decides.
    fn next_action(&self, provider: &ProviderRules, operation: &Operation, now: UnixMillis) -> Option<NextAction>;

    /// Called after a commit that stored a provider job, so that it need not be waited for.
    fn job_stored(&self);
}

/// What a provider makes of a new operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtCreation {
    /// It fails at once: the operation is created FAILED.
    Fail,
    /// A job of the durable queue has to request the result at this time.
    ScheduleAt(UnixMillis),
    /// It waits for the customer or for a report.
    Wait,
}

/// Why the engine did not create an operation.
#[derive(Debug)]
pub enum CreateError {
    /// A rule refuses it.
    Invalid(RequestError),
    /// The order was created by a v2 request with other data: the members that differ, as v2 paths, where they are known.
    OtherData(Vec<String>),
    /// The order was created by another v1 body.
    OtherBody(Box<EarlierRequest>),
    /// The order was created through the other API version.
    OtherVersion,
    /// The `order_id` is reserved for an operation of the old v1 service.
    Reserved,
    /// Nothing was decided.
    Failed(ApiError),
}

impl From<RequestError> for CreateError {
    fn from(error: RequestError) -> Self {
        Self::Invalid(error)
    }
}

impl From<ApiError> for CreateError {
    fn from(error: ApiError) -> Self {
        Self::Failed(error)
    }
}

impl From<StoreError> for CreateError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(cause) => Self::Unavailable { cause },
            StoreError::Corrupt(cause) => Self::Internal { cause },
        }
    }
}

/// The most merchants remembered; then all are forgotten, which costs the store one check for each.
const REMEMBERED: usize = 65_536;

/// The merchants whose opening balances are known to be posted. The opening balances are part of a merchant's creates and
/// balance requests until one of them was committed. The store posts them once; this only saves it the check.
#[derive(Debug, Default)]
struct OpeningBalances {
    seen: Mutex<HashSet<MerchantId>>,
}

impl OpeningBalances {
    /// Returns the opening balances to post with a request of this merchant; `None` when they are posted already.
    fn offered(
        &self,
        merchant: &MerchantId,
        opening: &BTreeMap<Currency, Amount>,
    ) -> Option<Arc<[(Currency, Amount)]>> {
        if self.seen().contains(merchant) {
            return None;
        }
        Some(opening.iter().map(|(currency, amount)| (*currency, *amount)).collect())
    }

    /// Notes that a request with the opening balances was committed.
    fn confirmed(&self, merchant: &MerchantId) {
        let mut seen = self.seen();
        if seen.len() >= REMEMBERED {
            seen.clear();
        }
        seen.insert(merchant.clone());
    }

    fn seen(&self) -> MutexGuard<'_, HashSet<MerchantId>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod opening_tests {
    use super::*;

    #[test]
    fn openings_are_offered_until_a_create_confirmed() {
        let merchant = |name: &str| MerchantId::new(name).unwrap();
        let amount = Amount::from_hundredths(100).unwrap();
        let opening = BTreeMap::from([(Currency::new("EUR").unwrap(), amount)]);
        let openings = OpeningBalances::default();
        assert!(openings.offered(&merchant("a"), &BTreeMap::new()).unwrap().is_empty());
        for _ in 0..2 {
            assert_eq!(*openings.offered(&merchant("a"), &opening).unwrap(), [(Currency::new("EUR").unwrap(), amount)]);
        }
        openings.confirmed(&merchant("a"));
        assert_eq!(openings.offered(&merchant("a"), &opening), None);
        assert_eq!(openings.offered(&merchant("b"), &opening).unwrap().len(), 1);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let openings = OpeningBalances::default();
        for number in 0..=REMEMBERED {
            openings.confirmed(&MerchantId::new(&format!("m{number}")).unwrap());
        }
        assert_eq!(openings.seen().len(), 1);
    }
}
