//! Replies: the only place where errors become HTTP.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use serde::Serialize;

use crate::auth::Interface;
use crate::error::{AdmissionError, ApiError, Busy, EngineError, EngineReply, LegacyError};
use crate::json::write_string;
use crate::pages::{Html, HtmlPage, PageResponse, Refresh};
use crate::rules::{Dialect, Merchant, PageState, Pages};

/// The `X-Request-Id` header, which every reply carries.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A finished reply.
pub type Reply = Response<Full<Bytes>>;

/// The status in the log of a request whose caller was gone before there was a reply, as other proxies log it.
pub const CALLER_GONE: u16 = 499;

/// What every reply to a request carries.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    /// `X-Request-Id`.
    pub request_id: &'a HeaderValue,
    /// The merchant of a v1 request, once its signature is proven: replies have the shape and notices of its dialect.
    pub v1_merchant: Option<&'a Merchant>,
    /// The API version by whose headers the request names a key; `None` for those of providers, engines and customers.
    pub interface: Option<Interface>,
    /// Whether the request names an order, which makes a repeat safe.
    pub names_order: bool,
    /// Whether the connection closes after this reply, because a body is left unread.
    pub close: bool,
    /// Whether browsers have to use TLS alone for this host (contract section 3).
    pub hsts: bool,
}

/// Makes a 200 with a JSON body.
#[must_use]
pub fn success(body: Bytes, envelope: &Envelope<'_>) -> Reply {
    let mut reply = json(StatusCode::OK, body, envelope);
    add_notices(&mut reply, envelope.v1_merchant);
    reply
}

/// Passes on a reply of the old v1 service: its status, its headers and its body.
#[must_use]
pub fn forwarded(reply: Response<Bytes>, envelope: &Envelope<'_>) -> Reply {
    let mut reply = reply.map(Full::new);
    add_envelope(&mut reply, envelope);
    add_notices(&mut reply, envelope.v1_merchant);
    reply
}

/// Makes the reply to a request that failed.
#[must_use]
pub fn failure(failure: &ApiError, envelope: &Envelope<'_>) -> Reply {
    let error_reply = error_reply(failure, envelope);
    let dialect = envelope.v1_merchant.map(|merchant| merchant.v1.dialect.as_ref());
    let body =
        error_reply.body.cloned().unwrap_or_else(|| error_body(error_reply.status, &error_reply.message, dialect));
    let mut reply = json(error_reply.status, body, envelope);
    error_reply.add_headers(&mut reply);
    add_notices(&mut reply, envelope.v1_merchant);
    reply
}

/// The language and texts of a page.
#[derive(Debug, Clone, Copy)]
pub struct ErrorFormat<'a> {
    /// The texts and templates of pages.
    pub pages: &'a Pages,
    /// `Accept-Language` of the browser.
    pub accept_language: &'a str,
}

/// Makes the reply to a customer's browser: a redirect or a page (contract section 9).
#[must_use]
pub fn step(step: &PageResponse, reader: ErrorFormat<'_>, envelope: &Envelope<'_>) -> Reply {
    let location = match step {
        PageResponse::Away(url) => url.as_str(),
        PageResponse::Link(link) => link.expose(),
        PageResponse::Page(page) => {
            let status = if page.contradicts { StatusCode::CONFLICT } else { StatusCode::OK };
            return shown(status, page, reader, envelope);
        }
    };
    let mut reply = for_customers(plain(StatusCode::SEE_OTHER, Bytes::new(), envelope));
    // By itself, hyper sends it for GET and not for HEAD.
    reply.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    // URLs are ASCII without spaces: their types guarantee it.
    match HeaderValue::from_str(location) {
        Ok(location) => drop(reply.headers_mut().insert(header::LOCATION, location)),
        Err(_) => *reply.status_mut() = StatusCode::INTERNAL_SERVER_ERROR,
    }
    reply
}

/// Makes the page for a customer's request that failed.
#[must_use]
pub fn failure_page(failure: &ApiError, reader: ErrorFormat<'_>, envelope: &Envelope<'_>) -> Reply {
    let error_reply = error_reply(failure, envelope);
    let page = match (error_reply.status, error_reply.retry_after) {
        // The page loads again by itself when the caller may try again.
        (_, Some(retry_after)) => {
            let refresh = Some(Refresh::again(whole_seconds(retry_after)));
            HtmlPage { refresh, ..HtmlPage::of(PageState::Busy) }
        }
        (StatusCode::FORBIDDEN, None) => HtmlPage::of(PageState::Refused),
        (_, None) => HtmlPage::of(PageState::Error),
    };
    let mut reply = shown(error_reply.status, &page, reader, envelope);
    error_reply.add_headers(&mut reply);
    reply
}

