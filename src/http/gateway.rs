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
use super::router::{self, Route};
use super::{ConnectionInfo, HeadCheck, body, correlation};
use crate::auth::{Caller, PerAddress, SignedBody};
use crate::callback;
use crate::clock::{Clock, Random};
use crate::domain::{Direction, ShopCode};
use crate::engine::Engine;
use crate::failure::{AdmissionError, ApiError};
use crate::pages::{Decision, LinkKind, PageReply, PageRequest};
use crate::provider::events;
use crate::rules::{CallbackSignature, Endpoint, Limits, Merchant, RuleSet, V1Route};
use crate::store::RelayTarget;
use crate::telemetry::{AccessLog, LogThrottle, Metrics, Stage};
use crate::upstream::Upstream;
use crate::v1;

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
    /// Takes the reports of providers.
    pub engine: Arc<Engine>,
    /// Serves native v2 requests and translated v1 ones.
    pub upstream: Upstream,
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
        Self(Arc::new(Core {
            wiring,
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
    let outcome = without_panic(pin!(core.work(work))).await;
    exchange.stage_ended(Stage::Engine);
    exchange.finish(outcome)
}

/// A request that may be served, and for whom.
enum Admitted {
    /// With the v2 service as this request sees it.
    Merchant(Caller, Work, Upstream),
    /// A report of the HTTP provider of a shop.
    Provider(ShopCode, SignedBody),
    /// A callback of the v2 engine for an order that was made from v1.
    Relayed(RelayTarget, SignedBody),
    /// A customer's browser.
    Customer(PageRequest),
}

/// What a request is answered with when nothing stopped it.
enum HandlerOutput {
    Json(Bytes),
    Page(PageReply),
}

/// A handler's work for a merchant, with everything it needs of the request, so that it can outlive the connection.
enum Work {
    V1Create(Direction, SignedBody),
    V1Status(Direction, Option<Box<str>>),
    V1Balance,
    V1Transactions(Option<Box<str>>),
    /// With the signature that was verified.
    V2Create(Direction, SignedBody, HeaderValue),
    /// With the signature that was verified.
    V2Status(Box<str>, HeaderValue),
}

impl Work {
    fn of(target: Target, head: &Parts, body: SignedBody) -> Self {
        let query = || head.uri.query().map(Into::into);
        match target {
            Target::V2Create(direction) => Self::V2Create(direction, body, admission::v2_signature(head)),
            Target::V2Status(transaction_id) => Self::V2Status(transaction_id, admission::v2_signature(head)),
            Target::V1(Endpoint::Payin) => Self::V1Create(Direction::Payin, body),
            Target::V1(Endpoint::Payout) => Self::V1Create(Direction::Payout, body),
            Target::V1(Endpoint::PayinStatus) => Self::V1Status(Direction::Payin, query()),
            Target::V1(Endpoint::PayoutStatus) => Self::V1Status(Direction::Payout, query()),
            Target::V1(Endpoint::Balance) => Self::V1Balance,
            Target::V1(Endpoint::Transactions) => Self::V1Transactions(query()),
        }
    }
}

/// What a route is for its caller.
enum Target {
    V2Create(Direction),
    V2Status(Box<str>),
    V1(Endpoint),
}

impl Target {
    /// `None` when the merchant's dialect does not have this path, or no merchant: for it, there is none.
    fn of(route: &Route<'_>, merchant: &Merchant) -> Option<Self> {
        match route {
            Route::V2Create(direction) => Some(Self::V2Create(*direction)),
            Route::V2Status(transaction_id) => Some(Self::V2Status((*transaction_id).into())),
            Route::ProviderEvents(_) | Route::Relay(_) | Route::Page { .. } => None,
            Route::V1(V1Route { endpoints, .. }) => {
                let dialect = &merchant.v1.dialect.name;
                endpoints.iter().find(|(name, _)| name == dialect).map(|(_, endpoint)| Self::V1(*endpoint))
            }
        }
    }

    /// Its name in logs and metrics, where it is more exact than the route's.
    const fn name(&self) -> Option<&'static str> {
        match self {
            Self::V1(endpoint) => Some(endpoint.as_str()),
            Self::V2Create(_) | Self::V2Status(_) => None,
        }
    }
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
        let route = router::find(&rules, &head.method, path)
            .inspect_err(|_| exchange.route = router::name_of_path(&rules, path))?;
        exchange.route = route.name();
        admission::announced_body(head, &body, &route, limits)?;
        if let Route::Page { kind, decides } = route {
            return self.admit_visit(exchange, head, body, kind, decides).await;
        }
        if let Route::ProviderEvents(shop) = route {
            return self.admit_report(exchange, head, body, shop, address).await;
        }
        if let Route::Relay(token) = route {
            return self.admit_relayed(exchange, head, body, token, address).await;
        }
        let credentials = Credentials::of(&rules, &route, &head.headers)?;
        let held_up = |refusal| self.held_up(refusal, address, &rules);

        let key = credentials.known_key(&rules).map_err(held_up)?;
        exchange.merchant = Some(Arc::clone(key.merchant()));
        let key = key.admit(address).map_err(held_up)?;
        let target = Target::of(&route, key.merchant());
        exchange.route = target.as_ref().and_then(Target::name).unwrap_or(exchange.route);
        exchange.stage_ended(Stage::Admission);

        let body = whole_body(exchange, body, limits).await?;

        let (caller, body) = credentials.prove(key, head, body, self.wiring.clock.now()).map_err(held_up)?;
        exchange.authenticated()?;
        exchange.v1_proven = matches!(route, Route::V1(_));
        let target = target.ok_or(AdmissionError::UnknownPath)?;
        admission::no_query_on_post(head)?;
        let passing = || correlation::passing(&exchange.request_id, &head.headers);
        Ok(Admitted::Merchant(caller, Work::of(target, head, body), self.wiring.upstream.of_request(passing)))
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
        // Behind a remote engine shops have no providers here.
        let provider = events::provider_of(&rules, shop).filter(|_| !self.wiring.upstream.is_remote());
        let (shop, provider) = provider.ok_or_else(unknown)?;

        exchange.stage_begins();
        let body = whole_body(exchange, body, limits).await?;

        let body = admission::prove_report(&provider.secrets, body, signature)
            .map_err(|refusal| self.held_up(refusal, address, &rules))?;
        exchange.authenticated()?;
        admission::no_query_on_post(head)?;
        Ok(Admitted::Provider(shop.clone(), body))
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
        // Behind a remote engine links are its own.
        if self.wiring.upstream.is_remote() {
            return Err(AdmissionError::UnknownPath.into());
        }
        let target = head.uri.path_and_query().map_or("", |target| target.as_str());
        let mut visit = PageRequest::verified(&self.wiring.engine, &rules, kind, target, self.wiring.clock.now())?;
        if decides {
            let form = body::read(body, limits.body.min(LONGEST_FORM), limits.body_timeout).await?;
            exchange.close = false;
            visit.decision = Some(Decision::read(&form)?);
        }
        exchange.stage_begins();
        Ok(Admitted::Customer(visit))
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

    /// What is rare is boxed, so that the future of a create is not as large as the largest of them.
    async fn work(&self, admitted: Admitted) -> Result<HandlerOutput, ApiError> {
        let engine = &self.wiring.engine;
        match admitted {
            Admitted::Merchant(caller, work, upstream) => {
                work_for(&caller, work, &upstream).await.map(HandlerOutput::Json)
            }
            Admitted::Provider(shop, body) => {
                Box::pin(events::take(engine, &shop, &body)).await.map(HandlerOutput::Json)
            }
            Admitted::Relayed(addressee, body) => {
                callback::relay::take(&**engine.store(), &*self.wiring.clock, &addressee, &body)
                    .await
                    .map(HandlerOutput::Json)
            }
            Admitted::Customer(visit) => Box::pin(visit.answer(engine)).await.map(HandlerOutput::Page),
        }
    }
}

async fn work_for(caller: &Caller, work: Work, upstream: &Upstream) -> Result<Bytes, ApiError> {
    match work {
        Work::V1Create(direction, body) => v1::create(upstream, caller, direction, &body).await,
        Work::V1Status(direction, query) => v1::status(upstream, caller, direction, query.as_deref()).await,
        Work::V1Balance => v1::balance(upstream, caller).await,
        Work::V1Transactions(query) => Box::pin(v1::transactions(upstream, caller, query.as_deref())).await,
        Work::V2Create(direction, body, signature) => upstream.native_create(caller, direction, &body, signature).await,
        Work::V2Status(transaction_id, signature) => upstream.native_status(caller, &transaction_id, signature).await,
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
