//! Keys, shops and directions that v2 is not enabled for: what native requests get, and that v1 does not notice.

use crate::remote::before;
use crate::support::bodies::with;
use crate::support::reply::assert_same;
use crate::support::request::{ACME, ACME_V2, Key, PROTOCOLS};
use crate::support::stored::{CREATES, Create};
use crate::support::{Gateway, Request, Rules, eventually, text};

const ACME_FILE: &str = "merchants/acme.toml";

const KINDS: [Create; 2] = [Create::Deposit, Create::Withdrawal];

/// Rules in which v2 is not enabled for [`ACME`].
fn without_v2() -> Rules {
    Rules::default().edit(ACME_FILE, "acme-v2-hush-9Xz\"\n", "acme-v2-hush-9Xz\"\nv2 = false\n")
}

/// Rules in which native creates of a shop are enabled like this.
fn shop(v2: &str) -> Rules {
    Rules::default().edit(ACME_FILE, "[shops.card-eur]\n", &format!("[shops.card-eur]\nv2 = {v2}\n"))
}

// keeps P193, P262, D059
#[tokio::test]
async fn a_key_without_v2_is_no_enabled_key() {
    let gateway = Gateway::start(&without_v2());
    let client = gateway.client();
    let stranger = Key { name: "nobody", ..ACME };
    let native = Create::Deposit.create(&client, &ACME_V2, &Create::Deposit.body("native")).await.json();
    let native = text(&native, "transaction_id");
    for (number, protocol) in PROTOCOLS.into_iter().enumerate() {
        let id = format!("refused-{number}");
        let requests = |key: &Key| {
            [
                Create::Deposit.request(key, Create::Deposit.body(&id).to_string()),
                Create::Withdrawal.request(key, Create::Withdrawal.body(&id).to_string()),
                Request::status(key, native),
            ]
        };
        for (refused, unknown) in requests(&ACME).iter().zip(requests(&stranger)) {
            let unknown = client.send_by(protocol, &unknown).await.expect(401);
            assert_same(&client.send_by(protocol, refused).await.expect(401), &unknown);
        }
        for kind in KINDS {
            kind.assert_nothing_stored(&client, &ACME_V2, &id).await;
        }
    }
    let logged = Request::status(&ACME, native).header("X-Request-Id", "not-enabled");
    client.send(&logged).await.expect(401);
    eventually("its line", async || {
        let line = gateway.log().lines().find(|line| line.contains("request_id=not-enabled"))?.to_owned();
        assert!(line.contains("reason=v2_not_enabled") && line.contains("merchant=acme"), "{line}");
        Some(())
    })
    .await;
    let (_, metrics) = gateway.admin_get("/metrics").unwrap();
    assert!(metrics.contains("paybridge_refusals_total{reason=\"v2_not_enabled\"} 7\n"), "{metrics}");
    let (_, page) = gateway.admin_get("/merchants/acme").unwrap();
    assert!(page.contains("v2_not_enabled"), "{page}");
    // The key's v1 requests become v2 ones as before.
    for kind in CREATES.into_iter().filter(|kind| kind.is_v1()) {
        let reply = kind.create(&client, &ACME, &kind.body("by-v1")).await.json();
        client.send(&kind.status(&ACME, "by-v1", &reply)).await.expect(200);
    }
}

#[tokio::test]
async fn a_key_without_v2_is_throttled_like_an_unknown_one() {
    let rules = without_v2().with("limits", "unauthenticated_per_ip = { per_second = 1, burst = 3 }");
    let gateway = Gateway::start(&rules);
    let client = gateway.client();
    let mut statuses = Vec::new();
    for _ in 0..20 {
        statuses.push(client.send(&Request::status(&ACME, "1")).await.status);
        client.send(&Request::status(&ACME_V2, "1")).await.expect(404);
    }
    assert_eq!(statuses[..3], [401, 401, 401]);
    assert!(statuses.contains(&429), "{statuses:?}");
}

