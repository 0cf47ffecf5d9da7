//! Signs and verifies by v2's recipe (promises P196 to P201), by the recipes of v1 dialects (contract section 4,
//! `[signature]`), and by that of a remote engine's callbacks (contract section 2, `callback_signature`); and signs and
//! verifies links: `{public_url}/{kind}/{transaction_id}?expires=<unix>&signature=<hex>`, with HMAC-SHA256 over path
//! and query up to the signature (contract section 9).
//!
//! Received signatures are decoded and compared in constant time. The signed payload is fed to the hash piece by piece
//! and never assembled.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::Mac;
use http::HeaderName;
use sha2::{Digest as _, Sha256};

use crate::domain::{
    Algorithm, CallbackSignature, Encoding, Recipe, RedirectUrl, Secret, Secrets, Segment, TimestampFormat,
    TransactionId, UnixMillis, push_hex,
};
use crate::wire::time::{read_rfc3339, rfc3339};

/// The length of an HMAC-SHA256, in bytes.
const SHA256_LENGTH: usize = 32;

/// The length of the longest hash, HMAC-SHA512, in bytes.
const LONGEST_HASH: usize = 64;

/// Returns the v2 signature: the lowercase hexadecimal HMAC-SHA256 of the raw body (promises P196 and P197).
#[must_use]
pub fn sign_v2(secret: &Secret, body: &[u8]) -> String {
    let mut mac = secret.sha256();
    mac.update(body);
    hexadecimal(&mac.finalize().into_bytes())
}

fn hexadecimal(hash: &[u8]) -> String {
    let mut text = String::with_capacity(hash.len() * 2);
    push_hex(&mut text, hash);
    text
}

/// Reports whether `signature` is the v2 signature of `body` by any of the secrets. Only 64 lowercase hexadecimal
/// digits are accepted.
#[must_use]
pub fn verify_v2(secrets: &Secrets, body: &[u8], signature: &[u8]) -> bool {
    verifies_lower_hex(secrets.verifying(), body, signature)
}

/// Reports whether `signature` is the lowercase hexadecimal HMAC-SHA256 of `message` by any of the secrets.
pub(super) fn verifies_lower_hex<'a>(
    secrets: impl IntoIterator<Item = &'a Secret>,
    message: &[u8],
    signature: &[u8],
) -> bool {
    let Some(received) = Received::hex(signature, SHA256_LENGTH, HexCase::Lower) else { return false };
    secrets.into_iter().any(|secret| {
        let mut mac = secret.sha256();
        mac.update(message);
        mac.verify_slice(received.bytes()).is_ok()
    })
}

/// The parts of a request or callback that a recipe can sign.
#[derive(Clone, Copy)]
pub struct V1Input<'a> {
    /// The text of the timestamp header, as sent.
    pub timestamp: &'a str,
    /// The method, in upper case.
    pub method: &'a str,
    /// The path as sent, without the query.
    pub path: &'a str,
    /// The query as sent, after the first `?`; `None` without a `?`.
    pub query: Option<&'a str>,
    /// The API key.
    pub api_key: &'a str,
    /// The raw body.
    pub body: &'a [u8],
}

/// Returns the v1 signature by a dialect's recipe, in its encoding (hexadecimal in lowercase).
#[must_use]
pub fn sign_v1(recipe: &Recipe, secret: &Secret, input: &V1Input<'_>) -> String {
    match recipe.algorithm {
        Algorithm::HmacSha256 => {
            encode(recipe.encoding, &mac_of(secret.sha256(), &recipe.payload, input).finalize().into_bytes())
        }
        Algorithm::HmacSha512 => {
            encode(recipe.encoding, &mac_of(secret.sha512(), &recipe.payload, input).finalize().into_bytes())
        }
    }
}

/// The request line of a v1 request to be signed.
#[derive(Clone, Copy)]
pub struct V1Target<'a> {
    /// The method, in upper case.
    pub method: &'a str,
    /// The path, without the query.
    pub path: &'a str,
    /// The query, after the first `?`.
    pub query: Option<&'a str>,
}

