//! The client: TLS 1.3, HTTP/1.1 keep-alive, prepared bytes, a check of every reply.
//!
//! It shares the machine with the measured server, so it does little: one thread, reused buffers, and of a reply it reads
//! only the status, the length and what the check needs. Session tickets are not used, and X25519 is the only key exchange,
//! since every server here supports it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long a load, or a handshake, may take before the benchmark fails.
const PATIENCE: Duration = Duration::from_mins(3);

/// The longest head of a reply, and the longest body.
const LONGEST_REPLY: usize = 64 * 1024;

/// A server's address and the CA to trust.
#[derive(Clone)]
pub struct Target {
    address: SocketAddr,
    config: Arc<ClientConfig>,
}

/// One TLS connection.
pub struct Connection {
    target: Target,
    stream: TlsStream<TcpStream>,
    received: Vec<u8>,
}

/// A reply.
#[derive(Debug, Clone, Copy)]
pub struct Reply<'a> {
    /// The status.
    pub status: u16,
    /// Status line and headers.
    pub head: &'a [u8],
    /// The whole body.
    pub body: &'a [u8],
}

impl Reply<'_> {
    /// Reports whether the server closes the connection after it.
    fn closes(&self) -> bool {
        self.head.split(|byte| *byte == b'\n').any(|line| line.trim_ascii().eq_ignore_ascii_case(b"connection: close"))
    }
}

/// Requests prepared before the measurement, one after the other in one buffer.
#[derive(Debug, Default)]
pub struct Requests {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Checks the reply to the request of this number.
pub type Check = dyn Fn(usize, &Reply<'_>) -> bool + Send + Sync;

/// The result of a load.
#[derive(Debug, Default)]
pub struct Loaded {
    /// From the first request to the last reply.
    pub elapsed: Duration,
    /// The latency of each request, sorted.
    pub latencies: Vec<Duration>,
}

impl Target {
    /// Returns a server at this address whose certificate for `localhost` is signed by a CA of the file.
    #[must_use]
    pub fn new(address: SocketAddr, ca: &Path) -> Self {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(ca).unwrap() {
            roots.add(certificate.unwrap()).unwrap();
        }
        let mut provider = aws_lc_rs::default_provider();
        provider.kx_groups = vec![aws_lc_rs::kx_group::X25519];
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = Resumption::disabled();
        Self { address, config: Arc::new(config) }
    }

    /// Opens a connection; `None` if it is refused or fails.
    pub async fn try_connect(&self) -> Option<Connection> {
        let socket = TcpStream::connect(self.address).await.ok()?;
        socket.set_nodelay(true).ok()?;
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(self.config.clone()).connect(name, socket).await.ok()?;
        Some(Connection { target: self.clone(), stream, received: Vec::with_capacity(4096) })
    }

    /// Opens `count` connections.
    ///
    /// # Panics
    /// One is refused.
    pub async fn connect(&self, count: usize) -> Vec<Connection> {
        let mut connections = Vec::with_capacity(count);
        for number in 0..count {
            let connection = tokio::time::timeout(PATIENCE, self.try_connect()).await.ok().flatten();
            connections.push(connection.unwrap_or_else(|| panic!("connection {number} to {} failed", self.address)));
        }
        connections
    }

    /// Makes full handshakes, one after the other; each connection is closed by both sides before the next one opens.
    ///
    /// # Panics
    /// One fails.
    pub async fn handshakes(&self, count: usize) {
        for _ in 0..count {
            let [mut connection] = self.connect(1).await.try_into().unwrap_or_else(|_| unreachable!());
            let _ = connection.stream.shutdown().await;
            let mut rest = [0; 1024];
            while connection.stream.read(&mut rest).await.is_ok_and(|length| length > 0) {}
        }
    }
}

impl Connection {
    /// Sends a request and reads its reply.
    ///
    /// # Panics
    /// The server closes the connection, or sends no valid reply.
    pub async fn exchange(&mut self, request: &[u8]) -> Reply<'_> {
        self.stream.write_all(request).await.expect("the connection accepts requests");
        self.stream.flush().await.unwrap();
        self.received.clear();
        let (status, head, end) = loop {
            let length = self.stream.read_buf(&mut self.received).await.unwrap_or(0);
            assert!(length > 0, "closed inside a reply: {:?}", String::from_utf8_lossy(&self.received));
            if let Some(whole) = whole_reply(&self.received) {
                break whole;
            }
        };
        Reply { status, head: &self.received[..head], body: &self.received[head..end] }
    }
}

/// Returns the status, the length of the head and that of the whole reply, once all of it has arrived.
fn whole_reply(received: &[u8]) -> Option<(u16, usize, usize)> {
    let head = received.windows(4).position(|end| end == b"\r\n\r\n").map(|end| end + 4);
    assert!(received.len() < LONGEST_REPLY, "a reply without an end: {:?}", String::from_utf8_lossy(received));
    let head = head?;
    let text = || String::from_utf8_lossy(&received[..head]);
    let status = received.get(9..12).and_then(number).unwrap_or_else(|| panic!("no HTTP reply: {}", text()));
    let length = received[..head].split(|byte| *byte == b'\n').find_map(content_length);
    let end = head + length.unwrap_or_else(|| panic!("no length: {}", text()));
    (received.len() >= end).then_some((u16::try_from(status).unwrap(), head, end))
}

fn content_length(line: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    let (name, value) = line.split_at_checked(NAME.len())?;
    if name.eq_ignore_ascii_case(NAME) { number(value.trim_ascii()) } else { None }
}

fn number(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0_usize, |sum, digit| {
        digit.is_ascii_digit().then_some(sum.checked_mul(10)?.checked_add(usize::from(digit - b'0'))?)
    })
}

