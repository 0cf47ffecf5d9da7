//! A remote engine's callbacks: what it announces is proved and kept, its status is read, and the merchant is told in the
//! merchant's own words.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::callbacks::verify::{V1, assert_v1, assert_v2};
use crate::callbacks::{QUICK, a_while, assert_all, assert_one, create, decide, path, rules};
use crate::remote::scripted::{EngineRequest, Play, Scripted, created, error};
use crate::support::bodies::with;
use crate::support::http2::Http2;
use crate::support::receiver::{Play as ReceiverPlay, Receiver, trusting};
use crate::support::request::{ACME, ACME_V2, BETA, GAMMA, Key, hmac_hex};
use crate::support::{self, Gateway, Reply, Request, Rules, eventually};

/// Rules of a gateway before the engine on this port of this machine, which shows a certificate by this CA.
fn before(port: u16, ca: &Path, receivers: &[&Receiver], keys: &str) -> Rules {
    let ca = ca.to_str().unwrap();
    let engine = format!("url = \"https://localhost:{port}\"\ntrust = [\"{ca}\"]\n{keys}");
    rules(receivers, QUICK).with("engine", &engine)
}

/// A gateway before a scripted engine.
#[track_caller]
fn before_scripted(engine: &Scripted, receiver: &Receiver, keys: &str) -> Gateway {
    Gateway::start(&before(engine.address.port(), &engine.ca(), &[receiver], keys))
}

fn payout(receiver: &Receiver, external_id: &str) -> Value {
    with(support::payout(external_id), "callback_url", Some(receiver.url(&path(external_id)).into()))
}

/// What an engine that knows one withdrawal says of it.
fn record(order_id: &str, status: &str) -> Play {
    let record = json!({ "order_id": order_id, "transaction_id": "7", "status": status, "amount": 7.25, "currency": "EUR",
        "method": "card-eur", "account_number": "400012******1234" });
    Play::Say(200, record.to_string())
}

fn reported(external_id: &str, id: &str, status: &str) -> Value {
    json!({ "external_id": external_id, "transaction_id": id, "status": status, "amount": "7.25", "currency": "EUR",
        "shop_code": "card-eur" })
}

/// The path of the relay address that an engine was given.
#[track_caller]
fn relay(gateway: &Gateway, asked: &EngineRequest) -> String {
    let url = asked.json()["callback_url"].as_str().unwrap().to_owned();
    let origin = format!("https://localhost:{}", gateway.public.port());
    url.strip_prefix(&origin).unwrap_or_else(|| panic!("{url} is not below {origin}")).to_owned()
}

/// An engine's callback, rightly signed.
fn announced(key: &Key, target: &str, order_id: &str) -> Request {
    let body = json!({ "order_id": order_id }).to_string();
    let signature = hmac_hex(key.v2.unwrap(), body.as_bytes());
    Request::new("POST", target, body).header("Content-Type", "application/json").header("X-Signature", &signature)
}

/// The answer of the relay, whatever its body is.
async fn announce(gateway: &Gateway, request: &Request) -> Reply {
    let mut connection = Http2::connect(&gateway.client()).await;
    connection.exchange("localhost", request, false).await.expect("a reply")
}

fn asks(engine: &Scripted) -> usize {
    engine.asked().iter().filter(|asked| asked.method == "GET").count()
}

