//! The rules in force, as the admin listener shows them.

use crate::domain::UnixMillis;
use crate::wire::time::rfc3339;

/// The rule set in force, as `/api/rules` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesInfo {
    /// Its content hash.
    pub version: String,
    /// When it was read.
    pub loaded_at: UnixMillis,
    /// What is wrong with the rules or the certificate on disk, when they are not in force.
    pub error: Option<String>,
    /// The keys of `gateway.toml` that take effect at the next start.
    pub needs_restart: Vec<&'static str>,
    /// What the rules on disk are refused for: the first problems.
    pub problems: Vec<ProblemInfo>,
    /// How many problems there are.
    pub problem_count: usize,
    /// The first warnings of the rule set in force.
    pub warnings: Vec<String>,
    /// How many there are.
    pub warning_count: usize,
    /// The certificate.
    pub certificate: CertificateInfo,
}

/// A problem of rules that are refused.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ProblemInfo {
    /// The file, below the rules directory as the process was told of it.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// `error` or `warning`.
    pub severity: &'static str,
    /// What is wrong, and what was expected.
    pub message: String,
    /// What may have been meant.
    pub suggestion: Option<String>,
}

/// The certificate, as `/api/rules` shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertificateInfo {
    /// The last moment the one that serves is good for, where that is known.
    pub not_after: Option<UnixMillis>,
    /// Why the one on disk does not serve.
    pub error: Option<String>,
}

/// What `/api/rules` answers.
pub(super) fn shown(info: &RulesInfo) -> impl serde::Serialize {
    ShownRules {
        version: &info.version,
        loaded_at: rfc3339(info.loaded_at),
        error: info.error.as_deref(),
        needs_restart: &info.needs_restart,
        problems: &info.problems,
        problem_count: info.problem_count,
        warnings: &info.warnings,
        warning_count: info.warning_count,
        certificate: ShownCertificate {
            not_after: info.certificate.not_after.map(rfc3339),
            error: info.certificate.error.as_deref(),
        },
    }
}

#[derive(serde::Serialize)]
struct ShownRules<'a> {
    version: &'a str,
    loaded_at: String,
    error: Option<&'a str>,
    needs_restart: &'a [&'static str],
    problems: &'a [ProblemInfo],
    problem_count: usize,
    warnings: &'a [String],
    warning_count: usize,
    certificate: ShownCertificate<'a>,
}

#[derive(serde::Serialize)]
struct ShownCertificate<'a> {
    not_after: Option<String>,
    error: Option<&'a str>,
}
