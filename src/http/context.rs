//! A request on its way through the gateway: what all requests share, and what is known of one until it is replied to.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method};
use ipnet::IpNet;

use super::listener::{ConnectionInfo, ConnectionState, Protocol};
use super::reply::{self, Envelope, Reply};
use super::request::{self, ClientHints, RequestId};
use super::router;
use crate::auth::PerAddress;
use crate::auth::addresses::client_address;
use crate::clock::{Clock, Random};
use crate::domain::CallbackSignature;
use crate::engine::Engine;
use crate::error::ApiError;
use crate::pages::PageReply;
use crate::rules::{Merchant, RuleSet};
use crate::store::Store;
use crate::telemetry::access::loggable;
use crate::telemetry::{AccessLine, AccessLog, LogThrottle, Metrics, Stage, Stopwatch};
use crate::v1::V1Frontend;
use crate::v2::V2Service;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Supplies the rules in force.
pub trait RuleSource: Send + Sync + 'static {
    /// Returns the rules in force now. A request calls this once.
    fn current(&self) -> Arc<RuleSet>;
}

impl<F: Fn() -> Arc<RuleSet> + Send + Sync + 'static> RuleSource for F {
    fn current(&self) -> Arc<RuleSet> {
        self()
    }
}

/// What a gateway needs.
#[derive(Clone)]
pub struct GatewayDeps {
    /// The rules.
    pub rules: Arc<dyn RuleSource>,
    /// Finds what relayed callbacks are about.
    pub store: Arc<dyn Store>,
    /// Takes providers' reports and serves customers' pages; `None` when the engine is remote, which has its own.
    pub engine: Option<Arc<Engine>>,
    /// Serves native v2 requests and translated v1 ones.
    pub service: Arc<dyn V2Service>,
    /// Decides whether v1 timestamps and links are in time.
    pub clock: Arc<dyn Clock>,
    /// Draws request ids.
    pub random: Arc<dyn Random>,
    /// The process's metrics.
    pub metrics: Arc<Metrics>,
    /// Takes a line for each request.
    pub access_log: Arc<dyn AccessLog>,
}

/// What all requests of a gateway share.
pub(super) struct GatewayState {
    pub(super) deps: GatewayDeps,
    pub(super) v1: V1Frontend,
    /// As at the start: a change of `[clients]` needs a restart.
    trusted_proxies: Vec<IpNet>,
    /// As at the start: a change of `[engine]` needs a restart.
    pub(super) callback_signature: CallbackSignature,
    /// Counts failed authentications. Only requests that failed are throttled by it, so that failures from a
    /// merchant's address cannot lock the merchant out.
    pub(super) failed_authentications: PerAddress,
    /// Counts requests for customers' pages.
    pub(super) page_requests: PerAddress,
    bad_replies: LogThrottle,
    /// While the store is away, every request fails.
    unavailable: LogThrottle,
}

impl GatewayState {
    /// Reads `[clients]` and `[engine]` now; everything else is read with each request.
    pub(super) fn new(deps: GatewayDeps) -> Self {
        let rules = deps.rules.current();
        let fingerprint_key = deps.store.fingerprint_key().clone();
        Self {
            v1: V1Frontend::new(Arc::clone(&deps.service), fingerprint_key, Arc::clone(&deps.metrics)),
            trusted_proxies: rules.gateway.clients.trusted_proxies.clone(),
            callback_signature: rules.gateway.callback_signature.clone(),
            failed_authentications: PerAddress::new(rules.gateway.limits.unauthenticated_per_ip),
            page_requests: PerAddress::new(rules.gateway.limits.pages_per_ip),
            bad_replies: LogThrottle::default(),
            unavailable: LogThrottle::default(),
            deps,
        }
    }
}

/// What a handler returns for the reply.
pub(super) enum HandlerOutput {
    Json(Bytes),
    Page(PageReply),
}

