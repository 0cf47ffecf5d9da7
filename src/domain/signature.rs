//! Signature recipes: which parts of a request are signed, and how the signature is written.

use std::time::Duration;

use http::HeaderName;

/// How v1 requests are signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// The header with the API key.
    pub api_key: HeaderName,
    /// The header with the signature.
    pub signature: HeaderName,
    /// The header with the timestamp.
    pub timestamp: HeaderName,
    /// How the timestamp is written.
    pub timestamp_format: TimestampFormat,
    /// How far the timestamp may be from now, in either direction.
    pub window: Duration,
    /// The parts of the signed payload, in order.
    pub payload: Vec<Segment>,
    /// The keyed hash.
    pub algorithm: Algorithm,
    /// How the signature is written.
    pub encoding: Encoding,
}

/// A piece of the signing payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Text between placeholders.
    Literal(Box<str>),
    /// `{timestamp}`: the header's text.
    Timestamp,
    /// `{method}`: upper case.
    Method,
    /// `{path}`: without the query.
    Path,
    /// `{query}`: without `?`; empty when there is none.
    Query,
    /// `{target}`: path and query as sent.
    Target,
    /// `{body}`: the raw bytes.
    Body,
    /// `{body_sha256}`: the body's SHA-256 in lowercase hex.
    BodySha256,
    /// `{api_key}`.
    ApiKey,
}

/// How a timestamp is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampFormat {
    /// Seconds since the epoch.
    Unix,
    /// Milliseconds since the epoch.
    UnixMillis,
    /// RFC 3339.
    Rfc3339,
}

/// The keyed hash of a recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// HMAC-SHA256.
    HmacSha256,
    /// HMAC-SHA512.
    HmacSha512,
}

/// How a signature is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Hexadecimal, written in lowercase, read in either case.
    Hex,
    /// Base64 with padding.
    Base64,
}

/// `[engine] callback_signature`: how a remote engine signs its callbacks, with HMAC-SHA256.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackSignature {
    /// The header with the signature.
    pub header: HeaderName,
    /// The parts of the signed payload, in order.
    pub payload: Vec<Segment>,
    /// How the signature is written.
    pub encoding: Encoding,
}

impl Default for CallbackSignature {
    fn default() -> Self {
        let header = HeaderName::from_static("x-signature");
        Self { header, payload: vec![Segment::Body], encoding: Encoding::Hex }
    }
}
