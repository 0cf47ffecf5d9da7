//! `X-Signature` of v2: lowercase hexadecimal HMAC-SHA256 over the raw body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderName;

use super::{Keys, Received, V1_SECRET, Verdict, once, v1_secrets, v2_secrets};
use crate::auth::signatures::verify_v2;

/// The header.
pub const SIGNATURE: HeaderName = HeaderName::from_static("x-signature");

/// What the signature is worth.
pub fn check(keys: &Keys<'_>, received: &Received) -> Verdict {
    let text = match once(received, &SIGNATURE) {
        Ok(None) => return Verdict::Missing,
        Ok(Some(text)) => text,
        Err(reason) => return Verdict::Wrong(reason),
    };
    let made = keys.signer(v2_secrets, |secrets| verify_v2(secrets, &received.body, text.as_bytes()));
    made.unwrap_or_else(|| Verdict::Wrong(why(keys, received, text)))
}

fn why(keys: &Keys<'_>, received: &Received, text: &str) -> String {
    let (hex, spelling) = as_lower_hex(text);
    if let Some(spelling) = spelling {
        let right = if keys.any(v2_secrets, |secrets| verify_v2(secrets, &received.body, hex.as_bytes())) {
            "it is right, but "
        } else {
            ""
        };
        return format!("{right}{spelling}: v2 takes 64 lowercase hexadecimal digits");
    }
    if keys.any(v1_secrets, |secrets| verify_v2(secrets, &received.body, hex.as_bytes())) {
        return V1_SECRET.to_owned();
    }
    "no v2_secret of the rules makes it over this body: another secret, or another body".to_owned()
}

/// A signature as v2 would write it, and how else it is written.
fn as_lower_hex(text: &str) -> (String, Option<&'static str>) {
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let lower = text.to_ascii_lowercase();
        let spelling = (lower != text).then_some("written in upper case");
        return (lower, spelling);
    }
    match STANDARD.decode(text) {
        Ok(bytes) if bytes.len() == 32 => (hex::encode(bytes), Some("written in base64")),
        _ => (String::new(), Some("no signature")),
    }
}
