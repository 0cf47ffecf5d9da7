//! The admin listener's replies. No other admin code uses HTTP statuses.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;

/// A reply of the admin listener.
pub(super) type AdminReply = Response<Full<Bytes>>;

const JSON: &str = "application/json";

/// Replies 200 with a body of this type.
pub(super) fn ok(content_type: &'static str, body: impl Into<Bytes>) -> AdminReply {
    text(StatusCode::OK, content_type, body)
}

/// Replies 200 with a line of text.
pub(super) fn text_line(line: &'static str) -> AdminReply {
    ok("text/plain; charset=utf-8", line)
}

/// Replies 200 with a JSON document.
pub(super) fn document(document: &impl serde::Serialize) -> AdminReply {
    json(StatusCode::OK, document)
}

/// Replies 422 with a JSON document: the operation was attempted and failed, and the document states why.
pub(super) fn unprocessable(document: &impl serde::Serialize) -> AdminReply {
    json(StatusCode::UNPROCESSABLE_ENTITY, document)
}

/// Replies 400.
pub(super) fn bad_request(message: &str) -> AdminReply {
    error(StatusCode::BAD_REQUEST, message)
}

/// Replies 401: the token is missing or wrong.
pub(super) fn unauthorized() -> AdminReply {
    let mut reply = error(StatusCode::UNAUTHORIZED, "send the admin token as Authorization: Bearer");
    reply.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    reply
}

/// Replies 403.
pub(super) fn forbidden(message: &str) -> AdminReply {
    error(StatusCode::FORBIDDEN, message)
}

/// Replies 404.
pub(super) fn not_found(message: &str) -> AdminReply {
    error(StatusCode::NOT_FOUND, message)
}

/// Replies 405 with the methods that are allowed.
pub(super) fn method_not_allowed(allow: &'static str) -> AdminReply {
    let mut reply = error(StatusCode::METHOD_NOT_ALLOWED, "this path does not take this method");
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    reply
}

/// Replies 409.
pub(super) fn conflict(message: &str) -> AdminReply {
    error(StatusCode::CONFLICT, message)
}

/// Replies 503.
pub(super) fn unavailable(reason: &str) -> AdminReply {
    error(StatusCode::SERVICE_UNAVAILABLE, reason)
}

fn error(status: StatusCode, message: &str) -> AdminReply {
    json(status, &serde_json::json!({ "error": { "code": status.as_u16(), "message": message } }))
}

fn json(status: StatusCode, document: &impl serde::Serialize) -> AdminReply {
    let body = serde_json::to_string(document).unwrap_or_default();
    text(status, JSON, body + "\n")
}

fn text(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> AdminReply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    reply
}
