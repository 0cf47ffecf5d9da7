//! Verdicts and samples, over rules in files: every refusal names the rule whose change lets the body pass.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::domain::Direction::{self, Payin, Payout};
use crate::domain::{MerchantId, UnixMillis};
use crate::rules::{LoadOptions, RuleSet, load};

const ACME: &str = r#"
default_shop = "card"
[[api_keys]]
key = "k"
v1_secret = "a"
v2_secret = "b"
allowed_ips = ["127.0.0.1"]
[shops.card]
[shops.one-way]
payout = false
[shops.idle]
[v1]
callback_url = "https://acme.example/cb"
return_url = "https://acme.example/done"
"#;

const CARD: &str = "currency = \"EUR\"\npayment_method = \"card\"\n[payin]\nschema = \"card.payin.json\"\n\
    [provider]\nkind = \"sandbox\"\n";
const BARE: &str = "currency = \"EUR\"\n[provider]\nkind = \"sandbox\"\n";

const SCHEMA: &str = r#"{ "type": "object", "properties": { "bank_code": { "type": "string" }, "line1": {} } }"#;

pub(super) struct RuleFixture(TempDir);

impl RuleFixture {
    pub(super) fn new() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        for (path, text) in [
            ("gateway.toml", ""),
            ("merchants/acme.toml", ACME),
            ("shops/card.toml", CARD),
            ("shops/card.payin.json", SCHEMA),
            ("shops/one-way.toml", BARE),
            ("shops/foreign.toml", BARE),
            ("shops/idle.toml", &format!("active = false\n{BARE}")),
            ("lists/banks.txt", "alpha\n"),
            ("lists/tills.txt", "alpha\n"),
            ("lists/acme/tills.txt", "beta\n"),
        ] {
            files.put(path, text);
        }
        files
    }

    pub(super) fn put(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.0.path().join(path)).unwrap_or_default()
    }

    fn replace(&self, path: &str, from: &str, to: &str) {
        let text = self.text(path);
        assert!(text.contains(from), "{path}: {text}");
        self.put(path, &text.replace(from, to));
    }

    pub(super) fn load(&self) -> RuleSet {
        load(self.0.path(), UnixMillis(0), None, LoadOptions::default()).unwrap_or_else(|wrong| panic!("{wrong}"))
    }

    fn verdict(&self, direction: Direction, body: &str) -> CreateVerdict {
        checked(&self.load(), direction, body)
    }

    /// Asserts that a body is refused by this rule.
    #[track_caller]
    fn refused(&self, direction: Direction, body: &str, member: &str, file: &str, key: &str) -> Refusal {
        let refusal = self.verdict(direction, body).refusal.unwrap_or_else(|| panic!("accepted: {body}"));
        let found = (&*refusal.member, &*refusal.file, &*refusal.key);
        assert_eq!(found, (member, file, key), "{body}: {}", refusal.reason);
        refusal
    }

    #[track_caller]
    fn accepted(&self, direction: Direction, body: &str) -> CreateVerdict {
        let verdict = self.verdict(direction, body);
        assert_eq!(verdict.refusal, None, "{body}");
        verdict
    }
}

pub(super) fn checked(rules: &RuleSet, direction: Direction, body: &str) -> CreateVerdict {
    let merchant = &rules.merchants[&MerchantId::new("acme").unwrap()];
    verdict(rules, merchant, &merchant.api_keys[0], direction, body.as_bytes())
}

/// A good body of a direction with other members; `null` removes one.
pub(super) fn body(direction: Direction, members: &Value) -> String {
    let mut body = json!({ "external_id": "o1", "amount": "10.50", "currency": "EUR" });
    if direction == Payout {
        body["card_number"] = "4111111111111111".into();
    }
    for (name, value) in members.as_object().unwrap() {
        body[name] = value.clone();
    }
    body.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    body.to_string()
}

