//! Checks `diff` against the compiled rules: it reports a change exactly when the compiled rules differ.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, Value, json};

use super::*;
use crate::domain::{Direction, Secrets};
use crate::rules::schema::given;
use crate::rules::{AddressSet, DirectionRules, Effect, Group, ReadRules, diff};
use crate::store_settings::StoreUrl;

/// A file, one of its keys, and the key's values; the first value is the default, if there is one.
type Choices = &'static [(&'static str, &'static str, &'static [&'static str])];

const GATEWAY: &str = "gateway.toml";
const SHOP_FILE: &str = "shops/s.toml";
const MERCHANT_FILE: &str = "merchants/m.toml";
const DIALECT: &str = "dialects/d.toml";

/// Every key of every file, except those whose values depend on others. An empty value omits the key.
const CHOICES: Choices = &[
    (
        GATEWAY,
        "server.listen",
        &["", "\"127.0.0.1:8443\"", "\"127.0.0.1:1\"", "\"[::1]:1\"", "\"[0:0:0:0:0:0:0:1]:1\""],
    ),
    (GATEWAY, "server.public_url", &["", "\"https://localhost:8443/\"", "\"https://a.example\""]),
    (GATEWAY, "server.shutdown_grace", &["", "\"30000ms\"", "\"1m\"", "\"60s\""]),
    (GATEWAY, "server.drain_delay", &["", "\"0ms\"", "\"1s\""]),
    (GATEWAY, "tls.certificate", &["", "\"../certs/server.pem\"", "\"../certs/x/../server.pem\"", "\"x.pem\""]),
    (GATEWAY, "tls.key", &["", "\"./../certs/server.key\"", "\"x.key\""]),
    (GATEWAY, "tls.generate", &["", "false", "true"]),
    (
        GATEWAY,
        "admin.listen",
        &["", "\"127.0.0.1:9090\"", "\"127.0.0.1:2\"", "\"unix:a.sock\"", "\"unix:x/../a.sock\""],
    ),
    (GATEWAY, "admin.tls", &["", "false", "true"]),
    (GATEWAY, "admin.plain", &["", "false", "true"]),
    (GATEWAY, "admin.read_only", &["", "false", "true"]),
    (GATEWAY, "admin.second_operator", &["", "false"]),
    (
        GATEWAY,
        "admin.users",
        &[
            "",
            "[]",
            "[{ name = \"ada\", role = \"viewer\", token = \"ada-hush-of-16-or-more\" }]",
            "[{ token = [\"ada-hush-of-16-or-more\"], name = \"ada\", role = \"viewer\" }]",
            "[{ name = \"ada\", role = \"operator\", token = \"ada-hush-of-16-or-more\" }]",
            "[{ name = \"ada\", role = \"viewer\", token = \"new-hush-of-16-or-more\" }]",
            "[{ name = \"bob\", role = \"viewer\", token = \"ada-hush-of-16-or-more\" }]",
        ],
    ),
    (GATEWAY, "admin.hosts", &["", "[]", "[\"a.example\"]", "[\"A.example\"]", "[\"a.example\", \"b.example\"]"]),
    (
        GATEWAY,
        "admin.token",
        &[
            "",
            "\"one-of-16-or-more\"",
            "[\"one-of-16-or-more\"]",
            "[\"one-of-16-or-more\", \"two-of-16-or-more\"]",
            "[\"two-of-16-or-more\", \"one-of-16-or-more\"]",
            "\"two-of-16-or-more\"",
        ],
    ),
    (
        GATEWAY,
        "store.url",
        &[
            "",
            "\"sqlite:../data/paybridge.db\"",
            "\"sqlite:x.db\"",
            "\"postgres://u:hush@h/db\"",
            "\"postgresql://u:hush@h:5432/db?sslmode=prefer\"",
            "\"postgres://u:other@h/db\"",
            "\"postgres://u@h/db?sslmode=require\"",
        ],
    ),
    (GATEWAY, "store.connections", &["", "16", "2"]),
    (
        GATEWAY,
        "store.keys",
        &[
            "",
            "\"file:../secrets/other.key\"",
            "[\"MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDA=\"]",
            "[\"MDEwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDA=\"]",
        ],
    ),
    (GATEWAY, "engine.url", &["", "\"embedded\"", "\"https://v2.example.com\"", "\"https://v2.example.com/\""]),
    (GATEWAY, "engine.timeout", &["", "\"10s\"", "\"20s\""]),
    (GATEWAY, "engine.callback_signature.header", &["", "\"x-signature\"", "\"X-Sign\""]),
    (GATEWAY, "engine.callback_signature.encoding", &["", "\"hex\"", "\"base64\""]),
    (GATEWAY, "engine.callback_signature.payload", &["", "\"{body}\"", "\"{body}|\""]),
    (GATEWAY, "pages.secret", &["", "\"one\"", "\"two\"", "[\"two\", \"one\"]"]),
    (GATEWAY, "pages.link_lifetime", &["", "\"30m\"", "\"1h\""]),
    (GATEWAY, "pages.return_lifetime", &["", "\"7d\"", "\"168h\"", "\"1d\""]),
    (GATEWAY, "callbacks.timeout", &["", "\"10s\"", "\"11s\""]),
    (GATEWAY, "callbacks.first_retry", &["", "\"5s\"", "\"6s\""]),
    (GATEWAY, "callbacks.max_retry", &["", "\"1h\"", "\"60m\"", "\"2h\""]),
    (GATEWAY, "callbacks.give_up_after", &["", "\"3d\"", "\"4d\""]),
    (GATEWAY, "callbacks.forget_after", &["", "\"90d\"", "\"2160h\"", "\"30d\""]),
    (GATEWAY, "callbacks.allow_private_addresses", &["", "false", "true"]),
    (GATEWAY, "limits.body", &["", "\"64KiB\"", "65536", "0x10000", "\"1MiB\""]),
    (GATEWAY, "limits.head", &["", "\"16KiB\"", "20000"]),
    (GATEWAY, "limits.head_timeout", &["", "\"10s\"", "\"11s\""]),
    (GATEWAY, "limits.body_timeout", &["", "\"10s\"", "\"11s\""]),
    (GATEWAY, "limits.idle_timeout", &["", "\"75s\"", "\"76s\""]),
    (GATEWAY, "limits.connections", &["", "10_000", "5"]),
    (
        GATEWAY,
        "limits.unauthenticated_per_ip",
        &["", "{ per_second = 50, burst = 100 }", "{ per_second = 50 }", "{ burst = 50, per_second = 50 }"],
    ),
    (
        GATEWAY,
        "limits.pages_per_ip",
        &["", "{ per_second = 50, burst = 200 }", "{ per_second = 200 }", "{ burst = 200, per_second = 200 }"],
    ),
    (GATEWAY, "pages.name", &["", "\"A\"", "'A'", "\"B\""]),
    (GATEWAY, "pages.color", &["", "\"#0b5fff\"", "\"#000000\""]),
    (GATEWAY, "pages.logo", &["", "\"one.svg\"", "\"two.svg\""]),
    (GATEWAY, "pages.language", &["", "\"en\"", "\"EN\"", "\"it\"", "\"IT\""]),
    (GATEWAY, "clients.proxy_protocol", &["", "false", "true"]),
    (GATEWAY, "clients.trusted_proxies", &["", "[]", "[\"10.0.0.0/8\"]", "[\"10.0.0.7\"]"]),
    (SHOP_FILE, "currency", &["\"EUR\"", "\"eur\"", "\"USD\""]),
    (SHOP_FILE, "active", &["", "true", "false"]),
    (SHOP_FILE, "name", &["", "\"s\"", "\"S\"", "\"Cards in euro\""]),
    (SHOP_FILE, "payment_method", &["", "\"card\"", "\"bank\""]),
    (SHOP_FILE, "payin.schema", &["", "\"a.json\"", "\"./a.json\"", "\"b.json\"", "\"c.json\""]),
    (SHOP_FILE, "payin.browser_return", &["", "true", "false"]),
    (SHOP_FILE, "payout.schema", &["", "\"a.json\"", "\"b.json\""]),
    (SHOP_FILE, "payout.account", &["", "\"card\"", "\"mobile\"", "{ pattern = \"^a$\" }", "{ pattern = '^a$' }"]),
    (SHOP_FILE, "provider.delay", &["", "\"1s\"", "\"1000ms\"", "\"2s\""]),
    (
        SHOP_FILE,
        "reconcile",
        &[
            "",
            "{ key = \"order_id\", columns = { key = \"a\", amount = \"b\" } }",
            "{ columns = { amount = \"b\", key = \"a\" }, key = \"order_id\", delimiter = \",\", encoding = \"utf-8\" }",
            "{ key = \"order_id\", columns = { key = \"a\", amount = \"b\" }, skip = { column = \"a\", values = [\"T\"] } }",
        ],
    ),
    (SHOP_FILE, "checks.refused_addresses", &["", "[]", "[\"10.0.0.0/25\", \"10.0.0.128/25\"]", "[\"10.0.0.0/24\"]"]),
    (SHOP_FILE, "checks.refused_accounts", &["", "[]", "[1, 2]", "[2, 1, 1]", "[3]"]),
    (SHOP_FILE, "checks.payin.operations_per_day", &["", "5", "6"]),
    (SHOP_FILE, "checks.payin.amount_per_day", &["", "\"10\"", "\"10.00\"", "\"11\""]),
    (SHOP_FILE, "checks.payout.operations_per_day", &["", "5", "6"]),
    (SHOP_FILE, "checks.payout.amount_per_day", &["", "\"10\"", "\"010.0\"", "\"11\""]),
    (MERCHANT_FILE, "name", &["", "\"m\"", "\"M\""]),
    (MERCHANT_FILE, "default_shop", &["", "\"s\"", "\"t\""]),
    (MERCHANT_FILE, "shops.t", &["{}", "{ payin = true }", "{ payout = true, payin = true }", "{ payin = false }"]),
    (
        MERCHANT_FILE,
        "shops.s.v2",
        &[
            "true",
            "{}",
            "{ payin = true }",
            "false",
            "{ payin = false, payout = false }",
            "{ payout = false }",
            "{ payin = false }",
        ],
    ),
    (MERCHANT_FILE, "api_keys.0.key", &["\"k\"", "'k'", "\"l\""]),
    (MERCHANT_FILE, "api_keys.0.v1_secret", &["", "\"one\"", "[\"one\"]", "[\"one\", \"two\"]", "\"two\""]),
    (MERCHANT_FILE, "api_keys.0.v2_secret", &["\"one\"", "[\"one\", \"two\"]", "[\"two\", \"one\"]", "\"three\""]),
    (
        MERCHANT_FILE,
        "api_keys.0.allowed_ips",
        &[
            "",
            "[]",
            "[\"10.0.0.7\"]",
            "[\"10.0.0.7/32\"]",
            "[\"::ffff:10.0.0.7\"]",
            "[\"0.0.0.0/0\", \"::/0\"]",
            "[\"10.0.0.0/25\", \"10.0.0.128/25\"]",
            "[\"10.0.0.0/24\"]",
        ],
    ),
    (
        MERCHANT_FILE,
        "api_keys.0.rate_limit",
        &["", "{ per_second = 5 }", "{ per_second = 5, burst = 5 }", "{ per_second = 6 }"],
    ),
    (MERCHANT_FILE, "api_keys.0.shops", &["", "[]", "[\"s\", \"t\"]", "[\"t\", \"s\"]", "[\"t\"]"]),
    (MERCHANT_FILE, "v1.dialect", &["", "\"v1\"", "\"d\""]),
    (MERCHANT_FILE, "v1.mode", &["", "\"translate\""]),
    (MERCHANT_FILE, "v1.callbacks", &["", "\"v1\"", "\"v2\""]),
    (MERCHANT_FILE, "v1.callback_url", &["", "\"https://a.example/?a=1\"", "\"https://a.example/?a=2\""]),
    (MERCHANT_FILE, "v1.return_url", &["", "\"https://a.example\"", "\"https://b.example\""]),
    (MERCHANT_FILE, "v1.non_numeric_user_id", &["", "\"reject\"", "\"omit\""]),
    (MERCHANT_FILE, "v1.unknown_fields", &["", "\"reject\"", "\"ignore\""]),
    (MERCHANT_FILE, "v1.allow_http_callbacks", &["", "false", "true"]),
    (MERCHANT_FILE, "v1.deprecated_since", &["", "\"2026-06-30\"", "2026-06-30", "2026-07-01"]),
    (MERCHANT_FILE, "v1.sunset", &["", "\"2027-06-30\"", "2027-06-30", "2027-07-01"]),
    (MERCHANT_FILE, "v1.migration_url", &["", "\"https://a.example\"", "\"https://b.example\""]),
    (MERCHANT_FILE, "balance.enforce", &["", "false", "true"]),
    (MERCHANT_FILE, "balance.opening", &["", "{}", "{ EUR = \"10\" }", "{ eur = \"10.00\" }", "{ USD = \"10\" }"]),
    (DIALECT, "signature.api_key", &["", "\"X-API-KEY\"", "\"X-Key\""]),
    (DIALECT, "signature.signature", &["", "\"x-signature\"", "\"X-Sign\""]),
    (DIALECT, "signature.timestamp", &["", "\"x-timestamp\"", "\"X-Time\""]),
    (DIALECT, "signature.timestamp_format", &["", "\"unix\"", "\"unix-ms\"", "\"rfc3339\""]),
    (DIALECT, "signature.window", &["", "\"5m\"", "\"300s\"", "\"1m\""]),
    (DIALECT, "signature.payload", &["", "\"{timestamp}.{method}.{path}.{body}\"", "\"{body}\""]),
    (DIALECT, "signature.algorithm", &["", "\"hmac-sha256\"", "\"hmac-sha512\""]),
    (DIALECT, "signature.encoding", &["", "\"hex\"", "\"base64\""]),
    (DIALECT, "routes.payin", &["\"POST /x/a\"", "'POST /x/a'", "\"POST /x/b\""]),
    (DIALECT, "routes.payout", &["\"POST /x/c\"", "\"POST /x/d\""]),
    (DIALECT, "routes.payin_status", &["\"GET /x/e\"", "\"GET /x/f\""]),
    (DIALECT, "routes.payout_status", &["\"GET /x/g\"", "\"GET /x/h\""]),
    (DIALECT, "routes.balance", &["\"GET /x/i\"", "\"GET /x/j\""]),
    (DIALECT, "routes.transactions", &["\"GET /x/k\"", "\"GET /x/l\""]),
    (DIALECT, "statuses.PENDING", &["", "\"PENDING\"", "\"new\""]),
    (DIALECT, "statuses.SUCCESS", &["", "\"SUCCESS\"", "\"done\""]),
    (DIALECT, "statuses.FAILED", &["", "\"FAILED\"", "\"lost\""]),
    (DIALECT, "replies.payin", &["", "'{}'", "\"{}\"", "'[]'"]),
    (DIALECT, "replies.payout", &["", "'{}'", "'[]'"]),
    (DIALECT, "replies.status", &["", "'{}'", "'[]'"]),
    (DIALECT, "replies.balance", &["", "'{}'", "'[]'"]),
    (DIALECT, "replies.transactions", &["", "'{}'", "'[]'"]),
    (DIALECT, "replies.error", &["", "'{}'", "'[]'"]),
    (DIALECT, "replies.callback", &["", "'{}'", "'[]'"]),
    (DIALECT, "requests.empty_list_is_object", &["", "false", "true"]),
];

/// Keys without effect on the rule set of an embedded engine, whose changes are reported nevertheless. A different
/// secret file counts as a different key, without its content being read.
const WITHOUT_EFFECT: &[&str] = &["engine.timeout", "engine.callback_signature"];

const SCHEMAS: [(&str, &str); 3] = [
    ("shops/a.json", r#"{"properties":{"a":{"type":"string","x-allowed-list":"l"}}}"#),
    ("shops/b.json", r#"{"title":"b","required":[],"properties":{"a":{"x-allowed-list":"l","type":"string"}}}"#),
    ("shops/c.json", r#"{"properties":{"a":{"type":"integer"},"b":{"default":1}},"required":["a"]}"#),
];

fn rules_with_choices(choices: &[usize]) -> Rules {
    let mut files: BTreeMap<&str, (String, String)> = BTreeMap::new();
    for ((file, key, values), choice) in CHOICES.iter().zip(choices) {
        let value = values[*choice % values.len()];
        let (top, api_key) = files.entry(file).or_default();
        match key.strip_prefix("api_keys.0.") {
            _ if value.is_empty() => {}
            Some(key) => writeln!(api_key, "{key} = {value}").unwrap(),
            None => writeln!(top, "{key} = {value}").unwrap(),
        }
    }
    let rules = Rules::bare()
        .with("pages/it.toml", "")
        .with("one.svg", "<svg/>")
        .with("two.svg", "<svg></svg>")
        .with("shops/t.toml", SHOP)
        .with("lists/l.txt", "x\ny\n")
        .with("lists/m/l.txt", "y\nz\n");
    for (name, schema) in SCHEMAS {
        rules.put(name, schema);
    }
    for (file, (top, api_key)) in files {
        let rest = match file {
            SHOP_FILE => "provider.kind = \"sandbox\"\n".to_owned(),
            MERCHANT_FILE => format!("shops.s.payin = true\n[[api_keys]]\n{api_key}"),
            _ => String::new(),
        };
        rules.put(file, top + &rest);
    }
    rules
}

fn store(url: &StoreUrl) -> String {
    match url {
        StoreUrl::Sqlite(path) => format!("{path:?}"),
        StoreUrl::Postgres(url) => {
            let config = url.config();
            format!("{config:?} {:?} {:?} {:?}", config.get_password(), url.tls(), url.roots())
        }
    }
}

/// Returns everything in the rule set as text, in a fixed order, including secrets.
fn rule_set_text(rules: &Rules, set: &RuleSet) -> String {
    let mut text = String::new();
    let gateway = &set.gateway;
    let tokens =
        (secrets(gateway.admin.token.as_ref().map(|user| &user.token)), secrets(gateway.pages.secret.as_ref()));
    let keys: Vec<_> = gateway.store.keys.keys.iter().map(|key| key.expose().to_vec()).collect();
    let keys = (store(&gateway.store.url), gateway.store.connections, &gateway.store.keys.create_at, keys);
    let proxies = addresses(&AddressSet::new(gateway.clients.trusted_proxies.iter().copied()));
    let lifetimes = (gateway.pages.link_lifetime, gateway.pages.return_lifetime);
    let admin = &gateway.admin;
    writeln!(text, "{:?} {:?} {:?}", gateway.server, gateway.tls, admin.listen).unwrap();
    writeln!(text, "{:?} {} {} {}", admin.hosts, admin.tls, admin.plain, admin.read_only).unwrap();
    for user in &admin.users {
        writeln!(text, "{} {:?} {:?}", user.name, user.role, secrets(Some(&user.token))).unwrap();
    }
    writeln!(text, "{tokens:?} {keys:?} {:?} {lifetimes:?} {:?}", gateway.engine, gateway.callbacks).unwrap();
    writeln!(text, "{:?} {:?} {proxies}", gateway.limits, gateway.clients.proxy_protocol).unwrap();
    writeln!(text, "{:?} {:?}", gateway.pages.language, set.pages.language("").tag).unwrap();
    writeln!(text, "{:?}", gateway.pages.brand).unwrap();
    let shop = &set.shops["s"];
    writeln!(text, "{:?}", shop.name).unwrap();
    let directions = [direction_rules(&shop.payin), direction_rules(&shop.payout)];
    let mut refused: Vec<_> = shop.checks.refused_accounts.iter().map(|account| account.0).collect();
    refused.sort_unstable();
    let limits = (shop.checks.daily(Direction::Payin), shop.checks.daily(Direction::Payout));
    writeln!(text, "{:?} {:?} {:?} {directions:?} {:?}", shop.currency, shop.active, shop.payment_method, shop.account)
        .unwrap();
    let from = addresses(&shop.checks.refused_addresses);
    writeln!(text, "{refused:?} {from} {limits:?} {:?} {:?}", shop.provider, shop.reconcile).unwrap();
    let merchant = &set.merchants["m"];
    writeln!(text, "{:?} {:?}", merchant.name, merchant.default_shop).unwrap();
    for code in ["s", "t"] {
        let access = &merchant.shops[code];
        writeln!(text, "{:?} {:?} {:?}", access.payin, access.payout, access.v2).unwrap();
    }
    for key in &merchant.api_keys {
        let mut shops: Option<Vec<_>> = key.shops.as_ref().map(|shops| shops.iter().collect());
        if let Some(shops) = &mut shops {
            shops.sort();
        }
        let verifies = (secrets(key.v1_secrets.as_ref()), secrets(key.v2_secrets.as_ref()));
        let rate = key.rate_limit.as_ref().map(|limit| limit.quota);
        writeln!(text, "{} {verifies:?} {} {rate:?} {shops:?}", key.key, addresses(&key.allowed_ips)).unwrap();
    }
    let v1 = &merchant.v1;
    writeln!(
        text,
        "{:?} {:?} {:?}",
        v1.dialect.name,
        v1.callbacks,
        v1.callback_url.as_ref().map(crate::domain::CallbackUrl::as_str)
    )
    .unwrap();
    writeln!(text, "{:?}", v1.return_url.as_ref().map(crate::domain::BrowserUrl::as_str)).unwrap();
    writeln!(
        text,
        "{:?} {:?} {:?} {:?}",
        v1.non_numeric_user_id, v1.unknown_fields, v1.allow_http_callbacks, v1.notices
    )
    .unwrap();
    writeln!(text, "{:?}", merchant.balance).unwrap();
    let dialect = &set.dialects["d"];
    let replies = ["payin", "payout", "status", "balance", "transactions", "error", "callback"];
    let template =
        |name: &&str| dialect.replies.environment.get_template(name).map(|found| found.source().to_owned()).ok();
    let replies: Vec<_> = replies.iter().map(template).collect();
    writeln!(text, "{:?} {:?} {:?} {replies:?}", dialect.signature, dialect.routes, dialect.statuses).unwrap();
    writeln!(text, "{:?} {}", dialect.empty_list_is_object, set.v1_routes.contains_key("/api/v1/payin")).unwrap();
    text.replace(rules.path().parent().unwrap().to_str().unwrap(), "HERE")
}

fn secrets(secrets: Option<&Secrets>) -> Option<Vec<Vec<u8>>> {
    Some(secrets?.verifying().map(|secret| secret.expose().to_vec()).collect())
}

fn addresses(set: &AddressSet) -> String {
    let some = ["10.0.0.7", "10.0.0.8", "10.0.0.200", "10.0.1.1", "192.0.2.1", "::1", "2001:db8::1"];
    some.iter().map(|address| if set.contains(address.parse().unwrap()) { '1' } else { '0' }).collect()
}

fn direction_rules(rules: &DirectionRules) -> String {
    let members =
        [json!({}), json!({"a": "x"}), json!({"a": "y"}), json!({"a": "z"}), json!({"a": 1}), json!({"b": 2})];
    let validated = |members: &Value| rules.schema.as_ref().map(|schema| validated(schema, "m", members));
    format!("{:?} {:?}", rules.browser_return, members.iter().map(validated).collect::<Vec<_>>())
}

/// Returns the members that a schema keeps and adds; `None` if it refuses them.
fn validated(schema: &crate::rules::FieldsSchema, merchant: &str, members: &Value) -> Option<Map<String, Value>> {
    let mut members = members.as_object().unwrap().clone();
    members.retain(|name, _| schema.kept().iter().any(|kept| **kept == **name));
    let added = schema.check(&merchant_id(merchant), given(&members)).ok()?;
    members.extend(serde_json::from_str::<Map<String, Value>>(&added).unwrap());
    Some(members)
}

fn read(rules: &Rules) -> Option<ReadRules> {
    ReadRules::read(&rules.path(), UnixMillis(0)).ok()
}

/// Valid rules: as `diff` reads them, and everything in the compiled ones.
struct ValidRules {
    read: ReadRules,
    compiled: String,
    _files: Rules,
}

impl ValidRules {
    /// Rejects a case whose rules are not valid.
    fn of(choices: &[usize]) -> Result<Self, TestCaseError> {
        let files = rules_with_choices(choices);
        let read = read(&files).ok_or_else(|| TestCaseError::reject("not valid"))?;
        Ok(Self { read, compiled: rule_set_text(&files, &files.load()), _files: files })
    }
}

/// Checks that the change of one key of `old`, which has these choices, is reported exactly if it changes the compiled
/// rules.
fn check_one_key(old: &ValidRules, choices: &[usize], at: usize, other: usize) -> Result<(), TestCaseError> {
    let mut changed = choices.to_vec();
    changed[at] = other;
    let new = ValidRules::of(&changed)?;
    let (one, two) = (&old.read, &new.read);
    let found = diff(one, two);
    let same = old.compiled == new.compiled;
    let (_, key, values) = CHOICES[at];
    let value = |choice: usize| values[choice % values.len()];
    let what = || format!("{key}: {} -> {}: {found:#?}", value(choices[at]), value(other));
    if WITHOUT_EFFECT.iter().any(|known| key.starts_with(known)) {
        prop_assert!(same || !found.is_empty(), "{}", what());
    } else {
        prop_assert_eq!(same, found.is_empty(), "{}", what());
    }
    prop_assert_eq!(found.is_empty(), diff(two, one).is_empty());
    prop_assert!(diff(two, two).is_empty());
    Ok(())
}

#[test]
fn a_database_is_reported_without_its_password() {
    let changes = |old: &str, new: &str| {
        let of = |url: &str| read(&Rules::small().with("gateway.toml", format!("[store]\nurl = \"{url}\""))).unwrap();
        let changes: Vec<String> = diff(&of(old), &of(new))
            .iter()
            .flat_map(|group| &group.changes)
            .map(|change| format!("{:?}: {}", change.effect, change.what))
            .collect();
        changes.join("\n")
    };
    let file = "sqlite:../data/paybridge.db";
    let database = "postgres://pay:hush@one,two:5433/bank?sslmode=require";
    assert_eq!(
        changes(file, database),
        format!(
            "Refuses: [store] url: {file} -> postgres://one:5432,two:5433/bank: operations in the old store are not found"
        )
    );
    let other = "Neither: [store] url: postgres://one:5432,two:5433/bank as before, but its user, password or \
                 parameters changed";
    assert_eq!(changes(database, &database.replace("hush", "HUSH")), other);
    assert_eq!(changes(database, &database.replace("require", "verify-full")), other);
    assert_eq!(changes(database, &database.replace("postgres:", "postgresql:")), "");
}

/// Changes each key alone, from its default to every other value and spelling.
#[test]
fn each_key_is_reported_exactly_when_it_changes_the_rules() {
    let defaults = vec![0; CHOICES.len()];
    let old = ValidRules::of(&defaults).unwrap();
    for (at, (_, key, values)) in CHOICES.iter().enumerate() {
        for other in 1..values.len() {
            check_one_key(&old, &defaults, at, other).unwrap_or_else(|why| panic!("{key}: {}: {why}", values[other]));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_global_rejects: 1000, ..ProptestConfig::default() })]

    /// Changes one key while all others have random values.
    #[test]
    fn a_random_change_is_reported_exactly_when_it_changes_the_rules(
        choices in proptest::collection::vec(0..8_usize, CHOICES.len()),
        at in any::<Index>(),
        other in 0..8_usize,
    ) {
        check_one_key(&ValidRules::of(&choices)?, &choices, at.index(CHOICES.len()), other)?;
    }
}

/// Generates the schema of a member.
fn member() -> impl Strategy<Value = Value> {
    proptest::sample::select(vec![
        json!({}),
        json!({"type": "string"}),
        json!({"type": ["string", "integer"]}),
        json!({"type": "number", "minimum": 2}),
        json!({"maximum": 5}),
        json!({"exclusiveMinimum": 1, "maximum": 7}),
        json!({"enum": ["x", 3]}),
        json!({"enum": ["x", "yy"]}),
        json!({"const": 3}),
        json!({"minLength": 2}),
        json!({"maxLength": 1, "pattern": "x"}),
        json!({"x-allowed-list": "l"}),
        json!({"$ref": "#/$defs/d"}),
        json!({"anyOf": [{"type": "string"}, {"minimum": 3}]}),
        json!({"anyOf": [{"type": "string"}]}),
        json!({"not": {"type": "string"}}),
        json!({"allOf": [{"minimum": 2}, {"type": "integer"}]}),
        json!({"if": {"type": "string"}, "then": {"minLength": 2}}),
        json!({"type": "array", "items": {"type": "integer"}}),
        json!({"type": "array", "items": {"minimum": 4}, "maxItems": 1}),
        json!({"prefixItems": [{"type": "string"}]}),
        json!({"properties": {"i": {"type": "integer"}}, "required": ["i"]}),
        json!({"properties": {"i": {"type": "string"}}, "additionalProperties": false}),
        json!({"properties": {"j": {}}, "additionalProperties": {"type": "integer"}}),
        json!({"patternProperties": {"i": {"type": "integer"}}, "additionalProperties": false}),
        json!({"properties": {"i": {}}, "patternProperties": {"i": {"type": "string"}}}),
        json!({"properties": {"i": {}}, "unevaluatedProperties": false}),
        json!({"anyOf": [{"properties": {"j": {}}}, {"type": "string"}], "unevaluatedProperties": false}),
        json!({"contains": {"type": "integer"}}),
        json!({"contains": {"type": "integer"}, "minContains": 0}),
        json!({"contains": {"type": "integer"}, "unevaluatedItems": false}),
        json!({"items": {"type": "string"}, "unevaluatedItems": false}),
        json!({"type": "integer", "default": 3}),
        json!({"default": "x"}),
        json!(false),
    ])
}

fn schema() -> impl Strategy<Value = Value> {
    let members = proptest::collection::btree_map("[ab]", member(), 0..3);
    let rest = proptest::sample::select(vec![
        json!({}),
        json!({"minProperties": 1}),
        json!({"maxProperties": 1}),
        json!({"anyOf": [{"properties": {"c": {"type": "integer"}}}, {"required": ["a"]}]}),
        json!({"allOf": [{"properties": {"c": {"type": "string"}}}]}),
        json!({"additionalProperties": false}),
        json!({"anyOf": [{"properties": {"b": {}}}, {"properties": {"c": {}}}], "additionalProperties": false}),
        json!({"patternProperties": {"a": {"type": "string"}}}),
        json!({"dependentRequired": {"a": ["b"]}}),
    ]);
    let definition =
        proptest::sample::select(vec![json!({"type": "string"}), json!({"type": "integer", "minimum": 3})]);
    (members, rest, definition, any::<[bool; 2]>()).prop_map(|(members, mut schema, definition, required)| {
        let names: Vec<&String> = members.keys().collect();
        let required: Vec<&&String> =
            names.iter().zip(required).filter(|(_, required)| *required).map(|(n, _)| n).collect();
        schema["required"] = json!(required);
        schema["properties"] = json!(members);
        schema["$defs"] = json!({ "d": definition });
        schema
    })
}

fn with_schema(schema: &Value) -> Rules {
    Rules::bare()
        .with("shops/s.toml", format!("{SHOP}[payin]\nschema = \"s.json\"\n"))
        .with("shops/s.json", schema.to_string())
        .with("lists/l.txt", "x\n3\n")
}

/// Returns values of members.
fn values() -> Vec<Value> {
    let values = [json!("x"), json!("yy"), json!(1), json!(3), json!(6), json!(9), json!(2.5), json!(null), json!([])];
    let more =
        [json!([5]), json!(["x"]), json!([1, 2]), json!({}), json!({"i": 1}), json!({"i": "x"}), json!({"j": "x"})];
    values.into_iter().chain(more).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_global_rejects: 2000, ..ProptestConfig::default() })]

    #[test]
    fn new_refusals_of_a_schema_are_reported(
        one in schema(),
        other in schema(),
        picks in proptest::collection::vec(any::<[Index; 3]>(), 20),
    ) {
        let (old, new) = (with_schema(&one), with_schema(&other));
        let (Some(before), Some(after)) = (read(&old), read(&new)) else { return Err(TestCaseError::reject("not valid")) };
        let groups = diff(&before, &after);
        let changes: Vec<_> = groups.iter().flat_map(|group: &Group| &group.changes).collect();
        let (old, new) = (old.load(), new.load());
        let of = |set: &RuleSet, members: &Value| validated(set.shops["s"].payin.schema.as_ref().unwrap(), "m", members);
        for pick in picks {
            let mut members = json!({});
            for (name, index) in ["a", "b", "c"].into_iter().zip(pick) {
                if let Some(value) = index.get(&values().into_iter().map(Some).chain([None, None]).collect::<Vec<_>>()) {
                    members[name] = value.clone();
                }
            }
            match (of(&old, &members), of(&new, &members)) {
                (Some(_), None) => {
                    prop_assert!(
                        changes.iter().any(|change| change.effect == Effect::Refuses),
                        "{} refused now: {:#?}", members, changes
                    );
                }
                (before, after) => prop_assert!(before == after || !changes.is_empty(), "{}", members),
            }
        }
    }
}
