//! Contract section 5, sentence by sentence.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::domain::{Direction, MerchantId, UnixMillis};
use crate::json::{Node, Value, read};
use crate::rules::{LoadOptions, RuleSet, load};
use crate::wire::v1::read_create;
use crate::wire::v2;

pub(super) const RELAY: &str = "https://gw.example/relay/code";
pub(super) const DEFAULTS: &str = "callback_url = \"https://m.example/cb\"\nreturn_url = \"https://m.example/back\"\n";
pub(super) const LENIENT: &str =
    "non_numeric_user_id = \"omit\"\nunknown_fields = \"ignore\"\nallow_http_callbacks = true\ndialect = \"php\"\n";

/// Rule files of one merchant, whose `[v1]` section holds these keys.
pub(super) fn rules_of(v1: &str) -> RuleSet {
    let directory = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("gateway.toml", "");
    put("dialects/php.toml", "requests.empty_list_is_object = true\n");
    put(
        "merchants/m.toml",
        &format!(
            "name = \"M\"\n[[api_keys]]\nkey = \"k\"\nv1_secret = \"a\"\nv2_secret = \"b\"\n\
             allowed_ips = [\"127.0.0.1\"]\n[v1]\n{v1}"
        ),
    );
    let root: &Path = directory.path();
    load(root, UnixMillis(1_780_000_000_000), None, LoadOptions::default()).unwrap_or_else(|wrong| panic!("{wrong}"))
}

pub(super) fn merchant(rules: &RuleSet) -> &V1Rules {
    &rules.merchants[&MerchantId::new("m").unwrap()].v1
}

/// The v2 body of a v1 one, or why there is none.
fn translated(rules: &RuleSet, direction: Direction, body: &str) -> Result<String, String> {
    let create = read_create(direction, body.as_bytes()).map_err(|error| error.to_string())?;
    let mut bytes = BodyBytes::default();
    let relay = CallbackUrl::new(RELAY).unwrap();
    match translate(&create, merchant(rules), &relay, &mut bytes) {
        Ok(_) | Err(TranslateError::Shape(_)) => Ok(bytes.into_text()),
        Err(TranslateError::Rule(wrong)) => Err(wrong.error.to_string()),
    }
}

/// A good body of a direction, with the JSON text of members in place of or beside its own; an empty text takes one away.
fn body(direction: Direction, members: &[(&str, &str)]) -> String {
    let own = if direction == Payin { ("paymentData", "{}") } else { ("card_number", "\"4111111111111111\"") };
    let usual = [("external_id", "\"o\""), ("amount", "\"10.50\""), ("currency", "\"EUR\""), own];
    let mut all: Vec<(&str, &str)> =
        usual.into_iter().filter(|(name, _)| !members.iter().any(|(n, _)| n == name)).collect();
    all.extend(members.iter().filter(|(_, text)| !text.is_empty()));
    let all: Vec<_> = all.iter().map(|(name, text)| format!("\"{name}\":{text}")).collect();
    format!("{{{}}}", all.join(","))
}

/// The members of a v2 body with their text, those of `fields` as `fields.…`.
fn members(body: &str) -> BTreeMap<String, String> {
    let Ok(Value { node: Node::Object(object), .. }) = read(body.as_bytes()) else { panic!("no object: {body}") };
    let mut all = BTreeMap::new();
    for member in &object.0 {
        match (member.name.as_ref(), &member.value.node) {
            ("fields", Node::Object(fields)) => all
                .extend(fields.0.iter().map(|member| (format!("fields.{}", member.name), member.value.raw.to_owned()))),
            (name, _) => drop(all.insert(name.to_owned(), member.value.raw.to_owned())),
        }
    }
    all
}

