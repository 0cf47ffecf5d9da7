//! Where translated v1 requests go: the embedded engine. A remote one takes its place beside it as a second variant.

use std::sync::Arc;

use bytes::Bytes;

use crate::auth::{Caller, callers, signatures};
use crate::domain::{Balance, Currency, Direction, HistoryQuery, Made, OrderId, Page, Shown};
use crate::engine::{Engine, Refused, V1Repeat};
use crate::failure::Failure;
use crate::store::{Comparer, Digest, V1Part};
use crate::telemetry::Metrics;
use crate::v2;

/// The v2 service behind the gateway.
#[derive(Clone)]
pub enum Upstream {
    /// In this process. It is still a v2 service: it gets the signed v2 request and verifies it (contract section 6).
    Embedded(Arc<Engine>),
}

impl Upstream {
    /// Signs a translated body with the caller's v2 secret, over exactly its bytes, and has the v2 service create an
    /// operation from it. The v1 part is stored in the same commit.
    ///
    /// # Errors
    /// Why nothing was created, in v2 words.
    pub async fn create(
        &self,
        caller: &Caller,
        direction: Direction,
        body: Bytes,
        v1: V1Part,
    ) -> Result<Made, Refused> {
        let Self::Embedded(engine) = self;
        let signature = sign(caller, &body).map_err(Refused::Failed)?;
        let signed = callers::verify_forwarded(caller, body, &signature).map_err(|failure| {
            let cause = format!("the engine refused the gateway's own signature: {failure:?}");
            Refused::Failed(Failure::BadEngineReply { cause })
        })?;
        v2::create_operation(engine, caller, direction, &signed, Some(v1)).await.map(Made::from)
    }

    /// What stands under the `external_id` of a v1 create.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn v1_repeat(
        &self,
        caller: &Caller,
        direction: Direction,
        external_id: &OrderId,
        digest: Digest,
    ) -> Result<V1Repeat, Failure> {
        let Self::Embedded(engine) = self;
        engine.v1_repeat(&caller.merchant().id, direction, external_id, digest).await
    }

    /// The operation that a v1 request made, by its `external_id`.
    ///
    /// # Errors
    /// [`Failure::NotFound`] when there is none of this merchant's.
    pub async fn v1_operation(
        &self,
        caller: &Caller,
        direction: Direction,
        external_id: &OrderId,
    ) -> Result<Shown, Failure> {
        let Self::Embedded(engine) = self;
        let operation = engine.v1_operation(&caller.merchant().id, direction, external_id).await?;
        Ok(Shown::from(&operation))
    }

    /// A page of the operations that v1 requests of the query's merchant made, newest first.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn v1_history(&self, query: HistoryQuery) -> Result<Page<Shown>, Failure> {
        let Self::Embedded(engine) = self;
        let Page { items, has_more } = engine.v1_history(query).await?;
        Ok(Page { items: items.iter().map(Shown::from).collect(), has_more })
    }

    /// The merchant's balances, by currency.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn balances(&self, caller: &Caller) -> Result<Vec<(Currency, Balance)>, Failure> {
        let Self::Embedded(engine) = self;
        engine.balances(caller.merchant()).await
    }

    /// The keyed hash of comparisons and relay tokens.
    #[must_use]
    pub fn comparer(&self) -> &Comparer {
        let Self::Embedded(engine) = self;
        engine.store().comparer()
    }

    /// The process's metrics.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        let Self::Embedded(engine) = self;
        engine.metrics()
    }
}

fn sign(caller: &Caller, body: &[u8]) -> Result<String, Failure> {
    let secrets = caller.api_key().v2_secrets.as_ref();
    let secrets = secrets.ok_or_else(|| Failure::Internal { cause: "the calling key has no v2_secret".to_owned() })?;
    Ok(signatures::sign_v2(secrets.signing(), body))
}
