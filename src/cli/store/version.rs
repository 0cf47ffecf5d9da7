//! `paybridge store version`: shows which releases can serve the store.

use std::io::Write;
use std::sync::Arc;

use crate::cli::args::Format;
use crate::cli::outcome::{CliError, ExitOutcome};
use crate::clock::{Random, SystemRandomness};
use crate::rules::RuleSet;
use crate::store::{StoreFormat, read_format};

/// Writes the formats that the store of the rules names.
///
/// # Errors
/// There is no store, or it cannot be read.
pub(super) fn run(rules: &RuleSet, format: Format, out: &mut dyn Write) -> ExitOutcome {
    let random: Arc<dyn Random> = Arc::new(SystemRandomness::default());
    let stated = read_format(&rules.gateway.store, &random).map_err(CliError::failed)?;
    let StoreFormat { format: number, readable_from, release } = &stated;
    match format {
        Format::Json => writeln!(out, "{}", serde_json::to_string(&stated).map_err(CliError::failed)?)?,
        Format::Text => {
            writeln!(out, "format {number}, given by release {release}; readable from format {readable_from}")?;
        }
    }
    Ok(())
}
