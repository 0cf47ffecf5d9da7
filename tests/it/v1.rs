//! v1 over the wire: creates, repeats, refusals and the status, as contract sections 4 and 5 word them.

use serde_json::{Value, json};

use crate::support::bodies::with;
use crate::support::reply::assert_same;
use crate::support::request::{ACME, ACME_LIMITED, ACME_PLAIN_ONLY, ACME_V2, BETA, GAMMA, PROTOCOLS};
use crate::support::stored::Create;
use crate::support::{self, Gateway, Request, Rules, eventually, payin, payout, text};

const KINDS: [(Create, &str); 2] = [(Create::Payin, "payin"), (Create::Payout, "payout")];

// keeps P257, P266
#[tokio::test]
async fn a_deposit_is_created_and_shown() {
    let gateway = Gateway::start(&Rules::default());
    for (number, protocol) in PROTOCOLS.into_iter().enumerate() {
        let id = format!("order-{number}");
        let created = gateway.client().send_by(protocol, &Request::payin(&ACME, &payin(&id))).await.expect(200).json();
        let transaction_id = text(&created, "transaction_id");
        let link = format!("https://localhost:{}/pay/{transaction_id}?expires=", gateway.public.port());
        assert!(text(&created, "redirect_url").starts_with(&link), "{created}");

        let status = gateway.client().send_by(protocol, &Request::v1_status(&ACME, "payin", &id)).await.expect(200);
        assert_eq!(
            status.json(),
            json!({ "transaction_id": transaction_id, "external_id": id, "status": "PENDING", "amount": "10.50",
                    "currency": "EUR", "shop_code": "card-eur" })
        );
    }
}

#[tokio::test]
async fn a_withdrawal_is_created_reaches_success_and_is_shown_masked() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let created = Create::Payout.create(&client, &ACME, &payout("w-1")).await.json();
    let status = eventually("the withdrawal succeeds", async || {
        let status = client.send(&Request::v1_status(&ACME, "payout", "w-1")).await.expect(200).json();
        (status["status"] != "PENDING").then_some(status)
    })
    .await;
    assert_eq!(
        status,
        json!({ "transaction_id": created["transaction_id"], "external_id": "w-1", "status": "SUCCESS",
                "amount": "7.25", "currency": "EUR", "shop_code": "card-eur", "account_number": "400012******1234" })
    );
}

// keeps P267
#[tokio::test]
async fn the_default_shop_serves_requests_that_name_none() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for (number, absent) in [None, Some(Value::Null)].into_iter().enumerate() {
        let id = format!("default-{number}");
        Create::Payin.create(&client, &ACME, &with(payin(&id), "shop_code", absent)).await;
        let status = client.send(&Request::v1_status(&ACME, "payin", &id)).await.expect(200).json();
        assert_eq!(text(&status, "shop_code"), "card-eur", "the selected shop's code");
    }
    let body = with(payin("none"), "shop_code", None);
    Create::Payin.assert_refused(&client, &BETA, "none", body.to_string(), 400).await;
}

#[tokio::test]
async fn a_repeat_gets_the_first_reply_however_it_is_spelt() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let first = Create::Payin.create(&client, &ACME, &payin("again")).await;
    let spellings = [
        payin("again").to_string(),
        with(payin("again"), "amount", Some("10.5".into())).to_string(),
        with(payin("again"), "amount", Some("0010.50".into())).to_string(),
        r#" { "paymentData" : {"email":"ann\u0040example.com", "return_user_url":"https:\/\/acme.example/done?x=1"},
            "merchant_user_ip":"203.0.113.9","merchant_user_id":"42","callback_url":"https://acme.example/cb",
            "shop_code":"card-eur","currency":"EUR","amount":"10.50","external_id":"again" } "#
            .to_owned(),
    ];
    for spelling in spellings {
        for protocol in PROTOCOLS {
            let again = client.send_by(protocol, &Request::payin(&ACME, &spelling)).await.expect(200);
            assert_eq!(again.json(), first.json(), "{spelling}");
        }
    }
    let withdrawn = Create::Payout.create(&client, &ACME, &payout("again")).await;
    let again = Create::Payout.create(&client, &ACME, &payout("again")).await;
    assert_same(&withdrawn, &again);
    assert_ne!(first.json()["transaction_id"], again.json()["transaction_id"], "each kind has its own ids");
}