/// Returns the headers that authenticate a request made at `now`: key, timestamp, signature.
#[must_use]
pub fn sign_v1_headers(
    recipe: &Recipe,
    api_key: &str,
    secret: &Secret,
    now: UnixMillis,
    target: &V1Target<'_>,
    body: &[u8],
) -> [(HeaderName, String); 3] {
    let timestamp = format_timestamp(recipe.timestamp_format, now);
    let V1Target { method, path, query } = *target;
    let signature = sign_v1(recipe, secret, &V1Input { timestamp: &timestamp, method, path, query, api_key, body });
    [
        (recipe.api_key.clone(), api_key.to_owned()),
        (recipe.timestamp.clone(), timestamp),
        (recipe.signature.clone(), signature),
    ]
}

/// Returns the signature of a callback by Standard Webhooks: `v1,` and the base64 of HMAC-SHA256 over id, timestamp
/// (seconds since 1970) and body, separated by dots.
#[must_use]
pub fn sign_webhook(secret: &Secret, id: &str, timestamp: &str, body: &[u8]) -> String {
    let mut mac = secret.sha256();
    for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
        mac.update(part);
    }
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// Reports whether `signature` is the v1 signature of `input` by any of the secrets. Hexadecimal is accepted in either
/// case, base64 only in its one spelling with padding.
#[must_use]
pub fn verify_v1(recipe: &Recipe, secrets: &Secrets, input: &V1Input<'_>, signature: &[u8]) -> bool {
    let length = match recipe.algorithm {
        Algorithm::HmacSha256 => SHA256_LENGTH,
        Algorithm::HmacSha512 => LONGEST_HASH,
    };
    let Some(received) = Received::of(recipe.encoding, signature, length) else { return false };
    let payload = &recipe.payload;
    secrets.verifying().any(|secret| match recipe.algorithm {
        Algorithm::HmacSha256 => mac_of(secret.sha256(), payload, input).verify_slice(received.bytes()).is_ok(),
        Algorithm::HmacSha512 => mac_of(secret.sha512(), payload, input).verify_slice(received.bytes()).is_ok(),
    })
}

/// Reports whether `signature` is a remote engine's signature of a callback by any of the secrets, in the encoding of
/// its recipe. The timestamp is signed but not checked against the clock, because the gateway then reads the
/// operation's status from the engine itself.
#[must_use]
pub fn verify_callback(recipe: &CallbackSignature, secrets: &Secrets, input: &V1Input<'_>, signature: &[u8]) -> bool {
    let Some(received) = Received::of(recipe.encoding, signature, SHA256_LENGTH) else { return false };
    let signs = |secret: &Secret| mac_of(secret.sha256(), &recipe.payload, input);
    secrets.verifying().any(|secret| signs(secret).verify_slice(received.bytes()).is_ok())
}

/// Feeds the whole signing payload to a keyed hash.
fn mac_of<M: Mac>(mut mac: M, payload: &[Segment], input: &V1Input<'_>) -> M {
    for segment in payload {
        match segment {
            Segment::Literal(text) => mac.update(text.as_bytes()),
            Segment::Timestamp => mac.update(input.timestamp.as_bytes()),
            Segment::Method => mac.update(input.method.as_bytes()),
            Segment::Path => mac.update(input.path.as_bytes()),
            Segment::Query => mac.update(input.query.unwrap_or_default().as_bytes()),
            Segment::Target => {
                mac.update(input.path.as_bytes());
                if let Some(query) = input.query {
                    mac.update(b"?");
                    mac.update(query.as_bytes());
                }
            }
            Segment::Body => mac.update(input.body),
            Segment::BodySha256 => mac.update(hexadecimal(&Sha256::digest(input.body)).as_bytes()),
            Segment::ApiKey => mac.update(input.api_key.as_bytes()),
        }
    }
    mac
}

