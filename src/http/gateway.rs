//! The gateway: admission, handler, reply; one log line a request.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use http::header::EXPECT;
use http::request::Parts;
use http_body::Body;
use tokio::runtime::Handle;

use super::admission::{Admitted, MerchantRequest};
use super::context::{self, GatewayState, HandlerOutput, RequestContext};
use super::listener::{ConnectionInfo, Inbound, Service};
use super::reply::Reply;
use super::router::MerchantRoute;
use crate::auth::SignedBody;
use crate::callback::relay;
use crate::deps::Deps;
use crate::domain::{Answer, Direction, OrderId};
use crate::error::ApiError;
use crate::homes::{ByHome, V1Reply};
use crate::provider::events;
use crate::rules::{Endpoint, Mode};
use crate::telemetry::Stage;
use crate::v1::query::parameter;
use crate::v2::ServiceCall;
use crate::wire::claimed::{claimed_id, claimed_order_id};

pub use super::context::GatewayServices;

/// The most bytes of a page of v1's history, as the default dialect writes it.
const HISTORY_BYTES: usize = 256 * 1024;

/// Answers requests. Clones are the same gateway.
#[derive(Clone)]
pub struct Gateway(Arc<GatewayState>);

impl Gateway {
    /// Creates a gateway; `[clients]` and `[engine]` are read now, everything else with each request.
    #[must_use]
    pub fn new(deps: Deps, services: GatewayServices) -> Self {
        Self(Arc::new(GatewayState::new(deps, services)))
    }

    /// Answers a request.
    ///
    /// Dropping the future abandons a request only up to the end of its body: from there on it runs to its end in a task of
    /// its own, so that hanging up cannot abandon a commit half way. An abandoned request is logged and counted.
    pub async fn handle<B>(&self, request: Request<B>, connection: ConnectionInfo) -> Reply
    where
        B: Body<Data = Bytes> + Send,
    {
        let (head, body) = request.into_parts();
        let rules = self.0.deps.rules.load_full();
        let head_check = connection.head_check;
        let mut context = RequestContext::begin(Arc::clone(&self.0), rules, &head, connection, !body.is_end_stream());
        let admitted = {
            let mut body = pin!(body);
            let admitted = self.0.admit(&mut context, &head, body.as_mut(), head_check).await;
            if let Err(failure) = &admitted
                && context.close
                && may_stay_open(failure, &head)
            {
                let at_hand = match context.body_at_hand {
                    Some(at_hand) => at_hand,
                    None => context::is_body_at_hand(body).await,
                };
                context.close = !at_hand;
            }
            admitted
        };
        let bytes = match &admitted {
            Ok(Admitted::Merchant(request)) if is_for_history_here(request) => Some(HISTORY_BYTES),
            _ => context.page_bytes(),
        };
        let room = match bytes {
            Some(bytes) => match context.reserve_room(bytes).await {
                Ok(room) => Some(room),
                Err(ends) => return context.finish(Err(ends)),
            },
            None => None,
        };
        let mut reply = match admitted {
            Ok(work) => SpawnOnDrop::new(perform(Arc::clone(&self.0), context, work)).await,
            Err(failure) => context.finish(Err(failure)),
        };
        if let Some(room) = room {
            reply.extensions_mut().insert(room);
        }
        reply
    }
}

impl Service for Gateway {
    fn call(&self, request: Request<Inbound>, connection: ConnectionInfo) -> impl Future<Output = Reply> + Send {
        self.handle(request, connection)
    }
}

/// Reports whether an HTTP/1 connection may stay open after a refusal, if the body is at hand: a new connection costs the
/// gateway ten times as much as the refusal, and a client that sends wrong signatures, or too much, keeps sending. A client
/// that expects `100 Continue` does not get it. Whether the body was read makes no difference: an unknown key and a wrong
/// signature get the same reply (contract section 3).
fn may_stay_open(failure: &ApiError, head: &Parts) -> bool {
    let of_caller = matches!(failure, ApiError::Refused(refusal) if refusal.concerns_caller());
    of_caller && !head.headers.contains_key(EXPECT)
}

