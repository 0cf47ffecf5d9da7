//! Verifies the signatures of a callback: names the keys that verify one, and what is wrong with the others.
//!
//! This is the receiver's side: it shares with the sender only the two signing methods that requests use too.

use std::time::Duration;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, verify};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName};

use super::exchange::Received;
use crate::auth::signatures::{V1Input, is_fresh, verify_v1, verify_v2};
use crate::domain::Secrets;
use crate::rules::{ApiKey, KeyEntry, Merchant, RuleSet};

const X_SIGNATURE: HeaderName = HeaderName::from_static("x-signature");
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// How far the time of a webhook may differ from now, in either direction, in the libraries that receivers use.
const TOLERANCE: Duration = Duration::from_mins(5);

/// The key that made a signature.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct VerifySigner {
    /// The merchant.
    pub merchant: String,
    /// The API key.
    pub key: String,
}

impl VerifySigner {
    fn new(merchant: &Merchant, key: &ApiKey) -> Self {
        Self { merchant: merchant.id.to_string(), key: key.key.to_string() }
    }
}

/// The signer, `None` if there is no signature, or why the signature is invalid.
pub(super) type Verdict = Result<Option<VerifySigner>, String>;

/// What was found out about a callback.
pub(super) struct VerifyFindings {
    /// The callback's shape: `v1`, a merchant's dialect, or `v2`.
    pub style: &'static str,
    /// The headers that the signatures cover or depend on.
    pub covered: Vec<HeaderName>,
    /// The signatures, by header.
    pub signatures: Vec<(HeaderName, Verdict)>,
}

/// Checks every signature that the callback should have.
pub(super) fn check(rules: &RuleSet, received: &Received) -> VerifyFindings {
    v1(rules, received).unwrap_or_else(|| VerifyFindings {
        style: "v2",
        covered: vec![WEBHOOK_ID, WEBHOOK_TIMESTAMP],
        signatures: vec![(X_SIGNATURE, v2(rules, received)), (WEBHOOK_SIGNATURE, webhook(rules, received))],
    })
}

/// Checks a callback in a v1 dialect: it has the API-key header of some merchant's dialect, and no header of Standard
/// Webhooks.
fn v1(rules: &RuleSet, received: &Received) -> Option<VerifyFindings> {
    let headers = received.request.headers();
    if headers.keys().any(|name| name.as_str().starts_with("webhook-")) {
        return None;
    }
    let recipes = rules.merchants.values().map(|merchant| &merchant.v1.dialect.signature);
    let recipes = recipes.filter(|recipe| headers.contains_key(&recipe.api_key));
    let entry = recipes.clone().find_map(|recipe| {
        let entry = rules.api_key(single_header(headers, &recipe.api_key).ok()??)?;
        (entry.merchant.v1.dialect.signature.api_key == recipe.api_key).then_some(entry)
    });
    let (recipe, verdict) = if let Some(entry) = entry {
        (&entry.merchant.v1.dialect.signature, v1_signature(entry, received))
    } else {
        let recipe = recipes.min_by_key(|recipe| recipe.api_key.as_str())?;
        let unknown = || format!("{} names no API key of the rules", recipe.api_key);
        (recipe, Err(single_header(headers, &recipe.api_key).err().unwrap_or_else(unknown)))
    };
    Some(VerifyFindings {
        style: "v1",
        covered: vec![recipe.api_key.clone(), recipe.timestamp.clone()],
        signatures: vec![(recipe.signature.clone(), verdict)],
    })
}

fn v1_signature(entry: &KeyEntry, received: &Received) -> Verdict {
    let (dialect, key, request) = (&entry.merchant.v1.dialect, entry.api_key(), &received.request);
    let recipe = &dialect.signature;
    let Some(signature) = single_header(request.headers(), &recipe.signature)? else { return Ok(None) };
    let Some(timestamp) = single_header(request.headers(), &recipe.timestamp)? else {
        return Err(format!("{} is missing", recipe.timestamp));
    };
    let input = V1Input {
        timestamp,
        method: request.method().as_str(),
        path: request.uri().path(),
        query: request.uri().query(),
        api_key: &key.key,
        body: request.body(),
    };
    let verifies = |secrets: &Option<Secrets>| {
        secrets.as_ref().is_some_and(|secrets| verify_v1(recipe, secrets, &input, signature.as_bytes()))
    };
    if verifies(&key.v1_secrets) {
        if is_fresh(recipe, timestamp.as_bytes(), received.at) {
            return Ok(Some(VerifySigner::new(&entry.merchant, key)));
        }
        let (header, window) = (&recipe.timestamp, recipe.window.as_secs());
        return Err(format!("the signature is correct, but {header} is malformed or not within {window} s of now"));
    }
    let named = format!("key {}, merchant {}", key.key, entry.merchant.id);
    Err(if key.v1_secrets.is_none() {
        format!("the API key has no v1_secret: {named}")
    } else if verifies(&key.v2_secrets) {
        "made with the v2_secret: callbacks in a dialect are signed with the v1_secret".to_owned()
    } else {
        let dialect = &dialect.name;
        format!(
            "the v1_secret gives another signature for this method, path, timestamp and body by the recipe of dialect {dialect} \
             ({named})"
        )
    })
}

