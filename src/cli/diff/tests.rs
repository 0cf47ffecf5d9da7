use std::collections::BTreeMap;
use std::fs;

use tempfile::TempDir;

use super::*;

const CARD: &str = r#"currency = "EUR"
payment_method = "card"
[payin]
schema = "card-eur.payin.json"
[payout]
schema = "card-eur.payout.json"
[provider]
kind = "sandbox"
"#;

const KES: &str = "currency = \"KES\"\n[provider]\nkind = \"sandbox\"\n";

const PAYIN: &str = r#"{
  "type": "object",
  "properties": {
    "bank_code": { "type": "string", "x-allowed-list": "banks" },
    "language": { "type": "string", "enum": ["de", "en", "es"], "default": "en" },
    "phone": { "type": "string", "maxLength": 20 }
  }
}"#;

const PAYOUT: &str = r#"{ "type": "object", "properties": { "holder": { "type": "string" }, "note": {} } }"#;

const ACME: &str = r#"name = "Acme Ltd"
default_shop = "card-eur"
[[api_keys]]
key = "acme-live"
v1_secret = "env:ACME_V1"
v2_secret = "acme-hush-2026"
allowed_ips = ["203.0.113.0/24", "198.51.100.7"]
rate_limit = { per_second = 200, burst = 400 }
[[api_keys]]
key = "acme-old"
v2_secret = "acme-hush-old"
allowed_ips = ["203.0.113.0/24"]
[shops.card-eur]
[shops.mobile-kes]
"#;

const BETA: &str = r#"[[api_keys]]
key = "beta-live"
v1_secret = "beta-hush"
v2_secret = "beta-hush-2"
allowed_ips = ["2001:db8::/32"]
[shops.card-eur]
"#;

/// A small rule set, to be changed by edits.
fn world() -> BTreeMap<&'static str, String> {
    let files = [
        ("gateway.toml", ""),
        ("merchants/acme.toml", ACME),
        ("merchants/beta.toml", BETA),
        ("shops/card-eur.toml", CARD),
        ("shops/mobile-kes.toml", KES),
        ("shops/card-eur.payin.json", PAYIN),
        ("shops/card-eur.payout.json", PAYOUT),
        ("lists/banks.txt", "alpha\nbeta\n"),
    ];
    files.into_iter().map(|(name, text)| (name, text.to_owned())).collect()
}

