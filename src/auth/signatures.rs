//! Signatures over requests and links.

use hmac::Mac;

use crate::rules::Secret;

/// The v2 signature: lowercase hexadecimal HMAC-SHA256 of the raw body (merchant-api-v2, "Authentication").
#[must_use]
pub fn sign_v2(secret: &Secret, body: &[u8]) -> String {
    let mut mac = secret.sha256();
    mac.update(body);
    lower_hex(&mac.finalize().into_bytes())
}

/// Whether `signature` is the v2 signature of `body`, in constant time.
#[must_use]
pub fn verify_v2(secret: &Secret, body: &[u8], signature: &str) -> bool {
    let mut mac = secret.sha256();
    mac.update(body);
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let bytes: Option<Vec<u8>> =
        signature.as_bytes().chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect();
    bytes.is_some_and(|bytes| mac.verify_slice(&bytes).is_ok())
}

/// Lowercase hexadecimal text of bytes.
#[must_use]
pub fn lower_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 0xf)]));
    }
    text
}
