//! Compiles allowed-value lists, one value a line.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::sync::Arc;

use super::Context;
use crate::rules::files::{FileRole, RuleFile};
use crate::rules::schema::{AllowedLists, AllowedValues};

impl Context<'_> {
    /// Returns all lists of the rules directory.
    pub(super) fn lists(&mut self) -> AllowedLists {
        let mut lists = AllowedLists::default();
        for (role, file) in self.files {
            let FileRole::List { merchant, name } = role else { continue };
            let values = self.list(file);
            match merchant {
                Some(merchant) => lists.own.entry(name.clone()).or_default().insert(merchant.clone(), values),
                None => lists.common.insert(name.clone(), values),
            };
        }
        // A list that could not be read is not a missing one; its problem is already reported.
        for path in self.diagnostics.unread_files() {
            if path.parent().is_some_and(|parent| parent.ends_with("lists"))
                && path.extension().is_some_and(|ending| ending == "txt")
                && let Some(name) = path.file_stem().and_then(OsStr::to_str)
            {
                lists.common.entry(name.to_owned()).or_default();
            }
        }
        lists
    }

    fn list(&mut self, file: &RuleFile) -> AllowedValues {
        let values = values(&file.text);
        if values.is_empty() {
            // An empty list would refuse every request; far more likely the file was just truncated.
            self.diagnostics.add_unreadable(&file.path, "the list has no values");
        }
        Arc::new(values)
    }
}

/// Returns the values of a list: its lines, trimmed, without empty lines and `#` comments.
pub(in crate::rules) fn values(text: &str) -> HashSet<Box<str>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(Box::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_one_value_a_line() {
        let values = values("\u{feff}# banks\nalpha\r\n  beta  \n\n#gamma\nde#lta\n\"quoted\"");
        let mut values: Vec<&str> = values.iter().map(|value| &**value).collect();
        values.sort_unstable();
        assert_eq!(values, ["\"quoted\"", "alpha", "beta", "de#lta"]);
    }
}
