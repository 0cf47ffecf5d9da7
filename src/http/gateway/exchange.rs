//! A request and what was learnt of it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::request::Parts;
use http::{HeaderName, HeaderValue, Method};

use super::{Core, HandlerOutput};
use crate::auth::addresses::client_address;
use crate::failure::ApiError;
use crate::http::correlation::{self, RequestId};
use crate::http::listener::ConnectionState;
use crate::http::reader::Reader;
use crate::http::reply::{self, Envelope, Reply};
use crate::http::{ConnectionInfo, Protocol, router};
use crate::rules::{Merchant, RuleSet};
use crate::telemetry::access::loggable;
use crate::telemetry::{AccessLine, Stage};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// A request and what was learnt of it, until it is answered or its caller is gone: either is logged and counted.
pub(super) struct RequestContext {
    core: Arc<Core>,
    pub(super) rules: Arc<RuleSet>,
    pub(super) request_id: RequestId,
    trace: Option<Box<str>>,
    method: Method,
    pub(super) route: &'static str,
    /// Where the request counts as coming from.
    pub(super) address: IpAddr,
    pub(super) http1: bool,
    /// Whose key was used, proven or not.
    pub(super) merchant: Option<Arc<Merchant>>,
    /// Whether it is proven by a v1 signature. Before that, no reply depends on the merchant.
    pub(super) v1_proven: bool,
    /// Whether the connection has to close after the reply: an early refusal leaves a body unread.
    pub(super) close: bool,
    /// Whether the body was at hand, once it was read.
    pub(super) body_at_hand: Option<bool>,
    /// Of a customer's page: who reads the answer.
    pub(super) reader: Option<Reader>,
    /// Told when the request is authenticated.
    connection: Arc<ConnectionState>,
    started: Instant,
    /// When the last stage ended.
    stage_ended: Instant,
    answered: bool,
}

impl RequestContext {
    pub(super) fn begin(
        core: Arc<Core>,
        rules: Arc<RuleSet>,
        head: &Parts,
        ConnectionInfo { peer, facts, connection }: ConnectionInfo,
        has_body: bool,
    ) -> Self {
        let http1 = peer.protocol == Protocol::Http1;
        // Without proxies that are believed, nobody's word is looked for.
        let believed = !core.trusted_proxies.is_empty();
        let forwarded = believed.then(|| head.headers.get_all(FORWARDED_FOR).iter());
        let forwarded = forwarded.into_iter().flatten().map(HeaderValue::as_bytes);
        let now = Instant::now();
        let address = client_address(peer.address, &core.trusted_proxies, forwarded);
        Self {
            rules,
            request_id: RequestId::of(&head.headers, core.wiring.random.as_ref()),
            trace: correlation::trace_id(&head.headers).map(Into::into),
            method: head.method.clone(),
            route: router::NO_ROUTE,
            address,
            http1,
            merchant: None,
            v1_proven: false,
            close: http1 && has_body,
            body_at_hand: None,
            reader: router::is_of_pages(head.uri.path()).then(|| Reader::of(&head.headers)),
            connection,
            started: facts.began.unwrap_or(now),
            stage_ended: now,
            answered: false,
            core,
        }
    }

    /// The request is proven to come from who it says: its connection may stay, and what it left unread is no obstacle.
    ///
    /// # Errors
    /// The connection had to make room for another one a moment ago: nothing is done that its caller could not learn of.
    pub(super) fn authenticated(&mut self) -> Result<(), ApiError> {
        self.stage_ended(Stage::Signature);
        self.close = false;
        if self.connection.authenticate() {
            Ok(())
        } else {
            Err(ApiError::Unavailable { cause: "its connection made room for another one".to_owned() })
        }
    }

    /// A stage begins now, and not where the one before it ended.
    pub(super) fn stage_begins(&mut self) {
        self.stage_ended = Instant::now();
    }

    /// A stage has ended; it began where the one before it ended. The clock is read once for both. Tells how long it was.
    pub(super) fn stage_ended(&mut self, stage: Stage) -> Duration {
        let began = std::mem::replace(&mut self.stage_ended, Instant::now());
        let duration = self.stage_ended.duration_since(began);
        self.core.wiring.metrics.stage(stage, duration);
        duration
    }

    /// Replies, counts and logs.
    pub(super) fn finish(mut self, outcome: Result<HandlerOutput, ApiError>) -> Reply {
        let v1_merchant = self.merchant.as_deref().filter(|_| self.v1_proven);
        let hsts = self.rules.gateway.server.is_public();
        let envelope = Envelope { request_id: &self.request_id, v1_merchant, close: self.close, hsts };
        let reason = match &outcome {
            Err(failure) => failure.reason(),
            Ok(_) => None,
        };
        let reader = self.reader.as_ref();
        let reply = match outcome {
            Ok(HandlerOutput::Json(body)) => reply::success(body, &envelope),
            Ok(HandlerOutput::Page(answer)) => {
                let accept_language = reader.map_or("", |reader| &reader.accept_language);
                let reply = reply::step(&answer.step, self.reads(accept_language), &envelope);
                self.core.wiring.metrics.page(answer.step.name());
                self.merchant = self.rules.merchants.get(&answer.merchant).cloned();
                reply
            }
            Err(failure) => {
                self.note(&failure);
                let reply = match reader.filter(|reader| !reader.wants_json) {
                    Some(reader) => reply::failure_page(&failure, self.reads(&reader.accept_language), &envelope),
                    None => reply::failure(&failure, &envelope),
                };
                match reader {
                    Some(_) => reply::for_customers(reply),
                    None => reply,
                }
            }
        };
        self.answered = true;
        self.record(reply.status().as_u16(), reason);
        reply
    }

    fn reads<'a>(&'a self, accept_language: &'a str) -> reply::ErrorFormat<'a> {
        reply::ErrorFormat { pages: &self.rules.pages, accept_language }
    }

    fn record(&self, status: u16, reason: Option<&'static str>) {
        let (core, duration) = (&self.core, self.started.elapsed());
        core.wiring.metrics.request(self.route, status, duration);
        core.wiring.access_log.line(&AccessLine {
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
            time: core.wiring.clock.now(),
        });
    }

    /// Counts refusals, and tells the operator what the caller is not told.
    fn note(&self, failure: &ApiError) {
        let request_id = || loggable(self.request_id.as_str());
        match failure {
            ApiError::Refused(refusal) => self.core.wiring.metrics.refused(refusal.reason()),
            ApiError::BadEngineReply { cause } => {
                if let Some(left_out) = self.core.bad_replies.due(()) {
                    tracing::error!(request_id = %request_id(), route = self.route, %cause, left_out,
                        "the engine's answer cannot be passed on");
                }
            }
            ApiError::Internal { cause } => {
                tracing::error!(request_id = %request_id(), route = self.route, %cause, "the gateway failed");
            }
            // What keeps the engine from answering is told once by who asks it.
            ApiError::EngineUnreachable { cause } => {
                tracing::debug!(request_id = %request_id(), route = self.route, %cause, "the engine could not be reached");
            }
            ApiError::Unavailable { cause } => {
                if let Some(left_out) = self.core.unavailable.due(()) {
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
            | ApiError::EngineSaid(_) => {}
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

/// The method for the log: a caller can invent methods of any length.
fn method_name(method: &Method) -> &str {
    let name = method.as_str();
    if name.len() <= 16 { name } else { "other" }
}