#[tokio::test]
async fn other_data_under_the_same_id_is_409_and_changes_nothing() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let rows: &[(Create, &str, Option<Value>)] = &[
        (Create::Payin, "amount", Some("10.51".into())),
        (Create::Payin, "currency", Some("USD".into())),
        (Create::Payin, "shop_code", Some("slow-eur".into())),
        (Create::Payin, "shop_code", None),
        (Create::Payin, "callback_url", Some("https://acme.example/other".into())),
        (Create::Payin, "callback_url", None),
        (Create::Payin, "merchant_user_id", Some("43".into())),
        (Create::Payin, "merchant_user_id", None),
        (Create::Payin, "merchant_user_ip", Some("203.0.113.10".into())),
        (Create::Payin, "paymentData.email", Some("bob@example.com".into())),
        (Create::Payin, "paymentData.return_user_url", Some("https://acme.example/elsewhere".into())),
        (Create::Payout, "amount", Some("7.26".into())),
        (Create::Payout, "card_number", Some("4000123412341299".into())),
        (Create::Payout, "callback_url", Some("https://acme.example/other".into())),
        (Create::Payout, "paymentData", Some(json!({ "holder": "Ann Lee" }))),
    ];
    for (kind, _) in KINDS {
        kind.create(&client, &ACME, &kind.body("fixed")).await;
    }
    for (kind, member, value) in rows {
        let changed = with(kind.body("fixed"), member, value.clone()).to_string();
        let refused = client.send(&kind.request(&ACME, changed)).await.expect(409);
        let named = if *member == "paymentData" { "paymentData.holder" } else { *member };
        assert!(refused.message().ends_with(&format!("differs in: {named}")), "{member}: {}", refused.message());
        for secret in ["10.51", "4000123412341299", "bob@", "elsewhere", "203.0.113.10", "order_id"] {
            assert!(!refused.text().contains(secret), "{secret} is echoed: {}", refused.text());
        }
    }
    for (kind, _) in KINDS {
        kind.create(&client, &ACME, &kind.body("fixed")).await;
    }
    let status = client.send(&Request::v1_status(&ACME, "payin", "fixed")).await.expect(200).json();
    assert_eq!(text(&status, "amount"), "10.50");
}