#[tokio::test]
async fn what_an_engine_announces_is_proved_first() {
    let receiver = Receiver::good();
    let engine = Scripted::start(|asked, _| match &*asked.method {
        "POST" => created(if asked.body.contains("one") { "7" } else { "8" }),
        _ => record("one", "SUCCESS"),
    })
    .await;
    let gateway = before_scripted(&engine, &receiver, "");
    create(&gateway, &Request::payout(&ACME, &payout(&receiver, "one"))).await;
    create(&gateway, &Request::payout(&ACME, &payout(&receiver, "two"))).await;
    let target = relay(&gateway, &engine.asked()[0]);
    let good = announced(&ACME, &target, "one");

    let unsigned = good.clone().replace("X-Signature", None);
    let wrong = [
        unsigned.clone(),
        unsigned.clone().header("X-Signature", ""),
        unsigned.clone().header("X-Signature", &"0".repeat(64)),
        unsigned.header("X-Signature", &good.value("X-Signature").unwrap()[..63]),
        good.clone().header("X-Signature", good.value("X-Signature").unwrap()),
        announced(&ACME_V2, &target, "one"),
        announced(&BETA, &target, "one"),
        announced(&Key { v2: ACME.v1, ..ACME }, &target, "one"),
        Request { body: br#"{"order_id":"one" }"#.to_vec(), ..good.clone() },
    ];
    for request in &wrong {
        let reply = announce(&gateway, request).await;
        assert!([400, 401].contains(&reply.status), "{request:?}: {reply:?}");
    }
    assert_eq!(announce(&gateway, &good.clone().replace("X-Signature", Some(&"0".repeat(64)))).await.status, 401);

    let (start, code) = target.rsplit_once('.').unwrap();
    let mut unknown = vec![
        format!("{target}0"),
        target[..target.len() - 1].to_owned(),
        format!("{start}."),
        start.to_owned(),
        "/relay/".to_owned(),
        "/relay/x".to_owned(),
        target.replace("/relay/acme.", "/relay/beta."),
        target.replace("/relay/acme.", "/relay/nobody."),
        target.replace(".payout.", ".payin."),
        format!("{start}.{}", code.to_uppercase()),
        format!("{target}/"),
    ];
    let flipped = if code.starts_with('0') { '1' } else { '0' };
    unknown.push(format!("{start}.{flipped}{}", &code[1..]));
    for target in unknown {
        for key in [ACME, BETA] {
            let reply = announce(&gateway, &announced(&key, &target, "one")).await;
            assert_eq!(reply.status, 404, "{target}: {reply:?}");
        }
    }
    for order_id in ["two", "nobody", ""] {
        let reply = announce(&gateway, &announced(&ACME, &target, order_id)).await;
        assert!([400, 404].contains(&reply.status), "{order_id}: {reply:?}");
    }
    for body in ["", "{}", "[]", "null", r#"{"order_id":1}"#, r#"{"order_id":"one","order_id":"one"}"#, "{"] {
        let signature = hmac_hex(ACME.v2.unwrap(), body.as_bytes());
        let request = Request { body: body.into(), ..good.clone() }.replace("X-Signature", Some(&signature));
        let reply = announce(&gateway, &request).await;
        assert_eq!(reply.status, 400, "{body}: {reply:?}");
    }
    let get = Request { method: "GET".to_owned(), body: Vec::new(), ..good.clone() };
    assert_eq!(announce(&gateway, &get).await.status, 405);
    a_while_here().await;
    assert_eq!((receiver.count(), asks(&engine)), (0, 0), "nothing is believed unproved");

    for _ in 0..3 {
        assert_eq!(announce(&gateway, &good).await.status, 200);
    }
    let calls = receiver.got(&path("one"), 1).await;
    assert_v1(&calls[0], &V1, &ACME, &reported("one", "7", "SUCCESS"));
    assert_eq!(announce(&gateway, &good).await.status, 200, "a repeat is answered as the first");
    a_while_here().await;
    assert_eq!(receiver.count(), 1, "and told once");
}

/// Waits as long as several tries take at another gateway, since this one's engine knows no second order.
async fn a_while_here() {
    a_while(&Gateway::start(&rules(&[], QUICK))).await;
}

#[tokio::test]
async fn nothing_is_reported_before_the_engine_has_a_result() {
    let receiver = Receiver::good();
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let engine = Scripted::start(move |asked, _| {
        if asked.method == "POST" {
            return created("7");
        }
        match counter.fetch_add(1, Ordering::Relaxed) {
            0 | 1 | 7 => record("slow", "PENDING"),
            2 => error(503, "later"),
            3 => Play::Close,
            4 => Play::Bytes(b"nonsense\r\n\r\n".to_vec()),
            5 => Play::Say(200, "{}".to_owned()),
            6 => record("another", "SUCCESS"),
            _ => record("slow", "FAILED"),
        }
    })
    .await;
    let gateway = before_scripted(&engine, &receiver, "");
    create(&gateway, &Request::payout(&ACME, &payout(&receiver, "slow"))).await;
    let good = announced(&ACME, &relay(&gateway, &engine.asked()[0]), "slow");
    assert_eq!(announce(&gateway, &good).await.status, 200);
    let calls = receiver.got(&path("slow"), 1).await;
    assert!(asked.load(Ordering::Relaxed) >= 9, "told before the result was known");
    assert_v1(&calls[0], &V1, &ACME, &reported("slow", "7", "FAILED"));
    assert_eq!(announce(&gateway, &good).await.status, 200);
    a_while_here().await;
    assert_eq!(receiver.count(), 1);
}

#[tokio::test]
async fn an_engine_may_sign_in_its_own_way() {
    let receiver = Receiver::good();
    let engine = Scripted::start(|asked, _| match &*asked.method {
        "POST" => created("7"),
        _ => record("one", "SUCCESS"),
    })
    .await;
    let keys = "callback_signature = { header = \"X-Engine-Mac\", payload = \"cb:{body}\", encoding = \"base64\" }";
    let gateway = before_scripted(&engine, &receiver, keys);
    create(&gateway, &Request::payout(&ACME, &payout(&receiver, "one"))).await;
    let plain = announced(&ACME, &relay(&gateway, &engine.asked()[0]), "one");
    assert_eq!(announce(&gateway, &plain).await.status, 401);
    let signed = [b"cb:".as_slice(), &plain.body].concat();
    let hex = hmac_hex(ACME.v2.unwrap(), &signed);
    let bytes: Vec<_> = (0..32).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect();
    let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
    let wrong = plain.clone().header("X-Engine-Mac", &hex);
    assert_eq!(announce(&gateway, &wrong).await.status, 401, "in another encoding");
    let own = plain.replace("X-Signature", None).header("X-Engine-Mac", &encoded);
    assert_eq!(announce(&gateway, &own).await.status, 200);
    assert_v1(&receiver.got(&path("one"), 1).await[0], &V1, &ACME, &reported("one", "7", "SUCCESS"));
}

/// With the embedded engine the way leads inside the process, and nobody outside has an address to announce to.
#[tokio::test]
async fn an_embedded_engine_needs_no_relay() {
    let receiver = Receiver::good();
    let gateway = crate::callbacks::quick(&receiver);
    create(&gateway, &Request::payout(&ACME, &payout(&receiver, "inside"))).await;
    receiver.got(&path("inside"), 1).await;
    let unknown = format!("/relay/acme.payout.{}", "0".repeat(64));
    assert_eq!(announce(&gateway, &announced(&ACME, &unknown, "inside")).await.status, 404);
    a_while(&gateway).await;
    assert_eq!(receiver.count(), 1);
}

/// A gateway before a second one, which calls it back.
struct Pair {
    engine: Gateway,
    gateway: Gateway,
}

impl Pair {
    #[track_caller]
    fn start(receiver: &Receiver) -> Self {
        let at_engine = rules(&[receiver], QUICK);
        let engine = Gateway::start(&at_engine);
        let ca = engine.root.path().join("certs/ca.pem");
        let gateway = Gateway::start(&before(engine.public.port(), &ca, &[receiver], ""));
        // The gateway's CA is there only now.
        let roots = [receiver.ca(), gateway.root.path().join("certs/ca.pem")];
        let trust = trusting(&[&roots[0], &roots[1]]);
        let file = engine.rules_dir().join("gateway.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace(&trusting(&[&roots[0]]), &trust)).unwrap();
        engine.reload();
        Self { engine, gateway }
    }
}

#[tokio::test]
async fn results_of_a_second_gateway_come_through() {
    let receiver =
        Receiver::start(|_, before| if before == 0 { ReceiverPlay::Say(500) } else { ReceiverPlay::Say(200) });
    let Pair { engine, gateway } = Pair::start(&receiver);
    let id = create(&gateway, &Request::payout(&ACME, &payout(&receiver, "paid"))).await;
    let tries = receiver.got(&path("paid"), 2).await;
    assert_all(&tries, |received| assert_v1(received, &V1, &ACME, &reported("paid", &id, "SUCCESS")));

    // Who takes v2 callbacks gets the engine's own.
    create(&gateway, &Request::payout(&GAMMA, &payout(&receiver, "modern"))).await;
    let tries = receiver.got(&path("modern"), 2).await;
    assert_all(&tries, |received| assert_v2(received, GAMMA.v2.unwrap(), "modern"));

    // A customer pays at the engine.
    let body = with(support::payin("bought"), "callback_url", Some(receiver.url(&path("bought")).into()));
    let reply = gateway.client().send(&Request::payin(&ACME, &body)).await.expect(200);
    decide(&engine, &reply, "pay").await;
    let tries = receiver.got(&path("bought"), 2).await;
    assert_one(&tries);
    assert_eq!((&tries[0].json()["status"], &tries[0].json()["amount"]), (&json!("SUCCESS"), &json!("10.50")));
    a_while(&engine).await;
    assert_eq!(receiver.count(), 6);
}

/// What was announced is on disk before it is answered: neither end's death loses or doubles it.
#[tokio::test]
async fn what_was_announced_survives_kill_9_of_either() {
    let receiver = Receiver::start(|_, before| if before < 2 { ReceiverPlay::Hang } else { ReceiverPlay::Say(200) });
    let Pair { mut engine, mut gateway } = Pair::start(&receiver);
    let id = create(&gateway, &Request::payout(&ACME, &payout(&receiver, "killed"))).await;
    receiver.got(&path("killed"), 1).await;
    gateway.kill();
    engine.kill();
    gateway.restart();
    engine.restart();
    let tries = receiver.got(&path("killed"), 3).await;
    assert_eq!(tries.len(), 3, "none was lost, and none is sent twice at a time");
    assert_all(&tries, |received| assert_v1(received, &V1, &ACME, &reported("killed", &id, "SUCCESS")));
    let again = create(&gateway, &Request::payout(&ACME, &payout(&receiver, "killed"))).await;
    assert_eq!(again, id);
}

/// The engine is away when its announcement is to be read: it is asked until it is back.
#[tokio::test]
async fn an_engine_that_is_away_is_asked_when_it_is_back() {
    let receiver = Receiver::good();
    let real = Gateway::start(&Rules::default());
    let away = Arc::new(AtomicUsize::new(usize::MAX));
    let script = away.clone();
    let engine = Scripted::before(&real, move |asked, before| {
        if asked.method == "GET" && before < script.load(Ordering::Relaxed) { Play::Close } else { Play::Forward }
    })
    .await;
    let gateway = before_scripted(&engine, &receiver, "");
    let id = create(&gateway, &Request::payout(&ACME, &payout(&receiver, "one"))).await;
    let good = announced(&ACME, &relay(&gateway, &engine.asked()[0]), "one");
    assert_eq!(announce(&gateway, &good).await.status, 200);
    eventually("it is asked for", async || (asks(&engine) >= 3).then_some(())).await;
    assert_eq!(receiver.count(), 0);
    away.store(0, Ordering::Relaxed);
    assert_v1(&receiver.got(&path("one"), 1).await[0], &V1, &ACME, &reported("one", &id, "SUCCESS"));
}

/// Merchants that leave are told when they are back, here too.
#[tokio::test]
async fn a_merchant_that_is_away_is_reported_when_it_is_back() {
    let receiver = Receiver::good();
    let engine = Scripted::start(|asked, _| match &*asked.method {
        "POST" => created("7"),
        _ => record("one", "SUCCESS"),
    })
    .await;
    let all = before(engine.address.port(), &engine.ca(), &[&receiver], "");
    let gateway = Gateway::start(&all);
    create(&gateway, &Request::payout(&BETA, &payout(&receiver, "one"))).await;
    let good = announced(&BETA, &relay(&gateway, &engine.asked()[0]), "one");
    std::fs::remove_file(gateway.rules_dir().join("merchants/beta.toml")).unwrap();
    gateway.reload_with(&all.clone().without("merchants/beta.toml").without("shops/beta-only.toml"));
    let reply = announce(&gateway, &good).await;
    assert!([401, 404].contains(&reply.status), "nobody can tell whether it is true: {reply:?}");
    gateway.reload_with(&all);
    assert_eq!(announce(&gateway, &good).await.status, 200);
    assert_v1(&receiver.got(&path("one"), 1).await[0], &V1, &BETA, &reported("one", "7", "SUCCESS"));
}
