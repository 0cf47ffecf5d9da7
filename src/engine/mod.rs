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

use std::sync::Arc;

use crate::auth::signatures::PageSecret;
use crate::deps::Deps;
use crate::domain::{Operation, UnixMillis};
use crate::error::{ApiError, RequestError};
use crate::rules::ProviderRules;
use crate::store::{OpeningBalances, OrderHome, Store, StoreError};

pub use customer::NextAction;
pub use decide::{AcceptedRequest, RefusingRule, RuleRefusal, check_rules};
pub use repeat::EarlierRequest;
pub use report::{Report, Reported};

/// The embedded v2 engine.
pub struct Engine {
    deps: Deps,
    provider: Arc<dyn Provider>,
    page_secret: PageSecret,
    openings: OpeningBalances,
}

impl Engine {
    /// Creates an engine. `page_secret` signs links where the rules name no secret of their own.
    #[must_use]
    pub fn new(deps: Deps, provider: Arc<dyn Provider>, page_secret: PageSecret) -> Self {
        Self { deps, provider, page_secret, openings: OpeningBalances::default() }
    }

    /// The store behind it.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.deps.store
    }
}

/// What the engine needs from the providers behind the shops, whose module is above this one.
pub trait Provider: Send + Sync + 'static {
    /// Returns the next step for the customer of a pending deposit, if the provider can decide it without the store;
    /// `None`: the deposit's preparation decides.
    fn next_action(&self, provider: &ProviderRules, operation: &Operation, now: UnixMillis) -> Option<NextAction>;

    /// Called after a commit that stored a provider job, so that it need not be waited for.
    fn job_stored(&self);
}

/// Why the engine did not create an operation.
#[derive(Debug)]
pub enum CreateError {
    /// A rule refuses it.
    Invalid(RequestError),
    /// The order was created by a v2 request with other data: the members that differ, as v2 paths, where they are known.
    OtherData {
        /// The id of the operation.
        transaction_id: Box<str>,
        /// The members.
        paths: Vec<String>,
    },
    /// The order was created by another v1 body.
    OtherBody(Box<EarlierRequest>),
    /// The order was created through the other API version: its operation's id, where it is known.
    OtherVersion(Option<Box<str>>),
    /// The order is at home elsewhere.
    Reserved(OrderHome),
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
            error @ StoreError::TooLong => Self::Unavailable { cause: error.to_string() },
            StoreError::Corrupt(cause) => Self::Internal { cause },
        }
    }
}
