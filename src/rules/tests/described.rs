//! The JSON Schemas of rule files agree with the reader, and are the ones shipped in `rules/schemas`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::*;
use crate::rules::{FileKind, file_schema};

static VALIDATORS: LazyLock<[Validator; 5]> =
    LazyLock::new(|| FileKind::ALL.map(|kind| jsonschema::validator_for(&file_schema(kind)).unwrap()));

/// Converts a TOML value to JSON as editors do: dates become strings, and floats that are not finite become null.
pub(in crate::rules) fn to_json(value: toml::Value) -> Value {
    match value {
        toml::Value::Datetime(date) => Value::String(date.to_string()),
        toml::Value::Array(elements) => elements.into_iter().map(to_json).collect(),
        toml::Value::Table(keys) => keys.into_iter().map(|(key, value)| (key, to_json(value))).collect(),
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(flag) => flag.into(),
    }
}

/// Returns why the schema of its kind refuses a file; `None` if it accepts it.
fn refusal(kind: FileKind, text: &str) -> Option<String> {
    let document = to_json(toml::Value::Table(text.parse().unwrap()));
    let error = VALIDATORS[kind as usize].validate(&document).err()?;
    Some(format!("{}: {error}", error.instance_path()))
}

fn kind_of(directory: &str) -> Option<FileKind> {
    if directory == "pages" {
        return Some(FileKind::PageTexts);
    }
    FileKind::ALL.into_iter().find(|kind| format!("{}s", kind.as_str()) == directory)
}

/// Returns the rule files in TOML of a rules directory.
fn files(directory: &Path) -> Vec<(FileKind, std::path::PathBuf)> {
    let mut found = vec![(FileKind::Gateway, directory.join("gateway.toml"))];
    for below in ["dialects", "merchants", "pages", "shops"] {
        let Ok(entries) = fs::read_dir(directory.join(below)) else { continue };
        let paths = entries.map(|entry| entry.unwrap().path());
        let counts = |path: &Path| {
            let stem = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".toml"));
            stem.is_some_and(|stem| MerchantId::new(stem).is_ok())
        };
        found.extend(paths.filter(|path| counts(path)).map(|path| (kind_of(below).unwrap(), path)));
    }
    found
}

/// Asserts that files that load fit their schemas. The tests of this module call it for every directory that they load.
#[track_caller]
pub(super) fn assert_fits(directory: &Path) {
    for (kind, path) in files(directory) {
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(refusal(kind, text.trim_start_matches('\u{feff}')), None, "{} loads", path.display());
    }
}

fn shipped() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("rules")
}

#[test]
fn the_shipped_files_name_their_schemas_and_fit_them() {
    assert_fits(&shipped());
    assert!(files(&shipped()).len() > 4);
    for (kind, path) in files(&shipped()) {
        let text = fs::read_to_string(&path).unwrap();
        let named = text.lines().next().and_then(|line| line.strip_prefix("#:schema ")).unwrap();
        let schema = fs::read_to_string(path.parent().unwrap().join(named)).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&schema).unwrap(), file_schema(kind), "{}", path.display());
    }
}

/// A file of each kind with every table; for shops, one for each kind of provider.
const WHOLE: [(FileKind, &str); 6] = [
    (FileKind::Gateway, WHOLE_GATEWAY),
    (FileKind::Merchant, WHOLE_MERCHANT),
    (FileKind::Shop, WHOLE_SHOP),
    (FileKind::Shop, WHOLE_HTTP_SHOP),
    (FileKind::Dialect, WHOLE_DIALECT),
    (FileKind::PageTexts, WHOLE_TEXTS),
];

