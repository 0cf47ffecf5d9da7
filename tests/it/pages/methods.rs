//! Which methods links have: looking is GET and HEAD, a return is POST as well, and only the sandbox's form is read.

use crate::pages::browser::{assert_state, form, page, request, visit};
use crate::pages::{Deposit, PREPARING, books, rules};
use crate::support::request::{ACME, PROTOCOLS, Protocol};
use crate::support::{Gateway, Reply};

fn headers(reply: &Reply) -> Vec<(String, &str)> {
    let known = reply.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()));
    let mut rest: Vec<_> = known.filter(|(name, _)| name != "date" && name != "connection").collect();
    rest.sort();
    rest
}

/// Link previews and virus scanners look with HEAD: they learn what GET says, and change nothing.
#[tokio::test]
async fn head_is_get_without_a_body() {
    let gateway = Gateway::start(&rules());
    let mut links = Vec::new();
    for amount in ["10.50", "10.01", "10.02", "10.03"] {
        let deposit = Deposit::create(&gateway, &format!("head-{amount}"), amount).await;
        links.extend(["pay", "return", "sandbox"].map(|kind| deposit.link(kind)));
        links.push(format!("{}x", deposit.entry));
    }
    links.push(Deposit::of_shop(&gateway, PREPARING, "head-slow", "10.50").await.entry);
    let before = books(&gateway, &ACME).await;
    for link in &links {
        for protocol in PROTOCOLS {
            let ask = |method| request(method, link).header("X-Request-Id", "the-same");
            let get = visit(&gateway, protocol, &ask("GET")).await;
            let head = visit(&gateway, protocol, &ask("HEAD")).await;
            assert_eq!((head.status, headers(&head)), (get.status, headers(&get)), "{protocol:?} {link}");
            assert_eq!(head.header("content-length"), get.body.len().to_string(), "{protocol:?} {link}");
            assert!(head.body.is_empty(), "{protocol:?} {link}");
        }
    }
    assert_eq!(books(&gateway, &ACME).await, before);
}

#[tokio::test]
async fn other_methods_are_refused_with_those_that_there_are() {
    let gateway = Gateway::start(&rules());
    let deposit = Deposit::create(&gateway, "methods", "10.50").await;
    let before = books(&gateway, &ACME).await;
    for (kind, allow) in [("pay", "GET, HEAD"), ("return", "GET, HEAD, POST"), ("sandbox", "GET, HEAD, POST")] {
        for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get"] {
            if kind != "pay" && method == "POST" {
                continue;
            }
            for protocol in PROTOCOLS {
                let mut request = form(&deposit.link(kind), "decision=pay");
                method.clone_into(&mut request.method);
                if method != "POST" {
                    request.body.clear();
                }
                let reply = visit(&gateway, protocol, &request).await.expect(405);
                assert_eq!(reply.header("allow"), allow, "{method} {kind}");
            }
        }
    }
    assert_eq!(books(&gateway, &ACME).await, before);
}

/// Requests that no browser sends are refused like all others: with a page, and nothing happens.
#[tokio::test]
async fn malformed_requests_are_reported_to_a_person_too() {
    let gateway = Gateway::start(&rules());
    let deposit = Deposit::create(&gateway, "malformed", "10.50").await;
    let good = request("GET", &deposit.link("return"));
    let mut with_body = good.clone();
    with_body.body = "decision=pay".into();
    let odd = [
        (400, good.clone().header("Host", "other.example")),
        (400, good.clone().header("Transfer-Encoding", "gzip")),
        (415, good.clone().header("Content-Encoding", "gzip")),
        (431, good.clone().header("X-Long", &"x".repeat(32 * 1024))),
        (400, with_body),
    ];
    for (status, asked) in odd {
        let reply = visit(&gateway, Protocol::Http1, &asked).await;
        assert_state(&page(&reply, status), "error");
    }
    visit(&gateway, Protocol::Http1, &good).await.expect(303);
    deposit.assert_status(&gateway, "PENDING").await;
}
