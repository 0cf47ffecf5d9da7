//! `paybridge check`: is a rule set fit to be loaded?

use std::io::{self, Write};
use std::path::Path;

use crate::clock::{Clock, SystemClock};
use crate::rules::{self, LoadOptions, RuleSet};

/// Checks a rules directory. Every problem goes to `err` as `file:line:column: what is wrong`, with its line shown; the
/// good news goes to `out`. Returns whether the rules are valid: exit code 0 or 1. With `no_secrets` the secrets that
/// the environment and files hold are not asked for.
///
/// # Errors
/// Writing failed.
pub fn run(directory: &Path, no_secrets: bool, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<bool> {
    let options = LoadOptions { check_secrets: !no_secrets };
    match rules::load(directory, SystemClock.now(), None, options) {
        Ok(rules) if !rules.warnings.is_empty() => {
            for warning in &rules.warnings {
                writeln!(err, "{}\n", warning.rendered())?;
            }
            let count = counted(rules.warnings.len(), "problem");
            writeln!(err, "the rules can be loaded, but would fail requests: {count}")?;
            Ok(false)
        }
        Ok(rules) => {
            writeln!(out, "rules are valid: {} (version {})", summary(&rules), rules.version)?;
            Ok(true)
        }
        Err(problems) => {
            writeln!(err, "{}\n", problems.rendered())?;
            writeln!(err, "rules are not valid: {}", counted(problems.count(), "problem"))?;
            Ok(false)
        }
    }
}

fn summary(rules: &RuleSet) -> String {
    let parts = [
        counted(rules.merchants.len(), "merchant"),
        counted(rules.api_keys.len(), "API key"),
        counted(rules.shops.len(), "shop"),
        counted(rules.dialects.len(), "dialect"),
    ];
    parts.join(", ")
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn check(files: &[(&str, &str)]) -> (bool, String, String) {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let valid = run(directory.path(), true, &mut out, &mut err).unwrap();
        let shown =
            |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(directory.path().to_str().unwrap(), "rules");
        (valid, shown(out), shown(err))
    }

    #[test]
    fn valid_rules_are_counted() {
        let shop = "currency = \"EUR\"\n[provider]\nkind = \"sandbox\"";
        let (valid, out, err) = check(&[("gateway.toml", ""), ("shops/a.toml", shop)]);
        assert!(valid && err.is_empty(), "{err}");
        assert!(out.starts_with("rules are valid: 0 merchants, 0 API keys, 1 shop, 1 dialect (version "), "{out}");
    }

    #[test]
    fn what_would_fail_requests_does_not_pass() {
        let shop = "currency = \"EUR\"\n[provider]\nkind = \"sandbox\"";
        let merchant = "default_shop = \"a\"\n[shops.a]\npayin = false\npayout = false";
        let files = [("gateway.toml", ""), ("shops/a.toml", shop), ("merchants/m.toml", merchant)];
        let (valid, out, err) = check(&files);
        assert!(!valid && out.is_empty());
        assert!(err.contains("rules/merchants/m.toml:1:16: `default_shop`: `a` is enabled for neither"), "{err}");
    }

    #[test]
    fn every_problem_is_shown_with_its_line() {
        let gateway = "[server]\nlisen = \"127.0.0.1:1\"\n\n[limits]\nbody = \"64KB\"\n";
        let (valid, out, err) = check(&[("gateway.toml", gateway), ("merchants/m.toml", "default_shop = \"x\"")]);
        assert!(!valid && out.is_empty());
        insta::assert_snapshot!(err);
    }
}
