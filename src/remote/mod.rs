//! A remote v2 service behind the gateway (contract section 6).
//!
//! A v1 create is recorded in the journal before it is sent, so that neither a crash nor a lost response loses an operation.
//! Repeats, statuses and histories of v1 are answered from the journal. An entry without a response is resolved by sending the
//! same body again, which v2 treats as a repeat. Native v2 requests pass through unchanged and are not recorded.

mod callbacks;
mod client;
mod deadline;
mod exchange;
mod history;
mod messages;
mod native;
mod orders;
mod outages;
mod recovery;
mod refresher;
mod resolve;
mod responses;
#[cfg(test)]
mod tests;
mod v1;

use bytes::Bytes;
use http::HeaderValue;

pub use callbacks::EngineCallback;
pub use client::{Remote, RemoteDeps};
pub use recovery::Recovery;
pub use v1::{is_final, shown};

use crate::auth::SignedBody;
use crate::domain::{
    Answer, Balance, CreateReply, CreateRequest, Currency, Direction, Fingerprint, HistoryQuery, OperationView,
    OrderId, Page,
};
use crate::engine::CreateError;
use crate::error::ApiError;
use crate::store::V1Request;
use crate::v2::{ServiceCall, ServiceFuture, V2Service};

impl V2Service for Remote {
    fn create<'a>(
        &'a self,
        call: ServiceCall<'a>,
        direction: Direction,
        body: &'a SignedBody,
        signature: HeaderValue,
    ) -> ServiceFuture<'a, Answer> {
        let remote = self.for_call(call);
        Box::pin(async move { remote.pass_create(call.caller, direction, body, signature).await })
    }

    fn status<'a>(
        &'a self,
        call: ServiceCall<'a>,
        transaction_id: &'a str,
        signature: HeaderValue,
    ) -> ServiceFuture<'a, Answer> {
        let remote = self.for_call(call);
        Box::pin(async move { remote.pass_status(call.caller, transaction_id, signature).await })
    }

    fn create_from_v1<'a>(
        &'a self,
        call: ServiceCall<'a>,
        request: CreateRequest<'a>,
        body: Bytes,
        v1: V1Request,
    ) -> ServiceFuture<'a, CreateReply, CreateError> {
        let remote = self.for_call(call);
        Box::pin(async move { remote.create_by_journal(call.caller, request, &body, v1).await })
    }

    fn repeat<'a>(
        &'a self,
        call: ServiceCall<'a>,
        direction: Direction,
        external_id: &'a OrderId,
        fingerprint: Fingerprint,
    ) -> ServiceFuture<'a, Option<CreateReply>, CreateError> {
        let remote = self.for_call(call);
        Box::pin(async move { remote.repeat_by_journal(call.caller, direction, external_id, fingerprint).await })
    }

    fn find<'a>(
        &'a self,
        call: ServiceCall<'a>,
        direction: Direction,
        external_id: &'a OrderId,
    ) -> ServiceFuture<'a, OperationView> {
        let remote = self.for_call(call);
        Box::pin(async move { remote.find_by_journal(call.caller, direction, external_id).await })
    }

    fn history<'a>(&'a self, call: ServiceCall<'a>, query: HistoryQuery) -> ServiceFuture<'a, Page<OperationView>> {
        let remote = self.for_call(call);
        Box::pin(async move { remote.list_journal(call.caller, query).await })
    }

    fn balances<'a>(&'a self, _: ServiceCall<'a>) -> ServiceFuture<'a, Vec<(Currency, Balance)>> {
        Box::pin(async { Err(ApiError::NotOffered("the balance")) })
    }
}
