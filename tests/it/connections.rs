//! Connections over the wire: TLS, framing, deadlines, and what a server must refuse before it is a request (contract
//! section 3, step 1 and "What hyper leaves to its user").

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use crate::support::http2::Http2;
use crate::support::request::{ACME, ACME_NOWHERE, PROTOCOLS};
use crate::support::rules::write_file;
use crate::support::stored::Create;
use crate::support::{self, Client, Connection, Gateway, Reply, Request, Rules, deposit, eventually, payin};

fn statuses(replies: &[Reply]) -> Vec<u16> {
    replies.iter().map(|reply| reply.status).collect()
}

/// Sends a head (with `{framing}` in place) and what follows, then a whole good request, and asserts that one refusal
/// comes back and the connection closes: nothing after a head that can be read in two ways is a request.
async fn refused_and_closed(client: &Client, name: &str, bytes: Vec<u8>) {
    let smuggled = Request::deposit(&ACME, &deposit("smuggled")).bytes();
    let replies = client.raw(&[bytes, smuggled].concat()).await;
    assert_eq!(statuses(&replies), [400], "{name}: {replies:?}");
}

#[tokio::test]
async fn framing_that_can_be_read_in_two_ways_is_refused_and_closed() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let request = Request::deposit(&ACME, &deposit("framed"));
    let length = format!("Content-Length: {}\r\n", request.body.len());
    let chunked = [format!("{:x}\r\n", request.body.len()).as_bytes(), &request.body, b"\r\n0\r\n\r\n"].concat();
    let heads = [
        format!("{length}Transfer-Encoding: chunked\r\n"),
        format!("Transfer-Encoding: chunked\r\n{length}"),
        "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n".to_owned(),
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n".to_owned(),
        "Transfer-Encoding: gzip, chunked\r\n".to_owned(),
        "Transfer-Encoding: chunked, chunked\r\n".to_owned(),
        "Transfer-Encoding: chunked, identity\r\n".to_owned(),
        "Transfer-Encoding: identity\r\n".to_owned(),
        "Transfer-Encoding: Chunked\r\n".to_owned(),
        "Transfer-Encoding: CHUNKED\r\n".to_owned(),
        "Transfer-Encoding: gzip\r\n".to_owned(),
        "Transfer-Encoding: xchunked\r\n".to_owned(),
        "Transfer-Encoding: chunked;q=1\r\n".to_owned(),
        "Transfer-Encoding: \"chunked\"\r\n".to_owned(),
        "Transfer-Encoding:\r\n".to_owned(),
        format!("{length}Transfer-Encoding: identity\r\n"),
        format!("Content-Length: 1\r\n{length}"),
        "Content-Length: 5, 5\r\n".to_owned(),
        "Content-Length: +5\r\n".to_owned(),
        "Content-Length: 0x5\r\n".to_owned(),
        "Content-Length: -1\r\n".to_owned(),
        "Content-Length:\r\n".to_owned(),
        "Content-Length : 5\r\n".to_owned(),
        "Transfer-Encoding : chunked\r\n".to_owned(),
        " Transfer-Encoding: chunked\r\n".to_owned(),
        format!("{length}X-Folded: a\r\n b\r\n"),
    ];
    for head in heads {
        refused_and_closed(&client, &head, [request.head(&head), chunked.clone()].concat()).await;
    }
    for kind in [Create::Deposit, Create::Withdrawal] {
        for id in ["framed", "smuggled"] {
            kind.assert_nothing_stored(&client, &ACME, id).await;
        }
    }
}

#[tokio::test]
async fn bad_chunks_store_nothing() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let request = Request::deposit(&ACME, &deposit("chunks"));
    let body = String::from_utf8(request.body.clone()).unwrap();
    let size = format!("{:x}", body.len());
    for bad in [
        format!("-{size}\r\n{body}\r\n0\r\n\r\n"),
        format!("0x{size}\r\n{body}\r\n0\r\n\r\n"),
        format!("{size}\r\n{body}0\r\n\r\n"),
        format!("fffffffffffffffff\r\n{body}\r\n0\r\n\r\n"),
        format!("zz\r\n{body}\r\n0\r\n\r\n"),
    ] {
        let mut connection = client.connect().await;
        connection.write(&[request.head("Transfer-Encoding: chunked\r\n"), bad.clone().into_bytes()].concat()).await;
        let replies = connection.rest().await;
        assert!(replies.iter().all(|reply| [400, 413].contains(&reply.status)), "{bad}: {replies:?}");
    }
    Create::Deposit.assert_nothing_stored(&client, &ACME, "chunks").await;
}

