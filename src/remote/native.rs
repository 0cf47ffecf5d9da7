//! Native v2 requests: the very bytes go on with the caller's own signature, and what the engine says comes back as it is.

use bytes::Bytes;
use http::HeaderValue;

use super::client::Remote;
use super::exchange::{EngineCredentials, EngineResponse, RequestResult};
use super::resolve::not_found;
use super::responses::is_transaction_id;
use crate::auth::{Caller, SignedBody};
use crate::domain::{Direction, OrderId};
use crate::failure::{ApiError, EngineReply, EngineWord};
use crate::json::Node;
use crate::store::V1Lookup;
use crate::v2::{of_other_version, reserved};
use crate::wire::members::read_object;

impl Remote {
    /// Passes a create on, unless its `order_id` names an operation of v1's: one that went through here, or one of the old
    /// service. `signature` is the one that was verified.
    pub(super) async fn pass_create(
        &self,
        caller: &Caller,
        direction: Direction,
        body: &SignedBody,
        signature: HeaderValue,
    ) -> Result<Bytes, ApiError> {
        self.refuse_orders_of_v1(caller, direction, body).await?;
        let credentials = EngineCredentials::signed(caller.api_key(), signature)?;
        let RequestResult { outcome, unsure } =
            self.post(direction, &credentials, body.bytes().clone(), self.deadline()).await;
        match outcome? {
            EngineResponse::NotFound(_) => Err(not_found()),
            // A first try whose reply was lost may be under way still: that its repeat was refused proves nothing.
            EngineResponse::Invalid(_) | EngineResponse::Conflict(_) if unsure => Err(ApiError::EngineTimeout),
            outcome => passed_on(outcome),
        }
    }

    async fn refuse_orders_of_v1(
        &self,
        caller: &Caller,
        direction: Direction,
        body: &SignedBody,
    ) -> Result<(), ApiError> {
        // What names no order cannot name one of these, and the engine says what is wrong with it.
        let Some(order_id) = order_id(body.bytes()) else { return Ok(()) };
        match self.journal().of_v1(&caller.merchant().id, direction, &order_id).await? {
            Some(V1Lookup::Entry) => Err(ApiError::Conflict(of_other_version("order_id", "v1"))),
            Some(V1Lookup::Reservation) => Err(ApiError::Conflict(reserved("order_id"))),
            None => Ok(()),
        }
    }

    /// Passes a status question on. `signature` is the one that was verified.
    pub(super) async fn pass_status(
        &self,
        caller: &Caller,
        transaction_id: &str,
        signature: HeaderValue,
    ) -> Result<Bytes, ApiError> {
        // No other text names a transaction, and none is put into an address.
        if !is_transaction_id(transaction_id) {
            return Err(ApiError::NotFound);
        }
        let credentials = EngineCredentials::signed(caller.api_key(), signature)?;
        passed_on(self.get(transaction_id, &credentials, self.deadline()).await?)
    }
}

fn order_id(body: &[u8]) -> Option<OrderId> {
    match &read_object(body).ok()?.get("order_id")?.node {
        Node::String(text) => OrderId::new(text).ok(),
        _ => None,
    }
}

fn passed_on(outcome: EngineResponse) -> Result<Bytes, ApiError> {
    let (word, retry_after, body) = match outcome {
        EngineResponse::Done(body) => {
            return match read_object(&body) {
                Ok(_) => Ok(body),
                Err(_) => Err(ApiError::BadEngineReply { cause: "its 200 is no JSON object".to_owned() }),
            };
        }
        EngineResponse::Invalid(body) => (EngineWord::Invalid, None, body),
        EngineResponse::NotFound(body) => (EngineWord::NotFound, None, body),
        EngineResponse::Conflict(body) => (EngineWord::Conflict, None, body),
        EngineResponse::Busy(busy, retry_after, body) => (EngineWord::Busy(busy), retry_after, body),
    };
    // What is no JSON, such as a proxy's page, is nothing that v2 says: the caller gets a sentence of ours.
    let body = read_object(&body).is_ok().then_some(body);
    Err(ApiError::EngineSaid(EngineReply { word, retry_after, body }))
}