const WHOLE_GATEWAY: &str = r#"
server = { listen = "127.0.0.1:1", public_url = "https://pay.example", shutdown_grace = "1s", drain_delay = "1s" }
tls = { certificate = "../a.pem", key = "../a.key", generate = false }
admin = { listen = "127.0.0.1:2", token = "token-of-16-or-more", tls = true, plain = true, hosts = ["console.example"], read_only = true, second_operator = true, users = [{ name = "ada", role = "operator", token = "ada-of-16-or-more" }, { name = "bob", role = "operator", token = "bob-of-16-or-more" }] }
store = { url = "sqlite:../x.db", connections = 9, keys = ["file:../x.key"] }
pages = { secret = ["p", "q"], link_lifetime = "1m", return_lifetime = "1d", language = "en", name = "P", color = '#0b5fff', logo = "logo.svg" }
[engine]
url = "https://v2.example"
trust = []
timeout = "2s"
callback_signature = { header = "X-Mac", payload = "{body}", encoding = "hex" }
[legacy]
url = "https://v1.example"
trust = []
timeout = "2s"
reply_limit = "64KiB"
paths = ["/api/v1/refunds"]
client_address_headers = ["X-Real-IP"]
[callbacks]
timeout = "1s"
first_retry = "1s"
max_retry = "1m"
give_up_after = "1d"
forget_after = "8d"
allow_private_addresses = true
trust = []
[limits]
body = 65536
head = "16KiB"
head_timeout = "1s"
body_timeout = "1s"
idle_timeout = "1s"
connections = 10
unauthenticated_per_ip = { per_second = 1, burst = 2 }
pages_per_ip = { per_second = 1, burst = 2 }
[clients]
proxy_protocol = true
trusted_proxies = ["10.0.0.0/8"]
"#;

const WHOLE_MERCHANT: &str = r#"
name = "M"
default_shop = "s"
[[api_keys]]
key = "k"
v1_secret = "one"
v2_secret = ["two", "env:THREE"]
v2 = true
allowed_ips = ["203.0.113.0/24", "::1"]
rate_limit = { per_second = 1, burst = 2 }
shops = ["s"]
[shops.s]
payin = true
payout = true
v2 = { payin = true, payout = false }
[v1]
dialect = "v1"
mode = "translate"
percent = { payin = 12.5, payout = 0 }
callbacks = "v1"
callback_url = "https://m.example/cb"
return_url = "https://m.example/"
non_numeric_user_id = "omit"
unknown_fields = "ignore"
allow_http_callbacks = true
deprecated_since = 2026-06-30
sunset = "2027-06-30"
migration_url = "https://docs.example/"
[balance]
enforce = true
opening = { EUR = "10.00" }
"#;

const WHOLE_SHOP: &str = r#"
name = "Cards"
currency = "EUR"
active = true
payment_method = "card"
[payin]
schema = "any.json"
browser_return = true
[payout]
schema = "./any.json"
account = { pattern = "^[0-9]+$" }
[checks]
refused_addresses = ["10.0.0.0/8"]
refused_accounts = [1, -1]
payin = { operations_per_day = 1, amount_per_day = "1.00" }
payout = { operations_per_day = 1, amount_per_day = "1" }
[provider]
kind = "sandbox"
delay = "0s"
expected_within = "1d"
[reconcile]
key = "order_id"
columns = { key = "a", amount = "b", currency = "c", status = "d", merchant = "e", direction = "f" }
statuses = { SUCCESS = ["paid"], FAILED = ["declined"], PENDING = ["open"] }
delimiter = "\t"
decimal = ","
encoding = "latin1"
skip = { column = "a", values = ["Total", ""] }
"#;

const WHOLE_HTTP_SHOP: &str = r#"
currency = "EUR"
payout = { account = "mobile" }
[provider]
kind = "http"
url = "https://provider.example/"
secret = "s"
trust = []
timeout = "1s"
first_retry = "1s"
max_retry = "1m"
give_up_after = "1d"
expected_within = { payin = "2d", payout = "1d" }
"#;

