//! `order_id`, `currency`, `method`, `customer_account_id`, and members that are unknown or missing.

use serde_json::{Value, json};

use crate::support::bodies::with;
use crate::support::request::{ACME, ACME_PLAIN_ONLY, BETA};
use crate::support::stored::Create;
use crate::support::{Request, Rules, text};
use crate::v2::KINDS;
use crate::v2::table::{Table, assert_names, raw_member};

/// JSON values that are no strings.
const NO_STRINGS: &[&str] = &["null", "true", "7", "1.5", "[]", "[\"x\"]", "{}", "{\"x\":\"y\"}"];

// keeps P020, P112, P113, P114, P115, P153, P225, P247, D009, D010
#[tokio::test]
async fn order_ids_are_counted_in_unicode_characters() {
    let mut table = Table::new();
    let taken = [
        "a".to_owned(),
        " ".to_owned(),
        "  spaced out  ".to_owned(),
        "a".repeat(255),
        "é".repeat(255),
        "€".repeat(255),
        "😀".repeat(255),
        "e\u{301}".repeat(127),
        "\u{301}".repeat(255),
        "👩\u{200d}👩\u{200d}👧".to_owned(),
        "\u{feff}mark".to_owned(),
        "tab\tand\nnewline\u{1}".to_owned(),
        "\"quoted\\\" / <b>&amp;".to_owned(),
        "\u{7f}\u{85}\u{2028}\u{ffff}\u{10ffff}".to_owned(),
        "é".to_owned(),
        "e\u{301}".to_owned(),
        "E\u{301}".to_owned(),
        "%00".to_owned(),
        "\\u0000".to_owned(),
        "'; DROP TABLE operations; --".to_owned(),
    ];
    let refused = [
        String::new(),
        "a".repeat(256),
        "é".repeat(256),
        "😀".repeat(256),
        "e\u{301}".repeat(128),
        format!("{}\u{301}", "a".repeat(255)),
        "a".repeat(60_000),
        "\0".to_owned(),
        "a\0".to_owned(),
        "\0a".to_owned(),
        "😀\0😀".to_owned(),
    ];
    for kind in KINDS {
        for id in &taken {
            let record = table.take(kind, &kind.body(id).to_string(), None).await;
            assert_eq!(text(&record, "order_id"), id);
        }
        // A surrogate pair is one character, and an escape is what it stands for.
        let escaped = format!("\"{}{}\"", "\\uD83D\\uDE01".repeat(250), "\\u0041\\/\\n\\\\\\\"");
        table.take(kind, &raw_member(kind.body(""), "order_id", &escaped), None).await;
        let nul = raw_member(kind.body(""), "order_id", "\"a\\u0000\"");
        table.send(&kind.request(&ACME, nul)).await.expect(400);
        for raw in refused.iter().map(|id| Value::from(id.as_str()).to_string()) {
            let body = raw_member(kind.body(""), "order_id", &raw);
            assert_names(&table.send(&kind.request(&ACME, body)).await.expect(400), "order_id", &raw);
        }
        for raw in NO_STRINGS {
            let body = raw_member(kind.body(""), "order_id", raw);
            assert_names(&table.send(&kind.request(&ACME, body)).await.expect(400), "order_id", raw);
        }
    }
}

// keeps P024, P121, P122, P123, P155, P225, P249, D008, D020
#[tokio::test]
async fn currencies_are_three_letters_in_any_case() {
    let mut table = Table::new();
    for kind in KINDS {
        for raw in ["\"EUR\"", "\"eur\"", "\"Eur\"", "\"eUR\"", "\"\\u0045UR\""] {
            let record = table.take_member(kind, "currency", raw).await;
            assert_eq!(text(&record, "currency"), "EUR");
        }
        // Not three letters, look-alikes, fold-alikes, and codes that are not the shop's.
        let refused = [
            "\"\"",
            "\"E\"",
            "\"EU\"",
            "\"EURO\"",
            "\"E R\"",
            "\" EUR\"",
            "\"EUR \"",
            "\"EUR\\n\"",
            "\"E1R\"",
            "\"978\"",
            "\"€\"",
            "\"ЕUR\"",
            "\"ＥＵＲ\"",
            "\"ÉUR\"",
            "\"EU\\u0000\"",
            "\"USD\"",
            "\"usd\"",
            "\"KES\"",
            "\"XXX\"",
            "\"ſur\"",
        ];
        for raw in refused.into_iter().chain(NO_STRINGS.iter().copied()) {
            table.refuse_member(kind, "currency", raw).await;
        }
    }
}

