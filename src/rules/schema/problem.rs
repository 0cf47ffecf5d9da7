//! What a schema may refuse, and what may be wrong with a schema itself.

use std::collections::HashSet;
use std::sync::Arc;

/// The keyword's name.
pub(super) const UNIQUE_ITEMS: &str = "uniqueItems";
/// The keyword that names an allowed-value list (contract section 2).
pub(in crate::rules) const ALLOWED_LIST: &str = "x-allowed-list";

/// The values of one list.
pub(in crate::rules) type AllowedValues = Arc<HashSet<Box<str>>>;

/// A problem of a schema, and its place as a path of keys and indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rules) struct SchemaProblem {
    pub at: Vec<String>,
    pub message: String,
    pub suggestion: Option<String>,
}

/// The member that a schema refused and the reason. It never contains the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    /// The member's path below `fields`, with dots between names; empty for the object as a whole.
    pub path: String,
    /// Half a sentence: "is required", "must be a string", "must be one of the values agreed for this shop".
    pub reason: String,
    /// The rule behind it, for reports.
    pub rule: FieldRule,
}

/// The rule by which a schema refuses a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRule {
    /// The member's path as reports may show it: names that the schema does not have are masked, and the index of an
    /// element is `#`.
    pub member: String,
    /// The place of the keyword in the schema, with dots between names: `properties.bank_code.pattern`.
    pub keyword: String,
    /// The file of the allowed-value list, relative to the rules directory, when another list would let the value pass.
    pub list: Option<String>,
}
