//! Before HTTP: binding, the connection limit, the PROXY header, TLS.

use rcgen::ExtendedKeyUsagePurpose::ClientAuth;
use rustls::version::{TLS12, TLS13};

use paybridge::http::listener::Listener;

use crate::listener::fixture::{Authority, SHORT, Setup, eventually, limits};

#[test]
fn a_port_in_use_is_one_clear_line() {
    let first = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let error = Listener::bind(first.addresses()[0]).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("`server.listen`: cannot listen on {}: the port is in use", first.addresses()[0])
    );
}

#[test]
fn while_all_connections_are_busy_more_are_closed() {
    let mut setup = Setup::default();
    setup.limits.connections = 2;
    let server = setup.start();
    let (mut first, mut second) = (server.connect(), server.connect());
    for client in [&mut first, &mut second] {
        assert_eq!(client.get("/login").status, 200);
        client.send("GET /gate HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    eventually("both are busy", || server.probe.seen().len() == 4);
    server.connect().expect_cut();
    assert!(server.handle.slots().check().is_err());
    server.probe.open_gate();
    server.probe.open_gate();
    assert_eq!((first.reply().status, second.reply().status), (200, 200));
    eventually("one of them is idle", || server.handle.slots().check().is_ok());
    assert_eq!(server.connect().get("/peer").status, 200);
}

#[test]
fn versions_and_protocols() {
    let authority = Authority::new();
    let server = Setup { tls: Some(authority.server(None)), ..Setup::default() }.start();
    for version in [&TLS12, &TLS13] {
        for alpn in [&[][..], &[&b"http/1.1"[..]]] {
            let mut client = server.connect_tls(authority.client(&[version], alpn, None));
            assert_eq!(client.get("/peer").body, "127.0.0.1 Http1");
            assert_eq!(client.get("/peer").body, "127.0.0.1 Http1");
            assert_eq!(client.stream.conn.protocol_version(), Some(version.version));
        }
        let mut client = server.connect_tls(authority.client(&[version], &[b"h2", b"http/1.1"], None));
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
        assert_eq!(client.stream.conn.alpn_protocol(), Some(&b"h2"[..]));
    }
    let mut other = server.connect_tls(authority.client(&[&TLS13], &[b"spdy/3"], None));
    assert!(other.send_if_possible(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").is_err());
}

#[test]
fn sessions_resume() {
    let authority = Authority::new();
    let server = Setup { tls: Some(authority.server(None)), ..Setup::default() }.start();
    for version in [&TLS12, &TLS13] {
        let config = authority.client(&[version], &[], None);
        let mut kinds = Vec::new();
        for _ in 0..2 {
            let mut client = server.connect_tls(config.clone());
            assert_eq!(client.get("/a").status, 200);
            kinds.push(client.stream.conn.handshake_kind().unwrap());
            let tickets = u32::from(version.version == TLS13.version);
            assert_eq!(client.stream.conn.tls13_tickets_received(), tickets);
        }
        assert_eq!(kinds, [rustls::HandshakeKind::Full, rustls::HandshakeKind::Resumed]);
    }
}

#[test]
fn http2_is_only_spoken_where_alpn_chose_it() {
    let authority = Authority::new();
    let server = Setup { tls: Some(authority.server(None)), ..Setup::default() }.start();
    let mut client = server.connect_tls(authority.client(&[&TLS13], &[], None));
    let reply = client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").reply();
    assert_eq!((reply.status, reply.closes), (400, true));
    client.expect_end();
}

#[test]
fn plain_http_on_the_tls_port_is_reported_so_and_nothing_else() {
    let authority = Authority::new();
    let server = Setup { tls: Some(authority.server(None)), ..Setup::default() }.start();
    let mut client = server.connect();
    let reply = client.send("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nxyz").reply();
    assert_eq!((reply.status, reply.closes), (400, true));
    assert_eq!(reply.body, "this port speaks TLS: use https");
    client.expect_end();
    assert!(server.probe.seen().is_empty());
}

#[test]
fn client_certificates() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let server = Setup { tls: Some(authority.server(Some(&clients))), ..Setup::default() }.start();
    let (known, foreign) = (clients.sign(ClientAuth), authority.sign(ClientAuth));
    for version in [&TLS12, &TLS13] {
        let mut client = server.connect_tls(authority.client(&[version], &[], Some(&known)));
        assert_eq!(client.get("/peer").status, 200);
        for pair in [None, Some(&foreign)] {
            let mut client = server.connect_tls(authority.client(&[version], &[], pair));
            // TLS 1.3 clients learn of the refusal after their own handshake.
            let _ = client.send_if_possible(b"GET /refused HTTP/1.1\r\nHost: a\r\n\r\n");
            client.expect_cut();
        }
    }
    assert!(!server.probe.seen().contains(&"/refused".to_owned()));
}

#[test]
fn proxy_headers_name_the_caller() {
    let authority = Authority::new();
    let mut setup = Setup { tls: Some(authority.server(None)), ..Setup::default() };
    setup.clients.proxy_protocol = true;
    let server = setup.start();
    let mut v2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x24".to_vec();
    v2.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 51, 100, 7]);
    v2.extend_from_slice(&[0; 20]);
    for (header, address) in [
        (b"PROXY TCP4 203.0.113.7 10.0.0.1 1234 443\r\n".to_vec(), "203.0.113.7"),
        (b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.1"),
        (v2, "198.51.100.7"),
        (b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0".to_vec(), "127.0.0.1"),
    ] {
        let mut client = server.connect();
        for byte in header {
            client.send([byte]);
        }
        let mut client = client.upgrade(authority.client(&[&TLS13], &[], None));
        assert_eq!(client.get("/peer").body, format!("{address} Http1"));
    }
    let mut client = server.connect_tls(authority.client(&[&TLS13], &[], None));
    assert!(client.send_if_possible(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").is_err(), "a missing header is refused");
    server.connect().send(b"PROXY TCP4 203.0.113.7 nonsense\r\n").expect_cut();
}

#[test]
fn only_trusted_proxies_may_name_the_caller() {
    let mut setup = Setup::default();
    setup.clients.proxy_protocol = true;
    setup.clients.trusted_proxies = vec!["192.0.2.0/24".parse().unwrap()];
    let server = setup.start();
    let mut client = server.connect();
    let _ = client.send_if_possible(b"PROXY TCP4 203.0.113.7 10.0.0.1 1 2\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    client.expect_cut();
    assert!(server.probe.seen().is_empty());
}

#[test]
fn silence_before_the_handshake_is_ended() {
    let authority = Authority::new();
    let limits = paybridge::rules::Limits { head_timeout: SHORT, ..limits() };
    let setup = Setup { tls: Some(authority.server(None)), limits: limits.clone(), ..Setup::default() };
    setup.start().connect().send(b"\x16\x03").expect_cut();
    let mut setup = Setup { limits, ..Setup::default() };
    setup.clients.proxy_protocol = true;
    let server = setup.start();
    server.connect().expect_cut();
    server.connect().send(b"PROXY TCP4 ").expect_cut();
}
