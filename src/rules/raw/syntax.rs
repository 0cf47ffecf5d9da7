//! Parses TOML and notes its syntax errors, the first to fix first.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::FromToml;
use super::schema::shown_keys;
use crate::rules::problems::{Diagnostics, FileId};

/// The most syntax errors that are noted for one file: an early mistake often causes many later errors.
const MOST_ERRORS: usize = 5;

/// Parses a file of this type; notes syntax errors.
pub(in crate::rules) fn parse<'t, T: FromToml>(
    text: &'t str,
    file: FileId,
    diagnostics: &mut Diagnostics,
) -> Option<Spanned<DeValue<'t>>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Some(Spanned::new(0..0, DeValue::Table(table.into_inner())));
    }
    diagnostics.distrust(file, shown_keys(&T::schema()));
    // Later errors in a line are mostly consequences of the first.
    let mut reported: Vec<usize> = Vec::new();
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let line = diagnostics.position(file, span.start).0;
        if !reported.contains(&line) && reported.len() < MOST_ERRORS {
            reported.push(line);
            diagnostics.add(file, span, format!("not valid TOML: {}", error.message()));
        }
    }
    None
}
