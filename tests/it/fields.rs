//! Shop fields over the wire: schemas of either direction, lists, defaults, customer fields and the customer's address
//! (promises P040 to P095; contract section 2, "shops/card-eur.toml").

use serde_json::{Value, json};

use crate::support::bodies::with;
use crate::support::reply::assert_same;
use crate::support::request::{ACME, GAMMA};
use crate::support::stored::Create;
use crate::support::{Client, Gateway, Request, Rules, eventually, payin, withdrawal};

const KINDS: [Create; 2] = [Create::Deposit, Create::Withdrawal];

/// A world where `card-eur` has these schemas.
fn rules(payin: &Value, payout: &Value) -> Rules {
    Rules::default()
        .file("shops/card-eur.payin.json", payin.to_string())
        .file("shops/card-eur.payout.json", payout.to_string())
}

fn schema(properties: &Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

fn body(kind: Create, id: &str, fields: &Value) -> Value {
    with(kind.body(id), "fields", Some(fields.clone()))
}

async fn accepted(client: &Client, kind: Create, id: &str, fields: &Value) {
    kind.create(client, &ACME, &body(kind, id, fields)).await;
}

/// Refused, with the member named and no value shown, and nothing stored.
async fn refused(client: &Client, kind: Create, id: &str, fields: &Value, member: &str) {
    let reply = client.send(&kind.request(&ACME, body(kind, id, fields).to_string())).await.expect(400);
    let message = reply.message();
    assert!(message.starts_with(&format!("{member}: ")), "{fields}: {member} expected: {message}");
    assert!(!message.contains("s3cret"), "{message}");
    let good = with(with(kind.body(id), "amount", Some(json!(991.17))), "fields", Some(json!({ "need": "x" })));
    kind.create(client, &ACME, &good).await;
}

/// A member, values that fit, and values that do not with the place below the member that is named.
type Row<'a> = (&'a str, &'a [Value], &'a [(Value, &'a str)]);

#[tokio::test]
async fn every_rule_of_a_schema_holds() {
    let properties = json!({
        "need": { "type": "string" },
        "text": { "type": "string", "minLength": 2, "maxLength": 10 },
        "whole": { "type": "integer", "minimum": 1, "maximum": 5 },
        "either": { "type": ["string", "null"] },
        "word": { "enum": ["one", 2, null] },
        "fixed": { "const": { "a": [1] } },
        "code": { "pattern": "^[A-Z]{3}$" },
        "mail": { "format": "email" },
        "day": { "format": "date" },
        "bank": { "x-allowed-list": "banks" },
        "banks": { "type": "array", "items": { "x-allowed-list": "banks" }, "uniqueItems": true },
        "address": { "type": "object", "required": ["city"], "additionalProperties": false,
            "properties": { "city": { "type": "string" }, "lines": { "items": { "maxLength": 9 } } } },
    });
    let mut schema = schema(&properties);
    schema["required"] = json!(["need"]);
    let gateway = Gateway::start(&rules(&schema, &schema));
    let client = gateway.client();
    let rows: &[Row<'_>] = &[
        ("need", &[json!("")], &[(json!(null), ""), (json!(5), ""), (json!([]), "")]),
        (
            "text",
            &[json!("ab"), json!("éé😀éééééé€")],
            &[(json!("a"), ""), (json!("12345678901"), ""), (json!(null), "")],
        ),
        (
            "whole",
            &[json!(1), json!(5), json!(2.0)],
            &[(json!(0), ""), (json!(6), ""), (json!(1.5), ""), (json!("1"), "")],
        ),
        ("either", &[json!("x"), json!(null)], &[(json!(1), "")]),
        ("word", &[json!("one"), json!(2), json!(2.0), json!(null)], &[(json!("s3cret"), ""), (json!("2"), "")]),
        ("fixed", &[json!({ "a": [1.0] })], &[(json!({ "a": [1, 1] }), ""), (json!({}), "")]),
        ("code", &[json!("ABC"), json!(7)], &[(json!("abc"), ""), (json!("ABCD"), ""), (json!("ABC\n"), "")]),
        ("mail", &[json!("ann@example.com")], &[(json!("s3cret"), ""), (json!(""), "")]),
        ("day", &[json!("2024-02-29")], &[(json!("2023-02-29"), "")]),
        ("bank", &[json!("BANK-A")], &[(json!("BANK-G"), ""), (json!(null), ""), (json!("# banks that are open"), "")]),
        (
            "banks",
            &[json!([]), json!(["BANK-A", "BANK-B"])],
            &[(json!(["BANK-A", "s3cret"]), ".1"), (json!(["BANK-A", "BANK-A"]), "")],
        ),
        (
            "address",
            &[json!({ "city": "Riga", "lines": ["a"] })],
            &[
                (json!({}), ".city"),
                (json!({ "city": 5 }), ".city"),
                (json!({ "city": "Riga", "s3cret": 1 }), ""),
                (json!({ "city": "Riga", "lines": ["a", "s3cret too long"] }), ".lines.1"),
            ],
        ),
    ];
    for kind in KINDS {
        for (name, good, bad) in rows {
            for (number, value) in good.iter().enumerate() {
                let fields = with(json!({ "need": "x" }), name, Some(value.clone()));
                accepted(&client, kind, &format!("good-{name}-{number}"), &fields).await;
            }
            for (number, (value, below)) in bad.iter().enumerate() {
                let fields = with(json!({ "need": "x" }), name, Some(value.clone()));
                refused(&client, kind, &format!("bad-{name}-{number}"), &fields, &format!("fields.{name}{below}"))
                    .await;
            }
        }
        refused(&client, kind, "empty", &json!({}), "fields.need").await;
        let absent = with(kind.body("absent"), "fields", None).to_string();
        let message = client.send(&kind.request(&ACME, absent)).await.expect(400).message();
        assert_eq!(message, "fields.need: is required", "absent fields are like {{}}");
    }
}

#[tokio::test]
async fn v1_names_the_members_of_payment_data() {
    let schema = schema(
        &json!({ "address": { "properties": { "city": { "type": "string" } } }, "email": { "format": "email" } }),
    );
    let gateway = Gateway::start(&rules(&schema, &schema));
    let client = gateway.client();
    for (id, member, value, named) in [
        ("nested", "paymentData.address", json!({ "city": 5 }), "paymentData.address.city: must be a string"),
        ("format", "paymentData.email", json!("nobody"), "paymentData.email: must be an email address"),
        ("customer", "paymentData.phone", json!(5), "paymentData.phone: must be a string"),
    ] {
        let bad = with(payin(id), member, Some(value)).to_string();
        let message = Create::Payin.assert_refused(&client, &ACME, id, bad, 400).await.message();
        assert!(message.starts_with(named), "{named} expected: {message}");
    }
}

#[tokio::test]
async fn directions_have_schemas_of_their_own_or_none() {
    let deposits = schema(&json!({ "need": { "type": "string" }, "both": { "type": "string" } }));
    let withdrawals = schema(&json!({ "need": { "type": "string" }, "both": { "type": "integer" } }));
    let gateway = Gateway::start(&rules(&deposits, &withdrawals));
    let client = gateway.client();
    accepted(&client, Create::Deposit, "text", &json!({ "both": "x" })).await;
    accepted(&client, Create::Withdrawal, "number", &json!({ "both": 1 })).await;
    refused(&client, Create::Deposit, "number", &json!({ "both": 1 }), "fields.both").await;
    refused(&client, Create::Withdrawal, "text", &json!({ "both": "x" }), "fields.both").await;
    // Unknown keys are dropped where there is a schema: a repeat without them is the same. Nested ones are data.
    let unknown = json!({ "both": "x", "unknown": { "deep": 1 } });
    let first = Create::Deposit.create(&client, &ACME, &body(Create::Deposit, "dropped", &unknown)).await;
    let without = body(Create::Deposit, "dropped", &json!({ "both": "x", "other": true }));
    assert_same(&Create::Deposit.create(&client, &ACME, &without).await, &first);
    // Without a schema nothing is dropped, and everything but customer fields, the address and reserved names passes.
    let free = json!({ "any": [{ "thing": null }], "email": "not checked", "merchant_user_ip": "::1", "phone": "" });
    let plain = |id: &str, fields: &Value| with(body(Create::Deposit, id, fields), "method", Some("slow-eur".into()));
    let first = Create::Deposit.create(&client, &ACME, &plain("free", &free)).await;
    assert_same(&Create::Deposit.create(&client, &ACME, &plain("free", &free)).await, &first);
    let other = with(free, "any", None);
    client.send(&Request::deposit(&ACME, &plain("free", &other))).await.expect(409);
}

#[tokio::test]
async fn customer_fields_are_strings_whatever_the_schema_says() {
    let other =
        schema(&json!({ "phone": { "type": "integer" }, "email": {}, "first_name": { "type": ["string", "null"] },
        "need": {} }));
    let gateway = Gateway::start(&rules(&other, &other));
    let client = gateway.client();
    for kind in KINDS {
        for (number, (fields, member)) in [
            (json!({ "phone": 5 }), "fields.phone"),
            (json!({ "phone": "5" }), "fields.phone"),
            (json!({ "phone": "" }), "fields.phone"),
            (json!({ "email": { "a": 1 } }), "fields.email"),
            (json!({ "email": false }), "fields.email"),
            (json!({ "email": [] }), "fields.email"),
            (json!({ "first_name": 0 }), "fields.first_name"),
            // Not even those that the schema drops.
            (json!({ "middle_name": 7 }), "fields.middle_name"),
            (json!({ "last_name": {} }), "fields.last_name"),
        ]
        .into_iter()
        .enumerate()
        {
            refused(&client, kind, &format!("customer-{number}"), &fields, member).await;
        }
        accepted(&client, kind, "null", &json!({ "email": null, "first_name": null, "last_name": null })).await;
        accepted(&client, kind, "empty", &json!({ "email": "", "first_name": "", "middle_name": "" })).await;
    }
}

#[tokio::test]
async fn merchant_user_ip_is_what_the_merchant_sent() {
    let required = json!({ "required": ["merchant_user_ip"], "additionalProperties": false });
    let narrow = schema(&json!({ "merchant_user_ip": { "format": "ipv4", "default": "192.0.2.1" }, "need": {} }));
    let gateway = Gateway::start(&rules(&required, &narrow));
    let client = gateway.client();
    // Neither the connection's address nor a forwarding header stands in, and neither does null or a default.
    for (id, fields) in [("none", json!({})), ("null", json!({ "merchant_user_ip": null }))] {
        let request = Create::Deposit.request(&ACME, body(Create::Deposit, id, &fields).to_string());
        let forwarded = request.header("x-forwarded-for", "203.0.113.9").header("forwarded", "for=203.0.113.9");
        let message = client.send(&forwarded).await.expect(400).message();
        assert_eq!(message, "fields.merchant_user_ip: is required");
    }
    for bad in ["", " ::1", "::1 ", "203.0.113.9:80", "203.0.113.0/24", "203.0.113.9, 203.0.113.8", "localhost"] {
        let fields = json!({ "merchant_user_ip": bad });
        let body = body(Create::Deposit, "bad", &fields).to_string();
        let message = client.send(&Create::Deposit.request(&ACME, body)).await.expect(400).message();
        assert!(message.starts_with("fields.merchant_user_ip: "), "{bad:?}: {message}");
    }
    accepted(&client, Create::Deposit, "bad", &json!({ "merchant_user_ip": "203.0.113.9" })).await;
    accepted(&client, Create::Withdrawal, "optional", &json!({})).await;
    accepted(&client, Create::Withdrawal, "as-null", &json!({ "merchant_user_ip": null })).await;
    accepted(&client, Create::Withdrawal, "given", &json!({ "merchant_user_ip": "203.0.113.9" })).await;
    refused(&client, Create::Withdrawal, "v6", &json!({ "merchant_user_ip": "::1" }), "fields.merchant_user_ip").await;
    // The default was no value of the first request.
    let default = body(Create::Withdrawal, "optional", &json!({ "merchant_user_ip": "192.0.2.1" })).to_string();
    client.send(&Create::Withdrawal.request(&ACME, default)).await.expect(409);
}

#[tokio::test]
async fn lists_and_schemas_change_while_the_gateway_runs() {
    let listed = schema(&json!({ "bank": { "x-allowed-list": "banks" }, "need": {} }));
    let gateway = Gateway::start(&rules(&listed, &listed));
    let client = gateway.client();
    let create = async |key, id: &str, bank: &str| {
        let kind = Create::Deposit;
        client.send(&kind.request(key, body(kind, id, &json!({ "bank": bank })).to_string())).await.status
    };
    assert_eq!(create(&ACME, "a", "BANK-A").await, 200);
    assert_eq!(create(&ACME, "b", "BANK-G").await, 400);
    assert_eq!(create(&GAMMA, "a", "BANK-G").await, 200, "a list of its own");
    assert_eq!(create(&GAMMA, "b", "BANK-A").await, 400, "in place of the common one");
    std::fs::write(gateway.rules_dir().join("lists/banks.txt"), "BANK-N\n").unwrap();
    eventually("the new list serves", async || (create(&ACME, "b", "BANK-N").await == 200).then_some(())).await;
    assert_eq!(create(&ACME, "c", "BANK-B").await, 400);
    assert_eq!(create(&ACME, "a", "BANK-A").await, 200, "a repeat is answered before today's rules");
    assert_eq!(create(&GAMMA, "c", "BANK-G").await, 200, "its own list is as it was");
}

#[tokio::test]
async fn long_texts_and_numbers_out_of_range_are_refused() {
    let pattern = schema(&json!({ "a": { "pattern": "[ab]*a[ab]{200}c" }, "need": {} }));
    let gateway = Gateway::start(&rules(&pattern, &pattern));
    let client = gateway.client();
    refused(&client, Create::Deposit, "long", &json!({ "a": "ab".repeat(31_000) }), "fields.a").await;
    refused(&client, Create::Deposit, "number", &serde_json::from_str("{\"a\":\"\\u0000\"}").unwrap(), "fields.a")
        .await;
    for number in ["1e400", "-1e400", "1e999999999"] {
        let body = with(withdrawal("n"), "fields", Some(json!({ "a": "@@" }))).to_string().replace("\"@@\"", number);
        let message = client.send(&Create::Withdrawal.request(&ACME, body)).await.expect(400).message();
        assert_eq!(message, "fields.a: holds a number that is out of range");
    }
    Create::Withdrawal.assert_nothing_stored(&client, &ACME, "n").await;
}
