//! Broken variants of the shipped rule files and dialects never panic or hang the loader, and the current rules stay in
//! force.

use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;

use super::hostile_files::assert_ends;
use super::*;
use crate::clock::ManualClock;
use crate::rules::{LiveRules, Loader, ReloadOutcome};

/// Files that are each read differently.
const PLACES: [&str; 9] = [
    "gateway.toml",
    "dialects/v1.toml",
    "dialects/other.toml",
    "merchants/demo.toml",
    "shops/card-eur.toml",
    "shops/s.json",
    "lists/banks.txt",
    "lists/demo/banks.txt",
    "pages/en.toml",
];

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the shipped files with their names, and the dialects of the tests.
fn shipped() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut directories = vec![repository("rules")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path == repository("rules/schemas") {
                // Schemas are not read.
            } else if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|ending| ["toml", "json", "txt"].iter().any(|one| ending == *one)) {
                let name = path.strip_prefix(repository("rules")).unwrap().to_str().unwrap().to_owned();
                files.push((name, fs::read(path).unwrap()));
            }
        }
    }
    for name in ["meridian", "strand"] {
        let bytes = fs::read(repository(&format!("tests/it/dialects/{name}.toml"))).unwrap();
        files.push((format!("dialects/{name}.toml"), bytes));
    }
    files.sort();
    files
}

/// Returns a copy of the shipped rules, with a schema and a list that are in use.
fn copy_of_shipped() -> Rules {
    let rules = Rules::bare();
    for (name, bytes) in shipped() {
        rules.put(&name, bytes);
    }
    rules
        .with("shops/t.toml", format!("{SHOP}[payin]\nschema = \"s.json\"\n"))
        .with("shops/s.json", r#"{"properties": {"bank": {"x-allowed-list": "banks"}}}"#)
        .with("lists/banks.txt", "a\nb\n")
}

fn without_secrets() -> LoadOptions {
    LoadOptions { check_secrets: false }
}

/// Loads rules in which one file has these bytes, both from scratch and by a reload; `Err` describes a difference or
/// another failure.
fn put_in_place(place: &'static str, bytes: Vec<u8>) -> Result<(), String> {
    let shown = format!("{place} of {} bytes", bytes.len());
    assert_ends(&shown, move || {
        let rules = copy_of_shipped();
        let mut loader = Loader::new(&rules.path(), without_secrets());
        let first = loader.load(UnixMillis(0), None).map_err(|problems| problems.to_string())?;
        let live = LiveRules::new(loader, first, Arc::new(ManualClock::at(UnixMillis(10_000))));
        let before = live.current();
        rules.put(place, &bytes);
        let fresh = load(&rules.path(), UnixMillis(10_000), Some(&before), without_secrets());
        match (fresh, live.reload()) {
            (Ok(fresh), ReloadOutcome::Loaded { version, .. }) => {
                (fresh.version == version).then_some(()).ok_or("another version after a reload than anew".to_owned())
            }
            (Err(fresh), ReloadOutcome::Refused(problems)) => {
                if !Arc::ptr_eq(&before, &live.current()) {
                    return Err("refused rules serve".to_owned());
                }
                if problems.rendered().is_empty() || fresh.to_string() != problems.to_string() {
                    return Err(format!("other problems anew than after a reload:\n{fresh}\n{problems}"));
                }
                Ok(())
            }
            (fresh, reload) => {
                Err(format!("anew {}, and then {reload:?}", if fresh.is_ok() { "good" } else { "wrong" }))
            }
        }
    })
}

/// A mutation of a file.
#[derive(Debug, Clone)]
enum Mutation {
    Flip(Index, u8),
    Cut(Index),
    Drop(Index, usize),
    Insert(Index, Vec<u8>),
    Repeat(Index, usize, usize),
    Splice(Index, Index, Index),
    Swap(Index, Index),
}

/// Generates typing mistakes.
fn typing_mistake() -> impl Strategy<Value = Mutation> {
    let keys = proptest::sample::select(vec![
        "\"", "'", "=", "[", "]", "{", "}", ",", "\n", "#", " ", ".", "\"\"\"", "x", "é",
    ]);
    prop_oneof![
        (any::<Index>(), keys).prop_map(|(at, key)| Mutation::Insert(at, key.as_bytes().to_vec())),
        (any::<Index>(), 1..3_usize).prop_map(|(at, length)| Mutation::Drop(at, length)),
        any::<Index>().prop_map(Mutation::Cut),
    ]
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 1..5),
        proptest::sample::select(vec![
            "\"", "'''", "\"\"\"", "[[", "]", "{", "}", "{{", "}}", "{%", "=", "\r", "\u{feff}", "\0", "\\u0000", ","
        ])
        .prop_map(|piece| piece.as_bytes().to_vec()),
        proptest::sample::select(vec![
            "[api_keys]\n",
            "a.b.c = 1\n",
            "x = -9223372036854775808\n",
            "t = 1979-05-27T07:32:00Z\n",
            "{{ x }}",
            "{% for a in b %}",
            "\"$ref\": \"#\",",
            "\"allOf\": [{}],",
            "\"pattern\": \"(a*)*\",",
            "env:HOME",
            "file:/dev/zero",
            "file:.",
            "../",
        ])
        .prop_map(|piece| piece.as_bytes().to_vec()),
    ];
    prop_oneof![
        (any::<Index>(), 1..=255_u8).prop_map(|(at, mask)| Mutation::Flip(at, mask)),
        any::<Index>().prop_map(Mutation::Cut),
        (any::<Index>(), 1..80_usize).prop_map(|(at, length)| Mutation::Drop(at, length)),
        (any::<Index>(), piece).prop_map(|(at, piece)| Mutation::Insert(at, piece)),
        (any::<Index>(), 1..60_usize, 2..40_usize).prop_map(|(at, length, times)| Mutation::Repeat(at, length, times)),
        (any::<Index>(), any::<Index>(), any::<Index>()).prop_map(|(file, from, at)| Mutation::Splice(file, from, at)),
        (any::<Index>(), any::<Index>()).prop_map(|(one, other)| Mutation::Swap(one, other)),
    ]
}

