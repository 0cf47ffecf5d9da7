//! Odd and hostile v1 clients, byte by byte (contract section 3): each row is what one of them sends over a connection of
//! its own, followed by a good question; what comes back tells whether the oddity was taken, refused, or refused with the
//! connection, and what is refused is not stored.

use crate::support::request::{ACME, hmac_hex, unix_now};
use crate::support::stored::Create;
use crate::support::{Client, Gateway, Request, Rules, payin};

/// What is behind a row: it is answered 404, and says that the connection was still good.
const QUESTION: &str = "/api/v1/payin/status?external_id=nobody";

/// A row: what it is, and the lines in which its head differs from a good deposit's.
type Row<'r> = (&'r str, &'r [&'r str]);

/// Writes the size of a chunk.
type SizeLine = fn(usize) -> String;

/// How a row's connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// The next request is answered.
    GoesOn,
    /// Nothing more is read.
    Closes,
}

/// Sends bytes and then the question, and asserts both answers.
async fn expect(client: &Client, name: &str, bytes: &[u8], status: u16, then: Then) {
    let question = Request::v1_get(&ACME, QUESTION).header("Connection", "close");
    let replies = client.raw(&[bytes, &question.bytes()].concat()).await;
    let statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    let expected: &[u16] = if then == Then::GoesOn { &[status, 404] } else { &[status] };
    assert_eq!(statuses, expected, "{name}: {replies:?}");
}

/// A good deposit with these lines in place of `Content-Length`.
fn framed(id: &str, lines: &[&str], body: &str) -> Vec<u8> {
    let request = Request::payin(&ACME, &payin(id));
    let head = request.head(&lines.iter().flat_map(|line| [line, "\r\n"]).collect::<String>());
    [head, body.as_bytes().to_vec()].concat()
}

/// The body of a good deposit in chunks.
fn chunked(id: &str, size_line: impl Fn(usize) -> String, end: &str) -> String {
    let body = payin(id).to_string();
    let mut chunks = String::new();
    for piece in body.as_bytes().chunks(50) {
        chunks.extend([size_line(piece.len()).as_str(), "\r\n", std::str::from_utf8(piece).unwrap(), "\r\n"]);
    }
    chunks + end
}

fn length_of(id: &str) -> String {
    format!("Content-Length: {}", payin(id).to_string().len())
}

#[tokio::test]
async fn odd_heads_that_are_http_are_taken() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let rows: &[Row<'_>] = &[
        ("te-trailers", &["TE: trailers"]),
        ("upgrade-h2c", &["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"]),
        ("upgrade-websocket", &["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"]),
        ("keep-alive", &["Connection: keep-alive", "Keep-Alive: timeout=5, max=100"]),
        ("expect-something", &["Expect: 200-ok"]),
        ("expect-upper-case", &["Expect: 100-CONTINUE"]),
        ("empty-value", &["X-Empty:"]),
        ("tab-around", &["X-Tabs:\ta\t"]),
        ("latin-1", &["X-Latin: caf\u{e9}"]),
        ("no-space", &["Accept:*/*"]),
        ("trailer-announced", &["Trailer: X-Checksum"]),
        ("override", &["X-HTTP-Method-Override: DELETE", "X-Forwarded-Host: elsewhere", "Forwarded: for=203.0.113.9"]),
    ];
    for (id, lines) in rows {
        let length = length_of(id);
        let lines = [*lines, &[length.as_str()]].concat();
        let body = payin(id).to_string();
        expect(&client, id, &framed(id, &lines, &body), 200, Then::GoesOn).await;
        client.send(&Request::v1_status(&ACME, "payin", id)).await.expect(200);
    }
}

#[tokio::test]
async fn chunks_as_clients_write_them_are_taken() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let rows: &[(&str, SizeLine)] = &[
        ("lower", |length| format!("{length:x}")),
        ("upper", |length| format!("{length:X}")),
        ("zeros", |length| format!("{length:08x}")),
        ("extension", |length| format!("{length:x};signature=ab;last")),
        ("quoted-extension", |length| format!("{length:x};name=\"a b\"")),
    ];
    for (id, size_line) in rows {
        let body = chunked(id, size_line, "0\r\n\r\n");
        expect(&client, id, &framed(id, &["Transfer-Encoding: chunked"], &body), 200, Then::GoesOn).await;
    }
    let body = chunked("last-extension", |length| format!("{length:x}"), "000;last\r\n\r\n");
    expect(&client, "last", &framed("last-extension", &["Transfer-Encoding: chunked"], &body), 200, Then::GoesOn).await;
}