fn shown(status: StatusCode, page: &HtmlPage, reader: ErrorFormat<'_>, envelope: &Envelope<'_>) -> Reply {
    let request_id = envelope.request_id.to_str().unwrap_or_default();
    let Html { text, language, style_source } = page.html(reader.pages, reader.accept_language, request_id);
    let mut reply = for_customers(plain(status, text.into(), envelope));
    let policy = format!(
        "default-src 'none'; style-src '{style_source}'; img-src data:; form-action 'self'; frame-ancestors 'none'; \
         base-uri 'none'"
    );
    let refresh = page.refresh.as_ref().map(Refresh::value);
    let headers = reply.headers_mut();
    for (name, value) in [
        (header::CONTENT_LANGUAGE, Some(language)),
        (header::CONTENT_SECURITY_POLICY, Some(policy.as_str())),
        (header::REFRESH, refresh.as_deref()),
    ] {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
            headers.insert(name, value);
        }
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept, Accept-Language"));
    reply
}

/// Adds the headers of every reply to a customer's browser: it is not cached, sends no referrer to other sites, and cannot be
/// framed.
#[must_use]
pub fn for_customers(mut reply: Reply) -> Reply {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("x-robots-tag"), "noindex, nofollow"),
    ] {
        reply.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    reply
}

/// An error on its way to the caller.
struct ErrorReply<'a> {
    status: StatusCode,
    message: Cow<'a, str>,
    allow: Option<&'a str>,
    retry_after: Option<Duration>,
    /// Used in place of a body with the message.
    body: Option<&'a Bytes>,
}

