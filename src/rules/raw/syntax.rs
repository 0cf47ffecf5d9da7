//! What is wrong with a file that is no TOML, told so that the first thing to mend comes first.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::rules::problems::{FileId, Findings, MERGE_MARKERS, Span};

/// How many problems of one file are told: a slip early in a file makes the parser stumble over much of the rest.
const MOST_TOLD: usize = 5;

/// Parses a file; what is wrong with it is noted.
pub(super) fn parse<'t>(text: &'t str, file: FileId, findings: &mut Findings) -> Option<Spanned<DeValue<'t>>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Some(Spanned::new(0..0, DeValue::Table(table.into_inner())));
    }
    findings.distrust(file);
    if let Some(marker) = conflict(text) {
        let advice = "decide on one side, and take the lines with `<<<<<<<`, `=======` and `>>>>>>>` out";
        findings.add_with(file, marker, "a merge conflict was left in this file", Some(advice.into()));
        return None;
    }
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
        let (reason, advice) = in_words(error.message(), text.get(span.clone()).unwrap_or_default());
        findings.add_with(file, span, format!("not valid TOML: {reason}"), advice.map(str::to_owned));
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

fn conflict(text: &str) -> Option<Span> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if MERGE_MARKERS.iter().any(|marker| line.starts_with(marker)) {
            return Some(start..start + line.trim_end().len());
        }
        start += line.len();
    }
    None
}

/// The parser's reason, and what is most likely to be done about it.
fn in_words<'m>(reason: &'m str, at: &str) -> (&'m str, Option<&'static str>) {
    if reason.starts_with("string values must be quoted") {
        let advice = if at.contains(['\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}']) {
            "quotation marks are written \"...\", straight ones"
        } else if at.starts_with('[') || at.contains(']') {
            "is a list above it not closed with `]`?"
        } else {
            "write it in quotation marks: \"...\""
        };
        return ("a text must stand in quotation marks", Some(advice));
    }
    let advice = match reason {
        reason if reason.starts_with("missing comma between array elements") => {
            "is the list above closed with `]`, and is there a comma between any two of its elements?"
        }
        reason if reason.starts_with("invalid basic string") => "a text ends with `\"`, in the line in which it began",
        reason if reason.starts_with("key with no value") => "a key is followed by `=` and its value",
        "duplicate key" => "a key or table may be in a file once",
        _ => return (reason, None),
    };
    (reason, Some(advice))
}
