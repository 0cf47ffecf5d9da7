//! `fields` over the wire: which schema is applied to whom, what needs no schema, and the customer's address.

use serde_json::{Value, json};

use crate::support::bodies::with;
use crate::support::request::ACME;
use crate::support::stored::Create;
use crate::v2::KINDS;
use crate::v2::table::Table;

/// A body through a shop without a schema, with these fields.
fn free(kind: Create, id: &str, fields: Value) -> Value {
    with(with(kind.body(id), "method", Some("slow-eur".into())), "fields", Some(fields))
}

// keeps P042, P043, P044, P046, P050, P051, P052, P056, P070, P071, P217, P218
#[tokio::test]
async fn each_shop_and_direction_has_its_own_schema() {
    let mut table = Table::new();
    // A member that the schema of this shop and direction refuses, and what it says elsewhere.
    let long_name = json!("x".repeat(41));
    for (member, value) in [
        ("fields.bank_code", json!("BANK-C")),
        ("fields.email", json!("nobody")),
        ("fields.first_name", long_name),
        ("fields.level", json!("1")),
    ] {
        table.refuse_member(Create::Deposit, member, &value.to_string()).await;
        let id = table.order();
        let by_default = with(Create::Deposit.body(&id), "method", None);
        table.refuse_in(Create::Deposit, &id, by_default, member, &value.to_string()).await;
        table.take_member(Create::Withdrawal, member, &value.to_string()).await;
        let id = table.order();
        let body = with(free(Create::Deposit, &id, json!({})), member, Some(value));
        table.take(Create::Deposit, &body.to_string(), None).await;
    }
    table.refuse_member(Create::Withdrawal, "fields.holder", "7").await;
    table.refuse_member(Create::Withdrawal, "fields.holder", "\"A\"").await;
    table.take_member(Create::Withdrawal, "fields.holder", "\"Ann Lee\"").await;
    table.take_member(Create::Deposit, "fields.holder", "7").await;
    for kind in KINDS {
        let id = table.order();
        let body = with(
            with(kind.body(&id), "method", Some("strict-eur".into())),
            "fields",
            Some(json!({ "merchant_user_ip": "::1" })),
        );
        let reply = table.refuse(kind, &id, body.to_string(), 400).await;
        assert_eq!(reply.message(), "fields.holder: is required");
        let body = with(body, "fields.holder", Some("Ann".into())).to_string();
        let id = table.order();
        table.take(kind, &with(body.parse().unwrap(), "order_id", Some(id.into())).to_string(), None).await;
    }
}

// keeps P057, P068, P069, D033
#[tokio::test]
async fn unknown_keys_are_ignored_where_there_is_a_schema() {
    let mut table = Table::new();
    for kind in KINDS {
        let id = table.order();
        let body = |extra: Value| with(kind.body(&id), "fields", Some(extra)).to_string();
        let first = table
            .send(&kind.request(&ACME, body(json!({ "unknown": { "deep": [1, null] }, "mobile_number": 7 }))))
            .await
            .expect(200);
        for same in [json!({}), json!({ "unknown": "else" }), json!({ "mobile_number": "0712345678" })] {
            assert_eq!(table.send(&kind.request(&ACME, body(same))).await.expect(200).text(), first.text());
        }
    }
    // `phone` is not looked at where `mobile_number` is required.
    let id = table.order();
    let mobile =
        with(with(Create::Deposit.body(&id), "method", Some("mobile-kes".into())), "currency", Some("KES".into()));
    let phone = with(mobile, "fields", Some(json!({ "phone": "0712345678" })));
    let reply = table.refuse(Create::Deposit, &id, phone.to_string(), 400).await;
    assert_eq!(reply.message(), "fields.mobile_number: is required");
}

// keeps P067, P275
#[tokio::test]
async fn a_mobile_number_is_text_with_its_leading_zero() {
    let mut table = Table::new();
    let mobile = |id: &str, number: Value| {
        let body =
            with(with(Create::Deposit.body(id), "method", Some("mobile-kes".into())), "currency", Some("KES".into()));
        with(body, "fields", Some(json!({ "mobile_number": number })))
    };
    let id = table.order();
    table.take(Create::Deposit, &mobile(&id, json!("0712345678")).to_string(), None).await;
    // The zero is significant: the same digits without it are another number.
    table.send(&Create::Deposit.request(&ACME, mobile(&id, json!("712345678")).to_string())).await.expect(409);
    table.send(&Create::Deposit.request(&ACME, mobile(&id, json!(712_345_678)).to_string())).await.expect(409);
    for bad in [json!("712345678"), json!(712_345_678), json!("+254712345678"), json!(" 0712345678"), json!(null)] {
        let id = table.order();
        let body = mobile(&id, bad.clone());
        table.refuse_in(Create::Deposit, &id, body, "fields.mobile_number", &bad.to_string()).await;
    }
}

