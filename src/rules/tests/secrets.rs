//! Where secrets are read from, and that they are never shown.

use std::fs;

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::rules::secret_named;
use crate::store_settings::StoreUrl;

fn with_secret(secret: &str) -> Rules {
    let merchant = format!("[[api_keys]]\nkey = \"k\"\nv2_secret = {secret}\n");
    Rules::small().with("merchants/m.toml", merchant)
}

#[track_caller]
fn secrets(rules: &Rules) -> Vec<Vec<u8>> {
    let rules = rules.load();
    let key = rules.api_key("k").unwrap();
    key.api_key().v2_secrets.as_ref().unwrap().verifying().map(|secret| secret.expose().to_vec()).collect()
}

#[test]
fn secrets_of_all_sources_keep_their_order() {
    // Cargo sets this variable for every test.
    let name = std::env::var("CARGO_PKG_NAME").unwrap();
    assert_eq!(secrets(&with_secret("\"env:CARGO_PKG_NAME\"")), [name.as_bytes()]);
    let rules = with_secret("[\"literal\", \"file:../../secrets/a\", \"env:CARGO_PKG_NAME\"]");
    fs::create_dir(rules.0.path().join("secrets")).unwrap();
    fs::write(rules.0.path().join("secrets/a"), "from file\n\n").unwrap();
    assert_eq!(secrets(&rules), [b"literal".as_slice(), b"from file\n", name.as_bytes()]);
}

#[test]
fn one_trailing_newline_is_dropped() {
    for (content, expected) in [("x", "x"), ("x\n", "x"), ("x\r\n", "x"), ("x\n\n", "x\n"), (" x ", " x ")] {
        let rules = with_secret("\"file:secret\"").with("merchants/secret", content);
        assert_eq!(secrets(&rules), [expected.as_bytes()], "{content:?}");
    }
}

#[test]
fn unavailable_secrets_are_problems() {
    let place = "merchants/m.toml:3:13";
    with_secret("\"env:PAYBRIDGE_NO_SUCH_VARIABLE\"").one_problem(place, "`PAYBRIDGE_NO_SUCH_VARIABLE` is not set");
    with_secret("\"file:nowhere\"").one_problem(place, "nowhere does not exist");
    with_secret("\"file:empty\"").with("merchants/empty", "\n").one_problem(place, "empty is empty");
    with_secret("\"file:huge\"").with("merchants/huge", vec![b'x'; 1 << 20]).one_problem(place, "it is larger than");
    with_secret("\"file:/dev/zero\"").one_problem(place, "it is not a regular file");
    with_secret("\"file:\"").one_problem(place, "must not be empty");
    with_secret("\"env:\"").one_problem(place, "must not be empty");
    with_secret("5").one_problem(place, "must be a secret");
    with_secret("[\"a\", \"env:PAYBRIDGE_NO_SUCH_VARIABLE\"]").one_problem("merchants/m.toml:3:19", "is not set");
}

#[test]
fn secrets_on_the_command_line_have_the_same_form() {
    let name = std::env::var("CARGO_PKG_NAME").unwrap();
    assert_eq!(secret_named("env:CARGO_PKG_NAME").unwrap(), name.as_bytes());
    assert_eq!(secret_named("literal").unwrap(), b"literal");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("secret");
    fs::write(&path, "from file\n").unwrap();
    assert_eq!(secret_named(&format!("file:{}", path.display())).unwrap(), b"from file");
    let refused = |text: &str| secret_named(text).unwrap_err();
    assert_eq!(
        refused("env:PAYBRIDGE_NO_SUCH_VARIABLE"),
        "cannot be read: the environment variable `PAYBRIDGE_NO_SUCH_VARIABLE` is not set"
    );
    assert!(refused(&format!("file:{}", directory.path().display())).contains("not a regular file"));
    assert!(refused("File:x").starts_with("looks like a reference"));
}

#[test]
fn every_unavailable_secret_is_named() {
    let problems =
        with_secret("[\"file:nowhere\", \"a\", \"env:PAYBRIDGE_NO_SUCH_VARIABLE\", \"ENV:X\", \"\"]").problems();
    let [no_file, no_variable, reference, empty] = &problems[..] else { panic!("{problems:#?}") };
    assert!(no_file.starts_with("merchants/m.toml:3:14: ") && no_file.contains("nowhere does not exist"), "{no_file}");
    assert!(no_variable.starts_with("merchants/m.toml:3:35: ") && no_variable.contains("is not set"), "{no_variable}");
    assert!(reference.starts_with("merchants/m.toml:3:69: ") && reference.contains("a reference"), "{reference}");
    assert!(empty.starts_with("merchants/m.toml:3:78: ") && empty.contains("must not be empty"), "{empty}");
}

