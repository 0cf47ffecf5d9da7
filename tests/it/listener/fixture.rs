//! A listener with a service that tells what it saw, and clients that say exactly what a test wants said.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use paybridge::clock::SystemClock;
use paybridge::domain::Quota;
use paybridge::http::listener::{ConnectionInfo, HeadError};
use paybridge::http::listener::{ConnectionRules, Handle, Inbound, Listener, ListenerSettings, Service, tls};
use paybridge::rules::{ClientRules, Limits, TlsRules};
use paybridge::telemetry::Metrics;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};
use tokio::sync::Semaphore;

/// Long enough that only a defect reaches it.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// A time-out that a test waits for.
pub const SHORT: Duration = Duration::from_millis(150);

/// The length of the reply to `/page`.
pub const PAGE: usize = 100 * 1024;

/// What the service saw: the requests' targets, in order.
#[derive(Clone)]
pub struct Probe {
    seen: Arc<Mutex<Vec<String>>>,
    gate: Arc<Semaphore>,
    finished: Arc<Mutex<usize>>,
}

impl Probe {
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// Lets one request to `/gate` or `/task` go on.
    pub fn open_gate(&self) {
        self.gate.add_permits(1);
    }

    /// How many tasks behind `/task` have ended.
    pub fn finished(&self) -> usize {
        *self.finished.lock().unwrap()
    }

    async fn pass(&self) {
        self.gate.acquire().await.unwrap().forget();
    }
}

impl Service for Probe {
    async fn call(
        &self,
        request: Request<Inbound>,
        ConnectionInfo { peer, head_check, connection }: ConnectionInfo,
    ) -> Response<Full<Bytes>> {
        if let Some(violation) = head_check.violation {
            let status = match head_check.fault {
                HeadError::Malformed => 400,
                HeadError::TooLarge => 431,
                HeadError::TooSlow => 408,
            };
            return reply(status, violation);
        }
        let path = request.uri().path().to_owned();
        self.seen.lock().unwrap().push(path.clone());
        if path == "/login" {
            assert!(connection.authenticate());
        }
        match path.as_str() {
            "/early" => return reply(413, "early"),
            "/big" => return reply(200, &"x".repeat(64 * 1024 * 1024)),
            "/peer" => return reply(200, &format!("{} {:?}", peer.address, peer.protocol)),
            "/page" => {
                let room = connection.room().reserve(PAGE).await.unwrap();
                self.seen.lock().unwrap().push("made".to_owned());
                let mut page = reply(200, &"x".repeat(PAGE));
                page.extensions_mut().insert(room);
                return page;
            }
            "/gate" => self.pass().await,
            "/task" => {
                let probe = self.clone();
                tokio::spawn(async move {
                    probe.pass().await;
                    *probe.finished.lock().unwrap() += 1;
                });
            }
            _ => {}
        }
        match request.into_body().collect().await {
            Ok(body) => reply(200, &format!("{path} {}", String::from_utf8_lossy(&body.to_bytes()))),
            Err(_) => reply(400, "broken body"),
        }
    }
}

fn reply(status: u16, body: &str) -> Response<Full<Bytes>> {
    Response::builder().status(status).body(Full::new(Bytes::from(body.to_owned()))).unwrap()
}

pub fn limits() -> Limits {
    let one = NonZeroU32::MIN;
    Limits {
        body: 64 * 1024,
        head: 16 * 1024,
        head_timeout: PATIENCE,
        body_timeout: PATIENCE,
        idle_timeout: PATIENCE,
        connections: 1000,
        unauthenticated_per_ip: Quota { per_second: one, burst: one },
        pages_per_ip: Quota { per_second: one, burst: one },
    }
}

/// What a test wants to be otherwise.
pub struct Setup {
    pub limits: Limits,
    pub clients: ClientRules,
    pub tls: Option<ServerConfig>,
}

impl Default for Setup {
    fn default() -> Self {
        let clients = ClientRules { proxy_protocol: false, trusted_proxies: Vec::new() };
        Self { limits: limits(), clients, tls: None }
    }
}

impl Setup {
    pub fn start(self) -> Server {
        let probe = Probe { seen: Arc::default(), gate: Arc::new(Semaphore::new(0)), finished: Arc::default() };
        let rules = ConnectionRules { limits: self.limits, tls: self.tls.map(Arc::new), keeps_field_case: false };
        let settings = ListenerSettings {
            rules: Arc::new(ArcSwap::from_pointee(rules)),
            clients: self.clients,
            metrics: Arc::new(Metrics::default()),
            clock: Arc::new(SystemClock),
            workers: NonZeroUsize::new(2).unwrap(),
            // Every connection rests between its requests. The tests of the whole gateway have the usual time.
            trim_idle_after: Duration::from_millis(1),
        };
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let handle = listener.serve(probe.clone(), settings).unwrap();
        Server { address: handle.addresses()[0], probe, handle }
    }
}

pub struct Server {
    pub address: SocketAddr,
    pub probe: Probe,
    pub handle: Handle,
}

impl Server {
    pub fn connect(&self) -> Client<TcpStream> {
        let socket = TcpStream::connect(self.address).unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        Client { stream: socket, buffer: Vec::new() }
    }

    pub fn connect_tls(&self, config: ClientConfig) -> Client<StreamOwned<ClientConnection, TcpStream>> {
        self.connect().upgrade(config)
    }
}

