//! One exchange with the engine: bounded in time, repeated once when the connection failed before a reply.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

use super::client::Remote;
use super::deadline::RequestDeadline;
use crate::auth::callers::sign_v2;
use crate::domain::{Direction, MerchantId};
use crate::error::{ApiError, Busy};
use crate::outbound::{EgressPolicy, OutboundError, OutboundRequest, OutboundResponse, ResponseBody};
use crate::rules::ApiKey;
use crate::telemetry::Stopwatch;
use crate::v2::ForwardedHeaders;

/// The longest response of an engine, in bytes.
const RESPONSE_LIMIT: usize = 64 * 1024;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const SIGNATURE: HeaderName = HeaderName::from_static("x-signature");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The longest `Retry-After` of an engine that is passed on.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// The result of a request to the engine.
pub(super) struct RequestResult {
    /// The engine's response, or why there is none that can be passed on.
    pub outcome: Result<EngineResponse, ApiError>,
    /// The engine may have accepted a try whose outcome is unknown.
    pub unsure: bool,
}

/// The merchant and API key of a request to the engine, and the signature over its body. It has no `Debug`, which would show them.
pub(super) struct EngineCredentials {
    merchant: MerchantId,
    api_key: HeaderValue,
    signature: HeaderValue,
}

impl EngineCredentials {
    /// Signs a body (the empty one of a GET) with the v2 secret of a merchant's key.
    pub(super) fn signing(merchant: &MerchantId, key: &ApiKey, body: &[u8]) -> Result<Self, ApiError> {
        let signature = HeaderValue::try_from(sign_v2(key, body)?)
            .map_err(|_| ApiError::Internal { cause: "a signature is no header".to_owned() })?;
        Self::signed(merchant, key, signature)
    }

    /// Uses a signature that the caller made.
    pub(super) fn signed(merchant: &MerchantId, key: &ApiKey, mut signature: HeaderValue) -> Result<Self, ApiError> {
        let mut api_key = HeaderValue::try_from(&*key.key)
            .map_err(|_| ApiError::Internal { cause: "the calling key is no header".to_owned() })?;
        api_key.set_sensitive(true);
        signature.set_sensitive(true);
        Ok(Self { merchant: merchant.clone(), api_key, signature })
    }
}

/// An engine's response, as far as the gateway may pass it on (contract section 5, "Replies of the engine").
pub(super) enum EngineResponse {
    /// 200.
    Done(Bytes),
    /// 400.
    Invalid(Bytes),
    /// 404.
    NotFound,
    /// 409.
    Conflict(Bytes),
    /// 429 or 503.
    Busy(Busy, Option<Duration>, Bytes),
}

impl EngineResponse {
    /// Reads a response's status; any other cannot be passed on.
    fn of(response: OutboundResponse) -> Result<Self, ApiError> {
        let OutboundResponse { status, retry_after, body } = response;
        let retry_after = retry_after.map(|wait| wait.min(LONGEST_WAIT));
        match status {
            200 => Ok(Self::Done(body)),
            400 => Ok(Self::Invalid(body)),
            404 => Ok(Self::NotFound),
            409 => Ok(Self::Conflict(body)),
            429 => Ok(Self::Busy(Busy::TooManyRequests, retry_after, body)),
            503 => Ok(Self::Busy(Busy::Unavailable, retry_after, body)),
            other => Err(ApiError::BadEngineReply { cause: format!("it answered HTTP {other}") }),
        }
    }
}

impl Remote {
    /// Returns the deadline of a request that begins now.
    pub(super) fn deadline(&self) -> RequestDeadline {
        RequestDeadline::after(self.parts.engine.timeout)
    }

    /// Sends a create with exactly these bytes.
    pub(super) async fn post(
        &self,
        direction: Direction,
        credentials: &EngineCredentials,
        body: Bytes,
        deadline: RequestDeadline,
    ) -> RequestResult {
        let path = match direction {
            Direction::Payin => "/deposits",
            Direction::Payout => "/withdrawals",
        };
        self.exchange(path, credentials, Some(body), deadline).await
    }

