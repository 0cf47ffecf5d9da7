//! The back ends of the servers that forward: stubs that reply to every create, on the client's core; their CPU is not
//! counted. One speaks plain HTTP/1.1, for nginx, nginx with Lua and `HAProxy`; one speaks TLS with HTTP/1.1 or HTTP/2, and is
//! a remote engine for Paybridge.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::servers::tls;

/// The plain stub's reply: that of a v2 create, 150 bytes.
pub const BODY: &str = concat!(
    r#"{"transaction_id":"1234567890123456789","redirect_url":"https://localhost:8443/pay/1234567890123456789"#,
    r#"?expires=1795282921&signature=5d41402abc4b2a76"}"#
);

/// The plain stub. It can record the requests that it receives.
pub struct Stub {
    /// Where it listens.
    pub address: SocketAddr,
    kept: Arc<Mutex<Option<Vec<Vec<u8>>>>>,
}

impl Stub {
    /// Starts it on the current runtime.
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let (address, kept) = (listener.local_addr().unwrap(), Arc::default());
        tokio::spawn(accept_plain(listener, Arc::clone(&kept)));
        Self { address, kept }
    }

    /// Starts recording requests.
    pub fn keep(&self) {
        *self.kept.lock().unwrap() = Some(Vec::new());
    }

    /// Returns the recorded requests and stops recording.
    pub fn take(&self) -> Vec<Vec<u8>> {
        self.kept.lock().unwrap().take().unwrap_or_default()
    }
}

async fn accept_plain(listener: TcpListener, kept: Arc<Mutex<Option<Vec<Vec<u8>>>>>) {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", BODY.len());
    let reply: Arc<[u8]> = (head + BODY).into_bytes().into();
    while let Ok((socket, _)) = listener.accept().await {
        let _ = socket.set_nodelay(true);
        tokio::spawn(answer_plain(socket, reply.clone(), kept.clone()));
    }
}

async fn answer_plain(mut socket: TcpStream, reply: Arc<[u8]>, kept: Arc<Mutex<Option<Vec<Vec<u8>>>>>) {
    let mut received = Vec::with_capacity(4096);
    loop {
        received.clear();
        while !is_whole(&received) {
            if !socket.read_buf(&mut received).await.is_ok_and(|length| length > 0) {
                return;
            }
        }
        if let Some(kept) = &mut *kept.lock().unwrap() {
            kept.push(received.clone());
        }
        if socket.write_all(&reply).await.is_err() {
            return;
        }
    }
}

/// Reports whether head and body are complete. Forwarded requests have a length, or no body.
fn is_whole(received: &[u8]) -> bool {
    let Some(end) = received.windows(4).position(|end| end == b"\r\n\r\n") else { return false };
    let length = received[..end].split(|byte| *byte == b'\n').find_map(|line| {
        let (name, value) = line.split_at_checked(15)?;
        let value = name.eq_ignore_ascii_case(b"content-length:").then(|| value.trim_ascii())?;
        std::str::from_utf8(value).ok()?.parse::<usize>().ok()
    });
    received.len() >= end + 4 + length.unwrap_or(0)
}

/// Starts a remote engine on the current runtime that offers these protocols, and returns its address. Every create gets
/// its own transaction.
pub async fn start_engine(certs: &Path, protocols: &[&str]) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = tls::acceptor(certs, protocols);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let _ = socket.set_nodelay(true);
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(socket).await else { return };
                let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                let (io, service) = (TokioIo::new(stream), service_fn(create));
                let _ = if http2 {
                    hyper::server::conn::http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await
                } else {
                    hyper::server::conn::http1::Builder::new()
                        .timer(TokioTimer::new())
                        .serve_connection(io, service)
                        .await
                };
            });
        }
    });
    address
}

async fn create(request: http::Request<hyper::body::Incoming>) -> Result<http::Response<Full<Bytes>>, Infallible> {
    static NEXT: AtomicU64 = AtomicU64::new(1_000_000_000_000_000_000);
    let _ = request.into_body().collect().await;
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let body = format!(
        r#"{{"transaction_id":"{id}","redirect_url":"https://engine.example/pay/{id}?expires=1795282921&signature=5d41"}}"#
    );
    let reply = http::Response::builder().header("content-type", "application/json");
    Ok(reply.body(Full::new(Bytes::from(body))).unwrap())
}