#[tokio::test]
async fn bodies_that_are_none_or_not_whole_are_refused() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    // Signed as they are: the empty body is read, and is no JSON.
    let empty = || Request::v1_post(&ACME, "/api/v1/payin", "");
    for (name, framing, body) in [
        ("no length", "", ""),
        ("length 0", "Content-Length: 0\r\n", ""),
        ("no chunk", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n"),
    ] {
        let bytes = [empty().head(framing), body.as_bytes().to_vec()].concat();
        expect(&client, name, &bytes, 400, Then::GoesOn).await;
    }
    let trailers = chunked("trailers", |length| format!("{length:x}"), "0\r\nX-Checksum: 1\r\n\r\n");
    expect(&client, "trailers", &framed("trailers", &["Transfer-Encoding: chunked"], &trailers), 400, Then::Closes)
        .await;
    for (id, size_line) in [
        ("bare-lf", "{}\n"),
        ("space-before", " {}\r\n"),
        ("space-behind", "{} \r\n"),
        ("0x", "0x{}\r\n"),
        ("plus", "+{}\r\n"),
        ("underscore", "1_{}\r\n"),
        ("nul", "{}\0\r\n"),
        ("comma", "{},{}\r\n"),
    ] {
        let body = payin(id).to_string();
        let chunk = format!("{}{body}\r\n0\r\n\r\n", size_line.replace("{}", &format!("{:x}", body.len())));
        expect(&client, id, &framed(id, &["Transfer-Encoding: chunked"], &chunk), 400, Then::Closes).await;
        Create::Payin.assert_nothing_stored(&client, &ACME, id).await;
    }
    Create::Payin.assert_nothing_stored(&client, &ACME, "trailers").await;
}

#[tokio::test]
async fn heads_that_two_readers_read_differently_are_refused_with_their_connection() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let length = length_of("odd-head");
    let digits = length.split(' ').next_back().unwrap();
    let with = |pattern: &str| format!("Content-Length: {}", pattern.replace("{}", digits));
    let lengths = ["+{}", "-{}", "0x{}", "{},{}", "{}, {}", "{} {}", "{};", "\"{}\"", "{}.0", "1e2", "", "\u{665}"];
    let mut rows: Vec<Vec<String>> = lengths.iter().map(|pattern| vec![with(pattern)]).collect();
    for lines in [
        &["Content-Length : {}"][..],
        &["Content-Length: {}", "Content-Length: {}"],
        &["Content-Length: {}", "content-length: 0"],
        &["Content-Length: {}", "X-Folded: a\r\n b"],
        &["Content-Length: {}", "X-Folded: a\r\n\tb"],
        &["Content-Length: {}", " X-Leading: a"],
        &["Content-Length: {}", "X Spaced: a"],
        &["Content-Length: {}", "X-Tab\t: a"],
        &["Content-Length: {}", ": nameless"],
        &["Content-Length: {}", "no colon"],
        &["Content-Length: {}", "X-Nul: a\0b"],
        &["Content-Length: {}", "X-Cr: a\rb"],
        &["Content-Length: {}", "X-Bell: a\u{7}b"],
        &["Content-Length: {}", "X-Del: a\u{7f}b"],
        &["Content-Length: {}", "X-Bare: a\nX-Lf: b"],
        &["Content-Length: {}", "Host: localhost"],
        &["Content-Length: {}", "X-N\u{e9}: a"],
        &["Content-Length: {}", "Transfer-Encoding: chunked"],
        &["Transfer-Encoding: chunked", "Content-Length: 0"],
        &["Transfer-Encoding: chunked", "Transfer-Encoding: identity"],
        &["Transfer-Encoding: chunked, chunked"],
        &["Transfer-Encoding: \u{b}chunked"],
        &["Transfer-Encoding: chunked,"],
        &["Transfer-Encoding: gzip, chunked"],
        &["Transfer_Encoding: chunked", "Transfer-Encoding: x"],
    ] {
        rows.push(lines.iter().map(|line| line.replace("{}", digits)).collect());
    }
    for lines in rows {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let body = payin("odd-head").to_string();
        expect(&client, &lines.join(" | "), &framed("odd-head", &lines, &body), 400, Then::Closes).await;
    }
    Create::Payin.assert_nothing_stored(&client, &ACME, "odd-head").await;
}

