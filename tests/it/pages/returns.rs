//! The return link: taken from a page as a browser takes it, decided by the status at that moment, with a life of its own.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::pages::browser::{assert_state, form, location, open, page, press, request, visit};
use crate::pages::{
    Deposit, FAIL_URL, PENDING_URL, PREPARING, SECRET, SUCCESS_URL, books, ended, eventually, expires, rules,
    rules_with,
};
use crate::support::http2::{Http2, finish};
use crate::support::request::{ACME, PROTOCOLS, Protocol, hmac_hex, unix_now};
use crate::support::{Gateway, Rules};

/// The return link that a page offers, whole.
async fn offered(gateway: &Gateway, deposit: &Deposit) -> String {
    page(&open(gateway, &deposit.entry).await, 200).return_link()
}

/// Rules in which pages of the quick shop offer no return.
fn without_return() -> Rules {
    rules().edit("shops/card-eur.toml", "[payin]\n", "[payin]\nbrowser_return = false\n")
}

// keeps P098, P099, P100, P101, P102, P183
#[tokio::test]
async fn the_status_at_that_moment_decides_where_a_return_leads() {
    let gateway = Gateway::start(&rules());
    for (decision, destination) in [("pay", SUCCESS_URL), ("decline", FAIL_URL)] {
        let deposit = Deposit::create(&gateway, decision, "10.50").await;
        let hosted = deposit.link("sandbox");
        let link = page(&open(&gateway, &hosted).await, 200).return_link();
        let before = (deposit.record(&gateway).await, books(&gateway, &ACME).await);
        for protocol in PROTOCOLS {
            let reply = visit(&gateway, protocol, &request("GET", &link)).await;
            assert_eq!(location(&reply), PENDING_URL);
        }
        let after = (deposit.record(&gateway).await, books(&gateway, &ACME).await);
        assert_eq!(after, before, "coming back proves nothing");
        press(&gateway, &hosted, decision).await.expect(200);
        let before = (deposit.record(&gateway).await, books(&gateway, &ACME).await);
        for protocol in PROTOCOLS {
            let reply = visit(&gateway, protocol, &request("GET", &link)).await;
            assert_eq!(location(&reply), destination, "the link from before the result");
        }
        assert_eq!((deposit.record(&gateway).await, books(&gateway, &ACME).await), before);
    }
}

/// Banks send browsers back with POST, and with a body of their own.
#[tokio::test]
async fn a_return_by_post_is_a_return_by_get_and_its_body_is_left_unread() {
    let gateway = Gateway::start(&rules());
    let deposit = Deposit::create(&gateway, "by-post", "10.02").await;
    let link = deposit.link("return");
    let before = (deposit.record(&gateway).await, books(&gateway, &ACME).await);
    let by_post = |target: &str, kind: Option<&str>, body: Vec<u8>| {
        let mut request = form(target, "").replace("content-type", kind);
        request.body = body;
        request
    };
    let limit = 64 * 1024;
    for protocol in PROTOCOLS {
        for (kind, body) in [
            (Some("application/x-www-form-urlencoded"), b"PaRes=eJzVWFmTo0iO&MD=1".to_vec()),
            (Some("multipart/form-data; boundary=x"), b"--x\r\n".to_vec()),
            (Some("application/json"), b"{".to_vec()),
            (None, b"\0\xff".to_vec()),
            (Some("text/plain"), Vec::new()),
            (Some("text/plain"), vec![b'x'; limit]),
        ] {
            let reply = visit(&gateway, protocol, &by_post(&link, kind, body)).await;
            assert_eq!(location(&reply), PENDING_URL, "{protocol:?} {kind:?}");
        }
        let encoded = form(&link, "x").header("Content-Encoding", "gzip");
        assert_eq!(location(&visit(&gateway, protocol, &encoded).await), PENDING_URL, "{protocol:?}");
        visit(&gateway, protocol, &by_post(&link, None, vec![b'x'; limit + 1])).await.expect(413);
        for altered in [format!("{link}0"), format!("{link}&MD=1"), link.replace("/return/", "/return/1")] {
            let refused = visit(&gateway, protocol, &form(&altered, "PaRes=x")).await;
            assert_state(&page(&refused, 403), "refused");
        }
    }
    assert_eq!((deposit.record(&gateway).await, books(&gateway, &ACME).await), before);
}

/// The reply does not wait for the body, which may come after it, or never.
#[tokio::test]
async fn a_return_by_post_is_answered_before_its_body() {
    let gateway = Gateway::start(&rules());
    let link = Deposit::create(&gateway, "early", "10.02").await.link("return");
    for framing in
        ["Content-Length: 60000\r\n", "Transfer-Encoding: chunked\r\n", "Expect: 100-continue\r\nContent-Length: 9\r\n"]
    {
        let mut stream = gateway.client().tls(&["http/1.1"]).await.unwrap();
        stream.write_all(&request("POST", &link).head(framing)).await.unwrap();
        let mut head = String::new();
        while !head.contains("\r\n\r\n") {
            head.push(char::from(stream.read_u8().await.unwrap()));
        }
        assert!(head.starts_with("HTTP/1.1 303 "), "{framing}: {head}");
        assert!(head.to_ascii_lowercase().contains("\r\nconnection: close\r\n"), "{framing}: {head}");
        // It still takes what the browser is sending, and serves nothing that follows.
        let _ = stream.write_all(&vec![b'x'; 60_000]).await;
        let _ = stream.shutdown().await;
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        assert!(rest.is_empty(), "{framing}: {}", String::from_utf8_lossy(&rest));
    }
    let mut http2 = Http2::connect(&gateway.client()).await;
    let (response, mut body) = http2.start("localhost", &form(&link, "x"), false).await.unwrap();
    assert_eq!(location(&finish(response).await.unwrap()), PENDING_URL);
    body.send_data("x".into(), true).expect("the stream is not reset");
    http2.exchange("localhost", &request("GET", &link), false).await.expect("the connection goes on");
}

