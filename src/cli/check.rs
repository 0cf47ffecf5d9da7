//! `paybridge check`: checks whether a rule set can be loaded, and is free of warnings.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use super::args::{Check, Format};
use crate::clock::{Clock, SystemClock};
use crate::domain::UnixMillis;
use crate::http::listener::tls::server_tls;
use crate::rules::{self, Inspection, LoadOptions, Place, Problem, RuleSet, Severity, TlsRules};

/// Checks a rules directory, including its certificates. In the text format, each problem goes to `err` as
/// `file:line:column: problem`, with its line, and a summary of valid rules to `out`; in JSON, one document goes to
/// `out`. Returns whether the rules pass (exit code 0 or 1).
///
/// # Errors
/// The output cannot be written.
pub fn run(args: &Check, colored: bool, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<bool> {
    let checked = Checked::of(&args.rules.rules, args, SystemClock.now());
    match args.format {
        Format::Text => checked.write_text(colored, out, err)?,
        Format::Json => write_json(&checked, out)?,
    }
    Ok(checked.passes)
}

/// The result of a check.
struct Checked {
    inspection: Inspection,
    passes: bool,
}

impl Checked {
    fn of(directory: &Path, args: &Check, now: UnixMillis) -> Self {
        let options = LoadOptions { check_secrets: !args.no_secrets };
        let serves = |tls: &TlsRules| server_tls(tls).map(drop).map_err(|error| error.to_string());
        let inspection = rules::inspect(directory, now, options, &serves);
        let wrong = if args.allow_warnings {
            inspection.problems.iter().any(|problem| problem.severity == Severity::Error)
        } else {
            !inspection.problems.is_empty()
        };
        Self { passes: inspection.rules.is_some() && !wrong, inspection }
    }

    fn count(&self, severity: Severity) -> usize {
        self.inspection.problems.iter().filter(|problem| problem.severity == severity).count()
    }

    fn write_text(&self, colored: bool, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<()> {
        for problem in &self.inspection.problems {
            writeln!(err, "{}\n", if colored { problem.styled() } else { problem.rendered() })?;
        }
        for note in &self.inspection.notes {
            writeln!(err, "note: {note}\n")?;
        }
        let counts = self.counts();
        match &self.inspection.rules {
            Some(rules) if self.passes => {
                let but = if counts.is_empty() { String::new() } else { format!(", with {counts}") };
                writeln!(out, "rules are valid: {} (version {}){but}", summary(rules), rules.version)
            }
            Some(_) => writeln!(
                err,
                "rules can be loaded, but are probably not what is meant: {counts} (use --allow-warnings to accept this)"
            ),
            None => writeln!(err, "rules are not valid: {counts}"),
        }
    }

    /// Returns the numbers of errors and warnings in words; empty if there are none.
    fn counts(&self) -> String {
        let counts = [(self.count(Severity::Error), "error"), (self.count(Severity::Warning), "warning")];
        let some: Vec<String> =
            counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| counted(count, what)).collect();
        some.join(", ")
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

#[derive(Serialize)]
struct Document<'a> {
    /// Whether the exit code is 0.
    valid: bool,
    /// The version of the rules. This and the counts below are `null` if the rules are rejected.
    version: Option<&'a str>,
    errors: usize,
    warnings: usize,
    problems: Vec<Found<'a>>,
    /// What is worth knowing about valid rules.
    notes: &'a [String],
    merchants: Option<usize>,
    api_keys: Option<usize>,
    shops: Option<usize>,
    dialects: Option<usize>,
}

#[derive(Serialize)]
struct Found<'a> {
    severity: &'static str,
    #[serde(flatten)]
    place: At<'a>,
    message: &'a str,
    suggestion: Option<&'a str>,
}

/// A range in a file. Lines and columns count from 1, columns in characters; the end is after the last character.
#[derive(Serialize)]
struct At<'a> {
    file: String,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    /// The line with its secrets masked; of a long line, the part around the place.
    line_text: Option<&'a str>,
}