// keeps P054, P055, P059, P060, P061, P062, P063, P064, P065, P066, P219, P220, D019
#[tokio::test]
async fn the_document_rules_hold_without_a_schema() {
    let mut table = Table::new();
    for kind in KINDS {
        for fields in [
            json!({}),
            json!({ "anything": { "goes": [1, "two", null, true, { "three": 3.5 }] }, "": "", "Method": 1, "METHOD": 2 }),
            json!({ "first_name": "Ann", "last_name": "", "middle_name": null, "email": "no address", "phone": "x" }),
            json!({ "deeper": { "method": 1, "customer_account_id": 2, "email": 3, "merchant_user_ip": 4, "success_url": 5 } }),
        ] {
            let id = table.order();
            table.take(kind, &free(kind, &id, fields).to_string(), None).await;
        }
        for name in ["first_name", "last_name", "middle_name", "email", "phone"] {
            for raw in ["7", "0", "false", "true", "[]", "[\"x\"]", "{}", "{\"x\":1}"] {
                let id = table.order();
                let body = free(kind, &id, json!({}));
                table.refuse_in(kind, &id, body, &format!("fields.{name}"), raw).await;
                table.refuse_member(kind, &format!("fields.{name}"), raw).await;
            }
        }
        let own: &[&str] = match kind {
            Create::Deposit => &["success_url", "pending_url", "fail_url", "return_user_url"],
            _ => &["account_channel", "recipient_account", "account_number"],
        };
        for name in ["method", "customer_account_id"].iter().chain(own) {
            for raw in ["\"https://acme.example/\"", "null", "\"\"", "7", "{}"] {
                let id = table.order();
                let body = free(kind, &id, json!({}));
                table.refuse_in(kind, &id, body, &format!("fields.{name}"), raw).await;
                table.refuse_member(kind, &format!("fields.{name}"), raw).await;
            }
        }
        // Escaped, a reserved name is still that name.
        let id = table.order();
        let body = free(kind, &id, json!({ "m?thod": 1 })).to_string().replace("m?thod", "m\\u0065thod");
        table.refuse(kind, &id, body, 400).await;
    }
}

/// What is no customer's address.
const NO_ADDRESSES: &[&str] = &[
    // keeps P072
    "7",
    "true",
    "false",
    "[]",
    "[\"203.0.113.9\"]",
    "{}",
    "{\"ip\":\"203.0.113.9\"}",
    "3405803785",
    // keeps P087
    "\"\"",
    // keeps P075
    "\" \"",
    "\" 203.0.113.9\"",
    "\"203.0.113.9 \"",
    "\"\\t203.0.113.9\"",
    "\"203.0.113.9\\n\"",
    "\"203.0.113.9\\u00a0\"",
    "\" ::1\"",
    // keeps P076
    "\"203.0.113.9:443\"",
    "\"203.0.113.9:\"",
    "\"[2001:db8::1]:443\"",
    "\"[2001:db8::1]\"",
    // keeps P077
    "\"203.0.113.0/24\"",
    "\"203.0.113.9/32\"",
    "\"2001:db8::/32\"",
    "\"::1/128\"",
    // keeps P078
    "\"203.0.113.9,203.0.113.10\"",
    "\"203.0.113.9, 203.0.113.10\"",
    "\"203.0.113.9 203.0.113.10\"",
    "\"203.0.113.9;::1\"",
    "\"203.0.113.9-10\"",
    // keeps P086
    "\"localhost\"",
    "\"203.0.113\"",
    "\"203.0.113.9.1\"",
    "\"256.1.1.1\"",
    "\"1.1.1.256\"",
    "\"010.1.1.1\"",
    "\"0x7f.0.0.1\"",
    "\"0x7f000001\"",
    "\"2130706433\"",
    "\"127.1\"",
    "\"-1.0.0.0\"",
    "\"+1.0.0.0\"",
    "\"203.0.113.9a\"",
    "\"::1%eth0\"",
    "\"fe80::1%1\"",
    "\":::\"",
    "\"1::2::3\"",
    "\"12345::\"",
    "\"::g\"",
    "\"1:2:3:4:5:6:7\"",
    "\"1:2:3:4:5:6:7:8:9\"",
    "\"::ffff:256.1.1.1\"",
    "\"２０３.0.113.9\"",
    "\"203。0。113。9\"",
    "\"unknown\"",
    "\"null\"",
    "\"203.0.113.9\\u0000\"",
];

