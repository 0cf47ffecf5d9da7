//! Properties of every v1 body: an accepted one is forwarded whole, and nothing panics.

use proptest::prelude::*;

use super::tests::{DEFAULTS, LENIENT, RELAY, merchant, rules_of};
use super::*;
use crate::domain::Direction::{self, Payin, Payout};
use crate::json::{Node, Object, Value, read};
use crate::rules::RuleSet;
use crate::wire::v1::read_create;
use crate::wire::v2;

/// The spelling of any JSON value, as clients write them.
fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,6})?([eE][+-]?[0-9]{1,4})?",
        json_string(),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| format!("[{}]", items.join(" ,"))),
            prop::collection::vec((member_name(), inner), 0..5).prop_map(|members| object_text(&members)),
        ]
    })
}

fn json_string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z0-9 .:/é😀ж]{0,4}",
        Just("\\n".to_owned()),
        Just("\\u00e9".to_owned()),
        Just("\\ud83d\\ude00".to_owned()),
        Just("\\/".to_owned()),
        Just("\\\"".to_owned()),
        Just("\\u0000".to_owned()),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

/// The spelling of a member's name, with quotes: made up, or one that means something somewhere.
fn member_name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "\"[a-z_]{1,8}\"",
        1 => json_string(),
        2 => prop::sample::select(vec![
            "\"email\"", "\"method\"", "\"merchant_user_ip\"", "\"return_user_url\"", "\"return\\u005fuser_url\"",
            "\"order_id\"", "\"fields\"", "\"account_number\"", "\"merchant_user_id\"",
        ]).prop_map(str::to_owned),
    ]
}

fn object_text(members: &[(String, String)]) -> String {
    let members: Vec<_> = members.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    format!("{{ {} }}", members.join(",\n"))
}

/// A v1 body that is usually near to a good one.
fn v1_body() -> impl Strategy<Value = (Direction, String)> {
    let url = || "\"https?://[a-z]{1,5}\\.example/[a-z]{0,5}\"";
    let sometimes = |name: &'static str, value: BoxedStrategy<String>| {
        prop::option::of(value).prop_map(move |value| value.map(|value| (format!("\"{name}\""), value)))
    };
    let customer = prop_oneof!["\"[0-9]{1,20}\"", "[1-9][0-9]{0,19}", json_text()].boxed();
    let address = prop_oneof![Just("\"::1\"".to_owned()), Just("null".to_owned()), json_text()].boxed();
    let inner_ip = prop_oneof![Just("\"\\u003a:1\"".to_owned()), Just("null".to_owned())].boxed();
    let moved = prop::collection::vec((member_name(), json_text()), 0..6);
    let data = (moved, sometimes("return_user_url", url().boxed()), sometimes("merchant_user_ip", inner_ip))
        .prop_map(|(moved, url, ip)| object_text(&moved.into_iter().chain(url).chain(ip).collect::<Vec<_>>()));
    let known = (
        prop_oneof![9 => "\"[a-z0-9é]{1,12}\"".boxed(), 1 => json_string().boxed()],
        prop_oneof![9 => "\"[0-9]{1,9}(\\.[0-9]{1,2})?\"".boxed(), 1 => json_text().boxed()],
        sometimes("shop_code", prop_oneof!["\"[a-z]{1,4}\"", Just("null".to_owned())].boxed()),
        sometimes("callback_url", url().boxed()),
        sometimes("merchant_user_id", customer),
        sometimes("merchant_user_ip", address),
        sometimes(
            "paymentData",
            prop_oneof![8 => data.boxed(), 1 => Just("[]".to_owned()).boxed(), 1 => json_text().boxed()].boxed(),
        ),
        prop::collection::vec((member_name(), json_text()), 0..2),
        any::<bool>(),
    );
    known.prop_map(|(id, amount, shop, callback, customer, address, data, unknown, payout)| {
        let mut members = vec![
            ("\"external_id\"".to_owned(), id),
            ("\"amount\"".to_owned(), amount),
            ("\"currency\"".to_owned(), "\"EUR\"".to_owned()),
        ];
        members.extend([data, shop, callback, customer, address].into_iter().flatten());
        members.extend(unknown);
        if payout {
            members.push(("\"card_number\"".to_owned(), "\"4111111111111111\"".to_owned()));
        }
        (if payout { Payout } else { Payin }, object_text(&members))
    })
}

fn object_of<'v, 'a>(value: &'v Value<'a>) -> &'v Object<'a> {
    match &value.node {
        Node::Object(object) => object,
        _ => panic!("no object: {}", value.raw),
    }
}

fn check_translation(rules: &RuleSet, direction: Direction, sent: &str) -> Result<bool, TestCaseError> {
    let Ok(create) = read_create(direction, sent.as_bytes()) else { return Ok(false) };
    let (relay, mut bytes) = (CallbackUrl::new(RELAY).unwrap(), BodyBytes::default());
    let request = match translate(&create, merchant(rules), &relay, &mut bytes) {
        Ok(translated) => Ok(translated.request),
        Err(TranslateError::Shape(error)) => Err(error),
        Err(TranslateError::Rule(_)) => return Ok(false),
    };
    let forwarded = bytes.into_text();
    prop_assert_eq!(v2::read_create(direction, forwarded.as_bytes()), request, "{}", forwarded);
    let v2 = read(forwarded.as_bytes()).expect("what is forwarded is strict JSON");
    let v2 = object_of(&v2);
    let v1 = read(sent.as_bytes()).expect("it was read");
    let moved = match object_of(&v1).get("paymentData") {
        Some(Value { node: Node::Object(data), .. }) => data.0.as_slice(),
        _ => &[],
    };
    let fields = v2.get("fields").map(|fields| object_of(fields).0.as_slice()).unwrap_or_default();
    for member in moved {
        let found = fields.iter().find(|field| field.name == member.name);
        match found {
            Some(field) if field.value.raw == member.value.raw => prop_assert_eq!(field.raw_name, member.raw_name),
            Some(_) => prop_assert!(member.name == "merchant_user_ip" && member.value.node == Node::Null),
            None => prop_assert!(member.name == "return_user_url" && direction == Payin, "{} is lost", member.name),
        }
    }
    let from_outside = usize::from(create.merchant_user_ip.is_some());
    prop_assert!(fields.len() <= moved.len() + from_outside, "{forwarded}");
    Ok(true)
}

#[test]
fn every_accepted_body_is_forwarded_whole() {
    let strict = rules_of(DEFAULTS);
    let lenient = rules_of(&format!("{DEFAULTS}{LENIENT}"));
    let accepted = std::cell::Cell::new(0_u32);
    let config = ProptestConfig::default();
    let cases = config.cases.max(10_000);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig { cases, ..config });
    let checked = runner.run(&v1_body(), |(direction, sent)| {
        for rules in [&strict, &lenient] {
            accepted.set(accepted.get() + u32::from(check_translation(rules, direction, &sent)?));
        }
        Ok(())
    });
    checked.unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(accepted.get() > 2_000, "the bodies made up are near to good ones: {}", accepted.get());
}

proptest! {
    #[test]
    fn no_json_panics(text in json_text(), payout in any::<bool>(), bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let direction = if payout { Payout } else { Payin };
        let _ = read_create(direction, text.as_bytes());
        let _ = read_create(direction, &bytes);
        let _ = read_create(direction, format!("{{\"paymentData\":{text}}}").as_bytes());
    }
}
