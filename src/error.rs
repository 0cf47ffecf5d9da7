//! Everything that can stop a request, sorted by who must react. Nothing here knows HTTP: `http::reply` turns each of
//! these into its status in one exhaustive match.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::domain::InvalidValue;
use crate::names::Nameable;

/// What stopped a request.
#[derive(Debug)]
pub enum ApiError {
    /// The caller must change how it calls: admission refused the request.
    Refused(AdmissionError),
    /// The caller must change the content of the request.
    Invalid(RequestError),
    /// The same for a v1 body that has no v2 equivalent.
    Untranslatable {
        /// For the caller.
        error: RequestError,
        /// A word for the metrics.
        reason: &'static str,
    },
    /// The caller sent other data under an `order_id` that exists.
    Conflict(Conflict),
    /// Does not exist for the caller. There is one message for every kind of absence.
    NotFound,
    /// This gateway does not offer it: its name, for the caller.
    NotOffered(&'static str),
    /// The caller may send the same request again: the store or the engine cannot take it now.
    Unavailable {
        /// For the log.
        cause: String,
    },
    /// The platform must check the engine: its reply cannot be passed on.
    BadEngineReply {
        /// For the log.
        cause: String,
    },
    /// The engine could not be reached; the same request may be sent again.
    EngineUnreachable {
        /// For the log.
        cause: String,
    },
    /// The engine did not answer in time; the same request may be sent again.
    EngineTimeout,
    /// The caller may send the same request again: the engine cannot take it now.
    EngineBusy {
        /// How the engine put it.
        busy: Busy,
        /// When to try again, where the engine named a time.
        retry_after: Option<Duration>,
    },
    /// The engine's own reply, for a native v2 caller.
    EngineReply(EngineReply),
    /// The old v1 service gave no reply that can be passed on; the same request may be sent again.
    Legacy(LegacyError),
    /// The same for a request below `[legacy] paths`, whose repeat may not be safe.
    LegacyPath(LegacyError),
    /// A defect of the gateway.
    Internal {
        /// For the log.
        cause: String,
    },
}

/// Why there is no reply of the old v1 service. Its words are for the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LegacyError {
    /// It could not be reached, or the connection broke before the whole reply was received.
    #[error("{cause}")]
    Unreachable {
        /// For the log.
        cause: String,
    },
    /// The reply was not whole in time.
    #[error("no whole reply in time")]
    Timeout,
    /// The reply cannot be passed on.
    #[error("{cause}")]
    BadReply {
        /// For the log.
        cause: String,
    },
    /// The request came back to the gateway that had forwarded it.
    #[error("the request came back to the gateway that had forwarded it")]
    Loop,
    /// Too many requests are being forwarded: nothing was sent.
    #[error("too many requests are being forwarded: nothing was sent")]
    Busy,
}

impl LegacyError {
    /// Returns the reason in access lines.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "legacy_unreachable",
            Self::Timeout => "legacy_timeout",
            Self::BadReply { .. } => "legacy_reply",
            Self::Loop => "loop",
            Self::Busy => "legacy_busy",
        }
    }
}

/// Why an engine cannot take a request now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    /// There are too many.
    TooManyRequests,
    /// It is not available.
    Unavailable,
}

/// A remote engine's reply to a native v2 request, other than success.
#[derive(Clone, PartialEq, Eq)]
pub struct EngineReply {
    /// What it reports.
    pub error: EngineError,
    /// The member at fault, for the log.
    pub member: Option<Box<str>>,
    /// When to try again, where the engine named a time.
    pub retry_after: Option<Duration>,
    /// Its body, a JSON object; `None`: it cannot be passed on.
    pub body: Option<Bytes>,
}

impl fmt::Debug for EngineReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EngineReply({:?})", self.error)
    }
}

/// The kind of an error that a remote engine returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineError {
    /// The caller must change the content of the request.
    Invalid,
    /// The order exists with other data.
    Conflict,
    /// The caller may send the same request again.
    Busy(Busy),
}

