//! A client over real TLS sockets that writes the bytes it is told to and checks every reply it reads.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::reply::{Reply, take_reply, take_reply_to};
use super::request::{Protocol, Request};

/// How long any one answer may take before the test fails.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Where to connect and whom to trust.
#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    roots: Arc<RootCertStore>,
    versions: Vec<&'static SupportedProtocolVersion>,
    identity: Option<Arc<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>>,
    preface: Vec<u8>,
}

impl Client {
    /// A client that trusts the certificates of a file.
    pub fn new(address: SocketAddr, ca: &Path) -> Self {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(ca).expect("the CA's file") {
            roots.add(certificate.unwrap()).unwrap();
        }
        Self {
            address,
            roots: Arc::new(roots),
            versions: rustls::ALL_VERSIONS.to_vec(),
            identity: None,
            preface: Vec::new(),
        }
    }

    /// The same with one TLS version.
    #[must_use]
    pub fn version(mut self, version: &'static SupportedProtocolVersion) -> Self {
        self.versions = vec![version];
        self
    }

    /// The same with a client certificate.
    #[must_use]
    pub fn identity(mut self, chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Self {
        self.identity = Some(Arc::new((chain, key)));
        self
    }

    /// The same with bytes sent before TLS starts.
    #[must_use]
    pub fn preface(mut self, bytes: &[u8]) -> Self {
        self.preface = bytes.to_vec();
        self
    }

    fn connector(&self, alpn: &[&str]) -> TlsConnector {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&self.versions)
            .unwrap()
            .with_root_certificates(self.roots.clone());
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder.with_client_auth_cert(identity.0.clone(), identity.1.clone_key()).unwrap(),
        };
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsConnector::from(Arc::new(config))
    }

    /// A TLS connection that offers these protocols.
    ///
    /// # Errors
    /// The connection or the handshake failed.
    pub async fn tls(&self, alpn: &[&str]) -> std::io::Result<TlsStream<TcpStream>> {
        let mut socket = TcpStream::connect(self.address).await?;
        socket.set_nodelay(true)?;
        socket.write_all(&self.preface).await?;
        let name = ServerName::try_from("localhost").unwrap();
        tokio::time::timeout(PATIENCE, self.connector(alpn).connect(name, socket)).await.expect("a handshake in time")
    }

    /// A connection that speaks HTTP/1.1.
    pub async fn connect(&self) -> Connection {
        self.try_connect().await.expect("a TLS connection")
    }

    /// The same where nobody may listen.
    pub async fn try_connect(&self) -> Option<Connection> {
        let stream = self.tls(&["http/1.1"]).await.ok()?;
        Some(Connection { stream, received: Vec::new() })
    }

    /// Sends one request over a connection of its own and checks the reply.
    pub async fn send(&self, request: &Request) -> Reply {
        self.connect().await.send(request).await
    }

    /// The same without a check: a forwarded reply may be anything.
    pub async fn send_unchecked(&self, request: &Request) -> Reply {
        self.unchecked_by(Protocol::Http1, request).await
    }

    /// The same by either protocol.
    pub async fn unchecked_by(&self, protocol: Protocol, request: &Request) -> Reply {
        match protocol {
            Protocol::Http1 => self.connect().await.exchange(request).await,
            Protocol::Http2 => {
                let mut connection = super::http2::Http2::connect(self).await;
                connection.exchange("localhost", request, false).await.expect("a reply")
            }
        }
    }

    /// The same by either protocol.
    pub async fn send_by(&self, protocol: Protocol, request: &Request) -> Reply {
        match protocol {
            Protocol::Http1 => self.send(request).await,
            Protocol::Http2 => super::http2::Http2::connect(self).await.send(request).await,
        }
    }

    /// The same of a dialect whose errors have a shape of their own.
    pub async fn send_shaped(&self, protocol: Protocol, request: &Request) -> Reply {
        let reply = self.unchecked_by(protocol, request).await;
        reply.check_but_for_shape(Some(request));
        reply
    }

    /// Sends bytes and gives every reply until the other side closes.
    pub async fn raw(&self, bytes: &[u8]) -> Vec<Reply> {
        let mut connection = self.connect().await;
        connection.write(bytes).await;
        connection.rest().await
    }
}

