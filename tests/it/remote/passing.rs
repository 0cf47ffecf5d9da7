//! What passes through while everything works, and what is answered without the engine.

use serde_json::{Value, json};

use super::scripted::{Scripted, created, error};
use super::{Pair, assert_again, before_scripted, id_of, payin, payout, send, v1_status};
use crate::support::bodies::{self, with};
use crate::support::reply::assert_same;
use crate::support::request::{ACME, ACME_V2, BETA};
use crate::support::{Gateway, Request, Rules, eventually, text};

async fn record(gateway: &Gateway, id: &str) -> Value {
    send(gateway, &Request::status(&ACME, id)).await.expect(200).json()
}

#[tokio::test]
async fn creates_exist_at_the_engine_and_are_shown_by_the_gateway() {
    let Pair { engine, gateway } = Pair::start();
    let made = payin(&gateway, &bodies::payin("in-1")).await.expect(200).json();
    let members: Vec<_> = made.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["external_id", "redirect_url", "transaction_id"]);
    let id = text(&made, "transaction_id");
    let at_engine = format!("https://localhost:{}/pay/{id}?", engine.public.port());
    assert!(text(&made, "redirect_url").starts_with(&at_engine), "{made}");

    let there = record(&engine, id).await;
    assert_eq!(
        (&there["order_id"], &there["amount"], &there["method"]),
        (&json!("in-1"), &json!(10.5), &json!("card-eur"))
    );
    let shown = v1_status(&gateway, "payin", "in-1").await.expect(200).json();
    let expected = json!({ "transaction_id": id, "external_id": "in-1", "status": "PENDING", "amount": "10.50",
        "currency": "EUR", "shop_code": "card-eur" });
    assert_eq!(shown, expected);

    let paid = payout(&gateway, &bodies::payout("out-1")).await.expect(200).json();
    assert_eq!(paid.as_object().unwrap().len(), 2, "{paid}");
    eventually("the payout succeeds", async || {
        let shown = v1_status(&gateway, "payout", "out-1").await.expect(200).json();
        assert_eq!(shown["account_number"], "400012******1234");
        (shown["status"] == "SUCCESS").then_some(())
    })
    .await;
    assert_eq!(record(&engine, text(&paid, "transaction_id")).await["status"], "SUCCESS");

    // The shop of a request that names none is the merchant's default, whatever the record calls it.
    let unnamed = with(bodies::payin("in-2"), "shop_code", None);
    let unnamed = id_of(&payin(&gateway, &unnamed).await);
    assert_eq!(record(&engine, &unnamed).await["method"], "card");
    assert_eq!(v1_status(&gateway, "payin", "in-2").await.expect(200).json()["shop_code"], "card-eur");
}

// keeps P175, P258, D004, D041
#[tokio::test]
async fn what_v1_created_is_unknown_to_v2_and_known_to_v1() {
    let Pair { engine, gateway } = Pair::start();
    let unknown = send(&gateway, &Request::status(&ACME, "123456")).await.expect(404);
    let native = id_of(&send(&gateway, &Request::deposit(&ACME, &bodies::deposit("native"))).await);
    let ids = [
        id_of(&payin(&gateway, &bodies::payin("in-1")).await),
        id_of(&payout(&gateway, &bodies::payout("out-1")).await),
    ];
    let assert_unknown = async || {
        for id in &ids {
            for key in [ACME, ACME_V2, BETA] {
                assert_same(&send(&gateway, &Request::status(&key, id)).await, &unknown);
            }
            record(&engine, id).await;
        }
        record(&gateway, &native).await;
    };
    assert_unknown().await;
    eventually("the payout succeeds", async || {
        let shown = v1_status(&gateway, "payout", "out-1").await.expect(200).json();
        (shown["status"] == "SUCCESS").then_some(())
    })
    .await;
    let listed = send(&gateway, &Request::v1_get(&ACME, "/api/v1/transactions")).await.expect(200).json();
    assert_eq!(listed["transactions"].as_array().unwrap().len(), 2, "{listed}");
    assert_unknown().await;
    v1_status(&gateway, "payin", "in-1").await.expect(200);
}