/// Reports whether a request gets a page of v1's history that is made here: one that is forwarded takes room by itself.
fn is_for_history_here(request: &MerchantRequest) -> bool {
    let is_here = request.head.is_none() || request.caller.merchant().v1.mode == Mode::Translate;
    is_here && request.route == MerchantRoute::V1(Endpoint::Transactions)
}

async fn perform(state: Arc<GatewayState>, mut context: RequestContext, work: Admitted) -> Reply {
    // Pinned here: passed by value, a future of this size would take its space in this one twice.
    let outcome = without_panic(pin!(state.dispatch(work))).await;
    context.stage_ended(Stage::Engine);
    let outcome = outcome.map_err(|Failure { error, order_id }| {
        context.order_id = order_id;
        error
    });
    context.finish(outcome)
}

/// Why a handler failed, and the order that its request names, where it can be read.
struct Failure {
    error: ApiError,
    order_id: Option<OrderId>,
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self { error, order_id: None }
    }
}

/// Returns the order that a merchant's request names, in its body or, of a v1 status, in its query.
fn named_order(route: MerchantRoute, body: &SignedBody, query: Option<&str>) -> Option<OrderId> {
    match route {
        MerchantRoute::V2Create(_) => claimed_order_id(body.bytes()).ok().flatten(),
        MerchantRoute::V1(Endpoint::Payin | Endpoint::Payout) => claimed_id(body.bytes()).ok().flatten(),
        MerchantRoute::V1(Endpoint::PayinStatus | Endpoint::PayoutStatus) => {
            OrderId::new(&parameter(query, "external_id").ok()??).ok()
        }
        MerchantRoute::V2Status | MerchantRoute::V1(_) | MerchantRoute::Legacy => None,
    }
}

impl GatewayState {
    /// Hands an admitted request to its handler.
    async fn dispatch(&self, admitted: Admitted) -> Result<HandlerOutput, Failure> {
        match admitted {
            Admitted::Merchant(request) => self.handle_merchant(request).await,
            // Rare handlers are boxed, so that the future of a create is not as large as the largest of them.
            Admitted::Provider(engine, shop, body) => {
                Ok(HandlerOutput::Json(Box::pin(events::take(&engine, &shop, &body)).await?))
            }
            Admitted::Relayed(target, body) => {
                let body = relay::take(&*self.deps.store, &*self.deps.clock, &target, &body).await?;
                Ok(HandlerOutput::Json(body.into()))
            }
            Admitted::Customer(engine, page) => Ok(HandlerOutput::Page(Box::pin(page.answer(&engine)).await?)),
        }
    }

    async fn handle_merchant(&self, request: MerchantRequest) -> Result<HandlerOutput, Failure> {
        if request.head.is_some() {
            return Box::pin(self.handle_by_home(request)).await;
        }
        let MerchantRequest { caller, route, segment, query, body, signature, forwarded, head: _ } = request;
        let call = ServiceCall { caller: &caller, forwarded: &forwarded };
        let query = query.as_deref();
        let done = match route {
            MerchantRoute::V2Create(direction) => self.services.service.create(call, direction, &body, signature).await,
            MerchantRoute::V2Status => self.services.service.status(call, &segment, signature).await,
            MerchantRoute::V1(Endpoint::Payin) => self.v1.create(call, Direction::Payin, &body).await,
            MerchantRoute::V1(Endpoint::Payout) => self.v1.create(call, Direction::Payout, &body).await,
            MerchantRoute::V1(Endpoint::PayinStatus) => self.v1.status(call, Direction::Payin, query).await,
            MerchantRoute::V1(Endpoint::PayoutStatus) => self.v1.status(call, Direction::Payout, query).await,
            MerchantRoute::V1(Endpoint::Balance) => self.v1.balance(call).await.map(Answer::from),
            MerchantRoute::V1(Endpoint::Transactions) => {
                Box::pin(self.v1.transactions(call, query)).await.map(Answer::from)
            }
            // Without an old v1 service there is no such route.
            MerchantRoute::Legacy => Err(ApiError::NotFound),
        };
        let done = done.map(HandlerOutput::Json);
        done.map_err(|error| Failure { error, order_id: named_order(route, &body, query) })
    }