const WHOLE_DIALECT: &str = r#"
requests = { empty_list_is_object = true }
[signature]
api_key = "X-A"
signature = "X-B"
timestamp = "X-C"
timestamp_format = "rfc3339"
window = "1m"
payload = "{body}"
algorithm = "hmac-sha512"
encoding = "base64"
[routes]
payin = "POST /a"
payout = "POST /b"
payin_status = "GET /a"
payout_status = "GET /b"
balance = "GET /c"
transactions = "GET /d"
[statuses]
PENDING = "a"
SUCCESS = "b"
FAILED = "c"
[replies]
payin = "1"
payout = "1"
status = "1"
balance = "1"
transactions = "1"
error = "1"
callback = "1"
"#;

const WHOLE_TEXTS: &str = r#"
direction = "rtl"
decimal = ","
group = ""
labels = { merchant = "a", amount = "a", method = "a", order = "a", reference = "a" }
actions = { return = "a", check = "a", pay = "a", decline = "a" }
preparing = { title = "a", text = "a\nb", hint = "a" }
instructions = { title = "a", text = "a", hint = "a" }
stopped = { title = "a", text = "a", hint = "a" }
sandbox = { title = "a", text = "a", hint = "a" }
success = { title = "a", text = "a", hint = "a" }
failed = { title = "a", text = "a", hint = "a" }
refused = { title = "a", text = "a", hint = "a" }
busy = { title = "a", text = "a", hint = "a" }
error = { title = "a", text = "a", hint = "a" }
"#;

/// Returns rules in which the file of this kind has this text.
fn rules_with(kind: FileKind, text: &str) -> Rules {
    let rules = Rules::small().with("shops/any.json", "{}").with("logo.svg", "<svg/>");
    let name = match kind {
        FileKind::Gateway => "gateway.toml",
        FileKind::Merchant => "merchants/m.toml",
        FileKind::Shop => "shops/s.toml",
        FileKind::Dialect => "dialects/v1.toml",
        FileKind::PageTexts => "pages/pt-BR.toml",
    };
    rules.with(name, text)
}

fn loads(kind: FileKind, text: &str) -> Result<RuleSet, Problems> {
    load(&rules_with(kind, text).path(), UnixMillis(0), None, LoadOptions { check_secrets: false })
}

/// Returns every key of a schema by its path; `*` stands for names that the operator chooses and for elements of lists.
pub(super) fn keys(kind: FileKind) -> BTreeMap<String, Value> {
    fn below(path: &str, schema: &Value, keys: &mut BTreeMap<String, Value>) {
        for (name, key) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}{name}");
            below(&format!("{path}."), key, keys);
            keys.insert(path, key.clone());
        }
        for nested in ["additionalProperties", "items"].into_iter().filter_map(|word| schema.get(word)) {
            below(&format!("{path}*."), nested, keys);
        }
        for choice in schema["anyOf"].as_array().into_iter().flatten() {
            below(path, choice, keys);
        }
    }
    let mut keys = BTreeMap::new();
    below("", &file_schema(kind), &mut keys);
    keys
}

/// Returns the path of every key of a file.
fn key_paths(text: &str) -> Vec<String> {
    fn below(path: &str, value: &Value, keys: &mut Vec<String>) {
        let free = ["shops.", "balance.opening."].contains(&path);
        for (name, value) in value.as_object().into_iter().flatten() {
            let path = format!("{path}{}", if free { "*" } else { name });
            below(&format!("{path}."), value, keys);
            keys.push(path);
        }
        for value in value.as_array().into_iter().flatten() {
            below(&format!("{path}*."), value, keys);
        }
    }
    let mut keys = Vec::new();
    below("", &to_json(toml::Value::Table(text.parse().unwrap())), &mut keys);
    keys
}

#[test]
fn complete_files_load_and_have_every_key() {
    let mut to_json = Vec::new();
    for (kind, text) in WHOLE {
        loads(kind, text).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(refusal(kind, text), None);
        to_json.extend(key_paths(text).into_iter().map(|path| (kind.as_str(), path)));
    }
    for kind in FileKind::ALL {
        for path in keys(kind).keys() {
            let not_loadable = path == "tls.client_ca";
            assert!(not_loadable || to_json.contains(&(kind.as_str(), path.clone())), "{}: {path}", kind.as_str());
        }
    }
}

