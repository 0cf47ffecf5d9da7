//! A request on its way through the gateway: what all requests share; what every request may carry, which is identifiers
//! that correlate it with other systems' logs (`X-Request-Id`, `traceparent`), a browser's preferences and a body; and what
//! is known of it until it is replied to.

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, header};
use http_body::Body;
use http_body_util::BodyExt as _;
use ipnet::IpNet;
use tokio::time::timeout;

use super::listener::{ConnectionInfo, ConnectionState, Protocol};
use super::reply::{self, Envelope, Reply};
use super::request_ids::{request_id_of, trace_id};
use super::router;
use crate::auth::callers::client_address;
use crate::auth::{Interface, PerAddress};
use crate::deps::Deps;
use crate::domain::{Answer, CallbackSignature, OrderId, UnixMillis, wide};
use crate::engine::Engine;
use crate::error::{AdmissionError, ApiError};
use crate::homes::Homes;
use crate::pages::PageReply;
use crate::reply_room::{ReplyRoom, ReservedRoom};
use crate::rules::{Merchant, RuleSet};
use crate::service::V2Service;
use crate::shadow::ShadowChecks;
use crate::telemetry::access::loggable;
use crate::telemetry::{AccessLine, AccessLog, LogThrottle, RefusedRequest, RefusedRequests, Stage, Stopwatch};
use crate::v1::V1Frontend;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The most bytes of a customer's page beside its logo.
const PAGE_BYTES: usize = 16 * 1024;

/// The services behind a gateway.
#[derive(Clone)]
pub struct GatewayServices {
    /// Takes providers' reports and serves customers' pages; `None` when the engine is remote, which has its own.
    pub engine: Option<Arc<Engine>>,
    /// Checks the creates of merchants in mode `shadow`; `None`: nothing is checked.
    pub checks: Option<Arc<ShadowChecks>>,
    /// Serves native v2 requests and translated v1 ones.
    pub service: V2Service,
    /// Takes a line for each request.
    pub access_log: Arc<dyn AccessLog>,
    /// Keeps the requests that are refused.
    pub refused: Arc<RefusedRequests>,
}

/// What all requests of a gateway share.
pub(super) struct GatewayState {
    /// A request loads the rules once.
    pub(super) deps: Deps,
    pub(super) services: GatewayServices,
    pub(super) v1: V1Frontend,
    pub(super) homes: Homes,
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
    /// While the old v1 service is away, every forwarded request fails.
    legacy_failures: LogThrottle,
    /// While the store is away, every request fails.
    unavailable: LogThrottle,
}

impl GatewayState {
    /// Reads `[clients]` and `[engine]` now; everything else is read with each request.
    pub(super) fn new(deps: Deps, services: GatewayServices) -> Self {
        let (rules, fingerprint_key) = (deps.rules.load_full(), deps.store.fingerprint_key().clone());
        Self {
            v1: V1Frontend::new(services.service.clone(), fingerprint_key, Arc::clone(&deps.metrics)),
            homes: Homes::new(deps.clone(), services.checks.clone()),
            trusted_proxies: rules.gateway.clients.trusted_proxies.clone(),
            callback_signature: rules.gateway.callback_signature.clone(),
            failed_authentications: PerAddress::new(rules.gateway.limits.unauthenticated_per_ip),
            page_requests: PerAddress::new(rules.gateway.limits.pages_per_ip),
            bad_replies: LogThrottle::default(),
            legacy_failures: LogThrottle::default(),
            unavailable: LogThrottle::default(),
            deps,
            services,
        }
    }
}

/// What a handler returns for the reply.
pub(super) enum HandlerOutput {
    Json(Answer),
    /// A reply of the old v1 service, and the order of the request if it refuses it.
    Forwarded(Response<Bytes>, Option<OrderId>),
    Page(PageReply),
}

/// How a request ended, for its access line.
#[derive(Default)]
struct Ended {
    failure: Option<ApiError>,
    /// The reason of a status from 400 that is no failure of the gateway's.
    otherwise: &'static str,
    transaction_id: Option<Box<str>>,
}