fn encode(encoding: Encoding, bytes: &[u8]) -> String {
    match encoding {
        Encoding::Hex => hexadecimal(bytes),
        Encoding::Base64 => STANDARD.encode(bytes),
    }
}

/// The accepted case of hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HexCase {
    Lower,
    Either,
}

/// A received signature, decoded.
struct Received {
    bytes: [u8; LONGEST_HASH],
    length: usize,
}

impl Received {
    /// Decodes text of exactly `length` bytes in the recipe's encoding.
    fn of(encoding: Encoding, text: &[u8], length: usize) -> Option<Self> {
        match encoding {
            Encoding::Hex => Self::hex(text, length, HexCase::Either),
            Encoding::Base64 => Self::base64(text, length),
        }
    }

    /// Decodes hexadecimal text of exactly `length` bytes.
    fn hex(text: &[u8], length: usize, case: HexCase) -> Option<Self> {
        if case == HexCase::Lower && text.iter().any(u8::is_ascii_uppercase) {
            return None;
        }
        let mut bytes = [0; LONGEST_HASH];
        hex::decode_to_slice(text, bytes.get_mut(..length)?).ok()?;
        Some(Self { bytes, length })
    }

    /// Decodes base64 text of exactly `length` bytes.
    fn base64(text: &[u8], length: usize) -> Option<Self> {
        // Longer text is refused before it is decoded.
        if text.len() != length.div_ceil(3) * 4 {
            return None;
        }
        let decoded = STANDARD.decode(text).ok()?;
        let mut bytes = [0; LONGEST_HASH];
        bytes.get_mut(..decoded.len())?.copy_from_slice(&decoded);
        (decoded.len() == length).then_some(Self { bytes, length })
    }

    #[expect(clippy::indexing_slicing, reason = "at most as many bytes are decoded as the buffer holds")]
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Reports whether the text of a timestamp header is a time within the recipe's window around `now`, both ends
/// included. Malformed text is not.
#[must_use]
pub fn is_fresh(recipe: &Recipe, text: &[u8], now: UnixMillis) -> bool {
    let Some(text) = std::str::from_utf8(text).ok() else { return false };
    // Whole seconds are compared with whole seconds, so that a caller that truncates does not lose up to a second of
    // its window.
    let distance = match recipe.timestamp_format {
        TimestampFormat::Unix => {
            parse_digits(text).map(|seconds| difference(seconds, now.seconds(), Duration::from_secs))
        }
        TimestampFormat::UnixMillis => {
            parse_digits(text).map(|millis| difference(millis, now.0, Duration::from_millis))
        }
        TimestampFormat::Rfc3339 => {
            read_rfc3339(text).map(|time| difference(time.as_millisecond(), now.0, Duration::from_millis))
        }
    };
    distance.is_some_and(|distance| distance <= recipe.window)
}

/// Formats a time for a timestamp header.
#[must_use]
pub fn format_timestamp(format: TimestampFormat, at: UnixMillis) -> String {
    match format {
        TimestampFormat::Unix => at.seconds().to_string(),
        TimestampFormat::UnixMillis => at.0.to_string(),
        TimestampFormat::Rfc3339 => rfc3339(at),
    }
}

fn difference(one: i64, other: i64, unit: fn(u64) -> Duration) -> Duration {
    unit(one.abs_diff(other))
}

/// Parses 1 to 18 digits: no sign, no fraction, no spaces, no leading zero.
fn parse_digits(text: &str) -> Option<i64> {
    let plain = (1..=18).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = plain && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

/// The path of entry links.
pub const ENTRY: &str = "pay";
/// The path of return links.
pub const RETURN: &str = "return";
/// The path of the sandbox's hosted page.
pub const SANDBOX: &str = "sandbox";

/// The content of a verified link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The operation that it belongs to.
    pub id: TransactionId,
    /// The end of its validity, in Unix seconds: it is valid before.
    pub expires: i64,
}

/// Returns a signed link that is valid before `expires`, in Unix seconds.
#[must_use]
pub fn sign_link(secret: &Secret, public_url: &str, kind: &str, id: TransactionId, expires: i64) -> String {
    // Each number has at most 20 digits, the signature 64.
    let mut link = String::with_capacity(public_url.len() + kind.len() + 128);
    for piece in [public_url, "/", kind, "/"] {
        link.push_str(piece);
    }
    link.push_str(id.digits().as_str());
    link.push_str("?expires=");
    link.push_str(itoa::Buffer::new().format(expires));
    let mut mac = secret.sha256();
    let (_, signed) = link.split_at(public_url.len());
    mac.update(signed.as_bytes());
    link.push_str("&signature=");
    push_hex(&mut link, &mac.finalize().into_bytes());
    link
}

/// Why a link is refused. Its user gets the same page for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LinkRefused {
    /// It was not issued here, or was altered.
    #[error("the link is not valid")]
    NotIssued,
    /// The link of this operation has expired.
    #[error("the link is no longer valid")]
    Expired(TransactionId),
}

