//! Callers who hang up in the middle: an operation exists whole or not at all, and the same request sent again gets its
//! answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::bodies::with;
use crate::support::http2::Http2;
use crate::support::receiver::{Identity, Manner, Play, Receiver};
use crate::support::reply::assert_same;
use crate::support::request::{ACME, BETA};
use crate::support::stored::Create;
use crate::support::{self, Client, Gateway, Request, Rules, text, within};

const KINDS: [(Create, &str); 2] = [(Create::Payin, "payin"), (Create::Payout, "payout")];

/// How a caller goes away after the last byte of its request.
#[derive(Debug, Clone, Copy)]
enum Farewell {
    /// It closes without a word.
    Close,
    /// It resets the TCP connection.
    Reset,
    /// It says that it has nothing more to say, and goes on listening.
    HalfClose,
    /// It resets the HTTP/2 stream.
    StreamReset,
    /// It drops the HTTP/2 connection.
    Http2Close,
}

const FAREWELLS: [Farewell; 5] =
    [Farewell::Close, Farewell::Reset, Farewell::HalfClose, Farewell::StreamReset, Farewell::Http2Close];

/// Sends a request and goes away; what a half-closing caller still reads is given.
async fn hang_up(client: &Client, request: &Request, farewell: Farewell) -> Option<String> {
    match farewell {
        Farewell::Close | Farewell::Reset | Farewell::HalfClose => {
            let mut stream = client.tls(&["http/1.1"]).await.unwrap();
            stream.write_all(&request.bytes()).await.unwrap();
            stream.flush().await.unwrap();
            match farewell {
                Farewell::Reset => stream.get_ref().0.set_zero_linger().unwrap(),
                Farewell::HalfClose => {
                    stream.shutdown().await.unwrap();
                    let mut reply = String::new();
                    let read = tokio::time::timeout(support::client::PATIENCE, stream.read_to_string(&mut reply));
                    read.await.expect("an answer in time").unwrap();
                    return Some(reply);
                }
                _ => {}
            }
        }
        Farewell::StreamReset | Farewell::Http2Close => {
            let mut connection = Http2::connect(client).await;
            let (response, mut body) = connection.start("localhost", request, true).await.unwrap();
            body.send_data(Bytes::from(request.body.clone()), true).unwrap();
            if matches!(farewell, Farewell::StreamReset) {
                body.send_reset(h2::Reason::CANCEL);
                // Another stream of the connection is served as if nothing had happened.
                connection.send(&Request::status(&ACME, "1")).await.expect(404);
            }
            drop(response);
        }
    }
    None
}

fn checked_operations(gateway: &Gateway) -> String {
    let output = gateway.store_check();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn who_hangs_up_after_the_last_byte_left_a_whole_operation_or_none() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let mut sent = 0;
    for (kind, name) in KINDS {
        for farewell in FAREWELLS {
            for round in 0..4 {
                let id = format!("{farewell:?}-{round}");
                let body = kind.body(&id);
                let answered = hang_up(&client, &kind.request(&ACME, body.to_string()), farewell).await;
                sent += 1;
                let before = client.send(&Request::v1_status(&ACME, name, &id)).await;
                let repeated = kind.create(&client, &ACME, &body).await;
                let transaction_id = text(&repeated.json(), "transaction_id").to_owned();
                if before.status == 200 {
                    assert_eq!(text(&before.json(), "transaction_id"), transaction_id, "{name} {id}");
                } else {
                    assert_eq!(before.status, 404, "{name} {id}");
                }
                if let Some(reply) = answered {
                    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
                    assert!(reply.ends_with(&repeated.text()), "{name} {id}: {reply}");
                }
                assert_same(&repeated, &kind.create(&client, &ACME, &body).await);
                let other = with(body, "amount", Some("3.33".into())).to_string();
                client.send(&kind.request(&ACME, other)).await.expect(409);
            }
        }
    }
    let checked = checked_operations(&gateway);
    assert!(checked.starts_with(&format!("checked {sent} operations ")), "one each: {checked}");
}