#[tokio::test]
async fn chunked_bodies_and_pipelined_requests_are_served() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let request = Request::deposit(&ACME, &deposit("chunked"));
    let mut bytes = request.head("Transfer-Encoding: chunked\r\n");
    for piece in request.body.chunks(7) {
        bytes.extend_from_slice(format!("{:X};note=1\r\n", piece.len()).as_bytes());
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes.extend_from_slice(&Request::payin(&ACME, &payin("piped")).bytes());
    bytes.extend_from_slice(&Request::new("GET", "/nope", "").bytes());
    let last = Request::v1_status(&ACME, "payin", "piped").header("Connection", "close");
    bytes.extend_from_slice(&last.bytes());
    assert_eq!(statuses(&client.raw(&bytes).await), [200, 200, 404, 200]);
    // Byte by byte, too.
    let mut connection = client.connect().await;
    for byte in Request::payin(&ACME, &payin("bytes")).bytes().chunks(3) {
        connection.write(byte).await;
    }
    connection.reply().await.expect("a reply").expect(200);
}

#[tokio::test]
async fn expect_continue_is_answered_or_refused_at_once() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let request = Request::deposit(&ACME, &deposit("expected")).header("Expect", "100-continue");
    client.send(&request).await.expect(200);
    let stranger = request.replace("X-Api-Key", Some("nobody"));
    let mut connection = client.connect().await;
    connection.write(&stranger.head("Content-Length: 500\r\n")).await;
    connection.reply().await.expect("a reply without waiting for the body").expect(401);
}

#[tokio::test]
async fn exactly_one_valid_host() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let question = Request::status(&ACME, "1");
    let head = String::from_utf8(question.head("Connection: close\r\n")).unwrap();
    let host = "Host: localhost\r\n";
    for bad in [
        "",
        "Host: localhost\r\nHost: localhost\r\n",
        "Host: localhost\r\nHost: other\r\n",
        "Host:\r\n",
        "Host: a b\r\n",
        "Host: user@localhost\r\n",
        "Host: localhost/x\r\n",
        "Host: localhost:port\r\n",
        "Host: a,b\r\n",
        "Host: [::1\r\n",
    ] {
        let replies = client.raw(head.replace(host, bad).as_bytes()).await;
        assert_eq!(statuses(&replies), [400], "{bad}");
    }
    for good in ["Host: localhost:8443\r\n", "hOsT: pay.example\r\n", "Host: [::1]:8443\r\n", "Host: 127.0.0.1\r\n"] {
        let replies = client.raw(head.replace(host, good).as_bytes()).await;
        assert_eq!(statuses(&replies), [404], "{good}");
    }
    let absolute = |authority: &str| head.replacen("GET /", &format!("GET https://{authority}/"), 1);
    assert_eq!(statuses(&client.raw(absolute("localhost").as_bytes()).await), [404]);
    for other in ["other", "user@localhost", "localhost:1"] {
        assert_eq!(statuses(&client.raw(absolute(other).as_bytes()).await), [400], "{other}");
    }
}

