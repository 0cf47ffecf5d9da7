//! Where a v1 request goes: here or to the old v1 service (contract section 6, "Homes and modes").
//!
//! The home of an order decides; the mode only chooses the home of an order that has none. A claim for the old service is
//! on disk before its create leaves, and an order at home there cannot be stored here. So no order is ever made twice.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;

use crate::auth::SignedBody;
use crate::deps::Deps;
use crate::domain::{Answer, Direction, OrderId};
use crate::error::{ApiError, LegacyError};
use crate::legacy::{Legacy, RequestHead};
use crate::rules::{LegacyRules, Mode, Share};
use crate::shadow::{ForwardedCreate, LegacyOutcome, ShadowChecks};
use crate::store::{HomeClaim, OrderHome};
use crate::v1::V1Frontend;
use crate::v1::query::parameter;
use crate::v2::{ServiceCall, reserved};
use crate::wire::claimed::claimed_id;

/// Knows where orders are at home, and reaches the old v1 service.
pub struct Homes {
    deps: Deps,
    legacy: Legacy,
    checks: Option<Arc<ShadowChecks>>,
}

impl Homes {
    /// Finds homes and forwards. `checks`: checks the creates of merchants in mode `shadow`; without it, nothing is
    /// checked.
    #[must_use]
    pub fn new(deps: Deps, checks: Option<Arc<ShadowChecks>>) -> Self {
        Self { legacy: Legacy::new(&deps), deps, checks }
    }
}

/// The reply to a v1 request.
pub enum V1Reply {
    /// Made here.
    Here(Answer),
    /// The old v1 service's.
    Forwarded(Response<Bytes>),
}

/// A v1 request where there is an old v1 service.
#[derive(Clone, Copy)]
pub struct ByHome<'a> {
    /// Answers what is at home here.
    pub frontend: &'a V1Frontend,
    /// Finds where that is.
    pub homes: &'a Homes,
    /// The request.
    pub call: ServiceCall<'a>,
    /// `[legacy]`.
    pub rules: &'a LegacyRules,
    /// The head of the request, as it came.
    pub head: &'a RequestHead,
    /// The body, as it came.
    pub body: &'a SignedBody,
}