#[test]
fn misspelt_references_are_refused() {
    let place = "merchants/m.toml:3:13";
    for near in ["Env:HOME", "ENV:HOME", "FILE:x", "File:x", " env:HOME", "env :HOME", "\\tfile:x", " FILE : x", "ENV:"]
    {
        with_secret(&format!("\"{near}\"")).one_problem(place, "looks like a reference");
        with_secret(&format!("[\"{near}\"]")).one_problem("merchants/m.toml:3:14", "looks like a reference");
    }
    let problems = with_secret("\"Env:HUSHEDTEXT\"").refused();
    assert!(
        !problems.rendered().contains("HUSHEDTEXT") && problems.rendered().contains("***"),
        "{}",
        problems.rendered()
    );
    for literal in ["env", "ENVY:x", "profile:x", "x env:HOME", "environment:x", ":file:x"] {
        assert_eq!(secrets(&with_secret(&format!("\"{literal}\""))), [literal.as_bytes()]);
    }
    let rules = Rules::bare().with("gateway.toml", "[store]\nkeys = [\"File:../store.key\"]");
    rules.one_problem("gateway.toml:2:9", "looks like a reference");
}

#[test]
fn unchecked_secrets_are_placeholders() {
    let rules = with_secret("[\"env:PAYBRIDGE_NO_SUCH_VARIABLE\", \"file:nowhere\"]");
    let loaded = load(&rules.path(), UnixMillis(0), None, LoadOptions { check_secrets: false }).unwrap();
    let key = loaded.api_key("k").unwrap();
    let first = key.api_key().v2_secrets.as_ref().unwrap().signing().expose().to_vec();
    assert!(first.len() == 32 && first != [0; 32], "a placeholder is random");
}

#[test]
fn database_urls_are_read_like_secrets() {
    let rules = Rules::small().with("gateway.toml", "[store]\nurl = \"file:../secrets/store.url\"\nconnections = 3\n");
    let write = |text: &str| {
        fs::create_dir_all(rules.0.path().join("secrets")).unwrap();
        fs::write(rules.0.path().join("secrets/store.url"), text).unwrap();
    };
    write("postgres://u:HUSHEDTEXT@h/db?sslmode=require\n");
    let StoreUrl::Postgres(url) = rules.load().gateway.store.url else { panic!("no database") };
    assert_eq!((url.to_string().as_str(), url.connections()), ("postgres://h:5432/db", 3));
    assert_eq!(url.config().get_password(), Some(&b"HUSHEDTEXT"[..]));
    write("postgres://u:HUSHEDTEXT@h/db?sslmode=x");
    rules.one_problem("gateway.toml:2:7", "store.url has an sslmode that is none of");
    assert!(!rules.refused().rendered().contains("HUSHEDTEXT"));
    fs::remove_file(rules.0.path().join("secrets/store.url")).unwrap();
    load(&rules.path(), UnixMillis(0), None, LoadOptions { check_secrets: false }).unwrap();
}

