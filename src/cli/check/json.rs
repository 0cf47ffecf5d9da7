//! The result of a check as one JSON document.

use std::io::{self, Write};

use serde::Serialize;

use super::Checked;
use crate::rules::{Place, Problem, Severity};

#[derive(Serialize)]
struct Document<'a> {
    /// Whether the exit code is 0.
    valid: bool,
    /// The version of the rules. This and the counts below are `null` if the rules are rejected.
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

/// A range in a file. Lines and columns count from 1, columns in characters; the end is after the last character.
#[derive(Serialize)]
struct At<'a> {
    file: String,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    /// The line with its secrets masked; of a long line, the part around the place.
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