impl ByHome<'_> {
    /// Answers a create, or forwards it.
    ///
    /// # Errors
    /// Why nothing was created here; the order could not be claimed; or the old service gave no reply.
    pub async fn create(self, direction: Direction) -> Result<V1Reply, ApiError> {
        let share = match self.mode() {
            Mode::Translate => return self.create_here(direction).await,
            Mode::Legacy | Mode::Shadow => Share::default(),
            Mode::Staged(shares) => shares.of(direction),
        };
        let Some(external_id) = claimed_id(self.body.bytes())? else {
            self.count(OrderHome::Legacy);
            return self.forward_create(direction).await;
        };
        let (store, merchant) = (&self.homes.deps.store, &self.call.caller.merchant().id);
        let order = store.fingerprint_key().order_key(merchant, direction, &external_id);
        if share.contains(order) && store.ids_complete(merchant, direction).await? {
            return self.create_here(direction).await;
        }
        let now = self.homes.deps.clock.now();
        let home = store.claim(merchant, direction, &external_id, HomeClaim::Legacy, now).await?;
        match home {
            OrderHome::Legacy => {
                self.count(home);
                self.forward_create(direction).await
            }
            OrderHome::Operation | OrderHome::Entry | OrderHome::Native => self.create_here(direction).await,
            OrderHome::Lost => {
                self.count(home);
                Err(ApiError::Conflict(reserved("external_id", home)))
            }
        }
    }

    /// Forwards a create. In mode `shadow`, it is checked after its reply.
    async fn forward_create(self, direction: Direction) -> Result<V1Reply, ApiError> {
        let reply = self.forward().await;
        if let (Mode::Shadow, Some(checks)) = (self.mode(), &self.homes.checks) {
            let status = match &reply {
                Ok(V1Reply::Forwarded(reply)) => Some(reply.status().as_u16()),
                Ok(V1Reply::Here(_)) | Err(_) => None,
            };
            checks.queue(ForwardedCreate {
                caller: self.call.caller.clone(),
                direction,
                body: self.body.bytes().clone(),
                legacy: LegacyOutcome::of_status(status),
            });
        }
        reply
    }

    /// Creates an order here, or forwards it when it is at home with the old service. The insert of the operation finds
    /// that home; a refusal that comes earlier does not count then.
    async fn create_here(self, direction: Direction) -> Result<V1Reply, ApiError> {
        match self.frontend.create(self.call, direction, self.body).await {
            Ok(body) => {
                self.count(OrderHome::Operation);
                Ok(V1Reply::Here(body))
            }
            Err(refusal @ (ApiError::Invalid(_) | ApiError::Untranslatable { .. } | ApiError::Conflict(_))) => {
                let external_id = claimed_id(self.body.bytes()).ok().flatten();
                let home = self.home(direction, external_id.as_ref()).await?.unwrap_or(OrderHome::Operation);
                self.count(home);
                if home == OrderHome::Legacy { self.forward().await } else { Err(refusal) }
            }
            Err(failure) => Err(failure),
        }
    }

    /// Answers a status request, or forwards it.
    ///
    /// # Errors
    /// A malformed parameter, or no such operation; or the old service gave no reply.
    pub async fn status(self, direction: Direction, query: Option<&str>) -> Result<V1Reply, ApiError> {
        let named = parameter(query, "external_id").ok().flatten();
        let external_id = named.and_then(|text| OrderId::new(&text).ok());
        match (self.home(direction, external_id.as_ref()).await?, self.mode()) {
            // The front finds no operation of a lost order.
            (Some(OrderHome::Operation | OrderHome::Entry | OrderHome::Native | OrderHome::Lost), _)
            | (None, Mode::Translate) => self.frontend.status(self.call, direction, query).await.map(V1Reply::Here),
            (Some(OrderHome::Legacy), _) | (None, Mode::Legacy | Mode::Shadow | Mode::Staged(_)) => {
                self.forward().await
            }
        }
    }

    /// Answers a balance request in mode `translate`, or forwards it.
    ///
    /// # Errors
    /// The engine could not answer, or has no balances; or the old service gave no reply.
    pub async fn balance(self) -> Result<V1Reply, ApiError> {
        match self.mode() {
            Mode::Translate => self.frontend.balance(self.call).await.map(|body| V1Reply::Here(body.into())),
            Mode::Legacy | Mode::Shadow | Mode::Staged(_) => self.forward().await,
        }
    }

    /// Answers a request for the history in mode `translate`, or forwards it.
    ///
    /// # Errors
    /// A malformed parameter; or the old service gave no reply.
    pub async fn transactions(self, query: Option<&str>) -> Result<V1Reply, ApiError> {
        match self.mode() {
            Mode::Translate => {
                self.frontend.transactions(self.call, query).await.map(|body| V1Reply::Here(body.into()))
            }
            Mode::Legacy | Mode::Shadow | Mode::Staged(_) => self.forward().await,
        }
    }

    /// Forwards a request below `[legacy] paths`.
    ///
    /// # Errors
    /// The old service gave no reply that can be passed on.
    pub async fn forward_path(self) -> Result<V1Reply, ApiError> {
        self.call_legacy().await.map_err(ApiError::LegacyPath)
    }

    async fn forward(self) -> Result<V1Reply, ApiError> {
        self.call_legacy().await.map_err(ApiError::Legacy)
    }

    async fn call_legacy(self) -> Result<V1Reply, LegacyError> {
        let body = self.body.bytes().clone();
        let merchant = &self.call.caller.merchant().id;
        let reply = self.homes.legacy.forward(merchant, self.rules, self.head, self.call.forwarded, body).await;
        reply.map(V1Reply::Forwarded)
    }

    /// Reads the home of an order, if the request names one that has one.
    async fn home(self, direction: Direction, external_id: Option<&OrderId>) -> Result<Option<OrderHome>, ApiError> {
        let Some(external_id) = external_id else { return Ok(None) };
        let merchant = &self.call.caller.merchant().id;
        Ok(self.homes.deps.store.order_home(merchant, direction, external_id).await?)
    }

    fn mode(self) -> Mode {
        self.call.caller.merchant().v1.mode
    }

    /// Counts a create by the mode and the home of its order.
    fn count(self, home: OrderHome) {
        let home = match home {
            OrderHome::Legacy => "legacy",
            OrderHome::Lost => "lost",
            OrderHome::Operation | OrderHome::Entry | OrderHome::Native => "here",
        };
        self.homes.deps.metrics.homes().create_by_home(self.mode().as_str(), home);
    }
}

#[cfg(test)]
mod model_tests;
