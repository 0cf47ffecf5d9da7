//! The error of constructors that reject a value.

use std::borrow::Cow;
use std::fmt;

/// Why a constructor rejected a value: a phrase that follows the member's name, as in "`amount` must be greater than
/// 0". It never contains the value itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidValue(Cow<'static, str>);

impl InvalidValue {
    /// Creates a reason from constant text.
    #[must_use]
    pub const fn new(reason: &'static str) -> Self {
        Self(Cow::Borrowed(reason))
    }

    /// Creates a reason that names an operator's rule (a pattern, a limit), never the rejected value.
    #[must_use]
    pub fn rule(reason: String) -> Self {
        Self(Cow::Owned(reason))
    }

    /// Returns the phrase.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidValue {}
