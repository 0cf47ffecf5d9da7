//! The case of field names over HTTP/1: kept of what is forwarded, title case of the gateway's own (contract section 3).

use super::{answer, old_service, rules};
use crate::support::receiver::{Play, Receiver, trusting};
use crate::support::request::{ACME, BETA, PROTOCOLS, Protocol};
use crate::support::{Gateway, Reply, Request, Rules, bodies, payin, payout};

fn names(reply: &Reply) -> Vec<&str> {
    reply.headers.iter().map(|(name, _)| name.as_str()).collect()
}

/// Reports whether each word of a name begins with a capital, and goes on without.
fn is_title_case(name: &str) -> bool {
    name.split('-').all(|word| {
        let (first, rest) = word.split_at(1);
        first == first.to_ascii_uppercase() && rest == rest.to_ascii_lowercase()
    })
}

#[tokio::test]
async fn forwarded_names_keep_their_case_both_ways() {
    let old = Receiver::start(|_, _| {
        answer(200, "X-OLD-thing: 1\r\nx-lower: 2\r\nSet-Cookie: a=1\r\nset-COOKIE: b=2\r\n", "ok")
    });
    let gateway = Gateway::start(&rules(&old, "client_address_headers = [\"X-Real-IP\"]", "mode = \"legacy\""));
    let request = Request::payin(&ACME, &payin("o-1"))
        .header("X-OWN-thing", "1")
        .header("x-lower-own", "2")
        .header("X-Twice", "a")
        .header("x-TWICE", "b");
    for protocol in PROTOCOLS {
        let reply = gateway.client().unchecked_by(protocol, &request).await.expect(200);
        let received = old.received().pop().unwrap();
        let expected: &[&str] = match protocol {
            Protocol::Http1 => &["X-OWN-thing", "x-lower-own", "X-Twice", "x-TWICE", "Content-Type", "X-Api-Key"],
            // There it has none: names are written as the gateway writes its own.
            Protocol::Http2 => &["X-Own-Thing", "X-Lower-Own", "X-Twice", "X-Twice", "Content-Type", "X-Api-Key"],
        };
        for name in
            expected.iter().chain(&["X-Forwarded-For", "X-Forwarded-Proto", "X-Real-Ip", "X-Request-Id", "Via", "Host"])
        {
            assert!(received.names.iter().any(|sent| sent == name), "{name} in {:?}", received.names);
        }
        assert_eq!(received.all("x-twice"), ["a", "b"]);
        let names = names(&reply);
        match protocol {
            Protocol::Http1 => {
                for name in
                    ["X-OLD-thing", "x-lower", "Set-Cookie", "set-COOKIE", "Content-Length", "X-Request-Id", "Date"]
                {
                    assert!(names.contains(&name), "{name} in {names:?}");
                }
            }
            Protocol::Http2 => assert!(names.iter().all(|name| *name == name.to_ascii_lowercase()), "{names:?}"),
        }
        assert_eq!(reply.all("set-cookie"), ["a=1", "b=2"]);
    }
}

#[tokio::test]
async fn the_gateways_own_names_are_in_title_case() {
    let old = old_service();
    for rules in [Rules::default(), rules(&old, "", "mode = \"translate\"")] {
        let gateway = Gateway::start(&rules);
        let good = Request::v1_get(&ACME, "/api/v1/balance").header("x-odd-CASE", "1");
        for request in [
            good.clone(),
            good.clone().replace("X-Signature", Some("00")),
            Request::new("GET", "/nothing", ""),
            Request::new("PUT", "/api/v1/payin", ""),
        ] {
            let reply = gateway.client().send(&request).await;
            assert!(names(&reply).into_iter().all(is_title_case), "{reply:?}");
            let reply = gateway.client().send_by(Protocol::Http2, &request).await;
            assert!(names(&reply).iter().all(|name| *name == name.to_ascii_lowercase()), "{reply:?}");
        }
    }
}

#[tokio::test]
async fn a_callback_spells_its_headers_as_the_dialect_does() {
    let receiver = Receiver::start(|_, _| Play::Say(200));
    let shouted = "[signature]\napi_key = \"X-API-KEY\"\nsignature = \"x-signature\"\ntimestamp = \"X-TimeStamp\"\n";
    let rules = Rules::default()
        .with("callbacks", &trusting(&[&receiver.ca()]))
        .file("dialects/shouted.toml", shouted)
        .edit("merchants/acme.toml", "name = \"Acme Ltd\"\n", "name = \"Acme Ltd\"\nv1.dialect = \"shouted\"\n");
    let gateway = Gateway::start(&rules);
    for (key, expected) in [
        (&ACME, ["X-API-KEY", "x-signature", "X-TimeStamp", "X-Callback-Id", "Content-Type", "Content-Length", "Host"]),
        (&BETA, ["X-Api-Key", "X-Signature", "X-Timestamp", "X-Callback-Id", "Content-Type", "Content-Length", "Host"]),
    ] {
        let target = format!("/{}", key.name);
        let body = bodies::with(payout("o-1"), "callback_url", Some(receiver.url(&target).into()));
        gateway.client().send(&Request::payout(key, &body)).await.expect(200);
        let callback = receiver.got(&target, 1).await.pop().unwrap();
        for name in expected {
            assert!(callback.names.iter().any(|sent| sent == name), "{name} in {:?}", callback.names);
        }
    }
}
