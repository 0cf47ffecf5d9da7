//! The view of the rules.

use serde::Serialize;

use crate::domain::UnixMillis;

/// The rules in force and those on disk. Its form has no field but `form`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RulesView {
    /// The version in force.
    pub version: String,
    /// When that version came into force.
    pub since: UnixMillis,
    /// The rules directory.
    pub directory: String,
    /// Whether the files on disk are refused.
    pub is_refused: bool,
    /// Why they were refused.
    pub problems: Vec<RuleProblemItem>,
    /// How many further problems are not shown.
    pub more_problems: usize,
    /// The warnings of the rules in force.
    pub warnings: Vec<RuleProblemItem>,
    /// The settings on disk that need a restart.
    pub needs_restart: Vec<String>,
}

/// A problem of a rule file.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RuleProblemItem {
    /// The file, relative to the rules directory.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong, and what was expected.
    pub message: String,
    /// What may have been intended.
    pub suggestion: Option<String>,
    /// The lines of the file, secrets hidden, as they are to be shown.
    pub excerpt: Option<String>,
}