    /// Requests the status record of a transaction, whose id is digits.
    pub(super) async fn get(
        &self,
        transaction_id: &str,
        credentials: &EngineCredentials,
        deadline: RequestDeadline,
    ) -> Result<EngineResponse, ApiError> {
        let path = format!("/transactions/{transaction_id}");
        self.exchange(&path, credentials, None, deadline).await.outcome
    }

    /// Sends a request, and once more when the connection failed before a response: every v2 request may be repeated. Without
    /// a place nothing is sent.
    async fn exchange(
        &self,
        path: &str,
        credentials: &EngineCredentials,
        body: Option<Bytes>,
        deadline: RequestDeadline,
    ) -> RequestResult {
        let Some(_place) = self.parts.places.take(&credentials.merchant) else {
            let busy = ApiError::EngineBusy { busy: Busy::Unavailable, retry_after: None };
            return RequestResult { outcome: Err(busy), unsure: false };
        };
        let url = format!("{}{path}", self.parts.engine.base);
        let headers = self.headers(credentials);
        let send = |body| self.send_once(&url, &headers, body, deadline);
        let mut response = send(body.clone()).await;
        let mut unsure = was_sent(&response);
        if let Err(OutboundError::Unreachable(cause) | OutboundError::NotConnected(cause)) = &response {
            tracing::debug!(%cause, "the connection to the engine failed; sending the request again");
            response = send(body).await;
            unsure |= was_sent(&response);
        }
        self.parts.outages.observe(&response);
        let outcome = response.map_err(failure).and_then(EngineResponse::of);
        // A response that cannot be read leaves the outcome open.
        unsure |= matches!(outcome, Err(ApiError::BadEngineReply { .. }));
        RequestResult { outcome, unsure }
    }

    async fn send_once(
        &self,
        url: &str,
        headers: &[(HeaderName, HeaderValue)],
        body: Option<Bytes>,
        deadline: RequestDeadline,
    ) -> Result<OutboundResponse, OutboundError> {
        let watch = Stopwatch::start();
        let timeout = deadline.left();
        let trust = &self.parts.engine.trust;
        let (response_body, egress) = (ResponseBody::Whole(RESPONSE_LIMIT), EgressPolicy::Anywhere);
        let request = OutboundRequest { url, trust, headers, spelled: &[], body, timeout, response_body, egress };
        let response = self.parts.deps.outbound.send(request, self.parts.deps.clock.now()).await;
        self.metrics().engine_request(outcome(&response), watch.elapsed());
        response
    }

    /// Returns the caller's key and signature, the forwarded headers, and no other header of the request.
    fn headers(&self, credentials: &EngineCredentials) -> Vec<(HeaderName, HeaderValue)> {
        let ForwardedHeaders { request_id, traceparent } = &self.forwarded;
        let own = [(API_KEY, &credentials.api_key), (SIGNATURE, &credentials.signature)];
        let passed = [(REQUEST_ID, request_id.as_ref()), (TRACEPARENT, traceparent.as_ref())];
        let passed = passed.into_iter().filter_map(|(name, value)| Some((name, value?)));
        own.into_iter().chain(passed).map(|(name, value)| (name, value.clone())).collect()
    }
}

/// Reports whether the engine may have accepted a request that got no response.
const fn was_sent(response: &Result<OutboundResponse, OutboundError>) -> bool {
    matches!(
        response,
        Err(OutboundError::Unreachable(_) | OutboundError::Timeout | OutboundError::TooLong | OutboundError::Malformed)
    )
}

fn failure(error: OutboundError) -> ApiError {
    match error {
        OutboundError::Timeout => ApiError::EngineTimeout,
        OutboundError::Unreachable(cause) | OutboundError::NotConnected(cause) => ApiError::EngineUnreachable { cause },
        OutboundError::TooLong
        | OutboundError::Malformed
        | OutboundError::Unusable(_)
        | OutboundError::Forbidden(_)
        | OutboundError::Crowded => ApiError::BadEngineReply { cause: error.to_string() },
    }
}

/// Returns the name of an outcome in metrics.
const fn outcome(response: &Result<OutboundResponse, OutboundError>) -> &'static str {
    match response {
        Ok(response) => match response.status {
            200 => "ok",
            400 => "invalid",
            404 => "not_found",
            409 => "conflict",
            429 | 503 => "busy",
            _ => "unexpected",
        },
        Err(error) => error.outcome(),
    }
}
