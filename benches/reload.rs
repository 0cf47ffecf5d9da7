//! What a reload costs at 10 shops and at 10,000, by what changed, beside loading everything.
//!
//! ```sh
//! cargo bench --bench reload
//! ```
//!
//! Each shop has a payin and a payout schema of its own text, and ten shops share a merchant. The figures are the best of
//! several rounds in milliseconds, and their ratio to the first load of the same run. A saved file is served after this and
//! the time for which files must be left alone before they are read. Nothing is asserted about time.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on panics")]

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use paybridge::clock::Clock;
use paybridge::domain::UnixMillis;
use paybridge::rules::{LiveRules, LoadOptions, Loader, ReloadOutcome};

/// Every file was left alone for long when it is looked at, so that its times are trusted.
struct MuchLater;

impl Clock for MuchLater {
    fn now(&self) -> UnixMillis {
        UnixMillis(4_000_000_000_000)
    }
}

/// What is written before a reload, for the number of a round.
struct Edit {
    name: &'static str,
    write: fn(&Path, usize),
}

const EDITS: [Edit; 5] = [
    Edit { name: "reload: nothing changed", write: |_, _| {} },
    Edit { name: "reload: a merchant changed", write: |rules, round| write_merchant(rules, 0, round) },
    Edit { name: "reload: a shop changed", write: |rules, round| write_shop(rules, 3, round) },
    Edit { name: "reload: a schema changed", write: |rules, round| write_schema(rules, "s4.payin", round) },
    Edit { name: "reload: a list changed", write: |rules, round| write_list(rules, round) },
];

fn main() {
    let measured = std::env::args().any(|argument| argument == "--bench");
    let (sizes, rounds): (&[usize], _) = if measured { (&[10, 10_000], 5) } else { (&[10], 1) };
    let mut text = String::new();
    for shops in sizes {
        measure(*shops, rounds, &mut text);
    }
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn measure(shops: usize, rounds: usize, text: &mut String) {
    let directory = tempfile::tempdir().unwrap();
    write_rules(directory.path(), shops);
    let mut loader = Loader::new(directory.path(), LoadOptions { check_secrets: true });
    let started = Instant::now();
    let first = loader.load(MuchLater.now(), None).unwrap_or_else(|problems| panic!("{problems}"));
    let whole = started.elapsed();
    line(text, shops, "first load", whole, whole);
    let live = LiveRules::new(loader, first, Arc::new(MuchLater));
    let looked = best(rounds, |_| {}, || assert!(!live.stale()));
    line(text, shops, "a look for changes", looked, whole);
    for edit in &EDITS {
        let reload = || assert!(matches!(live.reload(), ReloadOutcome::Loaded { .. }), "{}", edit.name);
        let time = best(rounds, |round| (edit.write)(directory.path(), round), reload);
        line(text, shops, edit.name, time, whole);
    }
}

fn best(rounds: usize, before: impl Fn(usize), timed: impl Fn()) -> Duration {
    let round = |round| {
        before(round);
        let started = Instant::now();
        timed();
        started.elapsed()
    };
    (1..=rounds).map(round).min().unwrap_or_default()
}

fn line(text: &mut String, shops: usize, name: &str, time: Duration, whole: Duration) {
    let (time, whole) = (time.as_secs_f64() * 1000.0, whole.as_secs_f64() * 1000.0);
    let _ = writeln!(text, "{shops:>6} shops  {name:<32} {time:>10.2} ms {:>7.4}", time / whole);
}

fn write_rules(rules: &Path, shops: usize) {
    for directory in ["shops", "merchants", "lists"] {
        fs::create_dir(rules.join(directory)).unwrap();
    }
    fs::write(rules.join("gateway.toml"), "").unwrap();
    write_list(rules, 0);
    for number in 0..shops {
        write_shop(rules, number, 0);
        write_schema(rules, &format!("s{number}.payin"), 0);
        write_schema(rules, &format!("s{number}.payout"), 0);
    }
    for number in 0..shops / 10 {
        write_merchant(rules, number, 0);
    }
}

fn write_list(rules: &Path, round: usize) {
    fs::write(rules.join("lists/banks.txt"), format!("alpha\nbeta\nbank-{round}\n")).unwrap();
}

fn write_shop(rules: &Path, number: usize, round: usize) {
    let text = format!(
        "# round {round}\ncurrency = \"EUR\"\npayment_method = \"card\"\n\n[payin]\nschema = \"s{number}.payin.json\"\n\n\
         [payout]\nschema = \"s{number}.payout.json\"\n\n[provider]\nkind = \"sandbox\"\n"
    );
    fs::write(rules.join(format!("shops/s{number}.toml")), text).unwrap();
}

/// Five members, as shops have them; every hundredth one asks for a value of the list.
fn write_schema(rules: &Path, name: &str, round: usize) {
    let listed = if name.contains("00.") { ", \"x-allowed-list\": \"banks\"" } else { "" };
    let text = format!(
        "{{\n  \"$comment\": \"{name} {round}\",\n  \"type\": \"object\",\n  \"required\": [\"full_name\"],\n  \"properties\": {{\n    \
         \"full_name\": {{ \"type\": \"string\", \"minLength\": 1, \"maxLength\": 120 }},\n    \
         \"email\": {{ \"type\": \"string\", \"format\": \"email\" }},\n    \
         \"phone\": {{ \"type\": \"string\", \"pattern\": \"^\\\\+[0-9]{{8,15}}$\" }},\n    \
         \"channel\": {{ \"enum\": [\"web\", \"app\"], \"default\": \"web\" }},\n    \
         \"bank\": {{ \"type\": \"string\"{listed} }}\n  }}\n}}\n"
    );
    fs::write(rules.join(format!("shops/{name}.json")), text).unwrap();
}

fn write_merchant(rules: &Path, number: usize, round: usize) {
    let mut text = format!(
        "name = \"Merchant {number}, round {round}\"\ndefault_shop = \"s{first}\"\n\n[[api_keys]]\nkey = \"key-{number}\"\n\
         v1_secret = \"v1-{number}\"\nv2_secret = \"v2-{number}\"\nallowed_ips = [\"203.0.113.0/24\"]\n",
        first = number * 10
    );
    for shop in number * 10..number * 10 + 10 {
        let _ = write!(text, "\n[shops.s{shop}]\npayin = true\npayout = true\n");
    }
    fs::write(rules.join(format!("merchants/m{number}.toml")), text).unwrap();
}
