//! The v2 engine: creates, repeats, results and queries. It knows no HTTP, no SQL and no shape of the wire; `fields` is a
//! domain type to it.

mod create;
mod customer;
mod decide;
mod query;
mod repeat;
mod report;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::auth::signatures::{self, Link, LinkRefused};
use crate::clock::{Clock, Random};
use crate::domain::{
    Amount, Currency, Direction, MerchantId, Operation, RedirectUrl, Secret, TransactionId, UnixMillis,
};
use crate::error::{ApiError, RequestError};
use crate::rules::{GatewayRules, ProviderRules, Shop};
use crate::store::{Store, StoreError};
use crate::telemetry::Metrics;

pub use customer::NextAction;
pub use decide::{AcceptedRequest, FailureCause, check_rules};
pub use repeat::EarlierRequest;
pub use report::{Report, Reported};

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

/// The default secret of links, used when the rules have no `pages.secret`: 32 bytes in a file beside the store's key.
#[derive(Debug, Clone)]
pub struct PageSecret {
    secret: Secret,
    /// The content of its file: the secret in base64.
    file: Secret,
}

impl PageSecret {
    /// Signs with this secret.
    #[must_use]
    pub fn new(secret: Secret) -> Self {
        let file = Secret::new(STANDARD.encode(secret.expose()).as_bytes());
        Self { secret, file }
    }

    /// Signs the entry link of a deposit created at `now`.
    #[must_use]
    pub fn entry_link(&self, gateway: &GatewayRules, id: TransactionId, now: UnixMillis) -> RedirectUrl {
        self.sign(gateway, signatures::ENTRY, id, now.plus(gateway.pages.link_lifetime).seconds())
    }

    /// Signs the link to which the customer of a deposit returns after paying. It is a secret of the customer.
    #[must_use]
    pub fn return_link(&self, gateway: &GatewayRules, id: TransactionId, created_at: UnixMillis) -> RedirectUrl {
        self.sign(gateway, signatures::RETURN, id, created_at.plus(gateway.pages.return_lifetime).seconds())
    }

    /// Signs the link of the sandbox's hosted page; it expires with the entry link that led there.
    #[must_use]
    pub fn sandbox_link(&self, gateway: &GatewayRules, entry: Link) -> RedirectUrl {
        self.sign(gateway, signatures::SANDBOX, entry.id, entry.expires)
    }

    /// Verifies a link of a kind and returns its content; `target` is the path and query exactly as received.
    ///
    /// # Errors
    /// The link was not issued like this, or is too late.
    pub fn verify(
        &self,
        gateway: &GatewayRules,
        kind: &str,
        target: &str,
        now: UnixMillis,
    ) -> Result<Link, LinkRefused> {
        let Some(secrets) = &gateway.pages.secret else {
            return signatures::verify_link([&self.secret], kind, target, now);
        };
        // The file of the default secret may be listed, so that links signed with it stay valid.
        let default = secrets.verifying().any(|secret| secret.expose() == self.file.expose()).then_some(&self.secret);
        signatures::verify_link(secrets.verifying().chain(default), kind, target, now)
    }

    fn sign(&self, gateway: &GatewayRules, kind: &str, id: TransactionId, expires: i64) -> RedirectUrl {
        let secret = gateway.pages.secret.as_ref().map_or(&self.secret, |secrets| secrets.signing());
        RedirectUrl::new(signatures::sign_link(secret, &gateway.server.public_url, kind, id, expires))
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

#[cfg(test)]
mod link_tests {
    use super::*;
    use crate::rules::{LoadOptions, load};

    const CREATED: UnixMillis = UnixMillis(1_735_689_600_999);

    fn gateway(pages: &str) -> GatewayRules {
        let directory = tempfile::tempdir().unwrap();
        let text = format!("[server]\npublic_url = \"https://pay.example\"\n[pages]\n{pages}");
        std::fs::write(directory.path().join("gateway.toml"), text).unwrap();
        load(directory.path(), CREATED, None, LoadOptions::default()).unwrap().gateway
    }

    #[test]
    fn a_return_link_lives_from_the_creation_and_is_signed_with_the_first_secret() {
        let id = TransactionId::parse("123456789").unwrap();
        let default = PageSecret::new(Secret::new(b"page-secret"));
        // Computed with Python's hmac.
        for (pages, link) in [
            (
                "",
                "/return/123456789?expires=1736294400&signature=b33d71c3d3a4e75a2b2998bfd52c2f3047edd3deb8a1a1369a0efc604f6eead0",
            ),
            (
                "secret = [\"new\", \"page-secret\"]\nreturn_lifetime = \"1d\"\n",
                "/return/123456789?expires=1735776000&signature=4acc081c10b2576f57eac8353fde69f5c395344abd7e054cace2f83c24672e68",
            ),
        ] {
            let made = default.return_link(&gateway(pages), id, CREATED);
            assert_eq!(made.expose(), format!("https://pay.example{link}"));
            assert_eq!(format!("{made:?}"), "RedirectUrl(..)");
        }
    }
}