/// Why admission refused a request (contract section 3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdmissionError {
    /// No such path.
    UnknownPath,
    /// The path exists, but not with this method.
    WrongMethod {
        /// The value of the `Allow` header.
        allow: String,
    },
    /// A POST without `Content-Type: application/json`.
    NotJson,
    /// A form sent as something else than `application/x-www-form-urlencoded`.
    NotForm,
    /// A `Content-Encoding`.
    Encoded,
    /// The body is over the limit.
    BodyTooLarge,
    /// The head is over the limit.
    HeadTooLarge,
    /// The body did not arrive in time.
    BodyTooSlow,
    /// The head did not arrive in time.
    HeadTooSlow,
    /// HTTP that is not allowed here, in words for the caller: a missing or doubled `Host`, a body on GET, ...
    Malformed(&'static str),
    /// Query parameters on a POST.
    QueryOnPost,
    /// An unknown key, a wrong or stale signature, missing credentials: all the same to the caller.
    Unauthenticated(AuthenticationFailure),
    /// The key is known, the address is not on its list.
    AddressNotAllowed,
    /// A signed link of a customer's page that was never issued like this, or is too late; the id of its operation in the latter
    /// case.
    Link(Option<Box<str>>),
    /// Too many requests for customers' pages from this address.
    PagesTooOften {
        /// When to try again.
        retry_after: Duration,
    },
    /// Too many requests with this key.
    RateLimited {
        /// When to try again.
        retry_after: Duration,
    },
    /// Too many failed authentications from this address.
    FailedTooOften {
        /// When to try again.
        retry_after: Duration,
    },
}

impl AdmissionError {
    /// Reports whether the caller is refused, rather than the form of its request.
    #[must_use]
    pub const fn concerns_caller(&self) -> bool {
        matches!(
            self,
            Self::Unauthenticated(_) | Self::AddressNotAllowed | Self::RateLimited { .. } | Self::FailedTooOften { .. }
        )
    }

    /// Returns the name in metrics.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::UnknownPath => "unknown_path",
            Self::WrongMethod { .. } => "wrong_method",
            Self::NotJson | Self::NotForm => "content_type",
            Self::Encoded => "content_encoding",
            Self::BodyTooLarge => "body_too_large",
            Self::HeadTooLarge => "head_too_large",
            Self::BodyTooSlow => "body_timeout",
            Self::HeadTooSlow => "head_timeout",
            Self::Malformed(_) => "malformed",
            Self::QueryOnPost => "query_on_post",
            Self::Unauthenticated(failure) => failure.reason(),
            Self::AddressNotAllowed => "address",
            Self::Link(_) => "link",
            Self::PagesTooOften { .. } => "pages_rate_limit",
            Self::RateLimited { .. } => "rate_limit",
            Self::FailedTooOften { .. } => "failed_authentications",
        }
    }
}

/// Which check failed; for the log and the metrics only, never for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuthenticationFailure {
    /// A header that authentication needs is missing or malformed.
    MissingCredentials,
    /// No such key, or the key has no secret for this interface.
    UnknownKey,
    /// The key is not enabled for v2.
    V2NotEnabled,
    /// The signature does not match.
    WrongSignature,
    /// The v1 timestamp is outside the window.
    StaleTimestamp,
}

impl AuthenticationFailure {
    /// Returns the name in metrics.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::MissingCredentials => "missing_credentials",
            Self::UnknownKey => "unknown_key",
            Self::V2NotEnabled => "v2_not_enabled",
            Self::WrongSignature => "signature",
            Self::StaleTimestamp => "timestamp",
        }
    }
}