#[tokio::test]
async fn targets_and_methods() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let line = |id: &str, from: &str, to: &str| {
        let bytes = String::from_utf8(Request::payin(&ACME, &payin(id)).bytes()).unwrap();
        let from = format!("{from} HTTP/1.1\r\n");
        assert!(bytes.starts_with(&from));
        bytes.replacen(&from, &format!("{to}\r\n"), 1).into_bytes()
    };
    let post = "POST /api/v1/payin";
    for (name, to, status, then) in [
        // A request to a proxy, as RFC 9112, 3.2.2 has every server take it.
        ("absolute", "POST https://localhost/api/v1/payin HTTP/1.1", 200, Then::GoesOn),
        ("other-host", "POST https://elsewhere/api/v1/payin HTTP/1.1", 400, Then::Closes),
        ("other-scheme", "POST ftp://localhost/api/v1/payin HTTP/1.1", 400, Then::Closes),
        ("user", "POST https://a@localhost/api/v1/payin HTTP/1.1", 400, Then::Closes),
        ("fragment", "POST /api/v1/payin#x HTTP/1.1", 400, Then::Closes),
        ("backslash", "POST \\api\\v1\\payin HTTP/1.1", 400, Then::Closes),
        ("asterisk", "POST * HTTP/1.1", 400, Then::Closes),
        ("two-spaces", "POST  /api/v1/payin HTTP/1.1", 400, Then::Closes),
        ("tab", "POST\t/api/v1/payin HTTP/1.1", 400, Then::Closes),
        ("no-version", "POST /api/v1/payin", 400, Then::Closes),
        ("http-1.2", "POST /api/v1/payin HTTP/1.2", 400, Then::Closes),
        ("http-2.0", "POST /api/v1/payin HTTP/2.0", 400, Then::Closes),
        ("http-lower", "POST /api/v1/payin http/1.1", 400, Then::Closes),
        // Refused before the body, which is not read as a request.
        ("lower-method", "post /api/v1/payin HTTP/1.1", 405, Then::Closes),
        ("put", "PUT /api/v1/payin HTTP/1.1", 405, Then::Closes),
        ("trace", "TRACE /api/v1/payin HTTP/1.1", 405, Then::Closes),
        ("two-slashes", "POST //api/v1/payin HTTP/1.1", 404, Then::Closes),
        ("dots", "POST /api/v1/x/../payin HTTP/1.1", 404, Then::Closes),
        ("percent", "POST /api/v1/%70ayin HTTP/1.1", 404, Then::Closes),
        ("slash", "POST /api/v1/payin/ HTTP/1.1", 404, Then::Closes),
        ("query", "POST /api/v1/payin?x=1 HTTP/1.1", 400, Then::GoesOn),
        ("empty-query", "POST /api/v1/payin? HTTP/1.1", 400, Then::GoesOn),
    ] {
        expect(&client, name, &line(name, post, to), status, then).await;
        if status == 200 {
            client.send(&Request::v1_status(&ACME, "payin", name)).await.expect(200);
        } else {
            Create::Payin.assert_nothing_stored(&client, &ACME, name).await;
        }
    }
    let plain = |text: &str| format!("{text} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes();
    expect(&client, "options", &plain("OPTIONS *"), 404, Then::GoesOn).await;
    expect(&client, "options of a path", &plain("OPTIONS /api/v1/payin"), 405, Then::GoesOn).await;
    expect(&client, "a body on GET", &framed_get("5\r\nhello\r\n0\r\n\r\n"), 400, Then::Closes).await;
    expect(&client, "an empty body on GET", &framed_get("0\r\n\r\n"), 400, Then::Closes).await;
}

fn framed_get(body: &str) -> Vec<u8> {
    let head = Request::v1_get(&ACME, QUESTION).head("Transfer-Encoding: chunked\r\n");
    [head, body.as_bytes().to_vec()].concat()
}

/// The status and the headers, and nothing behind them.
#[tokio::test]
async fn head_is_answered_without_a_body() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let gateway = Gateway::start(&Rules::default());
    for path in ["/api/v1/payin", "/api/v1/payin/status", "/nothing"] {
        let mut stream = gateway.client().tls(&["http/1.1"]).await.unwrap();
        let request = format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        let status = if path == "/nothing" { "404" } else { "405" };
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{reply}");
        assert!(reply.ends_with("\r\n\r\n") && !reply.contains('{'), "{reply}");
    }
}

