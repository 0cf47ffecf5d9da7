//! Tests that load whole rules directories and check the rule sets or problems.

mod checks;
mod defaults;
mod described;
mod dialects;
mod diff;
mod errors;
mod excerpts;
mod fingerprint;
mod inspect;
mod page_tests;
mod providers;
mod reference;
mod reload;
mod rendering;
mod schemas;
mod secrets;
mod warnings;
mod watching;

use std::fs;
use std::path::Path;

use tempfile::TempDir;

pub(super) use described::to_json;

use super::{LoadOptions, Loader, Problem, Problems, RuleSet, Severity, load};
use crate::domain::{MerchantId, UnixMillis};

/// A rules directory under construction, in a temporary directory.
struct Rules(TempDir);

const SHOP: &str = "currency = \"EUR\"\n[provider]\nkind = \"sandbox\"\n";

const MERCHANT: &str = "\
[[api_keys]]
key = \"k\"
v1_secret = \"one\"
v2_secret = \"two\"
allowed_ips = [\"203.0.113.0/24\"]
[shops.s]
";

impl Rules {
    /// Creates rules with an empty `gateway.toml` only.
    fn bare() -> Self {
        let rules = Self(tempfile::tempdir().unwrap());
        fs::create_dir(rules.0.path().join("rules")).unwrap();
        rules.with("gateway.toml", "")
    }

    /// Creates rules with a shop `s` and a merchant `m` with the key `k`.
    fn small() -> Self {
        Self::bare().with("shops/s.toml", SHOP).with("merchants/m.toml", MERCHANT)
    }

    fn with(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        self.put(name, text);
        self
    }

    fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("rules")
    }

    fn try_load(&self) -> Result<RuleSet, Problems> {
        let loaded = load(&self.path(), UnixMillis(0), None, LoadOptions::default());
        if loaded.is_ok() {
            described::assert_fits(&self.path());
        }
        loaded
    }

    /// Returns a loader that has loaded the rules once, and the rule set.
    #[track_caller]
    fn loader(&self) -> (Loader, RuleSet) {
        let mut loader = Loader::new(&self.path(), LoadOptions::default());
        let first = loader.load(UnixMillis(0), None).unwrap_or_else(|problems| panic!("{problems}"));
        (loader, first)
    }

    #[track_caller]
    fn load(&self) -> RuleSet {
        self.try_load().unwrap_or_else(|problems| panic!("{problems}"))
    }

    #[track_caller]
    fn refused(&self) -> Problems {
        self.try_load().expect_err("the rules are wrong")
    }

    /// Returns the errors, one line each, with paths below the rules directory.
    #[track_caller]
    fn problems(&self) -> Vec<String> {
        let refused = self.refused();
        let errors = refused.iter().filter(|problem| problem.severity == Severity::Error);
        errors.map(|problem| self.below(problem)).collect()
    }

    /// Returns the warnings of rules that load, one line each, with paths below the rules directory.
    #[track_caller]
    fn warnings(&self) -> Vec<String> {
        self.load().warnings.iter().map(|problem| self.below(problem)).collect()
    }

    fn below(&self, problem: &Problem) -> String {
        problem.to_string().replace(&format!("{}/", self.path().display()), "")
    }

    /// Asserts exactly one problem, which starts with `place` and contains `message`.
    #[track_caller]
    fn one_problem(&self, place: &str, message: &str) {
        let problems = self.problems();
        assert!(problems.len() == 1, "one problem expected: {problems:#?}");
        assert!(problems[0].starts_with(&format!("{place}: ")), "{place} expected: {}", problems[0]);
        assert!(problems[0].contains(message), "{message:?} expected: {}", problems[0]);
    }
}

fn merchant_id(text: &str) -> MerchantId {
    MerchantId::new(text).unwrap()
}

#[test]
fn the_shipped_rules_load() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules");
    let options = LoadOptions { check_secrets: false };
    let rules = load(&directory, UnixMillis(0), None, options).unwrap_or_else(|problems| panic!("{problems}"));
    let demo = &rules.merchants["demo"];
    assert_eq!(demo.default_shop.as_ref().unwrap().as_str(), "card-eur");
    assert!(rules.api_key("demo-v1").unwrap().api_key().v1_secrets.is_some());
    assert!(rules.api_key("demo-v2").unwrap().api_key().v1_secrets.is_none());
    assert!(rules.gateway.tls.generate && rules.gateway.callbacks.allow_private_addresses);
    let payin = rules.shops["card-eur"].payin.schema.as_ref().unwrap();
    assert!(payin.check(&demo.id, std::iter::empty()).is_ok(), "a deposit without fields is accepted");
}

