//! Signed links.

use hmac::Mac;

use super::signatures::lower_hex;
use crate::domain::TransactionId;
use crate::rules::Secret;

/// The path of entry links.
pub const ENTRY: &str = "pay";

/// Signs a link.
#[must_use]
pub fn sign(secret: &Secret, public_url: &str, kind: &str, id: TransactionId, expires: i64) -> String {
    let target = format!("/{kind}/{id}?expires={expires}");
    let mut mac = secret.sha256();
    mac.update(target.as_bytes());
    format!("{public_url}{target}&signature={}", lower_hex(&mac.finalize().into_bytes()))
}
