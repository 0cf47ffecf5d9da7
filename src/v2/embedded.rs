//! The v2 service in this process: a v2 request in, a v2 reply out, by the engine.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;

use super::{ServiceCall, ServiceFuture, V2Service, conflict, of_other_version, reserved, sign};
use crate::auth::{Caller, SignedBody, callers};
use crate::domain::{
    Balance, CreateReply, Currency, Direction, Fingerprint, HistoryQuery, OperationView, OrderId, Page, RedirectUrl,
    TransactionId,
};
use crate::engine::{CreateError, Engine};
use crate::error::ApiError;
use crate::store::V1Request;
use crate::wire::v2 as wire;

/// The engine in this process as a v2 service.
pub struct Embedded(Arc<Engine>);

impl Embedded {
    /// Serves with an engine.
    #[must_use]
    pub const fn new(engine: Arc<Engine>) -> Self {
        Self(engine)
    }

    /// Creates an operation from a signed v2 body, a native caller's or the gateway's own; `v1` comes with the latter.
    async fn create_operation(
        &self,
        caller: &Caller,
        direction: Direction,
        body: &SignedBody,
        v1: Option<V1Request>,
    ) -> Result<CreateReply, CreateError> {
        let request = wire::read_create(direction, body.bytes())?;
        self.0.create(caller, &request, v1).await
    }
}

impl V2Service for Embedded {
    fn create<'a>(
        &'a self,
        call: ServiceCall<'a>,
        direction: Direction,
        body: &'a SignedBody,
        _: HeaderValue,
    ) -> ServiceFuture<'a, Bytes> {
        Box::pin(async move {
            let created = self.create_operation(call.caller, direction, body, None).await.map_err(in_v2_words)?;
            let redirect_url = created.redirect_url.as_ref().map(RedirectUrl::expose);
            Ok(wire::create_reply(&created.transaction_id, redirect_url).into())
        })
    }

    fn status<'a>(
        &'a self,
        call: ServiceCall<'a>,
        transaction_id: &'a str,
        _: HeaderValue,
    ) -> ServiceFuture<'a, Bytes> {
        Box::pin(async move {
            // Unknown, foreign and malformed ids are the same to the caller.
            let id = TransactionId::parse(transaction_id).map_err(|_| ApiError::NotFound)?;
            let record = self.0.v2_status(&call.caller.merchant().id, id).await?;
            Ok(wire::status_reply(&record).into())
        })
    }

    fn create_from_v1<'a>(
        &'a self,
        call: ServiceCall<'a>,
        direction: Direction,
        body: Bytes,
        v1: V1Request,
    ) -> ServiceFuture<'a, CreateReply, CreateError> {
        Box::pin(async move {
            let signature = sign(call.caller.api_key(), &body)?;
            let signed = callers::verify_forwarded(call.caller, body, &signature).map_err(|failure| {
                let cause = format!("the engine refused the gateway's own signature: {failure:?}");
                CreateError::Failed(ApiError::BadEngineReply { cause })
            })?;
            self.create_operation(call.caller, direction, &signed, Some(v1)).await
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
        CreateError::OtherData(paths) => ApiError::Conflict(conflict("order_id", paths)),
        CreateError::OtherBody(_) | CreateError::OtherVersion => ApiError::Conflict(of_other_version("order_id", "v1")),
        CreateError::Reserved => ApiError::Conflict(reserved("order_id")),
        CreateError::Failed(error) => error,
    }
}
