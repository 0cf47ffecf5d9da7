//! The trio of Standard Webhooks: `webhook-id`, `webhook-timestamp` and `webhook-signature`, which is `v1,` and the base64
//! of an HMAC-SHA256 over `id.timestamp.body`.
//!
//! Written down once more, from the specification and not from what sends callbacks, so that a mistake of one shows in the
//! other.

use std::time::Duration;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, verify};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderName;

use super::{Keys, Received, V1_SECRET, Verdict, once, v1_secrets, v2_secrets};
use crate::rules::Secrets;

/// The header with the signatures.
pub const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
/// The header with the callback's id.
pub const ID: HeaderName = HeaderName::from_static("webhook-id");
/// The header with the time of the try.
pub const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const CALLBACK_ID: HeaderName = HeaderName::from_static("x-callback-id");

/// How far the timestamp may be from now, either side, for the libraries that receivers use.
const TOLERANCE: Duration = Duration::from_mins(5);

/// What a library would be given.
struct Trio<'r> {
    id: &'r str,
    timestamp: &'r str,
    /// The signatures of version 1, decoded.
    signatures: Vec<Vec<u8>>,
}

/// What the signature is worth.
pub fn check(keys: &Keys<'_>, received: &Received) -> Verdict {
    let trio = match trio(received) {
        Ok(None) => return Verdict::Missing,
        Ok(Some(trio)) => trio,
        Err(reason) => return Verdict::Wrong(reason),
    };
    match keys.signer(v2_secrets, |secrets| trio.is_made_with(secrets, &received.body)) {
        None => Verdict::Wrong(why(keys, received, &trio)),
        Some(Verdict::Verified(signer)) => match refused(received, &trio) {
            None => Verdict::Verified(signer),
            Some(reason) => Verdict::Wrong(format!("it is right, but {reason}")),
        },
        Some(other) => other,
    }
}

fn trio(received: &Received) -> Result<Option<Trio<'_>>, String> {
    match (once(received, &ID)?, once(received, &TIMESTAMP)?, once(received, &SIGNATURE)?) {
        (None, None, None) => Ok(None),
        (Some(id), Some(timestamp), Some(text)) => {
            let signatures: Vec<_> = text.split(' ').filter_map(of_version_1).collect();
            if signatures.is_empty() {
                return Err("it holds no signature of version 1: `v1,` and the base64 of 32 bytes".to_owned());
            }
            Ok(Some(Trio { id, timestamp, signatures }))
        }
        (None, ..) => Err(format!("{ID} is missing")),
        (_, None, _) => Err(format!("{TIMESTAMP} is missing")),
        (.., None) => Err(format!("{SIGNATURE} is missing")),
    }
}

fn of_version_1(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text.strip_prefix("v1,")?).ok().filter(|bytes| bytes.len() == 32)
}

impl Trio<'_> {
    fn is_made_with(&self, secrets: &Secrets, body: &[u8]) -> bool {
        let message = [self.id.as_bytes(), b".", self.timestamp.as_bytes(), b".", body].concat();
        self.covers(secrets, &message)
    }

    fn covers(&self, secrets: &Secrets, message: &[u8]) -> bool {
        secrets.verifying().any(|secret| {
            let key = Key::new(HMAC_SHA256, secret.expose());
            self.signatures.iter().any(|signature| verify(&key, message, signature).is_ok())
        })
    }
}

/// Why a library refuses what was made with the right secret.
fn refused(received: &Received, trio: &Trio<'_>) -> Option<String> {
    let is_number = trio.timestamp.bytes().all(|byte| byte.is_ascii_digit());
    let Some(seconds) = trio.timestamp.parse::<i64>().ok().filter(|_| is_number) else {
        return Some(format!("{TIMESTAMP} is no number of whole seconds"));
    };
    let is_near = |seconds: i64| seconds.abs_diff(received.at.seconds()) <= TOLERANCE.as_secs();
    if !is_near(seconds) {
        let what = if is_near(seconds / 1000) { "counts milliseconds" } else { "is more than 5 minutes from now" };
        return Some(format!("{TIMESTAMP} {what}"));
    }
    let callback_id = once(received, &CALLBACK_ID);
    (!matches!(callback_id, Ok(None)) && callback_id != Ok(Some(trio.id)))
        .then(|| format!("{ID} is not the X-Callback-Id"))
}

fn why(keys: &Keys<'_>, received: &Received, trio: &Trio<'_>) -> String {
    let body = &received.body;
    if keys.any(v1_secrets, |secrets| trio.is_made_with(secrets, body)) {
        return V1_SECRET.to_owned();
    }
    if keys.any(v2_secrets, |secrets| trio.covers(secrets, body)) {
        return "it covers the body alone, not id.timestamp.body".to_owned();
    }
    "no v2_secret of the rules makes it over id.timestamp.body: another secret, or one of the three was changed"
        .to_owned()
}
