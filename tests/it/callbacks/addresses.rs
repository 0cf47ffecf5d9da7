//! Where callbacks may go: what a name leads to is looked at when it is called, and nothing private is, unless the rules say
//! so.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;

use paybridge::store::{CallbackState, TryOutcome};

use crate::callbacks::book::Book;
use crate::callbacks::verify::assert_v2;
use crate::callbacks::{QUICK, create, eventually, rules, withdrawal};
use crate::support::bodies::with;
use crate::support::receiver::{Identity, Manner, Play, Receiver};
use crate::support::request::ACME;
use crate::support::{Gateway, Request};

/// Every way to this machine that a URL has; `{}` is the port.
const HERE: [&str; 9] = [
    "https://127.0.0.1:{}/cb",
    "https://127.1.2.3:{}/cb",
    "https://localhost:{}/cb",
    "https://LOCALHOST:{}/cb",
    "https://localhost.:{}/cb",
    "https://[::1]:{}/cb",
    "https://[::ffff:127.0.0.1]:{}/cb",
    "https://0.0.0.0:{}/cb",
    "https://[::]:{}/cb",
];

/// Spellings that only some parsers read as this machine: refused at creation, or not called.
const SPELT: [&str; 5] = [
    "https://2130706433:{}/cb",
    "https://0x7f000001:{}/cb",
    "https://0177.0.0.1:{}/cb",
    "https://127.1:{}/cb",
    "https://[::7f00:1]:{}/cb",
];

/// A receiver at every address of this machine, of both kinds.
fn everywhere() -> Receiver {
    let all = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    let identity = Arc::new(Identity::new(&["http/1.1"]));
    Receiver::at(all, &identity, |_| Manner::Serve, |_, _| Play::Say(200))
}

#[tokio::test]
async fn nothing_private_is_ever_connected_to() {
    let receiver = everywhere();
    let private = rules(&[&receiver], QUICK).with("callbacks", "allow_private_addresses = false");
    let gateway = Gateway::start(&private);
    let port = receiver.address.port().to_string();
    let mut created = Vec::new();
    for (number, url) in HERE.iter().chain(&SPELT).enumerate() {
        let order_id = format!("order-{number}");
        let url = url.replace("{}", &port);
        let body = with(withdrawal(&receiver, &order_id, "7.25"), "callback_url", Some(url.clone().into()));
        let reply = gateway.client().send(&Request::withdrawal(&ACME, &body)).await;
        assert!(reply.status == 200 || number >= HERE.len() && reply.status == 400, "{url}: {}", reply.text());
        if reply.status == 200 {
            created.push((order_id, url));
        }
    }
    let book = Book::of(&gateway);
    for (order_id, url) in &created {
        let record = eventually(&format!("{url} is tried"), async || {
            let [record] = &book.of_order("acme", order_id).await[..] else { return None };
            (record.tries >= 2).then(|| record.clone())
        })
        .await;
        assert_eq!(record.state, CallbackState::Pending, "{url}: the rules may change");
        assert!(matches!(record.last, Some(TryOutcome::Error(_))), "{url}: {record:?}");
    }
    assert_eq!(receiver.connections(), 0, "the gateway called itself home");
}

/// The same address is called when the rules allow it, which shows that only they kept it from being called.
#[tokio::test]
async fn what_the_rules_allow_is_called_from_then_on() {
    let receiver = everywhere();
    let private = rules(&[&receiver], QUICK).with("callbacks", "allow_private_addresses = false");
    let gateway = Gateway::start(&private);
    let port = receiver.address.port();
    let book = Book::of(&gateway);
    for (number, host) in ["localhost", "127.0.0.1"].into_iter().enumerate() {
        let (order_id, target) = (format!("order-{number}"), format!("/late/{number}"));
        let url = format!("https://{host}:{port}{target}");
        let body = with(withdrawal(&receiver, &order_id, "7.25"), "callback_url", Some(url.into()));
        create(&gateway, &Request::withdrawal(&ACME, &body)).await;
        eventually("it is tried", async || {
            book.of_order("acme", &order_id).await.iter().any(|record| record.tries > 0).then_some(())
        })
        .await;
    }
    assert_eq!(receiver.connections(), 0);
    gateway.reload_with(&rules(&[&receiver], QUICK));
    let reported = receiver.got("/late/0", 1).await;
    assert_v2(&reported[0], ACME.v2.unwrap(), "order-0");
    receiver.got("/late/1", 1).await;
}