/// A client of bytes.
pub struct Client<S> {
    pub stream: S,
    buffer: Vec<u8>,
}

impl Client<TcpStream> {
    pub fn upgrade(self, config: ClientConfig) -> Client<StreamOwned<ClientConnection, TcpStream>> {
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        Client { stream: StreamOwned::new(connection, self.stream), buffer: Vec::new() }
    }

    /// Begins a handshake, and returns what is left of its first message.
    pub fn begin_upgrade(
        mut self,
        config: ClientConfig,
    ) -> (Client<StreamOwned<ClientConnection, TcpStream>>, Vec<u8>) {
        let name = ServerName::try_from("localhost").unwrap();
        let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut hello = Vec::new();
        connection.write_tls(&mut hello).unwrap();
        let rest = hello.split_off(5);
        self.send(hello);
        (Client { stream: StreamOwned::new(connection, self.stream), buffer: Vec::new() }, rest)
    }

    /// Says that nothing more will be sent.
    pub fn half_close(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }
}

/// A reply, read whole.
#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    pub closes: bool,
    pub body: String,
}

impl<S: Read + Write> Client<S> {
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.stream.write_all(bytes.as_ref()).unwrap();
        self.stream.flush().unwrap();
        self
    }

    /// Sends what the server may already have stopped to listen to.
    pub fn send_if_possible(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).and_then(|()| self.stream.flush())
    }

    /// Reads one reply with a Content-Length.
    pub fn reply(&mut self) -> Reply {
        self.try_reply().unwrap_or_else(|| panic!("no reply: {:?}", String::from_utf8_lossy(&self.buffer)))
    }

    /// Reads one reply with a Content-Length; `None`: the connection ends before its end.
    pub fn try_reply(&mut self) -> Option<Reply> {
        let end = loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            self.try_fill()?;
        };
        let head = String::from_utf8(self.buffer.drain(..end).collect()).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let line = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let length = line("content-length:").map_or(0, |length| length.parse().unwrap());
        while self.buffer.len() < length {
            self.try_fill()?;
        }
        let body = String::from_utf8(self.buffer.drain(..length).collect()).unwrap();
        Some(Reply { status, closes: line("connection:") == Some("close"), body })
    }

    /// Reads an interim reply.
    pub fn interim(&mut self) -> String {
        while !self.buffer.ends_with(b"\r\n\r\n") {
            assert!(self.fill(), "no interim reply");
        }
        String::from_utf8(std::mem::take(&mut self.buffer)).unwrap()
    }

    pub fn get(&mut self, path: &str) -> Reply {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).reply()
    }

    /// Nothing more comes, and the connection was closed in order.
    pub fn expect_end(&mut self) {
        assert!(!self.fill(), "unexpected: {:?}", String::from_utf8_lossy(&self.buffer));
        assert!(self.buffer.is_empty(), "unexpected: {:?}", String::from_utf8_lossy(&self.buffer));
    }

    /// Nothing more comes, however the connection ended.
    pub fn expect_cut(&mut self) {
        match self.stream.read(&mut [0; 1]) {
            Ok(0) => {}
            Ok(_) => panic!("the connection goes on"),
            Err(error) => assert!(!matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}"),
        }
    }

    fn fill(&mut self) -> bool {
        let mut chunk = [0; 4096];
        let length = self.stream.read(&mut chunk).unwrap();
        self.buffer.extend_from_slice(&chunk[..length]);
        length > 0
    }

    /// Reads on; `None`: the connection has ended, however.
    fn try_fill(&mut self) -> Option<()> {
        let mut chunk = [0; 4096];
        let length = self.stream.read(&mut chunk).ok().filter(|length| *length > 0)?;
        self.buffer.extend_from_slice(&chunk[..length]);
        Some(())
    }
}

/// A certificate authority that signs for servers and clients.
pub struct Authority {
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
    pem: String,
}

/// A certificate and its key, PEM.
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new() -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let pem = parameters.self_signed(&key).unwrap().pem();
        Self { issuer: rcgen::Issuer::new(parameters, key), pem }
    }

    pub fn sign(&self, usage: rcgen::ExtendedKeyUsagePurpose) -> Pair {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        parameters.extended_key_usages = vec![usage];
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap().pem();
        Pair { certificate, key: key.serialize_pem() }
    }

    /// A server's configuration through the files that an operator would have.
    pub fn server(&self, client_ca: Option<&Self>) -> ServerConfig {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let pair = self.sign(rcgen::ExtendedKeyUsagePurpose::ServerAuth);
        std::fs::write(path("server.pem"), pair.certificate).unwrap();
        std::fs::write(path("server.key"), pair.key).unwrap();
        let client_ca = client_ca.map(|authority| {
            std::fs::write(path("clients.pem"), &authority.pem).unwrap();
            path("clients.pem")
        });
        let rules = TlsRules { certificate: path("server.pem"), key: path("server.key"), generate: false, client_ca };
        tls::server_tls(&rules).unwrap().config
    }

    /// A client that trusts this authority.
    pub fn client(
        &self,
        versions: &[&'static rustls::SupportedProtocolVersion],
        alpn: &[&[u8]],
        pair: Option<&Pair>,
    ) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match pair {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![certificate], key).unwrap()
            }
        };
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
        config
    }
}

/// Polls until `condition` holds.
pub fn eventually(what: &str, condition: impl Fn() -> bool) {
    let started = tokio::time::Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
