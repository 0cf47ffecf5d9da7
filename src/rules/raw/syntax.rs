//! What is wrong with a file that is no TOML, told so that the first thing to mend comes first.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::rules::problems::{Diagnostics, FileId};

/// How many problems of one file are told: a slip early in a file makes the parser stumble over much of the rest.
const MOST_TOLD: usize = 5;

/// Parses a file; what is wrong with it is noted.
pub(super) fn parse<'t>(text: &'t str, file: FileId, findings: &mut Diagnostics) -> Option<Spanned<DeValue<'t>>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Some(Spanned::new(0..0, DeValue::Table(table.into_inner())));
    }
    findings.distrust(file);
    // What is wrong later in a line is mostly what the first thing made of it.
    let mut reported: Vec<usize> = Vec::new();
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let line = findings.position(file, span.start).0;
        if !reported.contains(&line) && reported.len() < MOST_TOLD {
            reported.push(line);
            findings.add(file, span, format!("not valid TOML: {}", error.message()));
        }
    }
    None
}