/// The challenge of a 401: requests are signed, over `/api/v2` as in every dialect of v1.
const CHALLENGE: HeaderValue = HeaderValue::from_static(r#"HMAC-SHA256 realm="paybridge""#);

/// When to try again after an error that passes by itself.
const SOON: Duration = Duration::from_secs(1);

/// The one match from errors to HTTP (contract sections 3, 5 and 7).
fn error_reply<'a>(failure: &'a ApiError, envelope: &Envelope<'_>) -> ErrorReply<'a> {
    let order = match (envelope.names_order, envelope.v1_merchant) {
        (false, _) => "",
        (true, Some(_)) => ", with the same external_id,",
        (true, None) => ", with the same order_id,",
    };
    let again = |what| format!("{what}; the same request{order} may be sent again");
    match failure {
        ApiError::Refused(refusal) => admission_error_reply(refusal, envelope.interface),
        ApiError::Invalid(error) | ApiError::Untranslatable { error, .. } => {
            ErrorReply::new(StatusCode::BAD_REQUEST, error.sentence())
        }
        ApiError::Conflict(conflict) => ErrorReply::new(StatusCode::CONFLICT, conflict.error.sentence()),
        ApiError::NotFound => ErrorReply::new(StatusCode::NOT_FOUND, NOT_FOUND),
        ApiError::NotOffered(what) => {
            ErrorReply::new(StatusCode::NOT_IMPLEMENTED, format!("{what} is not offered by this gateway"))
        }
        ApiError::Unavailable { .. } => {
            ErrorReply::new(StatusCode::SERVICE_UNAVAILABLE, again("the service cannot take this now")).after(SOON)
        }
        ApiError::BadEngineReply { .. } => {
            ErrorReply::new(StatusCode::BAD_GATEWAY, again("the payment engine gave no usable answer"))
        }
        ApiError::EngineUnreachable { .. } => {
            ErrorReply::new(StatusCode::BAD_GATEWAY, again("the payment engine could not be reached"))
        }
        ApiError::EngineTimeout => {
            ErrorReply::new(StatusCode::GATEWAY_TIMEOUT, again("the payment engine did not answer in time"))
        }
        ApiError::EngineBusy { busy, retry_after } => {
            ErrorReply::new(busy_status(*busy), again("the payment engine cannot take this now"))
                .after(retry_after.unwrap_or(SOON))
        }
        ApiError::EngineReply(answered) => engine_error_reply(answered, envelope),
        ApiError::Legacy(LegacyError::Busy) => {
            ErrorReply::new(StatusCode::SERVICE_UNAVAILABLE, again(LEGACY_BUSY)).after(SOON)
        }
        ApiError::LegacyPath(LegacyError::Busy) => {
            let message = format!("{LEGACY_BUSY}; nothing was done, and the same request may be sent again");
            ErrorReply::new(StatusCode::SERVICE_UNAVAILABLE, message).after(SOON)
        }
        ApiError::Legacy(error) => {
            let (status, what) = legacy_error(error);
            ErrorReply::new(status, again(what))
        }
        ApiError::LegacyPath(error) => {
            let (status, what) = legacy_error(error);
            ErrorReply::new(status, format!("{what}; whether it has done anything is not known"))
        }
        ApiError::Internal { .. } => ErrorReply::new(StatusCode::INTERNAL_SERVER_ERROR, again("the gateway failed")),
    }
}

const LEGACY_BUSY: &str = "the payment service cannot take this now";

const fn legacy_error(error: &LegacyError) -> (StatusCode, &'static str) {
    match error {
        LegacyError::Unreachable { .. } => (StatusCode::BAD_GATEWAY, "the payment service could not be reached"),
        LegacyError::BadReply { .. } => (StatusCode::BAD_GATEWAY, "the payment service gave no usable answer"),
        LegacyError::Loop => (StatusCode::BAD_GATEWAY, "the request came back to the gateway that had forwarded it"),
        LegacyError::Timeout => (StatusCode::GATEWAY_TIMEOUT, "the payment service did not answer in time"),
        LegacyError::Busy => (StatusCode::SERVICE_UNAVAILABLE, LEGACY_BUSY),
    }
}

const fn busy_status(busy: Busy) -> StatusCode {
    match busy {
        Busy::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
        Busy::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Passes on a remote engine's reply: its own body, or a message where that cannot be passed on.
fn engine_error_reply<'a>(answered: &'a EngineReply, envelope: &Envelope<'_>) -> ErrorReply<'a> {
    let refused = "the payment engine refused the request";
    let error_reply = match answered.error {
        EngineError::Invalid => ErrorReply::new(StatusCode::BAD_REQUEST, refused),
        EngineError::Conflict => ErrorReply::new(StatusCode::CONFLICT, refused),
        EngineError::Busy(busy) => {
            let busy = ApiError::EngineBusy { busy, retry_after: answered.retry_after };
            let ErrorReply { status, message, retry_after, .. } = error_reply(&busy, envelope);
            ErrorReply { retry_after, ..ErrorReply::new(status, message.into_owned()) }
        }
    };
    ErrorReply { body: answered.body.as_ref(), ..error_reply }
}

/// One message for every kind of absence, of paths and of operations.
const NOT_FOUND: &str = "not found";

fn admission_error_reply(refusal: &AdmissionError, interface: Option<Interface>) -> ErrorReply<'_> {
    match refusal {
        AdmissionError::UnknownPath => ErrorReply::new(StatusCode::NOT_FOUND, NOT_FOUND),
        AdmissionError::WrongMethod { allow } => ErrorReply {
            allow: Some(allow),
            ..ErrorReply::new(StatusCode::METHOD_NOT_ALLOWED, format!("this path is served with {allow} only"))
        },
        AdmissionError::NotJson => ErrorReply::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body must be sent with Content-Type: application/json",
        ),
        AdmissionError::NotForm => ErrorReply::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the form must be sent with Content-Type: application/x-www-form-urlencoded",
        ),
        AdmissionError::Encoded => {
            ErrorReply::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Encoding is not accepted")
        }
        AdmissionError::BodyTooLarge => ErrorReply::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"),
        AdmissionError::HeadTooLarge => {
            ErrorReply::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "the request line and headers are too large")
        }
        AdmissionError::BodyTooSlow => ErrorReply::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"),
        AdmissionError::HeadTooSlow => {
            ErrorReply::new(StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time")
        }
        AdmissionError::Malformed(what) => ErrorReply::new(StatusCode::BAD_REQUEST, *what),
        AdmissionError::QueryOnPost => {
            ErrorReply::new(StatusCode::BAD_REQUEST, "query parameters are not accepted on POST")
        }
        AdmissionError::Unauthenticated(_) => ErrorReply::new(
            StatusCode::UNAUTHORIZED,
            match interface {
                Some(Interface::V1) => {
                    "authentication failed: the API key is unknown, or the signature or its timestamp is not valid"
                }
                Some(Interface::V2) => "authentication failed: the API key is unknown, or the signature is not valid",
                None => "authentication failed: the signature is not valid",
            },
        ),
        AdmissionError::AddressNotAllowed => {
            ErrorReply::new(StatusCode::FORBIDDEN, "this API key may not be used from the address of this request")
        }
        AdmissionError::RateLimited { retry_after } => {
            ErrorReply::new(StatusCode::TOO_MANY_REQUESTS, "too many requests with this API key").after(*retry_after)
        }
        AdmissionError::FailedTooOften { retry_after } => {
            ErrorReply::new(StatusCode::TOO_MANY_REQUESTS, "too many failed authentications").after(*retry_after)
        }
        AdmissionError::Link(_) => ErrorReply::new(StatusCode::FORBIDDEN, "the link is not valid, or no longer valid"),
        AdmissionError::PagesTooOften { retry_after } => {
            ErrorReply::new(StatusCode::TOO_MANY_REQUESTS, "too many requests from this address").after(*retry_after)
        }
    }
}