    /// Handles a v1 request where there is an old v1 service: here or there.
    async fn handle_by_home(&self, request: MerchantRequest) -> Result<HandlerOutput, Failure> {
        let MerchantRequest { caller, route, query, body, forwarded, head, .. } = request;
        let (Some(head), Some(rules)) = (&head, &caller.rules().gateway.legacy) else {
            return Err(ApiError::NotFound.into());
        };
        let call = ServiceCall { caller: &caller, forwarded: &forwarded };
        let query = query.as_deref();
        let by_home = ByHome { frontend: &self.v1, homes: &self.homes, call, rules, head, body: &body };
        let reply = match route {
            MerchantRoute::V1(Endpoint::Payin) => by_home.create(Direction::Payin).await,
            MerchantRoute::V1(Endpoint::Payout) => by_home.create(Direction::Payout).await,
            MerchantRoute::V1(Endpoint::PayinStatus) => by_home.status(Direction::Payin, query).await,
            MerchantRoute::V1(Endpoint::PayoutStatus) => by_home.status(Direction::Payout, query).await,
            MerchantRoute::V1(Endpoint::Balance) => by_home.balance().await,
            MerchantRoute::V1(Endpoint::Transactions) => by_home.transactions(query).await,
            MerchantRoute::Legacy => by_home.forward_path().await,
            MerchantRoute::V2Create(_) | MerchantRoute::V2Status => Err(ApiError::NotFound),
        };
        match reply {
            Ok(V1Reply::Here(answer)) => Ok(HandlerOutput::Json(answer)),
            Ok(V1Reply::Forwarded(reply)) => {
                let is_refused = reply.status().as_u16() >= 400;
                let order_id = is_refused.then(|| named_order(route, &body, query)).flatten();
                Ok(HandlerOutput::Forwarded(reply, order_id))
            }
            Err(error) => Err(Failure { error, order_id: named_order(route, &body, query) }),
        }
    }
}

/// Runs a handler; its panic becomes an internal error.
async fn without_panic<T, E: From<ApiError>>(mut work: Pin<&mut impl Future<Output = Result<T, E>>>) -> Result<T, E> {
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(poll) => poll,
        Err(panic) => Poll::Ready(Err(ApiError::Internal { cause: panic_text(panic.as_ref()) }.into())),
    })
    .await
}

/// Describes a panic. A formatted message may hold a caller's data, so only a literal's is shown.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic.downcast_ref::<&'static str>().map_or_else(|| "a panic".to_owned(), |text| format!("a panic: {text}"))
}

/// A future that is not abandoned when it is dropped unfinished: it runs to its end in a task of its own. Nothing is spawned
/// for the many that are awaited to their end.
struct SpawnOnDrop<F: Future<Output: Send> + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future<Output: Send> + Send + 'static> SpawnOnDrop<F> {
    fn new(work: F) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for SpawnOnDrop<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(work) = &mut self.0 else { return Poll::Pending };
        let poll = work.as_mut().poll(context);
        if poll.is_ready() {
            self.0 = None;
        }
        poll
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for SpawnOnDrop<F> {
    fn drop(&mut self) {
        // A future that panicked must not be polled again.
        if std::thread::panicking() {
            return;
        }
        if let Some(work) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            drop(runtime.spawn(work));
        }
    }
}

#[cfg(test)]
mod failure_tests;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod relay_tests;
#[cfg(test)]
mod report_tests;
#[cfg(test)]
mod tests;
