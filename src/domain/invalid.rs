//! Why a value was refused.

use std::borrow::Cow;
use std::fmt;

/// The reason a constructor of this module refused a value: half a sentence that follows the member's name, as in
/// "`amount` must be greater than 0". It never holds the value itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidValue(Cow<'static, str>);

impl InvalidValue {
    /// A reason fixed in the program.
    #[must_use]
    pub const fn new(reason: &'static str) -> Self {
        Self(Cow::Borrowed(reason))
    }

    /// A reason that names a rule of the operator's (a pattern, a limit), never the refused value.
    #[must_use]
    pub fn rule(reason: String) -> Self {
        Self(Cow::Owned(reason))
    }

    /// The half sentence.
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