/// Verifies a link and returns its content. `target` is the path and query exactly as received: anything added, left
/// out, reordered or spelled differently is refused. Any of the secrets verifies.
///
/// # Errors
/// The link was not issued in this form, or has expired at `now`.
pub fn verify_link<'a>(
    secrets: impl IntoIterator<Item = &'a Secret>,
    kind: &str,
    target: &str,
    now: UnixMillis,
) -> Result<Link, LinkRefused> {
    let (signed, signature) = target.split_once("&signature=").ok_or(LinkRefused::NotIssued)?;
    if !verifies_lower_hex(secrets, signed.as_bytes(), signature.as_bytes()) {
        return Err(LinkRefused::NotIssued);
    }
    let rest =
        signed.strip_prefix('/').and_then(|rest| rest.strip_prefix(kind)).and_then(|rest| rest.strip_prefix('/'));
    let (id, expires) = rest.and_then(|rest| rest.split_once("?expires=")).ok_or(LinkRefused::NotIssued)?;
    let expires: i64 = expires.parse().map_err(|_| LinkRefused::NotIssued)?;
    let id = TransactionId::parse(id).map_err(|_| LinkRefused::NotIssued)?;
    if now.seconds() >= expires { Err(LinkRefused::Expired(id)) } else { Ok(Link { id, expires }) }
}

/// The default secret of links, used when the rules have no `pages.secret`: 32 bytes in a file beside the store's key.
#[derive(Debug, Clone)]
pub struct PageSecret {
    secret: Secret,
    /// The content of its file: the secret in base64.
    file: Secret,
}

impl PageSecret {
    /// Signs with this secret.
    #[must_use]
    pub fn new(secret: Secret) -> Self {
        let file = Secret::new(STANDARD.encode(secret.expose()).as_bytes());
        Self { secret, file }
    }

    /// Returns a link that is signed with the first of the `configured` secrets, if there are any, and valid before
    /// `expires`, in Unix seconds.
    #[must_use]
    pub fn sign(
        &self,
        configured: Option<&Secrets>,
        public_url: &str,
        kind: &str,
        id: TransactionId,
        expires: i64,
    ) -> RedirectUrl {
        let secret = configured.map_or(&self.secret, Secrets::signing);
        RedirectUrl::new(sign_link(secret, public_url, kind, id, expires))
    }

