//! Warnings about rules that load, but would fail requests.

use super::*;

/// Asserts that rules in which `name` has this text load with exactly this warning at this place.
#[track_caller]
fn warns(name: &str, text: &str, place: &str, message: &str) {
    let warnings = Rules::small().with(name, text).warnings();
    assert!(warnings.len() == 1, "one warning expected: {warnings:#?}");
    assert!(warnings[0].starts_with(&format!("{name}:{place}: ")), "{place} expected: {}", warnings[0]);
    assert!(warnings[0].contains(message), "{message:?} expected: {}", warnings[0]);
}

#[track_caller]
fn warns_of_merchant(text: &str, place: &str, message: &str) {
    warns("merchants/m.toml", text, place, message);
}

#[test]
fn ordinary_rules_have_no_warnings() {
    let rules = Rules::small()
        .with("shops/off.toml", format!("active = false\n{SHOP}"))
        .with("shops/unused.json", "{\"type\": \"object\"}")
        .with("lists/unused.txt", "a")
        .with("dialects/unused.toml", "[replies]\npayin = '{\"id\": {{ transaction_id }}}'")
        .with("merchants/m.toml", format!("default_shop = \"s\"\n{MERCHANT}payin = false\n[shops.off]\n"));
    assert_eq!(rules.warnings(), Vec::<String>::new());
}

#[test]
fn merchants_whose_requests_are_all_refused() {
    let key = "[[api_keys]]\nkey = \"k\"\nv2_secret = \"two\"\n";
    let from = "allowed_ips = [\"::1\"]\n";
    warns_of_merchant("name = \"M\"\n[shops.s]\n", "1:1", "has no `[[api_keys]]`");
    warns_of_merchant("api_keys = []\n[shops.s]\n", "1:12", "has no `[[api_keys]]`");
    warns_of_merchant(&format!("{key}{from}"), "1:1", "has no `[shops.<code>]` table");
    warns_of_merchant(&format!("{key}{from}[shops]\n"), "5:1", "has no `[shops.<code>]` table");
    warns_of_merchant(&format!("{key}[shops.s]\n"), "2:7", "cannot be used from any address");
    warns_of_merchant(&format!("{key}allowed_ips = []\n[shops.s]\n"), "4:15", "cannot be used from any address");
}

#[test]
fn with_a_remote_engine_shops_are_optional() {
    let merchant = "[[api_keys]]\nkey = \"k\"\nv2_secret = \"x\"\nallowed_ips = [\"::1\"]\n";
    let rules = Rules::small().with("merchants/m.toml", merchant);
    assert_eq!(rules.warnings().len(), 1);
    let rules = rules.with("gateway.toml", "[engine]\nurl = \"https://v2.example\"\n");
    assert_eq!(rules.warnings(), Vec::<String>::new());
}

#[test]
fn security_gaps_of_gateways() {
    let gateway = |text: &str, place: &str, message: &str| warns("gateway.toml", text, place, message);
    gateway("[store]\nurl = \"postgres://u@h/db\"", "2:7", "`store.url` has sslmode=prefer, which is also the default");
    let reached = "[server]\npublic_url = \"https://pay.example\"\n[callbacks]\nallow_private_addresses";
    gateway(
        &format!("{reached} = true\n"),
        "4:27",
        "could make this gateway send requests to hosts in its own network",
    );
    for host in ["localhost:8443", "LOCALHOST:8443", "127.0.0.7:8443", "[::1]:8443"] {
        let local = format!("{reached} = true\n").replace("pay.example", host);
        assert_eq!(Rules::small().with("gateway.toml", local).warnings(), Vec::<String>::new(), "{host}");
    }
    let fine = format!("{reached} = false\n");
    assert_eq!(Rules::small().with("gateway.toml", fine).warnings(), Vec::<String>::new());
}

