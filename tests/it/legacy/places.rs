//! Places to the old service and to a remote engine: no merchant can use them up (contract section 6).

use std::sync::Arc;

use tokio::task::JoinSet;

use super::operations;
use crate::support::http2::{Http2, finish};
use crate::support::receiver::{Identity, Manner, Play, Received, Receiver};
use crate::support::request::{ACME, BETA};
use crate::support::{Client, Gateway, Reply, Request, Rules, eventually, payin};

/// Half of the places.
const HALF: usize = 1024;
/// What one merchant sends: connections, and requests on each.
const FLOOD: (usize, usize) = (20, 110);

/// A service that never answers what is named so, and says 400 to everything else.
fn holding(alpn: &str) -> Receiver {
    let held = |received: &Received| String::from_utf8_lossy(&received.body).contains("held-");
    let identity = Arc::new(Identity::new(&[alpn]));
    Receiver::on(
        0,
        &identity,
        |_| Manner::Serve,
        move |received, _| if held(received) { Play::Hang } else { Play::Say(400) },
    )
}

/// The key of a section that trusts a service and waits long for it.
fn toward(service: &Receiver) -> String {
    format!("url = \"{}\"\ntrust = [\"{}\"]\ntimeout = \"5m\"", service.url(""), service.ca().display())
}

/// Sends the flood, until every request has a reply or is held. Returns the replies.
async fn flood(client: &Client, service: &Receiver) -> (JoinSet<Option<Reply>>, Vec<Reply>) {
    let mut requests = JoinSet::new();
    for connection in 0..FLOOD.0 {
        let mut http2 = Http2::connect(client).await;
        for number in 0..FLOOD.1 {
            let request = Request::payin(&ACME, &payin(&format!("held-{connection}-{number}")));
            let (response, mut body) = http2.start("localhost", &request, true).await.unwrap();
            body.reserve_capacity(request.body.len());
            body.send_data(request.body.clone().into(), true).unwrap();
            // Dropping the connection's handle would close it.
            requests.spawn(async move { finish(response).await.ok() });
        }
        requests.spawn(async move {
            let mut http2 = http2;
            http2.closed_by_peer().await;
            None
        });
    }
    let mut replies = Vec::new();
    while replies.len() < FLOOD.0 * FLOOD.1 - HALF {
        replies.extend(requests.join_next().await.unwrap().unwrap());
    }
    eventually("the rest is held", async || (service.count() == HALF).then_some(())).await;
    (requests, replies)
}

#[track_caller]
fn assert_refused(replies: &[Reply]) {
    for reply in replies {
        assert_eq!((reply.status, reply.header("retry-after")), (503, "1"), "{}", reply.text());
        assert!(reply.message().ends_with("with the same external_id, may be sent again"), "{}", reply.message());
    }
}

#[tokio::test]
async fn one_merchant_cannot_use_up_the_places_to_the_old_service() {
    for alpn in ["http/1.1", "h2"] {
        let old = holding(alpn);
        let rules = Rules::default().with("legacy", &(toward(&old) + "\npaths = [\"/api/v1/refunds\"]")).edit(
            "merchants/acme.toml",
            "name = \"Acme Ltd\"\n",
            "name = \"Acme Ltd\"\nv1.mode = \"legacy\"\n",
        );
        let gateway = Gateway::start(&rules);
        let (held, replies) = flood(&gateway.client(), &old).await;
        assert_refused(&replies);
        let refund = |key| Request::v1_post(key, "/api/v1/refunds", "{}");
        let reply = gateway.client().send(&refund(&ACME)).await.expect(503);
        assert!(
            reply.message().ends_with("nothing was done, and the same request may be sent again"),
            "{}",
            reply.message()
        );
        // Another merchant is served, whatever the first one does.
        assert_eq!(gateway.client().send_unchecked(&refund(&BETA)).await.status, 400, "{alpn}");
        drop(held);
        assert_eq!(gateway.client().send_unchecked(&refund(&BETA)).await.status, 400, "{alpn}");
        assert_eq!(old.count(), HALF + 2, "nothing else was sent");
        old.let_go();
        eventually("places are given back", async || {
            let reply = gateway.client().send_unchecked(&refund(&ACME)).await;
            (reply.status == 400).then_some(())
        })
        .await;
        assert_eq!(operations(&gateway), 0);
    }
}

#[tokio::test]
async fn one_merchant_cannot_use_up_the_places_to_a_remote_engine() {
    for alpn in ["http/1.1", "h2"] {
        let engine = holding(alpn);
        let gateway = Gateway::start(&Rules::default().with("engine", &toward(&engine)));
        let (_held, replies) = flood(&gateway.client(), &engine).await;
        assert_refused(&replies);
        let reply = gateway.client().send(&Request::payin(&BETA, &payin("theirs"))).await;
        assert_eq!((reply.status, engine.count()), (400, HALF + 1), "{alpn}: {}", reply.text());
    }
}