/// A request and what is known of it. It is counted and logged once: when it is replied to, or when its caller is gone.
pub(super) struct RequestContext {
    gateway: Arc<GatewayState>,
    pub(super) rules: Arc<RuleSet>,
    pub(super) request_id: HeaderValue,
    trace: Option<Box<str>>,
    method: Method,
    /// The route's name in logs and metrics.
    pub(super) route: &'static str,
    /// The client's address, behind trusted proxies.
    pub(super) address: IpAddr,
    pub(super) http1: bool,
    /// The merchant whose key was used, authenticated or not.
    pub(super) merchant: Option<Arc<Merchant>>,
    /// The API version by whose headers the request names a key; `None` before its route is known, and for others than
    /// merchants' requests.
    pub(super) interface: Option<Interface>,
    /// Whether the request names an order: a create, or a status of v1.
    pub(super) names_order: bool,
    /// Whether a signature proved the caller. Before that, no reply depends on the merchant.
    is_proven: bool,
    /// The order of a request that failed, where it could be read.
    pub(super) order_id: Option<OrderId>,
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
            request_id: request_id_of(&head.headers, gateway.deps.random.as_ref()),
            trace: trace_id(&head.headers).map(Into::into),
            method: head.method.clone(),
            route: router::NO_ROUTE,
            address,
            http1,
            merchant: None,
            interface: None,
            names_order: false,
            is_proven: false,
            order_id: None,
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
        self.is_proven = true;
        if self.connection.authenticate() {
            Ok(())
        } else {
            Err(ApiError::Unavailable { cause: "its connection made room for another one".to_owned() })
        }
    }

    /// Returns the room for replies of its connection.
    pub(super) fn reply_room(&self) -> ReplyRoom {
        self.connection.room().clone()
    }

    /// Waits until a reply of up to `bytes` may be made: until the client has taken enough of those before it.
    ///
    /// # Errors
    /// The client takes nothing, so that its connection ends.
    pub(super) async fn reserve_room(&self, bytes: usize) -> Result<ReservedRoom, ApiError> {
        let room = self.connection.room().reserve(bytes).await;
        room.ok_or_else(|| ApiError::Unavailable { cause: "its client takes no reply".to_owned() })
    }

    /// Returns the most bytes that a page for a customer has; `None` for other requests.
    pub(super) fn page_bytes(&self) -> Option<usize> {
        self.client_hints.as_ref()?;
        Some(PAGE_BYTES + self.rules.pages.logo().map_or(0, str::len))
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
        let v1_merchant = self.merchant.as_deref().filter(|_| self.is_proven && self.interface == Some(Interface::V1));
        let hsts = self.rules.gateway.server.is_public;
        let envelope = Envelope {
            request_id: &self.request_id,
            v1_merchant,
            interface: self.interface,
            names_order: self.names_order,
            close: self.close,
            hsts,
        };
        let mut ended = Ended::default();
        let hints = self.client_hints.as_ref();
        let reply = match outcome {
            Ok(HandlerOutput::Json(answer)) => {
                ended.transaction_id = answer.transaction_id;
                reply::success(answer.body, &envelope)
            }
            Ok(HandlerOutput::Forwarded(answer, order_id)) => {
                self.order_id = order_id;
                ended.otherwise = "legacy_refusal";
                reply::forwarded(answer, &envelope)
            }
            Ok(HandlerOutput::Page(answer)) => {
                let accept_language = hints.map_or("", |hints| &hints.accept_language);
                let reply = reply::step(&answer.step, self.page_format(accept_language), &envelope);
                self.gateway.deps.metrics.page(answer.step.name());
                self.merchant = self.rules.merchants.get(&answer.merchant).cloned();
                ended.transaction_id = Some(answer.transaction_id.digits().as_str().into());
                ended.otherwise = "conflict";
                reply
            }
            Err(failure) => {
                self.report(&failure);
                let reply = match hints.filter(|hints| !hints.wants_json) {
                    Some(hints) => reply::failure_page(&failure, self.page_format(&hints.accept_language), &envelope),
                    None => reply::failure(&failure, &envelope),
                };
                ended.failure = Some(failure);
                match hints {
                    Some(_) => reply::for_customers(reply),
                    None => reply,
                }
            }
        };
        self.answered = true;
        self.record(reply.status().as_u16(), &ended);
        reply
    }

    fn page_format<'a>(&'a self, accept_language: &'a str) -> reply::ErrorFormat<'a> {
        reply::ErrorFormat { pages: &self.rules.pages, accept_language }
    }

    fn record(&self, status: u16, ended: &Ended) {
        let failure = ended.failure.as_ref();
        let reason = (status >= 400).then(|| failure.map_or(ended.otherwise, ApiError::reason));
        let (gateway, duration, time) = (&self.gateway, self.whole.elapsed(), self.gateway.deps.clock.now());
        gateway.deps.metrics.request(self.route, status, duration);
        // A caller that is gone was not refused.
        let refused = reason.filter(|_| status != reply::CALLER_GONE);
        if let Some(reason) = refused {
            gateway.deps.metrics.refused(reason);
        }
        self.count_for_merchant(refused, time);
        let line = AccessLine {
            request_id: self.request_id.to_str().unwrap_or_default(),
            merchant: self.merchant.as_ref().map(|merchant| merchant.id.as_str()),
            route: self.route,
            method: method_name(&self.method),
            status,
            reason,
            member: failure.and_then(ApiError::member),
            transaction_id: failure.and_then(ApiError::transaction_id).or(ended.transaction_id.as_deref()),
            duration,
            rules_version: &self.rules.version,
            peer: self.address,
            trace: self.trace.as_deref(),
            time,
        };
        gateway.services.access_log.line(&line);
        if refused.is_some() && self.route != router::NO_ROUTE {
            gateway.services.refused.add(RefusedRequest::of(&line, self.order_id.as_ref(), self.is_proven));
        }
    }

    /// Counts the request for the merchant whose key it was made with. Without a proof it may be another caller's, which
    /// counts as a refusal alone.
    fn count_for_merchant(&self, refused: Option<&'static str>, now: UnixMillis) {
        let (Some(merchant), Some(interface)) = (&self.merchant, self.interface) else { return };
        match interface {
            Interface::V1 if self.is_proven => merchant.traffic.v1_request(now),
            Interface::V2 if self.is_proven => merchant.traffic.v2_request(),
            Interface::V1 | Interface::V2 => {}
        }
        if let Some(reason) = refused {
            merchant.traffic.refused(reason);
        }
    }

    /// Logs private causes, which the caller is not shown.
    fn report(&self, failure: &ApiError) {
        let request_id = || loggable(self.request_id.to_str().unwrap_or_default());
        match failure {
            ApiError::BadEngineReply { cause } => {
                if let Some(left_out) = self.gateway.bad_replies.due(()) {
                    tracing::error!(request_id = %request_id(), route = self.route, %cause, left_out,
                        "the engine's reply cannot be passed on");
                }
            }
            ApiError::Internal { cause } => {
                tracing::error!(request_id = %request_id(), route = self.route, %cause, "the gateway failed");
            }
            ApiError::Legacy(error) | ApiError::LegacyPath(error) => {
                if let Some(left_out) = self.gateway.legacy_failures.due(()) {
                    tracing::warn!(request_id = %request_id(), route = self.route, %error, left_out,
                        "the old v1 service gave no reply that can be passed on");
                }
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
            ApiError::Refused(_)
            | ApiError::EngineTimeout
            | ApiError::Invalid(_)
            | ApiError::Untranslatable { .. }
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
            self.record(reply::CALLER_GONE, &Ended { otherwise: "caller_gone", ..Ended::default() });
        }
    }
}

