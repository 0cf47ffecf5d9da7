//! HTTP/2: requests, what is refused, idle connections and draining.

use std::future::{Future, poll_fn};
use std::sync::Arc;

use bytes::Bytes;
use h2::Reason;
use h2::client::{ResponseFuture, SendRequest};
use http::{HeaderValue, Method, Request, Version};
use rustls::pki_types::ServerName;
use rustls::version::TLS13;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::listener::fixture::{Authority, PAGE, PATIENCE, SHORT, Server, Setup, eventually};

struct Http2 {
    requests: SendRequest<Bytes>,
    connection: JoinHandle<Result<(), h2::Error>>,
}

impl Http2 {
    async fn connect(server: &Server, authority: &Authority) -> Self {
        Self::with_window(server, authority, 65_535).await
    }

    /// Connects with this window for each reply.
    async fn with_window(server: &Server, authority: &Authority, window: u32) -> Self {
        let stream = connect_tls(server, authority).await;
        let handshake = h2::client::Builder::new().initial_window_size(window).handshake(stream).await;
        let (requests, connection) = handshake.unwrap();
        let requests = requests.ready().await.unwrap();
        Self { requests, connection: tokio::spawn(connection) }
    }

    /// Starts a request without a body.
    async fn start(&mut self, path: &str) -> Result<ResponseFuture, h2::Error> {
        self.requests.clone().ready().await?;
        Ok(self.requests.send_request(request(path).body(()).unwrap(), true)?.0)
    }

    async fn call(&mut self, request: Request<()>, body: &'static str) -> Result<(u16, String), h2::Error> {
        self.requests.clone().ready().await?;
        let (response, mut stream) = self.requests.send_request(request, body.is_empty())?;
        if !body.is_empty() {
            stream.send_data(Bytes::from_static(body.as_bytes()), true)?;
        }
        let (head, mut body) = response.await?.into_parts();
        let mut text = Vec::new();
        while let Some(data) = body.data().await {
            text.extend_from_slice(&data?);
        }
        Ok((head.status.as_u16(), String::from_utf8(text).unwrap()))
    }

    /// Waits for the server to end the connection.
    async fn ended(self) {
        drop(self.requests);
        let _ = tokio::time::timeout(PATIENCE, self.connection).await.expect("the server ends the connection");
    }
}

async fn connect_tls(server: &Server, authority: &Authority) -> TlsStream<TcpStream> {
    let socket = TcpStream::connect(server.address).await.unwrap();
    let config = Arc::new(authority.client(&[&TLS13], &[b"h2"], None));
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(config).connect(name, socket).await.unwrap()
}

fn request(path: &str) -> http::request::Builder {
    Request::builder().version(Version::HTTP_2).uri(format!("https://localhost{path}"))
}

fn run<F: Future>(setup: Setup, test: impl FnOnce(Server, Authority) -> F) {
    let authority = Authority::new();
    let server = Setup { tls: Some(authority.server(None)), ..setup }.start();
    tokio::runtime::Runtime::new().unwrap().block_on(test(server, authority));
}

#[test]
fn requests_share_a_connection() {
    run(Setup::default(), |server, authority| async move {
        let mut client = Http2::connect(&server, &authority).await;
        let get = request("/peer").body(()).unwrap();
        assert_eq!(client.call(get, "").await.unwrap(), (200, "127.0.0.1 Http2".to_owned()));
        let post = request("/a").method(Method::POST).body(()).unwrap();
        assert_eq!(client.call(post, "xyz").await.unwrap(), (200, "/a xyz".to_owned()));
        // An early refusal ends its stream only, however many there are and whatever is still being sent.
        for _ in 0..300 {
            let early = request("/early").method(Method::POST).body(()).unwrap();
            client.requests.clone().ready().await.unwrap();
            let (response, mut stream) = client.requests.send_request(early, false).unwrap();
            // The refusal may already be there.
            let _ = stream.send_data(Bytes::from_static(&[b'x'; 8 * 1024]), false);
            assert_eq!(response.await.unwrap().status().as_u16(), 413);
        }
        let get = request("/b").body(()).unwrap();
        assert_eq!(client.call(get, "").await.unwrap().0, 200);
    });
}