impl<'a> ErrorReply<'a> {
    fn new(status: StatusCode, message: impl Into<Cow<'a, str>>) -> Self {
        Self { status, message: message.into(), allow: None, retry_after: None, body: None }
    }

    fn after(self, retry_after: Duration) -> Self {
        Self { retry_after: Some(retry_after), ..self }
    }

    /// Adds `WWW-Authenticate`, `Allow` and `Retry-After`.
    fn add_headers(&self, reply: &mut Reply) {
        // RFC 9110, 15.5.2; some clients throw without it.
        if self.status == StatusCode::UNAUTHORIZED {
            reply.headers_mut().insert(header::WWW_AUTHENTICATE, CHALLENGE);
        }
        if let Some(allow) = self.allow.and_then(|allow| HeaderValue::from_str(allow).ok()) {
            reply.headers_mut().insert(header::ALLOW, allow);
        }
        if let Some(after) = self.retry_after {
            reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(whole_seconds(after)));
        }
    }
}

/// Returns seconds for `Retry-After`, never too early: rounded up, at least 1.
fn whole_seconds(span: Duration) -> u64 {
    span.as_secs().saturating_add(u64::from(span.subsec_nanos() > 0)).max(1)
}

#[derive(Serialize)]
struct ErrorValues<'a> {
    code: u16,
    message: &'a str,
}

/// Writes an error in the dialect's shape where it has one, else in the default one (contract sections 3 and 4).
fn error_body(status: StatusCode, message: &str, dialect: Option<&Dialect>) -> Bytes {
    let values = ErrorValues { code: status.as_u16(), message };
    let in_dialect = dialect.and_then(|dialect| dialect.rendered("error", || &values));
    in_dialect.unwrap_or_else(|| default_error(&values).into())
}

