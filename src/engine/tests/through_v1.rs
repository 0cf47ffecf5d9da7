//! Operations that were made through v1, over the real store: what repeats them, what does not, and in whose words.

use super::*;

/// Everything that only a lenient merchant may send.
const LENIENT: &str = r#"{"external_id":"lenient","amount":"10.50","currency":"EUR","callback_url":"http://a.example/cb",
    "merchant_user_id":"user-7","surprise":{"of":[1]},"paymentData":[]}"#;

/// As little as the rules let be left out, and something that the shop's schema has a word on.
const FILLED_IN: &str = r#"{"external_id":"filled","amount":"10.50","currency":"EUR","merchant_user_id":"42",
    "merchant_user_ip":"2001:db8::1","paymentData":{"bank_code":"b1","level":1.50,"dropped":[1]}}"#;

const NAMED: &str = r#"{"external_id":"named","amount":"10.50","currency":"EUR","shop_code":"card",
    "callback_url":"https://a.example/own","merchant_user_id":"42","merchant_user_ip":"2001:db8::1",
    "paymentData":{"return_user_url":"https://a.example/own-return","bank_code":"b1"}}"#;

const PAYOUT: &str = r#"{"external_id":"out","amount":"10.50","currency":"EUR","card_number":"4111111111111111"}"#;

const BODIES: [(Direction, &str); 4] = [
    (Direction::Payin, LENIENT),
    (Direction::Payin, FILLED_IN),
    (Direction::Payin, NAMED),
    (Direction::Payout, PAYOUT),
];

const LENIENT_RULES: &str = "[v1]\nnon_numeric_user_id = \"omit\"\nunknown_fields = \"ignore\"\n\
    allow_http_callbacks = true\n";

fn lenient_world() -> World {
    let acme = ACME.replace("[v1]\n", LENIENT_RULES);
    World::with(&[("merchants/acme.toml", &acme), ("dialects/v1.toml", "requests.empty_list_is_object = true\n")])
}

const ACME_FILE: &str = "merchants/acme.toml";

#[tokio::test]
async fn another_key_of_the_merchant_repeats_too() {
    let world = World::new();
    let first = world.v1(Direction::Payin, FILLED_IN).await.unwrap();
    let key = "[[api_keys]]\nkey = \"k2\"\nv1_secret = \"v1\"\nv2_secret = \"s\"\nallowed_ips = [\"127.0.0.1\"]\n\
               shops = [\"spare\"]\n[v1]";
    world.replace(ACME_FILE, "[v1]", key);
    assert_eq!(world.v1_with("k2", Direction::Payin, FILLED_IN).await, Ok(first));
    let other = world.v1_with("k2", Direction::Payin, &FILLED_IN.replace("10.50", "11")).await;
    assert_eq!(other, v1_differs_in("amount"));
    let of_other = world.v1_with("o", Direction::Payin, FILLED_IN).await;
    assert!(of_other.is_ok(), "another merchant's external_id is its own");
}

/// Returns the message of a v1 409 that names the members in which a body differs.
fn v1_differs_in(members: &str) -> Result<String, String> {
    Err(format!("409 external_id: exists already and was created from other data; differs in: {members}"))
}

/// A body with the JSON text of members in place of or beside its own; `None` takes one away.
fn changed(body: &str, members: &[(&str, Option<&str>)]) -> String {
    let mut object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(body).unwrap();
    for (name, text) in members {
        let (outer, inner) = name.split_once('.').unwrap_or((name, ""));
        let place = match inner {
            "" => &mut object,
            _ => object[outer].as_object_mut().unwrap(),
        };
        let name = if inner.is_empty() { outer } else { inner };
        match text {
            Some(text) => place.insert(name.to_owned(), serde_json::from_str(text).unwrap()),
            None => place.remove(name),
        };
    }
    serde_json::to_string(&object).unwrap()
}

