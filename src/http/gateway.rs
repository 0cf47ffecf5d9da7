//! The way of a request through the gateway: route, admission, handler, reply, one line in the log.

mod exchange;
mod lasting;
mod relay;

use std::any::Any;
use std::future::poll_fn;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;

use bytes::Bytes;
use http::header::EXPECT;
use http::request::Parts;
use http::{HeaderValue, Request};
use http_body::Body;
use ipnet::IpNet;

use self::exchange::RequestContext;
use self::lasting::SpawnOnDrop;
use super::admission::{self, Credentials};
use super::reply::Reply;
use super::router::{self, MerchantRoute, Route, RouteMatch};
use super::{ConnectionInfo, HeadCheck, body, correlation};
use crate::auth::{Caller, PerAddress, SignedBody};
use crate::callback;
use crate::clock::{Clock, Random};
use crate::domain::{Direction, ShopCode};
use crate::engine::Engine;
use crate::failure::{AdmissionError, ApiError};
use crate::pages::{Decision, LinkKind, PageReply, PageRequest};
use crate::provider::events;
use crate::rules::{CallbackSignature, Endpoint, Limits, RuleSet};
use crate::store::{RelayTarget, Store};
use crate::telemetry::{AccessLog, LogThrottle, Metrics, Stage};
use crate::v1::V1Frontend;
use crate::v2::{ForwardedHeaders, ServiceCall, V2Service};

/// Where the rules of the moment come from.
pub trait RuleSource: Send + Sync + 'static {
    /// The rules in force now. A request asks once.
    fn current(&self) -> Arc<RuleSet>;
}

impl<F: Fn() -> Arc<RuleSet> + Send + Sync + 'static> RuleSource for F {
    fn current(&self) -> Arc<RuleSet> {
        self()
    }
}

/// What a gateway is made of.
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
    /// Tells whether v1 timestamps are fresh.
    pub clock: Arc<dyn Clock>,
    /// Draws request ids.
    pub random: Arc<dyn Random>,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Takes a line for each request.
    pub access_log: Arc<dyn AccessLog>,
}

/// The longest form of a customer's page, in bytes.
const LONGEST_FORM: usize = 1024;

/// Answers requests. Clones are the same gateway.
#[derive(Clone)]
pub struct Gateway(Arc<Core>);

struct Core {
    wiring: GatewayDeps,
    v1: V1Frontend,
    /// As they were at the start: a change of `[clients]` needs a restart.
    trusted_proxies: Vec<IpNet>,
    /// As it was at the start: a change of `[engine]` needs a restart.
    callback_signature: CallbackSignature,
    /// Only requests that failed are counted and only they are held up, so that nobody can lock out a merchant by failing
    /// from its address.
    failed_authentications: PerAddress,
    /// Requests for customers' pages.
    visits: PerAddress,
    bad_replies: LogThrottle,
    /// Requests that nothing could be decided about: while a store is away, each is one.
    unavailable: LogThrottle,
}

impl Gateway {
    /// A gateway; `[clients]` and `[engine]` are read now, everything else with each request.
    #[must_use]
    pub fn new(wiring: GatewayDeps) -> Self {
        let rules = wiring.rules.current();
        let trusted_proxies = rules.gateway.clients.trusted_proxies.clone();
        let callback_signature = rules.gateway.callback_signature.clone();
        let failed_authentications = PerAddress::new(rules.gateway.limits.unauthenticated_per_ip);
        let visits = PerAddress::new(rules.gateway.limits.pages_per_ip);
        let (bad_replies, unavailable) = (LogThrottle::default(), LogThrottle::default());
        let fingerprint_key = wiring.store.fingerprint_key().clone();
        let v1 = V1Frontend::new(Arc::clone(&wiring.service), fingerprint_key, Arc::clone(&wiring.metrics));
        Self(Arc::new(Core {
            wiring,
            v1,
            trusted_proxies,
            callback_signature,
            failed_authentications,
            visits,
            bad_replies,
            unavailable,
        }))
    }

