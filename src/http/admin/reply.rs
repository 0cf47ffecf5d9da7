//! The admin listener's replies. No other admin code uses HTTP statuses.

use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, RETRY_AFTER, SET_COOKIE,
    WWW_AUTHENTICATE,
};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;

use serde::Serialize;

use super::chrome::Chrome;
use super::refused::{Refused, RouteKind};
use crate::console::{self, ConsolePage};
use crate::operations::ActionRefusal;
use crate::rules::Role;

/// A reply of the admin listener.
pub(super) type AdminReply = Response<Full<Bytes>>;

/// The `Content-Security-Policy` of the console's pages. `connect-src` is for the script, which reads the overview again.
pub(super) const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; \
     connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

const JSON: &str = "application/json";

/// Why a page or an action is refused; its template has the words for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum ConsoleError {
    BadRequest,
    MissingRole,
    ReadOnly,
    OtherOrigin,
    NotFound,
    NotDone,
    TooManyAttempts,
    Unavailable,
}

/// The page of a refused request. It explains what happened and leads to a page that works.
#[derive(Debug, Serialize)]
pub(super) struct ErrorPage<'a> {
    pub error: ConsoleError,
    /// What exactly is wrong, if more is known.
    pub detail: Option<String>,
    /// The request's id, which log lines have too.
    pub request_id: &'a str,
}

/// Why a request does not reach its handler.
#[derive(Debug)]
pub(super) enum Rejection {
    NoHost,
    ForeignHost,
    ForeignOrigin,
    /// A browser with a session does not report where the request comes from.
    UnknownOrigin,
    /// There is no user, or the token is wrong.
    Unauthorized,
    /// Too many tokens of this address were wrong: how long it has to wait.
    TooManyFailures(Duration),
    /// The user lacks this role.
    Role(Role),
    ReadOnly,
    NotFound,
    /// The path takes these methods.
    Method(String),
    NoForm,
    LargeForm,
    SlowForm,
    /// The form is malformed, in this way.
    WrongForm(&'static str),
}

impl Rejection {
    const fn status_and_page(&self) -> (StatusCode, ConsoleError) {
        match self {
            Self::NoHost | Self::WrongForm(_) => (StatusCode::BAD_REQUEST, ConsoleError::BadRequest),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, ConsoleError::BadRequest),
            Self::ForeignHost | Self::ForeignOrigin | Self::UnknownOrigin => {
                (StatusCode::FORBIDDEN, ConsoleError::OtherOrigin)
            }
            Self::Role(_) => (StatusCode::FORBIDDEN, ConsoleError::MissingRole),
            Self::ReadOnly => (StatusCode::FORBIDDEN, ConsoleError::ReadOnly),
            Self::NotFound => (StatusCode::NOT_FOUND, ConsoleError::NotFound),
            Self::Method(_) => (StatusCode::METHOD_NOT_ALLOWED, ConsoleError::BadRequest),
            Self::SlowForm => (StatusCode::REQUEST_TIMEOUT, ConsoleError::BadRequest),
            Self::LargeForm => (StatusCode::PAYLOAD_TOO_LARGE, ConsoleError::BadRequest),
            Self::NoForm => (StatusCode::UNSUPPORTED_MEDIA_TYPE, ConsoleError::BadRequest),
            Self::TooManyFailures(_) => (StatusCode::TOO_MANY_REQUESTS, ConsoleError::TooManyAttempts),
        }
    }

    /// Returns the reason as a word of the log, and what is wrong, for the caller and the log.
    const fn word_and_message(&self) -> (&'static str, &'static str) {
        match self {
            Self::NoHost => ("no_host", "send exactly one Host"),
            Self::ForeignHost => {
                ("foreign_host", "Host must be localhost, the listening address or one of [admin] hosts")
            }
            Self::ForeignOrigin => ("foreign_origin", "web pages of other origins may not use this listener"),
            Self::UnknownOrigin => ("unknown_origin", "with a session, an action needs Origin or Sec-Fetch-Site"),
            Self::Unauthorized => ("unauthorized", "send the token of a user as Authorization: Bearer"),
            Self::TooManyFailures(_) => ("too_many_failures", "too many wrong tokens from this address: wait a minute"),
            Self::Role(Role::Viewer) => ("role", "this needs a user"),
            Self::Role(Role::Operator) => ("role", "this needs the role operator"),
            Self::ReadOnly => ("read_only", "[admin] read_only is set: nothing can be changed from here"),
            Self::NotFound => ("not_found", "not found"),
            Self::Method(_) => ("method", "this path does not take this method"),
            Self::NoForm => ("no_form", "send a form as application/x-www-form-urlencoded"),
            Self::LargeForm => {
                ("large_form", "the body is larger than 128 KiB of a form, 8 KiB to sign in, or 16 KiB of JSON")
            }
            Self::SlowForm => ("slow_form", "the form did not arrive in time"),
            Self::WrongForm(reason) => ("wrong_form", reason),
        }
    }