#[test]
fn refusals_of_the_merchants_rules_name_their_keys() {
    let merchant = "merchants/acme.toml";
    for (direction, members, member, file, key, edit) in [
        (Payin, json!({ "x1": 1 }), "x#", merchant, "v1.unknown_fields", ("[v1]", "[v1]\nunknown_fields = \"ignore\"")),
        (
            Payin,
            json!({ "merchant_user_id": "u" }),
            "merchant_user_id",
            merchant,
            "v1.non_numeric_user_id",
            ("[v1]", "[v1]\nnon_numeric_user_id = \"omit\""),
        ),
        (
            Payin,
            json!({ "callback_url": "http://a.example/" }),
            "callback_url",
            merchant,
            "v1.allow_http_callbacks",
            ("[v1]", "[v1]\nallow_http_callbacks = true"),
        ),
        (
            Payin,
            json!({ "paymentData": [] }),
            "paymentData",
            "dialects/v1.toml",
            "requests.empty_list_is_object",
            ("", "[requests]\nempty_list_is_object = true"),
        ),
        (
            Payin,
            json!({ "shop_code": "foreign" }),
            "shop_code",
            merchant,
            "shops.foreign",
            ("[v1]", "[shops.foreign]\n[v1]"),
        ),
        (
            Payout,
            json!({ "shop_code": "one-way" }),
            "shop_code",
            merchant,
            "shops.one-way.payout",
            ("payout = false", "payout = true"),
        ),
        (Payin, json!({ "shop_code": "idle" }), "shop_code", "shops/idle.toml", "active", ("false", "true")),
        (Payin, json!({ "currency": "KES" }), "currency", "shops/card.toml", "currency", ("EUR", "KES")),
        (
            Payout,
            json!({ "card_number": "GB12" }),
            "card_number",
            "shops/card.toml",
            "payout.account",
            ("[provider]", "[payout]\naccount = { pattern = \"^GB\" }\n[provider]"),
        ),
        (
            Payin,
            json!({ "paymentData": { "bank_code": 5 } }),
            "paymentData.bank_code",
            "shops/card.payin.json",
            "properties.bank_code.type",
            ("string", "number"),
        ),
    ] {
        let files = RuleFixture::new();
        let body = body(direction, &members);
        files.refused(direction, &body, member, file, key);
        match edit {
            ("", to) => files.put(file, to),
            (from, to) => files.replace(file, from, to),
        }
        files.accepted(direction, &body);
    }
}

#[test]
fn refusals_for_lack_of_a_default_name_its_key() {
    let merchant = "merchants/acme.toml";
    let files = RuleFixture::new();
    files.replace(merchant, "return_url", "# return_url");
    files.refused(Payin, &body(Payin, &json!({})), "paymentData.return_user_url", merchant, "v1.return_url");
    files.accepted(Payout, &body(Payout, &json!({})));

    let files = RuleFixture::new();
    files.replace(merchant, "callback_url", "callbacks = \"v2\"\n# callback_url");
    files.refused(Payin, &body(Payin, &json!({})), "callback_url", merchant, "v1.callback_url");
    let plain = body(Payin, &json!({ "callback_url": "http://a.example/" }));
    files.refused(Payin, &plain, "callback_url", merchant, "v1.callbacks");
    files.replace(merchant, "callbacks = \"v2\"", "callbacks = \"v1\"\nallow_http_callbacks = true");
    files.accepted(Payin, &plain);

    let files = RuleFixture::new();
    files.replace(merchant, "default_shop", "# default_shop");
    files.refused(Payin, &body(Payin, &json!({})), "shop_code", merchant, "default_shop");
    assert_eq!(&*files.verdict(Payin, &body(Payin, &json!({}))).shop, "");

    let files = RuleFixture::new();
    files.replace(merchant, "allowed_ips", "shops = [\"one-way\"]\nallowed_ips");
    files.refused(Payin, &body(Payin, &json!({})), "shop_code", merchant, "api_keys.shops");
    files.replace(merchant, "shops = [\"one-way\"]", "shops = [\"one-way\", \"card\"]");
    assert_eq!(&*files.accepted(Payin, &body(Payin, &json!({}))).shop, "card");
}

#[test]
fn a_shop_that_no_rule_has_is_not_shown() {
    let verdict = RuleFixture::new().verdict(Payin, &body(Payin, &json!({ "shop_code": "4111111111111111" })));
    assert_eq!(&*verdict.shop, "");
    let refusal = verdict.refusal.unwrap();
    assert_eq!((&*refusal.file, &*refusal.key), ("merchants/acme.toml", "shops"));
}

