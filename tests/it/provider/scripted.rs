//! A provider that does what a test tells it to, byte by byte, and remembers what it was asked.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::support::{self, eventually};

/// What the provider does with a request.
pub enum Play {
    /// Answers 200 with this body.
    Say(&'static str),
    /// Writes these bytes and closes.
    Bytes(Vec<u8>),
    /// Never answers.
    Hang,
    /// Answers 200 with this body once the test says so.
    Hold(&'static str),
}

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderRequest {
    pub path: String,
    pub headers: HashMap<String, String>,
    pub body: String,
}

impl ProviderRequest {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

#[derive(Clone)]
pub struct Scripted {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<ProviderRequest>>>,
    go_on: Arc<watch::Sender<bool>>,
}

impl Scripted {
    /// A provider that plays by the operation's cents and how often it was asked about it before.
    pub async fn start(play: impl Fn(&str, usize) -> Play + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let provider = Self { address, asked: Arc::default(), go_on: Arc::new(watch::Sender::new(false)) };
        let (own, play) = (provider.clone(), Arc::new(play));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (own, play) = (own.clone(), Arc::clone(&play));
                tokio::spawn(async move { own.serve(stream, &*play).await });
            }
        });
        provider
    }

    pub fn url(&self) -> String {
        format!("http://{}/operations?from=paybridge", self.address)
    }

    /// What was asked about an operation, in order.
    pub fn asked(&self, id: &str) -> Vec<ProviderRequest> {
        let of_it = |asked: &&ProviderRequest| asked.json()["transaction_id"] == id;
        self.asked.lock().unwrap().iter().filter(of_it).cloned().collect()
    }

    /// How often it was asked in all.
    pub fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// Waits until an operation was asked about so often.
    pub async fn was_asked(&self, id: &str, times: usize) {
        eventually("the provider is asked", async || (self.asked(id).len() >= times).then_some(())).await;
    }

    /// Lets held answers go.
    pub fn go_on(&self) {
        self.go_on.send_replace(true);
    }

    async fn serve(&self, mut stream: TcpStream, play: &(dyn Fn(&str, usize) -> Play + Send + Sync)) {
        let mut received = Vec::new();
        while let Some(asked) = take_request(&mut stream, &mut received).await {
            let operation = asked.json();
            let id = support::text(&operation, "transaction_id").to_owned();
            let cents = support::text(&operation, "amount").rsplit('.').next().unwrap().to_owned();
            let before = self.asked(&id).len();
            self.asked.lock().unwrap().push(asked);
            let body = match play(&cents, before) {
                Play::Say(body) => named(body, &id),
                Play::Bytes(bytes) => {
                    let _ = stream.write_all(&bytes).await;
                    return;
                }
                Play::Hang => std::future::pending().await,
                Play::Hold(body) => {
                    self.go_on.subscribe().wait_for(|go_on| *go_on).await.unwrap();
                    named(body, &id)
                }
            };
            let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            if stream.write_all(reply.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// What is said, with the operation it is said of.
fn named(stated: &str, id: &str) -> String {
    stated.replacen('{', &format!("{{\"transaction_id\":\"{id}\","), 1)
}

async fn take_request(stream: &mut TcpStream, received: &mut Vec<u8>) -> Option<ProviderRequest> {
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut head = httparse::Request::new(&mut headers);
        if let httparse::Status::Complete(start) = head.parse(received).expect("an HTTP request") {
            assert_eq!(head.method, Some("POST"));
            let path = head.path.unwrap().to_owned();
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let headers: HashMap<_, _> =
                head.headers.iter().map(|h| (h.name.to_ascii_lowercase(), text(h.value))).collect();
            let end = start + headers["content-length"].parse::<usize>().unwrap();
            if received.len() >= end {
                let body = text(&received[start..end]);
                received.drain(..end);
                return Some(ProviderRequest { path, headers, body });
            }
        }
        let mut chunk = [0; 4096];
        let length = stream.read(&mut chunk).await.unwrap_or(0);
        if length == 0 {
            return None;
        }
        received.extend_from_slice(&chunk[..length]);
    }
}