#[tokio::test]
async fn the_journal_is_read_before_a_status_is_forwarded() {
    let engine = Scripted::start(|asked, _| match asked.method.as_str() {
        "POST" => created("7"),
        _ => error(404, "an engine's own words"),
    })
    .await;
    let gateway = before_scripted(&engine, "");
    id_of(&payin(&gateway, &bodies::payin("in-1")).await);
    let by_v1 = send(&gateway, &Request::status(&ACME, "7")).await.expect(404);
    assert_eq!((engine.count(), by_v1.message()), (1, "not found".to_owned()));
    assert_same(&send(&gateway, &Request::status(&ACME, "8")).await, &by_v1);
    assert_eq!(engine.count(), 2);
    gateway.tamper("ALTER TABLE journal RENAME TO unreadable");
    for id in ["7", "8"] {
        // To PostgreSQL, a table that is missing is a defect; to SQLite, it is a file that cannot be read.
        let status = send(&gateway, &Request::status(&ACME, id)).await.status;
        assert!([500, 503].contains(&status), "{status}");
    }
    assert_eq!(engine.count(), 2, "nothing is forwarded unread");
    gateway.tamper("ALTER TABLE unreadable RENAME TO journal");
    assert_same(&send(&gateway, &Request::status(&ACME, "7")).await, &by_v1);
}

#[tokio::test]
async fn what_v2_does_not_offer() {
    // A provider that would be asked for its signature, were the engine in the gateway.
    let http = "kind = \"http\"\nurl = \"https://provider.example\"\nsecret = \"hush\"\n";
    let sandbox = "kind = \"sandbox\"\ndelay = \"50ms\"\n";
    let Pair { engine, gateway } =
        Pair::with(&Rules::default(), |rules| rules.edit("shops/card-eur.toml", sandbox, http));
    let native = send(&engine, &Request::deposit(&ACME, &bodies::deposit("native"))).await.expect(200);
    v1_status(&gateway, "payin", "native").await.expect(404);
    v1_status(&gateway, "payin", "nobody's").await.expect(404);
    send(&gateway, &Request::v1_get(&ACME, "/api/v1/balance")).await.expect(501);
    send(&gateway, &Request::status(&BETA, &id_of(&native))).await.expect(404);
    for id in ["", "x", "1x", "%31", &"1".repeat(65)] {
        let request = Request::status(&ACME, id);
        assert_eq!(send(&gateway, &request).await.expect(404).message(), "not found", "{id}");
    }
    let report = Request::new("POST", "/providers/card-eur/events", "{}")
        .header("Content-Type", "application/json")
        .header("X-Signature", &"0".repeat(64));
    send(&gateway, &report).await.expect(404);
}

#[tokio::test]
async fn what_was_answered_once_needs_no_engine() {
    let Pair { mut engine, gateway } = Pair::start();
    let body = bodies::payin("in-1");
    let first = payin(&gateway, &body).await.expect(200);
    let paid = payout(&gateway, &bodies::payout("out-1")).await.expect(200);
    eventually("the payout succeeds", async || {
        let shown = v1_status(&gateway, "payout", "out-1").await.expect(200).json();
        (shown["status"] == "SUCCESS").then_some(())
    })
    .await;
    let result = v1_status(&gateway, "payout", "out-1").await.text();
    engine.kill();

    let respelt = with(body.clone(), "amount", Some("010.5".into()));
    assert_eq!(payin(&gateway, &respelt).await.expect(200).text(), first.text());
    assert_eq!(payout(&gateway, &bodies::payout("out-1")).await.expect(200).text(), paid.text());
    for (member, value) in [("amount", json!("10.51")), ("callback_url", json!("https://acme.example/other"))] {
        let other = payin(&gateway, &with(body.clone(), member, Some(value))).await.expect(409);
        assert!(other.message().ends_with(&format!("differs in: {member}")), "{}", other.message());
    }
    assert_eq!(v1_status(&gateway, "payout", "out-1").await.expect(200).text(), result, "a result is for ever");
    assert_again(&v1_status(&gateway, "payin", "in-1").await, 502);
    assert_again(&payin(&gateway, &bodies::payin("in-2")).await, 502);

    engine.restart();
    v1_status(&gateway, "payin", "in-1").await.expect(200);
    let made = id_of(&payin(&gateway, &bodies::payin("in-2")).await);
    assert_eq!(record(&engine, &made).await["order_id"], "in-2");
}

