//! Allowed-value lists: one value a line.

use std::collections::HashSet;
use std::sync::Arc;

use super::Context;
use crate::rules::files::Role;
use crate::rules::schema::Lists;

impl Context<'_> {
    /// All lists of the rules directory.
    pub(super) fn lists(&mut self) -> Lists {
        let mut lists = Lists::default();
        for (role, file) in self.files {
            let Role::List { merchant, name } = role else { continue };
            let values = values(&file.text);
            if values.is_empty() {
                // A list without values refuses every request; far more often the file was just truncated.
                self.findings.add_unreadable(&file.path, "the list has no values");
            }
            let theirs = match merchant {
                Some(merchant) => lists.own.entry(merchant.clone()).or_default(),
                None => &mut lists.common,
            };
            theirs.insert(name.clone(), Arc::new(values));
        }
        lists
    }
}

/// The values of a list: lines without the white space around them; empty lines and `#` comments count for nothing.
fn values(text: &str) -> HashSet<Box<str>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(Box::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_a_line() {
        let values = values("\u{feff}# banks\nalpha\r\n  beta  \n\n#gamma\nde#lta\n\"quoted\"");
        let mut values: Vec<&str> = values.iter().map(|value| &**value).collect();
        values.sort_unstable();
        assert_eq!(values, ["\"quoted\"", "alpha", "beta", "de#lta"]);
    }
}