#[test]
fn the_shipped_dialect_is_the_built_in_one() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules");
    let written = load(&directory, UnixMillis(0), None, LoadOptions { check_secrets: false }).unwrap();
    let built_in = Rules::bare().load();
    assert_eq!(format!("{:?}", written.dialects["v1"]), format!("{:?}", built_in.dialects["v1"]));
}

#[test]
fn files_with_other_names_are_ignored() {
    let wrong = "this is no TOML";
    let rules = Rules::small()
        .with("merchants/.hidden.toml", wrong)
        .with("merchants/m.toml~", wrong)
        .with("merchants/#m.toml#", wrong)
        .with("merchants/.m.toml.swp", wrong)
        .with("merchants/two words.toml", wrong)
        .with("merchants/m.toml.bak", wrong)
        .with("merchants/deep/er.toml", wrong)
        .with("shops/..data/s.toml", wrong)
        .with("shops/unused.json", "{")
        .with("other.toml", wrong)
        .with("README.md", wrong)
        .with("lists/.hidden.txt", "")
        .with("lists/m/deeper/x.txt", "")
        .with("lists/README.md", "")
        .load();
    assert_eq!((rules.merchants.len(), rules.shops.len(), rules.dialects.len()), (1, 1, 1));
}

#[test]
fn the_version_covers_every_file() {
    let rules = Rules::small().with("shops/x.json", "{}").with("lists/l.txt", "a");
    let mut versions = vec![rules.load().version];
    assert_eq!(rules.load().version, versions[0]);
    for (name, text) in [
        ("gateway.toml", "# x"),
        ("shops/x.json", "{ }"),
        ("lists/l.txt", "b"),
        ("lists/m/l.txt", "b"),
        ("dialects/d.toml", ""),
        ("shops/t.toml", SHOP),
        ("pages/en.toml", "# x"),
    ] {
        rules.put(name, text);
        let version = rules.load().version;
        assert!(version.len() == 16 && !versions.contains(&version), "{name}");
        versions.push(version);
    }
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let rules = Rules::small().with("merchants/bad.toml", b"name = \"\xff\"\n");
    rules.one_problem("merchants/bad.toml:1:9", "is not UTF-8 from here");
    let rules = Rules::small().with("lists/big.txt", vec![b'a'; (4 << 20) + 1]);
    rules.one_problem("lists/big.txt:1:1", "larger than 4194304 bytes");
    let missing = load(Path::new("/no/such/rules"), UnixMillis(0), None, LoadOptions::default()).unwrap_err();
    assert_eq!(missing.to_string(), "/no/such/rules:1:1: the rules directory is missing, or is not a directory");
    let rules = Rules(tempfile::tempdir().unwrap());
    fs::create_dir(rules.path()).unwrap();
    rules.one_problem("gateway.toml:1:1", "gateway.toml is missing");
}

#[cfg(unix)]
#[test]
fn entries_that_are_no_regular_files_are_problems() {
    use std::os::unix::fs::symlink;
    let link = |target: &str, name: &str| {
        let rules = Rules::small();
        fs::create_dir_all(rules.path().join(name).parent().unwrap()).unwrap();
        symlink(target, rules.path().join(name)).unwrap();
        rules
    };
    link("nowhere", "merchants/n.toml").one_problem("merchants/n.toml:1:1", "cannot be read: No such file");
    link("n.toml", "merchants/n.toml").one_problem("merchants/n.toml:1:1", "cannot be read: ");
    link("nowhere", "shops/s.json").one_problem("shops/s.json:1:1", "cannot be read: ");
    link("nowhere", "lists/m").one_problem("lists/m:1:1", "cannot be read: ");
    link("nowhere", "dialects").one_problem("dialects:1:1", "cannot be read: ");
    link("m.toml", "merchants/.hidden.toml").load();
    link("nowhere", "merchants/..data").load();
    link("nowhere", "merchants/n.toml~").load();
    let rules = Rules::small().with("merchants/n.toml/x", "");
    rules.one_problem("merchants/n.toml:1:1", "is not a regular file");
    Rules::small().with("lists/l.txt/x", "").one_problem("lists/l.txt:1:1", "is not a regular file");
    Rules::small().with("dialects", "").one_problem("dialects:1:1", "cannot be read: Not a directory");
    let rules = Rules::small();
    fs::remove_file(rules.path().join("gateway.toml")).unwrap();
    symlink("nowhere", rules.path().join("gateway.toml")).unwrap();
    rules.one_problem("gateway.toml:1:1", "cannot be read: No such file");
    let rules = link("../shared", "merchants/n.toml");
    fs::write(rules.0.path().join("rules/shared"), "name = \"N\"").unwrap();
    assert_eq!(rules.load().merchants.len(), 2, "a link to a file counts as a file");
}
