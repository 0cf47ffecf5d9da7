//! Time-outs, early refusals and draining.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustls::version::TLS13;

use crate::listener::fixture::{Authority, Client, PATIENCE, SHORT, Setup, eventually, limits};

#[test]
fn a_silent_client_is_ended_after_the_handshake() {
    let authority = Authority::new();
    let mut setup = Setup { tls: Some(authority.server(None)), ..Setup::default() };
    setup.limits.head_timeout = SHORT;
    let server = setup.start();
    let mut client = server.connect_tls(authority.client(&[&TLS13], &[], None));
    client.expect_end();
}

#[test]
fn a_slow_head_is_reported_so() {
    let mut setup = Setup::default();
    setup.limits.head_timeout = SHORT;
    let server = setup.start();
    // The first request of a connection, and a later one.
    for earlier in [false, true] {
        let mut client = server.connect();
        if earlier {
            assert_eq!(client.get("/a").status, 200);
        }
        let reply = client.send("GET /slow HTTP/1.1\r\nHost:").reply();
        assert_eq!((reply.status, reply.closes), (408, true));
        client.expect_end();
    }
    // Dripping does not help.
    let mut client = server.connect();
    let mut dripping = client.stream.try_clone().unwrap();
    let reported = Arc::new(AtomicBool::new(false));
    let enough = Arc::clone(&reported);
    let drip = thread::spawn(move || {
        let mut head = b"GET /slow HTTP/1.1\r\nX: ".iter().chain(std::iter::repeat(&b'y'));
        while !enough.load(Ordering::Relaxed) {
            dripping.write_all(&[*head.next().unwrap()]).unwrap();
            // Slowly enough that the deadline passes before the head is too large.
            thread::sleep(Duration::from_millis(5));
        }
    });
    assert_eq!(client.reply().status, 408);
    reported.store(true, Ordering::Relaxed);
    client.expect_end();
    drip.join().unwrap();
    assert!(!server.probe.seen().contains(&"/slow".to_owned()));
}

