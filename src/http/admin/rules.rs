//! The JSON document of the rules in force.

use crate::domain::UnixMillis;
use crate::rules::Problem;
use crate::wire::time::rfc3339;

/// The rule set in force, as `/api/rules` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesInfo {
    /// Its content hash.
    pub version: String,
    /// When it was loaded.
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
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertificateInfo {
    /// The end of validity of the certificate in use, if known.
    pub not_after: Option<UnixMillis>,
    /// Why the certificate on disk is not in use.
    pub error: Option<String>,
}

/// Returns the document of `/api/rules`.
pub(super) fn rules_document(info: &RulesInfo) -> impl serde::Serialize {
    RulesDocument {
        version: &info.version,
        loaded_at: rfc3339(info.loaded_at),
        error: info.error.as_deref(),
        needs_restart: &info.needs_restart,
        problems: &info.problems,
        problem_count: info.problem_count,
        warnings: &info.warnings,
        warning_count: info.warning_count,
        certificate: CertificateDocument {
            not_after: info.certificate.not_after.map(rfc3339),
            error: info.certificate.error.as_deref(),
        },
    }
}

#[derive(serde::Serialize)]
struct RulesDocument<'a> {
    version: &'a str,
    loaded_at: String,
    error: Option<&'a str>,
    needs_restart: &'a [&'static str],
    problems: &'a [ProblemInfo],
    problem_count: usize,
    warnings: &'a [String],
    warning_count: usize,
    certificate: CertificateDocument<'a>,
}

#[derive(serde::Serialize)]
struct CertificateDocument<'a> {
    not_after: Option<String>,
    error: Option<&'a str>,
}