#[test]
fn every_key_has_a_description_and_valid_examples() {
    for kind in FileKind::ALL {
        let schema = file_schema(kind);
        assert!(jsonschema::draft202012::meta::is_valid(&schema));
        assert!(schema["title"].is_string() && schema["description"].is_string() && schema["$id"].is_null());
        for (path, key) in keys(kind) {
            let about = key["description"].as_str().unwrap_or_default();
            assert!(about.len() > 8 && !about.contains("[`"), "{}: {path}: {about:?}", kind.as_str());
            assert!(key["type"] != json!("object") || !key["additionalProperties"].is_null(), "{path} accepts any key");
            let validator = jsonschema::validator_for(&key).unwrap();
            for shown in key["examples"].as_array().into_iter().flatten().chain(key.get("default")) {
                assert!(validator.is_valid(shown), "{}: {path}: {shown}", kind.as_str());
            }
        }
    }
}

/// Returns a document in which every key with a default is written out.
fn filled(schema: &Value, key_paths: &Value) -> Value {
    let mut whole = key_paths.clone();
    for (name, key) in schema["properties"].as_object().into_iter().flatten() {
        let below = filled(key, key_paths.get(name).unwrap_or(&json!({})));
        let default = key.get("default").cloned();
        let nested = (key["type"] == "object" && key["required"].is_null()).then_some(below.clone());
        match key_paths.get(name) {
            Some(_) => whole[name] = below,
            None => whole[name] = default.or(nested).unwrap_or_default(),
        }
    }
    let free = [schema.get("additionalProperties"), schema.get("items")].into_iter().flatten().find(|s| s.is_object());
    if let Some(free) = free {
        let entries = whole.as_object_mut().into_iter().flat_map(|entries| entries.values_mut());
        entries.for_each(|entry| *entry = filled(free, entry));
        let elements = whole.as_array_mut().into_iter().flatten();
        elements.for_each(|element| *element = filled(free, element));
    }
    if let Value::Object(keys) = &mut whole {
        keys.retain(|_, value| !value.is_null());
        match keys.get("kind").and_then(Value::as_str) {
            Some("sandbox") => keys.retain(|key, _| ["kind", "delay"].contains(&key.as_str())),
            Some("http") => drop(keys.remove("delay")),
            _ => {}
        }
    }
    whole
}

#[test]
fn written_defaults_change_nothing() {
    const HTTP_SHOP: &str =
        "currency = \"EUR\"\n[provider]\nkind = \"http\"\nurl = \"https://p.example\"\nsecret = \"s\"\n";
    for (kind, text) in [
        (FileKind::Gateway, ""),
        (FileKind::Merchant, "[[api_keys]]\nkey = \"k\"\nv2_secret = \"two\"\n[shops.s]"),
        (FileKind::Shop, SHOP),
        (FileKind::Shop, HTTP_SHOP),
        (FileKind::Dialect, ""),
    ] {
        let whole = filled(&file_schema(kind), &to_json(toml::Value::Table(text.parse().unwrap())));
        let whole = toml::to_string(&whole).unwrap();
        assert!(key_paths(&whole).len() > key_paths(text).len() + 1, "{whole}");
        let [bare, whole] = [text, &whole].map(|text| {
            let rules = rules_with(kind, text);
            let loaded = rules.load();
            let shown = match kind {
                FileKind::Gateway => format!("{:?}", loaded.gateway),
                // Its hash is of what the files state, defaults included.
                FileKind::Merchant => {
                    format!("{:?}", loaded.merchants["m"]).split("rules_fingerprint").next().unwrap().into()
                }
                FileKind::Shop => format!("{:?}", loaded.shops["s"]),
                FileKind::Dialect => format!("{:?}", loaded.dialects["v1"]),
                FileKind::PageTexts => format!("{:?}", loaded.pages),
            };
            shown.replace(rules.0.path().to_str().unwrap(), "")
        });
        assert_eq!(bare, whole);
    }
}