#[test]
fn an_idle_connection_is_closed_but_not_a_busy_one() {
    // Until a request was authenticated, a connection has the time of a head.
    for (path, head_timeout, idle_timeout) in [("/a", SHORT, PATIENCE), ("/login", PATIENCE, SHORT)] {
        let mut setup = Setup::default();
        setup.limits.head_timeout = head_timeout;
        setup.limits.idle_timeout = idle_timeout;
        let server = setup.start();
        let (mut idle, mut busy) = (server.connect(), server.connect());
        assert_eq!(busy.get(path).status, 200);
        busy.send("GET /gate HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(idle.get(path).status, 200);
        idle.expect_end();
        let mut crlf = server.connect();
        assert_eq!(crlf.get(path).status, 200);
        crlf.send("\r\n").expect_end();
        server.probe.open_gate();
        assert_eq!(busy.reply().status, 200);
        busy.expect_end();
    }
}

#[test]
fn a_client_that_does_not_read_is_cut() {
    let mut setup = Setup::default();
    setup.limits.body_timeout = SHORT;
    let server = setup.start();
    let mut client = server.connect();
    client.send("GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("asked", || server.probe.seen().len() == 1);
    // The listener gives up by itself: nothing is left for the drain to cut.
    let drained = tokio::runtime::Runtime::new().unwrap().block_on(server.handle.drain(PATIENCE));
    assert!(drained);
}

#[test]
fn an_early_refusal_is_read_by_a_client_that_sends_first() {
    let authority = Authority::new();
    let server = Setup { tls: Some(authority.server(None)), ..Setup::default() }.start();
    let body = vec![b'x'; 4 * 1024 * 1024];
    let length = body.len();
    let head = format!("POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
    let both =
        format!("POST /early HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: {length}\r\n\r\n");
    for (head, status) in [(head, 413), (both, 400)] {
        let mut plain = server.connect_tls(authority.client(&[&TLS13], &[], None));
        plain.send(&head).send_if_possible(&body).unwrap();
        let reply = plain.reply();
        assert_eq!((reply.status, reply.closes), (status, true));
        plain.expect_end();
    }
}

#[test]
fn a_body_that_is_not_wanted_is_never_read_as_a_request() {
    let server = Setup::default().start();
    let mut client = server.connect();
    let body = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    let request = format!("POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let reply = client.send(format!("{request}GET /next HTTP/1.1\r\nHost: a\r\n\r\n")).reply();
    assert_eq!(reply.status, 413);
    // What has arrived whole need not cost the connection.
    if !reply.closes {
        assert_eq!(client.reply().body, "/next ");
    }
    assert!(!server.probe.seen().contains(&"/smuggled".to_owned()));
}

#[test]
fn a_drain_finishes_what_is_in_flight() {
    let authority = Authority::new();
    let server = Setup { tls: Some(authority.server(None)), ..Setup::default() }.start();
    let config = authority.client(&[&TLS13], &[], None);
    let (mut busy, mut idle) = (server.connect_tls(config.clone()), server.connect_tls(config.clone()));
    let mut fresh = server.connect_tls(config);
    fresh.stream.flush().unwrap();
    assert_eq!(idle.get("/a").status, 200);
    busy.send("GET /gate HTTP/1.1\r\nHost: a\r\n\r\nGET /after HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("in flight", || server.probe.seen().len() == 2);
    let (address, probe, handle) = (server.address, server.probe, server.handle);
    let drain = thread::spawn(move || tokio::runtime::Runtime::new().unwrap().block_on(handle.drain(PATIENCE)));
    idle.expect_end();
    drop(idle);
    fresh.expect_end();
    drop(fresh);
    eventually("nothing is accepted", || TcpStream::connect(address).is_err());
    probe.open_gate();
    let reply = busy.reply();
    assert_eq!((reply.status, reply.closes), (200, true));
    busy.expect_end();
    drop(busy);
    assert!(drain.join().unwrap());
    assert!(!probe.seen().contains(&"/after".to_owned()));
}

/// Sends requests without pause, and looks before each whether its connection has ended. Returns how many were answered before
/// it had to leave; as an error when one more was sent and not answered.
fn send_without_pause(mut client: Client<TcpStream>) -> Result<usize, usize> {
    client.stream.set_nodelay(true).unwrap();
    for answered in 0.. {
        client.stream.set_nonblocking(true).unwrap();
        let ended = client.stream.peek(&mut [0]).is_ok_and(|length| length == 0);
        client.stream.set_nonblocking(false).unwrap();
        if ended {
            return Ok(answered);
        }
        let sent = client.send_if_possible(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
        let Some(reply) = sent.ok().and_then(|()| client.try_reply()) else { return Err(answered) };
        if reply.closes {
            return Ok(answered + 1);
        }
    }
    unreachable!("it sends until it has to leave")
}

#[test]
fn no_request_of_a_busy_client_is_left_without_an_answer_by_a_drain() {
    for round in 0..50 {
        let server = Setup::default().start();
        let clients: Vec<_> = (0..8).map(|_| server.connect()).collect();
        let sending: Vec<_> =
            clients.into_iter().map(|client| thread::spawn(move || send_without_pause(client))).collect();
        eventually("all send", || server.probe.seen().len() > 100);
        let handle = server.handle;
        if round % 2 == 0 {
            handle.disconnect_clients();
        }
        assert!(tokio::runtime::Runtime::new().unwrap().block_on(handle.drain(PATIENCE)), "round {round}");
        for sending in sending {
            let answered = sending.join().unwrap();
            assert!(answered.is_ok_and(|answered| answered > 0), "round {round}: {answered:?}");
        }
    }
}

#[test]
fn a_request_that_comes_while_the_listener_drains_is_the_last() {
    let server = Setup::default().start();
    let (mut kept, mut fresh) = (server.connect(), server.connect());
    assert!(!kept.get("/a").closes);
    let (address, probe, handle) = (server.address, server.probe, server.handle);
    let drain = thread::spawn(move || tokio::runtime::Runtime::new().unwrap().block_on(handle.drain(PATIENCE)));
    eventually("nothing is accepted", || TcpStream::connect(address).is_err());
    for client in [&mut kept, &mut fresh] {
        assert!(client.get("/last").closes);
        client.expect_end();
    }
    drop((kept, fresh));
    assert!(drain.join().unwrap());
    assert_eq!(probe.seen(), ["/a", "/last", "/last"]);
}

#[test]
fn a_handshake_that_began_before_a_drain_is_finished_and_a_request_follows() {
    let authority = Authority::new();
    let server = Setup { tls: Some(authority.server(None)), ..Setup::default() }.start();
    let config = authority.client(&[&TLS13], &[], None);
    let (mut late, rest) = server.connect().begin_upgrade(config.clone());
    let mut silent = server.connect();
    // Connections are accepted in their order.
    assert_eq!(server.connect_tls(config).get("/a").status, 200);
    let (address, handle) = (server.address, server.handle);
    let drain = thread::spawn(move || tokio::runtime::Runtime::new().unwrap().block_on(handle.drain(PATIENCE)));
    silent.expect_end();
    assert!(TcpStream::connect(address).is_err(), "nothing is accepted any more, and idle connections have ended");
    late.stream.sock.write_all(&rest).unwrap();
    assert!(late.get("/first").closes);
    late.expect_end();
    drop(late);
    assert!(drain.join().unwrap());
    assert_eq!(server.probe.seen(), ["/a", "/first"]);
}

#[test]
fn a_client_that_is_silent_after_its_proxy_header_delays_no_drain() {
    let authority = Authority::new();
    let limits = paybridge::rules::Limits { head_timeout: PATIENCE, ..limits() };
    let mut setup = Setup { tls: Some(authority.server(None)), limits, ..Setup::default() };
    setup.clients.proxy_protocol = true;
    let server = setup.start();
    let proxied = || {
        let mut client = server.connect();
        client.send(b"PROXY TCP4 203.0.113.7 10.0.0.1 1 2\r\n");
        client
    };
    let mut silent = proxied();
    // Connections are accepted in their order.
    assert_eq!(proxied().upgrade(authority.client(&[&TLS13], &[], None)).get("/a").status, 200);
    assert!(tokio::runtime::Runtime::new().unwrap().block_on(server.handle.drain(PATIENCE / 2)), "nothing is cut");
    silent.expect_end();
}

#[test]
fn clients_are_sent_away_before_the_listener_closes() {
    let server = Setup::default().start();
    let mut kept = server.connect();
    assert!(!kept.get("/a").closes);
    server.handle.disconnect_clients();
    assert!(kept.get("/b").closes);
    kept.expect_end();
    // Connections are taken still, each for a request.
    let mut late = server.connect();
    assert!(late.get("/c").closes);
    late.expect_end();
}

#[test]
fn a_drain_waits_for_tasks_and_cuts_after_its_grace() {
    let server = Setup::default().start();
    let mut client = server.connect();
    assert_eq!(client.get("/task").status, 200);
    drop(client);
    let (probe, handle) = (server.probe, server.handle);
    let drain = thread::spawn(move || tokio::runtime::Runtime::new().unwrap().block_on(handle.drain(PATIENCE)));
    assert_eq!(probe.finished(), 0);
    probe.open_gate();
    assert!(drain.join().unwrap());
    assert_eq!(probe.finished(), 1);

    let server = Setup::default().start();
    let mut client = server.connect();
    client.send("GET /gate HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("in flight", || server.probe.seen().len() == 1);
    let drained = tokio::runtime::Runtime::new().unwrap().block_on(server.handle.drain(SHORT));
    assert!(!drained);
    client.expect_cut();
}
