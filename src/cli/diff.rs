//! `paybridge diff`: shows what changes between two rule directories, and for which merchants.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::args::{Diff, Format};
use super::outcome::{CliError, ExitOutcome, plural, wrong_rules};
use crate::clock::{Clock, SystemClock};
use crate::rules::{Audience, Change, Effect, Group, ReadRules, diff};

/// The most names in a heading.
const MAX_NAMES: usize = 5;

/// Compares two rules directories. Writes the changes to `out`; problems, and a note if nothing changes, to `err`.
///
/// # Errors
/// A directory has problems, which were written; there are changes and `--exit-code` is set; or the output cannot be
/// written.
pub fn run(args: &Diff, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    let old = read(&args.old, err)?;
    let new = read(&args.new, err)?;
    let (Some(old), Some(new)) = (old, new) else { return Err(CliError::Reported) };
    let groups = diff(&old, &new);
    match args.format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &document(&groups)).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        Format::Text => write!(out, "{}", text(&groups))?,
    }
    if groups.is_empty() {
        writeln!(err, "no changes: both directories mean the same")?;
    }
    if args.exit_code && !groups.is_empty() { Err(CliError::Reported) } else { Ok(()) }
}

/// Reads one directory; writes its problems and returns `None` if there are any, so that one run shows those of both.
fn read(directory: &Path, err: &mut dyn Write) -> Result<Option<ReadRules>, CliError> {
    match ReadRules::read(directory, SystemClock.now()) {
        Ok(rules) => {
            for warning in rules.warnings() {
                writeln!(err, "{}\n", warning.rendered())?;
            }
            Ok(Some(rules))
        }
        Err(problems) => {
            match wrong_rules(directory, &problems, err) {
                CliError::Failed(reason) => writeln!(err, "error: {reason}")?,
                stop @ (CliError::Reported | CliError::NotReady | CliError::Usage(_) | CliError::Output(_)) => {
                    return Err(stop);
                }
            }
            Ok(None)
        }
    }
}

fn text(groups: &[Group]) -> String {
    let mut text = String::new();
    for group in groups {
        text.push_str(&heading(&group.audience));
        text.push('\n');
        for change in &group.changes {
            let next_start = if change.at_next_start { " (takes effect at the next start)" } else { "" };
            let _ = writeln!(text, "    {} {}{next_start}", mark(change.effect), change.what);
        }
    }
    text
}

const fn mark(effect: Effect) -> char {
    match effect {
        Effect::Refuses => '!',
        Effect::TakesAway => '-',
        Effect::Allows => '+',
        Effect::Neither => ' ',
    }
}

fn heading(audience: &Audience) -> String {
    match audience {
        Audience::Merchant { id, name } if id == name => format!("merchant {id}"),
        Audience::Merchant { id, name } => format!("merchant {id} ({name})"),
        Audience::Shop { code, merchants } => format!("shop {code} ({})", of("merchant", merchants)),
        Audience::List { name, shops } => format!("list {name} ({})", of("shop", shops)),
        Audience::Dialect { name, merchants } => format!("dialect {name} ({})", of("merchant", merchants)),
        Audience::Pages => "customers' pages".to_owned(),
        Audience::Gateway => "gateway".to_owned(),
    }
}

/// Formats a list of names: `merchants acme, beta and 3 more`.
fn of(what: &str, names: &[String]) -> String {
    if names.is_empty() {
        return format!("no {what}");
    }
    let first = names.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match names.len().saturating_sub(MAX_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{what}{} {first}{more}", plural(names.len()))
}

/// Returns one document: a list of changes, in the order of the text.
fn document(groups: &[Group]) -> Value {
    let changes = groups.iter().flat_map(|group| group.changes.iter().map(|change| object(&group.audience, change)));
    Value::Array(changes.collect())
}

fn object(audience: &Audience, change: &Change) -> Value {
    let audience = match audience {
        Audience::Merchant { id, name } => json!({ "kind": "merchant", "id": id, "name": name }),
        Audience::Shop { code, merchants } => json!({ "kind": "shop", "id": code, "merchants": merchants }),
        Audience::List { name, shops } => json!({ "kind": "list", "id": name, "shops": shops }),
        Audience::Dialect { name, merchants } => json!({ "kind": "dialect", "id": name, "merchants": merchants }),
        Audience::Pages => json!({ "kind": "pages" }),
        Audience::Gateway => json!({ "kind": "gateway" }),
    };
    let effect = match change.effect {
        Effect::Refuses => "refuses",
        Effect::TakesAway => "takes_away",
        Effect::Allows => "allows",
        Effect::Neither => "neither",
    };
    json!({
        "who": audience,
        "what": change.what,
        "effect": effect,
        "file": change.file,
        "key": change.key,
        "at_next_start": change.at_next_start,
    })
}

#[cfg(test)]
mod tests;