impl Requests {
    /// Adds a request.
    pub fn push(&mut self, request: &[u8]) {
        self.bytes.extend_from_slice(request);
        self.ends.push(self.bytes.len());
    }

    /// Returns the number of requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Requests {
    fn from_iter<I: IntoIterator<Item = T>>(requests: I) -> Self {
        let mut all = Self::default();
        for request in requests {
            all.push(request.as_ref());
        }
        all
    }
}

/// Sends every request once: each connection sends the next remaining one as soon as it has its reply. A connection that the
/// server closes with a reply is replaced by a new one.
///
/// # Panics
/// A reply fails the check, or something takes minutes.
pub async fn load(connections: &mut Vec<Connection>, requests: Requests, check: &Arc<Check>) -> Loaded {
    let (requests, next) = (Arc::new(requests), Arc::new(AtomicUsize::new(0)));
    let share = requests.len() / connections.len().max(1) + 64;
    let mut callers = JoinSet::new();
    let started = Instant::now();
    for connection in connections.drain(..) {
        callers.spawn(caller(connection, requests.clone(), next.clone(), check.clone(), share));
    }
    let finished = tokio::time::timeout(PATIENCE, callers.join_all()).await.expect("replies in time");
    let mut loaded = Loaded { elapsed: started.elapsed(), latencies: Vec::with_capacity(requests.len()) };
    for (connection, latencies) in finished {
        connections.push(connection);
        loaded.latencies.extend(latencies);
    }
    loaded.latencies.sort();
    loaded
}

async fn caller(
    mut connection: Connection,
    requests: Arc<Requests>,
    next: Arc<AtomicUsize>,
    check: Arc<Check>,
    share: usize,
) -> (Connection, Vec<Duration>) {
    let mut latencies = Vec::with_capacity(share);
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(request) = requests.get(number) else { return (connection, latencies) };
        let started = Instant::now();
        let reply = connection.exchange(request).await;
        latencies.push(started.elapsed());
        assert!(
            check(number, &reply),
            "an unexpected reply to\n{}\n{}{}",
            String::from_utf8_lossy(request),
            String::from_utf8_lossy(reply.head),
            String::from_utf8_lossy(reply.body)
        );
        if reply.closes() {
            let mut fresh = connection.target.connect(1).await;
            connection = fresh.pop().unwrap();
        }
    }
}

/// Reports whether a text contains another one.
#[must_use]
pub fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Raises the limit of open files of this process and its children to the allowed maximum, and returns it.
pub fn raise_open_files() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