/// Checks `X-Signature` of v2: lowercase hexadecimal HMAC-SHA256 over the raw body.
fn v2(rules: &RuleSet, received: &Received) -> Verdict {
    let Some(text) = single_header(received.request.headers(), &X_SIGNATURE)? else { return Ok(None) };
    if text.len() != 64 || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Err("no signature: v2 takes 64 lowercase hexadecimal digits".to_owned());
    }
    v2_signer(rules, "this body", |secrets| verify_v2(secrets, received.request.body(), text.as_bytes()))
}

/// Checks the three headers of Standard Webhooks: `webhook-signature` contains `v1,` and the base64 of an HMAC-SHA256
/// over `id.timestamp.body`. Written from the specification and not shared with the sender, so that a mistake in one is
/// detected by the other.
fn webhook(rules: &RuleSet, received: &Received) -> Verdict {
    let (headers, body) = (received.request.headers(), received.request.body());
    let of = |name| single_header(headers, name);
    let (id, timestamp, text) = match (of(&WEBHOOK_ID)?, of(&WEBHOOK_TIMESTAMP)?, of(&WEBHOOK_SIGNATURE)?) {
        (None, None, None) => return Ok(None),
        (Some(id), Some(timestamp), Some(text)) => (id, timestamp, text),
        (None, ..) => return Err(format!("{WEBHOOK_ID} is missing")),
        (_, None, _) => return Err(format!("{WEBHOOK_TIMESTAMP} is missing")),
        (.., None) => return Err(format!("{WEBHOOK_SIGNATURE} is missing")),
    };
    let decoded = text.split(' ').filter_map(|text| STANDARD.decode(text.strip_prefix("v1,")?).ok());
    let signatures: Vec<_> = decoded.filter(|bytes| bytes.len() == 32).collect();
    if signatures.is_empty() {
        return Err("it holds no signature of version 1: `v1,` and the base64 of 32 bytes".to_owned());
    }
    let message = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat();
    let signer = v2_signer(rules, "id.timestamp.body", |secrets| {
        secrets.verifying().any(|secret| {
            let key = Key::new(HMAC_SHA256, secret.expose());
            signatures.iter().any(|signature| verify(&key, &message, signature).is_ok())
        })
    })?;
    let is_near = |seconds: i64| seconds.abs_diff(received.at.seconds()) <= TOLERANCE.as_secs();
    if !timestamp.parse().is_ok_and(is_near) || timestamp.starts_with('+') {
        return Err(format!(
            "the signature is correct, but {WEBHOOK_TIMESTAMP} is not a time in seconds within 5 minutes of now"
        ));
    }
    Ok(signer)
}

/// Finds the key whose `v2_secret` makes the signature over the `covered` content.
fn v2_signer(rules: &RuleSet, covered: &str, verifies: impl Fn(&Secrets) -> bool) -> Verdict {
    let keys =
        || rules.merchants.values().flat_map(|merchant| merchant.api_keys.iter().map(move |key| (merchant, key)));
    let verifies_with = |secrets: &Option<Secrets>| secrets.as_ref().is_some_and(&verifies);
    let signers = keys()
        .filter(|(_, key)| verifies_with(&key.v2_secrets))
        .map(|(merchant, key)| VerifySigner::new(merchant, key));
    // If keys share a secret, the first by name is returned, so that the result is always the same.
    if let Some(signer) = signers.min() {
        return Ok(Some(signer));
    }
    Err(if keys().any(|(_, key)| verifies_with(&key.v1_secrets)) {
        "made with a v1_secret: callbacks in the shape of v2 are signed with the v2_secret".to_owned()
    } else {
        format!(
            "no v2_secret of the rules gives this signature over {covered}: another secret, or the content was changed"
        )
    })
}

/// Returns the value of a header that occurs at most once; `None` if it is missing.
fn single_header<'r>(headers: &'r HeaderMap, name: &HeaderName) -> Result<Option<&'r str>, String> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(format!("{name} is sent more than once"));
    }
    value.to_str().map(Some).map_err(|_| format!("{name} holds more than visible ASCII"))
}

#[cfg(test)]
mod tests;
