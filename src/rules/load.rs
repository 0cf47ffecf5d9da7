//! From a rules directory to a rule set, all or nothing.

use std::path::Path;

use super::problems::{Findings, Problems};
use super::{RuleSet, compile, files};
use crate::domain::UnixMillis;

/// How rules are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadOptions {
    /// Whether secrets are fetched from the environment and from files. Without it such secrets stand for nothing that
    /// anybody knows: good for checking rules on a machine that must not have the secrets, and for nothing else.
    pub check_secrets: bool,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self { check_secrets: true }
    }
}

/// Loads a rules directory (contract section 2). Reads files and may block.
///
/// Rate limiters keep what was used of them in `previous`, for keys whose quota stayed as it was.
///
/// # Errors
/// Everything that is wrong with the files.
pub fn load(
    directory: &Path,
    now: UnixMillis,
    previous: Option<&RuleSet>,
    options: LoadOptions,
) -> Result<RuleSet, Problems> {
    let mut findings = Findings::default();
    let files = files::read(directory, &mut findings);
    let rules = compile::compile(&files, directory, now, previous, options.check_secrets, &mut findings);
    let warnings = findings.into_problems()?;
    if let Some(rules) = rules {
        return Ok(RuleSet { warnings, ..rules });
    }
    let mut unexplained = Findings::default();
    unexplained.add_unreadable(directory, "the rules could not be compiled");
    Err(unexplained.into_problems().expect_err("a problem was just added"))
}
