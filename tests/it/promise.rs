//! Every promise has a test, and says so: `docs/promise.md` numbers what the merchant interface binds the service to, and
//! the tests name the numbers they keep. How a claim is written stands at the head of that file.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use regex::Regex;

/// The parts that are not built yet, as the third column names them.
const PARTS: [&str; 0] = [];

/// Promises by number, with the part that each one awaits.
type Promises = BTreeMap<String, Option<String>>;

/// Reads the rows of `docs/promise.md`; what is wrong with them is added to `faults`.
fn promises(document: &str, parts: &[&str], faults: &mut Vec<String>) -> Promises {
    let row = Regex::new(r"^\| ([PD]\d{3}) \| (.+) \| (?:`([a-z]+)` )?\|$").unwrap();
    let mut promises = Promises::new();
    for line in document.lines().filter(|line| line.starts_with("| ")) {
        let Some(found) = row.captures(line) else {
            if !line.starts_with("| number |") {
                faults.push(format!("no row of a promise: {line}"));
            }
            continue;
        };
        let awaits = found.get(3).map(|part| part.as_str().to_owned());
        if let Some(part) = awaits.as_deref().filter(|part| !parts.contains(part)) {
            faults.push(format!("{} awaits {part}, which is none of {parts:?}", &found[1]));
        }
        if promises.insert(found[1].to_owned(), awaits).is_some() {
            faults.push(format!("{} stands twice", &found[1]));
        }
    }
    promises
}

/// The numbers that the tests of one source claim, with their lines; misplaced and misspelt claims are faults.
fn claims(name: &str, source: &str, faults: &mut Vec<String>) -> Vec<String> {
    let claim = Regex::new(r"^\s*// keeps ([PD]\d{3}(?:, [PD]\d{3})*)$").unwrap();
    let meant = Regex::new(r"//.*\bkeeps?:? +[PD]\d").unwrap();
    let lines: Vec<&str> = source.lines().collect();
    let mut places: Option<Vec<Range<usize>>> = None;
    let mut claimed = Vec::new();
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| meant.is_match(line)) {
        let at = format!("{name}:{}: {}", number + 1, line.trim());
        let Some(found) = claim.captures(line) else {
            faults.push(format!("{at}: a claim is a line of its own: // keeps P001, P002"));
            continue;
        };
        if places.get_or_insert_with(|| places_of_claims(&lines)).iter().any(|place| place.contains(&number)) {
            claimed.extend(found[1].split(", ").map(str::to_owned));
        } else {
            faults.push(format!("{at}: stands at no test"));
        }
    }
    claimed
}

/// Where a claim may stand: tests with the comments and attributes above them, and constants that such a test names.
fn places_of_claims(lines: &[&str]) -> Vec<Range<usize>> {
    let mut places: Vec<_> = (0..lines.len()).filter_map(|number| test_at(lines, number)).collect();
    let table = Regex::new(r"^\s*(?:const|static) ([A-Z][A-Z0-9_]*):").unwrap();
    for (number, line) in lines.iter().enumerate() {
        let Some(found) = table.captures(line) else { continue };
        let word = Regex::new(&format!(r"\b{}\b", &found[1])).unwrap();
        if places.iter().any(|test| lines[test.clone()].iter().any(|line| word.is_match(line))) {
            let length = lines[number..]
                .iter()
                .position(|below| below.trim_end().ends_with(';') && indent(below) == indent(line));
            places.push(number..number + length.unwrap_or(0) + 1);
        }
    }
    places
}

