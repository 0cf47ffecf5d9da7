//! HTTP/1: heads, bodies, pipelines, and what is refused.

use std::fmt::Write as _;

use proptest::prelude::*;

use crate::listener::fixture::{Client, Setup};

const NEXT: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn requests_follow_each_other_on_a_connection() {
    let server = Setup::default().start();
    let mut client = server.connect();
    assert_eq!(client.get("/a").body, "/a ");
    let reply = client.send("POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nxyz").reply();
    assert_eq!((reply.body.as_str(), reply.closes), ("/b xyz", false));
    let chunked = "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;q=1\r\nxy\r\n1\r\nz\r\n0\r\n\r\n";
    let reply = client.send(chunked).reply();
    assert_eq!((reply.body.as_str(), reply.closes), ("/c xyz", false));
    // Empty lines between requests are ignored.
    assert_eq!(client.send("\r\n\r\n").get("/d").body, "/d ");
    // The same as one pipeline, and in single bytes.
    let pipeline = format!("{chunked}GET /e HTTP/1.1\r\nHost: a\r\n\r\n{chunked}");
    client.send(&pipeline);
    for byte in pipeline.bytes() {
        client.send([byte]);
    }
    for body in ["/c xyz", "/e ", "/c xyz", "/c xyz", "/e ", "/c xyz"] {
        assert_eq!(client.reply().body, body);
    }
}

#[test]
fn a_client_that_has_stated_all_still_gets_its_replies() {
    let server = Setup::default().start();
    let mut client = server.connect();
    client.send("GET /gate HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n");
    client.half_close();
    server.probe.open_gate();
    assert_eq!(client.reply().body, "/gate ");
    assert_eq!(client.reply().body, "/b ");
    client.expect_end();
}

#[test]
fn http_1_0_is_served_and_closed() {
    let server = Setup::default().start();
    let mut client = server.connect();
    assert_eq!(client.send("GET /a HTTP/1.0\r\nHost: a\r\n\r\n").reply().status, 200);
    client.expect_end();
    let mut client = server.connect();
    assert_eq!(client.send("GET /a HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n").reply().status, 200);
    assert_eq!(client.get("/b").status, 200);
    assert_eq!(server.connect().send("GET /a HTTP/1.0\r\n\r\n").reply().status, 400);
}