    /// Answers a request.
    ///
    /// Dropping the future abandons a request only up to the end of its body: from there on it goes on in a task of its own,
    /// so that a caller who hangs up cannot abandon a commit half way. What was abandoned is logged and counted too.
    pub async fn handle<B>(&self, request: Request<B>, arrival: ConnectionInfo) -> Reply
    where
        B: Body<Data = Bytes> + Send,
    {
        let (head, body) = request.into_parts();
        let rules = self.0.wiring.rules.current();
        let facts = arrival.facts;
        let mut exchange = RequestContext::begin(Arc::clone(&self.0), rules, &head, arrival, !body.is_end_stream());
        let admitted = {
            let mut body = pin!(body);
            let admitted = self.0.admit(&mut exchange, &head, body.as_mut(), facts).await;
            if let Err(failure) = &admitted
                && exchange.close
                && may_stay_open(failure, &head)
            {
                let at_hand = match exchange.body_at_hand {
                    Some(at_hand) => at_hand,
                    None => body::is_at_hand(body).await,
                };
                exchange.close = !at_hand;
            }
            admitted
        };
        match admitted {
            Ok(work) => SpawnOnDrop::new(perform(Arc::clone(&self.0), exchange, work)).await,
            Err(failure) => exchange.finish(Err(failure)),
        }
    }
}

/// Whether an HTTP/1 connection may stay open after a refusal, if the body is at hand: a new one costs the gateway ten times as
/// much as the refusal, and who sends wrong signatures, or too much, sends on. One who waits to be told to send its body is
/// not asked for it. Whether the body was read before is no matter: an unknown key and a wrong signature get the same reply
/// (contract section 3).
fn may_stay_open(failure: &ApiError, head: &Parts) -> bool {
    let of_caller = matches!(failure, ApiError::Refused(refusal) if refusal.is_of_caller());
    of_caller && !head.headers.contains_key(EXPECT)
}

async fn perform(core: Arc<Core>, mut exchange: RequestContext, work: Admitted) -> Reply {
    // Pinned here: handed on by value, a future of this size would have room in this one twice.
    let outcome = without_panic(pin!(core.handle(work))).await;
    exchange.stage_ended(Stage::Engine);
    exchange.finish(outcome)
}

/// A request that may be served, and for whom.
enum Admitted {
    /// A merchant's.
    Merchant(MerchantRequest),
    /// A report of the HTTP provider of a shop.
    Provider(Arc<Engine>, ShopCode, SignedBody),
    /// A callback of the v2 engine for an order that was made from v1.
    Relayed(RelayTarget, SignedBody),
    /// A customer's browser.
    Customer(Arc<Engine>, PageRequest),
}

/// A merchant's request with everything that its handler needs, so that it can outlive the connection.
struct MerchantRequest {
    caller: Caller,
    route: MerchantRoute,
    /// The variable segment of the path, as sent.
    segment: Box<str>,
    query: Option<Box<str>>,
    body: SignedBody,
    /// The v2 signature that was verified; empty for v1.
    signature: HeaderValue,
    forwarded: ForwardedHeaders,
}

/// What a request is answered with when nothing stopped it.
enum HandlerOutput {
    Json(Bytes),
    Page(PageReply),
}