/// Returns the method for the log: a caller can invent methods of any length.
fn method_name(method: &Method) -> &str {
    let name = method.as_str();
    if name.len() <= 16 { name } else { "other" }
}

/// The headers that decide how a reply to a customer is written.
#[derive(Debug)]
pub(super) struct ClientHints {
    /// `Accept-Language`; empty if it is absent or not text.
    pub accept_language: Box<str>,
    /// Whether errors are sent as JSON: `Accept` names JSON and not HTML.
    pub wants_json: bool,
}

impl ClientHints {
    /// Reads the headers of a request.
    #[must_use]
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let text = |name| headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let accept = text(header::ACCEPT).collect::<Vec<_>>().join(",").to_ascii_lowercase();
        let wants_json = accept.contains("application/json") && !accept.contains("text/html");
        let accept_language = text(header::ACCEPT_LANGUAGE).collect::<Vec<_>>().join(",").into();
        Self { accept_language, wants_json }
    }
}

const TRAILERS: AdmissionError = AdmissionError::Malformed("trailers are not accepted");
const BROKEN: AdmissionError = AdmissionError::Malformed("the body could not be read");

/// Reads a body whole, within `deadline` for all of it.
///
/// # Errors
/// The body is longer than `limit` bytes, late, cut off, or followed by trailers.
pub(super) async fn read_body<B>(body: B, limit: usize, deadline: Duration) -> Result<Bytes, AdmissionError>
where
    B: Body<Data = Bytes>,
{
    timeout(deadline, collect(body, limit)).await.map_err(|_| AdmissionError::BodyTooSlow)?
}

/// The most bytes of a refused request's body that are read and discarded, and the longest time that this may take.
const AT_HAND: usize = 8 * 1024;
const AT_HAND_IN: Duration = Duration::from_millis(20);

