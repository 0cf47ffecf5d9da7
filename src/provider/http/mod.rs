//! Requests to an HTTP provider about one operation (contract section 8; docs/providers.md).

pub(super) mod reply;
mod request;

pub(super) use request::ProviderBody;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

use crate::auth::signatures::sign_v2;
use crate::domain::{Operation, Outcome, UnixMillis};
use crate::engine::Report;
use crate::outbound::{self, Outbound, OutboundError, OutboundResponse};
use crate::rules::HttpProvider;
use crate::wire::members::read_object;

/// The longest response body, in bytes.
const RESPONSE_LIMIT: usize = 64 * 1024;

const SIGNATURE: HeaderName = HeaderName::from_static("x-signature");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProviderAnswer {
    /// The provider answered with this report.
    Reported(Report),
    /// It is unknown whether the money moves: the request has to be repeated. Never a result.
    Unknown(Unknown),
}

/// Why a result is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unknown {
    /// The outcome's label in the metrics.
    pub kind: &'static str,
    /// The cause, for the operator. It contains nothing that the provider sent but its status.
    pub cause: String,
    /// The wait that the provider requests (`Retry-After`).
    pub retry_after: Option<Duration>,
}

impl ProviderAnswer {
    /// Returns the outcome's label in the metrics.
    pub(super) const fn outcome(&self) -> &'static str {
        match self {
            Self::Reported(Report::Pending) => "pending",
            Self::Reported(Report::Prepared(_)) => "prepared",
            Self::Reported(Report::Finished(Outcome::Success { .. }, _)) => "success",
            Self::Reported(Report::Finished(Outcome::Failed, _)) => "failed",
            Self::Unknown(unknown) => unknown.kind,
        }
    }
}

/// Sends one request about an operation to its provider.
pub(super) async fn send(
    outbound: &Outbound,
    provider: &HttpProvider,
    body: ProviderBody<'_>,
    now: UnixMillis,
) -> ProviderAnswer {
    let (operation, body) = (body.operation, request::body(body));
    let headers = [
        (SIGNATURE, sign_v2(provider.secrets.signing(), body.as_bytes())),
        (IDEMPOTENCY_KEY, operation.id.to_string()),
    ];
    // Hexadecimal and decimal digits are always valid in a header.
    let headers =
        headers.map(|(name, text)| (name, HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))));
    let request = outbound::OutboundRequest {
        url: &provider.url,
        trust: &provider.trust,
        headers: &headers,
        spelled: &[],
        body: Some(Bytes::from(body)),
        timeout: provider.timeout,
        response_body: outbound::ResponseBody::Whole(RESPONSE_LIMIT),
        egress: outbound::EgressPolicy::Anywhere,
    };
    match outbound.send(request, now).await {
        Ok(answer) => interpret(&answer, operation),
        Err(error) => {
            ProviderAnswer::Unknown(Unknown { kind: kind(&error), cause: error.to_string(), retry_after: None })
        }
    }
}

const fn kind(error: &OutboundError) -> &'static str {
    if matches!(error, OutboundError::NotConnected(_)) { "unreachable" } else { error.outcome() }
}

/// Interprets a response about an operation.
fn interpret(answer: &OutboundResponse, operation: &Operation) -> ProviderAnswer {
    let unknown = |kind, cause| ProviderAnswer::Unknown(Unknown { kind, cause, retry_after: answer.retry_after });
    if !(200..300).contains(&answer.status) {
        return unknown("refused", format!("it answered HTTP {}", answer.status));
    }
    let read = read_object(&answer.body).and_then(|object| reply::read(&object, operation));
    match read {
        Ok(report) => ProviderAnswer::Reported(report),
        Err(error) => unknown("malformed", format!("its answer is malformed: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::Outcome;
    use crate::provider::testing::withdrawal;

    fn answer(status: u16, body: &[u8]) -> ProviderAnswer {
        let retry_after = Some(Duration::from_secs(7));
        interpret(&OutboundResponse { status, retry_after, body: Bytes::copy_from_slice(body) }, &withdrawal())
    }

    #[test]
    fn only_a_2xx_with_a_valid_object_is_a_report() {
        let success = br#"{"transaction_id":"4711","status":"SUCCESS"}"#;
        for status in [200, 201, 202, 299] {
            assert_eq!(
                answer(status, success),
                ProviderAnswer::Reported(Report::from(Outcome::Success { payer: None }))
            );
        }
        for status in [100, 301, 302, 307, 400, 401, 404, 409, 410, 422, 429, 500, 502, 503, 504, 599] {
            assert_eq!(answer(status, success).outcome(), "refused", "{status}");
            assert_eq!(
                answer(status, br#"{"transaction_id":"4711","status":"FAILED"}"#).outcome(),
                "refused",
                "{status}"
            );
        }
        let doubled = br#"{"transaction_id":"4711","status":"FAILED","status":"FAILED"}"#;
        let escaped = br#"{"transaction_id":"4711","status":"FAILED","st\u0061tus":"SUCCESS"}"#;
        let of_another = br#"{"transaction_id":"4712","status":"SUCCESS"}"#.as_slice();
        let without_id = br#"{"status":"SUCCESS"}"#.as_slice();
        for body in [
            of_another,
            without_id,
            &b""[..],
            b"FAILED",
            b"[]",
            b"null",
            b"\xff",
            b"{\"status\":\"FAILED\"",
            doubled,
            escaped,
        ] {
            assert_eq!(answer(200, body).outcome(), "malformed", "{body:?}");
        }
        let ProviderAnswer::Unknown(unknown) = answer(503, b"") else { panic!("unknown") };
        assert_eq!(unknown.retry_after, Some(Duration::from_secs(7)));
    }

    #[test]
    fn what_a_provider_sent_is_not_repeated() {
        let body = br#"{"status":"4111111111111111","4111111111111111":1,"4111111111111111":2}"#;
        let ProviderAnswer::Unknown(unknown) = answer(200, body) else { panic!("unknown") };
        assert!(!unknown.cause.contains("4111"), "{}", unknown.cause);
    }

    proptest! {
        #[test]
        fn any_bytes_are_handled(status in 100_u16..600, body in prop::collection::vec(any::<u8>(), 0..100)) {
            let outcome = answer(status, &body);
            prop_assert!((200..300).contains(&status) || matches!(outcome, ProviderAnswer::Unknown(_)));
        }
    }
}