// keeps P007, P008, P009, P010, P025, P026, P124, P125, P126, P156, P225, P262, D020, D030
#[tokio::test]
async fn a_method_is_the_exact_code_of_an_active_enabled_shop() {
    let mut table = Table::new();
    for kind in KINDS {
        for raw in ["\"card-eur\"", "\"slow-eur\"", "\"c\\u0061rd-eur\""] {
            table.take_member(kind, "method", raw).await;
        }
        let id = table.order();
        let record = table.take(kind, &with(kind.body(&id), "method", None).to_string(), None).await;
        assert_eq!(text(&record, "method"), "card", "the default shop's payment method");
        let refused = [
            "\"\"",
            "\" \"",
            "\" card-eur\"",
            "\"card-eur \"",
            "\"card-eur\\n\"",
            "\"\\tcard-eur\"",
            "\"card-eur\\u00a0\"",
            "\"Card-eur\"",
            "\"CARD-EUR\"",
            "\"card_eur\"",
            "\"card-eur\\u0000\"",
            "\"card-eur.toml\"",
            "\"../shops/card-eur\"",
            "\"nowhere-at-all\"",
            "\"off-eur\"",
            "\"beta-only\"",
            "\"card\"",
            "\"strict.json\"",
            "\"ｃard-eur\"",
        ];
        for raw in refused.into_iter().chain(NO_STRINGS.iter().copied()) {
            table.refuse_member(kind, "method", raw).await;
        }
        let long = format!("\"{}\"", "card-eur".repeat(5000));
        table.refuse_member(kind, "method", &long).await;
    }
    // Enabled for one direction only, and by a key that may use one shop only.
    table.take_member(Create::Deposit, "method", "\"half-eur\"").await;
    table.refuse_member(Create::Withdrawal, "method", "\"half-eur\"").await;
    let id = table.order();
    let narrow = |body: Value| Request::deposit(&ACME_PLAIN_ONLY, &body);
    let dollars = |body: Value| with(with(body, "method", Some("plain-usd".into())), "currency", Some("USD".into()));
    assert_names(&table.send(&narrow(Create::Deposit.body(&id))).await.expect(400), "method", "\"card-eur\"");
    table.send(&narrow(dollars(Create::Deposit.body(&id)))).await.expect(200);
    // Without a default shop, and with one that is not active, a method has to be named.
    let omitted = with(Create::Deposit.body("none"), "method", None);
    assert_names(&table.send(&Request::deposit(&BETA, &omitted)).await.expect(400), "method", "null");
    let mut inactive = Table::with(&Rules::default().edit(
        "merchants/acme.toml",
        "default_shop = \"card-eur\"",
        "default_shop = \"off-eur\"",
    ));
    assert_names(&inactive.send(&Request::deposit(&ACME, &omitted)).await.expect(400), "method", "null");
    inactive.take_member(Create::Deposit, "method", "\"card-eur\"").await;
}

// keeps P127, P128, P129, P130, P131, P157, P225, P250, D011, D012
#[tokio::test]
async fn customer_account_ids_are_integers_of_64_bits() {
    let mut table = Table::new();
    for kind in KINDS {
        for raw in ["0", "1", "-1", "42", "9223372036854775807", "-9223372036854775808", "null", "9007199254740993"] {
            table.take_member(kind, "customer_account_id", raw).await;
        }
        let refused = [
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551616",
            "1.0",
            "0.0",
            "-0.0",
            "1e3",
            "1E0",
            "1e-0",
            "0e0",
            "10e-1",
            "1e400",
            "\"5\"",
            "\"0\"",
            "\"\"",
            "\"customer-007\"",
            "true",
            "false",
            "[]",
            "[5]",
            "{}",
        ];
        for raw in refused {
            table.refuse_member(kind, "customer_account_id", raw).await;
        }
        let long = "7".repeat(60_000);
        table.refuse_member(kind, "customer_account_id", &long).await;
    }
}