// keeps P058, P072, P073, P074, P075, P076, P077, P078, P079, P081, P082, P083, P086, P087, P221
#[tokio::test]
async fn a_customers_address_is_exactly_one_address() {
    let mut table = Table::new();
    for kind in KINDS {
        for raw in NO_ADDRESSES {
            table.refuse_member(kind, "fields.merchant_user_ip", raw).await;
            let id = table.order();
            let body = free(kind, &id, json!({}));
            table.refuse_in(kind, &id, body, "fields.merchant_user_ip", raw).await;
        }
        for raw in [
            "\"203.0.113.9\"",
            "\"0.0.0.0\"",
            "\"255.255.255.255\"",
            "\"127.0.0.1\"",
            "\"2001:db8::1\"",
            "\"::\"",
            "\"::1\"",
            "\"2001:DB8:0:0:0:0:0:1\"",
            "\"::ffff:203.0.113.9\"",
            "\"64:ff9b::203.0.113.9\"",
            "null",
        ] {
            table.take_member(kind, "fields.merchant_user_ip", raw).await;
            let id = table.order();
            let body = with(free(kind, &id, json!({})), "fields.merchant_user_ip", serde_json::from_str(raw).unwrap());
            table.take(kind, &body.to_string(), None).await;
        }
        for shop in ["card-eur", "slow-eur"] {
            let id = table.order();
            let body = with(with(kind.body(&id), "method", Some(shop.into())), "fields.merchant_user_ip", None);
            table.take(kind, &body.to_string(), None).await;
        }
    }
}

// keeps P080, P084, P085, P088, P089, P222
#[tokio::test]
async fn a_required_address_is_neither_guessed_nor_filled_in() {
    let mut table = Table::new();
    for kind in KINDS {
        for ip in [None, Some(Value::Null)] {
            let id = table.order();
            let body = with(
                with(kind.body(&id), "method", Some("strict-eur".into())),
                "fields",
                Some(json!({ "holder": "Ann" })),
            );
            let body = with(body, "fields.merchant_user_ip", ip).to_string();
            // The connection has an address, and so does a header that claims one; the schema has a default.
            let request = kind.request(&ACME, body).header("X-Forwarded-For", "203.0.113.9");
            let reply = table.send(&request).await.expect(400);
            assert_eq!(reply.message(), "fields.merchant_user_ip: is required");
            table.assert_nothing_stored(kind, &id).await;
        }
    }
}

// keeps P093, P095, P130, P234
#[tokio::test]
async fn the_address_is_compared_and_is_no_identity() {
    let mut table = Table::new();
    for kind in KINDS {
        let id = table.order();
        let at = |ip: Option<&str>| with(kind.body(&id), "fields.merchant_user_ip", ip.map(Value::from)).to_string();
        table.take(kind, &at(Some("2001:db8::1")), None).await;
        for other in [Some("2001:db8::2"), Some("2001:DB8::1"), Some("2001:db8:0::1"), None] {
            let reply = table.send(&kind.request(&ACME, at(other))).await.expect(409);
            assert!(
                reply.message().contains("fields.merchant_user_ip") && !reply.message().contains("db8"),
                "{}",
                reply.message()
            );
        }
        table.take(kind, &at(Some("2001:db8::1")), None).await;
        // A merchant_user_id inside fields is not the customer.
        let id = table.order();
        let body = free(kind, &id, json!({ "merchant_user_id": 7 }));
        table.take(kind, &body.to_string(), None).await;
        let named = with(body, "customer_account_id", Some(json!(7))).to_string();
        let reply = table.send(&kind.request(&ACME, named)).await.expect(409);
        assert!(reply.message().contains("customer_account_id"), "{}", reply.message());
    }
}
