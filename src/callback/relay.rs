//! Receives `POST /relay/{merchant}.{direction}.{code}`: callbacks of a v2 engine for operations that were created
//! through v1 (contract section 10). A callback is stored before it is replied to; the result it announces is read from
//! the engine afterwards.
//!
//! The embedded engine's results are in the outbox already: a callback for one of its operations is verified, and
//! otherwise ignored.

use bytes::Bytes;

use crate::auth::SignedBody;
use crate::clock::Clock;
use crate::domain::{Fingerprint, MerchantId, Secrets};
use crate::error::ApiError;
use crate::rules::RuleSet;
use crate::store::{RelayTarget, Store, StoreError};
use crate::wire::members::{read_object, required_parsed};

/// Returns the target that the last segment of a relay address names; `None` if no such address was ever issued.
///
/// # Errors
/// The store is unavailable.
pub async fn relay_target(store: &dyn Store, token: &str) -> Result<Option<RelayTarget>, StoreError> {
    let Some((owner, code)) = token.rsplit_once('.') else { return Ok(None) };
    let Some(code) = code_of(code) else { return Ok(None) };
    let Some((merchant, direction)) = owner.rsplit_once('.') else { return Ok(None) };
    let Ok(merchant) = MerchantId::new(merchant) else { return Ok(None) };
    let found = store.relay_target(&merchant, code).await?;
    Ok(found.filter(|found| direction == found.direction.as_str()))
}

/// Parses sixteen bytes in lowercase hexadecimal.
fn code_of(text: &str) -> Option<Fingerprint> {
    let digits = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let valid = text.len() == 32 && text.bytes().all(digits);
    valid.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(|number| Fingerprint(number.to_be_bytes()))
}

/// Returns the API key whose secrets an engine signs a callback with, and these secrets. It is the key that created the
/// operation or, if that has no v2 secret any more, the merchant's first key with one.
#[must_use]
pub fn secrets<'r>(rules: &'r RuleSet, relay_target: &RelayTarget) -> Option<(&'r str, &'r Secrets)> {
    let merchant = rules.merchants.get(&relay_target.merchant)?;
    let signing = merchant.signing_key(&relay_target.api_key, |key| key.v2_secrets.as_ref());
    signing.map(|(key, secrets)| (&*key.key, secrets))
}

/// Records a verified callback, and returns the body of the 200 reply. A repeated one changes nothing.
///
/// # Errors
/// The callback is malformed, or names another operation than its address ([`ApiError::NotFound`]); or the store is
/// unavailable, and the callback has to be sent again.
pub async fn take(
    store: &dyn Store,
    clock: &dyn Clock,
    relay_target: &RelayTarget,
    body: &SignedBody,
) -> Result<Bytes, ApiError> {
    let object = read_object(body.bytes())?;
    let order_id = required_parsed("order_id", object.get("order_id"), |text| Ok(text.to_owned()))?;
    if order_id != relay_target.order_id.as_str() {
        return Err(ApiError::NotFound);
    }
    if let Some(entry) = relay_target.entry {
        store.relayed(entry, clock.now()).await?;
    }
    Ok(Bytes::from_static(b"{}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_one_spelling() {
        let code = "00ff0000000000000000000000000001";
        assert_eq!(code_of(code), Some(Fingerprint([0, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])));
        for wrong in [
            "",
            "00FF0000000000000000000000000001",
            "0ff0000000000000000000000000001",
            "+0ff0000000000000000000000000001",
        ] {
            assert_eq!(code_of(wrong), None, "{wrong}");
        }
    }
}
