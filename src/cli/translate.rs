//! `paybridge translate`: what a v1 body becomes, or why it cannot.

use std::io::{self, Write};

use crate::domain::{Direction, OrderId};
use crate::engine::by_todays_rules;
use crate::rules::{Merchant, RuleSet};
use crate::store::Comparer;
use crate::v1::{relay_url, translate};
use crate::wire::{v1, v2};

/// Prints the v2 body that a v1 body becomes for a merchant, with `explain` followed by a line for every member: where
/// it came from, what was filled in and what was dropped. Returns whether it can be translated.
///
/// The relay address ends in a code that only the running gateway's store can make; here it is made of zeros.
///
/// # Errors
/// Only those of writing.
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
        Err(complaint) => return refuse(err, &complaint.to_string()),
    };
    let relay = sample_relay_url(rules, merchant, direction, &create.external_id);
    let translation = match translate::translate(&create, &merchant.v1, &relay) {
        Ok(translation) => translation,
        Err(untranslatable) => return refuse(err, &untranslatable.complaint.to_string()),
    };
    let forwarded = translation.to_body();
    writeln!(out, "{forwarded}")?;
    if explain {
        writeln!(out)?;
        explain_members(&translation, out)?;
    }
    if let Some(objection) = engines_objection(merchant, direction, forwarded.as_bytes(), &create) {
        writeln!(err, "note: the engine would refuse this today: {objection}")?;
    }
    Ok(true)
}

fn refuse(err: &mut dyn Write, complaint: &str) -> io::Result<bool> {
    writeln!(err, "cannot be translated: {complaint}")?;
    Ok(false)
}

fn sample_relay_url(rules: &RuleSet, merchant: &Merchant, direction: Direction, external_id: &OrderId) -> String {
    let public_url = &rules.gateway.server.public_url;
    let made = relay_url(public_url, &Comparer::new(&[0; 32]), &merchant.id, direction, external_id);
    match made.rsplit_once('.') {
        Some((start, code)) => format!("{start}.{}", "0".repeat(code.len())),
        None => made,
    }
}

/// What today's rules of the engine would say, in v1 words.
fn engines_objection(
    merchant: &Merchant,
    direction: Direction,
    body: &[u8],
    create: &v1::V1Create<'_>,
) -> Option<String> {
    let api_key = merchant.api_keys.iter().find(|key| key.v1_secrets.is_some())?;
    let verdict =
        v2::read_create(direction, body).and_then(|request| by_todays_rules(merchant, api_key, &request).map(|_| ()));
    let complaint = verdict.err()?;
    Some(complaint.renamed(|path| create.v1_name(path)).to_string())
}

fn explain_members(translation: &translate::Translation<'_>, out: &mut dyn Write) -> io::Result<()> {
    for member in &translation.members {
        writeln!(out, "{:<36} <- {}", member.raw_name.trim_matches('"'), member.source)?;
    }
    for member in &translation.fields {
        let target = format!("fields.{}", member.raw_name.trim_matches('"'));
        writeln!(out, "{target:<36} <- {}", member.source)?;
    }
    match &translation.relayed_to {
        Some(url) => writeln!(out, "callbacks are relayed in v1 shape to {}", url.as_str())?,
        None if translation.members.iter().any(|member| member.source == translate::Source::Relay) => {
            writeln!(out, "no v1 callback is sent: neither the request nor the merchant's rules name an address")?;
        }
        None => {}
    }
    for (name, why) in &translation.dropped {
        writeln!(out, "{name:<36} dropped: {why}")?;
    }
    Ok(())
}
