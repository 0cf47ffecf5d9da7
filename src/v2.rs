//! The v2 service behind the gateway: the trait, its implementation by the engine in this process, and the errors about
//! orders that exist.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;

use crate::auth::{Caller, SignedBody};
use crate::domain::{
    Answer, Balance, CreateReply, CreateRequest, Currency, Direction, Fingerprint, HistoryQuery, OperationView,
    OrderId, Page, RedirectUrl, TransactionId,
};
use crate::engine::{CreateError, Engine};
use crate::error::{ApiError, Conflict, RequestError};
use crate::names::Nameable;
use crate::store::{OrderHome, V1Request};
use crate::wire::v2 as wire;

/// The future of a call of a v2 service.
pub type ServiceFuture<'a, T, E = ApiError> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// The request that a v2 service is called for.
#[derive(Debug, Clone, Copy)]
pub struct ServiceCall<'a> {
    /// The authenticated caller.
    pub caller: &'a Caller,
    /// What goes along to a remote engine.
    pub forwarded: &'a ForwardedHeaders,
}

/// The headers of a request that go along with the calls of a remote engine made for it (contract section 13).
#[derive(Debug, Clone, Default)]
pub struct ForwardedHeaders {
    /// `X-Request-Id`.
    pub request_id: Option<HeaderValue>,
    /// A valid `traceparent`, as it came.
    pub traceparent: Option<HeaderValue>,
}

/// A v2 service as the gateway uses it (contract section 6): [`Embedded`] in this process, or
/// [`Remote`](crate::remote::Remote) elsewhere.
///
/// Every method may fail because the store or the engine cannot answer; other errors are listed at each.
pub trait V2Service: Send + Sync + 'static {
    /// Answers a native create: the body of the 200 reply. A remote engine gets the same bytes with the caller's signature,
    /// which was verified.
    ///
    /// # Errors
    /// Why nothing was created, in v2 words or in the engine's own; or that the outcome is unknown.
    fn create<'a>(
        &'a self,
        call: ServiceCall<'a>,
        direction: Direction,
        body: &'a SignedBody,
        signature: HeaderValue,
    ) -> ServiceFuture<'a, Answer>;

    /// Answers a native status request: the status record of an operation that the caller's merchant created through v2.
    ///
    /// # Errors
    /// [`ApiError::NotFound`] for every other id.
    fn status<'a>(
        &'a self,
        call: ServiceCall<'a>,
        transaction_id: &'a str,
        signature: HeaderValue,
    ) -> ServiceFuture<'a, Answer>;

    /// Creates an operation from a request that was translated from v1. `body` has its bytes, which are signed with the caller's
    /// v2 secret: reading them gives the same request. `v1` is stored in the same commit; for a remote engine, before the
    /// request leaves.
    ///
    /// # Errors
    /// Why nothing was created; or that the outcome is unknown.
    fn create_from_v1<'a>(
        &'a self,
        call: ServiceCall<'a>,
        request: CreateRequest<'a>,
        body: Bytes,
        v1: V1Request,
    ) -> ServiceFuture<'a, CreateReply, CreateError>;

    /// Answers a v1 create that cannot be translated from the operation that its order names; `None` when the order is new.
    /// `fingerprint` is the keyed hash of its body.
    ///
    /// # Errors
    /// The order is reserved, or was created by another body or through v2; or its outcome at a remote engine is unknown.
    fn repeat<'a>(
        &'a self,
        call: ServiceCall<'a>,
        direction: Direction,
        external_id: &'a OrderId,
        fingerprint: Fingerprint,
    ) -> ServiceFuture<'a, Option<CreateReply>, CreateError>;

    /// Finds the operation that a v1 request created, by its `external_id`.
    ///
    /// # Errors
    /// [`ApiError::NotFound`] when the merchant has none.
    fn find<'a>(
        &'a self,
        call: ServiceCall<'a>,
        direction: Direction,
        external_id: &'a OrderId,
    ) -> ServiceFuture<'a, OperationView>;

    /// Lists a page of the operations that v1 requests of the merchant created, newest first.
    fn history<'a>(&'a self, call: ServiceCall<'a>, query: HistoryQuery) -> ServiceFuture<'a, Page<OperationView>>;

    /// Reads the merchant's balances, by currency.
    ///
    /// # Errors
    /// [`ApiError::NotOffered`] with a remote engine, whose interface has no balances.
    fn balances<'a>(&'a self, call: ServiceCall<'a>) -> ServiceFuture<'a, Vec<(Currency, Balance)>>;
}

/// Returns the error about an order id whose order is at home elsewhere.
#[must_use]
pub fn reserved(order_id_name: &'static str, home: OrderHome) -> Conflict {
    let reason = match home {
        OrderHome::Legacy => "is reserved: it was used with the old v1 service",
        OrderHome::Native | OrderHome::Entry => "is reserved: it was used with another v2 engine",
        OrderHome::Operation => "is reserved",
    };
    RequestError::member(order_id_name, reason).into()
}

/// Returns the error about an order id whose operation was made through the other API version.
#[must_use]
pub fn of_other_version(order_id_name: &'static str, made_through: &str) -> Conflict {
    let reason = format!(
        "exists already and was created through {made_through}: another API version is not a way to send it again"
    );
    RequestError::member(order_id_name, reason).into()
}