#[tokio::test]
async fn http_1_0_and_closing_clients_are_served() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let old = |id: &str, lines: &str| {
        let request = Request::payin(&ACME, &payin(id));
        let framing = format!("{}\r\n{lines}", length_of(id));
        let head = String::from_utf8(request.head(&framing)).unwrap().replace(" HTTP/1.1\r\n", " HTTP/1.0\r\n");
        [head.into_bytes(), request.body].concat()
    };
    expect(&client, "1.0", &old("old", ""), 200, Then::Closes).await;
    expect(&client, "1.0 kept", &old("old-kept", "Connection: keep-alive\r\n"), 200, Then::GoesOn).await;
    // Nobody sends a 100 to a client that does not know it.
    expect(&client, "1.0 expecting", &old("old-expect", "Expect: 100-continue\r\n"), 200, Then::Closes).await;
    let chunks = chunked("old-chunks", |length| format!("{length:x}"), "0\r\n\r\n");
    let bytes = String::from_utf8(framed("old-chunks", &["Transfer-Encoding: chunked"], &chunks)).unwrap();
    let bytes = bytes.replacen("HTTP/1.1", "HTTP/1.0", 1);
    expect(&client, "1.0 in chunks", bytes.as_bytes(), 400, Then::Closes).await;
    Create::Payin.assert_nothing_stored(&client, &ACME, "old-chunks").await;
    for close in ["close", "Close", "keep-alive, close"] {
        let request = Request::payin(&ACME, &payin("closing")).header("Connection", close);
        expect(&client, close, &request.bytes(), 200, Then::Closes).await;
    }
}

#[tokio::test]
async fn media_types() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let good = [
        "application/json",
        "application/JSON",
        "application/json; charset=utf-8",
        "application/json;",
        "APPLICATION/JSON ;x=y",
    ];
    let bad = [
        "",
        "text/json",
        "application/jsonp",
        "application/json, application/json",
        "application/ld+json",
        "json",
        "application/json/x",
    ];
    for (number, (kind, status)) in
        good.iter().map(|kind| (kind, 200)).chain(bad.iter().map(|kind| (kind, 415))).enumerate()
    {
        let id = format!("type-{number}");
        let request = Request::payin(&ACME, &payin(&id)).replace("Content-Type", Some(kind));
        let then = if status == 200 { Then::GoesOn } else { Then::Closes };
        expect(&client, kind, &request.bytes(), status, then).await;
        if status != 200 {
            Create::Payin.assert_nothing_stored(&client, &ACME, &id).await;
        }
    }
    for second in ["application/json", "text/plain"] {
        let twice = Request::payin(&ACME, &payin("type-twice")).header("Content-Type", second);
        expect(&client, "twice", &twice.bytes(), 415, Then::Closes).await;
    }
    let none = Request::payin(&ACME, &payin("type-twice")).replace("Content-Type", None);
    expect(&client, "none", &none.bytes(), 415, Then::Closes).await;
    Create::Payin.assert_nothing_stored(&client, &ACME, "type-twice").await;
}

/// Headers of authentication as sloppy clients write them.
#[tokio::test]
async fn authentication_headers() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let good = |id: &str| Request::payin(&ACME, &payin(id));
    let signature = |id: &str| good(id).value("X-Signature").unwrap().to_uppercase();
    let upper = good("upper-hex");
    let upper = upper.clone().replace("X-Signature", Some(&upper.value("X-Signature").unwrap().to_uppercase()));
    expect(&client, "hex in upper case", &upper.bytes(), 200, Then::GoesOn).await;
    let shouting = String::from_utf8(good("shouting").bytes()).unwrap();
    let shouting = shouting.replace("X-Api-Key", "X-API-KEY").replace("X-Signature", "x-signature");
    expect(&client, "any case of a name", shouting.as_bytes(), 200, Then::GoesOn).await;
    for (name, header, value) in [
        ("a quoted key", "X-Api-Key", "\"acme-live\"".to_owned()),
        ("a key in upper case", "X-Api-Key", "ACME-LIVE".to_owned()),
        ("a scheme before the signature", "X-Signature", format!("sha256={}", signature("refused"))),
        ("half a signature", "X-Signature", signature("refused")[..32].to_owned()),
        ("an empty signature", "X-Signature", String::new()),
        ("no hex", "X-Signature", "g".repeat(64)),
    ] {
        let request = good("refused").replace(header, Some(&value));
        expect(&client, name, &request.bytes(), 401, Then::GoesOn).await;
    }
    let now = unix_now();
    for timestamp in [format!("{now}000"), format!("{now}.0"), format!("+{now}"), "now".to_owned()] {
        let request = good("refused");
        let payload = format!("{timestamp}.POST./api/v1/payin.{}", payin("refused"));
        let signature = hmac_hex(ACME.v1.unwrap(), payload.as_bytes());
        let request = request.replace("X-Timestamp", Some(&timestamp)).replace("X-Signature", Some(&signature));
        expect(&client, &timestamp, &request.bytes(), 401, Then::GoesOn).await;
    }
    Create::Payin.assert_nothing_stored(&client, &ACME, "refused").await;
}
