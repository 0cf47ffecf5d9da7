//! Citations resolve: where the code cites a section of `docs/contract.md`, that section exists and has the name that is
//! cited with it; a promise that is cited has a row in `docs/promise.md`; and nothing cites the given interface itself.
//!
//! A citation is `contract section 6, "Homes and modes"`, or `contract sections 3, 5 and 7`. A section without the word
//! before it is one of the contract, too, unless it is one of an RFC.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::documents::{DIRECTORIES, page};
use crate::support::tools::root;

/// Where code cites.
const CODE: [&str; 5] = ["src", "tests", "benches", "examples", ".ci"];

/// The given interface, which only `docs/promise.md` names.
const INTERFACE: &str = concat!("merchant-api", "-v2");

/// Sections, with an RFC before them and the names after them where there are any.
static SECTION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?x) (\bRFC\s+\d+,?\s+)? \b[Ss]ections?\s+ (\d+ (?: (?:,|\s+and|\s+to)\s+\d+ )*)
        ((?: ,(?:\s+[a-z0-9]+)*?\s+ (?: "[^"]+" | `[^`]+` ) )*)"#,
    )
    .unwrap()
});

static NAME: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#""([^"]+)"|`([^`]+)`"#).unwrap());

static PROMISE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b[Pp]romises?\s+([PD]\d+(?:(?:,|\s+and|\s+to)\s+[PD]\d+)*)").unwrap());

static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[PD]?\d+").unwrap());

/// What may be cited.
struct Cited {
    /// The text of each section by its number, with single spaces.
    sections: BTreeMap<String, String>,
    promises: BTreeSet<String>,
}

/// How many citations were read, and what is wrong with them.
#[derive(Default)]
struct Report {
    sections: usize,
    names: usize,
    promises: usize,
    faults: Vec<String>,
}

impl Cited {
    fn read(contract: &str, promise: &str) -> Self {
        let section = |part: &str| {
            let (number, _) = part.split_once(". ").unwrap();
            (number.to_owned(), single_spaced(part))
        };
        let row = Regex::new(r"(?m)^\| ([PD]\d{3}) \| ").unwrap();
        Self {
            sections: contract.split("\n## ").skip(1).map(section).collect(),
            promises: row.captures_iter(promise).map(|found| found[1].to_owned()).collect(),
        }
    }

    /// Follows the citations of one file.
    fn follow(&self, file: &str, text: &str, report: &mut Report) {
        let text = unmarked(text);
        let place = |found: &Captures<'_>| {
            let before = &text[..found.get(0).unwrap().start()];
            format!("{file}:{}", 1 + before.matches('\n').count())
        };
        for found in SECTION.captures_iter(&text).filter(|found| found.get(1).is_none()) {
            report.sections += 1;
            let mut cited = Vec::new();
            for number in NUMBER.find_iter(&found[2]).map(|number| number.as_str()) {
                match self.sections.get(number) {
                    Some(section) => cited.push(section),
                    None => report.faults.push(format!("{}: the contract has no section {number}", place(&found))),
                }
            }
            for name in NAME.captures_iter(&found[3]) {
                report.names += 1;
                let name = single_spaced(name.get(1).or(name.get(2)).unwrap().as_str());
                if !cited.iter().any(|section| section.contains(&name)) {
                    report.faults.push(format!("{}: \"{name}\" is not in section {}", place(&found), &found[2]));
                }
            }
        }
        for found in PROMISE.captures_iter(&text) {
            report.promises += 1;
            for number in NUMBER.find_iter(&found[1]).map(|number| number.as_str()) {
                if !self.promises.contains(number) {
                    report.faults.push(format!("{}: {number} is no promise", place(&found)));
                }
            }
        }
        for (number, _) in text.lines().enumerate().filter(|(_, line)| line.contains(INTERFACE)) {
            report.faults.push(format!("{file}:{}: cites the interface, not a promise", number + 1));
        }
    }
}

fn single_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The lines without what marks them as comments, so that a citation can continue on the next one.
fn unmarked(text: &str) -> String {
    let unmarked = |line| {
        let line = str::trim_start(line);
        ["//!", "///", "//", "--", "#"].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line)
    };
    text.lines().map(unmarked).collect::<Vec<_>>().join("\n")
}

/// The sources and scripts of the repository, by their names in it.
fn sources() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut directories: Vec<PathBuf> = CODE.iter().map(|directory| root().join(directory)).collect();
    while let Some(directory) = directories.pop() {
        for path in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                if !path.ends_with("target") && !path.ends_with("node_modules") {
                    directories.push(path);
                }
                continue;
            }
            let ending = path.extension().map(|ending| ending.to_str().unwrap());
            if matches!(ending, None | Some("rs" | "sql" | "toml" | "sh")) && name != "tests/it/contract.rs" {
                // Without an ending there are scripts, and seeds for fuzz targets that are no text.
                found.extend(std::fs::read_to_string(&path).map(|text| (name, text)));
            }
        }
    }
    found
}

#[test]
fn every_citation_of_the_contract_and_of_a_promise_resolves() {
    let cited = Cited::read(&page("docs/contract.md"), &page("docs/promise.md"));
    assert!(cited.sections.len() >= 16 && cited.promises.len() > 200, "the documents are read");
    let sources = sources();
    for directory in CODE {
        assert!(sources.keys().any(|name| name.starts_with(directory)), "{directory} is read");
    }
    let mut report = Report::default();
    for (name, text) in &sources {
        cited.follow(name, text, &mut report);
    }
    let Report { sections, names, promises, faults } = report;
    assert!(faults.is_empty(), "{} faults:\n  {}", faults.len(), faults.join("\n  "));
    assert!(sections >= 120 && names >= 40 && promises >= 15, "citations are read: {sections}, {names}, {promises}");
}

#[test]
fn only_the_list_of_promises_names_the_interface() {
    let mut naming = Vec::new();
    for directory in DIRECTORIES {
        for path in std::fs::read_dir(root().join(directory)).unwrap().map(|entry| entry.unwrap().path()) {
            let is_document = path.extension().is_some_and(|ending| ending == "md" || ending == "toml");
            if is_document && std::fs::read_to_string(&path).unwrap().contains(INTERFACE) {
                naming.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    assert_eq!(naming, [PathBuf::from("docs/promise.md")]);
}

#[test]
fn every_kind_of_fault_is_found_across_lines() {
    let contract = "# The contract\n\n## 1. One\n\n### Homes and\nmodes\n\n## 2. Two\n\n`[tls]` and `b`\n";
    let cited = Cited::read(contract, "| P001 | a | |\n| D002 | b | |\n");
    let mut report = Report::default();
    let source = format!(
        "//! Right (contract\n//! section 1, \"Homes\n//! and modes\"; RFC 9112, section 77).\n\
         -- Right: contract sections 1 to 2, end of `[tls]`, and `b`; promises P001 and D002.\n\
         # Right: contract section 2). `c` is no part of it.\n\
         /// Wrong (contract sections 1, 2\n    /// and 3).\n\
         // Wrong: contract section 2, \"Homes and modes\".\n\
         // Wrong: promises P001, P003\n// to P4; {INTERFACE}\n"
    );
    cited.follow("f", &source, &mut report);
    assert_eq!(
        report.faults,
        [
            "f:6: the contract has no section 3",
            "f:8: \"Homes and modes\" is not in section 2",
            "f:9: P003 is no promise",
            "f:9: P4 is no promise",
            "f:10: cites the interface, not a promise",
        ]
    );
    assert_eq!((report.sections, report.names, report.promises), (5, 4, 2));
}
