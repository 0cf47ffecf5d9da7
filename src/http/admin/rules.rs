//! The document of the rules in force, for `/api/rules` and the console.

use serde::{Serialize, Serializer};

use crate::domain::UnixMillis;
use crate::rules::Problem;
use crate::wire::time::rfc3339;

/// The rule set in force, as `/api/rules` shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RulesInfo {
    /// Its content hash.
    pub version: String,
    /// When it was loaded.
    #[serde(serialize_with = "time_text")]
    pub loaded_at: UnixMillis,
    /// What is wrong with the rules or the certificate on disk, if they are not in force.
    pub error: Option<String>,
    /// The keys of `gateway.toml` that take effect at the next start.
    pub needs_restart: Vec<&'static str>,
    /// The first problems for which the rules on disk were rejected.
    pub problems: Vec<ProblemInfo>,
    /// How many problems there are.
    pub problem_count: usize,
    /// The first warnings about the rule set in force.
    pub warnings: Vec<String>,
    /// How many warnings there are.
    pub warning_count: usize,
    /// The state of the certificate.
    pub certificate: CertificateInfo,
}

/// A problem for which rules were rejected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ProblemInfo {
    /// The file, with the path of the rules directory as the process was given it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// `error` or `warning`.
    pub severity: &'static str,
    /// What is wrong, and what was expected.
    pub message: String,
    /// The value that was probably meant.
    pub suggestion: Option<String>,
    /// The lines of the file with the place marked, secrets hidden.
    #[serde(skip)]
    pub excerpt: String,
}

impl From<&Problem> for ProblemInfo {
    fn from(problem: &Problem) -> Self {
        Self {
            file: problem.place.file.display().to_string(),
            line: problem.place.start.0,
            column: problem.place.start.1,
            severity: problem.severity.as_str(),
            message: problem.message.clone(),
            suggestion: problem.suggestion.clone(),
            excerpt: problem.rendered(),
        }
    }
}

/// The certificate, as `/api/rules` shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CertificateInfo {
    /// The end of validity of the certificate in use, if known.
    #[serde(serialize_with = "time_text")]
    pub not_after: Option<UnixMillis>,
    /// Why the certificate on disk is not in use.
    pub error: Option<String>,
}

/// Serializes a time, which may be unknown, as RFC 3339.
fn time_text<'a, S: Serializer>(at: impl Into<Option<&'a UnixMillis>>, serializer: S) -> Result<S::Ok, S::Error> {
    at.into().map(|at| rfc3339(*at)).serialize(serializer)
}