fn written(files: &BTreeMap<&'static str, String>) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join("rules").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

/// Replaces a text that occurs at least once.
fn edited(
    mut files: BTreeMap<&'static str, String>,
    edits: &[(&'static str, &str, &str)],
) -> BTreeMap<&'static str, String> {
    for (name, from, to) in edits {
        let text = files.entry(name).or_default();
        assert!(text.contains(from), "{name} has {from:?}");
        *text = text.replacen(from, to, 1);
    }
    files
}

struct CommandOutput {
    out: String,
    err: String,
    outcome: ExitOutcome,
}

fn compared(
    old: &BTreeMap<&'static str, String>,
    new: &BTreeMap<&'static str, String>,
    format: Format,
    exit_code: bool,
) -> CommandOutput {
    let (one, other) = (written(old), written(new));
    let args = Diff { old: one.path().join("rules"), new: other.path().join("rules"), format, exit_code };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let outcome = run(&args, &mut out, &mut err);
    let shown = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        text.replace(one.path().to_str().unwrap(), "A").replace(other.path().to_str().unwrap(), "B")
    };
    let output = CommandOutput { out: shown(out), err: shown(err), outcome };
    assert!(output.outcome.is_ok() || exit_code || output.err.contains("error: "), "{}", output.err);
    assert!(
        !output.out.contains("hush") && !output.err.contains("hush"),
        "a secret is shown: {} {}",
        output.out,
        output.err
    );
    output
}

/// The changes that edits of the small rule set cause.
#[track_caller]
fn changes_of(edits: &[(&'static str, &str, &str)]) -> String {
    let output = compared(&world(), &edited(world(), edits), Format::Text, false);
    assert!(output.outcome.is_ok(), "{}", output.err);
    output.out
}

#[test]
fn keys_and_addresses() {
    insta::assert_snapshot!(changes_of(&[
        ("merchants/acme.toml", "\"198.51.100.7\"", "\"192.0.2.0/24\""),
        ("merchants/acme.toml", "per_second = 200, burst = 400", "per_second = 100, burst = 400"),
        ("merchants/acme.toml", "\"acme-hush-2026\"", "[\"acme-hush-2026\", \"env:ACME_V2_NEXT\"]"),
        ("merchants/acme.toml", "\"env:ACME_V1\"", "\"env:ACME_V1_NEXT\""),
        ("merchants/acme.toml", "key = \"acme-old\"", "key = \"acme-2027\"\nv1_secret = \"hush\""),
        ("merchants/beta.toml", "v1_secret = \"beta-hush\"\n", "shops = []\n"),
        ("merchants/beta.toml", "[\"2001:db8::/32\"]", "[]"),
    ]));
}

#[test]
fn a_key_that_moves() {
    let key = "[[api_keys]]\nkey = \"acme-old\"\nv2_secret = \"acme-hush-old\"\nallowed_ips = [\"203.0.113.0/24\"]\n";
    let moved = key.replace("/24", "/25");
    let edits = [("merchants/acme.toml", key, ""), ("merchants/beta.toml", "[shops.card-eur]", "[shops.card-eur]")];
    let mut new = edited(world(), &edits);
    new.insert("merchants/beta.toml", format!("{moved}{BETA}"));
    insta::assert_snapshot!(compared(&world(), &new, Format::Text, false).out);
}

#[test]
fn merchants_come_and_go() {
    let mut new = world();
    let acme = new.remove("merchants/acme.toml").unwrap();
    new.insert("merchants/gamma.toml", acme.replace("acme-old", "gamma"));
    insta::assert_snapshot!(compared(&world(), &new, Format::Text, false).out);
}

#[test]
fn shops_of_a_merchant() {
    insta::assert_snapshot!(changes_of(&[
        ("merchants/acme.toml", "default_shop = \"card-eur\"", "default_shop = \"mobile-kes\""),
        ("merchants/acme.toml", "[shops.card-eur]", "[shops.card-eur]\npayout = false"),
        ("merchants/beta.toml", "[shops.card-eur]", "[shops.mobile-kes]\npayin = false"),
    ]));
}

#[test]
fn v1_rules_and_balances() {
    let v1 = "[shops.mobile-kes]\n[v1]\nunknown_fields = \"ignore\"\nnon_numeric_user_id = \"omit\"\n\
        callback_url = \"https://acme.example/cb?token=hush\"\nreturn_url = \"https://acme.example/done\"\n\
        sunset = 2027-06-30\nallow_http_callbacks = true\n[balance]\nenforce = true\nopening = { EUR = \"10\" }\n";
    let with_v1 = edited(world(), &[("merchants/acme.toml", "[shops.mobile-kes]\n", v1)]);
    let output = compared(&world(), &with_v1, Format::Text, false);
    assert!(output.outcome.is_ok(), "{}", output.err);
    let there = output.out;
    let back = compared(&with_v1, &world(), Format::Text, false).out;
    insta::assert_snapshot!(format!("{there}\nand back:\n{back}"));
}

#[test]
fn v2_of_a_key_and_a_shop() {
    let v1 = "v1_secret = \"beta-hush\"\n";
    let off = [
        ("merchants/acme.toml", "[shops.card-eur]", "[shops.card-eur]\nv2 = { payout = false }"),
        ("merchants/beta.toml", v1, "v1_secret = \"beta-hush\"\nv2 = false\n"),
        ("merchants/beta.toml", "[shops.card-eur]", "[shops.card-eur]\nv2 = false"),
    ];
    let (on, off) = (world(), edited(world(), &off));
    for (old, new, effect, change) in [(&on, &off, '!', "true -> false"), (&off, &on, '+', "false -> true")] {
        let shown = compared(old, new, Format::Text, false).out;
        let changes: Vec<&str> = shown.lines().filter(|line| line.contains(change)).map(str::trim_start).collect();
        assert_eq!(changes.len(), 4, "{shown}");
        assert!(changes.iter().all(|line| line.starts_with(effect)), "{shown}");
        for (name, setting, count) in
            [("key", "v2", 1), ("shop card-eur", "v2.payin", 1), ("shop card-eur", "v2.payout", 2)]
        {
            let names_it =
                |line: &&&str| line.contains(name) && line.contains(&format!(": {setting}: {change}: whether "));
            assert_eq!(changes.iter().filter(names_it).count(), count, "{name} {setting}: {shown}");
        }
    }
}

#[test]
fn shops() {
    let http = "kind = \"http\"\nurl = \"https://provider.example/operations?key=hush\"\nsecret = \"hush\"";
    insta::assert_snapshot!(changes_of(&[
        ("shops/card-eur.toml", "payment_method = \"card\"", "payment_method = \"card\"\nactive = false"),
        ("shops/card-eur.toml", "kind = \"sandbox\"", http),
        ("shops/mobile-kes.toml", "currency = \"KES\"", "currency = \"USD\"\npayment_method = \"mobile\""),
        (
            "shops/mobile-kes.toml",
            "kind = \"sandbox\"",
            "kind = \"sandbox\"\ndelay = \"2s\"\n[checks]\n\
            refused_addresses = [\"192.0.2.0/24\"]\nrefused_accounts = [7, 8]\n[checks.payin]\namount_per_day = \"10\""
        ),
    ]));
}

#[test]
fn shops_come_and_go() {
    let mut new = edited(world(), &[("merchants/acme.toml", "[shops.mobile-kes]\n", "")]);
    let kes = new.remove("shops/mobile-kes.toml").unwrap();
    new.insert("shops/mobile-tzs.toml", kes.replace("KES", "TZS"));
    insta::assert_snapshot!(compared(&world(), &new, Format::Text, false).out);
}

#[test]
fn schemas_and_lists() {
    insta::assert_snapshot!(changes_of(&[
        ("shops/card-eur.payin.json", "\"type\": \"object\",", "\"type\": \"object\", \"required\": [\"bank_code\"],"),
        (
            "shops/card-eur.payin.json",
            "[\"de\", \"en\", \"es\"], \"default\": \"en\"",
            "[\"en\", \"fr\"], \"default\": \"fr\""
        ),
        ("shops/card-eur.payin.json", "\"maxLength\": 20", "\"maxLength\": 15, \"pattern\": \"^[+]\""),
        ("shops/card-eur.payout.json", ", \"note\": {}", ", \"email\": { \"format\": \"email\" }, \"extra\": {}"),
        ("lists/banks.txt", "alpha\n", "# closed: alpha\ngamma\n"),
    ]));
}

#[test]
fn lists_of_several_shops_and_of_a_merchant() {
    let old = edited(
        world(),
        &[("shops/mobile-kes.toml", "[provider]", "[payin]\nschema = \"card-eur.payin.json\"\n[provider]")],
    );
    let mut new = edited(old.clone(), &[("lists/banks.txt", "alpha\n", "gamma\n")]);
    new.insert("lists/acme/banks.txt", "beta\ndelta\n".to_owned());
    new.insert("lists/unused.txt", "x\n".to_owned());
    insta::assert_snapshot!(compared(&old, &new, Format::Text, false).out);
}

#[test]
fn dialects() {
    let dialect = "[signature]\napi_key = \"X-Key\"\n[routes]\npayin = \"POST /x/payin\"\npayout = \"POST /x/payout\"\n\
        payin_status = \"GET /x/payin\"\npayout_status = \"GET /x/payout\"\nbalance = \"GET /x/balance\"\n\
        transactions = \"GET /x/list\"\n";
    let mut old = edited(
        world(),
        &[("merchants/acme.toml", "[shops.mobile-kes]\n", "[shops.mobile-kes]\n[v1]\ndialect = \"x\"\n")],
    );
    old.insert("dialects/x.toml", dialect.to_owned());
    let mut new = edited(
        old.clone(),
        &[
            (
                "dialects/x.toml",
                "api_key = \"X-Key\"",
                "api_key = \"x-key\"\nwindow = \"1m\"\nalgorithm = \"hmac-sha512\"",
            ),
            ("dialects/x.toml", "/x/balance", "/x/money"),
        ],
    );
    let more = "[statuses]\nPENDING = \"waiting\"\n[replies]\npayout = '{\"id\": {{ transaction_id }}}'\n[requests]\n\
        empty_list_is_object = true\n";
    let text = new.entry("dialects/x.toml").or_default();
    text.push_str(more);
    let there = compared(&old, &new, Format::Text, false).out;
    let gone = compared(&old, &world(), Format::Text, false).out;
    insta::assert_snapshot!(format!("{there}\nwithout it:\n{gone}"));
}

#[test]
fn the_gateway() {
    let gateway = "[server]\nlisten = \"0.0.0.0:8443\"\n[limits]\nbody = \"32KiB\"\nconnections = 20000\n[pages]\n\
        secret = \"hush\"\n[clients]\ntrusted_proxies = [\"10.0.0.0/8\"]\n[tls]\ngenerate = false\n[callbacks]\n\
        timeout = \"20s\"\nallow_private_addresses = true\n";
    let mut new = world();
    new.insert("gateway.toml", gateway.to_owned());
    insta::assert_snapshot!(compared(&world(), &new, Format::Text, false).out);
}

#[test]
fn the_document() {
    let edits = [
        ("gateway.toml", "", "[server]\ndrain_delay = \"1s\"\n"),
        ("merchants/acme.toml", ", \"198.51.100.7\"", ""),
        ("shops/card-eur.payin.json", "\"maxLength\": 20", "\"maxLength\": 15"),
    ];
    let output = compared(&world(), &edited(world(), &edits), Format::Json, false);
    serde_json::from_str::<Value>(&output.out).unwrap();
    insta::assert_snapshot!(output.out);
}

#[test]
fn equivalent_spellings_are_no_change() {
    let edits = [
        (
            "gateway.toml",
            "",
            "# nothing\n[limits]\nbody = 65_536\nidle_timeout = \"75000ms\"\n[engine]\nurl = \"embedded\"\n",
        ),
        (
            "merchants/acme.toml",
            "[\"203.0.113.0/24\", \"198.51.100.7\"]",
            "[\"198.51.100.7/32\", \"203.0.113.128/25\", \"203.0.113.0/25\"]",
        ),
        ("merchants/acme.toml", "[shops.mobile-kes]\n", "[shops.mobile-kes]\npayin = true\n[v1]\ndialect = \"v1\"\n"),
        ("merchants/beta.toml", "[[api_keys]]", "name = \"beta\"\n[[api_keys]]"),
        (
            "shops/card-eur.toml",
            "schema = \"card-eur.payout.json\"",
            "schema = \"./card-eur.payout.json\"\naccount = \"card\"",
        ),
        ("shops/card-eur.toml", "\"EUR\"", "\"eur\""),
        (
            "shops/card-eur.payin.json",
            "{\n  \"type\": \"object\",",
            "{\"title\": \"x\", \"type\": \"object\", \"required\": [],",
        ),
        ("lists/banks.txt", "alpha\nbeta\n", "# banks\n  beta\nalpha\nalpha\n"),
    ];
    let mut new = edited(world(), &edits);
    new.insert("dialects/v1.toml", "[signature]\napi_key = \"x-api-key\"\n".to_owned());
    for (format, exit_code) in [(Format::Text, false), (Format::Text, true)] {
        let output = compared(&world(), &new, format, exit_code);
        assert_eq!((output.out.as_str(), output.err.as_str()), ("", "no changes: both directories mean the same\n"));
        assert!(output.outcome.is_ok());
    }
    assert_eq!(compared(&world(), &new, Format::Json, false).out, "[]\n");
}

#[test]
fn exit_codes() {
    let new = edited(world(), &[("shops/card-eur.toml", "\"EUR\"", "\"USD\"")]);
    assert!(compared(&world(), &new, Format::Text, false).outcome.is_ok());
    assert!(matches!(compared(&world(), &new, Format::Text, true).outcome, Err(CliError::Reported)));
    assert!(matches!(compared(&world(), &new, Format::Json, true).outcome, Err(CliError::Reported)));
}

#[test]
fn problems_of_both_directories_are_shown() {
    let old = edited(world(), &[("shops/card-eur.toml", "currency", "curency")]);
    let new = edited(world(), &[("merchants/beta.toml", "[shops.card-eur]", "[shops.card-usd]")]);
    let output = compared(&old, &new, Format::Text, false);
    assert!(matches!(output.outcome, Err(CliError::Reported)) && output.out.is_empty());
    for problem in ["A/rules/shops/card-eur.toml:1:1: ", "B/rules/merchants/beta.toml:"] {
        assert!(output.err.contains(problem), "{problem}: {}", output.err);
    }
    assert!(compared(&old, &world(), Format::Text, false).out.is_empty());
}

/// The output that docs/rules.md shows is what is printed.
#[test]
fn the_documented_example_is_printed_word_for_word() {
    let old_key = "key = \"acme-old\"\nv2_secret = \"acme-hush-old\"";
    let new_key = "key = \"acme-2027\"\nv1_secret = \"env:V1\"\nv2_secret = \"env:V2\"";
    let old = edited(world(), &[("shops/card-eur.payin.json", "\"type\": \"object\",", "\"required\": [],")]);
    let new = edited(
        old.clone(),
        &[
            ("gateway.toml", "", "[server]\ndrain_delay = \"5s\"\n[limits]\nbody = \"32KiB\"\n"),
            ("merchants/acme.toml", "\"198.51.100.7\"", "\"192.0.2.0/24\""),
            ("merchants/acme.toml", "\"acme-hush-2026\"", "[\"acme-hush-2026\", \"env:ACME_V2_NEXT\"]"),
            ("merchants/acme.toml", old_key, new_key),
            ("merchants/acme.toml", "default_shop = \"card-eur\"", "default_shop = \"mobile-kes\""),
            ("merchants/acme.toml", "[shops.card-eur]", "[shops.card-eur]\npayout = false"),
            ("shops/card-eur.payin.json", "\"required\": []", "\"required\": [\"bank_code\"]"),
            ("shops/card-eur.payout.json", ", \"note\": {}", ""),
            ("lists/banks.txt", "alpha\n", ""),
        ],
    );
    let output = compared(&old, &new, Format::Text, false).out;
    let page = include_str!("../../../docs/rules.md");
    assert!(page.contains(&format!("```\n{output}```\n")), "{output}");
}
