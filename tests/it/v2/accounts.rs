//! `account_number` by the shop's kind, `account_channel`, and what the status shows of an account.

use serde_json::{Value, json};

use crate::support::bodies::with;
use crate::support::request::ACME;
use crate::support::stored::Create;
use crate::support::{Rules, text};
use crate::v2::table::Table;

const KIND: Create = Create::Withdrawal;

/// A good withdrawal through a shop.
fn through(id: &str, shop: &str, currency: &str, account: &Value) -> Value {
    let body = with(with(KIND.body(id), "method", Some(shop.into())), "currency", Some(currency.into()));
    with(body, "account_number", Some(account.clone()))
}

/// A shop with its currency: what it takes, and what it refuses.
type Row = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const SHOPS: &[Row] = &[
    (
        // keeps P161, P251, P031
        "card-eur",
        "EUR",
        &["400012341234", "4000123412341", "4000123412341230", "4000123412341234567", "000000000000"],
        &[
            "40001234123",
            "40001234123412341234",
            "4000 1234 1234 1234",
            "4000-1234-1234-1234",
            " 4000123412341230",
            "4000123412341230 ",
            "4000123412341230\n",
            "4000123412341230a",
            "+400012341234",
            "-400012341234",
            "４０００１２３４１２３４",
            "٤٠٠٠١٢٣٤١٢٣٤",
            "4000123412341230.0",
            "4e15",
            "",
            "x",
            "************",
            "+254712345678",
        ],
    ),
    (
        // keeps P162, P252
        "mobile-kes",
        "KES",
        &["+12345678", "+254712345678", "+123456789012345", "+00000000"],
        &[
            "+1234567",
            "+1234567890123456",
            "254712345678",
            "00254712345678",
            "++25471234567",
            "+ 254712345678",
            "+254 712 345 678",
            "+254-712-345678",
            "+25471234567a",
            "+254712345678\n",
            " +254712345678",
            "＋254712345678",
            "+２５４７１２３４５",
            "+",
            "",
            "4000123412341230",
        ],
    ),
    (
        // keeps P163, P032
        "plain-usd",
        "USD",
        &["DE1234567890", "DE44500105175407324931", "GB12345678901234567890123456789012"],
        &[
            "DE123456789",
            "DE123456789012345678901234567890123",
            "de1234567890",
            "D1234567890",
            "DE12345 67890",
            "xDE1234567890",
            "DE1234567890x",
            "DE1234567890\n",
            "400012341234",
            "",
        ],
    ),
];

// keeps P028, P031, P032, P160, P161, P162, P163, P225, P251, P252, D046
#[tokio::test]
async fn an_account_has_the_form_of_its_shops_kind() {
    let mut table = Table::new();
    for (shop, currency, taken, refused) in SHOPS {
        for account in *taken {
            let id = table.order();
            let body = through(&id, shop, currency, &json!(account));
            let record = table.take(KIND, &body.to_string(), None).await;
            let shown = text(&record, "account_number");
            assert_eq!(shown.contains('*'), *shop == "card-eur", "{shown}");
            assert_eq!(shown.len(), account.len());
        }
        for account in *refused {
            let id = table.order();
            let body = through(&id, shop, currency, &json!(account));
            let raw = Value::from(*account).to_string();
            table.refuse_in(KIND, &id, body, "account_number", &raw).await;
        }
        for raw in ["null", "true", "4000123412341230", "4e15", "[]", "[\"4000123412341230\"]", "{}"] {
            let id = table.order();
            let body = through(&id, shop, currency, &json!("x"));
            table.refuse_in(KIND, &id, body, "account_number", raw).await;
        }
    }
}

// keeps P163
#[tokio::test]
async fn a_shop_without_a_rule_takes_any_account() {
    let rules = Rules::default().edit("shops/slow-eur.toml", "[payout]\naccount = \"card\"\n", "");
    let mut table = Table::with(&rules);
    for account in ["x", "wallet 7", "ann@example.com", "Ж", "12345678901", &"w".repeat(255)] {
        let id = table.order();
        let record = table.take(KIND, &through(&id, "slow-eur", "EUR", &json!(account)).to_string(), None).await;
        assert_eq!(text(&record, "account_number"), account);
    }
    // Shaped like a card number, it is masked whatever the shop.
    let id = table.order();
    let record = table.take(KIND, &through(&id, "slow-eur", "EUR", &json!("123456789012")).to_string(), None).await;
    assert_eq!(text(&record, "account_number"), "123456**9012");
    for account in [String::new(), "w".repeat(256), "a\u{0}b".to_owned(), "a\nb".to_owned(), "w".repeat(60_000)] {
        let id = table.order();
        let raw = Value::from(account.as_str()).to_string();
        let body = through(&id, "slow-eur", "EUR", &json!(account));
        table.refuse_in(KIND, &id, body, "account_number", &raw).await;
    }
}

// keeps P164, P225, D030, D044, D045
#[tokio::test]
async fn a_channel_has_1_to_64_characters_and_is_compared() {
    let mut table = Table::new();
    for channel in ["x".to_owned(), "é".repeat(64), "😀".repeat(64), " ".to_owned(), "x".repeat(64)] {
        let id = table.order();
        let body = |channel: &str| with(KIND.body(&id), "account_channel", Some(channel.into())).to_string();
        table.take(KIND, &body(&channel), None).await;
        let reply = table.send(&KIND.request(&ACME, body("another one"))).await.expect(409);
        assert!(reply.message().contains("account_channel"), "{}", reply.message());
        table.send(&KIND.request(&ACME, KIND.body(&id).to_string())).await.expect(409);
        table.take(KIND, &body(&channel), None).await;
    }
    let long = [json!("x".repeat(65)), json!("é".repeat(65)), json!("😀".repeat(65))];
    for value in long.iter().chain(&[json!(""), json!("a\0"), json!(null), json!(1), json!(true), json!([]), json!({})])
    {
        table.refuse_member(KIND, "account_channel", &value.to_string()).await;
    }
}