/// A request and what is known of it. It is counted and logged once: when it is replied to, or when its caller is gone.
pub(super) struct RequestContext {
    gateway: Arc<GatewayState>,
    pub(super) rules: Arc<RuleSet>,
    pub(super) request_id: RequestId,
    trace: Option<Box<str>>,
    method: Method,
    /// The route's name in logs and metrics.
    pub(super) route: &'static str,
    /// The client's address, behind trusted proxies.
    pub(super) address: IpAddr,
    pub(super) http1: bool,
    /// The merchant whose key was used, authenticated or not.
    pub(super) merchant: Option<Arc<Merchant>>,
    /// Whether a v1 signature proved it. Before that, no reply depends on the merchant.
    pub(super) v1_proven: bool,
    /// Whether the connection has to close after the reply: an early refusal leaves a body unread.
    pub(super) close: bool,
    /// Whether the body was at hand, once it was read.
    pub(super) body_at_hand: Option<bool>,
    /// For customers' pages only.
    pub(super) client_hints: Option<ClientHints>,
    /// Notified when the caller is authenticated.
    connection: Arc<ConnectionState>,
    /// Since the request began.
    whole: Stopwatch,
    /// Since the last stage ended.
    stage: Stopwatch,
    answered: bool,
}

impl RequestContext {
    /// Begins with the head of a request.
    pub(super) fn begin(
        gateway: Arc<GatewayState>,
        rules: Arc<RuleSet>,
        head: &Parts,
        ConnectionInfo { peer, head_check, connection }: ConnectionInfo,
        has_body: bool,
    ) -> Self {
        let http1 = peer.protocol == Protocol::Http1;
        // Without trusted proxies the header is not read.
        let has_proxies = !gateway.trusted_proxies.is_empty();
        let forwarded = has_proxies.then(|| head.headers.get_all(FORWARDED_FOR).iter());
        let forwarded = forwarded.into_iter().flatten().map(HeaderValue::as_bytes);
        let now = Stopwatch::start();
        let address = client_address(peer.address, &gateway.trusted_proxies, forwarded);
        Self {
            rules,
            request_id: RequestId::of(&head.headers, gateway.deps.random.as_ref()),
            trace: request::trace_id(&head.headers).map(Into::into),
            method: head.method.clone(),
            route: router::NO_ROUTE,
            address,
            http1,
            merchant: None,
            v1_proven: false,
            close: http1 && has_body,
            body_at_hand: None,
            client_hints: router::is_of_pages(head.uri.path()).then(|| ClientHints::of(&head.headers)),
            connection,
            whole: head_check.began.unwrap_or(now),
            stage: now,
            answered: false,
            gateway,
        }
    }

    /// Notes that the caller is authenticated: the connection stays open, since the whole body was read.
    ///
    /// # Errors
    /// The connection was evicted for another one a moment ago: nothing is done whose reply could not be sent.
    pub(super) fn authenticated(&mut self) -> Result<(), ApiError> {
        self.stage_ended(Stage::Signature);
        self.close = false;
        if self.connection.authenticate() {
            Ok(())
        } else {
            Err(ApiError::Unavailable { cause: "its connection made room for another one".to_owned() })
        }
    }

    /// Begins a stage now, and not where the one before it ended.
    pub(super) fn stage_begins(&mut self) {
        self.stage = Stopwatch::start();
    }

    /// Ends a stage, which began where the one before it ended; returns how long it was. The clock is read once for both.
    pub(super) fn stage_ended(&mut self, stage: Stage) -> Duration {
        let duration = self.stage.restart();
        self.gateway.deps.metrics.stage(stage, duration);
        duration
    }