fn default_error(ErrorValues { code, message }: &ErrorValues<'_>) -> String {
    const AROUND: usize = r#"{"error":{"code":65535,"message":""}}"#.len();
    let mut body = String::with_capacity(AROUND + message.len());
    body.push_str(r#"{"error":{"code":"#);
    body.push_str(itoa::Buffer::new().format(*code));
    body.push_str(r#","message":"#);
    write_string(&mut body, message);
    body.push_str("}}");
    body
}

fn json(status: StatusCode, body: Bytes, envelope: &Envelope<'_>) -> Reply {
    let mut reply = plain(status, body, envelope);
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

fn plain(status: StatusCode, body: Bytes, envelope: &Envelope<'_>) -> Reply {
    let mut reply = Response::new(Full::new(body));
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    add_envelope(&mut reply, envelope);
    reply
}

/// Adds what every reply carries.
fn add_envelope(reply: &mut Reply, envelope: &Envelope<'_>) {
    let headers = reply.headers_mut();
    headers.insert(REQUEST_ID, envelope.request_id.clone());
    if envelope.close {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if envelope.hsts {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
}

/// Adds `Deprecation`, `Sunset` and `Link`, where the merchant's rules announce the end of v1.
fn add_notices(reply: &mut Reply, v1_merchant: Option<&Merchant>) {
    for (name, value) in v1_merchant.iter().flat_map(|merchant| &merchant.v1.notices) {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
            // A forwarded reply may have its own: only of links there may be several.
            if name == header::LINK {
                reply.headers_mut().append(name, value);
            } else {
                reply.headers_mut().insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::UnixMillis;
    use crate::error::{AuthenticationFailure, RequestError};
    use crate::rules::{LoadOptions, reply_samples};

    fn answered(error: EngineError) -> ApiError {
        ApiError::EngineReply(EngineReply { error, member: None, retry_after: None, body: None })
    }

    #[test]
    fn an_engine_is_reported_in_its_own_words() {
        let body = Bytes::from_static(b"{\"error\":{\"code\":429,\"message\":\"slow down\"}}");
        let retry_after = Some(Duration::from_secs(7));
        let error = EngineError::Busy(Busy::TooManyRequests);
        let reply = failure(
            &ApiError::EngineReply(EngineReply { error, member: None, retry_after, body: Some(body.clone()) }),
            &ENVELOPE,
        );
        assert_eq!((reply.status().as_u16(), &reply.headers()[header::RETRY_AFTER]), (429, &HeaderValue::from(7)));
        assert_eq!(format!("{:?}", reply.body()), format!("{:?}", Full::new(body)));
        let silent = failure(&answered(EngineError::Conflict), &ENVELOPE);
        assert!(format!("{:?}", silent.body()).contains("refused the request"));
    }

    #[test]
    fn failures_of_the_engine_say_that_a_repeat_is_safe() {
        let cause = String::new;
        for failure in [
            ApiError::Unavailable { cause: cause() },
            ApiError::BadEngineReply { cause: cause() },
            ApiError::EngineUnreachable { cause: cause() },
            ApiError::EngineTimeout,
            ApiError::EngineBusy { busy: Busy::Unavailable, retry_after: None },
            ApiError::Legacy(LegacyError::Unreachable { cause: cause() }),
            ApiError::Legacy(LegacyError::BadReply { cause: cause() }),
            ApiError::Legacy(LegacyError::Timeout),
            ApiError::Legacy(LegacyError::Busy),
        ] {
            let message =
                |names_order| error_reply(&failure, &Envelope { names_order, ..ENVELOPE }).message.into_owned();
            assert!(
                message(true).ends_with("; the same request, with the same order_id, may be sent again"),
                "{failure:?}"
            );
            assert!(message(false).ends_with("; the same request may be sent again"), "{failure:?}");
        }
    }

    #[test]
    fn a_401_names_the_parts_that_the_request_has() {
        let unauthenticated = AdmissionError::Unauthenticated(AuthenticationFailure::UnknownKey).into();
        for (interface, parts) in [
            (Some(Interface::V1), "the API key is unknown, or the signature or its timestamp is not valid"),
            (Some(Interface::V2), "the API key is unknown, or the signature is not valid"),
            (None, "the signature is not valid"),
        ] {
            let error_reply = error_reply(&unauthenticated, &Envelope { interface, ..ENVELOPE });
            assert_eq!(error_reply.message, format!("authentication failed: {parts}"));
        }
    }

    /// Every failure, its private cause marked. The match has no wildcard, so that a new variant is added here, too.
    fn marked_failures() -> Vec<ApiError> {
        let cause = || MARK.to_owned();
        let all = vec![
            ApiError::Refused(AdmissionError::UnknownPath),
            ApiError::Invalid(RequestError::body("is wrong")),
            ApiError::Untranslatable { error: RequestError::body("is wrong"), reason: "shape" },
            ApiError::Conflict(RequestError::body("exists").into()),
            ApiError::NotFound,
            ApiError::NotOffered("the balance"),
            ApiError::Unavailable { cause: cause() },
            ApiError::BadEngineReply { cause: cause() },
            ApiError::EngineUnreachable { cause: cause() },
            ApiError::EngineTimeout,
            ApiError::EngineBusy { busy: Busy::Unavailable, retry_after: None },
            answered(EngineError::Invalid),
            ApiError::Legacy(LegacyError::Unreachable { cause: cause() }),
            ApiError::LegacyPath(LegacyError::BadReply { cause: cause() }),
            ApiError::Internal { cause: cause() },
        ];
        for failure in &all {
            match failure {
                ApiError::Unavailable { cause }
                | ApiError::BadEngineReply { cause }
                | ApiError::EngineUnreachable { cause }
                | ApiError::Legacy(LegacyError::Unreachable { cause } | LegacyError::BadReply { cause })
                | ApiError::LegacyPath(LegacyError::Unreachable { cause } | LegacyError::BadReply { cause })
                | ApiError::Internal { cause } => assert_eq!(cause, MARK),
                ApiError::Refused(_)
                | ApiError::Invalid(_)
                | ApiError::Untranslatable { .. }
                | ApiError::Conflict(_)
                | ApiError::NotFound
                | ApiError::NotOffered(_)
                | ApiError::EngineTimeout
                | ApiError::EngineBusy { .. }
                | ApiError::Legacy(LegacyError::Timeout | LegacyError::Loop | LegacyError::Busy)
                | ApiError::LegacyPath(LegacyError::Timeout | LegacyError::Loop | LegacyError::Busy)
                | ApiError::EngineReply(_) => {}
            }
        }
        let variants: std::collections::HashSet<_> = all.iter().map(std::mem::discriminant).collect();
        assert_eq!(variants.len(), 15, "every variant once");
        all
    }

    static ID: HeaderValue = HeaderValue::from_static("r");

    const ENVELOPE: Envelope<'static> =
        Envelope { request_id: &ID, v1_merchant: None, interface: None, names_order: false, close: false, hsts: false };

    const MARK: &str = "marked-private-cause";

    #[tokio::test]
    async fn private_causes_are_in_no_reply() {
        let directory = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("gateway.toml", "");
        write("dialects/d.toml", "[replies]\nerror = '{\"oops\":{{ message|tojson }},\"no\":{{ code }}}'");
        write("merchants/m.toml", "name = \"m\"\n[v1]\ndialect = \"d\"\n");
        let rules = crate::rules::load(directory.path(), UnixMillis(0), None, LoadOptions::default()).unwrap();
        let merchant = rules.merchants.values().next().unwrap();
        let format = ErrorFormat { pages: &rules.pages, accept_language: "en" };
        for error in marked_failures() {
            for v1_merchant in [None, Some(merchant.as_ref())] {
                let envelope = Envelope { v1_merchant, close: true, hsts: true, ..ENVELOPE };
                for reply in [failure(&error, &envelope), failure_page(&error, format, &envelope)] {
                    let (head, body) = reply.into_parts();
                    let body = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
                    let text = format!("{head:?}{}", String::from_utf8_lossy(&body));
                    assert!(!body.is_empty() && !text.contains(MARK), "{text}");
                }
            }
        }
    }

    #[test]
    fn retry_after_is_never_too_early() {
        for (millis, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (59_999, 60)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
        }
        assert_eq!(whole_seconds(Duration::MAX), u64::MAX);
    }

    #[test]
    fn the_default_error_is_what_the_contract_shows() {
        let body = error_body(StatusCode::BAD_REQUEST, "amount: \"x\" is not one", None);
        assert_eq!(body, r#"{"error":{"code":400,"message":"amount: \"x\" is not one"}}"#);
    }

    #[test]
    fn an_error_that_the_dialect_cannot_write_has_the_default_shape() {
        let directory = tempfile::tempdir().unwrap();
        let template =
            r#"{% if message == "boom" %}{{ message|safe }}{% else %}{"no":{{ code }},"why":{{ message }}}{% endif %}"#;
        std::fs::create_dir(directory.path().join("dialects")).unwrap();
        std::fs::write(directory.path().join("gateway.toml"), "").unwrap();
        std::fs::write(directory.path().join("dialects/d.toml"), format!("[replies]\nerror = '{template}'")).unwrap();
        let rules = crate::rules::load(directory.path(), UnixMillis(0), None, LoadOptions::default()).unwrap();
        let body = |message| error_body(StatusCode::NOT_FOUND, message, Some(&rules.dialects["d"]));
        assert_eq!(body("a \"b\"\n"), r#"{"no":404,"why":"a \"b\"\n"}"#);
        assert_eq!(body("boom"), r#"{"error":{"code":404,"message":"boom"}}"#);
        let tried: Vec<_> = reply_samples("error", &rules.dialects["d"].statuses);
        let values = serde_json::to_value(ErrorValues { code: 404, message: "boom" }).unwrap();
        let members = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert!(
            tried.iter().all(|sample| members(sample) == members(&values)),
            "a template is given what it was tried with"
        );
    }
}