/// Returns the error about an order id that exists with other data. It names members, never values.
#[must_use]
pub fn conflict(order_id_name: &'static str, mut paths: Vec<String>) -> Conflict {
    /// A body may differ in thousands of members; the first few are enough.
    const NAMED: usize = 12;
    /// In the log fewer are.
    const LOGGED: usize = 8;
    if paths.is_empty() {
        return RequestError::member(order_id_name, "exists already and was created from other data").into();
    }
    paths.dedup();
    let rest = paths.len().saturating_sub(NAMED);
    paths.truncate(NAMED);
    let names: Vec<_> = paths.iter().map(|path| Nameable(path).shown()).collect();
    let differing = names.iter().take(LOGGED).copied().collect::<Vec<_>>().join(",");
    let names = names.join(", ");
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let reason = format!("exists already and was created from other data; differs in: {names}{more}");
    Conflict { differing: Some(differing.into()), ..RequestError::member(order_id_name, reason).into() }
}

/// The engine in this process as a v2 service.
pub struct Embedded(Arc<Engine>);

impl Embedded {
    /// Serves with an engine.
    #[must_use]
    pub const fn new(engine: Arc<Engine>) -> Self {
        Self(engine)
    }

    /// Creates an operation from the request that a signed v2 body makes, a native caller's or the gateway's own; `v1` comes
    /// with the latter.
    async fn create_operation(
        &self,
        caller: &Caller,
        request: &CreateRequest<'_>,
        _: &SignedBody,
        v1: Option<V1Request>,
    ) -> Result<CreateReply, CreateError> {
        self.0.create(caller, request, v1).await
    }
}

impl V2Service for Embedded {
    fn create<'a>(
        &'a self,
        call: ServiceCall<'a>,
        direction: Direction,
        body: &'a SignedBody,
        _: HeaderValue,
    ) -> ServiceFuture<'a, Answer> {
        Box::pin(async move {
            let request = wire::read_create(direction, body.bytes()).map_err(ApiError::Invalid)?;
            let created = self.create_operation(call.caller, &request, body, None).await.map_err(in_v2_words)?;
            let redirect_url = created.redirect_url.as_ref().map(RedirectUrl::expose);
            let body = wire::create_reply(&created.transaction_id, redirect_url).into();
            Ok(Answer { body, transaction_id: Some(created.transaction_id) })
        })
    }

    fn status<'a>(
        &'a self,
        call: ServiceCall<'a>,
        transaction_id: &'a str,
        _: HeaderValue,
    ) -> ServiceFuture<'a, Answer> {
        Box::pin(async move {
            // Unknown, foreign and malformed ids, and those of v1, are the same to the caller.
            let id = TransactionId::parse(transaction_id).map_err(|_| ApiError::NotFound)?;
            let record = self.0.v2_status(&call.caller.merchant().id, id).await?;
            let transaction_id = Some(transaction_id.into());
            Ok(Answer { body: wire::status_reply(&record).into(), transaction_id })
        })
    }

    fn create_from_v1<'a>(
        &'a self,
        call: ServiceCall<'a>,
        request: CreateRequest<'a>,
        body: Bytes,
        v1: V1Request,
    ) -> ServiceFuture<'a, CreateReply, CreateError> {
        Box::pin(async move {
            let body = SignedBody::sign(call.caller, body)?;
            self.create_operation(call.caller, &request, &body, Some(v1)).await
        })
    }

    fn repeat<'a>(
        &'a self,
        call: ServiceCall<'a>,
        direction: Direction,
        external_id: &'a OrderId,
        fingerprint: Fingerprint,
    ) -> ServiceFuture<'a, Option<CreateReply>, CreateError> {
        Box::pin(self.0.v1_repeat(&call.caller.merchant().id, direction, external_id, fingerprint))
    }

    fn find<'a>(
        &'a self,
        call: ServiceCall<'a>,
        direction: Direction,
        external_id: &'a OrderId,
    ) -> ServiceFuture<'a, OperationView> {
        Box::pin(self.0.v1_status(&call.caller.merchant().id, direction, external_id))
    }

    fn history<'a>(&'a self, _: ServiceCall<'a>, query: HistoryQuery) -> ServiceFuture<'a, Page<OperationView>> {
        Box::pin(async move {
            let Page { items, has_more } = self.0.v1_history(query).await?;
            Ok(Page { items: items.iter().map(OperationView::from).collect(), has_more })
        })
    }

    fn balances<'a>(&'a self, call: ServiceCall<'a>) -> ServiceFuture<'a, Vec<(Currency, Balance)>> {
        Box::pin(self.0.balances(call.caller.merchant()))
    }
}

/// Words a refusal for a native caller.
fn in_v2_words(refusal: CreateError) -> ApiError {
    match refusal {
        CreateError::Invalid(error) => ApiError::Invalid(error),
        CreateError::OtherData { transaction_id, paths } => {
            ApiError::Conflict(conflict("order_id", paths).with(transaction_id))
        }
        CreateError::OtherBody(earlier) => {
            ApiError::Conflict(of_other_version("order_id", "v1").with(earlier.transaction_id))
        }
        CreateError::OtherVersion(transaction_id) => {
            ApiError::Conflict(Conflict { transaction_id, ..of_other_version("order_id", "v1") })
        }
        CreateError::Reserved(home) => ApiError::Conflict(reserved("order_id", home)),
        CreateError::Failed(error) => error,
    }
}