#[test]
fn what_no_rule_can_change_has_no_rule() {
    let files = RuleFixture::new();
    for (direction, members, member, reason) in [
        (Payin, json!({ "external_id": "" }), "external_id", "must not be empty"),
        (Payin, json!({ "amount": 5 }), "amount", "must be a string, not a number"),
        (Payout, json!({ "card_number": null }), "card_number", "is required"),
        (
            Payin,
            json!({ "paymentData": { "method": "x" } }),
            "paymentData.method",
            "is a reserved name and cannot appear inside paymentData",
        ),
        (Payin, json!({ "paymentData": { "email": 5 } }), "paymentData.email", "must be a string, not a number"),
        (Payin, json!({ "merchant_user_ip": "x" }), "merchant_user_ip", "must be exactly one IPv4 or IPv6 address"),
    ] {
        let refusal = files.refused(direction, &body(direction, &members), member, "", "");
        assert_eq!(&*refusal.reason, reason);
    }
    for (text, reason) in [
        ("{", "the body is not valid JSON"),
        (r#"{"a4111111111111111":1,"a4111111111111111":2}"#, "the body names a member twice in one object"),
        ("[]", "the body must be a JSON object, not an array"),
    ] {
        let refusal = files.refused(Payin, text, "", "", "");
        assert_eq!(&*refusal.reason, reason);
    }
    for (text, member, reason) in [
        (r#"{"amount":"1","amount":"1"}"#, "amount", "is named twice in one object"),
        (r#"{"paymentData":{"x":{"a":1,"a":1}}}"#, "paymentData", "names a member twice in one object"),
    ] {
        assert_eq!(&*files.refused(Payin, text, member, "", "").reason, reason);
    }
    assert_eq!(&*files.verdict(Payin, r#"{"shop_code":"one-way"}"#).shop, "one-way");
    assert_eq!(&*files.verdict(Payin, "{}").shop, "card");
    assert_eq!(&*files.verdict(Payin, r#"{"shop_code":7}"#).shop, "");
}

/// Removes the value at a place with dots between names.
fn remove(schema: &mut Value, place: &str) {
    let (above, last) = place.rsplit_once('.').unwrap_or(("", place));
    let pointer = if above.is_empty() { String::new() } else { format!("/{}", above.replace('.', "/")) };
    let above = schema.pointer_mut(&pointer).unwrap_or_else(|| panic!("{place} is nowhere"));
    let removed = match above {
        Value::Object(members) => members.remove(last),
        other => other.as_array_mut().and_then(|items| {
            let at: usize = last.parse().ok()?;
            items.get_mut(at).map(|item| std::mem::replace(item, json!({})))
        }),
    };
    assert!(removed.is_some(), "{place} is nowhere");
}

#[test]
fn refusals_of_a_schema_name_the_keyword_whose_removal_lets_the_body_pass() {
    let mut wrong = Vec::new();
    let mut proved =
        |schema, data: &Value, member: &str, key: &str| wrong.extend(not_proved(schema, data, member, key));
    for (property, value, member, key) in [
        (json!({ "type": "string" }), json!(5), "p", "type"),
        (json!({ "type": ["string", "null"] }), json!(5), "p", "type"),
        (json!({ "enum": ["a"] }), json!("b"), "p", "enum"),
        (json!({ "const": "a" }), json!("b"), "p", "const"),
        (json!({ "pattern": "^a$" }), json!("b"), "p", "pattern"),
        (json!({ "format": "email" }), json!("b"), "p", "format"),
        (json!({ "minLength": 2 }), json!("b"), "p", "minLength"),
        (json!({ "maxLength": 2 }), json!("bbb"), "p", "maxLength"),
        (json!({ "minimum": 2 }), json!(1), "p", "minimum"),
        (json!({ "maximum": 2 }), json!(3), "p", "maximum"),
        (json!({ "exclusiveMinimum": 2 }), json!(2), "p", "exclusiveMinimum"),
        (json!({ "exclusiveMaximum": 2 }), json!(2), "p", "exclusiveMaximum"),
        (json!({ "multipleOf": 2 }), json!(3), "p", "multipleOf"),
        (json!({ "uniqueItems": true }), json!([1, 1]), "p", "uniqueItems"),
        (json!({ "minItems": 2 }), json!([1]), "p", "minItems"),
        (json!({ "maxItems": 2 }), json!([1, 2, 3]), "p", "maxItems"),
        (json!({ "contains": { "type": "string" } }), json!([1]), "p", "contains"),
        (json!({ "items": { "type": "string" } }), json!(["a", 7]), "p.#", "items.type"),
        (json!({ "prefixItems": [{ "type": "string" }] }), json!([7]), "p.#", "prefixItems.0.type"),
        (json!({ "required": ["q"] }), json!({}), "p.q", "required"),
        (json!({ "properties": { "q": { "type": "string" } } }), json!({ "q": 1 }), "p.q", "properties.q.type"),
        (json!({ "properties": { "q2": { "type": "string" } } }), json!({ "q2": 1 }), "p.q2", "properties.q2.type"),
        (json!({ "additionalProperties": false }), json!({ "q": 1 }), "p", "additionalProperties"),
        (
            json!({ "additionalProperties": { "type": "string" } }),
            json!({ "q7": 1 }),
            "p.q#",
            "additionalProperties.type",
        ),
        (json!({ "unevaluatedProperties": false }), json!({ "q": 1 }), "p", "unevaluatedProperties"),
        (
            json!({ "patternProperties": { "^q": { "type": "string" } } }),
            json!({ "q7": 1 }),
            "p.q#",
            "patternProperties.^q.type",
        ),
        (json!({ "propertyNames": { "maxLength": 1 } }), json!({ "qq": 1 }), "p", "propertyNames.maxLength"),
        (json!({ "minProperties": 1 }), json!({}), "p", "minProperties"),
        (json!({ "maxProperties": 0 }), json!({ "q": 1 }), "p", "maxProperties"),
        (json!({ "dependentRequired": { "q": ["r"] } }), json!({ "q": 1 }), "p.r", "dependentRequired"),
        (json!({ "not": { "type": "string" } }), json!("a"), "p", "not"),
        (json!({ "anyOf": [{ "type": "string" }] }), json!(1), "p", "anyOf"),
        (json!({ "oneOf": [{ "type": "string" }, { "type": "null" }] }), json!(1), "p", "oneOf"),
        (json!({ "allOf": [{}, { "type": "string" }] }), json!(1), "p", "allOf.1.type"),
        (json!({ "if": { "type": "number" }, "then": { "minimum": 2 } }), json!(1), "p", "then.minimum"),
        (json!({ "if": { "type": "string" }, "else": { "minimum": 2 } }), json!(1), "p", "else.minimum"),
    ] {
        let key = format!("properties.p.{key}");
        proved(
            json!({ "properties": { "p": property } }),
            &json!({ "p": value }),
            &format!("paymentData.{member}"),
            &key,
        );
    }
    proved(json!({ "properties": { "p": {} }, "required": ["p"] }), &json!({}), "paymentData.p", "required");
    proved(json!({ "required": ["merchant_user_ip"] }), &json!({}), "merchant_user_ip", "required");
    let twice = json!({ "properties": { "p": { "$ref": "#/$defs/d" } }, "$defs": { "d": { "pattern": "^a$" } } });
    proved(twice, &json!({ "p": "b" }), "paymentData.p", "$defs.d.pattern");
    let ip = json!({ "properties": { "merchant_user_ip": { "format": "ipv6" } } });
    proved(
        ip,
        &json!({ "merchant_user_ip": "203.0.113.7" }),
        "paymentData.merchant_user_ip",
        "properties.merchant_user_ip.format",
    );
    proved(json!({ "properties": { "a": {} }, "minProperties": 1 }), &json!({}), "paymentData", "minProperties");
    proved(json!({ "properties": { "p": false } }), &json!({ "p": 1 }), "paymentData.p", "properties.p");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns what is wrong unless a schema refuses `paymentData` by the keyword at `key`, and accepts it without.
fn not_proved(mut schema: Value, data: &Value, member: &str, key: &str) -> Option<String> {
    let files = RuleFixture::new();
    let body = body(Payin, &json!({ "paymentData": data }));
    files.put("shops/card.payin.json", &schema.to_string());
    let Some(refusal) = files.verdict(Payin, &body).refusal else { return Some(format!("{schema} accepts {data}")) };
    let (file, found) = ("shops/card.payin.json", (&*refusal.member, &*refusal.file, &*refusal.key));
    if found != (member, file, key) {
        return Some(format!("{schema}: {found:?}"));
    }
    remove(&mut schema, key);
    files.put(file, &schema.to_string());
    files.verdict(Payin, &body).refusal.map(|refusal| format!("{schema} still refuses {data}: {refusal:?}"))
}

#[test]
fn refusals_of_a_list_name_its_file() {
    for (list, file) in [("banks", "lists/banks.txt"), ("tills", "lists/acme/tills.txt")] {
        let files = RuleFixture::new();
        files.put("shops/card.payin.json", &json!({ "properties": { "p": { "x-allowed-list": list } } }).to_string());
        for value in [json!("gamma"), json!(7)] {
            let body = body(Payin, &json!({ "paymentData": { "p": value } }));
            let refusal = files.refused(Payin, &body, "paymentData.p", file, list);
            assert_eq!(&*refusal.reason, "must be one of the values agreed for this shop");
            files.put(file, &format!("{}\ngamma\n7\n", files.text(file)));
            files.accepted(Payin, &body);
            files.put(file, "alpha\n");
        }
        let no_line = body(Payin, &json!({ "paymentData": { "p": true } }));
        files.refused(Payin, &no_line, "paymentData.p", "shops/card.payin.json", "properties.p.x-allowed-list");
    }
}

#[test]
fn numbers_that_a_schema_cannot_read_name_their_property() {
    let schema = json!({ "properties": { "p": {} } });
    let files = RuleFixture::new();
    files.put("shops/card.payin.json", &schema.to_string());
    let body = r#"{"external_id":"o","amount":"1","currency":"EUR","paymentData":{"p":1e999}}"#;
    files.refused(Payin, body, "paymentData.p", "shops/card.payin.json", "properties.p");
    files.put("shops/card.payin.json", "{}");
    files.accepted(Payin, body);
}

#[test]
fn what_the_payment_checks_fail_would_be_created() {
    let files = RuleFixture::new();
    files.put("shops/card.toml", &format!("{CARD}[checks]\nrefused_accounts = [7]\n"));
    files.accepted(Payin, &body(Payin, &json!({ "merchant_user_id": "7" })));
}

#[test]
fn before_a_remote_engine_the_check_ends_with_the_shape() {
    let files = RuleFixture::new();
    files.put("gateway.toml", "[engine]\nurl = \"https://v2.example\"\n");
    let members = json!({ "currency": "KES", "paymentData": { "bank_code": 5, "other": 1 } });
    let verdict = files.accepted(Payin, &body(Payin, &members));
    assert_eq!((&*verdict.shop, verdict.losses.len()), ("card", 0));
    files.refused(Payin, &body(Payin, &json!({ "x": 5 })), "x", "merchants/acme.toml", "v1.unknown_fields");
    files.refused(Payin, &body(Payin, &json!({ "paymentData": { "phone": 5 } })), "paymentData.phone", "", "");
}

#[test]
fn losses_are_what_the_operation_would_not_have() {
    let files = RuleFixture::new();
    files.replace("merchants/acme.toml", "[v1]", "[v1]\nunknown_fields = \"ignore\"\nnon_numeric_user_id = \"omit\"");
    files.put("dialects/v1.toml", "requests.empty_list_is_object = true");
    let lost = |members: &Value| {
        let verdict = files.accepted(Payin, &body(Payin, members));
        verdict.losses.into_iter().map(|loss| loss.member.into()).collect::<Vec<String>>()
    };
    let members = json!({ "merchant_user_id": "u", "extra4": 1, "extra5": 1, "paymentData":
        { "line1": 1, "line2": 1, "bank_code": "a", "return_user_url": "https://a.example/" } });
    let mut names = lost(&members);
    names.sort_unstable();
    assert_eq!(names, ["extra#", "merchant_user_id", "paymentData.line#"]);
    assert_eq!(lost(&json!({ "paymentData": [] })), [""; 0]);
    let twice = json!({ "merchant_user_ip": "::1", "paymentData": { "merchant_user_ip": "::1" } });
    assert_eq!(lost(&twice), [""; 0]);
    assert_eq!(lost(&json!({ "paymentData": { "merchant_user_ip": null } })), [""; 0]);
    let null = r#"{"external_id":"o","amount":"1","currency":"EUR","shop_code":null,"merchant_user_ip":null}"#;
    assert_eq!(files.accepted(Payin, null).losses, []);
    let many: serde_json::Map<String, Value> =
        (0..5000).map(|n| (format!("{:a>1$}", "", n % 60 + 1), json!(n))).collect();
    let many: serde_json::Map<String, Value> = many
        .into_iter()
        .flat_map(|(name, value)| ["b", "c", "d", "e", "f"].map(|more| (format!("{more}{name}"), value.clone())))
        .collect();
    let names = lost(&json!({ "paymentData": many }));
    assert!(names.len() == 201 && names.iter().filter(|name| name.is_empty()).count() == 1, "{}", names.len());
}

const MARK: &str = "MARK";
const NUMBER: &str = "7777777";

/// A body that has a mark in every value, and digits in every name that no rule has.
const MARKED: &str = r#"{"external_id":"MARK7777777","amount":"7777777","currency":"EUR","MARK_4111111111111111":"MARK",
    "callback_url":"https://a.example/MARK7777777","merchant_user_id":"MARK","merchant_user_ip":"MARK",
    "card_number":"4111111111111111","shop_code":"MARK","paymentData":{"return_user_url":"https://a.example/MARK",
    "bank_code":7777777,"line1":["MARK",7777777],"line2":{"a":{"b":{"c":{"4111111111111111":"MARK"}}}},
    "first_name":"MARK","email":null,"flag":true}}"#;

#[test]
fn samples_show_names_lengths_and_shapes() {
    let files = RuleFixture::new();
    let rules = files.load();
    let merchant = &rules.merchants[&MerchantId::new("acme").unwrap()];
    let sampled = |text: &str| sample(&rules, merchant, Payin, text.as_bytes());
    let marked = MARKED.replace("\"shop_code\":\"MARK\",", "").replace("\"MARK_4", "\"x\\n_4");
    let shown: Value = serde_json::from_str(&sampled(&marked)).unwrap();
    assert_eq!(
        shown,
        json!({ "external_id": "string(11)", "amount": "string(7)", "currency": "string(3)",
            "x\u{fffd}_################": "string(4)", "callback_url": "string(29)", "merchant_user_id": "string(4)",
            "merchant_user_ip": "string(4)", "card_number": "string(16)", "paymentData": {
                "return_user_url": "string(22)", "bank_code": "number(7)", "line1": "array(2)",
                "line#": { "a": { "b": "object(1)" } }, "first_name": "string(4)", "email": "null", "flag": "boolean" } })
    );
    assert_eq!(&*sampled("[1]"), "\"array(1)\"");
    assert_eq!(&*sampled("MARK"), "\"text(4)\"");
    for text in [MARKED, &marked, "\"MARK\"", "{\"a\":\"MARK\"", "7777777"] {
        let sample = sampled(text).replace("MARK_", "");
        assert!(!sample.contains(MARK) && !sample.contains(NUMBER) && !sample.contains("4111"), "{sample}");
    }
}

#[test]
fn samples_are_bounded() {
    let files = RuleFixture::new();
    let rules = files.load();
    let merchant = &rules.merchants[&MerchantId::new("acme").unwrap()];
    let long: serde_json::Map<String, Value> =
        (0..800).map(|n| (format!("{}{}", "\"é".repeat(n % 40), "x".repeat(n / 40)), json!({ "\"": {} }))).collect();
    let nested = body(Payin, &json!({ "paymentData": { "a": { "b": long } } }));
    let deep = format!("{}1{}", "{\"a\":".repeat(32), "}".repeat(32));
    for text in [&body(Payin, &Value::Object(long)), &nested, &deep] {
        let sample = sample(&rules, merchant, Payin, text.as_bytes());
        assert!(sample.len() <= 2048, "{}", sample.len());
        assert!(serde_json::from_str::<Value>(&sample).is_ok() && (text == &deep || sample.contains("more members")));
    }
}

#[test]
fn verdicts_hold_no_value() {
    let base: Value = serde_json::from_str(MARKED).unwrap();
    for lenient in [false, true] {
        let files = RuleFixture::new();
        if lenient {
            let rules = "[v1]\nunknown_fields = \"ignore\"\nnon_numeric_user_id = \"omit\"";
            files.replace("merchants/acme.toml", "[v1]", rules);
        }
        let rules = files.load();
        for direction in [Payin, Payout] {
            // One member after the other is corrected or removed, so that each gets its turn to be refused.
            let mut body = base.clone();
            for name in ["merchant_user_ip", "shop_code", "MARK_4111111111111111", "merchant_user_id", "amount"] {
                let verdict = format!("{:?}", checked(&rules, direction, &body.to_string())).replace("MARK_", "");
                let clean = !verdict.contains(MARK) && !verdict.contains(NUMBER) && !verdict.contains("4111");
                assert!(clean, "{verdict}");
                body.as_object_mut().unwrap().remove(name);
            }
        }
    }
}