#[test]
fn schemas_refuse_detectable_errors() {
    use FileKind::{Dialect, Gateway, Merchant, Shop};
    let shop = |more: &str| format!("currency = \"EUR\"\n{more}\n");
    let statement = |keys: &str, more: &str| {
        let columns = "columns = { key = \"a\", amount = \"b\" }";
        shop(&format!("[provider]\nkind = \"sandbox\"\n[reconcile]\n{keys}\n{columns}\n{more}"))
    };
    for (kind, text, place) in [
        (Gateway, "[server]\nlisen = \"127.0.0.1:1\"", "/server"),
        (Gateway, "[servers]", ""),
        (Gateway, "server = 1", "/server"),
        (Gateway, "[server]\npublic_url = \"http://pay.example\"", "/server/public_url"),
        (Gateway, "[server]\npublic_url = \"https://pay.example/path\"", "/server/public_url"),
        (Gateway, "[callbacks]\ntimeout = \"0s\"", "/callbacks/timeout"),
        (Gateway, "[limits]\nunauthenticated_per_ip = { burst = 1 }", "/limits/unauthenticated_per_ip"),
        (Gateway, "[store]\nurl = \"postgres:a@b/c\"", "/store/url"),
        (Gateway, "[engine]\ncallback_signature = { payload = \"body\" }", "/engine/callback_signature/payload"),
        (Merchant, "", ""),
        (Merchant, "[[api_keys]]\nkey = \"k\"", "/api_keys/0"),
        (Merchant, "[[api_keys]]\nv2_secret = \"k\"", "/api_keys/0"),
        (Merchant, "[api_keys]\nkey = \"k\"\nv2_secret = \"k\"", "/api_keys"),
        (Merchant, "[shops.\"a/b\"]", "/shops"),
        (Merchant, "[shops.s]\npayins = true", "/shops/s"),
        (Merchant, "[shops.s]\nv2 = { payins = true }", "/shops/s/v2"),
        (Gateway, "[legacy]\ntimeout = \"1s\"", "/legacy"),
        (Gateway, "[legacy]\nurl = \"https://v1.example/api\"", "/legacy/url"),
        (Merchant, "[balance]\nopening = { EURO = \"10\" }", "/balance/opening"),
        (Shop, "[provider]\nkind = \"sandbox\"", ""),
        (Shop, "currency = \"EUR\"", ""),
        (Shop, &shop("[provider]"), "/provider"),
        (Shop, &shop("[provider]\nkind = \"sandbox\"\n[payout]\nbrowser_return = true"), "/payout"),
        (Shop, &statement("", ""), "/reconcile"),
        (Shop, &statement("key = \"id\"", ""), "/reconcile/key"),
        (Shop, &statement("key = \"order_id\"\ndelimiter = \";;\"", ""), "/reconcile/delimiter"),
        (Shop, &statement("key = \"order_id\"\ndelimiter = \".\"", ""), "/reconcile/delimiter"),
        (Shop, &statement("key = \"order_id\"\ndecimal = \"'\"", ""), "/reconcile/decimal"),
        (Shop, &statement("key = \"order_id\"\nencoding = \"utf-16\"", ""), "/reconcile/encoding"),
        (Shop, &statement("key = \"order_id\"", "statuses = { PAID = [\"paid\"] }"), "/reconcile/statuses"),
        (Shop, &statement("key = \"order_id\"", "skip = { column = \"a\" }"), "/reconcile/skip"),
        (Dialect, "[routes]\nbalances = \"GET /balance\"", "/routes"),
        (Dialect, "[statuses]\npending = \"a\"", "/statuses"),
    ] {
        let refusal = refusal(kind, text).unwrap_or_else(|| panic!("{text}"));
        assert!(refusal.starts_with(&format!("{place}: ")), "{text}: {refusal}");
        assert!(loads(kind, text).is_err(), "{text}");
    }
}