#[test]
fn files_that_are_not_read() {
    let warns_of = |name: &str, advice: &str| {
        let warnings = Rules::small().with(name, "this is no TOML").warnings();
        assert!(warnings.len() == 1, "{name}: {warnings:#?}");
        let expected = format!("{name}:1:1: the file is not read (");
        assert!(warnings[0].starts_with(&expected) && warnings[0].contains(advice), "{name}: {}", warnings[0]);
    };
    warns_of("merchants/my shop.toml", "files of `merchants` are named `<id>.toml`");
    for name in
        ["merchants/new.tml", "merchants/new", "merchants/new.TOML", "merchants/é.toml", "merchants/new.toml.txt"]
    {
        warns_of(name, "`<id>.toml`");
    }
    warns_of("shops/my card.json", "`<name>.json` for a schema");
    warns_of("dialects/x.json", "files of `dialects`");
    warns_of("lists/banks", "files of `lists` are named `<name>.txt`");
    warns_of("lists/m/banks.csv", "files of `lists` are named `<name>.txt`");
    warns_of("pages/en.txt", "`<language>.toml`");
    for name in ["gateways.toml", "merchant/new.toml", "merchants/old/new.toml", "shops/m/deeper/x.toml"] {
        warns_of(name, "rule files are `gateway.toml`, and those in");
    }
    for name in [
        "notes.md",
        "schemas/shop.schema.json",
        "merchants/README.md",
        "README.toml",
        "merchants/.new.toml",
        "merchants/.git/new.toml",
        ".git/new.toml",
        "merchants/m.toml~",
        "merchants/m.toml.bak",
        "merchants/4913",
        "lists/m/README",
    ] {
        assert_eq!(Rules::small().with(name, "x").warnings(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn files_that_are_not_read_are_bounded() {
    let rules = (0..120).fold(Rules::small(), |rules, number| rules.with(&format!("merchants/{number}.tml"), ""));
    let warnings = rules.warnings();
    assert_eq!(warnings.len(), 101, "{warnings:#?}");
    assert!(warnings.iter().any(|warning| warning.ends_with(": 20 more files are not read")), "{warnings:#?}");
}

#[test]
fn a_file_that_is_not_read_makes_the_rules_stale_when_it_comes_and_goes() {
    let rules = Rules::small();
    let (mut loader, first) = rules.loader();
    rules.put("merchants/new.tml", "");
    assert!(loader.changes(UnixMillis(0)).is_some());
    let second = loader.load(UnixMillis(0), Some(&first)).unwrap();
    assert_eq!((second.warnings.len(), &second.version), (1, &first.version));
    rules.put("merchants/new.tml", "x");
    assert!(loader.changes(UnixMillis(4_000_000_000_000)).is_none(), "its content does not matter");
}

#[test]
fn every_rule_file_may_begin_with_a_byte_order_mark() {
    let mark = |text: &str| format!("\u{feff}{text}");
    let listed = r#"{"type": "object", "properties": {"a": {"x-allowed-list": "l"}}}"#;
    let rules = Rules::bare()
        .with("gateway.toml", mark("[server]\n"))
        .with("shops/s.toml", mark(&format!("{SHOP}[payin]\nschema = \"s.json\"\n")))
        .with("shops/s.json", mark(listed))
        .with("lists/l.txt", mark("a\n"))
        .with("dialects/d.toml", mark("[replies]\n"))
        .with("pages/en.toml", mark("# x\n"))
        .with("merchants/m.toml", mark(MERCHANT));
    assert_eq!(rules.warnings(), Vec::<String>::new());
}

#[test]
fn links_that_lead_to_another_port_of_this_machine() {
    let server = |listen: &str, url: &str| format!("[server]\nlisten = \"{listen}\"\npublic_url = \"{url}\"\n");
    let message = "`server.listen` has port 9443, and `server.public_url` port 8443 of the same machine";
    warns("gateway.toml", &server("127.0.0.1:9443", "https://localhost:8443"), "2:10", message);
    warns("gateway.toml", "[server]\nlisten = \"[::1]:9443\"\n", "2:10", message);
    warns("gateway.toml", "[server]\npublic_url = \"https://127.0.0.1\"\n", "2:14", "`server.public_url` port 443");
    for (listen, url) in [
        ("127.0.0.1:9443", "https://localhost:9443/"),
        ("127.0.0.1:0", "https://localhost:9443"),
        ("127.0.0.1:9443", "https://pay.example"),
        ("0.0.0.0:8443", "https://localhost:9443"),
        ("127.0.0.1:443", "https://localhost"),
    ] {
        let rules = Rules::small().with("gateway.toml", server(listen, url));
        assert_eq!(rules.warnings(), Vec::<String>::new(), "{listen} {url}");
    }
}

#[test]
fn errors_suppress_warnings() {
    for (text, column) in [("[\"10.0.0.1/8\"]", 16), ("\"::1\"", 15)] {
        let merchant = MERCHANT.replace("[\"203.0.113.0/24\"]", text);
        let refused = Rules::small().with("merchants/m.toml", merchant).refused();
        let all: Vec<_> = refused.iter().map(|problem| problem.place.start).collect();
        assert_eq!(all, [(5, column)]);
    }
    for (right, wrong) in [("allowed_ips", "allowed_ip"), ("[[api_keys]]", "[[api_key]]"), ("[shops.s]", "[shop.s]")] {
        let refused = Rules::small().with("merchants/m.toml", MERCHANT.replace(right, wrong)).refused();
        assert_eq!(refused.len(), 1, "{refused}");
    }
    let merchant = MERCHANT.replace("[[api_keys]]", "[api_keys]");
    assert_eq!(Rules::small().with("merchants/m.toml", merchant).refused().len(), 1);
}

#[test]
fn an_unreadable_file_is_not_reported_as_missing() {
    let bytes = b"\xff";
    let merchant = format!("default_shop = \"s\"\n{MERCHANT}[v1]\ndialect = \"d\"\n");
    let number_of_problems = |rules: Rules| rules.refused().len();
    assert_eq!(
        number_of_problems(Rules::small().with("merchants/m.toml", &merchant).with("dialects/d.toml", bytes)),
        1
    );
    assert_eq!(number_of_problems(Rules::small().with("shops/s.toml", bytes)), 1);
    assert_eq!(number_of_problems(Rules::small().with("shops/s.toml", "currency = \"EUR\n")), 1);
    let shop = format!("{SHOP}[payin]\nschema = \"s.json\"\n");
    assert_eq!(number_of_problems(Rules::small().with("shops/s.toml", &shop).with("shops/s.json", bytes)), 1);
    let listed = r#"{"type": "object", "properties": {"a": {"x-allowed-list": "l"}}}"#;
    let rules = Rules::small().with("shops/s.toml", &shop).with("shops/s.json", listed);
    assert_eq!(number_of_problems(rules.with("lists/l.txt", bytes)), 1);
}

#[test]
fn retries_start_before_give_up_after() {
    let message = "give_up_after` must not be shorter than";
    let gateway = |text: &str, place: &str| {
        Rules::small().with("gateway.toml", text).one_problem(&format!("gateway.toml:{place}"), message);
    };
    gateway("[callbacks]\ngive_up_after = \"4s\"\n", "2:17");
    gateway("[callbacks]\nfirst_retry = \"4d\"\nmax_retry = \"5d\"\n", "2:15");
    Rules::small().with("gateway.toml", "[callbacks]\ngive_up_after = \"5s\"\n").load();
    let shop = "currency = \"EUR\"\n[provider]\nkind = \"http\"\nurl = \"https://bank.example\"\nsecret = \"x\"\n";
    let rules = Rules::small().with("shops/s.toml", format!("{shop}give_up_after = \"999ms\"\n"));
    rules.one_problem("shops/s.toml:6:17", "`provider.give_up_after` must not be shorter than");
}

#[test]
fn callbacks_fail_before_they_are_forgotten() {
    let gateway = |text: &str, place: &str, message: &str| {
        Rules::small().with("gateway.toml", text).one_problem(&format!("gateway.toml:{place}"), message);
    };
    let message = "`callbacks.forget_after` must not be shorter than";
    gateway("[callbacks]\ngive_up_after = \"8d\"\nforget_after = \"7d\"\n", "3:16", message);
    gateway("[callbacks]\ngive_up_after = \"91d\"\n", "2:17", message);
    gateway("[callbacks]\nforget_after = \"6d\"\n", "2:16", r#"must be from "7d" to "3650d""#);
    Rules::small().with("gateway.toml", "[callbacks]\nforget_after = \"7d\"\n").load();
}

#[test]
fn required_members_are_named_in_properties() {
    let schema = |direction: &str, schema: &str| {
        let shop = format!("{SHOP}[{direction}]\nschema = \"s.json\"\n");
        Rules::small().with("shops/s.toml", shop).with("shops/s.json", schema)
    };
    for (direction, text, column, message) in [
        ("payin", r#"{"type":"object","required":["b"]}"#, 30, "`b` is required, but `properties`"),
        ("payin", r#"{"type":"object","required":["success_url"]}"#, 30, "`success_url` is reserved by v2"),
        ("payout", r#"{"type":"object","required":["account_number"]}"#, 30, "`account_number` is reserved"),
        ("payin", r#"{"type":"object","allOf":[{"required":["b"]}]}"#, 40, "`b` is required"),
        ("payin", r#"{"type":"object","anyOf":[{"required":["fail_url"]}]}"#, 40, "`fail_url` is reserved"),
        ("payin", r#"{"type":"object","if":{},"then":{"required":["b"]}}"#, 46, "`b` is required"),
        ("payin", r#"{"type":"object","dependentRequired":{"a":["b"]}}"#, 44, "`b` is required"),
        ("payin", r#"{"type":"object","dependentSchemas":{"a":{"required":["b"]}}}"#, 55, "`b` is required"),
        ("payin", r##"{"type":"object","$ref":"#/$defs/x","$defs":{"x":{"required":["b"]}}}"##, 63, "`b` is required"),
    ] {
        schema(direction, text).one_problem(&format!("shops/s.json:1:{column}"), message);
    }
    for text in [
        r#"{"type":"object","required":["merchant_user_ip"]}"#,
        r#"{"type":"object","allOf":[{"required":["merchant_user_ip"]}]}"#,
        r#"{"type":"object","properties":{"a":{"type":"object","required":["method"]}}}"#,
        r#"{"type":"object","not":{"required":["b"]}}"#,
        r#"{"type":"object","if":{"required":["b"]},"then":{}}"#,
        r#"{"type":"object","properties":{"a":{}},"anyOf":[{"required":["a"]},{"properties":{"b":{}},"required":["b"]}]}"#,
    ] {
        schema("payin", text).load();
    }
}