fn mutated(mut bytes: Vec<u8>, mutations: &[Mutation], files: &[(String, Vec<u8>)]) -> Vec<u8> {
    for mutation in mutations {
        if bytes.is_empty() {
            bytes.push(b'\n');
        }
        let length = bytes.len();
        match mutation {
            Mutation::Flip(at, mask) => bytes[at.index(length)] ^= mask,
            Mutation::Cut(at) => bytes.truncate(at.index(length)),
            Mutation::Drop(at, some) => drop(bytes.drain(at.index(length)..(at.index(length) + some).min(length))),
            Mutation::Insert(at, piece) => {
                drop(bytes.splice(at.index(length)..at.index(length), piece.iter().copied()));
            }
            Mutation::Repeat(at, some, times) => {
                let part = bytes[at.index(length)..(at.index(length) + some).min(length)].repeat(*times);
                drop(bytes.splice(at.index(length)..at.index(length), part));
            }
            Mutation::Splice(file, from, at) => {
                let other = &files[file.index(files.len())].1;
                let from = from.index(other.len().max(1)).min(other.len());
                bytes.truncate(at.index(length));
                bytes.extend_from_slice(&other[from..]);
            }
            Mutation::Swap(one, other) => bytes.swap(one.index(length), other.index(length)),
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_replace_the_current_rules(place in proptest::sample::select(PLACES.to_vec()), bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert_eq!(put_in_place(place, bytes), Ok(()));
    }

    #[test]
    fn no_broken_file_replaces_the_current_rules(
        file in any::<Index>(),
        place in proptest::option::of(proptest::sample::select(PLACES.to_vec())),
        mutations in proptest::collection::vec(mutation(), 0..4),
    ) {
        let files = shipped();
        let (name, bytes) = files[file.index(files.len())].clone();
        // Usually in its own place: in others most files fail early.
        let place = place.filter(|_| mutations.len() == 3);
        let place = place.or_else(|| PLACES.into_iter().find(|known| *known == name)).unwrap_or(match &name {
            name if name.starts_with("dialects") => "dialects/other.toml",
            name if name.starts_with("shops") && name.contains(".json") => "shops/s.json",
            name if name.starts_with("shops") => "shops/card-eur.toml",
            name if name.starts_with("lists") => "lists/banks.txt",
            name if name.starts_with("pages") => "pages/en.toml",
            _ => "merchants/demo.toml",
        });
        prop_assert_eq!(put_in_place(place, mutated(bytes, &mutations, &files)), Ok(()));
    }
}

/// A case found by the fuzzer: a cached merchant did not report that its shop could not be read, a newly compiled one
/// did.
#[test]
fn load_and_reload_report_an_unreadable_shop_alike() {
    for bytes in [&b"currency = \"\x8b\""[..], b"\xff", b"currency = ", b""] {
        assert_eq!(put_in_place("shops/card-eur.toml", bytes.to_vec()), Ok(()));
    }
}

/// A merchant's file with secrets of every form.
const SECRETS: &str = "\
name = \"Acme\"

[[api_keys]]
key = \"acme-live\"
v1_secret = \"TOPSECRET\"
v2_secret = [\"TOPSECRET\", \"TOPSECRET\"]
allowed_ips = [\"203.0.113.0/24\"]

[[api_keys]]
key = \"acme-other\"
v2_secret = \"\"\"
TOPSECRET
TOPSECRET\"\"\"
rate_limit = { per_second = 200, burst = 400 }

[shops.s]
payin = true
";

#[test]
fn a_line_break_inside_a_key_shows_no_secret() {
    for (from, to) in [("v2_secret", "v2_sec\nret"), ("v2_secret", "v2_\n  secret"), ("v1_secret", "v1_secre\r\nt")] {
        let rules = Rules::small();
        rules.put("merchants/m.toml", SECRETS.replacen(from, to, 1).replace("\", \"TOPSECRET\"]", "\", \"TOPSECRET\""));
        let problems = load(&rules.path(), UnixMillis(0), None, without_secrets()).unwrap_err();
        let shown = problems.rendered() + &problems.to_string();
        assert!(!shown.contains("TOPSECRET"), "{to:?}: {shown}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Two typing mistakes never show a secret. (Except one that moves to a key without secrets, or whose key no longer
    /// resembles a key of a secret.)
    #[test]
    fn no_broken_file_shows_a_secret(mutations in proptest::collection::vec(typing_mistake(), 1..3)) {
        let files = [("merchants/m.toml".to_owned(), SECRETS.as_bytes().to_vec())];
        let broken = mutated(SECRETS.as_bytes().to_vec(), &mutations, &files);
        let rules = Rules::small();
        rules.put("merchants/m.toml", &broken);
        if let Err(problems) = load(&rules.path(), UnixMillis(0), None, without_secrets()) {
            let shown = problems.rendered() + &problems.to_string();
            prop_assert!(!shown.contains("TOPSECRET"), "{}\nof\n{}", shown, String::from_utf8_lossy(&broken));
        }
    }
}
