//! One exchange with the engine: bounded in time, repeated once when the connection failed before a reply.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use tokio::time::Instant;

use super::client::Remote;
use super::deadline::RequestDeadline;
use crate::domain::Direction;
use crate::failure::{ApiError, Busy};
use crate::outbound::{AnswerBody, EgressPolicy, OutboundError, OutboundRequest, OutboundResponse};
use crate::rules::ApiKey;
use crate::v2::{ForwardedHeaders, sign};

/// The longest answer of an engine, in bytes.
const ANSWER_LIMIT: usize = 64 * 1024;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const SIGNATURE: HeaderName = HeaderName::from_static("x-signature");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The longest wait that an engine's `Retry-After` is passed on as.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// What asking came to.
pub(super) struct RequestResult {
    /// What the engine said, or why nothing that can be passed on.
    pub outcome: Result<EngineResponse, ApiError>,
    /// A try may have been taken by the engine, and what came of it is not known.
    pub unsure: bool,
}

/// By whose key the engine is asked, with the signature over the body. `Debug` would show it, so there is none.
pub(super) struct EngineCredentials {
    api_key: HeaderValue,
    signature: HeaderValue,
}

impl EngineCredentials {
    /// Signs a body (the empty one of a GET) with a key's v2 secret.
    pub(super) fn signing(key: &ApiKey, body: &[u8]) -> Result<Self, ApiError> {
        let signature = HeaderValue::try_from(sign(key, body)?)
            .map_err(|_| ApiError::Internal { cause: "a signature is no header".to_owned() })?;
        Self::signed(key, signature)
    }

    /// Takes a signature that the key's holder made.
    pub(super) fn signed(key: &ApiKey, mut signature: HeaderValue) -> Result<Self, ApiError> {
        let mut api_key = HeaderValue::try_from(&*key.key)
            .map_err(|_| ApiError::Internal { cause: "the calling key is no header".to_owned() })?;
        api_key.set_sensitive(true);
        signature.set_sensitive(true);
        Ok(Self { api_key, signature })
    }
}

/// What an engine said, as far as the contract lets the gateway pass it on (section 5, "Replies of the engine").
pub(super) enum EngineResponse {
    /// 200.
    Done(Bytes),
    /// 400.
    Invalid(Bytes),
    /// 404.
    NotFound(Bytes),
    /// 409.
    Conflict(Bytes),
    /// 429 or 503.
    Busy(Busy, Option<Duration>, Bytes),
}

impl EngineResponse {
    /// Reads an answer's status; any other is nothing that can be passed on.
    fn of(answer: OutboundResponse) -> Result<Self, ApiError> {
        let OutboundResponse { status, retry_after, body } = answer;
        let retry_after = retry_after.map(|wait| wait.min(LONGEST_WAIT));
        match status {
            200 => Ok(Self::Done(body)),
            400 => Ok(Self::Invalid(body)),
            404 => Ok(Self::NotFound(body)),
            409 => Ok(Self::Conflict(body)),
            429 => Ok(Self::Busy(Busy::TooManyRequests, retry_after, body)),
            503 => Ok(Self::Busy(Busy::Unavailable, retry_after, body)),
            other => Err(ApiError::BadEngineReply { cause: format!("it answered HTTP {other}") }),
        }
    }
}

impl Remote {
    /// Until when a request that is taken up now has to be answered.
    pub(super) fn deadline(&self) -> RequestDeadline {
        RequestDeadline::after(self.parts.engine.timeout)
    }

    /// Has the engine create an operation from exactly these bytes.
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

    /// Asks the engine for the record of a transaction, whose id is digits.
    pub(super) async fn get(
        &self,
        transaction_id: &str,
        credentials: &EngineCredentials,
        deadline: RequestDeadline,
    ) -> Result<EngineResponse, ApiError> {
        let path = format!("/transactions/{transaction_id}");
        self.exchange(&path, credentials, None, deadline).await.outcome
    }

