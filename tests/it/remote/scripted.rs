//! A v2 engine that does what a test tells it to, byte by byte, and remembers what it was asked. It can stand before a
//! real one, and lose what that one says.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::support::{Client, Gateway, Request, eventually};

/// What the engine does with a request.
pub enum Play {
    /// Answers with this status and body.
    Say(u16, String),
    /// Writes these bytes and closes.
    Bytes(Vec<u8>),
    /// Closes.
    Close,
    /// Never answers.
    Hang,
    /// Answers as the real engine does.
    Forward,
    /// Has the real engine answer, and closes instead of saying it.
    Lose,
    /// Has the real engine answer, and never says it.
    Keep,
}

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineRequest {
    pub method: String,
    pub path: String,
    /// Lower-case names, in the order sent.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl EngineRequest {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn request(&self) -> Request {
        let mut request = Request::new(&self.method, &self.path, self.body.clone());
        for (name, value) in &self.headers {
            if name != "host" && name != "content-length" {
                request = request.header(name, value);
            }
        }
        request
    }
}

type Script = dyn Fn(&EngineRequest, usize) -> Play + Send + Sync;

#[derive(Clone)]
pub struct Scripted {
    pub address: SocketAddr,
    directory: Arc<TempDir>,
    asked: Arc<Mutex<Vec<EngineRequest>>>,
    real: Option<Client>,
    kept: Arc<watch::Sender<usize>>,
}

impl Scripted {
    /// An engine that plays by the request and how many came before.
    pub async fn start(play: impl Fn(&EngineRequest, usize) -> Play + Send + Sync + 'static) -> Self {
        Self::serve(play, None).await
    }

    /// The same before a real one.
    pub async fn before(real: &Gateway, play: impl Fn(&EngineRequest, usize) -> Play + Send + Sync + 'static) -> Self {
        Self::serve(play, Some(real.client())).await
    }

    async fn serve(play: impl Fn(&EngineRequest, usize) -> Play + Send + Sync + 'static, real: Option<Client>) -> Self {
        let (directory, acceptor) = certified(&[b"http/1.1"]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let kept = Arc::new(watch::Sender::new(0));
        let engine = Self { address, directory: Arc::new(directory), asked: Arc::default(), real, kept };
        let (own, play): (_, Arc<Script>) = (engine.clone(), Arc::new(play));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (own, play, acceptor) = (own.clone(), Arc::clone(&play), acceptor.clone());
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        own.connection(stream, &*play).await;
                    }
                });
            }
        });
        engine
    }

    /// The CA of its certificate.
    pub fn ca(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// What was asked, in order.
    pub fn asked(&self) -> Vec<EngineRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// How often it was asked.
    pub fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// Waits until it was asked so often.
    pub async fn was_asked(&self, times: usize) {
        eventually("the engine is asked", async || (self.count() >= times).then_some(())).await;
    }

    /// Waits until so many answers of the real engine are kept.
    pub async fn keeps(&self, answers: usize) {
        self.kept.subscribe().wait_for(|kept| *kept >= answers).await.unwrap();
    }

    async fn connection(&self, mut stream: TlsStream<TcpStream>, play: &Script) {
        let mut received = Vec::new();
        while let Some(asked) = take_request(&mut stream, &mut received).await {
            let before = {
                let mut all = self.asked.lock().unwrap();
                all.push(asked.clone());
                all.len() - 1
            };
            let bytes = match play(&asked, before) {
                Play::Say(status, body) => reply(status, "", &body),
                Play::Bytes(bytes) => {
                    let _ = stream.write_all(&bytes).await;
                    let _ = stream.shutdown().await;
                    return;
                }
                Play::Close => return,
                Play::Hang => std::future::pending().await,
                Play::Forward => {
                    let stated = self.real.as_ref().unwrap().send(&asked.request()).await;
                    reply(stated.status, "", &stated.text())
                }
                Play::Lose => {
                    self.real.as_ref().unwrap().send(&asked.request()).await;
                    return;
                }
                Play::Keep => {
                    self.real.as_ref().unwrap().send(&asked.request()).await;
                    self.kept.send_modify(|kept| *kept += 1);
                    std::future::pending().await
                }
            };
            if stream.write_all(&bytes).await.is_err() {
                return;
            }
        }
    }
}

/// A reply in HTTP/1.1, with more header lines.
pub fn reply(status: u16, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Said\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// An error as v2 writes it.
pub fn error(status: u16, message: &str) -> Play {
    Play::Say(status, json!({ "error": { "code": status, "message": message } }).to_string())
}

/// A create's reply, good for both directions.
pub fn created(id: &str) -> Play {
    let body = json!({ "transaction_id": id, "redirect_url": format!("https://pay.example/{id}?signature=5ecre7") });
    Play::Say(200, body.to_string())
}

/// A directory with `ca.pem`, and who shows a certificate of `localhost` by it.
pub fn certified(alpn: &[&[u8]]) -> (TempDir, TlsAcceptor) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("ca.pem"), made.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let chain = vec![CertificateDer::from(made.cert.der().to_vec())];
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    (directory, TlsAcceptor::from(Arc::new(config)))
}

async fn take_request(stream: &mut TlsStream<TcpStream>, received: &mut Vec<u8>) -> Option<EngineRequest> {
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut head = httparse::Request::new(&mut headers);
        if let httparse::Status::Complete(start) = head.parse(received).expect("an HTTP request") {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let headers: Vec<_> = head.headers.iter().map(|h| (h.name.to_ascii_lowercase(), text(h.value))).collect();
            let length = headers.iter().find(|(name, _)| name == "content-length");
            let end = start + length.map_or(0, |(_, value)| value.parse().unwrap());
            if received.len() >= end {
                let (method, path) = (head.method.unwrap().to_owned(), head.path.unwrap().to_owned());
                let body = text(&received[start..end]);
                received.drain(..end);
                return Some(EngineRequest { method, path, headers, body });
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