#[test]
fn what_h2_leaves_open_is_refused() {
    run(Setup::default(), |server, authority| async move {
        let mut client = Http2::connect(&server, &authority).await;
        let spaced = |value: &'static [u8]| request("/x").header("x", HeaderValue::from_bytes(value).unwrap());
        for (request, status) in [
            (spaced(b" y"), 400),
            (spaced(b"y "), 400),
            (spaced(b"y"), 200),
            (request("/x").header("host", "localhost"), 200),
            (request("/x").header("host", "other"), 400),
            (request("/x").header("host", "localhost").header("host", "localhost"), 400),
            (Request::builder().version(Version::HTTP_2).uri("https://user@localhost/x"), 400),
            (Request::builder().version(Version::HTTP_2).uri("ftp://localhost/x"), 400),
            (Request::builder().version(Version::HTTP_2).uri("http://localhost/x"), 400),
            // Sent without `:authority` and with the scheme `http`, which h2 does not tell.
            (Request::builder().version(Version::HTTP_11).uri("/x").header("host", "localhost"), 400),
            (request("/x").header("x", "y".repeat(17 * 1024)), 431),
        ] {
            let request = request.body(()).unwrap();
            let shown = format!("{:?} {:?}", request.uri(), request.headers().keys().collect::<Vec<_>>());
            assert_eq!(client.call(request, "").await.unwrap().0, status, "{shown}");
        }
        let connect = Request::builder().method(Method::CONNECT).version(Version::HTTP_2).uri("localhost:443");
        assert_eq!(client.call(connect.body(()).unwrap(), "").await.unwrap().0, 400);
    });
}

#[test]
fn a_client_that_waits_for_the_100_gets_it_when_the_body_is_wanted() {
    run(Setup::default(), |server, authority| async move {
        let mut client = Http2::connect(&server, &authority).await;
        let post = |path: &str| request(path).method(Method::POST).header("content-length", "2");
        for expects in ["100-continue", "100-Continue"] {
            let head = post("/a").header("expect", expects).body(()).unwrap();
            let (mut response, mut stream) = client.requests.send_request(head, false).unwrap();
            let interim = poll_fn(|cx| response.poll_informational(cx));
            let interim = tokio::time::timeout(PATIENCE, interim).await.expect("a 100").unwrap().unwrap();
            assert_eq!(interim.status().as_u16(), 100);
            stream.send_data(Bytes::from_static(b"hi"), true).unwrap();
            assert_eq!(response.await.unwrap().status().as_u16(), 200);
        }
        // Refused without its body; and nobody is told who did not ask.
        for head in [post("/early").header("expect", "100-continue"), post("/early")] {
            let (mut response, _stream) = client.requests.send_request(head.body(()).unwrap(), false).unwrap();
            assert!(poll_fn(|cx| response.poll_informational(cx)).await.is_none());
            assert_eq!(response.await.unwrap().status().as_u16(), 413);
        }
        let (mut response, mut stream) = client.requests.send_request(post("/a").body(()).unwrap(), false).unwrap();
        stream.send_data(Bytes::from_static(b"hi"), true).unwrap();
        assert!(poll_fn(|cx| response.poll_informational(cx)).await.is_none());
    });
}

#[test]
fn an_early_refusal_is_read_by_a_client_that_sends_on() {
    run(Setup::default(), |server, authority| async move {
        let mut client = Http2::connect(&server, &authority).await;
        let early = request("/early").method(Method::POST).body(()).unwrap();
        let (response, mut stream) = client.requests.send_request(early, false).unwrap();
        let mut body = response.await.unwrap().into_body();
        assert_eq!(body.data().await.unwrap().unwrap(), "early");
        assert!(body.data().await.is_none());
        // Many times what the windows hold: the server takes it, and does not reset the stream behind its reply.
        let mut rest = Bytes::from(vec![b'x'; 4 * 1024 * 1024]);
        while !rest.is_empty() {
            stream.reserve_capacity(rest.len());
            let room = poll_fn(|cx| stream.poll_capacity(cx)).await.expect("not reset").unwrap();
            let piece = rest.split_to(room.min(rest.len()));
            stream.send_data(piece, rest.is_empty()).unwrap();
        }
        let next = request("/next").body(()).unwrap();
        assert_eq!(client.call(next, "").await.unwrap().0, 200);
        // One that neither sends on nor ends is not waited for.
        let early = request("/early").method(Method::POST).body(()).unwrap();
        let (response, mut stream) = client.requests.send_request(early, false).unwrap();
        assert_eq!(response.await.unwrap().status().as_u16(), 413);
        let reason = tokio::time::timeout(PATIENCE, poll_fn(|cx| stream.poll_reset(cx))).await.expect("a reset");
        assert_eq!(reason.unwrap(), Reason::NO_ERROR);
    });
}