    /// Returns the reason as a word of the log.
    pub(super) const fn as_str(&self) -> &'static str {
        self.word_and_message().0
    }

    /// Returns what is wrong, for the caller and the log.
    pub(super) const fn message(&self) -> &'static str {
        self.word_and_message().1
    }

    /// Reports whether a page of another place may have made the request.
    pub(super) fn is_of_another_place(&self) -> bool {
        self.status_and_page().1 == ConsoleError::OtherOrigin
    }

    /// Returns what its page shows: the error, and what exactly is wrong.
    pub(super) fn page(&self) -> (ConsoleError, Option<String>) {
        let (_, error) = self.status_and_page();
        (error, (error != ConsoleError::NotFound).then(|| format!("{}.", self.message())))
    }

    /// Returns the header that belongs to the status.
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        if let Self::Method(allow) = self {
            return Some((ALLOW, HeaderValue::try_from(allow).ok()?));
        }
        if let Self::TooManyFailures(wait) = self {
            return Some((RETRY_AFTER, wait.as_secs().saturating_add(1).into()));
        }
        // RFC 6750 requires a parameter.
        let challenge = HeaderValue::from_static(r#"Bearer realm="paybridge""#);
        matches!(self, Self::Unauthorized).then_some((WWW_AUTHENTICATE, challenge))
    }

    /// Returns the reply to a request of this kind.
    pub(super) fn reply(&self, kind: RouteKind) -> AdminReply {
        if kind != RouteKind::Page {
            return self.with_header(error(self.status_and_page().0, self.message()));
        }
        let (error, detail) = self.page();
        self.reply_with(console::render(
            ConsolePage::Error,
            &ErrorPage { error, detail, request_id: "" },
            &Chrome::default(),
        ))
    }

    /// Replies with its page.
    pub(super) fn reply_with(&self, document: String) -> AdminReply {
        self.with_header(html(self.status_and_page().0, document))
    }

    /// Returns the sign-in form again, after a token that was wrong.
    pub(super) fn form(&self, form: impl FnOnce(&str) -> String) -> AdminReply {
        let is_wrong = matches!(self, Self::Unauthorized);
        let message = if is_wrong { "this is no user's token" } else { self.message() };
        self.reply_with(form(message))
    }

    fn with_header(&self, mut reply: AdminReply) -> AdminReply {
        if let Some((name, value)) = self.header() {
            reply.headers_mut().insert(name, value);
        }
        reply
    }
}

/// Replies 200 with a page of the console.
pub(super) fn page(document: String) -> AdminReply {
    html(StatusCode::OK, document)
}

/// Replies 400 with a page whose form has a problem.
pub(super) fn page_with_problem(document: String) -> AdminReply {
    html(StatusCode::BAD_REQUEST, document)
}

/// Replies to a browser whose request a handler refuses.
pub(super) fn refused_page(refused: &Refused, document: String) -> AdminReply {
    refused_with(refused, |status| html(status, document))
}

/// Replies with a static file of the console, whose name changes with its content.
pub(super) fn asset(path: &str) -> AdminReply {
    let Some((content_type, bytes)) = console::asset(path) else { return Rejection::NotFound.reply(RouteKind::Static) };
    let mut reply = ok(content_type, bytes);
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=31536000, immutable"));
    reply
}

/// Sends the browser to another page of the console, which it requests with GET.
pub(super) fn see_other(to: &str) -> AdminReply {
    let mut reply = html(StatusCode::SEE_OTHER, String::new());
    // A return path is visible ASCII.
    reply.headers_mut().insert(LOCATION, HeaderValue::try_from(to).unwrap_or(HeaderValue::from_static("/")));
    reply
}

/// Adds a cookie to a reply.
pub(super) fn with_cookie(mut reply: AdminReply, cookie: &str) -> AdminReply {
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        reply.headers_mut().insert(SET_COOKIE, cookie);
    }
    reply
}

fn html(status: StatusCode, document: String) -> AdminReply {
    let mut reply = text(status, "text/html; charset=utf-8", document);
    let headers = reply.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    reply
}

/// Replies 200 with a body of this type.
pub(super) fn ok(content_type: &'static str, body: impl Into<Bytes>) -> AdminReply {
    text(StatusCode::OK, content_type, body)
}

/// Replies 200 with a line of text.
pub(super) fn text_line(line: &'static str) -> AdminReply {
    ok("text/plain; charset=utf-8", line)
}

/// Replies 200 with a JSON document.
pub(super) fn document(document: &impl Serialize) -> AdminReply {
    json(StatusCode::OK, document)
}

/// Replies 202 with a JSON document: it takes effect later.
pub(super) fn accepted(document: &impl Serialize) -> AdminReply {
    json(StatusCode::ACCEPTED, document)
}

/// Replies 422 with a JSON document: the operation was attempted and failed, and the document states why.
pub(super) fn unprocessable(document: &impl Serialize) -> AdminReply {
    json(StatusCode::UNPROCESSABLE_ENTITY, document)
}

/// Replies to a program whose request a handler refuses.
pub(super) fn refused(refused: &Refused) -> AdminReply {
    refused_with(refused, |status| error(status, &refused.reason()))
}

/// Replies with the status of a refusal, and the header that belongs to it.
fn refused_with(refused: &Refused, reply: impl FnOnce(StatusCode) -> AdminReply) -> AdminReply {
    let status = match refused {
        Refused::Invalid(_) => StatusCode::BAD_REQUEST,
        Refused::NotFound(_) | Refused::Action(ActionRefusal::Unknown) => StatusCode::NOT_FOUND,
        Refused::Action(ActionRefusal::Conflict(_)) => StatusCode::CONFLICT,
        Refused::Action(ActionRefusal::Forbidden(_)) => StatusCode::FORBIDDEN,
        Refused::Action(ActionRefusal::TooSoon) => StatusCode::TOO_MANY_REQUESTS,
        Refused::Action(ActionRefusal::Remote) => StatusCode::NOT_IMPLEMENTED,
        Refused::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut reply = reply(status);
    if status == StatusCode::TOO_MANY_REQUESTS {
        reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("10"));
    }
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

fn json(status: StatusCode, document: &impl Serialize) -> AdminReply {
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