#[test]
fn expectations_are_met_when_the_body_is_wanted() {
    let server = Setup::default().start();
    let mut client = server.connect();
    client.send("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    assert!(client.interim().starts_with("HTTP/1.1 100 "));
    assert_eq!(client.send("hi").reply().body, "/a hi");
    let reply =
        client.send("POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n").reply();
    assert_eq!((reply.status, reply.closes), (413, true));
    client.expect_end();
}

/// Sends a request behind a good one and before another: the good one is answered, this one refused with `status`, and
/// nothing behind it is read as a request.
fn refused(bytes: &str, status: u16) {
    let server = Setup::default().start();
    let mut client = server.connect();
    client.send(format!("GET /good HTTP/1.1\r\nHost: a\r\n\r\n{bytes}{NEXT}"));
    assert_eq!(client.reply().body, "/good ", "{bytes:?}");
    let reply = client.reply();
    assert_eq!((reply.status, reply.closes), (status, true), "{bytes:?}: {reply:?}");
    client.expect_end();
    assert!(!server.probe.seen().contains(&"/smuggled".to_owned()), "{bytes:?}");
}

#[test]
fn ambiguous_requests_are_refused_and_nothing_behind_them_is_read() {
    for lines in [
        "Host: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Host: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "Host: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "Host: a\r\nTransfer-Encoding: identity\r\n\r\n",
        "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Host: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
        "Host: a\r\nContent-Length: +0\r\n\r\n",
        "Host: a\r\nHost: a\r\n\r\n",
        "\r\n",
        "Host: a\r\nX: y\r\n z\r\n\r\n",
        "Host: a\r\nX: y\n\r\n",
        "Host: a\nX: y\r\n\r\n",
        "Host: a\r\nX: y\0\r\n\r\n",
        "Host: a\r\nX : y\r\n\r\n",
    ] {
        refused(&format!("POST /bad HTTP/1.1\r\n{lines}"), 400);
    }
    refused("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 400);
    refused("GET https://b/ HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    refused("nonsense\r\n\r\n", 400);
    refused(&"\r\n".repeat(10), 400);
}

#[test]
fn heads_over_the_limit() {
    let line = "X: y\r\n";
    refused(&format!("GET /bad HTTP/1.1\r\nHost: a\r\n{}\r\n", line.repeat(100)), 431);
    refused(&format!("GET /bad HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "y".repeat(16 * 1024)), 431);
    refused(&format!("GET /bad HTTP/1.1\r\nHost: a\r\nX: {}", "y".repeat(100_000)), 431);
    refused(&format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "y".repeat(100_000)), 431);
    let server = Setup::default().start();
    let fits = format!("GET /a HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "y".repeat(16 * 1024 - 60));
    assert_eq!(server.connect().send(fits).reply().status, 200);
}

#[test]
fn a_broken_chunked_body_is_refused_and_nothing_behind_it_is_read() {
    for body in
        ["x\r\n", "2\r\nabc\r\n0\r\n\r\n", "2\nab\r\n0\r\n\r\n", "2 \r\nab\r\n0\r\n\r\n", "2\r\nab\r\n0\r\nA: b\n\r\n"]
    {
        refused(&format!("POST /bad HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{body}"), 400);
    }
}

#[derive(Debug, Clone)]
struct Call {
    path: String,
    framing: Framing,
}

#[derive(Debug, Clone)]
enum Framing {
    Length(String),
    Chunked { chunks: Vec<String>, extension: String, trailer: bool },
}

impl Call {
    fn text(&self) -> String {
        let mut text = format!("POST {} HTTP/1.1\r\nHost: localhost\r\n", self.path);
        match &self.framing {
            Framing::Length(body) => write!(text, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap(),
            Framing::Chunked { chunks, extension, trailer } => {
                text.push_str("Transfer-Encoding: chunked\r\n\r\n");
                for chunk in chunks {
                    write!(text, "{:x}{extension}\r\n{chunk}\r\n", chunk.len()).unwrap();
                }
                text.push_str(if *trailer { "0\r\nA: b\r\n\r\n" } else { "0\r\n\r\n" });
            }
        }
        text
    }

    fn body(&self) -> String {
        match &self.framing {
            Framing::Length(body) => body.clone(),
            Framing::Chunked { chunks, .. } => chunks.concat(),
        }
    }
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let body = "[ -~\r\n]{0,300}";
    let chunked = (prop::collection::vec("[ -~\r\n]{1,80}", 0..5), "(;[a-z]{1,5}(=[a-z]{1,5})?)?", any::<bool>())
        .prop_map(|(chunks, extension, trailer)| Framing::Chunked { chunks, extension, trailer });
    let framing = prop_oneof![body.prop_map(Framing::Length), chunked];
    prop::collection::vec(("/[a-z]{1,8}", framing).prop_map(|(path, framing)| Call { path, framing }), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every valid pipeline, cut anywhere, reaches the service as the requests that were sent: the framing that the
    /// listener follows and hyper's agree.
    #[test]
    fn pipelines_arrive_whole_however_they_are_cut(calls in calls(), cuts in prop::collection::vec(1_usize..200, 1..40)) {
        let server = Setup::default().start();
        let mut client = server.connect();
        let bytes = calls.iter().map(Call::text).collect::<String>().into_bytes();
        let mut rest = bytes.as_slice();
        for cut in cuts.iter().cycle() {
            let (piece, left) = rest.split_at((*cut).min(rest.len()));
            client.send(piece);
            rest = left;
            if rest.is_empty() {
                break;
            }
        }
        for call in &calls {
            let reply = Client::reply(&mut client);
            prop_assert_eq!(reply.body, format!("{} {}", call.path, call.body()));
        }
    }
}