#[test]
fn secrets_never_appear_in_problems() {
    const SECRET: &str = "HUSHEDTEXT";
    let files = [
        ("merchants/m.toml", "[[api_keys]]\nkey = \"k\"\nv2_secret = { x = \"HUSHEDTEXT\" }"),
        ("merchants/m.toml", "[[api_keys]]\nkey = \"k\"\nv2_secert = \"HUSHEDTEXT\"\nv2_secret = \"HUSHEDTEXT\""),
        ("merchants/m.toml", "api_keys = [{ key = \"\", v2_secret = \"HUSHEDTEXT\", x_secret = \"HUSHEDTEXT\" }]"),
        ("merchants/m.toml", "[[api_keys]]\nkey = \"k\"\nv2_secret = \"HUSHEDTEXT\nx = 1"),
        ("merchants/m.toml", "[[api_keys]]\nkey = \"k\"\nv2_secret = HUSHEDTEXT"),
        ("merchants/m.toml", "[[api_keys]]\nkey = \"k\"\nv2_secert = HUSHEDTEXT"),
        ("merchants/m.toml", "[[api_keys]]\nv2_secret = [\n\"HUSHEDTEXT\"\n\"HUSHEDTEXT\"\n]"),
        ("merchants/m.toml", "[[api_keys]]\nv2_secret = \"\"\"\nHUSHEDTEXT\nHUSHEDTEXT\"\"\"\"\"\" x\n"),
        ("merchants/m.toml", "[[api_keys]]\nkey = \"k\"\nv2_secret = \"HUSHEDTEXT\"\nv2_secret = \"HUSHEDTEXT\""),
        ("merchants/m.toml", "name = \"A\"\"\"\"\n[[api_keys]]\nv2_secret = \"\"\nHUSHEDTEXT\nHUSHEDTEXT\"\"\"\n"),
        ("merchants/m.toml", "v2_secret = \"HUSHEDTEXT\""),
        ("merchants/m.toml", "api_keys = [\"HUSHEDTEXT\", \"HUSHEDTEXT\" x]"),
        ("gateway.toml", "[store]\nkeys = [\"HUSHEDTEXT\"]"),
        ("gateway.toml", "[store]\nurl = \"postgres://u:HUSHEDTEXT@h/db?sslmode=on\""),
        ("gateway.toml", "[store]\nurl = \"postgres://u:p@HUSHEDTEXT@h/db\""),
        ("gateway.toml", "[store]\nurl = \"postgres:x//u:HUSHEDTEXT@h/db\""),
        ("gateway.toml", "[store]\nurl = \"postgres://u@h/db?password=HUSHEDTEXT&x=1\""),
        ("gateway.toml", "[store]\nurl = \"Postgres://u:HUSHEDTEXT@h/db\""),
        ("gateway.toml", "[store]\nurl = [\"postgres://u:'HUSHEDTEXT@h/db\"]"),
        ("gateway.toml", "[store]\nurl = \"postgres://u:\"HUSHEDTEXT@h/db\""),
        ("gateway.toml", "store = { url = \"postgres://u:'HUSHEDTEXT@h/db\", kesy = 1 }"),
        ("gateway.toml", "[admin]\nlisten = \"x\"\ntoken = [5, \"HUSHEDTEXT\"]"),
        ("gateway.toml", "[pages]\nsecret = [[\"HUSHEDTEXT\"]]"),
        ("gateway.toml", "secret = \"HUSHEDTEXT\""),
        ("merchants/m.toml", "[[api_keys]]\nkey = \"k\"\nv2_secret = \"x\"\nv1_secret.x = \"HUSHEDTEXT\""),
        ("merchants/m.toml", "api_keys = { key = \"xk\", v2_secret = \"HUSHEDTEXT\" }"),
        ("merchants/m.toml", "api_keys.v2_secret=\"HUSHEDTEXT\""),
        ("merchants/m.toml", "api_keys.key = \"HUSHEDTEXT\""),
        ("merchants/m.toml", "api_keys = [[\n\"HUSHEDTEXT\", 5\n]]"),
        ("merchants/m.toml", "api_keys = 'HUSHEDTEXT'"),
        ("merchants/m.toml", "api_keys = \"\"\"HUSHEDTEXT\"\"\""),
        ("gateway.toml", "[server]\npublic_url = \"https://u:HUSHEDTEXT@h\""),
        ("gateway.toml", "[engine]\nurl = \"https://u:HUSHEDTEXT@h\""),
        ("gateway.toml", "[engine]\nurl = 'https://HUSHEDTEXT@h/x@y'"),
        ("gateway.toml", "[engine]\nurl = \"https://u:HUSHEDTEXT@h"),
        ("shops/s.toml", "[provider]\nkind = \"http\"\nurl = \"https://h/operationssecret = HUSHEDTEXT\""),
    ];
    for (name, text) in files {
        let problems = Rules::small().with(name, text).refused();
        assert!(!problems.to_string().contains(SECRET), "{text}\n{problems}");
        assert!(!problems.rendered().contains(SECRET), "{text}\n{}", problems.rendered());
        assert!(!format!("{problems:?}").contains(SECRET), "{text}");
    }
    let rules = with_secret("\"HUSHEDTEXT\"").load();
    assert!(!format!("{rules:?}").contains(SECRET));
    let store = "[store]\nurl = \"postgresql://u@h/db?password=HUSHEDTEXT&sslmode=require\"";
    let rules = Rules::small().with("gateway.toml", store).load();
    assert!(!format!("{rules:?} {:?}", rules.gateway).contains(SECRET));
}

#[test]
fn store_keys_are_32_bytes_in_base64() {
    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let keys = |rules: &Rules| rules.load().gateway.store.keys;
    let rules = Rules::bare();
    fs::create_dir(rules.0.path().join("secrets")).unwrap();
    fs::write(rules.0.path().join("secrets/store.key"), format!("{KEY}\n")).unwrap();
    assert_eq!(keys(&rules).keys[0].expose(), (0..32).collect::<Vec<u8>>());
    let rules = Rules::bare().with("gateway.toml", format!("[store]\nkeys = [\"{KEY}\"]"));
    assert!(keys(&rules).create_at.is_none() && keys(&rules).keys.len() == 1);
    let rules = Rules::bare().with("gateway.toml", format!("[store]\nkeys = [\"file:new\", \"{KEY}\"]"));
    rules.one_problem("gateway.toml:2:9", "does not exist");
}