#[tokio::test]
async fn exactly_one_valid_authority() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let question = Request::status(&ACME, "1");
    let rows = [
        ("localhost", None, 404),
        ("localhost", Some("localhost"), 404),
        ("localhost", Some("other"), 400),
        ("user@localhost", None, 400),
        ("user:word@localhost", None, 400),
    ];
    for (authority, host, status) in rows {
        let request = host.map_or(question.clone(), |host| question.clone().header("host", host));
        match Http2::connect(&client).await.exchange(authority, &request, false).await {
            Ok(reply) => {
                reply.check(Some(&request));
                assert_eq!(reply.status, status, "{authority} {host:?}: {}", reply.text());
            }
            Err(refused) => assert_eq!(status, 400, "{authority} {host:?}: {refused}"),
        }
    }
    for value in [" edge", "edge ", "\tedge"] {
        let request = question.clone().header("x-note", value);
        match Http2::connect(&client).await.exchange("localhost", &request, false).await {
            Ok(reply) => assert_eq!(reply.status, 400, "{value:?}"),
            Err(refused) => assert!(refused.is_reset() || refused.is_go_away(), "{refused}"),
        }
    }
}

#[tokio::test]
async fn malformed_heads_are_400_in_the_usual_shape() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for bad in [
        "GET /nope\r\n\r\n",
        "GET  /nope HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /no pe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /nope HTTP/3.0\r\nHost: localhost\r\n\r\n",
        "GET nope HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /nope HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
        "GET /nope HTTP/1.1\r\nHost: localhost\r\nX-A: a\0b\r\n\r\n",
        "GET /nope HTTP/1.1\r\nHost: localhost\r\nX A: b\r\n\r\n",
        "G(T /nope HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "\u{16}\u{3}\u{1}binary\r\n\r\n",
    ] {
        let replies = client.raw(bad.as_bytes()).await;
        assert_eq!(statuses(&replies), [400], "{bad:?}");
    }
    // HTTP/2 is spoken only where ALPN chose it.
    let replies = client.raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    assert!(replies.iter().all(|reply| reply.status == 400), "{replies:?}");
}

#[tokio::test]
async fn the_reply_to_a_refused_head_is_like_that_to_a_good_one() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let names = |reply: &Reply| -> BTreeSet<String> {
        reply.headers.iter().map(|(name, _)| name.clone()).filter(|name| name != "Connection").collect()
    };
    let good = "GET /nope HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Request-Id: asked-1\r\n\r\n";
    let [like] = &client.raw(good.as_bytes()).await[..] else { panic!("no reply") };
    for (name, bytes) in [
        ("a second Host", good.replace("Connection: close", "Host: localhost")),
        ("a bare line end", good.replace("close\r\n", "close\n")),
    ] {
        let replies = client.raw(bytes.as_bytes()).await;
        let [reply] = &replies[..] else { panic!("{name}: {replies:?}") };
        assert_eq!((reply.status, reply.header("connection")), (400, "close"), "{name}");
        assert_eq!((names(reply), reply.header("x-request-id")), (names(like), "asked-1"), "{name}");
    }
    for asked in ["HEAD / HTTP/1.1\r\n\r\n", "HEAD / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"] {
        let mut stream = client.tls(&["http/1.1"]).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, asked.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        assert!(reply.starts_with("HTTP/1.1 400 Bad Request\r\n") && reply.ends_with("\r\n\r\n"), "{reply}");
    }
}

#[tokio::test]
async fn heads_are_bounded() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let question = Request::status(&ACME, "1");
    let large = question.clone().header("X-Large", &"x".repeat(20_000));
    let mut many = question.clone();
    for number in 0..600 {
        many = many.header(&format!("x-{number}"), "1");
    }
    let long_path = Request::status(&ACME, &"1".repeat(20_000));
    for request in [large, many, long_path] {
        let replies = client.raw(&request.bytes()).await;
        let refused = statuses(&replies);
        assert!(refused == [431] || refused == [414] || refused == [400], "{refused:?}");
        match Http2::connect(&client).await.exchange("localhost", &request, false).await {
            Ok(reply) => assert!([431, 414, 400].contains(&reply.status), "{reply:?}"),
            Err(refused) => assert!(refused.is_reset() || refused.is_go_away() || refused.is_io(), "{refused}"),
        }
    }
    let fits = question.header("X-Fits", &"x".repeat(12_000));
    for protocol in PROTOCOLS {
        client.send_by(protocol, &fits).await.expect(404);
    }
}