    /// Asks, and once more when the connection failed before a reply: what is asked of v2 may be asked twice.
    async fn exchange(
        &self,
        path: &str,
        credentials: &EngineCredentials,
        body: Option<Bytes>,
        deadline: RequestDeadline,
    ) -> RequestResult {
        let url = format!("{}{path}", self.parts.engine.base);
        let headers = self.headers(credentials);
        let ask = |body| self.ask_once(&url, &headers, body, deadline);
        let mut answer = ask(body.clone()).await;
        let mut unsure = was_sent(&answer);
        if let Err(OutboundError::Unreachable(cause) | OutboundError::NotConnected(cause)) = &answer {
            tracing::debug!(%cause, "the connection to the engine failed; asking once more");
            answer = ask(body).await;
            unsure |= was_sent(&answer);
        }
        self.parts.outages.observe(&answer);
        let outcome = answer.map_err(failure).and_then(EngineResponse::of);
        // An answer that says nothing leaves what came of it open.
        unsure |= matches!(outcome, Err(ApiError::BadEngineReply { .. }));
        RequestResult { outcome, unsure }
    }

    async fn ask_once(
        &self,
        url: &str,
        headers: &[(HeaderName, HeaderValue)],
        body: Option<Bytes>,
        deadline: RequestDeadline,
    ) -> Result<OutboundResponse, OutboundError> {
        let started = Instant::now();
        let timeout = deadline.left();
        let trust = &self.parts.engine.trust;
        let (answer, reach) = (AnswerBody::Whole(ANSWER_LIMIT), EgressPolicy::Anywhere);
        let question = OutboundRequest { url, trust, headers, body, timeout, answer, reach };
        let answer = self.parts.outbound.ask(question, self.parts.clock.now()).await;
        self.metrics().engine_request(outcome(&answer), started.elapsed());
        answer
    }

    /// The caller's key and signature, what names its request, and nothing else of its headers.
    fn headers(&self, credentials: &EngineCredentials) -> Vec<(HeaderName, HeaderValue)> {
        let ForwardedHeaders { request_id, traceparent } = &self.forwarded;
        let own = [(API_KEY, &credentials.api_key), (SIGNATURE, &credentials.signature)];
        let passed = [(REQUEST_ID, request_id.as_ref()), (TRACEPARENT, traceparent.as_ref())];
        let passed = passed.into_iter().filter_map(|(name, value)| Some((name, value?)));
        own.into_iter().chain(passed).map(|(name, value)| (name, value.clone())).collect()
    }
}

/// Whether the engine may have taken what was asked, without an answer.
const fn was_sent(answer: &Result<OutboundResponse, OutboundError>) -> bool {
    matches!(answer, Err(OutboundError::Unreachable(_) | OutboundError::Timeout | OutboundError::TooLong))
}

fn failure(error: OutboundError) -> ApiError {
    match error {
        OutboundError::Timeout => ApiError::EngineTimeout,
        OutboundError::Unreachable(cause) | OutboundError::NotConnected(cause) => ApiError::EngineUnreachable { cause },
        OutboundError::TooLong | OutboundError::Unusable(_) | OutboundError::Forbidden(_) | OutboundError::Crowded => {
            ApiError::BadEngineReply { cause: error.to_string() }
        }
    }
}

/// What came of asking, as metrics count it.
const fn outcome(answer: &Result<OutboundResponse, OutboundError>) -> &'static str {
    match answer {
        Ok(answer) => match answer.status {
            200 => "ok",
            400 => "invalid",
            404 => "not_found",
            409 => "conflict",
            429 | 503 => "busy",
            _ => "unexpected",
        },
        Err(OutboundError::Unusable(_) | OutboundError::Forbidden(_) | OutboundError::Crowded) => "unusable",
        Err(OutboundError::NotConnected(_)) => "not_connected",
        Err(OutboundError::Unreachable(_)) => "unreachable",
        Err(OutboundError::Timeout) => "timeout",
        Err(OutboundError::TooLong) => "too_long",
    }
}