/// A merchant's file with secrets of every form.
const MERCHANT_SECRETS: &str = "\
name = \"Acme\"

[[api_keys]]
key = \"acme-live\"
v1_secret = \"HUSHEDTEXT\"
v2_secret = [\"HUSHEDTEXT\", \"HUSHEDTEXT\"]
allowed_ips = [\"203.0.113.0/24\"]

[[api_keys]]
key = \"acme-other\"
v2_secret = \"\"\"
HUSHEDTEXT
HUSHEDTEXT\"\"\"
rate_limit = { per_second = 200, burst = 400 }

[shops.s]
payin = true
";

/// The files with secrets.
const FILES_WITH_SECRETS: [(&str, &str); 3] = [
    ("merchants/m.toml", MERCHANT_SECRETS),
    (
        "gateway.toml",
        "\
[server]
listen = \"127.0.0.1:0\"

[store]
url = \"postgres://u:HUSHEDTEXT@h/db\"
keys = [\"HUSHEDTEXT\", \"HUSHEDTEXT\"]

[admin]
listen = \"127.0.0.1:0\"
token = \"HUSHEDTEXT-HUSHEDTEXT\"

[[admin.users]]
name = \"ada\"
role = \"operator\"
token = [\"HUSHEDTEXT-HUSHEDTEXT\", 'HUSHEDTEXT-HUSHEDTEXT']

[pages]
secret = \"HUSHEDTEXT\"
",
    ),
    (
        "shops/s.toml",
        "\
currency = \"EUR\"
payment_method = \"card\"

[provider]
kind = \"http\"
url = \"https://provider.example/operations\"
secret = \"HUSHEDTEXT\"
timeout = \"10s\"
",
    ),
];

#[test]
fn what_is_typed_into_a_key_shows_no_secret() {
    for (from, to) in [
        ("v2_secret", "v2_sec\nret"),
        ("v2_secret", "v2_\n  secret"),
        ("v1_secret", "v1_secre\r\nt"),
        ("v1_secret", "v1_sec[ret"),
        ("v1_secret", "v1_sec,ret"),
        ("v1_secret", "v1_se{cret"),
    ] {
        let rules = Rules::small();
        rules.put(
            "merchants/m.toml",
            MERCHANT_SECRETS.replacen(from, to, 1).replace("\", \"HUSHEDTEXT\"]", "\", \"HUSHEDTEXT\""),
        );
        let problems = load(&rules.path(), UnixMillis(0), None, LoadOptions { check_secrets: false }).unwrap_err();
        let shown = problems.rendered() + &problems.to_string();
        assert!(!shown.contains("HUSHEDTEXT"), "{to:?}: {shown}");
    }
}

/// A typing mistake: at a place, bytes are left out and others are typed.
type TypingMistake = (Index, usize, &'static str);

fn typing_mistake() -> impl Strategy<Value = TypingMistake> {
    let typed = ["\"", "'", "=", "[", "]", "{", "}", ",", "\n", "#", " ", ".", "\"\"\"", "x", "é"];
    let left_out = prop_oneof![Just(usize::MAX), 1..3_usize];
    prop_oneof![
        (any::<Index>(), Just(0), proptest::sample::select(typed.to_vec())),
        (any::<Index>(), left_out, Just("")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Two typing mistakes never show a secret. (Except one that moves to a key without secrets.)
    #[test]
    fn no_broken_file_shows_a_secret(
        (name, text) in proptest::sample::select(&FILES_WITH_SECRETS),
        mistakes in proptest::collection::vec(typing_mistake(), 1..3),
    ) {
        let mut broken = text.as_bytes().to_vec();
        for (place, left_out, typed) in mistakes {
            let at = place.index(broken.len() + 1);
            broken.splice(at..at.saturating_add(left_out).min(broken.len()), typed.bytes());
        }
        let rules = Rules::small();
        rules.put(name, &broken);
        if let Err(problems) = load(&rules.path(), UnixMillis(0), None, LoadOptions { check_secrets: false }) {
            let shown = problems.rendered() + &problems.to_string();
            prop_assert!(!shown.contains("HUSHEDTEXT"), "{}\nof\n{}", shown, String::from_utf8_lossy(&broken));
        }
    }
}
