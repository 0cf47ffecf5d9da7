//! What a repeat is, and that nothing which can change turns it into something else.

use super::*;

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

/// A change of the rules, and what a new order with the data of the old one meets afterwards: the change is real.
type RequestChange = (&'static str, fn(&World), &'static str);

const CHANGES: &[RequestChange] = &[
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