#[tokio::test]
async fn slow_and_silent_clients_are_closed() {
    let limits = "head_timeout = \"400ms\"\nidle_timeout = \"400ms\"";
    let gateway = Gateway::start(&Rules::default().with("limits", limits));
    let client = gateway.client();

    let mut silent = client.connect().await;
    let stated = silent.rest().await;
    assert!(stated.iter().all(|reply| reply.status == 408), "{stated:?}");

    let mut idle = client.connect().await;
    idle.send(&Request::status(&ACME, "1")).await;
    idle.closed().await;

    let request = Request::status(&ACME, "1").bytes();
    let mut slow = client.connect().await;
    let stated = slow.drip(&request).await;
    assert!(stated.iter().all(|reply| reply.status == 408), "{stated:?}");
    let line = eventually("its line in the log", async || {
        gateway.log().lines().find(|line| line.contains(" status=408 ")).map(str::to_owned)
    })
    .await;
    let took = line.split_once("duration_ms=").unwrap().1.split(' ').next().unwrap();
    assert!(took.parse::<f64>().unwrap() >= 200.0, "from its first byte: {line}");

    Http2::connect(&client).await.closed_by_peer().await;
    let mut idle = Http2::connect(&client).await;
    idle.send(&Request::status(&ACME, "1")).await;
    idle.closed_by_peer().await;

    // A client that never finishes the handshake is closed, too.
    let mut mute = TcpStream::connect(gateway.public).await.unwrap();
    let mut answer = [0; 64];
    let read = tokio::io::AsyncReadExt::read(&mut mute, &mut answer);
    let read = tokio::time::timeout(support::client::PATIENCE, read).await.expect("closed in time");
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
}

#[tokio::test]
async fn a_public_host_is_to_be_asked_over_tls_alone() {
    for (public_url, expected) in [("https://pay.example", Some("max-age=31536000")), ("https://localhost:8443", None)]
    {
        let gateway = Gateway::start(&Rules::default().with("server", &format!("public_url = \"{public_url}\"")));
        let client = gateway.client();
        let good = client.send(&Request::deposit(&ACME, &deposit("any"))).await.expect(200);
        let unknown = client.send(&Request::new("GET", "/nothing", "")).await.expect(404);
        let page = Request::new("GET", "/pay/1?expires=1&signature=00", "").header("Accept", "application/json");
        let page = client.send(&page).await.expect(403);
        let malformed = client.raw(b"GET / HTTP/1.1\r\n\r\n").await.remove(0).expect(400);
        for reply in [good, unknown, page, malformed] {
            assert_eq!(reply.all("strict-transport-security").first().copied(), expected, "{reply:?}");
        }
    }
}

/// A connection on which a request was authenticated.
async fn authenticated(client: &Client) -> Connection {
    let mut connection = client.connect().await;
    connection.send(&Request::status(&ACME, "1")).await.expect(404);
    connection
}

