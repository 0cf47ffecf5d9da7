//! The engine's replies to v1 callers name members as the v1 body does, never as v2 does (contract section 5).

use super::*;

const SCHEMA: &str = r#"{"type":"object","required":["iban"],"properties":{
    "iban":{"type":"string"},"any":{"type":"number"},
    "address":{"type":"object","additionalProperties":false,"properties":{
        "street":{"type":"string"},"lines":{"type":"array","items":{"type":"string"}}}},
    "merchant_user_ip":{"type":"string","format":"ipv4"}}}"#;

/// Names of v2 that mean nothing to v1 callers.
const V2_WORDS: [&str; 12] = [
    "order_id",
    "method",
    "fields",
    "account_number",
    "account_channel",
    "customer_account_id",
    "success_url",
    "pending_url",
    "fail_url",
    "/api/v2",
    "JSON number",
    "JSON integer",
];

type Row = (fn(&World), Direction, &'static str, &'static str);

const SAME: fn(&World) = |_| {};

const ROWS: &[Row] = &[
    // Violations of the schema, at any depth.
    (SAME, Direction::Payin, r#""paymentData":{}"#, "paymentData.iban: is required"),
    (
        SAME,
        Direction::Payin,
        r#""paymentData":{"iban":"ABCDE","address":{"street":"s","method":1}}"#,
        "paymentData.address: must have no other members",
    ),
    (
        SAME,
        Direction::Payin,
        r#""paymentData":{"iban":"ABCDE","address":{"street":"s","lines":["a",7]}}"#,
        "paymentData.address.lines.1: must be a string",
    ),
    (SAME, Direction::Payin, r#""paymentData":{"iban":"ABCDE","any":1e999}"#, "paymentData.any: holds a number that"),
    // Customers' names and addresses, in either place.
    (SAME, Direction::Payin, r#""paymentData":{"iban":"ABCDE","email":7}"#, "paymentData.email: must be a string"),
    (SAME, Direction::Payout, r#""paymentData":{"phone":{}}"#, "paymentData.phone: must be a string"),
    (
        SAME,
        Direction::Payin,
        r#""merchant_user_ip":"::1","paymentData":{"iban":"ABCDE"}"#,
        "merchant_user_ip: must be an IPv4 address",
    ),
    (
        SAME,
        Direction::Payin,
        r#""paymentData":{"iban":"ABCDE","merchant_user_ip":"::1"}"#,
        "paymentData.merchant_user_ip: must be an IPv4 address",
    ),
    (
        |w| w.replace("shops/card.json", r#"["iban"]"#, r#"["merchant_user_ip"]"#),
        Direction::Payin,
        r#""paymentData":{"iban":"ABCDE","merchant_user_ip":null}"#,
        "merchant_user_ip: is required",
    ),
    // What paymentData must not contain.
    (
        SAME,
        Direction::Payin,
        r#""paymentData":{"iban":[],"return_user_url":7}"#,
        "paymentData.return_user_url: must be",
    ),
    // The shop.
    (SAME, Direction::Payin, r#""shop_code":"nowhere""#, "shop_code: must be the code of an active shop"),
    (SAME, Direction::Payout, r#""shop_code":"nowhere""#, "shop_code: must be the code of an active shop"),
    (
        |w| w.replace("shops/spare.toml", "currency", "active = false\ncurrency"),
        Direction::Payin,
        r#""shop_code":"spare""#,
        "shop_code: must be the code of an active shop",
    ),
    (
        |w| w.replace("merchants/acme.toml", "payout = true", "payout = false"),
        Direction::Payout,
        "",
        "shop_code: must be given: the default shop is not enabled",
    ),
    (
        |w| w.replace("merchants/acme.toml", "default_shop = \"card\"", ""),
        Direction::Payin,
        "",
        "shop_code: is required: there is no default shop",
    ),
    (
        |w| w.replace("merchants/acme.toml", "v2_secret", "shops = [\"card\"]\nv2_secret"),
        Direction::Payin,
        r#""shop_code":"spare""#,
        "shop_code: must be the code of an active shop",
    ),
    (SAME, Direction::Payin, r#""currency":"USD""#, "currency: must be the currency of the shop"),
    // The account.
    (SAME, Direction::Payout, r#""card_number":"41111111111""#, "card_number: must be 12 to 19 digits"),
    (
        |w| w.replace("shops/card.toml", "account = \"card\"", "account = \"mobile\""),
        Direction::Payout,
        "",
        "card_number: must be a + followed by 8 to 15 digits",
    ),
    (
        |w| w.replace("shops/card.toml", "account = \"card\"", "account = { pattern = \"^[A-Z]{4}$\" }"),
        Direction::Payout,
        "",
        "card_number: must have the format agreed for this shop",
    ),
];

/// A v1 body, `members` in place of or beside the usual ones, as they are spelt.
fn v1_body(direction: Direction, members: &str) -> String {
    let own = match direction {
        Direction::Payin => None,
        Direction::Payout => Some(("\"card_number\":", "\"4111111111111111\"")),
    };
    let usual =
        [("\"external_id\":", "\"o\""), ("\"amount\":", "\"10\""), ("\"currency\":", "\"EUR\"")].into_iter().chain(own);
    let usual = usual.filter(|(name, _)| !members.contains(name)).map(|(name, value)| format!("{name}{value}"));
    let all: Vec<_> = usual.chain((!members.is_empty()).then(|| members.to_owned())).collect();
    format!("{{{}}}", all.join(","))
}

fn assert_v1_words(reported: &str) {
    for word in V2_WORDS {
        assert!(!reported.contains(word), "{word} means nothing in v1: {reported}");
    }
}

#[tokio::test]
async fn errors_of_the_engine_name_v1_members() {
    for (change, direction, members, expected) in ROWS {
        let world = World::with(&[("shops/card.json", SCHEMA)]);
        change(&world);
        let reported = world.v1(*direction, &v1_body(*direction, members)).await.unwrap_err();
        assert!(reported.starts_with(&format!("400 {expected}")), "{members}: {reported}");
        assert_v1_words(&reported);
        let standing = world.store().by_order(&acme(), *direction, &OrderId::new("o").unwrap()).await.unwrap();
        assert_eq!(standing, crate::store::OrderLookup::Free, "{members}: a refused request stores nothing");
    }
}
