//! What a check came to, as one JSON document.

use std::io::{self, Write};

use serde::Serialize;

use super::Checked;
use crate::rules::{Place, Problem, Severity};

#[derive(Serialize)]
struct Document<'a> {
    /// Whether the exit code is 0.
    valid: bool,
    /// Of the rules; `null` when they are refused, as are the numbers below.
    version: Option<&'a str>,
    errors: usize,
    warnings: usize,
    problems: Vec<Found<'a>>,
    merchants: Option<usize>,
    api_keys: Option<usize>,
    shops: Option<usize>,
    dialects: Option<usize>,
}

#[derive(Serialize)]
struct Found<'a> {
    severity: &'static str,
    #[serde(flatten)]
    place: At<'a>,
    message: &'a str,
    suggestion: Option<&'a str>,
}

/// Lines and columns count from 1, columns in characters; the end is the place after the last character.
#[derive(Serialize)]
struct At<'a> {
    file: String,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    /// The line, its secrets masked, or the part of a long one around the place.
    line_text: Option<&'a str>,
}

pub(super) fn write(checked: &Checked, out: &mut dyn Write) -> io::Result<()> {
    let rules = checked.inspection.rules.as_ref();
    let document = Document {
        valid: checked.passes,
        version: rules.map(|rules| &*rules.version),
        errors: checked.count(Severity::Error),
        warnings: checked.count(Severity::Warning),
        problems: checked.inspection.problems.iter().map(found).collect(),
        merchants: rules.map(|rules| rules.merchants.len()),
        api_keys: rules.map(|rules| rules.api_keys.len()),
        shops: rules.map(|rules| rules.shops.len()),
        dialects: rules.map(|rules| rules.dialects.len()),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn found(problem: &Problem) -> Found<'_> {
    Found {
        severity: problem.severity.as_str(),
        place: at(&problem.place),
        message: &problem.message,
        suggestion: problem.suggestion.as_deref(),
    }
}

fn at(place: &Place) -> At<'_> {
    let ((line, column), (end_line, end_column)) = (place.start, place.end);
    At { file: place.file.display().to_string(), line, column, end_line, end_column, line_text: place.line_text() }
}