/// Connects to the chosen client's gateway, and chooses again until one answers.
pub async fn connect_any(clients: &[Client], mut choose: impl FnMut() -> usize) -> Connection {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(connection) = clients[choose()].try_connect().await {
            return connection;
        }
        assert!(Instant::now() < deadline, "no gateway answers");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A connection that speaks HTTP/1.1.
pub struct Connection {
    stream: TlsStream<TcpStream>,
    received: Vec<u8>,
}

impl Connection {
    /// Writes bytes; a peer that has closed is not an error here, what it said counts.
    pub async fn write(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok() && self.stream.flush().await.is_ok()
    }

    /// Sends one request, checks its reply and gives it.
    pub async fn send(&mut self, request: &Request) -> Reply {
        self.write(&request.bytes()).await;
        let reply = self.reply().await.unwrap_or_else(|| panic!("closed without a reply to {request:?}"));
        reply.check(Some(request));
        reply
    }

    async fn exchange(&mut self, request: &Request) -> Reply {
        self.write(&request.bytes()).await;
        loop {
            if let Some(reply) = take_reply_to(&request.method, &mut self.received) {
                return reply;
            }
            assert!(self.fill().await, "closed without a reply to {request:?}");
        }
    }

    /// Sends a request to a process that may die at any moment, and passes over its reply, which may be anything. Whether
    /// one came.
    pub async fn send_to_any_end(&mut self, request: &Request) -> bool {
        self.write(&request.bytes()).await;
        loop {
            if take_reply_to(&request.method, &mut self.received).is_some() {
                return true;
            }
            if !self.fill().await {
                return false;
            }
        }
    }

    /// The same against a process that may die at any moment: `None` when no whole reply came.
    pub async fn try_send(&mut self, request: &Request) -> Option<Reply> {
        self.write(&request.bytes()).await;
        loop {
            if let Some(reply) = take_reply(&mut self.received) {
                reply.check(Some(request));
                return Some(reply);
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    /// The next reply, checked but for the request's own words; `None` when the other side closed.
    pub async fn reply(&mut self) -> Option<Reply> {
        loop {
            if let Some(reply) = take_reply(&mut self.received) {
                reply.check(None);
                return Some(reply);
            }
            if !self.fill().await {
                assert!(
                    self.received.is_empty(),
                    "closed inside a reply: {:?}",
                    String::from_utf8_lossy(&self.received)
                );
                return None;
            }
        }
    }

    /// Every reply until the other side closes.
    pub async fn rest(&mut self) -> Vec<Reply> {
        let mut replies = Vec::new();
        while let Some(reply) = self.reply().await {
            replies.push(reply);
        }
        replies
    }

    /// Writes single bytes, slowly, until the other side closes, which has to come before the last of them; gives every
    /// reply.
    pub async fn drip(&mut self, bytes: &[u8]) -> Vec<Reply> {
        let mut bytes = bytes.chunks(1);
        loop {
            tokio::select! {
                reply = self.reply() => {
                    let mut replies = Vec::from_iter(reply);
                    replies.extend(self.rest().await);
                    return replies;
                }
                // The pace of the client: each byte comes well before any deadline of a single read.
                () = tokio::time::sleep(Duration::from_millis(50)) => {}
            }
            self.write(bytes.next().expect("a deadline for the whole, not for every read")).await;
        }
    }

    /// Waits until the other side closes, without a reply.
    pub async fn closed(&mut self) {
        assert!(self.reply().await.is_none(), "a reply where none was due");
    }

    async fn fill(&mut self) -> bool {
        let mut chunk = [0; 4096];
        let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut chunk)).await.expect("an answer in time");
        let length = read.unwrap_or(0);
        self.received.extend_from_slice(&chunk[..length]);
        length > 0
    }
}
