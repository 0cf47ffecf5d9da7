//! `paybridge translate`: shows the v2 body that a v1 body becomes, or why it cannot be translated.

mod explain;

use std::io::{self, Write};

use crate::domain::{Direction, Fingerprint};
use crate::engine::{AcceptedRequest, check_rules};
use crate::error::RequestError;
use crate::rules::{ApiKey, EngineRules, Merchant, RuleSet};
use crate::v1::{relay_url, translate};
use crate::wire::{v1, v2};

/// Prints the v2 body that a v1 body becomes for a merchant, on the first line. With `explain`, a line for every member
/// of either body follows: where it came from, by which rule, and what was filled in or dropped. Returns whether the
/// body can be translated. Only the embedded engine's result is shown: a remote engine has rules of its own.
///
/// The relay address ends with a code that only the running gateway's store can compute; here it consists of zeros.
///
/// # Errors
/// The output cannot be written.
pub fn run(
    rules: &RuleSet,
    merchant: &Merchant,
    direction: Direction,
    explain: bool,
    body: &[u8],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<bool> {
    let create = match v1::read_create(direction, body) {
        Ok(create) => create,
        Err(error) => return reject(err, &error.to_string()),
    };
    let relay = sample_relay_url(rules, merchant, direction);
    let translation = match translate::translate(&create, &merchant.v1, &relay) {
        Ok(translation) => translation,
        Err(error) => return reject(err, &error.error.to_string()),
    };
    let forwarded = translation.to_body();
    writeln!(out, "{forwarded}")?;
    let remote = matches!(rules.gateway.engine, EngineRules::Remote(_));
    let api_key = merchant.api_keys.iter().find(|key| key.v1_secrets.is_some());
    let embedded_key = api_key.filter(|_| !remote);
    let outcome =
        embedded_key.map(|api_key| apply_engine_rules(merchant, api_key, direction, forwarded.as_bytes(), &create));
    if explain {
        writeln!(out)?;
        explain::explain(&translation, merchant, outcome.as_ref().and_then(|outcome| outcome.as_ref().ok()), out)?;
    }
    if api_key.is_none() {
        writeln!(err, "note: the merchant has no API key that can call v1")?;
    }
    if remote {
        writeln!(err, "note: the remote engine applies its own rules, which are not known here")?;
    }
    if let Some(Err(error)) = outcome {
        writeln!(err, "note: the engine would reject this now: {error}")?;
    }
    Ok(true)
}

fn reject(err: &mut dyn Write, error: &str) -> io::Result<bool> {
    writeln!(err, "cannot be translated: {error}")?;
    Ok(false)
}

/// Returns the relay address with a code of zeros, since only the store can compute the real one.
fn sample_relay_url(rules: &RuleSet, merchant: &Merchant, direction: Direction) -> String {
    relay_url(&rules.gateway.server.public_url, &merchant.id, direction, Fingerprint([0; 16]))
}

/// Applies the embedded engine's current rules to the body; an error names members as v1 does.
fn apply_engine_rules(
    merchant: &Merchant,
    api_key: &ApiKey,
    direction: Direction,
    body: &[u8],
    create: &v1::V1Create<'_>,
) -> Result<AcceptedRequest, RequestError> {
    let request = v2::read_create(direction, body);
    let outcome = request.and_then(|request| check_rules(merchant, api_key, &request).map_err(|refusal| refusal.error));
    outcome.map_err(|error| error.renamed(|path| create.v1_name(path)))
}
