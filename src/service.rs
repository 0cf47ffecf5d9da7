//! The v2 service behind the gateway (contract section 6): the engine in this process, or one elsewhere.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;

use crate::auth::{Caller, SignedBody};
use crate::domain::{
    Answer, Balance, CreateReply, CreateRequest, Currency, Direction, Fingerprint, HistoryQuery, OperationView,
    OrderId, Page, RedirectUrl, TransactionId,
};
use crate::engine::{CreateError, Engine};
use crate::error::{ApiError, Conflict};
use crate::remote::Remote;
use crate::store::V1Request;
use crate::v2::{ServiceCall, conflict, of_other_version, reserved};
use crate::wire::v2 as wire;

/// A v2 service as the gateway uses it.
///
/// Every method may fail because the store or the engine cannot answer; other errors are listed at each. Calls of a remote
/// engine are boxed: their futures are large, and those of this process need not be as large.
#[derive(Clone)]
pub enum V2Service {
    /// The engine in this process.
    Embedded(Arc<Engine>),
    /// An engine elsewhere.
    Remote(Remote),
}

impl V2Service {
    /// Answers a native create: the body of the 200 reply. A remote engine gets the same bytes with the caller's signature,
    /// which was verified.
    ///
    /// # Errors
    /// Why nothing was created, in v2 words or in the engine's own; or that the outcome is unknown.
    pub async fn create(
        &self,
        call: ServiceCall<'_>,
        direction: Direction,
        body: &SignedBody,
        signature: HeaderValue,
    ) -> Result<Answer, ApiError> {
        let engine = match self {
            Self::Embedded(engine) => engine,
            Self::Remote(remote) => {
                let remote = remote.for_call(call);
                return Box::pin(remote.pass_create(call.caller, direction, body, signature)).await;
            }
        };
        let request = wire::read_create(direction, body.bytes()).map_err(ApiError::Invalid)?;
        let created = create_signed(engine, call.caller, &request, body, None).await.map_err(in_v2_words)?;
        let redirect_url = created.redirect_url.as_ref().map(RedirectUrl::expose);
        let body = wire::create_reply(&created.transaction_id, redirect_url).into();
        Ok(Answer { body, transaction_id: Some(created.transaction_id) })
    }

    /// Answers a native status request: the status record of an operation that the caller's merchant created through v2.
    ///
    /// # Errors
    /// [`ApiError::NotFound`] for every other id.
    pub async fn status(
        &self,
        call: ServiceCall<'_>,
        transaction_id: &str,
        signature: HeaderValue,
    ) -> Result<Answer, ApiError> {
        let engine = match self {
            Self::Embedded(engine) => engine,
            Self::Remote(remote) => {
                let remote = remote.for_call(call);
                return Box::pin(remote.pass_status(call.caller, transaction_id, signature)).await;
            }
        };
        // Unknown, foreign and malformed ids, and those of v1, are the same to the caller.
        let id = TransactionId::parse(transaction_id).map_err(|_| ApiError::NotFound)?;
        let record = engine.v2_status(&call.caller.merchant().id, id).await?;
        Ok(Answer { body: wire::status_reply(&record).into(), transaction_id: Some(transaction_id.into()) })
    }

    /// Creates an operation from a request that was translated from v1. `body` has its bytes, which are signed with the caller's
    /// v2 secret: reading them gives the same request. `v1` is stored in the same commit; for a remote engine, before the
    /// request leaves.
    ///
    /// # Errors
    /// Why nothing was created; or that the outcome is unknown.
    pub async fn create_from_v1(
        &self,
        call: ServiceCall<'_>,
        request: CreateRequest<'_>,
        body: Bytes,
        v1: V1Request,
    ) -> Result<CreateReply, CreateError> {
        match self {
            Self::Embedded(engine) => {
                let body = SignedBody::sign(call.caller, body)?;
                create_signed(engine, call.caller, &request, &body, Some(v1)).await
            }
            Self::Remote(remote) => {
                let remote = remote.for_call(call);
                Box::pin(remote.create_by_journal(call.caller, request, &body, v1)).await
            }
        }
    }

    /// Answers a v1 create that cannot be translated from the operation that its order names; `None` when the order is new.
    /// `fingerprint` is the keyed hash of its body.
    ///
    /// # Errors
    /// The order is reserved, or was created by another body or through v2; or its outcome at a remote engine is unknown.
    pub async fn repeat(
        &self,
        call: ServiceCall<'_>,
        direction: Direction,
        external_id: &OrderId,
        fingerprint: Fingerprint,
    ) -> Result<Option<CreateReply>, CreateError> {
        match self {
            Self::Embedded(engine) => {
                engine.v1_repeat(&call.caller.merchant().id, direction, external_id, fingerprint).await
            }
            Self::Remote(remote) => {
                let remote = remote.for_call(call);
                Box::pin(remote.repeat_by_journal(call.caller, direction, external_id, fingerprint)).await
            }
        }
    }

    /// Finds the operation that a v1 request created, by its `external_id`.
    ///
    /// # Errors
    /// [`ApiError::NotFound`] when the merchant has none.
    pub async fn find(
        &self,
        call: ServiceCall<'_>,
        direction: Direction,
        external_id: &OrderId,
    ) -> Result<OperationView, ApiError> {
        match self {
            Self::Embedded(engine) => engine.v1_status(&call.caller.merchant().id, direction, external_id).await,
            Self::Remote(remote) => {
                let remote = remote.for_call(call);
                Box::pin(remote.find_by_journal(call.caller, direction, external_id)).await
            }
        }
    }

    /// Lists a page of the operations that v1 requests of the merchant created, newest first.
    ///
    /// # Errors
    /// None of its own.
    pub async fn history(&self, call: ServiceCall<'_>, query: HistoryQuery) -> Result<Page<OperationView>, ApiError> {
        match self {
            Self::Embedded(engine) => {
                let Page { items, has_more } = engine.v1_history(query).await?;
                Ok(Page { items: items.iter().map(OperationView::from).collect(), has_more })
            }
            Self::Remote(remote) => {
                let remote = remote.for_call(call);
                Box::pin(remote.list_journal(call.caller, query)).await
            }
        }
    }

    /// Reads the merchant's balances, by currency.
    ///
    /// # Errors
    /// [`ApiError::NotOffered`] with a remote engine, whose interface has no balances.
    pub async fn balances(&self, call: ServiceCall<'_>) -> Result<Vec<(Currency, Balance)>, ApiError> {
        match self {
            Self::Embedded(engine) => engine.balances(call.caller.merchant()).await,
            Self::Remote(_) => Err(ApiError::NotOffered("the balance")),
        }
    }
}

/// Creates an operation from the request that a signed v2 body makes, a native caller's or the gateway's own; `v1` comes
/// with the latter.
async fn create_signed(
    engine: &Engine,
    caller: &Caller,
    request: &CreateRequest<'_>,
    _: &SignedBody,
    v1: Option<V1Request>,
) -> Result<CreateReply, CreateError> {
    engine.create(caller, request, v1).await
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
