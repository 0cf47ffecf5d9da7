//! The view of the audit trail.

use serde::Serialize;

use super::operations::Fact;
use crate::domain::UnixMillis;

/// A page of the audit trail.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AuditView {
    /// The filter.
    pub filter: AuditSearch,
    /// What is wrong with the filter.
    pub problem: Option<String>,
    /// The rows of this page, newest first.
    pub rows: Vec<AuditItem>,
    /// The parameter `after` of the next page.
    pub next: Option<String>,
    /// Whether this is not the first page.
    pub is_continued: bool,
}

/// The filter of the audit trail, as it was sent; empty: any.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AuditSearch {
    /// The user's name.
    pub user: String,
    /// The action.
    pub action: String,
    /// At or after this time.
    pub since: String,
    /// Before this time.
    pub until: String,
}

/// An action in the audit trail.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AuditItem {
    /// When it began.
    pub at: UnixMillis,
    /// The user's name.
    pub user: String,
    /// The user's role.
    pub role: String,
    /// The address that the request came from.
    pub address: String,
    /// The request's id.
    pub request_id: String,
    /// The action.
    pub action: String,
    /// What it acted on.
    pub target: String,
    /// Its parameters.
    pub parameters: Vec<Fact>,
    /// What came of it; `None`: it did not finish.
    pub outcome: Option<String>,
    /// Whether the outcome is a failure.
    pub is_failed: bool,
    /// The version of the rules in force.
    pub rules_version: String,
}
