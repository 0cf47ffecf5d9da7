//! Native v2 requests: the very bytes go on with the caller's own signature, and what the engine says comes back as it is.

use bytes::Bytes;
use http::HeaderValue;

use super::Remote;
use super::answers::is_transaction_id;
use super::asking::{Credentials, Said};
use crate::auth::{Caller, SignedBody};
use crate::domain::Direction;
use crate::failure::{EngineReply, EngineWord, Failure};
use crate::wire::members::read_object;

impl Remote {
    /// Passes a create on. `signature` is the one that was verified.
    pub(in crate::upstream) async fn native_create(
        &self,
        caller: &Caller,
        direction: Direction,
        body: &SignedBody,
        signature: HeaderValue,
    ) -> Result<Bytes, Failure> {
        let credentials = Credentials::signed(caller.api_key(), signature)?;
        passed_on(self.post(direction, &credentials, body.bytes().clone(), self.deadline()).await?)
    }

    /// Passes a status question on. `signature` is the one that was verified.
    pub(in crate::upstream) async fn native_status(
        &self,
        caller: &Caller,
        transaction_id: &str,
        signature: HeaderValue,
    ) -> Result<Bytes, Failure> {
        // No other text names a transaction, and none is put into an address.
        if !is_transaction_id(transaction_id) {
            return Err(Failure::NotFound);
        }
        let credentials = Credentials::signed(caller.api_key(), signature)?;
        passed_on(self.get(transaction_id, &credentials, self.deadline()).await?)
    }
}

fn passed_on(said: Said) -> Result<Bytes, Failure> {
    let (word, retry_after, body) = match said {
        Said::Done(body) => {
            return match read_object(&body) {
                Ok(_) => Ok(body),
                Err(_) => Err(Failure::BadEngineReply { cause: "its 200 is no JSON object".to_owned() }),
            };
        }
        Said::Invalid(body) => (EngineWord::Invalid, None, body),
        Said::NotFound(body) => (EngineWord::NotFound, None, body),
        Said::Conflict(body) => (EngineWord::Conflict, None, body),
        Said::Busy(busy, retry_after, body) => (EngineWord::Busy(busy), retry_after, body),
    };
    // What is no JSON, such as a proxy's page, is nothing that v2 says: the caller gets a sentence of ours.
    let body = read_object(&body).is_ok().then_some(body);
    Err(Failure::EngineSaid(EngineReply { word, retry_after, body }))
}