// keeps P264, P265, P268, P270, P271, P273
#[tokio::test]
async fn every_row_of_the_translation_refuses_what_it_cannot_carry() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let long = "x".repeat(256);
    let rows: &[(Create, &str, &[Value])] = &[
        (Create::Payin, "amount", &bad_amounts()),
        (Create::Payout, "amount", &bad_amounts()),
        (Create::Payin, "currency", &[json!(null), json!("EU"), json!("EURO"), json!("E1R"), json!(978), json!("USD")]),
        (Create::Payin, "shop_code", &[json!(""), json!("nowhere"), json!(" card-eur"), json!(7), json!("beta-only")]),
        (Create::Payin, "shop_code", &[json!("off-eur")]),
        (Create::Payout, "shop_code", &[json!("half-eur")]),
        (Create::Payin, "callback_url", &[json!(7), json!("acme.example/cb"), json!("http://acme.example/cb")]),
        (Create::Payin, "callback_url", &[json!("https://u:p@acme.example/"), json!("https://acme.example/a b")]),
        (
            Create::Payin,
            "callback_url",
            &[json!("https://acme.example/\n"), json!("https:///x"), json!("https:\\\\a.b")],
        ),
        (Create::Payin, "merchant_user_id", &[json!("u-42"), json!("007"), json!("-"), json!(""), json!("4 2")]),
        (Create::Payin, "merchant_user_id", &[json!("9223372036854775808"), json!(1.0), json!(true), json!({})]),
        (Create::Payin, "merchant_user_ip", &[json!(""), json!("203.0.113.9:80"), json!("203.0.113.0/24"), json!(1)]),
        (
            Create::Payin,
            "merchant_user_ip",
            &[json!(" 203.0.113.9"), json!("203.0.113.9, 10.0.0.1"), json!("01.2.3.4")],
        ),
        (Create::Payin, "paymentData", &[json!("x"), json!(["x"]), json!(1), json!(true)]),
        (
            Create::Payin,
            "paymentData.return_user_url",
            &[json!(null), json!(7), json!("ftp://a.b/"), json!("acme.example")],
        ),
        (Create::Payin, "paymentData.return_user_url", &[json!(""), json!("https://u@acme.example/")]),
        (Create::Payin, "paymentData.email", &[json!("no address"), json!(7)]),
        (Create::Payin, "paymentData.bank_code", &[json!("BANK-C"), json!("BANK-G"), json!("bank-a")]),
        (Create::Payin, "paymentData.level", &[json!(0), json!(6), json!("3"), json!(2.5)]),
        (Create::Payin, "paymentData.first_name", &[json!(1), json!(["Ann"]), json!({})]),
        (Create::Payin, "paymentData.merchant_user_ip", &[json!("203.0.113.10")]),
        (Create::Payin, "paymentData.method", &[json!("card-eur")]),
        (Create::Payin, "paymentData.customer_account_id", &[json!(42)]),
        (Create::Payin, "paymentData.success_url", &[json!("https://acme.example/")]),
        (Create::Payin, "paymentData.pending_url", &[json!("https://acme.example/")]),
        (Create::Payin, "paymentData.fail_url", &[json!("https://acme.example/")]),
        (Create::Payin, "surprise", &[json!(1), json!(null)]),
        (Create::Payin, "order_id", &[json!("refused")]),
        (Create::Payout, "card_number", &[json!(null), json!(""), json!("4000 1234"), json!(40_001_234_123_412_i64)]),
        (Create::Payout, "card_number", &[json!("40001234123"), json!("40001234123412341234"), json!("+254712345678")]),
        (Create::Payout, "paymentData.account_number", &[json!("123")]),
        (Create::Payout, "paymentData.account_channel", &[json!("x")]),
        (Create::Payout, "paymentData.recipient_account", &[json!("x")]),
        (Create::Payout, "paymentData.holder", &[json!("A")]),
        (Create::Payout, "account_number", &[json!("4000123412341")]),
    ];
    for (row, (kind, member, values)) in rows.iter().enumerate() {
        for (column, value) in values.iter().enumerate() {
            let id = format!("refused-{row}-{column}");
            let body = with(kind.body(&id), member, Some(value.clone()));
            let refused = kind.assert_refused(&client, &ACME, &id, body.to_string(), 400).await;
            let message = refused.message();
            if !member.starts_with("order_id") {
                assert_v1_words(&message);
            }
            let name = member.rsplit('.').next().unwrap();
            assert!(message.contains(name) || *member == "surprise", "{member} {value} is not named: {message}");
        }
    }
    for (kind, member) in [
        (Create::Payin, "amount"),
        (Create::Payin, "currency"),
        (Create::Payin, "paymentData.return_user_url"),
        (Create::Payout, "card_number"),
        (Create::Payout, "amount"),
    ] {
        let id = format!("absent-{kind:?}-{member}");
        let body = with(kind.body(&id), member, None).to_string();
        let message = kind.assert_refused(&client, &ACME, &id, body, 400).await.message();
        assert!(message.contains(member), "{member} is not named: {message}");
    }
    for id in [json!(""), json!(long), json!("a\u{0}b"), json!(7), json!(null)] {
        for (kind, _) in KINDS {
            let body = with(kind.body("x"), "external_id", Some(id.clone())).to_string();
            let message = client.send(&kind.request(&ACME, body)).await.expect(400).message();
            assert!(message.contains("external_id"), "{message}");
        }
    }
}

fn bad_amounts() -> Vec<Value> {
    let mut bad: Vec<Value> =
        ["", "0", "0.00", "-1", "+1", "1e1", "1.", ".5", "10.555", " 10", "10 ", "1,5", "1_0", "٣"]
            .into_iter()
            .chain(["10000000000000.00", "9999999999999.999", "NaN", "Infinity", "0x10", "1.0.0"])
            .map(Value::from)
            .collect();
    bad.extend([json!(10.5), json!(10), json!(null), json!(true), json!([]), json!({})]);
    bad
}