/// The lines of the test whose attribute is line `number`, from the comments above it to its closing brace. A macro makes
/// a test of each case that every store must pass.
fn test_at(lines: &[&str], number: usize) -> Option<Range<usize>> {
    let head = lines[number].trim();
    let case = head.contains(" async fn ") && head.ends_with("(backend: &dyn TestBackend) {");
    if head != "#[test]" && !head.starts_with("#[tokio::test") && !case {
        return None;
    }
    let heads = |line: &&&str| line.trim_start().starts_with("//") || line.trim_start().starts_with("#[");
    let above = lines[..number].iter().rev().take_while(heads).count();
    let closing = format!("{}}}", &lines[number][..indent(lines[number])]);
    let length = lines[number..].iter().position(|line| *line == closing)?;
    Some(number - above..number + length)
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// What is wrong between the promises and the claims.
fn judge(promises: &Promises, claimed: &BTreeSet<String>, faults: &mut Vec<String>) {
    for (number, awaits) in promises {
        match (awaits, claimed.contains(number)) {
            (None, false) => faults.push(format!("{number} is claimed by no test")),
            (Some(part), true) => {
                faults.push(format!("{number} is claimed by a test, but still marked as awaiting {part}"));
            }
            _ => {}
        }
    }
    faults
        .extend(claimed.iter().filter(|number| !promises.contains_key(*number)).map(|n| format!("{n} is no promise")));
}

fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut directories: Vec<PathBuf> = vec![root.join("src"), root.join("tests")];
    while let Some(directory) = directories.pop() {
        for path in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests/it/promise.rs" {
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_promise_is_kept_by_a_test() {
    let document = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/promise.md")).unwrap();
    let mut faults = Vec::new();
    let promises = promises(&document, &PARTS, &mut faults);
    assert!(promises.len() > 200, "the document is read");
    let sources = sources();
    let claimed = sources.iter().flat_map(|(name, text)| claims(name, text, &mut faults)).collect();
    judge(&promises, &claimed, &mut faults);
    for part in PARTS {
        let awaiting: Vec<_> = promises
            .iter()
            .filter(|(_, awaits)| awaits.as_deref() == Some(part))
            .map(|(number, _)| number.as_str())
            .collect();
        println!("awaiting {part}: {}", awaiting.join(" "));
    }
    assert!(faults.is_empty(), "{} faults:\n  {}", faults.len(), faults.join("\n  "));
}

const FIXTURE: &str = "
// keeps P001
fn no_test() {}

/// A comment of its own.
// keeps P002, D001
#[tokio::test(flavor = \"multi_thread\")]
async fn a_test() {
    for row in ROWS {
        // keeps P003
    }
}
// keeps P004

const ROWS: &[u8] = &[
    // keeps P005
    1,
];

const OTHERS: &[u8] = &[
    // keeps P006
    1,
];

mod tests {
    #[test]
    // keeps P007
    fn another() {
        let x = 1; // keeps P008
        // keeps P9
    }
}
";

#[test]
fn claims_count_at_tests_only() {
    let mut faults = Vec::new();
    assert_eq!(claims("f", FIXTURE, &mut faults), ["P002", "D001", "P003", "P005", "P007"]);
    let lines: Vec<&str> = faults.iter().map(|fault| fault.split(':').nth(1).unwrap()).collect();
    assert_eq!(lines, ["2", "13", "21", "29", "30"], "{faults:?}");
}

#[test]
fn every_kind_of_fault_is_found() {
    let mut faults = Vec::new();
    let document = "| number | what | awaits |\n|---|---|---|\n| P001 | a | |\n| P002 | b | `callbacks` |\n\
                    | P003 | c | `callbacks` |\n| P004 | d | `later` |\n| P001 | e | |\n| P5 | f | |\n| P006 | g | |\n";
    let promises = promises(document, &["callbacks"], &mut faults);
    assert_eq!(faults.len(), 3, "another word, a number twice, a broken row: {faults:?}");
    faults.clear();
    judge(&promises, &["P001", "P003", "P007"].map(str::to_owned).into(), &mut faults);
    assert_eq!(
        faults,
        [
            "P003 is claimed by a test, but still marked as awaiting callbacks",
            "P006 is claimed by no test",
            "P007 is no promise"
        ]
    );
}