#[derive(Debug, Clone, Copy)]
enum Becomes {
    /// These v2 members have these texts; an empty text: the member is not there.
    Has(&'static [(&'static str, &'static str)]),
    /// An error that starts like this.
    Refused(&'static str),
}

use Becomes::{Has, Refused};
use Direction::{Payin, Payout};

type Row = (&'static str, Direction, &'static [(&'static str, &'static str)], Becomes);

const NO_ID: &str = "merchant_user_id: must be digits without a leading zero, within a signed 64-bit integer";
const OMITTED: Becomes = Has(&[("customer_account_id", "")]);

const ROWS: &[Row] = &[
    // shop_code
    (DEFAULTS, Payin, &[("shop_code", "\"any shop\"")], Has(&[("method", "\"any shop\"")])),
    (DEFAULTS, Payin, &[("shop_code", "null")], Has(&[("method", "")])),
    (DEFAULTS, Payin, &[], Has(&[("method", "")])),
    // callback_url
    (
        DEFAULTS,
        Payin,
        &[("callback_url", "\"https://a.example/x\"")],
        Has(&[("callback_url", "\"https://gw.example/relay/code\"")]),
    ),
    (DEFAULTS, Payout, &[("callback_url", "null")], Has(&[("callback_url", "\"https://gw.example/relay/code\"")])),
    ("return_url = \"https://m.example/\"", Payin, &[], Has(&[("callback_url", "\"https://gw.example/relay/code\"")])),
    (DEFAULTS, Payin, &[("callback_url", "\"http://a.example/x\"")], Refused("callback_url: must be an https:// URL")),
    (
        "allow_http_callbacks = true",
        Payout,
        &[("callback_url", "\"http://a.example/x\"")],
        Has(&[("callback_url", "\"https://gw.example/relay/code\"")]),
    ),
    (
        "callbacks = \"v2\"\ncallback_url = \"https://m.example/cb\"",
        Payout,
        &[("callback_url", "\"https:\\/\\/a.example/x\"")],
        Has(&[("callback_url", "\"https://a.example/x\"")]),
    ),
    (
        "callbacks = \"v2\"\ncallback_url = \"https://m.example/cb\"",
        Payout,
        &[("callback_url", "null")],
        Has(&[("callback_url", "\"https://m.example/cb\"")]),
    ),
    ("callbacks = \"v2\"", Payout, &[], Refused("callback_url: is required")),
    (
        "callbacks = \"v2\"\nallow_http_callbacks = true",
        Payout,
        &[("callback_url", "\"http://a.example/x\"")],
        Refused("callback_url: must be an https:// URL"),
    ),
    // merchant_user_id
    (DEFAULTS, Payin, &[("merchant_user_id", "\"42\"")], Has(&[("customer_account_id", "42")])),
    (DEFAULTS, Payin, &[("merchant_user_id", "42")], Has(&[("customer_account_id", "42")])),
    (DEFAULTS, Payin, &[("merchant_user_id", "\"0\"")], Has(&[("customer_account_id", "0")])),
    (DEFAULTS, Payin, &[("merchant_user_id", "0")], Has(&[("customer_account_id", "0")])),
    (
        DEFAULTS,
        Payin,
        &[("merchant_user_id", "9223372036854775807")],
        Has(&[("customer_account_id", "9223372036854775807")]),
    ),
    (DEFAULTS, Payin, &[("merchant_user_id", "\"\\u0034\\u0032\"")], Has(&[("customer_account_id", "42")])),
    (DEFAULTS, Payin, &[("merchant_user_id", "null")], OMITTED),
    (DEFAULTS, Payin, &[], OMITTED),
    // merchant_user_ip
    (DEFAULTS, Payin, &[("merchant_user_ip", "\"::1\"")], Has(&[("fields.merchant_user_ip", "\"::1\"")])),
    (DEFAULTS, Payin, &[("merchant_user_ip", "null")], Has(&[("fields.merchant_user_ip", "")])),
    (DEFAULTS, Payout, &[("merchant_user_ip", "\"::1\"")], Has(&[("fields.merchant_user_ip", "\"::1\"")])),
    (
        DEFAULTS,
        Payin,
        &[("merchant_user_ip", "\"::1\""), ("paymentData", r#"{"merchant_user_ip":"\u003a:1"}"#)],
        Has(&[("fields.merchant_user_ip", r#""\u003a:1""#)]),
    ),
    (
        DEFAULTS,
        Payin,
        &[("merchant_user_ip", "\"::1\""), ("paymentData", r#"{"merchant_user_ip":null}"#)],
        Has(&[("fields.merchant_user_ip", "\"::1\"")]),
    ),
    (
        DEFAULTS,
        Payin,
        &[("merchant_user_ip", "null"), ("paymentData", r#"{"merchant_user_ip":"::1"}"#)],
        Has(&[("fields.merchant_user_ip", "\"::1\"")]),
    ),
    (DEFAULTS, Payin, &[("paymentData", r#"{"merchant_user_ip":null}"#)], Has(&[("fields.merchant_user_ip", "null")])),
    (
        DEFAULTS,
        Payin,
        &[("merchant_user_ip", "\"::1\""), ("paymentData", r#"{"merchant_user_ip":"0:0:0:0:0:0:0:1"}"#)],
        Refused("merchant_user_ip: must be the same as paymentData.merchant_user_ip"),
    ),
    (
        DEFAULTS,
        Payin,
        &[("merchant_user_ip", "\"::1\""), ("paymentData", r#"{"merchant_user_ip":""}"#)],
        Refused("paymentData.merchant_user_ip: must be exactly one"),
    ),
    // paymentData
    (DEFAULTS, Payin, &[("paymentData", "")], Has(&[("success_url", "\"https://m.example/back\"")])),
    (DEFAULTS, Payin, &[("paymentData", "null")], Refused("paymentData: must be a JSON object, not null")),
    (DEFAULTS, Payin, &[("paymentData", "[]")], Refused("paymentData: must be a JSON object, not an array")),
    (LENIENT, Payin, &[("paymentData", "[null]")], Refused("paymentData: must be a JSON object, not an array")),
    (LENIENT, Payout, &[("paymentData", "[]")], Has(&[("fields", "")])),
    (DEFAULTS, Payout, &[("paymentData", "\"\"")], Refused("paymentData: must be a JSON object, not a string")),
    (
        DEFAULTS,
        Payin,
        &[(
            "paymentData",
            r#"{"a":1.50,"b":1E400,"c":-0,"d":"\u00e9","e":123456789012345678901,"f":[ {"g" : null} ]}"#,
        )],
        Has(&[
            ("fields.a", "1.50"),
            ("fields.b", "1E400"),
            ("fields.c", "-0"),
            ("fields.d", r#""\u00e9""#),
            ("fields.e", "123456789012345678901"),
            ("fields.f", r#"[ {"g" : null} ]"#),
        ]),
    ),
    (DEFAULTS, Payin, &[("paymentData", r#"{"mobile_number":"0712"}"#)], Has(&[("fields.mobile_number", "\"0712\"")])),
    // What is reserved for the other direction, or deeper inside, is a name like any other.
    (DEFAULTS, Payin, &[("paymentData", r#"{"account_number":"1"}"#)], Has(&[("fields.account_number", "\"1\"")])),
    (DEFAULTS, Payout, &[("paymentData", r#"{"success_url":"x"}"#)], Has(&[("fields.success_url", "\"x\"")])),
    (
        DEFAULTS,
        Payout,
        &[("paymentData", r#"{"return_user_url":"x"}"#)],
        Has(&[("fields.return_user_url", "\"x\""), ("success_url", "")]),
    ),
    (DEFAULTS, Payin, &[("paymentData", r#"{"x":{"method":1}}"#)], Has(&[("fields.x", r#"{"method":1}"#)])),
    (DEFAULTS, Payin, &[("paymentData", r#"{"order_id":"1"}"#)], Has(&[("fields.order_id", "\"1\"")])),
    // paymentData.return_user_url
    (
        DEFAULTS,
        Payin,
        &[("paymentData", r#"{"return_user_url":"http://a.example/r"}"#)],
        Has(&[
            ("success_url", "\"http://a.example/r\""),
            ("pending_url", "\"http://a.example/r\""),
            ("fail_url", "\"http://a.example/r\""),
            ("fields.return_user_url", ""),
            ("fields", ""),
        ]),
    ),
    (
        DEFAULTS,
        Payin,
        &[("paymentData", r#"{"return_user_url":null}"#)],
        Refused("paymentData.return_user_url: must be a string, not null"),
    ),
    (
        DEFAULTS,
        Payin,
        &[("paymentData", r#"{"return_user_url":"https://u@a.example/"}"#)],
        Refused("paymentData.return_user_url: must not contain credentials"),
    ),
    ("", Payin, &[("paymentData", "{}")], Refused("paymentData.return_user_url: is required")),
    ("", Payin, &[("paymentData", "")], Refused("paymentData.return_user_url: is required")),
    ("", Payout, &[], Has(&[("success_url", ""), ("fields", "")])),
    // card_number
    (DEFAULTS, Payout, &[("card_number", r#""\u0034 1-1""#)], Has(&[("account_number", "\"4 1-1\"")])),
    (DEFAULTS, Payout, &[("card_number", "\"+254712345678\"")], Has(&[("account_number", "\"+254712345678\"")])),
    (DEFAULTS, Payin, &[("card_number", "\"4111\"")], Refused("card_number: is not a known field")),
    (
        "return_url = \"https://m.example/\"\nunknown_fields = \"ignore\"",
        Payin,
        &[("card_number", "{}")],
        Has(&[("account_number", ""), ("card_number", "")]),
    ),
];

#[test]
fn every_row_of_section_5() {
    let mut loaded: BTreeMap<&str, RuleSet> = BTreeMap::new();
    for (v1, direction, changes, becomes) in ROWS {
        let rules = loaded.entry(v1).or_insert_with(|| rules_of(v1));
        let body = body(*direction, changes);
        match (translated(rules, *direction, &body), becomes) {
            (Ok(v2), Has(expected)) => {
                let has = members(&v2);
                for (name, text) in *expected {
                    assert_eq!(has.get(*name).map_or("", String::as_str), *text, "{name} of {body}: {v2}");
                }
            }
            (Err(error), Refused(start)) => assert!(error.starts_with(start), "{body}: {error}"),
            (other, _) => panic!("{v1}: {body}: {other:?}"),
        }
    }
}

#[test]
fn ids_without_equivalent_are_refused_or_omitted() {
    let (strict, lenient) =
        (rules_of(DEFAULTS), rules_of("return_url = \"https://m.example/\"\nnon_numeric_user_id = \"omit\""));
    for id in [
        "\"007\"",
        "\"00\"",
        "\"-5\"",
        "\"+5\"",
        "\"\"",
        "\" \"",
        "\" 5\"",
        "\"5 \"",
        "\"5\\n\"",
        "\"٣\"",
        "\"５\"",
        "\"user-7\"",
        "\"9223372036854775808\"",
        "\"18446744073709551616\"",
        "\"1.0\"",
        "\"1e3\"",
        "\"0x5\"",
        "\"5\\u0000\"",
        "9223372036854775808",
        "123456789012345678901234567890",
        "-5",
        "-0",
        "1.0",
        "1e3",
        "0.0",
        "true",
        "false",
        "{}",
        "[]",
        "[5]",
        "{\"id\":5}",
    ] {
        let sent = body(Payin, &[("merchant_user_id", id)]);
        assert_eq!(translated(&strict, Payin, &sent), Err(NO_ID.to_owned()), "{id}");
        let v2 = translated(&lenient, Payin, &sent).unwrap();
        assert!(!members(&v2).contains_key("customer_account_id"), "{id}: {v2}");
    }
}

#[test]
fn unknown_top_level_members_are_refused_or_dropped() {
    let (strict, lenient) = (rules_of(DEFAULTS), rules_of(&format!("{DEFAULTS}unknown_fields = \"ignore\"")));
    let plain = translated(&lenient, Payin, &body(Payin, &[])).unwrap();
    for name in [
        "order_id",
        "method",
        "fields",
        "success_url",
        "pending_url",
        "fail_url",
        "account_number",
        "account_channel",
        "customer_account_id",
        "return_user_url",
        "Amount",
        "payment_data",
        "external_id ",
        "",
        "é",
    ] {
        for value in ["null", "1", "\"https://evil.example/\"", "{\"a\":[1]}", "[]"] {
            let sent = body(Payin, &[(name, value), ("merchant_user_ip", "null")]);
            let refused = translated(&strict, Payin, &sent).unwrap_err();
            assert!(refused.ends_with(": is not a known field"), "{name}: {refused}");
            assert!(refused.starts_with(name) || refused.starts_with("(a member"), "{name}: {refused}");
            assert_eq!(translated(&lenient, Payin, &sent).as_ref(), Ok(&plain), "{name}");
        }
    }
}

#[test]
fn long_and_deep_and_doubled() {
    let rules = rules_of(DEFAULTS);
    let sent = |name: &str, text: &str| translated(&rules, Payin, &body(Payin, &[(name, text)]));
    let quoted = |text: String| format!("\"{text}\"");
    for (character, counted) in [("x", 255), ("ж", 255), ("😀", 255), (r"\ud83d\ude00", 255), (r"\u0416", 255)] {
        assert!(sent("external_id", &quoted(character.repeat(counted))).is_ok(), "{character}");
        let refused = sent("external_id", &quoted(character.repeat(counted + 1))).unwrap_err();
        assert_eq!(refused, "external_id: must be at most 255 characters");
    }
    let zeros = sent("amount", &quoted("0".repeat(100_000) + "1.05")).unwrap();
    assert_eq!(members(&zeros)["amount"], "1.05");
    assert!(sent("amount", &quoted("1".repeat(100_000))).unwrap_err().starts_with("amount: must be at most"));
    // paymentData is the second level; its values may go down to the thirty-second.
    let deep = |levels: usize| format!("{{\"x\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    let v2 = sent("paymentData", &deep(30)).unwrap();
    assert!(v2::read_create(Payin, v2.as_bytes()).is_ok(), "what is forwarded is no deeper than what came");
    assert!(sent("paymentData", &deep(31)).unwrap_err().contains("nested"));
    for doubled in [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"\u0061":1}"#,
        r#"{"x":{"a":1,"b":2,"a":3}}"#,
        r#"{"x":[[{"a":1,"\u0061":2}]]}"#,
        r#"{"merchant_user_ip":"::1","merchant_user\u005fip":"::1"}"#,
    ] {
        let refused = sent("paymentData", doubled).unwrap_err();
        assert!(refused.contains("twice"), "{doubled}: {refused}");
    }
    assert!(sent("amou\\u006et", "\"1\"").unwrap_err().starts_with("amount: is named twice"));
}

#[test]
fn the_order_of_members_is_kept() {
    let rules = rules_of(DEFAULTS);
    let sent = body(Payin, &[("paymentData", r#"{"z":1,"return_user_url":"https://a.example/","a":2,"m":3}"#)]);
    let v2 = translated(&rules, Payin, &sent).unwrap();
    assert!(v2.ends_with(r#""fields":{"z":1,"a":2,"m":3}}"#), "{v2}");
    let start = r#"{"order_id":"o","amount":10.5,"currency":"EUR","callback_url":"https://gw.example/relay/code","success_url":"#;
    assert!(v2.starts_with(start), "{v2}");
}

#[test]
fn every_sent_member_is_accounted_for() {
    let rules = rules_of(&format!("{LENIENT}{DEFAULTS}"));
    let sent = body(
        Payin,
        &[
            ("shop_code", "null"),
            ("callback_url", "\"http://a.example/\""),
            ("merchant_user_id", "\"x\""),
            ("merchant_user_ip", "\"::1\""),
            ("surprise", "1"),
            ("paymentData", r#"{"return_user_url":"https://a.example/","merchant_user_ip":null,"n":1}"#),
        ],
    );
    let create = read_create(Payin, sent.as_bytes()).unwrap();
    let mut origins = Origins::default();
    translate(&create, merchant(&rules), &CallbackUrl::new(RELAY).unwrap(), &mut origins).unwrap();
    let mut reported: Vec<String> = origins.left_out.iter().map(|left_out| left_out.name.to_string()).collect();
    reported.extend(origins.members.iter().chain(&origins.fields).map(|member| member.source.to_string()));
    reported.extend(origins.relayed_to.iter().map(|(_, source)| source.to_string()));
    for name in [
        "external_id",
        "amount",
        "currency",
        "shop_code",
        "callback_url",
        "merchant_user_id",
        "merchant_user_ip",
        "surprise",
        "paymentData.return_user_url",
        "paymentData.merchant_user_ip",
        "paymentData.n",
    ] {
        assert!(reported.iter().any(|reported| reported == name), "{name}: {reported:?}");
    }
    let listed = body(Payin, &[("paymentData", "[]"), ("merchant_user_ip", "\"::1\"")]);
    let create = read_create(Payin, listed.as_bytes()).unwrap();
    let mut origins = Origins::default();
    translate(&create, merchant(&rules), &CallbackUrl::new(RELAY).unwrap(), &mut origins).unwrap();
    assert_eq!(origins.left_out[0].name, "paymentData");
}