/// v1 callers never read v2's names.
#[track_caller]
fn assert_v1_words(message: &str) {
    for word in ["order_id", "fields.", "fields:", "success_url,", "`method`"] {
        assert!(!message.starts_with(word), "v2 words: {message}");
    }
}

// keeps P264, P269, P272, P273, P274
#[tokio::test]
async fn what_the_translation_can_carry_is_taken() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let rows: &[(Create, &str, Option<Value>)] = &[
        (Create::Payin, "amount", Some("9999999999999.99".into())),
        (Create::Payin, "amount", Some("0000000.1".into())),
        (Create::Payin, "callback_url", None),
        (Create::Payin, "callback_url", Some(Value::Null)),
        (Create::Payin, "merchant_user_id", None),
        (Create::Payin, "merchant_user_id", Some(Value::Null)),
        (Create::Payin, "merchant_user_id", Some("0".into())),
        (Create::Payin, "merchant_user_id", Some(42.into())),
        (Create::Payin, "merchant_user_id", Some("9223372036854775807".into())),
        (Create::Payin, "merchant_user_ip", None),
        (Create::Payin, "merchant_user_ip", Some("2001:db8::7".into())),
        (Create::Payin, "paymentData.merchant_user_ip", Some("203.0.113.9".into())),
        (Create::Payin, "paymentData.unknown_to_the_schema", Some(json!({ "kept": "not" }))),
        (Create::Payin, "paymentData.bank_code", Some("BANK-B".into())),
        (Create::Payin, "paymentData.return_user_url", Some("http://acme.example/plain".into())),
        (Create::Payout, "paymentData", Some(json!({ "holder": "Ann Lee" }))),
        (Create::Payout, "callback_url", None),
    ];
    for (row, (kind, member, value)) in rows.iter().enumerate() {
        let id = format!("taken-{row}");
        kind.create(&client, &ACME, &with(kind.body(&id), member, value.clone())).await;
    }
    let longest = "ж".repeat(255);
    Create::Payin.create(&client, &ACME, &payin(&longest)).await;
    let odd = "a b/ж?&=+%\"\\";
    Create::Payin.create(&client, &ACME, &payin(odd)).await;
    let query = "a%20b%2F%D0%B6%3F%26%3D%2B%25%22%5C";
    let status = client.send(&Request::v1_status(&ACME, "payin", query)).await.expect(200).json();
    assert_eq!(text(&status, "external_id"), odd);
}

#[tokio::test]
async fn a_merchants_rules_complete_its_requests() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let body = with(payin("filled"), "paymentData", None);
    let body = with(with(body, "surprise", Some(json!([1]))), "merchant_user_id", Some("u-42".into()));
    let body = with(body, "callback_url", Some("http://beta.example/cb".into()));
    Create::Payin.create(&client, &BETA, &body).await;
    let ignored = with(body, "surprise", Some(json!("other")));
    client.send(&Request::payin(&BETA, &ignored)).await.expect(409);

    let body = with(payin("gamma"), "callback_url", None).to_string();
    let message = Create::Payin.assert_refused(&client, &GAMMA, "gamma", body, 400).await.message();
    assert!(message.contains("callback_url"), "{message}");
    let own_list = with(payin("list"), "paymentData.bank_code", Some("BANK-G".into()));
    let reply = Create::Payin.create(&client, &GAMMA, &own_list).await;
    assert_eq!(reply.header("deprecation"), "@1782777600");
    assert_eq!(reply.header("sunset"), "Wed, 30 Jun 2027 00:00:00 GMT");
    assert!(reply.all("link").join(",").contains("<https://docs.example/v2>"), "{reply:?}");
    let common_list = with(payin("list-2"), "paymentData.bank_code", Some("BANK-A".into())).to_string();
    Create::Payin.assert_refused(&client, &GAMMA, "list-2", common_list, 400).await;
}

