//! Golden pairs: what a v1 body becomes. `golden/<merchant>.<kind>.<case>.v1.json` is what a merchant of the tests' rules
//! sends; beside it lies the v2 body it becomes (`.v2.json`), or what the refusal names (`.refused.txt`), and for some what
//! `--explain` says (`.explained.txt`).
//!
//! Values are compared byte for byte, members by name: their order means nothing in JSON. The amount is compared as a
//! decimal, and the code at the end of the relay's address, which only a running store can make, is not looked at.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use paybridge::domain::{CallbackUrl, Direction, FingerprintKey, MerchantId, UnixMillis};
use paybridge::rules::{self, LoadOptions};
use paybridge::v1::translate::{BodyBytes, TranslateError, translate as translate_create};
use paybridge::wire;
use regex::Regex;
use serde_json::value::RawValue;

use crate::support::Rules;

type Members = BTreeMap<String, Box<RawValue>>;

/// The members of an object with their text as it stands, `fields.…` beside the top-level ones.
fn members(body: &str) -> BTreeMap<String, String> {
    let parse = |text: &str| serde_json::from_str::<Members>(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let mut all = BTreeMap::new();
    for (name, value) in parse(body) {
        match name.as_str() {
            "fields" => all
                .extend(parse(value.get()).into_iter().map(|(name, v)| (format!("fields.{name}"), v.get().to_owned()))),
            "amount" => drop(all.insert(name, decimal(value.get()))),
            _ => drop(all.insert(name, value.get().to_owned())),
        }
    }
    all
}

/// A JSON number without what does not count in it.
fn decimal(number: &str) -> String {
    assert!(!number.starts_with('"'), "a quoted amount: {number}");
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.').to_owned() } else { number.to_owned() }
}

fn translate(rules: &Path, merchant: &str, kind: &str, file: &Path, extra: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_paybridge"))
        .args(["translate", "--merchant", merchant, "--kind", kind, "--rules"])
        .arg(rules)
        .args(extra)
        .arg(file)
        .output()
        .unwrap()
}

fn cases() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<_> = files.filter(|path| path.to_str().unwrap().ends_with(".v1.json")).collect();
    cases.sort();
    cases
}

// keeps P263, P264, P265, P266, P267, P269, P272, P273, P274, P275, P276, P277
#[test]
fn v1_bodies_become_what_is_written_down() {
    let root = tempfile::tempdir().unwrap();
    Rules::default().write(root.path(), 8443, 9090);
    let rules = root.path().join("rules");
    let cases = cases();
    assert!(cases.len() >= 30, "the golden files are found");
    for case in cases {
        let name = case.file_name().unwrap().to_str().unwrap().trim_end_matches(".v1.json").to_owned();
        let [merchant, kind, _] = name.split('.').collect::<Vec<_>>()[..] else { panic!("{name}") };
        let output = translate(&rules, merchant, kind, &case, &[]);
        let (stated, error) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        let expected = |kind: &str| std::fs::read_to_string(case.with_file_name(format!("{name}.{kind}"))).ok();
        match (expected("v2.json"), expected("refused.txt")) {
            (Some(v2), None) => {
                assert_eq!(output.status.code(), Some(0), "{name}: {error}");
                assert_eq!(members(&without_code(&stated)), members(&v2), "{name}");
            }
            (None, Some(names)) => {
                assert_eq!(output.status.code(), Some(1), "{name} became {stated}");
                assert!(stated.is_empty(), "{name}: {stated}");
                for word in names.split_whitespace() {
                    assert!(error.contains(word), "{name}: {word} is not named: {error}");
                }
            }
            _ => panic!("{name}: not exactly one of .v2.json and .refused.txt"),
        }
    }
}

/// What is printed for a case, less the code of the relay's address.
fn printed(rules: &Path, case: &Path, extra: &[&str]) -> String {
    let (_, [merchant, kind]) = named(case);
    let output = translate(rules, &merchant, &kind, case, extra);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    without_code(&String::from_utf8(output.stdout).unwrap())
}

fn without_code(text: &str) -> String {
    Regex::new(r"(/relay/[^\x22]*?)[0-9a-f]{16,}").unwrap().replace(text, "${1}CODE").into_owned()
}

