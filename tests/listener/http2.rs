//! HTTP/2: requests, what is refused, idle connections and draining.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderValue, Method, Request, Version};
use rustls::pki_types::ServerName;
use rustls::version::TLS13;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::{Authority, PATIENCE, SHORT, Server, Setup, eventually};

struct Http2 {
    requests: SendRequest<Bytes>,
    connection: JoinHandle<Result<(), h2::Error>>,
}

impl Http2 {
    async fn connect(server: &Server, authority: &Authority) -> Self {
        let stream = connect_tls(server, authority).await;
        let (requests, connection) = h2::client::handshake(stream).await.unwrap();
        Self { requests, connection: tokio::spawn(connection) }
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
fn silent_and_idle_connections_are_ended() {
    let mut setup = Setup::default();
    setup.limits.head_timeout = SHORT;
    run(setup, |server, authority| async move {
        let client = Http2::connect(&server, &authority).await;
        let keep = client.requests.clone();
        client.ended().await;
        drop(keep);
    });
    let mut setup = Setup::default();
    setup.limits.idle_timeout = SHORT;
    run(setup, |server, authority| async move {
        let mut client = Http2::connect(&server, &authority).await;
        let request = request("/a").body(()).unwrap();
        assert_eq!(client.call(request, "").await.unwrap().0, 200);
        let keep = client.requests.clone();
        client.ended().await;
        drop(keep);
    });
}

/// A client's preface with empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

#[test]
fn a_client_that_answers_nothing_is_not_waited_for() {
    let mut setup = Setup::default();
    setup.limits.head_timeout = SHORT;
    setup.limits.body_timeout = PATIENCE * 10;
    run(setup, |server, authority| async move {
        for said in [&b""[..], &PREFACE[..10], PREFACE] {
            let mut stream = connect_tls(&server, &authority).await;
            stream.write_all(said).await.unwrap();
            let mut heard = Vec::new();
            let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut heard)).await.expect("ended by the server");
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
