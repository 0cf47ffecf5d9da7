//! Pages have a rate limit of their own for each address, which holds up nobody else.

use crate::pages::browser::{ACCEPT, assert_state, check, from, location, page, request, visit};
use crate::pages::{Deposit, PENDING_URL, rules};
use crate::support::http2::{Http2, finish};
use crate::support::request::Protocol;
use crate::support::{Gateway, Reply, Request};

/// How many requests are under way at once.
const AT_ONCE: usize = 20;

/// Asks from one address as fast as it goes, until it is refused.
async fn asked_too_often(gateway: &Gateway, request: &Request) -> Reply {
    let mut connection = Http2::connect(&gateway.client()).await;
    for _ in 0..500 {
        let mut pending = Vec::new();
        for _ in 0..AT_ONCE {
            pending.push(connection.start("localhost", request, true).await.unwrap().0);
        }
        for response in pending {
            let reply = finish(response).await.unwrap();
            check(request, &reply);
            if reply.status == 429 {
                return reply;
            }
            assert!([200, 303, 403].contains(&reply.status), "{reply:?}");
        }
    }
    panic!("never refused");
}

/// 429 says when to come back, and a browser does so by itself.
#[track_caller]
fn assert_busy(reply: &Reply) {
    let seconds: u64 = reply.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    assert_eq!(reply.header("refresh"), seconds.to_string());
    assert_state(&page(reply, 429), "busy");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_asks_too_often_is_held_up_and_nobody_else() {
    // Slow to refill, so that a loaded machine is fast enough.
    let gateway = Gateway::start(&rules().with("limits", "pages_per_ip = { per_second = 1, burst = 20 }"));
    let deposit = Deposit::create(&gateway, "often", "10.02").await;
    let hosted = Deposit::create(&gateway, "hosted", "10.50").await;

    // From the address that the merchant's requests come from, without a proxy between.
    let direct = Request::new("GET", &deposit.link("return"), "").header("Accept", ACCEPT);
    assert_busy(&asked_too_often(&gateway, &direct).await);
    // Neither the merchant nor a customer from elsewhere notices.
    Deposit::create(&gateway, "meanwhile", "10.50").await.assert_status(&gateway, "PENDING").await;
    let elsewhere = visit(&gateway, Protocol::Http1, &request("GET", &deposit.link("return"))).await;
    assert_eq!(location(&elsewhere), PENDING_URL);

    // Behind a proxy, addresses count apart; all pages and methods of one count together.
    let guessed = from("203.0.113.7", "GET", "/pay/1?expires=1&signature=1");
    assert_busy(&asked_too_often(&gateway, &guessed).await);
    let mut refused = 0;
    for _ in 0..50 {
        // As long as it is refused it is not looked at: nothing is posted.
        asked_too_often(&gateway, &guessed).await;
        let mut paid = from("203.0.113.7", "POST", &hosted.link("sandbox"));
        paid.body = "decision=maybe".into();
        let paid = paid.header("Content-Type", "application/x-www-form-urlencoded");
        refused += usize::from(visit(&gateway, Protocol::Http1, &paid).await.status == 429);
        if refused > 0 {
            break;
        }
    }
    assert!(refused > 0, "its forms count as well");
    for other in ["203.0.113.8", "2001:db8::7"] {
        let reply = visit(&gateway, Protocol::Http1, &from(other, "GET", &deposit.entry)).await;
        assert_state(&page(&reply, 200), "stopped");
    }
    hosted.assert_status(&gateway, "PENDING").await;

    // A program is told as programs are.
    let program = from("203.0.113.9", "GET", &deposit.entry).replace("Accept", Some("application/json"));
    let reply = asked_too_often(&gateway, &program).await;
    assert!(!reply.message().is_empty() && !reply.all("retry-after").is_empty(), "{reply:?}");
}