/// A body, what is changed in it, and the members that the conflict names.
type Conflict = (Direction, &'static str, &'static [(&'static str, Option<&'static str>)], &'static str);

const CONFLICTS: &[Conflict] = &[
    (Direction::Payin, NAMED, &[("amount", Some("\"10.51\""))], "amount"),
    // Another spelling is no difference, beside one either.
    (
        Direction::Payin,
        NAMED,
        &[("amount", Some("\"0010.5\"")), ("merchant_user_id", Some("\"\\u00343\""))],
        "merchant_user_id",
    ),
    (
        Direction::Payin,
        FILLED_IN,
        &[("amount", Some("\"11\"")), ("shop_code", Some("null")), ("paymentData.level", Some("1.5"))],
        "amount",
    ),
    (Direction::Payin, NAMED, &[("currency", Some("\"USD\""))], "currency"),
    (Direction::Payin, NAMED, &[("currency", Some("\"eur\""))], "currency"),
    (Direction::Payin, NAMED, &[("shop_code", Some("\"spare\""))], "shop_code"),
    (Direction::Payin, NAMED, &[("shop_code", None)], "shop_code"),
    (Direction::Payin, FILLED_IN, &[("shop_code", Some("\"card\""))], "shop_code"),
    (Direction::Payin, NAMED, &[("callback_url", Some("\"https://a.example/other\""))], "callback_url"),
    // The addresses that the rules fill in are not members of the body.
    (Direction::Payin, NAMED, &[("callback_url", None)], "callback_url"),
    (Direction::Payin, FILLED_IN, &[("callback_url", Some("\"https://a.example/v1\""))], "callback_url"),
    (Direction::Payin, NAMED, &[("merchant_user_id", Some("\"43\""))], "merchant_user_id"),
    (Direction::Payin, NAMED, &[("merchant_user_id", Some("42"))], "merchant_user_id"),
    (Direction::Payin, LENIENT, &[("merchant_user_id", Some("\"user-8\""))], "merchant_user_id"),
    (Direction::Payin, LENIENT, &[("merchant_user_id", None)], "merchant_user_id"),
    (Direction::Payin, NAMED, &[("merchant_user_ip", Some("\"2001:db8::2\""))], "merchant_user_ip"),
    (Direction::Payin, NAMED, &[("merchant_user_ip", None)], "merchant_user_ip"),
    (Direction::Payin, NAMED, &[("paymentData.bank_code", Some("\"b2\""))], "paymentData.bank_code"),
    (Direction::Payin, NAMED, &[("paymentData.bank_code", None)], "paymentData.bank_code"),
    (Direction::Payin, NAMED, &[("paymentData.level", Some("1"))], "paymentData.level"),
    (
        Direction::Payin,
        NAMED,
        &[("paymentData.return_user_url", Some("\"https://a.example/other\""))],
        "paymentData.return_user_url",
    ),
    // What was dropped is not kept, and so not known.
    (Direction::Payin, FILLED_IN, &[("paymentData.dropped", Some("[2]"))], "paymentData"),
    (Direction::Payin, FILLED_IN, &[("paymentData", None)], "paymentData.bank_code, paymentData.level"),
    (Direction::Payin, FILLED_IN, &[("paymentData", Some("{}"))], "paymentData.bank_code, paymentData.level"),
    (Direction::Payin, LENIENT, &[("paymentData", Some("{\"dropped\":1}"))], "paymentData"),
    (Direction::Payin, LENIENT, &[("surprise", Some("{\"of\":[2]}"))], "unknown fields"),
    (Direction::Payin, LENIENT, &[("surprise", None)], "unknown fields"),
    (Direction::Payin, LENIENT, &[("another", Some("1"))], "unknown fields"),
    (
        Direction::Payin,
        NAMED,
        &[("amount", Some("\"1\"")), ("shop_code", None), ("paymentData.bank_code", None), ("more", Some("1"))],
        "amount, shop_code, paymentData.bank_code, unknown fields",
    ),
    (Direction::Payout, PAYOUT, &[("card_number", Some("\"4111111111111112\""))], "card_number"),
    (Direction::Payout, PAYOUT, &[("paymentData", Some("{\"holder\":\"Ann\"}"))], "paymentData.holder"),
];

// keeps P246
#[tokio::test]
async fn a_v1_conflict_names_the_members_that_differ() {
    let strict: fn(&World) = |w| {
        w.replace(ACME_FILE, LENIENT_RULES, "[v1]\n");
        w.replace(ACME_FILE, "return_url =", "# return_url =");
        w.edit("dialects/v1.toml", "signature.window = \"2m\"\n");
    };
    let nothing: fn(&World) = |_| {};
    let closed: fn(&World) = |w| w.replace("shops/card.toml", "[payin]", "active = false\n[payin]");
    for (name, change) in [("nothing", nothing), ("strict", strict), ("the shop closed", closed)] {
        let world = lenient_world();
        for (direction, body) in BODIES {
            world.v1(direction, body).await.unwrap();
        }
        change(&world);
        for (direction, body, members, named) in CONFLICTS {
            let other = world.v1(*direction, &changed(body, members)).await;
            assert_eq!(other, v1_differs_in(named), "{name}: {members:?} of {body}");
        }
    }
}

#[tokio::test]
async fn without_a_schema_all_of_payment_data_is_known() {
    let body = r#"{"external_id":"o","amount":"1","currency":"EUR","shop_code":"spare",
        "paymentData":{"return_user_url":"https://a.example/own","any":{"thing":1.0}}}"#;
    let world = World::new();
    let first = world.v1(Direction::Payin, body).await.unwrap();
    assert_eq!(world.v1(Direction::Payin, &body.replace("1.0", "10e-1")).await, Ok(first));
    for (members, named) in [
        (&[("paymentData.any", Some("{\"thing\":2}"))][..], "paymentData.any"),
        (&[("paymentData.more", Some("null"))], "paymentData.more"),
        (&[("paymentData.return_user_url", None)], "paymentData.return_user_url"),
        (&[("paymentData.merchant_user_ip", Some("\"::1\""))], "paymentData.merchant_user_ip"),
        (&[("merchant_user_ip", Some("\"::1\""))], "merchant_user_ip"),
    ] {
        assert_eq!(world.v1(Direction::Payin, &changed(body, members)).await, v1_differs_in(named), "{members:?}");
    }
}

#[tokio::test]
async fn a_null_address_is_like_an_absent_one_wherever_it_stands() {
    let world = World::new();
    let first = world.v1(Direction::Payin, &changed(FILLED_IN, &[("merchant_user_ip", None)])).await.unwrap();
    for nulls in [
        &[("merchant_user_ip", Some("null"))][..],
        &[("merchant_user_ip", None), ("paymentData.merchant_user_ip", Some("null"))],
        &[("merchant_user_ip", Some("null")), ("paymentData.merchant_user_ip", Some("null"))],
    ] {
        assert_eq!(world.v1(Direction::Payin, &changed(FILLED_IN, nulls)).await.as_ref(), Ok(&first), "{nulls:?}");
    }
    let moved = &[("merchant_user_ip", None), ("paymentData.merchant_user_ip", Some("\"::1\""))];
    let other = world.v1(Direction::Payin, &changed(FILLED_IN, moved)).await;
    assert_eq!(other, v1_differs_in("paymentData.merchant_user_ip"));
}