#[test]
fn replies_say_what_hyper_would_over_http_1() {
    run(Setup::default(), |server, authority| async move {
        let mut client = Http2::connect(&server, &authority).await;
        for (method, body) in [(Method::GET, "/a "), (Method::HEAD, "")] {
            let question = request("/a").method(method).body(()).unwrap();
            let (response, _) = client.requests.send_request(question, true).unwrap();
            let (head, mut stream) = response.await.unwrap().into_parts();
            assert_eq!(head.headers["content-length"], "3");
            assert!(head.headers["date"].to_str().unwrap().ends_with(" GMT"), "{head:?}");
            assert!(!head.headers.contains_key("connection"));
            let data = stream.data().await.transpose().unwrap().unwrap_or_default();
            assert_eq!(data, body);
            assert!(stream.data().await.is_none());
        }
        // More than every window, to a client that reads slowly.
        let (response, _) = client.requests.send_request(request("/big").body(()).unwrap(), true).unwrap();
        let (mut stream, mut length) = (response.await.unwrap().into_body(), 0);
        while let Some(data) = stream.data().await.transpose().unwrap() {
            length += data.len();
            stream.flow_control().release_capacity(data.len()).unwrap();
        }
        assert_eq!(length, 64 * 1024 * 1024);
    });
}

#[test]
fn a_broken_off_body_is_no_whole_one() {
    run(Setup::default(), |server, authority| async move {
        let mut client = Http2::connect(&server, &authority).await;
        let post = request("/a").method(Method::POST).body(()).unwrap();
        let (response, mut stream) = client.requests.send_request(post, false).unwrap();
        stream.send_data(Bytes::from_static(b"hal"), false).unwrap();
        let seen = server.probe.clone();
        tokio::task::spawn_blocking(move || eventually("begun", || seen.seen().len() == 1)).await.unwrap();
        stream.send_reset(Reason::CANCEL);
        assert!(response.await.is_err());
        // Announced and sent are not the same.
        let short = request("/b").method(Method::POST).header("content-length", "5").body(()).unwrap();
        assert!(client.call(short, "abc").await.is_err());
    });
}

#[test]
fn silent_and_idle_connections_are_ended() {
    let mut setup = Setup::default();
    setup.limits.head_timeout = SHORT;
    run(setup, |server, authority| async move {
        let client = Http2::connect(&server, &authority).await;
        let keep = client.requests.clone();
        client.ended().await;
        drop(keep);
    });
    // Until a request was authenticated, a connection has the time of a head.
    for (path, head_timeout, idle_timeout) in [("/a", SHORT, PATIENCE), ("/login", PATIENCE, SHORT)] {
        let mut setup = Setup::default();
        setup.limits.head_timeout = head_timeout;
        setup.limits.idle_timeout = idle_timeout;
        run(setup, move |server, authority| async move {
            let mut client = Http2::connect(&server, &authority).await;
            let request = request(path).body(()).unwrap();
            assert_eq!(client.call(request, "").await.unwrap().0, 200);
            let keep = client.requests.clone();
            client.ended().await;
            drop(keep);
        });
    }
}

/// A client's preface with empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

#[test]
fn a_client_that_answers_nothing_is_not_waited_for() {
    let mut setup = Setup::default();
    setup.limits.head_timeout = SHORT;
    setup.limits.body_timeout = PATIENCE * 10;
    run(setup, |server, authority| async move {
        for stated in [&b""[..], &PREFACE[..10], PREFACE] {
            let mut stream = connect_tls(&server, &authority).await;
            stream.write_all(stated).await.unwrap();
            let mut received = Vec::new();
            let _ =
                tokio::time::timeout(PATIENCE, stream.read_to_end(&mut received)).await.expect("ended by the server");
        }
    });
}

#[test]
fn a_drain_finishes_open_streams() {
    run(Setup::default(), |server, authority| async move {
        let mut client = Http2::connect(&server, &authority).await;
        let (response, _) = client.requests.send_request(request("/gate").body(()).unwrap(), true).unwrap();
        let (probe, handle) = (server.probe, server.handle);
        let seen = probe.clone();
        tokio::task::spawn_blocking(move || eventually("in flight", || seen.seen().len() == 1)).await.unwrap();
        let drain = tokio::spawn(handle.drain(PATIENCE));
        // The server has said that it takes no more requests once the client cannot open another stream.
        let keep = client.requests.clone();
        while keep.clone().ready().await.is_ok() {
            tokio::task::yield_now().await;
        }
        probe.open_gate();
        assert_eq!(response.await.unwrap().status().as_u16(), 200);
        client.ended().await;
        drop(keep);
        assert!(drain.await.unwrap());
    });
}