#[tokio::test]
async fn shops_have_their_own_accounts_and_keys_their_own_shops() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let base = |id: &str, shop: &str, currency: &str, account: &str| json!({ "external_id": id, "amount": "5", "currency": currency, "shop_code": shop, "card_number": account });
    for (shop, currency, account) in [
        ("mobile-kes", "KES", "+254712345678"),
        ("plain-usd", "USD", "KE0123456789"),
        ("card-eur", "EUR", "400012341234"),
        ("card-eur", "EUR", "4000123412341234567"),
    ] {
        Create::Payout
            .create(&client, &ACME, &base(&format!("{shop}{}", account.len()), shop, currency, account))
            .await;
    }
    for (number, (shop, currency, account)) in [
        ("mobile-kes", "KES", "254712345678"),
        ("mobile-kes", "KES", "+2547123"),
        ("plain-usd", "USD", "ke0123456789"),
        ("plain-usd", "USD", "KE012345678\n"),
        ("card-eur", "EUR", "٤٠٠٠١٢٣٤١٢٣٤"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("account-{number}");
        let body = base(&id, shop, currency, account).to_string();
        let message = Create::Payout.assert_refused(&client, &ACME, &id, body, 400).await.message();
        assert!(message.contains("card_number") && !message.contains(account), "{message}");
    }
    let body = payout("narrow").to_string();
    client.send(&Create::Payout.request(&ACME_PLAIN_ONLY, body)).await.expect(400);
    let allowed = base("narrow", "plain-usd", "USD", "KE0123456789");
    Create::Payout.create(&client, &ACME_PLAIN_ONLY, &allowed).await;
}

#[tokio::test]
async fn malformed_json_is_400_and_stores_nothing() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let good = payin("json").to_string();
    let inner = &good[1..good.len() - 1];
    let deep = format!("{{{inner},\"deep\":{}{}}}", "[".repeat(33), "]".repeat(33));
    let mut bodies: Vec<Vec<u8>> = [
        String::new(),
        "null".to_owned(),
        "[]".to_owned(),
        format!("[{good}]"),
        "\"text\"".to_owned(),
        good[..good.len() - 1].to_owned(),
        format!("{good}{good}"),
        format!("{good} x"),
        format!("\u{feff}{good}"),
        format!("{{{inner},}}"),
        format!("{{{inner},\"amount\":\"10.50\"}}"),
        format!("{{{inner},\"amo\\u0075nt\":\"10.50\"}}"),
        good.replace("\"email\":", "\"x\":1,\"x\":2,\"email\":"),
        good.replace("ann@", "\\ud800@"),
        good.replace("ann@", "a\u{1}@"),
        deep,
        good.replace('"', "'"),
        format!("// note\n{good}"),
    ]
    .into_iter()
    .map(String::into_bytes)
    .collect();
    bodies
        .push(good.replace("ann@", "\u{1}").into_bytes().into_iter().map(|b| if b == 1 { 0xff } else { b }).collect());
    for body in bodies {
        let shown = String::from_utf8_lossy(&body).into_owned();
        let reply = client.send(&Request::v1_post(&ACME, "/api/v1/payin", body)).await;
        assert_eq!(reply.status, 400, "{shown}: {}", reply.text());
    }
    Create::Payin.assert_nothing_stored(&client, &ACME, "json").await;
}

#[tokio::test]
async fn php_lists_are_objects_only_where_the_dialect_says_so() {
    let strict = Gateway::start(&Rules::default());
    let body = with(payout("php"), "paymentData", Some(json!([])));
    Create::Payout.assert_refused(&strict.client(), &ACME, "php", body.to_string(), 400).await;
    let dialect = "[requests]\nempty_list_is_object = true\n";
    let lenient = Gateway::start(&Rules::default().file("dialects/v1.toml", dialect));
    Create::Payout.create(&lenient.client(), &ACME, &body).await;
}