#[tokio::test]
async fn a_new_connection_takes_the_place_of_one_that_nobody_authenticated() {
    let gateway = Gateway::start(&Rules::default().with("limits", "connections = 4"));
    let client = gateway.client();
    let (mut first, mut second) = (authenticated(&client).await, authenticated(&client).await);
    let mut silent = TcpStream::connect(gateway.public).await.unwrap();
    let mut unknown = client.connect().await;
    unknown.send(&Request::new("GET", "/nothing", "")).await.expect(404);
    let mut third = authenticated(&client).await;
    assert_eq!(silent.read(&mut [0]).await.unwrap_or(0), 0, "idle for longest");
    let mut fourth = authenticated(&client).await;
    unknown.closed().await;
    // All four are callers' now: the one that has been idle longest goes.
    second.send(&Request::status(&ACME, "1")).await.expect(404);
    let mut fifth = authenticated(&client).await;
    first.closed().await;
    for kept in [&mut second, &mut third, &mut fourth, &mut fifth] {
        kept.send(&Request::status(&ACME, "1")).await.expect(404);
    }
    let (_, metrics) = gateway.admin_get("/metrics").unwrap();
    for line in [
        "paybridge_connections_evicted_total{reason=\"unauthenticated\"} 2",
        "paybridge_connections_evicted_total{reason=\"idle\"} 1",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
}

#[tokio::test]
async fn a_gateway_whose_connections_are_all_busy_is_not_ready() {
    let rules = Rules::default().with("limits", "connections = 2").with("limits", "body_timeout = \"1h\"");
    let gateway = Gateway::start(&rules);
    let client = gateway.client();
    let mut busy = Vec::new();
    for id in ["busy-1", "busy-2"] {
        let mut connection = authenticated(&client).await;
        let bytes = Request::deposit(&ACME, &deposit(id)).bytes();
        connection.write(&bytes[..bytes.len() - 1]).await;
        busy.push((connection, bytes[bytes.len() - 1]));
    }
    eventually("not ready", async || gateway.admin_get("/readyz").filter(|(status, _)| *status == 503)).await;
    assert!(client.tls(&["http/1.1"]).await.is_err(), "a third connection");
    for (connection, rest) in &mut busy {
        connection.write(&[*rest]).await;
        connection.reply().await.expect("a reply").expect(200);
    }
    eventually("ready", async || gateway.admin_get("/readyz").filter(|(status, _)| *status == 200)).await;
    drop(authenticated(&client).await);
}

/// Opens connections and holds them, as many and as fast as it can: silent ones, and ones on which it asks for nothing that
/// there is.
async fn flood(client: Client, gateway: SocketAddr, stop: Arc<AtomicBool>) {
    let mut held = VecDeque::new();
    while !stop.load(Ordering::Relaxed) {
        held.push_back((TcpStream::connect(gateway).await.ok(), None));
        if let Some(mut connection) = client.try_connect().await {
            connection.try_send(&Request::new("GET", "/nothing", "")).await;
            held.push_back((None, Some(connection)));
        }
        if held.len() > 400 {
            held.pop_front();
        }
    }
}

#[tokio::test]
async fn callers_are_served_while_an_address_without_credentials_holds_all_connections() {
    let gateway = Gateway::start(&Rules::default().with("limits", "connections = 50"));
    let (client, stop) = (gateway.client(), Arc::new(AtomicBool::new(false)));
    let floods: Vec<_> =
        (0..4).map(|_| tokio::spawn(flood(client.clone(), gateway.public, Arc::clone(&stop)))).collect();
    eventually("evictions", async || {
        let (_, metrics) = gateway.admin_get("/metrics")?;
        metrics.contains("paybridge_connections_evicted_total{reason=\"unauthenticated\"}").then_some(())
    })
    .await;
    let mut kept = eventually("a kept connection", async || {
        let mut connection = client.try_connect().await?;
        connection.try_send(&Request::status(&ACME, "1")).await.map(|_| connection)
    })
    .await;
    for round in 0..20 {
        // One that was authenticated once stays, and new ones get through.
        kept.send(&Request::deposit(&ACME, &deposit(&format!("kept-{round}")))).await.expect(200);
        let request = Request::deposit(&ACME, &deposit(&format!("new-{round}")));
        eventually("a new connection", async || client.try_connect().await?.try_send(&request).await).await.expect(200);
    }
    stop.store(true, Ordering::Relaxed);
    for flood in floods {
        flood.await.unwrap();
    }
}

#[tokio::test]
async fn tls_1_2_and_1_3_and_alpn() {
    let gateway = Gateway::start(&Rules::default());
    for (version, expected) in [
        (&rustls::version::TLS12, rustls::ProtocolVersion::TLSv1_2),
        (&rustls::version::TLS13, rustls::ProtocolVersion::TLSv1_3),
    ] {
        let client = gateway.client().version(version);
        for (offer, chosen) in [
            (&["h2", "http/1.1"][..], Some(&b"h2"[..])),
            (&["http/1.1", "h2"], Some(b"h2")),
            (&["http/1.1"], Some(b"http/1.1")),
            (&[], None),
        ] {
            let stream = client.tls(offer).await.unwrap();
            assert_eq!(stream.get_ref().1.protocol_version(), Some(expected));
            assert_eq!(stream.get_ref().1.alpn_protocol(), chosen, "{offer:?}");
        }
        for protocol in PROTOCOLS {
            client.send_by(protocol, &Request::payin(&ACME, &payin("tls"))).await.expect(200);
        }
    }
    assert!(gateway.client().tls(&["spdy/1"]).await.is_err(), "no protocol in common");
}

#[tokio::test]
async fn callers_present_a_certificate_where_one_is_asked_for() {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["merchant.example".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let stranger = rcgen::generate_simple_self_signed(vec!["merchant.example".to_owned()]).unwrap();

    let mut gateway = Gateway::prepare(&Rules::default().with("tls", "client_ca = \"../certs/clients.pem\""));
    write_file(&gateway.root.path().join("certs/clients.pem"), &issuer.pem());
    gateway.spawn();
    assert!(gateway.wait_ready(), "{}", gateway.log());
    let question = Request::status(&ACME, "1");
    let known = gateway
        .client()
        .identity(vec![certificate.der().clone()], PrivatePkcs8KeyDer::from(key.serialize_der()).into());
    for protocol in PROTOCOLS {
        known.send_by(protocol, &question).await.expect(404);
    }
    let unknown = gateway.client().identity(
        vec![stranger.cert.der().clone()],
        PrivatePkcs8KeyDer::from(stranger.signing_key.serialize_der()).into(),
    );
    for refused in [gateway.client(), unknown] {
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let refused = refused.clone().version(version);
            // In TLS 1.3 the client learns of the refusal with its first read.
            if let Ok(mut stream) = refused.tls(&["http/1.1"]).await {
                let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, &question.bytes()).await;
                let read = tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 64]).await;
                assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
            }
        }
    }
}

