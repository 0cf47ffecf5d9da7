//! What is wrong with a file that is no TOML, told so that the first thing to mend comes first.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::rules::problems::{FileId, Findings, Span};

/// How many problems of one file are told: a slip early in a file makes the parser stumble over much of the rest.
const MOST_TOLD: usize = 5;

/// Parses a file; what is wrong with it is noted.
pub(super) fn parse<'t>(text: &'t str, file: FileId, findings: &mut Findings) -> Option<Spanned<DeValue<'t>>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Some(Spanned::new(0..0, DeValue::Table(table.into_inner())));
    }
    findings.distrust(file);
    // What is wrong later in a line is mostly what the first thing made of it.
    let mut told: Vec<Span> = Vec::new();
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        if told.iter().any(|line| line.contains(&span.start)) {
            continue;
        }
        if told.len() == MOST_TOLD {
            break;
        }
        told.push(line_of(text, span.start));
        findings.add(file, span, format!("not valid TOML: {}", error.message()));
    }
    None
}

/// The bytes of the line that a byte is in, its line break and the end of the text included.
fn line_of(text: &str, at: usize) -> Span {
    let bytes = text.as_bytes();
    let at = at.min(bytes.len());
    let start = bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let end = bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |newline| at + newline);
    start..end + 1
}
