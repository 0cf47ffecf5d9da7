//! `paybridge translate`: shows the v2 body that a v1 body becomes, or why it cannot be translated.

mod explain;

use std::io::{self, Write};

use crate::domain::Direction;
use crate::rules::{Merchant, RuleSet};
use crate::shadow::{dry_run, explained_members};
use crate::wire::v1;

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
    let run = match dry_run(rules, merchant, &create) {
        Ok(run) => run,
        Err(error) => return reject(err, &error.error.to_string()),
    };
    writeln!(out, "{}", run.body)?;
    if explain {
        writeln!(out)?;
        explain::write_members(&explained_members(&create, merchant, &run), out)?;
    }
    if !merchant.api_keys.iter().any(|key| key.v1_secrets.is_some()) {
        writeln!(err, "note: the merchant has no API key that can call v1")?;
    }
    if rules.gateway.engine.is_remote() {
        writeln!(err, "note: the remote engine applies its own rules, which are not known here")?;
    }
    if let Some(Err(error)) = run.outcome {
        writeln!(err, "note: the engine would reject this now: {error}")?;
    }
    Ok(true)
}

fn reject(err: &mut dyn Write, error: &str) -> io::Result<bool> {
    writeln!(err, "cannot be translated: {error}")?;
    Ok(false)
}
