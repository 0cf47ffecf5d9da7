//! Native v2 requests: the same bytes are forwarded with the caller's own signature, and the engine's response is passed back.

use http::HeaderValue;

use super::client::Remote;
use super::exchange::{EngineCredentials, EngineResponse, RequestResult};
use super::messages;
use super::resolve::not_found;
use super::responses::is_transaction_id;
use crate::auth::{Caller, SignedBody};
use crate::domain::{Answer, Direction};
use crate::error::{ApiError, Conflict, EngineError, EngineReply};
use crate::json::{Object, Value};
use crate::rules::Mode;
use crate::store::{HomeClaim, OrderHome};
use crate::v2::{of_other_version, reserved};
use crate::wire::claimed::claimed_order_id;
use crate::wire::members::read_object;

impl Remote {
    /// Forwards a create, unless its `order_id` belongs to v1: to an operation in the journal, or to one of the old service.
    /// `signature` is the verified one.
    pub(crate) async fn pass_create(
        &self,
        caller: &Caller,
        direction: Direction,
        body: &SignedBody,
        signature: HeaderValue,
    ) -> Result<Answer, ApiError> {
        self.claim_order(caller, direction, body).await?;
        let credentials = EngineCredentials::signed(&caller.merchant().id, caller.api_key(), signature)?;
        let RequestResult { outcome, unsure } =
            self.post(direction, &credentials, body.bytes().clone(), self.deadline()).await;
        match outcome? {
            EngineResponse::NotFound => Err(not_found()),
            // A first try whose response was lost may still be in progress: the refusal of its repeat proves nothing.
            EngineResponse::Invalid(_) | EngineResponse::Conflict(_) if unsure => Err(ApiError::EngineTimeout),
            outcome @ (EngineResponse::Done(_)
            | EngineResponse::Invalid(_)
            | EngineResponse::Conflict(_)
            | EngineResponse::Busy(..)) => passed_on(outcome),
        }
    }

    /// Refuses an order that is at home elsewhere. Where the old service may make orders of the merchant, too, a new order
    /// is claimed, so that it cannot make this one.
    async fn claim_order(&self, caller: &Caller, direction: Direction, body: &SignedBody) -> Result<(), ApiError> {
        let order_id = match claimed_order_id(body.bytes()) {
            Ok(order_id) => order_id,
            // The engine might read an order there that is at home with the old service, or will be.
            Err(unclear) if caller.rules().gateway.legacy.is_some() => return Err(ApiError::Invalid(unclear)),
            Err(_) => None,
        };
        // A body without an order id is for the engine to refuse.
        let Some(order_id) = order_id else { return Ok(()) };
        let (store, merchant) = (&self.parts.deps.store, caller.merchant());
        let home = match merchant.v1.mode {
            Mode::Translate => store.order_home(&merchant.id, direction, &order_id).await?,
            Mode::Legacy | Mode::Shadow | Mode::Staged(_) => {
                let now = self.parts.deps.clock.now();
                Some(store.claim(&merchant.id, direction, &order_id, HomeClaim::Native, now).await?)
            }
        };
        match home {
            Some(OrderHome::Entry) => {
                let entry = self.journal().entry(&merchant.id, direction, &order_id).await?;
                let transaction_id = entry.and_then(|entry| entry.transaction_id().map(Into::into));
                Err(ApiError::Conflict(Conflict { transaction_id, ..of_other_version("order_id", "v1") }))
            }
            Some(home @ (OrderHome::Legacy | OrderHome::Lost)) => Err(ApiError::Conflict(reserved("order_id", home))),
            Some(OrderHome::Operation | OrderHome::Native) | None => Ok(()),
        }
    }

    /// Forwards a status request, unless the journal has the transaction: what v1 created is not readable through v2, though
    /// the engine created it from a v2 request. `signature` is the verified one.
    pub(crate) async fn pass_status(
        &self,
        caller: &Caller,
        transaction_id: &str,
        signature: HeaderValue,
    ) -> Result<Answer, ApiError> {
        // Any other text is no transaction, and must not become part of a URL.
        if !is_transaction_id(transaction_id) {
            return Err(ApiError::NotFound);
        }
        if self.journal().entry_of_transaction(transaction_id).await?.is_some() {
            return Err(ApiError::NotFound);
        }
        let credentials = EngineCredentials::signed(&caller.merchant().id, caller.api_key(), signature)?;
        passed_on(self.get(transaction_id, &credentials, self.deadline()).await?)
    }
}

/// Reads the id of the operation that a reply is about.
fn transaction_id(read: &Object<'_>) -> Option<Box<str>> {
    let id = read.get("transaction_id").and_then(Value::as_str).filter(|id| is_transaction_id(id))?;
    Some(id.into())
}

fn passed_on(outcome: EngineResponse) -> Result<Answer, ApiError> {
    let (error, retry_after, body) = match outcome {
        EngineResponse::Done(body) => {
            return match read_object(&body) {
                Ok(read) => Ok(Answer { transaction_id: transaction_id(&read), body: body.clone() }),
                Err(_) => Err(ApiError::BadEngineReply { cause: "its 200 is no JSON object".to_owned() }),
            };
        }
        EngineResponse::Invalid(body) => (EngineError::Invalid, None, body),
        // In the gateway's own words, so that an unknown id and one of v1 are the same to the caller.
        EngineResponse::NotFound => return Err(ApiError::NotFound),
        EngineResponse::Conflict(body) => (EngineError::Conflict, None, body),
        EngineResponse::Busy(busy, retry_after, body) => (EngineError::Busy(busy), retry_after, body),
    };
    // A body that is not JSON, such as a proxy's page, is not the engine's: the gateway's own message replaces it.
    let member = messages::member(&body);
    let body = read_object(&body).is_ok().then_some(body);
    Err(ApiError::EngineReply(EngineReply { error, member, retry_after, body }))
}