#[tokio::test]
async fn a_repeat_is_answered_before_rules_that_refuse_it_now() {
    let Pair { mut engine, gateway } = Pair::start();
    // Beta's rules fill in a return address; without it a body that names none cannot be translated any more.
    let beta = gateway.rules_dir().join("merchants/beta.toml");
    let short = with(with(bodies::payin("beta-1"), "paymentData", None), "callback_url", None);
    let filled = send(&gateway, &Request::payin(&BETA, &short)).await.expect(200);
    let rules = std::fs::read_to_string(&beta).unwrap();
    std::fs::write(&beta, rules.replace("return_url", "# return_url")).unwrap();
    let mut tries = 1;
    eventually("the rule is gone", async || {
        tries += 1;
        let other = with(short.clone(), "external_id", Some(format!("beta-{tries}").into()));
        let reply = send(&gateway, &Request::payin(&BETA, &other)).await;
        (reply.status == 400).then_some(())
    })
    .await;
    engine.kill();
    assert_eq!(send(&gateway, &Request::payin(&BETA, &short)).await.expect(200).text(), filled.text());
    let other = with(short, "amount", Some("11".into()));
    send(&gateway, &Request::payin(&BETA, &other)).await.expect(409);
}

#[tokio::test]
async fn refusals_of_the_engine_speak_v1_and_keep_nothing() {
    let Pair { engine: _engine, gateway } = Pair::start();
    let good = bodies::payin("in-1");
    for (member, value, error) in [
        ("paymentData.bank_code", json!("BANK-X"), "paymentData.bank_code: "),
        ("paymentData.level", json!(9), "paymentData.level: "),
        ("shop_code", json!("off-eur"), "shop_code: "),
        ("currency", json!("USD"), "currency: "),
        ("paymentData.email", json!(5), "paymentData.email: "),
    ] {
        let refused = payin(&gateway, &with(good.clone(), member, Some(value))).await.expect(400);
        assert!(refused.message().starts_with(error), "{error}: {}", refused.message());
        assert!(!refused.message().contains("fields"), "{}", refused.message());
        v1_status(&gateway, "payin", "in-1").await.expect(404);
    }
    id_of(&payin(&gateway, &good).await);
    let refused = with(bodies::payout("out-1"), "card_number", Some("4111".into()));
    let refused = payout(&gateway, &refused).await.expect(400);
    assert!(refused.message().starts_with("card_number: "), "{}", refused.message());
}

#[tokio::test]
async fn an_order_that_the_engine_knows_from_elsewhere_is_a_conflict() {
    let Pair { engine, gateway } = Pair::start();
    send(&engine, &Request::deposit(&ACME, &bodies::deposit("taken"))).await.expect(200);
    let conflict = payin(&gateway, &bodies::payin("taken")).await.expect(409);
    assert!(conflict.message().starts_with("external_id: "), "{}", conflict.message());
    assert!(!conflict.message().contains("order_id"), "{}", conflict.message());
    v1_status(&gateway, "payin", "taken").await.expect(404);
}