    /// Verifies a link of a kind and returns its content; `target` is the path and query exactly as received.
    ///
    /// # Errors
    /// The link was not issued like this, or is too late.
    pub fn verify(
        &self,
        configured: Option<&Secrets>,
        kind: &str,
        target: &str,
        now: UnixMillis,
    ) -> Result<Link, LinkRefused> {
        let Some(secrets) = configured else { return verify_link([&self.secret], kind, target, now) };
        // The file of the default secret may be listed, so that links signed with it stay valid.
        let default = secrets.verifying().any(|secret| secret.expose() == self.file.expose()).then_some(&self.secret);
        verify_link(secrets.verifying().chain(default), kind, target, now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::HeaderName;

    use super::*;
    use crate::domain::{Algorithm, Encoding, TimestampFormat};

    fn secrets(list: &[&str]) -> Secrets {
        Secrets::new(list.iter().map(|text| Secret::new(text.as_bytes())).collect()).unwrap()
    }

    fn recipe(payload: Vec<Segment>, algorithm: Algorithm, encoding: Encoding) -> Recipe {
        Recipe {
            api_key: HeaderName::from_static("x-api-key"),
            signature: HeaderName::from_static("x-signature"),
            timestamp: HeaderName::from_static("x-timestamp"),
            timestamp_format: TimestampFormat::Unix,
            window: Duration::from_mins(5),
            payload,
            algorithm,
            encoding,
        }
    }

    fn dot() -> Segment {
        Segment::Literal(".".into())
    }

    fn default_payload() -> Vec<Segment> {
        vec![Segment::Timestamp, dot(), Segment::Method, dot(), Segment::Path, dot(), Segment::Body]
    }

    #[test]
    fn a_webhook_is_signed_by_the_standard() {
        // The example of the standard's reference libraries.
        let secret = Secret::new(&STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap());
        let (id, timestamp, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", br#"{"test": 2432232314}"#);
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(sign_webhook(&secret, id, timestamp, body), expected);
    }

    const BODY: &[u8] = br#"{"external_id":"o-1","amount":"10.50"}"#;

    fn input<'a>() -> V1Input<'a> {
        V1Input {
            timestamp: "1735689600",
            method: "POST",
            path: "/api/v1/payin",
            query: Some("a=1&b=%20"),
            api_key: "acme-live",
            body: BODY,
        }
    }

    // The expected signatures of this module were computed with Python's hmac, hashlib and base64.

    #[test]
    fn v2_signs_the_raw_body() {
        let secret = Secret::new(b"v2-secret");
        assert_eq!(
            sign_v2(&secret, br#"{"order_id":"o-1"}"#),
            "643b38509eaf1015025054f35cfb233558bfbfbd9faf8610c444b59319e36c6c"
        );
        assert_eq!(sign_v2(&secret, b""), "c8de7a2e2bb6aa0ea5dfdf4577fb2e9b8b2de9fc86bfb5b706bf6c4425521ce6");
    }

    #[test]
    fn v2_accepts_64_lowercase_digits_by_any_of_the_secrets() {
        let body = br#"{"order_id":"o-1"}"#;
        let signature = sign_v2(&Secret::new(b"old"), body);
        let rotated = secrets(&["new", "old"]);
        assert!(verify_v2(&rotated, body, signature.as_bytes()));
        assert!(verify_v2(&rotated, body, sign_v2(&Secret::new(b"new"), body).as_bytes()));
        assert!(!verify_v2(&secrets(&["new"]), body, signature.as_bytes()), "a secret that is not listed");
        assert!(!verify_v2(&rotated, br#"{"order_id": "o-1"}"#, signature.as_bytes()), "another body");
        for wrong in [
            String::new(),
            signature.to_uppercase(),
            signature[..63].to_owned(),
            format!("{signature}0"),
            format!("{signature}00"),
            format!(" {}", &signature[1..]),
            format!("0x{}", &signature[2..]),
            signature.replace(|digit: char| digit.is_ascii_digit(), "g"),
        ] {
            assert!(!verify_v2(&rotated, body, wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn v1_signs_by_recipe() {
        let secret = Secret::new(b"v1-secret");
        let everything = || {
            vec![
                Segment::ApiKey,
                Segment::Literal("\n".into()),
                Segment::Query,
                Segment::Literal("|".into()),
                Segment::Target,
                Segment::Literal("|".into()),
                Segment::BodySha256,
                Segment::Literal("|".into()),
                Segment::Timestamp,
            ]
        };
        let sign = |payload, algorithm, encoding| sign_v1(&recipe(payload, algorithm, encoding), &secret, &input());
        for (got, expected) in [
            (
                sign(default_payload(), Algorithm::HmacSha256, Encoding::Hex),
                "185caccee1610673214d9bbcbfad857968d63f40b2bb254208b5ee93cde2701f",
            ),
            (
                sign(everything(), Algorithm::HmacSha256, Encoding::Base64),
                "r8kiPfWsBNTn6j226OY7+Jdt98b9PKs8kCWdyBoXE1A=",
            ),
            (
                sign(default_payload(), Algorithm::HmacSha512, Encoding::Hex),
                "aec61aac4b5f51f5108dd7cd2c3394682fcc4dfb653704d260c52d873994e921fe39f2f21d5d5af8f8b6e5a724f4697893162c00015a03459334edd65bd78482",
            ),
            (
                sign(everything(), Algorithm::HmacSha512, Encoding::Base64),
                "cR6lUE3TGDf25kBcL4kfP95UdhPZhMxwI39u9B0erKGtllhDZEdps8LP/vasMJwXmdrGf7+H3PagXnCjH4mfng==",
            ),
        ] {
            assert_eq!(got, expected);
        }
    }

    #[test]
    fn callbacks_of_an_engine_verify_by_its_recipe() {
        let rotated = secrets(&["new", "v1-secret"]);
        let payload = vec![
            Segment::Timestamp,
            dot(),
            Segment::Method,
            Segment::Target,
            Segment::Literal("|".into()),
            Segment::ApiKey,
            Segment::BodySha256,
        ];
        let header = HeaderName::from_static("x-signature");
        let recipe = |encoding| CallbackSignature { header: header.clone(), payload: payload.clone(), encoding };
        for (encoding, signature) in [
            (Encoding::Hex, "f0beedc0365ea088c738f82d944e0330c92c00595ab902e43221fc78fe29daf9"),
            (Encoding::Base64, "8L7twDZeoIjHOPgtlE4DMMksAFlauQLkMiH8eP4p2vk="),
        ] {
            let recipe = recipe(encoding);
            let verifies = |input: &V1Input<'_>, text: &str| verify_callback(&recipe, &rotated, input, text.as_bytes());
            assert!(verifies(&input(), signature));
            assert_eq!(verifies(&input(), &signature.to_uppercase()), encoding == Encoding::Hex);
            assert!(!verify_callback(&recipe, &secrets(&["new"]), &input(), signature.as_bytes()));
            for other in [
                V1Input { timestamp: "", ..input() },
                V1Input { method: "GET", ..input() },
                V1Input { path: "/relay/x", ..input() },
                V1Input { query: None, ..input() },
                V1Input { api_key: "acme", ..input() },
                V1Input { body: b"{}", ..input() },
            ] {
                assert!(!verifies(&other, signature));
            }
            for wrong in ["", "=", &signature[1..], &format!("{signature}=")] {
                assert!(!verifies(&input(), wrong), "{wrong}");
            }
        }
        let default = CallbackSignature::default();
        let signature = sign_v2(&Secret::new(b"v1-secret"), BODY);
        assert!(verify_callback(&default, &rotated, &input(), signature.as_bytes()), "as v2 signs");
    }

    #[test]
    fn the_target_is_signed_as_sent() {
        let secret = Secret::new(b"v1-secret");
        let recipe = recipe(vec![Segment::Target], Algorithm::HmacSha256, Encoding::Hex);
        let signed = |query| sign_v1(&recipe, &secret, &V1Input { query, ..input() });
        assert_eq!(signed(None), sign_v2(&secret, b"/api/v1/payin"));
        assert_eq!(signed(Some("")), sign_v2(&secret, b"/api/v1/payin?"));
        assert_eq!(signed(Some("a=1")), sign_v2(&secret, b"/api/v1/payin?a=1"));
    }

    #[test]
    fn v1_verifies_what_it_signed() {
        let rotated = secrets(&["new", "old"]);
        for algorithm in [Algorithm::HmacSha256, Algorithm::HmacSha512] {
            for encoding in [Encoding::Hex, Encoding::Base64] {
                let recipe = recipe(default_payload(), algorithm, encoding);
                let signature = sign_v1(&recipe, &Secret::new(b"old"), &input());
                let verifies = |input: &V1Input<'_>, text: &str| verify_v1(&recipe, &rotated, input, text.as_bytes());
                assert!(verifies(&input(), &signature));
                assert_eq!(verifies(&input(), &signature.to_uppercase()), encoding == Encoding::Hex);
                assert!(!verify_v1(&recipe, &secrets(&["new"]), &input(), signature.as_bytes()));
                assert!(!verifies(&V1Input { timestamp: "1735689601", ..input() }, &signature));
                assert!(!verifies(&V1Input { path: "/api/v1/payout", ..input() }, &signature));
                assert!(!verifies(&V1Input { method: "GET", ..input() }, &signature));
                assert!(!verifies(&V1Input { body: b"{}", ..input() }, &signature));
                for wrong in ["", "=", &signature[1..], signature.trim_end_matches('='), &format!("{signature}=")] {
                    assert_eq!(verifies(&input(), wrong), wrong == signature, "{wrong}");
                }
            }
        }
    }

    /// 2025-01-01T00:00:00.900Z.
    const NOW: UnixMillis = UnixMillis(1_735_689_600_900);

    fn fresh(timestamp_format: TimestampFormat, text: &str) -> bool {
        let recipe = Recipe {
            api_key: HeaderName::from_static("x-api-key"),
            signature: HeaderName::from_static("x-signature"),
            timestamp: HeaderName::from_static("x-timestamp"),
            timestamp_format,
            window: Duration::from_mins(5),
            payload: Vec::new(),
            algorithm: Algorithm::HmacSha256,
            encoding: Encoding::Hex,
        };
        is_fresh(&recipe, text.as_bytes(), NOW)
    }

    #[test]
    fn the_window_lies_either_side_of_now() {
        for (format, inside, outside) in [
            (
                TimestampFormat::Unix,
                ["1735689600", "1735689300", "1735689900"],
                ["1735689299", "1735689901", "1735689600900"],
            ),
            (
                TimestampFormat::UnixMillis,
                ["1735689600900", "1735689300900", "1735689900900"],
                ["1735689300899", "1735689900901", "1735689600"],
            ),
            (
                TimestampFormat::Rfc3339,
                ["2025-01-01T00:00:00Z", "2025-01-01T02:04:00.5+02:00", "2024-12-31t23:55:00.900z"],
                ["2024-12-31T23:55:00.899Z", "2025-01-01T00:05:00.901Z", "2025-01-01T00:00:00+01:00"],
            ),
        ] {
            for text in inside {
                assert!(fresh(format, text), "{format:?} {text}");
            }
            for text in outside {
                assert!(!fresh(format, text), "{format:?} {text}");
            }
        }
    }

    #[test]
    fn clients_spell_the_same_time_differently() {
        for text in [
            "2025-01-01T00:00:00.9Z",
            "2025-01-01t00:00:00.900000z",
            "2025-01-01T00:00:00.900000000Z",
            "2025-01-01T00:00:00.900+00:00",
            "2025-01-01T00:00:00.900-00:00",
            "2025-01-01T05:45:00.900+05:45",
            "2024-12-31T14:00:00.900-10:00",
            "2024-12-31T14:00:00.900-1000",
        ] {
            assert_eq!(read_rfc3339(text).unwrap().as_millisecond(), NOW.0, "{text}");
        }
        // A leap second is the last one of its minute.
        assert_eq!(read_rfc3339("2016-12-31T23:59:60Z"), read_rfc3339("2016-12-31T23:59:59Z"));
    }

    #[test]
    fn distant_times_are_outside_the_window() {
        for (format, texts) in [
            (TimestampFormat::Unix, ["0", "999999999999999999", "9223372036854775807", "-1"]),
            (TimestampFormat::UnixMillis, ["0", "999999999999999999", "18446744073709551616", "-1735689600900"]),
            (
                TimestampFormat::Rfc3339,
                ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59", "99999-12-31T23:59:59Z"],
            ),
        ] {
            for text in texts {
                assert!(!fresh(format, text), "{format:?} {text}");
            }
        }
    }

    #[test]
    fn malformed_text_is_rejected() {
        for text in [
            "",
            " 1735689600",
            "+1735689600",
            "-1735689600",
            "01735689600",
            "0001735689600",
            "1735689600.0",
            "1.7356896e9",
            "0x67748580",
            "now",
            "١٧٣٥٦٨٩٦٠٠",
        ] {
            assert!(!fresh(TimestampFormat::Unix, text), "{text}");
        }
        assert!(!fresh(TimestampFormat::Unix, "9999999999999999999"));
        for text in [
            "2025-01-01",
            "2025-01-01T00:00:00",
            "2025-01-01 00:00:00Z",
            "20250101T000000Z0000",
            "2025-01-01T00:00Z00000",
            "2025-01-01T00:00:00Z[UTC]",
            "2025-01-01T00:00:00+00",
            "2025-01-01T00:00:00+00:00:00",
            "2025-01-01T00:00:00 +00:00",
            "2025-01-01T00:00:00.Z",
            "2025-01-01T00:00:00,5Z",
            "2025-01-01T00:00:00.0000000000Z",
            "2025-01-01T00:00:00.5.5Z",
            "2025-01-01T00:00:00+24:60",
            "2025-01-01T24:00:00Z",
            "2025-02-29T00:00:00Z",
            "+2025-01-01T00:00:00Z",
            "2025-W01-3T00:00:00Z",
            "２025-01-01T00:00:00Z",
            " 2025-01-01T00:00:00Z",
            "2025-13-01T00:00:00Z",
            "1735689600",
        ] {
            assert!(!fresh(TimestampFormat::Rfc3339, text), "{text}");
        }
    }

    const LINK_TIME: UnixMillis = UnixMillis(1_735_689_600_000);
    const EXPIRES: i64 = 1_735_691_400;

    fn id() -> TransactionId {
        TransactionId::parse("123456789").unwrap()
    }

    fn link() -> Link {
        Link { id: id(), expires: EXPIRES }
    }

    fn target(secret: &Secret) -> String {
        sign_link(secret, "", ENTRY, id(), EXPIRES)
    }

    #[test]
    fn a_link_has_the_form_of_the_contract() {
        // Computed with Python's hmac.
        let link = sign_link(&Secret::new(b"page-secret"), "https://pay.example", ENTRY, id(), EXPIRES);
        let signature = "182c132d932abee1553946cdf13ad48fbe5735fa36cfb297b197ebc8d3c5d657";
        assert_eq!(link, format!("https://pay.example/pay/123456789?expires=1735691400&signature={signature}"));
    }

    #[test]
    fn any_listed_secret_verifies() {
        let (old, new, other) = (Secret::new(b"old"), Secret::new(b"new"), Secret::new(b"other"));
        assert_eq!(verify_link([&new, &old], ENTRY, &target(&old), LINK_TIME), Ok(link()));
        assert_eq!(verify_link([&new, &old], ENTRY, &target(&new), LINK_TIME), Ok(link()));
        assert_eq!(verify_link([&new, &old], ENTRY, &target(&other), LINK_TIME), Err(LinkRefused::NotIssued));
        assert_eq!(verify_link([], ENTRY, &target(&new), LINK_TIME), Err(LinkRefused::NotIssued));
    }

    #[test]
    fn a_link_is_valid_while_now_is_before_its_end() {
        let secret = Secret::new(b"page-secret");
        let at = |millis| verify_link([&secret], ENTRY, &target(&secret), UnixMillis(millis));
        assert!(at(EXPIRES * 1000 - 1).is_ok());
        assert!(at(EXPIRES * 1000).is_err());
    }
}