/// Writes the result as one JSON document.
fn write_json(checked: &Checked, out: &mut dyn Write) -> io::Result<()> {
    let rules = checked.inspection.rules.as_ref();
    let document = Document {
        valid: checked.passes,
        version: rules.map(|rules| &*rules.version),
        errors: checked.count(Severity::Error),
        warnings: checked.count(Severity::Warning),
        problems: checked.inspection.problems.iter().map(found).collect(),
        notes: &checked.inspection.notes,
        merchants: rules.map(|rules| rules.merchants.len()),
        api_keys: rules.map(|rules| rules.api_keys.len()),
        shops: rules.map(|rules| rules.shops.len()),
        dialects: rules.map(|rules| rules.dialects.len()),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn found(problem: &Problem) -> Found<'_> {
    Found {
        severity: problem.severity.as_str(),
        place: at(&problem.place),
        message: &problem.message,
        suggestion: problem.suggestion.as_deref(),
    }
}

fn at(place: &Place) -> At<'_> {
    let ((line, column), (end_line, end_column)) = (place.start, place.end);
    At { file: place.file.display().to_string(), line, column, end_line, end_column, line_text: place.line_text() }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cli::args::Rules;

    const SHOP: &str = "currency = \"EUR\"\n[provider]\nkind = \"sandbox\"";
    /// Rules that can be loaded, with one warning.
    const WARNED: [(&str, &str); 3] =
        [("gateway.toml", ""), ("shops/a.toml", SHOP), ("merchants/m.toml", "[shops.a]\n")];

    fn args(directory: &Path) -> Check {
        Check {
            rules: Rules { rules: directory.into() },
            no_secrets: true,
            allow_warnings: false,
            format: Format::Text,
        }
    }

    fn check(files: &[(&str, &str)]) -> (bool, String, String) {
        check_with(files, |_| {})
    }

    fn check_with(files: &[(&str, &str)], change: impl FnOnce(&mut Check)) -> (bool, String, String) {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut args = args(directory.path());
        change(&mut args);
        let valid = run(&args, false, &mut out, &mut err).unwrap();
        let shown =
            |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(directory.path().to_str().unwrap(), "rules");
        (valid, shown(out), shown(err))
    }

    #[test]
    fn valid_rules_are_counted() {
        let (valid, out, err) = check(&[("gateway.toml", ""), ("shops/a.toml", SHOP)]);
        assert!(valid && err.is_empty(), "{err}");
        assert!(out.starts_with("rules are valid: 0 merchants, 0 API keys, 1 shop, 1 dialect (version "), "{out}");
    }

    #[test]
    fn warnings_do_not_pass() {
        let (valid, out, err) = check(&WARNED);
        assert!(!valid && out.is_empty());
        assert!(err.starts_with("rules/merchants/m.toml:1:1: warning: the merchant has no `[[api_keys]]`"), "{err}");
        // No request fails for a file that is not read.
        let (valid, out, err) = check(&[("gateway.toml", ""), WARNED[1], ("merchants/my shop.toml", "")]);
        let end = "rules can be loaded, but are probably not what is meant: 1 warning (use --allow-warnings to accept \
                   this)\n";
        assert!(!valid && out.is_empty() && err.ends_with(end), "{err}");
    }

    #[test]
    fn warnings_pass_when_they_are_allowed() {
        let (valid, out, err) = check_with(&WARNED, |args| args.allow_warnings = true);
        assert!(valid && out.starts_with("rules are valid: ") && out.ends_with("), with 1 warning\n"), "{out}");
        assert!(err.starts_with("rules/merchants/m.toml:1:1: warning: "), "{err}");
        let wrong = [("gateway.toml", "[limits]\nbody = 0\n"), WARNED[1], WARNED[2]];
        let (valid, out, err) = check_with(&wrong, |args| args.allow_warnings = true);
        assert!(!valid && out.is_empty() && err.ends_with("rules are not valid: 1 error, 1 warning\n"), "{err}");
    }

    #[test]
    fn json_is_complete_without_secrets() {
        let merchant =
            "nmae = \"Acme\"\n[[api_keys]]\nkey = \"k\"\nv2_secret = \"hush\"\nallowed_ips = []\n[shops.a]\n";
        let files = [
            ("gateway.toml", ""),
            ("shops/a.toml", SHOP),
            ("merchants/m.toml", merchant),
            ("merchants/n.toml", "[[api_keys]]\nkey = \"k\"\nv2_secret = [\"hush\", 1]\n[shops.a]\n"),
        ];
        let (valid, out, err) = check_with(&files, |args| args.format = Format::Json);
        assert!(!valid && err.is_empty() && !out.contains("hush"), "{out}");
        insta::assert_snapshot!(out);
    }

    #[test]
    fn json_of_rules_that_pass_counts_them() {
        let json = |allow_warnings| {
            let (valid, out, _) = check_with(&WARNED, |args| {
                (args.format, args.allow_warnings) = (Format::Json, allow_warnings);
            });
            let document: serde_json::Value = serde_json::from_str(&out).unwrap();
            assert_eq!(document["valid"], valid, "{out}");
            document
        };
        assert_eq!((json(true)["valid"].as_bool(), json(false)["valid"].as_bool()), (Some(true), Some(false)));
        let document = json(true);
        assert_eq!(document["version"].as_str().map(str::len), Some(16), "{document}");
        let counts = ["merchants", "api_keys", "shops", "dialects", "errors", "warnings"].map(|name| &document[name]);
        assert_eq!(counts, [1, 0, 1, 1, 0, 1], "{document}");
    }

    #[test]
    fn every_problem_is_shown_with_its_line() {
        let gateway = "[server]\nlisen = \"127.0.0.1:1\"\n\n[limits]\nbody = \"64KB\"\n";
        let (valid, out, err) = check(&[("gateway.toml", gateway), ("merchants/m.toml", "default_shop = \"x\"")]);
        assert!(!valid && out.is_empty());
        insta::assert_snapshot!(err);
    }
}