#[tokio::test]
async fn the_status_shows_what_the_merchant_made_through_v1_and_nothing_else() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    Create::Payin.create(&client, &ACME, &payin("mine")).await;
    Create::Deposit.create(&client, &ACME, &support::deposit("native")).await;
    let get = |target: &str| Request::v1_get(&ACME, target);
    let unknown = client.send(&get("/api/v1/payin/status?external_id=unknown")).await.expect(404);
    for absent in [
        get("/api/v1/payout/status?external_id=mine"),
        get("/api/v1/payin/status?external_id=native"),
        get("/api/v1/payin/status?external_id=mine&shop_code=slow-eur"),
        get("/api/v1/payin/status?external_id=mine&shop_code=nowhere"),
        get("/api/v1/payin/status?external_id=Mine"),
        Request::v1_get(&BETA, "/api/v1/payin/status?external_id=mine"),
    ] {
        assert_same(&client.send(&absent).await.expect(404), &unknown);
    }
    client.send(&get("/api/v1/payin/status?external_id=mine&shop_code=card-eur")).await.expect(200);
    client.send(&get("/api/v1/payin/status?shop_code=card-eur&external_id=mine")).await.expect(200);
    client.send(&Request::v1_get(&ACME_LIMITED, "/api/v1/payin/status?external_id=mine")).await.expect(200);
    for malformed in ["", "?", "?shop_code=card-eur", "?external_id=", "?external_id=mine&external_id=mine"]
        .into_iter()
        .chain(["?external_id=%ff", "?external_id=%2"])
    {
        let reply = client.send(&get(&format!("/api/v1/payin/status{malformed}"))).await;
        assert_eq!(reply.status, 400, "{malformed}");
    }
}

#[tokio::test]
async fn everything_is_still_known_after_a_restart() {
    let mut gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let deposited = Create::Payin.create(&client, &ACME, &payin("kept")).await;
    let withdrawn = Create::Payout.create(&client, &ACME, &payout("kept")).await;
    gateway.signal(rustix::process::Signal::TERM);
    assert_eq!(gateway.wait().code(), Some(0));
    gateway.restart();
    let status = client.send(&Request::v1_status(&ACME, "payin", "kept")).await.expect(200).json();
    assert_eq!(status["transaction_id"], deposited.json()["transaction_id"]);
    assert_eq!(Create::Payin.create(&client, &ACME, &payin("kept")).await.json(), deposited.json());
    assert_eq!(Create::Payout.create(&client, &ACME, &payout("kept")).await.json(), withdrawn.json());
    let other = with(payout("kept"), "amount", Some("1".into()));
    client.send(&Request::payout(&ACME, &other)).await.expect(409);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_creates_of_one_order_make_one_operation() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for round in 0..4 {
        let id = format!("race-{round}");
        let tasks: Vec<_> = (0..32)
            .map(|number| {
                let (client, id) = (client.clone(), id.clone());
                tokio::spawn(async move {
                    let amount = if number % 4 == 3 { "99" } else { "10.5" };
                    let body = with(payin(&id), "amount", Some(amount.into()));
                    (number % 4 == 3, client.send(&Request::payin(&ACME, &body)).await)
                })
            })
            .collect();
        let mut taken: Vec<(bool, Value)> = Vec::new();
        for task in tasks {
            let (other, reply) = task.await.unwrap();
            match reply.status {
                200 => taken.push((other, reply.json())),
                status => assert_eq!(status, 409, "{}", reply.text()),
            }
        }
        let winner = &taken[0];
        assert!(taken.iter().all(|reply| reply == winner), "{taken:?}");
        assert_eq!(taken.len(), if winner.0 { 8 } else { 24 });
    }
}

#[tokio::test]
async fn a_rule_change_between_a_create_and_its_repeat_changes_nothing() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let first = Create::Payin.create(&client, &ACME, &payin("before")).await;
    let rules = Rules::default().edit("shops/card-eur.toml", "currency", "active = false\ncurrency").edit(
        "merchants/acme.toml",
        "name =",
        "v1.unknown_fields = \"ignore\"\nname =",
    );
    rules.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
    let mut tries = 0;
    eventually("the shop closes", async || {
        tries += 1;
        let reply = client.send(&Request::payin(&ACME, &payin(&format!("probe-{tries}")))).await;
        (reply.status == 400).then_some(())
    })
    .await;
    assert_eq!(Create::Payin.create(&client, &ACME, &payin("before")).await.json(), first.json());
    let other = with(payin("before"), "amount", Some("3".into()));
    client.send(&Request::payin(&ACME, &other)).await.expect(409);
}

