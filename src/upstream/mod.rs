//! The v2 service behind the gateway: the embedded engine, or a remote one.

pub mod remote;

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;

use crate::auth::{Caller, SignedBody, callers, signatures};
use crate::domain::{
    Balance, CreateReply, Currency, Direction, Fingerprint, FingerprintKey, HistoryQuery, OperationView, OrderId, Page,
};
use crate::engine::{CreateError, Engine, V1Repeat};
use crate::failure::ApiError;
use crate::rules::ApiKey;
use crate::store::V1Request;
use crate::telemetry::Metrics;
use crate::v2;
use remote::{ForwardedHeaders, Remote};

/// The v2 service behind the gateway.
///
/// What is asked of a remote one is boxed: an exchange's future is several times as large as all else that a request needs,
/// and every request would carry the room for it.
#[derive(Clone)]
pub enum Upstream {
    /// In this process. It is still a v2 service: it gets the signed v2 request and verifies it (contract section 6).
    Embedded(Arc<Engine>),
    /// Somewhere else.
    Remote(Remote),
}

impl Upstream {
    /// The same service, as one request sees it: what is asked elsewhere for the request names it.
    #[must_use]
    pub fn of_request(&self, passing: impl FnOnce() -> ForwardedHeaders) -> Self {
        match self {
            Self::Embedded(_) => self.clone(),
            Self::Remote(remote) => Self::Remote(remote.of_request(passing())),
        }
    }

    /// Signs a translated body with the caller's v2 secret, over exactly its bytes, and has the v2 service create an
    /// operation from it. The v1 part is stored in the same commit; of a remote engine's, before the request leaves.
    ///
    /// # Errors
    /// Why nothing was created, in v2 words; or that nobody knows whether it was.
    pub async fn create(
        &self,
        caller: &Caller,
        direction: Direction,
        body: Bytes,
        v1: V1Request,
    ) -> Result<CreateReply, CreateError> {
        let engine = match self {
            Self::Embedded(engine) => engine,
            Self::Remote(remote) => return Box::pin(remote.create(caller, direction, &body, v1)).await,
        };
        let signature = sign(caller.api_key(), &body).map_err(CreateError::Failed)?;
        let signed = callers::verify_forwarded(caller, body, &signature).map_err(|failure| {
            let cause = format!("the engine refused the gateway's own signature: {failure:?}");
            CreateError::Failed(ApiError::BadEngineReply { cause })
        })?;
        v2::create_operation(engine, caller, direction, &signed, Some(v1)).await.map(CreateReply::from)
    }

    /// What stands under the `external_id` of a v1 create.
    ///
    /// # Errors
    /// The store could not answer, or a remote engine about an order whose outcome is unknown.
    pub async fn v1_repeat(
        &self,
        caller: &Caller,
        direction: Direction,
        external_id: &OrderId,
        fingerprint: Fingerprint,
    ) -> Result<V1Repeat, ApiError> {
        match self {
            Self::Embedded(engine) => {
                engine.v1_repeat(&caller.merchant().id, direction, external_id, fingerprint).await
            }
            Self::Remote(remote) => Box::pin(remote.v1_repeat(caller, direction, external_id, fingerprint)).await,
        }
    }

    /// The operation that a v1 request made, by its `external_id`.
    ///
    /// # Errors
    /// [`ApiError::NotFound`] when there is none of this merchant's; or the engine could not answer.
    pub async fn v1_operation(
        &self,
        caller: &Caller,
        direction: Direction,
        external_id: &OrderId,
    ) -> Result<OperationView, ApiError> {
        match self {
            Self::Embedded(engine) => engine.v1_status(&caller.merchant().id, direction, external_id).await,
            Self::Remote(remote) => Box::pin(remote.v1_operation(caller, direction, external_id)).await,
        }
    }

    /// A page of the operations that v1 requests of the query's merchant, which is the caller's, made, newest first.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn v1_history(&self, caller: &Caller, query: HistoryQuery) -> Result<Page<OperationView>, ApiError> {
        match self {
            Self::Embedded(engine) => {
                let Page { items, has_more } = engine.v1_history(query).await?;
                Ok(Page { items: items.iter().map(OperationView::from).collect(), has_more })
            }
            Self::Remote(remote) => Box::pin(remote.v1_history(caller, query)).await,
        }
    }

    /// The merchant's balances, by currency.
    ///
    /// # Errors
    /// The store could not answer; [`ApiError::NotOffered`] with a remote engine, whose interface has no balances.
    pub async fn balances(&self, caller: &Caller) -> Result<Vec<(Currency, Balance)>, ApiError> {
        match self {
            Self::Embedded(engine) => engine.balances(caller.merchant()).await,
            Self::Remote(_) => Err(ApiError::NotOffered("the balance")),
        }
    }

    /// Answers a native `POST /api/v2/deposits` and `/withdrawals`: the body of the 200 reply. A remote engine gets the
    /// very bytes with the caller's own signature, which was verified.
    ///
    /// # Errors
    /// Why nothing was created, in v2 words or in the engine's own; or that nobody knows whether it was.
    pub async fn native_create(
        &self,
        caller: &Caller,
        direction: Direction,
        body: &SignedBody,
        signature: HeaderValue,
    ) -> Result<Bytes, ApiError> {
        match self {
            Self::Embedded(engine) => v2::create(engine, caller, direction, body).await,
            Self::Remote(remote) => Box::pin(remote.native_create(caller, direction, body, signature)).await,
        }
    }

    /// Answers a native `GET /api/v2/transactions/{transaction_id}`: the status record.
    ///
    /// # Errors
    /// [`ApiError::NotFound`] or the engine's own word for it; or the engine could not answer.
    pub async fn native_status(
        &self,
        caller: &Caller,
        transaction_id: &str,
        signature: HeaderValue,
    ) -> Result<Bytes, ApiError> {
        match self {
            Self::Embedded(engine) => v2::status(engine, caller, transaction_id).await,
            Self::Remote(remote) => Box::pin(remote.native_status(caller, transaction_id, signature)).await,
        }
    }

    /// Whether the engine is in another process: shops' providers are its business then.
    #[must_use]
    pub const fn is_remote(&self) -> bool {
        matches!(self, Self::Remote(_))
    }

    /// The keyed hash of comparisons and relay tokens.
    #[must_use]
    pub fn fingerprint_key(&self) -> &FingerprintKey {
        match self {
            Self::Embedded(engine) => engine.store().fingerprint_key(),
            Self::Remote(remote) => remote.fingerprint_key(),
        }
    }

    /// The process's metrics.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        match self {
            Self::Embedded(engine) => engine.metrics(),
            Self::Remote(remote) => remote.metrics(),
        }
    }
}

/// Signs a v2 body with a key's secret.
fn sign(key: &ApiKey, body: &[u8]) -> Result<String, ApiError> {
    let secrets = key.v2_secrets.as_ref();
    let secrets = secrets.ok_or_else(|| ApiError::Internal { cause: "the calling key has no v2_secret".to_owned() })?;
    Ok(signatures::sign_v2(secrets.signing(), body))
}
