//! Merchants beside each other: what the receivers of one do, or fail to do, delays no callback of another.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::callbacks::{a_while, deposit, path, rules};
use crate::support::bodies::with;
use crate::support::receiver::{Play, Received, Receiver};
use crate::support::request::{ACME, BETA, Key};
use crate::support::{self, Gateway, Request, eventually};

/// A silent receiver holds its place longer than a test waits.
const PATIENT: &str = "timeout = \"2m\"";

/// The create of a deposit that fails at once, and so has a callback.
fn failed(key: &Key, receiver: &Receiver, order_id: &str) -> Request {
    Request::deposit(key, &deposit(receiver, order_id, "10.01"))
}

fn hangs(received: &Received) -> Play {
    if received.target.starts_with("/cb/hang") { Play::Hang } else { Play::Say(200) }
}

#[tokio::test]
async fn hanging_callbacks_of_a_merchant_delay_no_other_at_the_same_origin() {
    let platform = Receiver::start(|received, _| hangs(received));
    let gateway = Gateway::start(&rules(&[&platform], PATIENT));
    let client = gateway.client();
    for number in 0..6 {
        client.send(&failed(&ACME, &platform, &format!("hang-{number}"))).await.expect(200);
    }
    eventually("some hang", async || (platform.count() >= 4).then_some(())).await;
    client.send(&failed(&BETA, &platform, "beta")).await.expect(200);
    platform.got(&path("beta"), 1).await;
    assert_eq!(platform.count(), 5, "the others wait for their own");
    platform.let_go();
}

/// A port that accepts on every loopback address, and never says anything; and how many connections came.
async fn silent_port() -> (u16, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    let (port, count) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let accepted = Arc::clone(&count);
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            open.push(stream);
            accepted.fetch_add(1, Ordering::Relaxed);
        }
    });
    (port, count)
}

/// Creates withdrawals of [`BETA`] that fail at once, each with a callback to another silent address. Over plain http,
/// because a TLS handshake has a limit of its own.
async fn create_silent(gateway: &Gateway, port: u16, count: usize) {
    const CONNECTIONS: usize = 8;
    let creates: Vec<_> = (0..CONNECTIONS)
        .map(|first| {
            let client = gateway.client();
            tokio::spawn(async move {
                let mut connection = client.connect().await;
                for number in (first..count).step_by(CONNECTIONS) {
                    let url = format!("http://127.{}.{}.1:{port}/cb", 1 + number / 256, number % 256);
                    let body = with(support::payout(&format!("silent-{number}")), "amount", Some("10.01".into()));
                    let body = with(body, "callback_url", Some(url.into()));
                    connection.send(&Request::payout(&BETA, &body)).await.expect(200);
                }
            })
        })
        .collect();
    for create in creates {
        create.await.unwrap();
    }
}

#[tokio::test]
async fn silent_targets_of_a_merchant_delay_no_other() {
    let receiver = Receiver::good();
    let (port, connections) = silent_port().await;
    let mut gateway = Gateway::start(&rules(&[&receiver], PATIENT));
    // More than there are places for targets that were never called.
    create_silent(&gateway, port, 600).await;
    eventually("its places are taken", async || (connections.load(Ordering::Relaxed) >= 200).then_some(())).await;
    gateway.client().send(&failed(&ACME, &receiver, "first")).await.expect(200);
    receiver.got(&path("first"), 1).await;

    // After a restart, no target is known.
    gateway.kill();
    let before = connections.load(Ordering::Relaxed);
    gateway.restart();
    eventually("its places are taken again", async || {
        (connections.load(Ordering::Relaxed) >= before + 200).then_some(())
    })
    .await;
    gateway.client().send(&failed(&ACME, &receiver, "second")).await.expect(200);
    receiver.got(&path("second"), 1).await;
}

#[tokio::test]
async fn a_platform_of_many_merchants_gets_a_few_requests_at_a_time() {
    const AT_ONCE: usize = 64;
    let platform = Receiver::start(|received, before| if before == 0 { hangs(received) } else { Play::Say(200) });
    let mut rules = rules(&[&platform], "timeout = \"2m\"\nfirst_retry = \"100ms\"\nmax_retry = \"400ms\"");
    let keys: Vec<Key> = (0..100)
        .map(|number| {
            let [name, secret] = ["key", "hush"].map(|kind| &*Box::leak(format!("shop-{number}-{kind}").into_boxed_str()));
            let merchant = format!(
                "default_shop = \"card-eur\"\n[[api_keys]]\nkey = \"{name}\"\nv2_secret = \"{secret}\"\n\
                 allowed_ips = [\"127.0.0.1\"]\n[shops.card-eur]\npayin = true\n[v1]\nreturn_url = \"https://acme.example/\"\n"
            );
            rules.put(&format!("merchants/shop-{number}.toml"), merchant);
            Key { name, v1: None, v2: Some(secret) }
        })
        .collect();
    let gateway = Gateway::start(&rules);
    let client = gateway.client();
    for (number, key) in keys.iter().enumerate() {
        client.send(&failed(key, &platform, &format!("hang-{number}"))).await.expect(200);
    }
    eventually("the origin's places are taken", async || (platform.count() >= AT_ONCE).then_some(())).await;
    a_while(&gateway).await;
    assert_eq!((platform.count(), platform.connections()), (AT_ONCE, AT_ONCE));
    platform.let_go();
    for number in 0..keys.len() {
        platform.got(&path(&format!("hang-{number}")), 1).await;
    }
}