#[tokio::test]
async fn native_requests_pass_untouched() {
    let Pair { engine, gateway } = Pair::start();
    // Spelt as no program of ours would spell it.
    let body = bodies::deposit("n-1").to_string().replacen("10.5", " 1.050e1 ", 1);
    let request = Request::v2_post(&ACME, "/api/v2/deposits", body);
    let made = send(&gateway, &request).await.expect(200);
    assert_eq!(send(&engine, &request).await.expect(200).text(), made.text(), "one operation, whoever is asked");
    for request in [
        Request::deposit(&ACME, &with(bodies::deposit("n-1"), "amount", Some(json!(11)))),
        Request::deposit(&ACME, &with(bodies::deposit("n-2"), "fields.bank_code", Some("BANK-X".into()))),
        Request::v2_post(&ACME, "/api/v2/deposits", "[]"),
        Request::status(&ACME, "123456"),
        Request::status(&ACME_V2, &id_of(&made)),
    ] {
        let [passed, direct] = [send(&gateway, &request).await, send(&engine, &request).await];
        assert_eq!((passed.status, passed.text()), (direct.status, direct.text()), "{request:?}");
    }
    let forged = Request::deposit(&ACME, &bodies::deposit("n-3")).replace("X-Signature", Some(&"0".repeat(64)));
    send(&gateway, &forged).await.expect(401);
    v1_status(&gateway, "payin", "n-1").await.expect(404);
}

#[tokio::test]
async fn secrets_rotate_without_a_refusal() {
    const KEY: &str = "v2_secret = \"acme-v2-hush-9Xz\"";
    let acme = "merchants/acme.toml";
    let engine = Rules::default().edit(acme, KEY, "v2_secret = [\"acme-v2-hush-9Xz\", \"the-next-hush\"]");
    let Pair { engine: _engine, gateway } =
        Pair::with(&engine, |rules| rules.edit(acme, KEY, "v2_secret = [\"the-next-hush\", \"acme-v2-hush-9Xz\"]"));
    id_of(&payin(&gateway, &bodies::payin("in-1")).await);
    v1_status(&gateway, "payin", "in-1").await.expect(200);
    let next = crate::support::Key { v2: Some("the-next-hush"), ..ACME };
    for (key, order) in [(ACME, "n-1"), (next, "n-2")] {
        let made = send(&gateway, &Request::deposit(&key, &bodies::deposit(order))).await.expect(200);
        send(&gateway, &Request::status(&key, &id_of(&made))).await.expect(200);
    }
}

#[tokio::test]
async fn operators_act_on_no_operation_of_the_engine() {
    let gateway = before_scripted(&Scripted::start(|_, _| error(500, "not asked")).await, "");
    for action in ["ask", "acknowledge"] {
        let path = format!("/operations/1/{action}");
        let (status, page) = gateway.console_post(&path, "", "form=");
        assert!(status == 501 && page.contains("This was not done") && page.contains("The engine is remote"), "{page}");
        let head = format!("POST /api{path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", gateway.admin);
        assert_eq!(gateway.admin_request(&head).unwrap().0, 501, "{path}");
    }
}

#[tokio::test]
async fn an_order_id_of_several_merchants_is_listed_in_pages() {
    let Pair { gateway, engine: _engine } = Pair::start();
    let mut made = Vec::new();
    for key in [ACME, BETA] {
        let reply = send(&gateway, &Request::payin(&key, &bodies::payin("shared"))).await.expect(200).json();
        made.insert(0, text(&reply, "transaction_id").to_owned());
    }
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let (status, page) = gateway.admin_get(&format!("/api/operations?order_id=shared&limit=1{after}")).unwrap();
        let page: Value = serde_json::from_str(&page).unwrap();
        assert_eq!(status, 200, "{page}");
        found.push(text(&page["operations"][0], "transaction_id").to_owned());
        match page["next"].as_str() {
            Some(next) if found.len() < 9 => after = format!("&after={next}"),
            _ => break,
        }
    }
    assert_eq!(found, made, "the newest first, each once");
}