// keeps P007, P262, D060
#[tokio::test]
async fn a_direction_without_v2_refuses_native_creates_alone() {
    for (v2, taken) in [
        ("true", [true, true]),
        ("false", [false, false]),
        ("{ payout = false }", [true, false]),
        ("{ payin = false, payout = true }", [false, true]),
    ] {
        let gateway = Gateway::start(&shop(v2));
        let client = gateway.client();
        for (kind, taken) in KINDS.into_iter().zip(taken) {
            for method in [Some("card-eur"), None] {
                let id = format!("{kind:?}-{}", method.is_some());
                let body = with(kind.body(&id), "method", method.map(Into::into));
                if taken {
                    kind.create(&client, &ACME_V2, &body).await;
                    continue;
                }
                let reply = client.send(&kind.request(&ACME_V2, body.to_string())).await.expect(400);
                assert!(reply.message().starts_with("method: "), "{}", reply.message());
                // Nothing was stored: another shop takes the id.
                kind.create(&client, &ACME_V2, &with(body, "method", Some("slow-eur".into()))).await;
            }
        }
        for kind in CREATES.into_iter().filter(|kind| kind.is_v1()) {
            kind.create(&client, &ACME, &kind.body("by-v1")).await;
        }
    }
}

// keeps D060
#[tokio::test]
async fn what_exists_is_answered_whatever_v2_of_the_shop_is_today() {
    let gateway = Gateway::start(&shop("true"));
    let client = gateway.client();
    let mut made = Vec::new();
    for kind in KINDS {
        for method in [Some("card-eur"), None] {
            let body = with(kind.body(&format!("{kind:?}-{method:?}")), "method", method.map(Into::into));
            made.push((kind, kind.create(&client, &ACME_V2, &body).await, body));
        }
    }
    let file = gateway.rules_dir().join(ACME_FILE);
    let rules = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, rules.replace("v2 = true", "v2 = false")).unwrap();
    let mut tries = 0;
    eventually("the rule is in force", async || {
        tries += 1;
        let body = Create::Deposit.body(&format!("try-{tries}")).to_string();
        (client.send(&Create::Deposit.request(&ACME_V2, body)).await.status == 400).then_some(())
    })
    .await;
    for (kind, first, body) in &made {
        assert_same(&kind.create(&client, &ACME_V2, body).await, first);
        let other = with(body.clone(), "amount", Some(3.into()));
        client.send(&kind.request(&ACME_V2, other.to_string())).await.expect(409);
        let id = first.json();
        client.send(&Request::status(&ACME_V2, text(&id, "transaction_id"))).await.expect(200);
    }
}

// keeps D059, D060
#[tokio::test]
async fn before_a_remote_engine_only_the_key_counts() {
    let engine = Gateway::start(&Rules::default());
    let (port, ca) = (engine.public.port(), engine.root.path().join("certs/ca.pem"));
    let rules = before(port, &ca, "").edit(ACME_FILE, "acme-v2-hush-9Xz\"\n", "acme-v2-hush-9Xz\"\nv2 = false\n").edit(
        ACME_FILE,
        "[shops.card-eur]\n",
        "[shops.card-eur]\nv2 = false\n",
    );
    let gateway = Gateway::start(&rules);
    let client = gateway.client();
    for kind in KINDS {
        client.send(&kind.request(&ACME, kind.body("refused").to_string())).await.expect(401);
        let reply = kind.create(&client, &ACME_V2, &kind.body("taken")).await.json();
        client.send(&kind.status(&ACME_V2, "taken", &reply)).await.expect(200);
        client.send(&kind.status(&ACME, "taken", &reply)).await.expect(401);
    }
    for kind in CREATES.into_iter().filter(|kind| kind.is_v1()) {
        let reply = kind.create(&client, &ACME, &kind.body("by-v1")).await.json();
        client.send(&kind.status(&ACME, "by-v1", &reply)).await.expect(200);
    }
}