impl ApiError {
    /// Returns the word for why the request was refused or failed, in access lines and in metrics.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.reason(),
            Self::Invalid(_) => "invalid",
            Self::Untranslatable { reason, .. } => reason,
            Self::Conflict(_) => "conflict",
            Self::NotFound => "not_found",
            Self::NotOffered(_) => "not_offered",
            Self::BadEngineReply { .. } => "engine_reply",
            Self::EngineUnreachable { .. } => "engine_unreachable",
            Self::EngineTimeout => "engine_timeout",
            Self::EngineBusy { .. } => "engine_busy",
            Self::EngineReply(answered) => match answered.error {
                EngineError::Invalid => "invalid",
                EngineError::Conflict => "conflict",
                EngineError::Busy(_) => "engine_busy",
            },
            Self::Unavailable { .. } => "unavailable",
            Self::Legacy(error) | Self::LegacyPath(error) => error.reason(),
            Self::Internal { .. } => "internal",
        }
    }

    /// Returns why the request failed, for the log: in words where they are known, else by [`ApiError::reason`].
    #[must_use]
    pub fn cause(&self) -> &str {
        if let Self::Unavailable { cause }
        | Self::BadEngineReply { cause }
        | Self::EngineUnreachable { cause }
        | Self::Internal { cause } = self
        {
            cause
        } else {
            self.reason()
        }
    }

    /// Returns the member at fault, in the caller's words, fit for the log; all that differ for a conflict.
    #[must_use]
    pub fn member(&self) -> Option<&str> {
        let error = match self {
            Self::Invalid(error) | Self::Untranslatable { error, .. } => error,
            Self::Conflict(conflict) => match &conflict.differing {
                Some(differing) => return Some(differing),
                None => &conflict.error,
            },
            Self::EngineReply(answered) => return answered.member.as_deref(),
            Self::Refused(_)
            | Self::NotFound
            | Self::NotOffered(_)
            | Self::Unavailable { .. }
            | Self::BadEngineReply { .. }
            | Self::EngineUnreachable { .. }
            | Self::EngineTimeout
            | Self::EngineBusy { .. }
            | Self::Legacy(_)
            | Self::LegacyPath(_)
            | Self::Internal { .. } => return None,
        };
        error.path().map(|path| Nameable(path).shown())
    }

    /// Returns the id of the operation that the request conflicts with, or whose link is too late, if it is known.
    #[must_use]
    pub fn transaction_id(&self) -> Option<&str> {
        match self {
            Self::Conflict(conflict) => conflict.transaction_id.as_deref(),
            Self::Refused(AdmissionError::Link(id)) => id.as_deref(),
            Self::Refused(_)
            | Self::Invalid(_)
            | Self::Untranslatable { .. }
            | Self::NotFound
            | Self::NotOffered(_)
            | Self::Unavailable { .. }
            | Self::BadEngineReply { .. }
            | Self::EngineUnreachable { .. }
            | Self::EngineTimeout
            | Self::EngineBusy { .. }
            | Self::EngineReply(_)
            | Self::Legacy(_)
            | Self::LegacyPath(_)
            | Self::Internal { .. } => None,
        }
    }
}

/// A request that contradicts an operation, or names an order that is at home elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// For the caller.
    pub error: RequestError,
    /// The members that differ, by commas, for the log; `None`: the error's own.
    pub differing: Option<Box<str>>,
    /// The engine's id of the operation, where it is known.
    pub transaction_id: Option<Box<str>>,
}

impl Conflict {
    /// Names the operation.
    #[must_use]
    pub fn with(self, transaction_id: impl Into<Box<str>>) -> Self {
        Self { transaction_id: Some(transaction_id.into()), ..self }
    }
}

impl From<RequestError> for Conflict {
    fn from(error: RequestError) -> Self {
        Self { error, differing: None, transaction_id: None }
    }
}

impl From<AdmissionError> for ApiError {
    fn from(refusal: AdmissionError) -> Self {
        Self::Refused(refusal)
    }
}

/// An error about the content of a request: the member, by the caller's own name, and what is wrong with it. It never holds
/// a value that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestError {
    member: Option<Cow<'static, str>>,
    reason: Cow<'static, str>,
}

impl RequestError {
    /// Makes an error about the body as a whole.
    #[must_use]
    pub fn body(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { member: None, reason: reason.into() }
    }

    /// Makes an error about one member, named by its path: `amount`, `fields.bank_code`.
    #[must_use]
    pub fn member(path: impl Into<Cow<'static, str>>, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { member: Some(path.into()), reason: reason.into() }
    }

    /// Makes an error about a member whose value a domain type refused.
    #[must_use]
    pub fn invalid(path: impl Into<Cow<'static, str>>, invalid: &InvalidValue) -> Self {
        Self::member(path, invalid.reason().to_owned())
    }

    /// Returns the message for the caller.
    #[must_use]
    pub fn sentence(&self) -> Cow<'_, str> {
        match &self.member {
            Some(path) => [Nameable(path).shown(), ": ", &self.reason].concat().into(),
            None => Cow::Borrowed(&self.reason),
        }
    }

    /// Returns the path of the member, when it is about one.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.member.as_deref()
    }

    /// Returns what is wrong.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Renames the member, as v1 or a dialect names it.
    #[must_use]
    pub fn renamed(self, rename: impl FnOnce(&str) -> Cow<'static, str>) -> Self {
        let member = self.member.map(|path| rename(&path));
        Self { member, reason: self.reason }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence())
    }
}

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> Self {
        Self::Invalid(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_member() {
        let error = RequestError::member("fields.4111111111111111", "is not known");
        assert_eq!(error.to_string(), "(a member whose name cannot be shown): is not known");
        assert_eq!(
            RequestError::member("fields.bank_code", "is required").to_string(),
            "fields.bank_code: is required"
        );
    }
}
