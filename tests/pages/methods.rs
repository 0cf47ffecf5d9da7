//! Which methods links have: looking is GET and HEAD, and only the sandbox's form is sent.

use crate::browser::{form, visit};
use crate::support::Gateway;
use crate::support::request::{ACME, PROTOCOLS};
use crate::{Deposit, books, rules};

#[tokio::test]
async fn other_methods_are_refused_with_those_that_there_are() {
    let gateway = Gateway::start(&rules());
    let deposit = Deposit::create(&gateway, "methods", "10.50").await;
    let before = books(&gateway, &ACME).await;
    for (kind, allow) in [("pay", "GET, HEAD"), ("return", "GET, HEAD"), ("sandbox", "GET, HEAD, POST")] {
        for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get"] {
            if kind == "sandbox" && method == "POST" {
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
