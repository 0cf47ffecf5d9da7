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