/// Whatever completed or excused the first request may be gone when it is repeated.
#[tokio::test]
async fn an_equal_repeat_is_answered_before_any_merchant_rule_is_looked_at() {
    let mut gateway =
        Gateway::start(&Rules::default().file("dialects/v1.toml", "requests.empty_list_is_object = true\n"));
    let client = gateway.client();
    let body = with(with(payin("lenient"), "surprise", Some(json!([1]))), "merchant_user_id", Some("u-42".into()));
    let body = with(body, "callback_url", Some("http://beta.example/cb".into()));
    let lenient = with(body, "paymentData", Some(json!({})));
    let plain = with(with(payin("plain"), "shop_code", None), "callback_url", None);
    let firsts = [
        Create::Payin.create(&client, &BETA, &lenient).await.json(),
        Create::Payin.create(&client, &ACME, &plain).await.json(),
    ];
    gateway.kill();
    let strict = Rules::default()
        .file("dialects/v1.toml", "signature.window = \"2m\"\n")
        .edit("merchants/beta.toml", "return_url = \"https://beta.example/back\"\n", "")
        .edit("merchants/beta.toml", "unknown_fields = \"ignore\"\n", "")
        .edit("merchants/beta.toml", "non_numeric_user_id = \"omit\"\n", "")
        .edit("merchants/beta.toml", "allow_http_callbacks = true\n", "callbacks = \"v2\"\n")
        .edit("merchants/beta.toml", "[shops.card-eur]\npayin = true\npayout = true\n", "")
        .edit("merchants/acme.toml", "default_shop = \"card-eur\"\n", "v1.callbacks = \"v2\"\n")
        .edit("merchants/acme.toml", "[shops.card-eur]\npayin = true\npayout = true\n", "")
        .edit("merchants/gamma.toml", "card-eur", "slow-eur")
        .without("shops/card-eur.toml")
        .with("server", "public_url = \"https://moved.example\"");
    std::fs::remove_file(gateway.rules_dir().join("shops/card-eur.toml")).unwrap();
    strict.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
    gateway.restart();
    for (key, body, first) in [(&BETA, &lenient, &firsts[0]), (&ACME, &plain, &firsts[1])] {
        assert_eq!(&Create::Payin.create(&client, key, body).await.json(), first);
        let other = with(body.clone(), "amount", Some("1".into()));
        client.send(&Request::payin(key, &other)).await.expect(409);
        let id = text(body, "external_id");
        let status = client.send(&Request::v1_status(key, "payin", id)).await.expect(200).json();
        assert_eq!(text(&status, "shop_code"), "card-eur");
    }
    let fresh = with(lenient, "external_id", Some("fresh".into()));
    client.send(&Request::payin(&BETA, &fresh)).await.expect(400);
}

// keeps P242, P246
#[tokio::test]
async fn no_api_version_repeats_what_the_other_made() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for (v1, v2) in [(Create::Payin, Create::Deposit), (Create::Payout, Create::Withdrawal)] {
        let body = with(v1.body("ours"), "callback_url", Some("https://gamma.example/cb".into()));
        let first = v1.create(&client, &GAMMA, &body).await.json();
        let message = client.send(&v2.request(&GAMMA, v2.body("ours").to_string())).await.expect(409).message();
        assert!(message.starts_with("order_id: ") && message.contains("through v1"), "{message}");
        assert_eq!(v1.create(&client, &GAMMA, &body).await.json(), first);

        v2.create(&client, &GAMMA, &v2.body("native")).await;
        let message = client.send(&v1.request(&GAMMA, v1.body("native").to_string())).await.expect(409).message();
        assert!(message.starts_with("external_id: ") && message.contains("through v2"), "{message}");
        v2.create(&client, &GAMMA, &v2.body("native")).await;
    }
}

#[tokio::test]
async fn a_key_without_a_v1_secret_is_refused_by_v1() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    client.send(&Request::payin(&ACME_V2, &payin("x"))).await.expect(401);
    client.send(&Request::v1_status(&ACME_V2, "payin", "x")).await.expect(401);
    Create::Payin.assert_nothing_stored(&client, &ACME, "x").await;
}
