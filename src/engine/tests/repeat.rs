//! What a repeat is, and that nothing which can change turns it into something else.

use super::*;

// keeps P243, D028, D029, D031, D032, D033, D035
#[tokio::test]
async fn a_repeat_is_what_says_the_same() {
    let world = World::new();
    let first = world.deposit(r#""fields":{"bank_code":"b1","level":1.50,"dropped":1}"#).await.unwrap();
    for same in [
        // Key order, escapes, the spelling of numbers and what the schema dropped aside.
        r#""fields":{"level":1.5,"bank_code":"b1"}"#,
        r#""fields":{"bank_code":"\u00621","level":15e-1,"dropped":2,"merchant_user_ip":null}"#,
        r#""fields":{"\u0062ank_code":"b1","level":0.15E+1,"dropped":{"deep":[]}}"#,
        r#""fields":{"bank_code":"b1","level":1.5},"amount":10.00,"currency":"eur","customer_account_id":null"#,
        r#""fields":{"bank_code":"b1","level":1.5},"amount":1e1,"currency":"EuR""#,
        r#""fields":{"bank_code":"b1","level":1.5},"amount":1000E-2,"order_id":"\u006f""#,
        r#""fields":{"bank_code":"b1","level":1.5},"callback_url":"https:\/\/a.example\/cb""#,
    ] {
        assert_eq!(world.deposit(same).await.as_ref(), Ok(&first), "{same}");
    }
    for (other, members) in [
        ("", "fields.bank_code, fields.level"),
        (r#""fields":{"bank_code":"b2","level":1.5}"#, "fields.bank_code"),
        (r#""fields":{"bank_code":"b1"}"#, "fields.level"),
        (r#""fields":{"bank_code":"b1","level":1.51}"#, "fields.level"),
        (r#""fields":{"bank_code":"b1","level":1.5,"merchant_user_ip":"::1"}"#, "fields.merchant_user_ip"),
        (r#""fields":{"bank_code":"b1","level":1.5},"method":"card""#, "method"),
        (r#""fields":{"bank_code":"b1","level":1.5},"amount":11,"fail_url":"https://a.example/F""#, "amount, fail_url"),
        (r#""fields":{"bank_code":"b1","level":1.5},"customer_account_id":0"#, "customer_account_id"),
        (r#""fields":{"bank_code":"b1","level":1.5},"currency":"USD""#, "currency"),
        // Addresses and URLs are compared as text.
        (r#""fields":{"bank_code":"b1","level":1.5},"callback_url":"https://a.example/cb/""#, "callback_url"),
        (r#""fields":{"bank_code":"b1","level":1.5},"callback_url":"https://a.example:443/cb""#, "callback_url"),
        (r#""fields":{"bank_code":"b1","level":1.5},"success_url":"https://A.example/s""#, "success_url"),
        (r#""fields":{"bank_code":"b1","level":1.5},"pending_url":"https://a.example/%70""#, "pending_url"),
    ] {
        assert_eq!(world.deposit(other).await, differs_in(members), "{other}");
    }
    assert_eq!(world.deposit(r#""fields":{"level":1.5,"bank_code":"b1"}"#).await, Ok(first), "and nothing changed it");
}

// keeps P231, D045
#[tokio::test]
async fn withdrawals_compare_what_only_they_have() {
    let world = World::new();
    let first = world.withdraw(r#""account_channel":"sepa","customer_account_id":0"#).await.unwrap();
    assert!(!first.contains("redirect_url"));
    let same = r#""account_channel":"s\u0065pa","customer_account_id":-0,"fields":{}"#;
    assert_eq!(world.withdraw(same).await.as_ref(), Ok(&first));
    for (other, members) in [
        (r#""customer_account_id":0"#, "account_channel"),
        (r#""account_channel":"SEPA","customer_account_id":0"#, "account_channel"),
        (r#""account_channel":"sepa""#, "customer_account_id"),
        (r#""account_channel":"sepa","customer_account_id":null"#, "customer_account_id"),
        (r#""account_channel":"sepa","customer_account_id":0,"account_number":"4111111111111112""#, "account_number"),
        (r#""account_channel":"sepa","customer_account_id":0,"fields":{"x":null}"#, "fields.x"),
    ] {
        assert_eq!(world.withdraw(other).await, differs_in(members), "{other}");
    }
}

// keeps D029, D030
#[tokio::test]
async fn null_is_like_absent_where_the_contract_says_so_and_nowhere_else() {
    let world = World::new();
    let spare = |order: &str, rest: &str| format!(r#""order_id":"{order}","method":"spare"{rest}"#);
    // Without a schema everything is kept: a null member is not an absent one there.
    let with_null = world.deposit(&spare("n", r#","fields":{"x":null}"#)).await.unwrap();
    assert_eq!(world.deposit(&spare("n", "")).await, differs_in("fields.x"));
    assert_eq!(world.deposit(&spare("n", r#","fields":{"x":null}"#)).await, Ok(with_null));
    let bare = world.deposit(&spare("b", "")).await.unwrap();
    for same in [
        r#","fields":{}"#,
        r#","fields":{"merchant_user_ip":null}"#,
        r#","customer_account_id":null"#,
        r#","customer_account_id":null,"fields":{"merchant_user_ip":null}"#,
    ] {
        assert_eq!(world.deposit(&spare("b", same)).await.as_ref(), Ok(&bare), "{same}");
    }
    for member in ["method", "fields", "amount", "currency", "callback_url", "success_url", "pending_url", "fail_url"] {
        let error = world.deposit(&format!("\"order_id\":\"b\",\"{member}\":null")).await.unwrap_err();
        assert!(error.starts_with(&format!("400 {member}: ")), "{error}");
    }
    let error = world.withdraw(r#""account_channel":null"#).await.unwrap_err();
    assert!(error.starts_with("400 account_channel: "), "{error}");
}

// keeps P093, D034
#[tokio::test]
async fn customer_addresses_are_compared_as_text() {
    let world = World::new();
    let from = |address: &str| format!(r#""fields":{{"merchant_user_ip":"{address}"}}"#);
    let first = world.deposit(&from("2001:db8::1")).await.unwrap();
    assert_eq!(world.deposit(&from("2001:db8:\\u003a1")).await, Ok(first));
    for other in ["2001:DB8::1", "2001:db8:0::1", "::1", "203.0.113.7"] {
        assert_eq!(world.deposit(&from(other)).await, differs_in("fields.merchant_user_ip"), "{other}");
    }
    assert_eq!(world.deposit("").await, differs_in("fields.merchant_user_ip"));
    assert!(world.deposit(&from("")).await.unwrap_err().starts_with("400 fields.merchant_user_ip"));
}

// keeps D037, D038
#[tokio::test]
async fn a_conflict_names_members_and_no_value() {
    let world = World::new();
    world.deposit(r#""fields":{"bank_code":"b1"}"#).await.unwrap();
    let other = r#""amount":99.99,"method":"card","customer_account_id":123456789,"fields":{"bank_code":"secret-bank"},
        "callback_url":"https://b.example/cb","success_url":"https://b.example/s","pending_url":"https://b.example/p",
        "fail_url":"https://b.example/f","currency":"USD""#;
    let members = "amount, currency, method, customer_account_id, callback_url, success_url, pending_url, fail_url, \
                   fields.bank_code";
    assert_eq!(world.deposit(other).await, differs_in(members));
}

/// A change of the rules, and what a new order with the data of the old one meets afterwards: the change is real.
pub(super) type RequestChange = (&'static str, fn(&World), &'static str);

pub(super) const CHANGES: &[RequestChange] = &[
    ("nothing", |_| {}, "200"),
    ("shop switched off", |w| w.replace("shops/card.toml", "[payin]", "active = false\n[payin]"), "400 method"),
    ("direction switched off", |w| w.replace("merchants/acme.toml", "payin = true", "payin = false"), "400 method"),
    (
        "shop taken from the merchant",
        |w| {
            w.replace("merchants/acme.toml", "[shops.card]\npayin = true\npayout = true\n", "");
            w.replace("merchants/acme.toml", "default_shop = \"card\"", "default_shop = \"spare\"");
        },
        "200",
    ),
    (
        "key narrowed to another shop",
        |w| w.replace("merchants/acme.toml", "v2_secret", "shops = [\"spare\"]\nv2_secret"),
        "400 method",
    ),
    (
        "shop given up altogether",
        |w| {
            w.replace("merchants/acme.toml", "[shops.card]\npayin = true\npayout = true\n", "");
            w.replace("merchants/acme.toml", "default_shop = \"card\"", "");
            w.replace("merchants/other.toml", "[shops.card]\npayin = true\npayout = true\n", "");
            w.replace("merchants/other.toml", "default_shop = \"card\"", "");
            fs::remove_file(w.directory.path().join("rules/shops/card.toml")).unwrap();
        },
        "400 method",
    ),
    ("no default shop", |w| w.replace("merchants/acme.toml", "default_shop = \"card\"", ""), "400 method"),
    (
        "another default shop",
        |w| w.replace("merchants/acme.toml", "default_shop = \"card\"", "default_shop = \"spare\""),
        "200",
    ),
    ("another currency", |w| w.replace("shops/card.toml", "\"EUR\"", "\"USD\""), "400 currency"),
    ("another payment method", |w| w.replace("shops/card.toml", "\"card\"", "\"wallet\""), "200"),
    (
        "stricter schema that keeps what was dropped",
        |w| {
            let schema = r#"{"type":"object","required":["iban"],
                "properties":{"iban":{"type":"string"},"dropped":{"type":"string"}}}"#;
            w.edit("shops/card.json", schema);
        },
        "400 fields.",
    ),
    (
        "schema with other defaults",
        |w| w.replace("shops/card.json", r#""level":{"#, r#""new":{"default":"x"},"level":{"#),
        "200",
    ),
    ("schema dropped", |w| w.replace("shops/card.toml", "schema = \"card.json\"", ""), "200"),
    ("bank taken off its list", |w| w.edit("lists/banks.txt", "b2\n"), "400 fields.bank_code"),
    ("a list of the merchant's own", |w| w.edit("lists/acme/banks.txt", "b2\n"), "400 fields.bank_code"),
    (
        "slower provider",
        |w| w.replace("shops/card.toml", "kind = \"sandbox\"", "kind = \"sandbox\"\ndelay = \"9s\""),
        "200",
    ),
    (
        "another provider",
        |w| {
            let http = "kind = \"http\"\nurl = \"https://p.example/\"\nsecret = \"x\"";
            w.replace("shops/card.toml", "kind = \"sandbox\"", http);
        },
        "200",
    ),
    (
        "checks that refuse the customer",
        |w| {
            w.edit(
                "shops/card.toml",
                &format!("{CARD}[checks]\nrefused_accounts = [42]\nrefused_addresses = [\"::/0\"]\n"),
            );
        },
        "200",
    ),
    (
        "limits that are used up",
        |w| w.edit("shops/card.toml", &format!("{CARD}[checks.payin]\noperations_per_day = 1\n")),
        "200",
    ),
    (
        "pages signed by another secret elsewhere",
        |w| {
            let rest =
                "[server]\npublic_url = \"https://new.example\"\n[pages]\nsecret = \"other\"\nlink_lifetime = \"1m\"\n";
            w.edit("gateway.toml", rest);
        },
        "200",
    ),
];

// keeps D027, D036
#[tokio::test]
async fn no_change_of_the_rules_turns_a_repeat_into_anything_else() {
    const DATA: &str = r#""customer_account_id":42,
        "fields":{"bank_code":"b1","level":1.50,"dropped":1,"merchant_user_ip":"2001:db8::1"}"#;
    for (name, change, new_order) in CHANGES {
        let world = World::new();
        let first = world.deposit(DATA).await.unwrap();
        change(&world);
        let again = world.deposit(DATA).await;
        assert_eq!(again.as_ref(), Ok(&first), "{name}: same id, same redirect_url");
        let respelt = DATA.replace("1.50", "15e-1").replace("\"dropped\":1", "\"dropped\":{\"other\":[2]}");
        assert_eq!(world.deposit(&respelt).await.as_ref(), Ok(&first), "{name}: the schema at creation dropped it");
        let other = world.deposit(&DATA.replace("b1", "b2").replace("42", "43")).await;
        assert_eq!(other, differs_in("customer_account_id, fields.bank_code"), "{name}");
        let new = world.deposit(&format!("\"order_id\":\"new\",{DATA}")).await;
        match &new {
            Ok(reply) => assert!(*new_order == "200" && *reply != first, "{name}: {new:?}"),
            Err(error) => assert!(error.starts_with(new_order), "{name}: {new:?}"),
        }
        let named = format!("\"method\":\"card\",{DATA}");
        assert_eq!(
            world.deposit(&named).await,
            differs_in("method"),
            "{name}: an omitted method is not the shop it meant"
        );
        let still = world.deposit(DATA).await;
        assert_eq!(still, Ok(first), "{name}: nothing was changed by what was refused");
    }
}

#[tokio::test]
async fn a_named_method_is_repeated_under_every_rule() {
    const DATA: &str = r#""method":"card","customer_account_id":42,"fields":{"bank_code":"b1","level":1.50}"#;
    for (name, change, _) in CHANGES {
        let world = World::new();
        let first = world.deposit(DATA).await.unwrap();
        let paid_out = world.withdraw("\"method\":\"card\"").await.unwrap();
        change(&world);
        assert_eq!(world.deposit(DATA).await, Ok(first), "{name}");
        assert_eq!(world.withdraw("\"method\":\"card\"").await, Ok(paid_out), "{name}");
        assert_eq!(world.deposit(&DATA.replace("\"method\":\"card\",", "")).await, differs_in("method"), "{name}");
    }
}

#[tokio::test]
async fn a_schema_that_appears_changes_nothing() {
    let world = World::new();
    let data = r#""method":"spare","fields":{"any":{"thing":[1.0]}}"#;
    let first = world.deposit(data).await.unwrap();
    world.edit(
        "shops/spare.toml",
        "currency = \"EUR\"\n[payin]\nschema = \"card.json\"\n[provider]\nkind = \"sandbox\"\n",
    );
    assert_eq!(world.deposit(&data.replace("1.0", "1")).await, Ok(first));
    let other = world.deposit(&data.replace("1.0", "2")).await;
    assert_eq!(other, differs_in("fields.any"), "without a schema everything was kept");
}

#[tokio::test]
async fn a_withdrawal_is_repeated_after_a_change_of_account_rules() {
    let world = World::new();
    let first = world.withdraw("").await.unwrap();
    world.replace("shops/card.toml", "account = \"card\"", "account = \"mobile\"");
    assert_eq!(world.withdraw("").await, Ok(first));
    let error = world.withdraw("\"order_id\":\"new\"").await.unwrap_err();
    assert!(error.starts_with("400 account_number"), "{error}");
}

// keeps P189, P190, D036, D049
#[tokio::test]
async fn time_and_results_change_no_reply() {
    let world = World::new();
    let first = world.deposit("").await.unwrap();
    world.clock.advance(Duration::from_hours(90 * 24));
    assert_eq!(world.deposit("").await.as_ref(), Ok(&first), "the link has expired, and is not renewed");
    assert_eq!(world.report(&first, Report::from(crate::domain::Outcome::Failed)).await, Reported::Taken);
    assert_eq!(world.deposit("").await.as_ref(), Ok(&first));
    assert!(world.status(&first).await.contains("\"FAILED\""));
    assert_eq!(world.deposit("\"amount\":11").await, differs_in("amount"));
}