/// Reads and discards the body of a refused request if it is at hand: short, and sent with the head or right behind it. The
/// connection can then serve the next request. Returns whether the body was at hand.
pub(super) async fn is_body_at_hand<B>(body: B) -> bool
where
    B: Body<Data = Bytes>,
{
    body.size_hint().lower() <= wide(AT_HAND) && read_body(body, AT_HAND, AT_HAND_IN).await.is_ok()
}

/// Reports whether a body of this length that was read in this time was at hand.
pub(super) const fn was_body_at_hand(length: usize, read_in: Duration) -> bool {
    length <= AT_HAND && read_in.as_nanos() <= AT_HAND_IN.as_nanos()
}

/// Collects a body. A single piece, the usual case, is not copied. Several pieces are joined in a buffer of the announced
/// length: keeping them would keep the larger buffers that they were read into.
async fn collect<B>(body: B, limit: usize) -> Result<Bytes, AdmissionError>
where
    B: Body<Data = Bytes>,
{
    let announced = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    let mut body = pin!(body);
    let (mut whole, mut joined) = (Bytes::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        let data = frame.map_err(|_| BROKEN)?.into_data().map_err(|_| TRAILERS)?;
        let arrived = whole.len() + joined.len();
        if arrived + data.len() > limit {
            return Err(AdmissionError::BodyTooLarge);
        }
        if arrived == 0 && announced == Some(data.len()) {
            whole = data;
        } else {
            if let Some(length) = announced {
                joined.reserve_exact(length.min(limit).saturating_sub(joined.len()));
            }
            joined.extend_from_slice(&data);
        }
    }
    Ok(if joined.is_empty() { whole } else { joined.into() })
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use http::HeaderMap;
    use http_body::{Frame, SizeHint};

    use super::*;

    /// Gives its frames, then ends, breaks off or stays silent. Its length may be announced.
    struct Script {
        frames: VecDeque<Frame<Bytes>>,
        end: End,
        announced: Option<u64>,
    }

    enum End {
        Clean,
        Broken,
        Silent,
    }

    impl Body for Script {
        type Data = Bytes;
        type Error = &'static str;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
            match (self.frames.pop_front(), &self.end) {
                (Some(frame), _) => Poll::Ready(Some(Ok(frame))),
                (None, End::Clean) => Poll::Ready(None),
                (None, End::Broken) => Poll::Ready(Some(Err("broken off"))),
                (None, End::Silent) => Poll::Pending,
            }
        }

        fn size_hint(&self) -> SizeHint {
            self.announced.map_or_else(SizeHint::default, SizeHint::with_exact)
        }
    }

    fn script(pieces: &[&'static str], end: End) -> Script {
        let frames = pieces.iter().map(|piece| Frame::data(Bytes::from_static(piece.as_bytes()))).collect();
        Script { frames, end, announced: None }
    }

    async fn outcome(body: Script) -> Result<Bytes, AdmissionError> {
        read_body(body, 8, Duration::from_secs(10)).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_read_whole() {
        for pieces in [&[][..], &["1234"], &["12", "34"], &["", "12", "", "34", "", "5678"], &["12345678"]] {
            assert_eq!(outcome(script(pieces, End::Clean)).await.unwrap(), pieces.concat(), "{pieces:?}");
        }
    }

    #[tokio::test]
    async fn a_body_in_pieces_takes_no_more_than_its_announced_length() {
        let data = Bytes::from(vec![b'x'; 1000]);
        for sizes in [&[1000][..], &[1, 999], &[0, 1000, 0], &[400, 400, 200]] {
            let mut rest = data.clone();
            let frames = sizes.iter().map(|size| Frame::data(rest.split_to(*size))).collect();
            let announced = Script { frames, end: End::Clean, announced: Some(1000) };
            let body = read_body(announced, 4096, Duration::from_secs(10)).await.unwrap();
            assert_eq!(body, data, "{sizes:?}");
            assert_eq!(Vec::from(body).capacity(), 1000, "{sizes:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_bounded_in_size_and_time() {
        assert_eq!(outcome(script(&["123456789"], End::Clean)).await, Err(AdmissionError::BodyTooLarge));
        assert_eq!(outcome(script(&["1234", "56789"], End::Silent)).await, Err(AdmissionError::BodyTooLarge));
        assert_eq!(outcome(script(&["1234"], End::Silent)).await, Err(AdmissionError::BodyTooSlow));
    }

    #[tokio::test]
    async fn a_broken_body_and_trailers_are_refused() {
        assert_eq!(outcome(script(&["1234"], End::Broken)).await, Err(BROKEN));
        let mut body = script(&["1234"], End::Clean);
        body.frames.push_back(Frame::trailers(HeaderMap::new()));
        assert_eq!(outcome(body).await, Err(TRAILERS));
    }
}