#[tokio::test]
async fn the_proxy_protocol_says_who_calls() {
    let rules = Rules::default().with("clients", "proxy_protocol = true").with("limits", "head_timeout = \"1s\"");
    let gateway = Gateway::start(&rules);
    let question = |key| Request::status(key, "1");
    let v2 = |family: u8, command: u8, addresses: &[u8]| {
        let length = u16::try_from(addresses.len()).unwrap().to_be_bytes();
        [b"\r\n\r\n\0\r\nQUIT\n", &[0x20 | command, family][..], &length, addresses].concat()
    };
    let four = [203, 0, 113, 5, 127, 0, 0, 1, 0x20, 0, 1, 0xbb];
    let mapped: Vec<u8> = [&[0; 10][..], &[0xff, 0xff, 203, 0, 113, 5], &[0; 15], &[1, 0x20, 0, 1, 0xbb]].concat();
    let rows: &[(Vec<u8>, u16, u16)] = &[
        (b"PROXY TCP4 203.0.113.5 127.0.0.1 5555 443\r\n".to_vec(), 404, 403),
        (b"PROXY TCP6 2001:db8::5 ::1 5555 443\r\n".to_vec(), 404, 403),
        (b"PROXY TCP6 ::ffff:203.0.113.5 ::1 5555 443\r\n".to_vec(), 404, 403),
        (b"PROXY TCP4 192.0.2.5 127.0.0.1 5555 443\r\n".to_vec(), 403, 403),
        (b"PROXY UNKNOWN\r\n".to_vec(), 403, 404),
        (v2(0x11, 1, &four), 404, 403),
        (v2(0x21, 1, &mapped), 404, 403),
        (v2(0, 0, &[]), 403, 404),
        (v2(0x11, 1, &[&four[..], &[4, 0, 2, 9, 9]].concat()), 404, 403),
    ];
    for (preface, far, near) in rows {
        let client = gateway.client().preface(preface);
        for protocol in PROTOCOLS {
            client.send_by(protocol, &question(&ACME_NOWHERE)).await.expect(*far);
            client.send_by(protocol, &question(&ACME)).await.expect(*near);
        }
    }
    for garbage in [
        &b""[..],
        b"PROXY TCP4 nonsense\r\n",
        b"PROXY TCP4 203.0.113.5 127.0.0.1 5555 443 \n",
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        assert!(gateway.client().preface(garbage).tls(&["http/1.1"]).await.is_err(), "{garbage:?}");
    }
    let endless = gateway.client().preface(&[b'P'; 5000]);
    assert!(endless.tls(&["http/1.1"]).await.is_err());
}