/// The name of a case, and its merchant and kind.
fn named(case: &Path) -> (String, [String; 2]) {
    let name = case.file_name().unwrap().to_str().unwrap().trim_end_matches(".v1.json").to_owned();
    let mut parts = name.split('.').map(str::to_owned);
    let words = [parts.next().unwrap(), parts.next().unwrap()];
    (name, words)
}

#[test]
fn explanations_are_what_is_written_down() {
    let root = tempfile::tempdir().unwrap();
    Rules::default().write(root.path(), 8443, 9090);
    let rules = root.path().join("rules");
    let mut explained = 0;
    for case in cases() {
        let (name, _) = named(&case);
        let file = case.with_file_name(format!("{name}.explained.txt"));
        let Ok(expected) = std::fs::read_to_string(&file) else { continue };
        explained += 1;
        let printed = printed(&rules, &case, &["--explain"]);
        let (body, rest) = printed.split_once("\n\n").expect("the body, an empty line, the explanation");
        assert!(!body.contains('\n'), "the body stands alone on its line");
        assert_eq!(rest, expected, "{name}");
        for secret in ["4000123412341234", "ann@example.com", "https://"] {
            assert!(!rest.contains(secret), "{name}: values are in the body, and nowhere else");
        }
    }
    assert_eq!(explained, 4);
}

/// The tool says what the gateway would send, to the byte: there they are signed as they stand.
#[test]
fn what_is_printed_is_what_is_forwarded() {
    let root = tempfile::tempdir().unwrap();
    Rules::default().write(root.path(), 8443, 9090);
    let directory = root.path().join("rules");
    let rules = rules::load(&directory, UnixMillis(1_780_000_000_000), None, LoadOptions::default()).unwrap();
    let public_url = &rules.gateway.server.public_url;
    let fingerprint_key = FingerprintKey::new(&[9; 32]);
    let mut seen = 0;
    for case in cases() {
        let (name, [merchant, kind]) = named(&case);
        if !case.with_file_name(format!("{name}.v2.json")).exists() {
            continue;
        }
        let direction = if kind == "payin" { Direction::Payin } else { Direction::Payout };
        let sent = std::fs::read(&case).unwrap();
        let create = wire::v1::read_create(direction, &sent).unwrap();
        let merchant = &rules.merchants[&MerchantId::new(&merchant).unwrap()];
        let order = fingerprint_key.order_key(&merchant.id, direction, &create.external_id);
        let relay = CallbackUrl::of_relay(public_url, &merchant.id, direction, order);
        let mut bytes = BodyBytes::default();
        let request = match translate_create(&create, &merchant.v1, &relay, &mut bytes) {
            Ok(translated) => Ok(translated.request),
            Err(TranslateError::Shape(error)) => Err(error),
            Err(TranslateError::Rule(error)) => panic!("{name}: {error:?}"),
        };
        let forwarded = bytes.into_text();
        assert_eq!(wire::v2::read_create(direction, forwarded.as_bytes()), request, "{name}");
        let forwarded = without_code(&forwarded);
        assert_eq!(printed(&directory, &case, &[]), format!("{forwarded}\n"), "{name}");
        let explained = printed(&directory, &case, &["--explain"]);
        assert!(explained.starts_with(&format!("{forwarded}\n\n")), "{name}");
        seen += 1;
    }
    assert!(seen >= 30, "the golden files are found");
}

#[test]
fn every_member_is_explained() {
    let root = tempfile::tempdir().unwrap();
    Rules::default().write(root.path(), 8443, 9090);
    let rules = root.path().join("rules");
    for case in cases() {
        let name = case.file_name().unwrap().to_str().unwrap().trim_end_matches(".v1.json").to_owned();
        let Ok(v2) = std::fs::read_to_string(case.with_file_name(format!("{name}.v2.json"))) else { continue };
        let [merchant, kind, _] = name.split('.').collect::<Vec<_>>()[..] else { panic!("{name}") };
        let output = translate(&rules, merchant, kind, &case, &["--explain"]);
        let stated = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        for member in members(&v2).into_keys() {
            let last = member.rsplit('.').next().unwrap();
            let explained = stated.lines().any(|line| !line.starts_with('{') && line.contains(last));
            assert!(explained || !last.is_ascii(), "{name}: {member} is not explained:\n{stated}");
        }
    }
}