// keeps P130, D029
#[tokio::test]
async fn a_customer_account_id_of_0_is_not_an_absent_one() {
    let mut table = Table::new();
    for kind in KINDS {
        let id = table.order();
        let sent = |raw: &str| raw_member(kind.body(&id), "customer_account_id", raw);
        let first = table.send(&kind.request(&ACME, sent("0"))).await.expect(200);
        assert_eq!(table.send(&kind.request(&ACME, sent("0"))).await.expect(200).text(), first.text());
        for other in ["null", "1"] {
            table.send(&kind.request(&ACME, sent(other))).await.expect(409);
        }
        let absent = table.send(&kind.request(&ACME, kind.body(&id).to_string())).await.expect(409);
        assert!(absent.message().contains("customer_account_id"), "{}", absent.message());
    }
}

// keeps P094, P095, P145, P146, P152, P215, P259
#[tokio::test]
async fn unknown_members_are_refused_whatever_they_hold() {
    let mut table = Table::new();
    let common = [
        "return_user_url",
        "merchant_user_ip",
        "merchant_user_id",
        "external_id",
        "shop_code",
        "paymentData",
        "card_number",
        "Amount",
        "AMOUNT",
        "order_id ",
        " order_id",
        "orderId",
        "order-id",
        "metadata",
        "description",
        "status",
        "redirect_url",
        "transaction_id",
        "recipient_account",
        "notify_url",
        "payment_method",
        "__proto__",
        "$serde_json::private::Number",
        "amount\u{0}",
        "ａmount",
        "customer_account_id[]",
        "fields.email",
    ];
    for (kind, own) in [
        (Create::Deposit, ["account_number", "account_channel", "card_number"]),
        (Create::Withdrawal, ["success_url", "pending_url", "fail_url"]),
    ] {
        for name in common.into_iter().chain(own) {
            for value in [json!("x"), json!(null), json!(1), json!({})] {
                let id = table.order();
                let mut body = kind.body(&id);
                body.as_object_mut().unwrap().insert(name.to_owned(), value);
                let message = table.refuse(kind, &id, body.to_string(), 400).await.message();
                let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
                assert!(!plain || message.starts_with(&format!("{name}:")), "{name} is not named: {message}");
            }
        }
        let id = table.order();
        let mut body = kind.body(&id);
        body.as_object_mut().unwrap().insert(String::new(), json!(1));
        table.refuse(kind, &id, body.to_string(), 400).await;
        // A name of 60,000 characters does not come back.
        let mut body = kind.body(&id);
        body.as_object_mut().unwrap().insert("n".repeat(60_000), json!(1));
        let message = table.refuse(kind, &id, body.to_string(), 400).await.message();
        assert!(message.len() < 400, "a long message");
    }
}

// keeps P112, P116, P121, P133, P137, P138, P139, P158, P160, P225
#[tokio::test]
async fn required_members_may_not_be_missing() {
    let mut table = Table::new();
    for (kind, own) in
        [(Create::Deposit, &["success_url", "pending_url", "fail_url"][..]), (Create::Withdrawal, &["account_number"])]
    {
        for member in ["amount", "currency", "callback_url"].iter().chain(own) {
            let id = table.order();
            let body = with(kind.body(&id), member, None).to_string();
            let reply = table.refuse(kind, &id, body, 400).await;
            assert_eq!(reply.message(), format!("{member}: is required"));
        }
        let body = with(kind.body(""), "order_id", None).to_string();
        assert_eq!(table.send(&kind.request(&ACME, body)).await.expect(400).message(), "order_id: is required");
        table.send(&kind.request(&ACME, "{}")).await.expect(400);
    }
}