#[test]
fn a_first_request_is_taken_while_the_listener_drains() {
    run(Setup::default(), |server, authority| async move {
        let mut client = Http2::connect(&server, &authority).await;
        let (address, handle) = (server.address, server.handle);
        let drain = tokio::spawn(handle.drain(PATIENCE));
        let refuses = move || std::net::TcpStream::connect(address).is_err();
        tokio::task::spawn_blocking(move || eventually("nothing is accepted", refuses)).await.unwrap();
        assert_eq!(client.call(request("/first").body(()).unwrap(), "").await.unwrap().0, 200);
        client.ended().await;
        assert!(drain.await.unwrap());
    });
}

/// How many pages were made.
fn made(server: &Server) -> usize {
    server.probe.seen().iter().filter(|seen| *seen == "made").count()
}

fn impatient() -> Setup {
    let mut setup = Setup::default();
    setup.limits.body_timeout = SHORT;
    setup
}

#[test]
fn a_client_that_takes_no_reply_holds_a_mebibyte_and_is_ended() {
    run(Setup::default(), |server, authority| async move {
        let mut client = Http2::with_window(&server, &authority, 0).await;
        let mut replies = Vec::new();
        for _ in 0..119 {
            replies.push(client.start("/page").await.unwrap());
        }
        eventually("there is room for these", || made(&server) >= 4);
        let mut next = client.start("/peer").await.unwrap();
        assert!(tokio::time::timeout(SHORT, &mut next).await.is_err(), "the next reply waits");
        assert!(made(&server) * PAGE <= 1024 * 1024, "{}", made(&server));
        drop(replies);
        assert_eq!(next.await.unwrap().status().as_u16(), 200);
    });
    run(impatient(), |server, authority| async move {
        let mut client = Http2::with_window(&server, &authority, 0).await;
        let mut replies = Vec::new();
        for _ in 0..60 {
            replies.push(client.start("/page").await.unwrap());
        }
        // What is reset at once keeps nothing open, however often.
        while let Ok(next) = client.start("/peer").await {
            let _ = next.await;
            // So few resets a second are no attack, for which the connection would end.
            tokio::time::sleep(SHORT / 10).await;
        }
        client.ended().await;
        assert!(server.handle.drain(PATIENCE).await, "nothing is left");
    });
}

#[test]
fn a_reply_that_is_taken_too_slowly_ends_alone_beside_others_that_are_taken() {
    run(impatient(), |server, authority| async move {
        let mut client = Http2::with_window(&server, &authority, 1024).await;
        let (head, mut slow) = client.start("/page").await.unwrap().await.unwrap().into_parts();
        assert_eq!(head.status.as_u16(), 200);
        let ended = loop {
            let get = request("/peer").body(()).unwrap();
            assert_eq!(client.call(get, "").await.unwrap().0, 200);
            tokio::select! {
                biased;
                next = slow.data() => match next.expect("not the end") {
                    Ok(data) => assert!(data.len() <= 1024),
                    Err(error) => break error,
                },
                () = std::future::ready(()) => {}
            }
        };
        assert_eq!(ended.reason(), Some(Reason::CANCEL));
        let get = request("/peer").body(()).unwrap();
        assert_eq!(client.call(get, "").await.unwrap().0, 200);
    });
}

#[test]
fn a_reply_that_is_taken_steadily_is_whole() {
    run(impatient(), |server, authority| async move {
        let mut client = Http2::with_window(&server, &authority, 1024).await;
        let (_, mut page) = client.start("/page").await.unwrap().await.unwrap().into_parts();
        let mut length = 0;
        // In all, longer than the time over which the pace is averaged.
        while let Some(data) = page.data().await {
            let data = data.expect("steady enough");
            length += data.len();
            // The pace of a client that reads steadily is what the server has to measure.
            tokio::time::sleep(SHORT / 50).await;
            page.flow_control().release_capacity(data.len()).unwrap();
        }
        assert_eq!(length, PAGE);
    });
}