impl Core {
    /// Steps 2 to 7 of the contract's section 3. What is learnt of the request on the way is noted in the exchange.
    ///
    /// Until the signature is proven, no reply depends on whose key was named: whoever only guesses keys learns neither
    /// the dialect nor the paths nor the notices of a merchant, and every wrong guess is counted.
    async fn admit<B>(
        &self,
        exchange: &mut RequestContext,
        head: &Parts,
        body: B,
        facts: HeadCheck,
    ) -> Result<Admitted, ApiError>
    where
        B: Body<Data = Bytes>,
    {
        if let Some(refusal) = facts.refusal() {
            exchange.close = exchange.http1;
            return Err(refusal.into());
        }
        let address = exchange.address;
        let rules = Arc::clone(&exchange.rules);
        let limits = &rules.gateway.limits;
        let path = head.uri.path();
        if exchange.reader.is_some() {
            let allowed = self.visits.count(address, limits.pages_per_ip);
            allowed.map_err(|retry_after| AdmissionError::PagesTooOften { retry_after })?;
        }
        let found = router::find(&rules, &head.method, path)
            .inspect_err(|_| exchange.route = router::name_of_path(&rules, path))?;
        exchange.route = found.name();
        admission::announced_body(head, &body, found, limits)?;
        let segment = match found {
            RouteMatch::Own(Route::Page { kind, decides }, _) => {
                return self.admit_visit(exchange, head, body, kind, decides).await;
            }
            RouteMatch::Own(Route::ProviderEvents, shop) => {
                return self.admit_report(exchange, head, body, shop, address).await;
            }
            RouteMatch::Own(Route::Relay, token) => {
                return self.admit_relayed(exchange, head, body, token, address).await;
            }
            RouteMatch::Own(Route::Merchant(_), segment) => segment,
            RouteMatch::V1(_) => "",
        };
        let credentials = Credentials::of(&rules, found, &head.headers)?;
        let held_up = |refusal| self.held_up(refusal, address, &rules);

        let key = credentials.known_key(&rules).map_err(held_up)?;
        exchange.merchant = Some(Arc::clone(key.merchant()));
        let key = key.admit(address).map_err(held_up)?;
        let route = found.for_merchant(key.merchant());
        exchange.route = route.map_or(exchange.route, |route| Route::Merchant(route).name());
        exchange.stage_ended(Stage::Admission);

        let body = whole_body(exchange, body, limits).await?;

        let (caller, body) = credentials.prove(key, head, body, self.wiring.clock.now()).map_err(held_up)?;
        exchange.authenticated()?;
        exchange.v1_proven = matches!(found, RouteMatch::V1(_));
        let route = route.ok_or(AdmissionError::UnknownPath)?;
        admission::no_query_on_post(head)?;
        let forwarded = match self.wiring.engine {
            Some(_) => ForwardedHeaders::default(),
            None => correlation::passing(&exchange.request_id, &head.headers),
        };
        let (segment, query) = (segment.into(), head.uri.query().map(Into::into));
        let signature = admission::v2_signature(head);
        Ok(Admitted::Merchant(MerchantRequest { caller, route, segment, query, body, signature, forwarded }))
    }

    /// The same steps for a report of a shop's provider: its key is the shop that the path names, and its address may be
    /// any.
    async fn admit_report<B>(
        &self,
        exchange: &mut RequestContext,
        head: &Parts,
        body: B,
        shop: &str,
        address: IpAddr,
    ) -> Result<Admitted, ApiError>
    where
        B: Body<Data = Bytes>,
    {
        let rules = Arc::clone(&exchange.rules);
        let limits = &rules.gateway.limits;
        let signature = admission::report_signature(&head.headers)?;
        // Counted like a wrong signature: whoever guesses shop codes is held up.
        let unknown = || self.counted(AdmissionError::UnknownPath, address, &rules);
        let engine = self.wiring.engine.as_ref().ok_or_else(unknown)?;
        let (shop, provider) = events::provider_of(&rules, shop).ok_or_else(unknown)?;

        exchange.stage_begins();
        let body = whole_body(exchange, body, limits).await?;

        let body = admission::prove_report(&provider.secrets, body, signature)
            .map_err(|refusal| self.held_up(refusal, address, &rules))?;
        exchange.authenticated()?;
        admission::no_query_on_post(head)?;
        Ok(Admitted::Provider(Arc::clone(engine), shop.clone(), body))
    }

    /// The same steps for a customer's browser: its link is all that it has to show, and its address may be any.
    async fn admit_visit<B>(
        &self,
        exchange: &mut RequestContext,
        head: &Parts,
        body: B,
        kind: LinkKind,
        decides: bool,
    ) -> Result<Admitted, ApiError>
    where
        B: Body<Data = Bytes>,
    {
        let rules = Arc::clone(&exchange.rules);
        let limits = &rules.gateway.limits;
        let engine = self.wiring.engine.as_ref().ok_or(AdmissionError::UnknownPath)?;
        let target = head.uri.path_and_query().map_or("", |target| target.as_str());
        let mut visit = PageRequest::verified(engine, &rules, kind, target, self.wiring.clock.now())?;
        if decides {
            let form = body::read(body, limits.body.min(LONGEST_FORM), limits.body_timeout).await?;
            exchange.close = false;
            visit.decision = Some(Decision::read(&form)?);
        }
        exchange.stage_begins();
        Ok(Admitted::Customer(Arc::clone(engine), visit))
    }