/// All pages of a deposit offer one and the same link, which ends so long after the creation.
// keeps P183
#[tokio::test]
async fn a_return_link_ends_counted_from_the_creation() {
    let gateway = Gateway::start(&rules());
    let week = 7 * 24 * 60 * 60;
    for (order_id, amount) in [("stopped", "10.02"), ("told", "10.03"), ("preparing", "10.04")] {
        let deposit = Deposit::create(&gateway, order_id, amount).await;
        let link = offered(&gateway, &deposit).await;
        assert_eq!(expires(&link) - week, deposit.expires() - 30 * 60, "both count from the creation");
        let (signed, signature) = link.split_once("&signature=").unwrap();
        assert!(signed.starts_with(&format!("/return/{}?expires=", deposit.id)), "{link}");
        assert_eq!(signature, hmac_hex(SECRET, signed.as_bytes()));
        assert_eq!(offered(&gateway, &deposit).await, link);
    }
}

/// A customer whose entry link has expired still comes back.
// keeps P187
#[tokio::test]
async fn a_return_link_outlives_the_entry_link() {
    let gateway = Gateway::start(&rules_with(&format!("secret = \"{SECRET}\"\nlink_lifetime = \"1s\"")));
    let mut number = 0;
    // A slow machine may come too late for one that lives so shortly.
    let (deposit, link) = eventually("a page in time", async || {
        number += 1;
        let deposit = Deposit::create(&gateway, &format!("outlived-{number}"), "10.02").await;
        let reply = open(&gateway, &deposit.entry).await;
        (reply.status == 200).then(|| (deposit, page(&reply, 200).return_link()))
    })
    .await;
    ended(&deposit.entry).await;
    eventually("it is refused", async || (open(&gateway, &deposit.entry).await.status == 403).then_some(())).await;
    assert_eq!(location(&open(&gateway, &link).await), PENDING_URL);
}

// keeps P187, P227
#[tokio::test]
async fn an_expired_return_link_is_refused_and_fails_nothing() {
    let lives = format!("secret = \"{SECRET}\"\nlink_lifetime = \"1s\"\nreturn_lifetime = \"1s\"");
    let gateway = Gateway::start(&rules_with(&lives));
    let deposit = Deposit::create(&gateway, "late", "10.02").await;
    let link = deposit.link("return");
    ended(&link).await;
    let refused =
        eventually("it is refused", async || Some(open(&gateway, &link).await).filter(|reply| reply.status == 403))
            .await;
    assert_state(&page(&refused, 403), "refused");
    assert!(unix_now() >= u64::try_from(expires(&link)).unwrap());
    let by_post = visit(&gateway, Protocol::Http1, &form(&link, "PaRes=x")).await;
    assert_state(&page(&by_post, 403), "refused");
    deposit.assert_status(&gateway, "PENDING").await;
}

/// A shop that has no return to offer: its pages have no link and go nowhere by themselves, and links from before the
/// switch still hold.
// keeps P184
#[tokio::test]
async fn a_shop_may_offer_no_return() {
    let gateway = Gateway::start(&rules());
    let mut deposits = Vec::new();
    for (order_id, amount) in [("stopped", "10.02"), ("told", "10.03"), ("preparing", "10.04")] {
        deposits.push(Deposit::create(&gateway, order_id, amount).await);
    }
    let kept = Deposit::of_shop(&gateway, PREPARING, "another shop", "10.50").await;
    let hosted = Deposit::create(&gateway, "hosted", "10.50").await.link("sandbox");
    let issued = offered(&gateway, &deposits[0]).await;
    gateway.reload_with(&without_return());
    for deposit in &deposits {
        let document = page(&open(&gateway, &deposit.entry).await, 200);
        assert!(document.return_links().is_empty(), "{:?}", document.return_links());
    }
    offered(&gateway, &kept).await;
    assert_eq!(location(&open(&gateway, &issued).await), PENDING_URL);

    assert!(page(&open(&gateway, &hosted).await, 200).return_links().is_empty());
    let paid = press(&gateway, &hosted, "pay").await;
    let document = page(&paid, 200);
    assert_state(&document, "success");
    assert!(document.return_links().is_empty() && paid.all("refresh").is_empty(), "{paid:?}");

    gateway.reload_with(&rules());
    assert_eq!(offered(&gateway, &deposits[0]).await, issued);
}