#[tokio::test]
async fn who_hangs_up_before_the_last_byte_left_nothing() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for (kind, name) in KINDS {
        let request = kind.request(&ACME, kind.body("cut").to_string());
        let bytes = request.bytes();
        for left in [1, 2, request.body.len() / 2, request.body.len(), request.body.len() + 1, bytes.len() - 1] {
            let mut stream = client.tls(&["http/1.1"]).await.unwrap();
            stream.write_all(&bytes[..bytes.len() - left]).await.unwrap();
            stream.flush().await.unwrap();
            if left % 2 == 0 {
                stream.get_ref().0.set_zero_linger().unwrap();
            }
            drop(stream);
        }
        let mut connection = Http2::connect(&client).await;
        let (response, mut body) = connection.start("localhost", &request, false).await.unwrap();
        body.send_data(Bytes::from(request.body.clone()), false).unwrap();
        body.send_reset(h2::Reason::CANCEL);
        connection.send(&Request::v1_status(&ACME, name, "cut")).await.expect(404);
        drop(response);
        kind.assert_nothing_stored(&client, &ACME, "cut").await;
    }
    assert!(checked_operations(&gateway).starts_with("checked 2 operations "));
}

/// The process's resident memory, in KiB.
fn resident(gateway: &Gateway) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.pid().as_raw_nonzero())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Opens 119 streams and takes nothing; then resets small requests at once until the connection is gone.
async fn take_nothing(client: Client, request: Request) {
    let mut connection = Http2::with_window(&client, 0).await;
    let mut replies = Vec::new();
    while replies.len() < 119
        && let Ok(reply) = connection.start("localhost", &request, true).await
    {
        replies.push(reply);
    }
    while let Ok((_, mut small)) = connection.start("localhost", &Request::new("GET", "/nope", ""), true).await {
        small.send_reset(h2::Reason::CANCEL);
        // So few resets a second are no attack, for which the connection would end.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    connection.closed_by_peer().await;
}

#[tokio::test]
async fn callers_who_take_no_reply_use_little_memory_and_are_gone_soon() {
    // The old service answers with pages of 200 KB, whose length it announces to one caller and not to another.
    let old = Receiver::on(
        0,
        &Arc::new(Identity::new(&["http/1.1"])),
        |_| Manner::Serve,
        |received, _| {
            let page = "x".repeat(200 * 1024);
            let framed = if received.target.ends_with("chunked") {
                format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{page}\r\n0\r\n\r\n", page.len())
            } else {
                format!("Content-Length: {}\r\n\r\n{page}", page.len())
            };
            Play::Bytes(format!("HTTP/1.1 200 OK\r\n{framed}").into_bytes())
        },
    );
    let legacy = format!("url = \"{}\"\ntrust = [\"{}\"]", old.url(""), old.ca().display());
    let rules = Rules::default().with("limits", "body_timeout = \"3s\"").with("legacy", &legacy);
    let gateway = Gateway::start(&rules.edit("merchants/beta.toml", "[v1]\n", "[v1]\nmode = \"legacy\"\n"));
    let client = gateway.client();
    let mut connection = client.connect().await;
    for number in 0..200 {
        // A page of them has 240 KB.
        let body = support::payout(&format!("{number:03}{}", "\u{20ac}".repeat(252)));
        connection.send(&Request::payout(&ACME, &body)).await.expect(200);
    }
    let page = Request::v1_get(&ACME, "/api/v1/transactions?per_page=200");
    assert!(connection.send(&page).await.expect(200).body.len() > 150 * 1024);
    // What as many callers use that take their replies, the process has from here on.
    let mut takers = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (client, page) = (client.clone(), page.clone());
        takers.spawn(async move {
            let mut connection = client.connect().await;
            for _ in 0..5 {
                connection.send(&page).await.expect(200);
            }
        });
    }
    takers.join_all().await;
    // Up to 1,024 that are forwarded have a connection to the old service, too.
    let forwarded = |query: &str| Request::v1_get(&BETA, &format!("/api/v1/transactions{query}"));
    let (unsigned, unknown) = (Request::new("GET", "/pay/1", ""), Request::new("GET", "/nope", ""));
    for (request, mebibytes) in
        [(page, 40), (unsigned, 40), (unknown, 40), (forwarded(""), 200), (forwarded("?chunked"), 200)]
    {
        let before = resident(&gateway);
        let callers: Vec<_> = (0..20).map(|_| tokio::spawn(take_nothing(client.clone(), request.clone()))).collect();
        let mut most = before;
        let gone = within(Duration::from_mins(2), async || {
            most = most.max(resident(&gateway));
            callers.iter().all(tokio::task::JoinHandle::is_finished).then_some(())
        });
        assert!(gone.await.is_some(), "{}: a caller is still there", request.target);
        for caller in callers {
            caller.await.unwrap();
        }
        assert!(most - before < mebibytes * 1024, "{}: {} KiB more", request.target, most - before);
        connection = client.connect().await;
        connection.send(&Request::status(&ACME, "1")).await.expect(404);
    }
}