    /// Makes the reply, counts and logs the request.
    pub(super) fn finish(mut self, outcome: Result<HandlerOutput, ApiError>) -> Reply {
        let v1_merchant = self.merchant.as_deref().filter(|_| self.v1_proven);
        let hsts = self.rules.gateway.server.is_public();
        let envelope = Envelope { request_id: &self.request_id, v1_merchant, close: self.close, hsts };
        let reason = match &outcome {
            Err(failure) => failure.reason(),
            Ok(_) => None,
        };
        let hints = self.client_hints.as_ref();
        let reply = match outcome {
            Ok(HandlerOutput::Json(body)) => reply::success(body, &envelope),
            Ok(HandlerOutput::Page(answer)) => {
                let accept_language = hints.map_or("", |hints| &hints.accept_language);
                let reply = reply::step(&answer.step, self.page_format(accept_language), &envelope);
                self.gateway.deps.metrics.page(answer.step.name());
                self.merchant = self.rules.merchants.get(&answer.merchant).cloned();
                reply
            }
            Err(failure) => {
                self.report(&failure);
                let reply = match hints.filter(|hints| !hints.wants_json) {
                    Some(hints) => reply::failure_page(&failure, self.page_format(&hints.accept_language), &envelope),
                    None => reply::failure(&failure, &envelope),
                };
                match hints {
                    Some(_) => reply::for_customers(reply),
                    None => reply,
                }
            }
        };
        self.answered = true;
        self.record(reply.status().as_u16(), reason);
        reply
    }

    fn page_format<'a>(&'a self, accept_language: &'a str) -> reply::ErrorFormat<'a> {
        reply::ErrorFormat { pages: &self.rules.pages, accept_language }
    }

    fn record(&self, status: u16, reason: Option<&'static str>) {
        let (gateway, duration) = (&self.gateway, self.whole.elapsed());
        gateway.deps.metrics.request(self.route, status, duration);
        gateway.deps.access_log.line(&AccessLine {
            request_id: self.request_id.as_str(),
            merchant: self.merchant.as_ref().map(|merchant| merchant.id.as_str()),
            route: self.route,
            method: method_name(&self.method),
            status,
            reason,
            duration,
            rules_version: &self.rules.version,
            peer: self.address,
            trace: self.trace.as_deref(),
            time: gateway.deps.clock.now(),
        });
    }

    /// Counts refusals, and logs private causes, which the caller is not shown.
    fn report(&self, failure: &ApiError) {
        let request_id = || loggable(self.request_id.as_str());
        match failure {
            ApiError::Refused(refusal) => self.gateway.deps.metrics.refused(refusal.reason()),
            ApiError::BadEngineReply { cause } => {
                if let Some(left_out) = self.gateway.bad_replies.due(()) {
                    tracing::error!(request_id = %request_id(), route = self.route, %cause, left_out,
                        "the engine's reply cannot be passed on");
                }
            }
            ApiError::Internal { cause } => {
                tracing::error!(request_id = %request_id(), route = self.route, %cause, "the gateway failed");
            }
            // The remote service logs an outage once.
            ApiError::EngineUnreachable { cause } => {
                tracing::debug!(request_id = %request_id(), route = self.route, %cause, "the engine could not be reached");
            }
            ApiError::Unavailable { cause } => {
                if let Some(left_out) = self.gateway.unavailable.due(()) {
                    tracing::warn!(request_id = %request_id(), route = self.route, %cause, left_out,
                        "a request was refused for now");
                }
            }
            ApiError::EngineTimeout
            | ApiError::Invalid(_)
            | ApiError::Conflict(_)
            | ApiError::NotFound
            | ApiError::NotOffered(_)
            | ApiError::EngineBusy { .. }
            | ApiError::EngineReply(_) => {}
        }
    }
}

impl Drop for RequestContext {
    fn drop(&mut self) {
        if !self.answered {
            self.record(reply::CALLER_GONE, None);
        }
    }
}

/// Returns the method for the log: a caller can invent methods of any length.
fn method_name(method: &Method) -> &str {
    let name = method.as_str();
    if name.len() <= 16 { name } else { "other" }
}
