//! Reports what is wrong or unusual in a list of ids that are to be reserved.

use std::io::Write;

use super::outcome::CliError;
use crate::domain::{OrderId, wide};

/// How many invalid lines, and how many skipped ids, are listed.
pub(super) const MAX_LISTED: usize = 20;

/// What was found in the lines so far.
#[derive(Debug, Default)]
pub(super) struct LineReport {
    invalid: u64,
    /// The first invalid lines, with the reasons.
    first_invalid: Vec<(u64, String)>,
    odd: u64,
    /// The line of the first odd id.
    first_odd: u64,
}

impl LineReport {
    /// Notes an id that a person would hardly have chosen.
    pub(super) fn id(&mut self, line: u64, id: &OrderId) {
        let text = id.as_str();
        if text.trim() != text || text.chars().any(char::is_control) {
            self.first_odd = if self.odd == 0 { line } else { self.first_odd };
            self.odd += 1;
        }
    }

    /// Notes a line that is no id.
    pub(super) fn invalid(&mut self, line: u64, reason: impl Into<String>) {
        self.invalid += 1;
        if self.first_invalid.len() < MAX_LISTED {
            self.first_invalid.push((line, reason.into()));
        }
    }

    /// Lists what was noted; `lines`: how many lines there are.
    ///
    /// # Errors
    /// A line is invalid.
    pub(super) fn end(self, name: &str, lines: u64, err: &mut dyn Write) -> Result<(), CliError> {
        let Self { invalid, first_invalid, odd, first_odd } = self;
        if odd > 0 {
            writeln!(
                err,
                "note: {name}: {odd} ids contain control characters or have spaces at either end, the first in line \
                 {first_odd}; they are reserved unchanged"
            )?;
        }
        if invalid == 0 {
            return Ok(());
        }
        for (line, reason) in &first_invalid {
            writeln!(err, "{name}:{line}: {reason}")?;
        }
        let more = invalid - wide(first_invalid.len());
        if more > 0 {
            writeln!(err, "... and {more} more")?;
        }
        Err(CliError::failed(format!("{name}: {invalid} of {lines} lines cannot be ids; nothing was reserved")))
    }
}