    /// Counts a failed authentication against its address, and turns it into a 429 when there were too many.
    fn held_up(&self, refusal: AdmissionError, address: IpAddr, rules: &RuleSet) -> AdmissionError {
        if matches!(refusal, AdmissionError::Unauthenticated(_) | AdmissionError::AddressNotAllowed) {
            self.counted(refusal, address, rules)
        } else {
            refusal
        }
    }

    fn counted(&self, refusal: AdmissionError, address: IpAddr, rules: &RuleSet) -> AdmissionError {
        match self.failed_authentications.count(address, rules.gateway.limits.unauthenticated_per_ip) {
            Ok(()) => refusal,
            Err(retry_after) => AdmissionError::FailedTooOften { retry_after },
        }
    }

    async fn handle(&self, admitted: Admitted) -> Result<HandlerOutput, ApiError> {
        match admitted {
            Admitted::Merchant(request) => self.handle_merchant(request).await.map(HandlerOutput::Json),
            // What is rare is boxed, so that the future of a create is not as large as the largest of them.
            Admitted::Provider(engine, shop, body) => {
                Box::pin(events::take(&engine, &shop, &body)).await.map(HandlerOutput::Json)
            }
            Admitted::Relayed(addressee, body) => {
                callback::relay::take(&*self.wiring.store, &*self.wiring.clock, &addressee, &body)
                    .await
                    .map(HandlerOutput::Json)
            }
            Admitted::Customer(engine, visit) => Box::pin(visit.answer(&engine)).await.map(HandlerOutput::Page),
        }
    }

    async fn handle_merchant(&self, request: MerchantRequest) -> Result<Bytes, ApiError> {
        let MerchantRequest { caller, route, segment, query, body, signature, forwarded } = request;
        let call = ServiceCall { caller: &caller, forwarded: &forwarded };
        let query = query.as_deref();
        match route {
            MerchantRoute::V2Create(direction) => self.wiring.service.create(call, direction, &body, signature).await,
            MerchantRoute::V2Status => self.wiring.service.status(call, &segment, signature).await,
            MerchantRoute::V1(Endpoint::Payin) => self.v1.create(call, Direction::Payin, &body).await,
            MerchantRoute::V1(Endpoint::Payout) => self.v1.create(call, Direction::Payout, &body).await,
            MerchantRoute::V1(Endpoint::PayinStatus) => self.v1.status(call, Direction::Payin, query).await,
            MerchantRoute::V1(Endpoint::PayoutStatus) => self.v1.status(call, Direction::Payout, query).await,
            MerchantRoute::V1(Endpoint::Balance) => self.v1.balance(call).await,
            MerchantRoute::V1(Endpoint::Transactions) => Box::pin(self.v1.transactions(call, query)).await,
        }
    }
}

/// Reads a body in the time and size that it has.
async fn whole_body<B>(exchange: &mut RequestContext, body: B, limits: &Limits) -> Result<Bytes, ApiError>
where
    B: Body<Data = Bytes>,
{
    let body = body::read(body, limits.body, limits.body_timeout).await?;
    let read_in = exchange.stage_ended(Stage::Body);
    exchange.body_at_hand = Some(body::was_at_hand(body.len(), read_in));
    Ok(body)
}

/// Runs a handler; its panic becomes our failure, told to the operator and not to the caller.
async fn without_panic<T>(mut work: Pin<&mut impl Future<Output = Result<T, ApiError>>>) -> Result<T, ApiError> {
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(poll) => poll,
        Err(panic) => std::task::Poll::Ready(Err(ApiError::Internal { cause: panic_text(panic.as_ref()) })),
    })
    .await
}

/// What is said of a panic. Its text may hold what it stumbled over, so only a literal's is shown.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic.downcast_ref::<&'static str>().map_or_else(|| "a panic".to_owned(), |text| format!("a panic: {text}"))
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod relay_tests;
#[cfg(test)]
mod report_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trouble_tests;
