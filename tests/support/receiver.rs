//! A merchant's receiver that does what a test tells it to, byte by byte, and remembers what came. It runs on a thread of
//! its own, so that a test that waits for a process holds up no answer.

mod wire;

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use super::request::unix_now;

/// What the receiver does with a request.
#[derive(Debug, Clone)]
pub enum Play {
    /// Answers with this status.
    Say(u16),
    /// The same with more header lines, each ended by a line break.
    With(u16, String),
    /// Answers with these bytes.
    Bytes(Vec<u8>),
    /// Answers with these bytes, and closes.
    LastBytes(Vec<u8>),
    /// Answers with this status after a while.
    Late(u16, Duration),
    /// Closes.
    Cut,
    /// Begins to answer 200, and closes inside the head.
    CutInHead,
    /// Answers in no protocol.
    Garbage,
    /// Begins to answer 200, and goes on with the head byte by byte.
    Drip,
    /// Begins to answer 200, and the head never ends.
    EndlessHead,
    /// Answers with this status and a body that never ends.
    EndlessBody(u16),
    /// Answers with this status, and the body that was announced never comes.
    MissingBody(u16),
    /// Never answers, unless [`Receiver::let_go`] closes.
    Hang,
}

/// What the receiver does with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Speaks TLS and HTTP.
    Serve,
    /// Speaks HTTP without TLS.
    Plain,
    /// Accepts, and says nothing, unless [`Receiver::let_go`] closes.
    Mute,
    /// Accepts and closes.
    Close,
    /// Closes after the handshake.
    CloseInside,
    /// Shows a certificate of another name, by a CA that is trusted.
    OtherName,
    /// Shows a certificate by a CA that nobody trusts.
    OtherCa,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Received {
    /// When it was read whole.
    pub at: Instant,
    /// The same in seconds since the epoch.
    pub unix: u64,
    /// Which connection it came by.
    pub connection: usize,
    /// By HTTP/2.
    pub is_http2: bool,
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Lower-case names, in the order sent.
    pub headers: Vec<(String, String)>,
    /// The same names as sent.
    pub names: Vec<String>,
    pub body: Vec<u8>,
}

impl Received {
    /// Every value of a header.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    }

    /// The one value of a header.
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        let [value] = self.all(name)[..] else { panic!("not exactly one {name} in {self:?}") };
        value
    }

    /// The callback's id.
    #[track_caller]
    pub fn id(&self) -> &str {
        self.header("x-callback-id")
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

type Script = dyn Fn(&Received, usize) -> Play + Send + Sync;
type Conduct = dyn Fn(usize) -> Manner + Send + Sync;

/// Certificates that outlive a receiver.
pub struct Identity {
    directory: TempDir,
    own: TlsAcceptor,
    other_name: TlsAcceptor,
    other_ca: TlsAcceptor,
}

impl Identity {
    pub fn new(alpn: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (own, trusted) = certified("localhost", alpn);
        let (other_name, trusted_too) = certified("other.example", alpn);
        let (other_ca, _) = certified("localhost", alpn);
        std::fs::write(directory.path().join("ca.pem"), trusted + &trusted_too).unwrap();
        Self { directory, own, other_name, other_ca }
    }

    /// The CAs of its certificates, but for that of [`Manner::OtherCa`].
    pub fn ca(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }
}

/// Who shows a certificate of a name, and the certificate.
fn certified(name: &str, alpn: &[&str]) -> (TlsAcceptor, String) {
    let made = rcgen::generate_simple_self_signed([name.to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let chain = vec![CertificateDer::from(made.cert.der().to_vec())];
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    (TlsAcceptor::from(Arc::new(config)), made.cert.pem())
}

/// The receiver. It stops when it is dropped: its port refuses connections then.
pub struct Receiver {
    pub address: SocketAddr,
    identity: Arc<Identity>,
    state: Arc<State>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What connections share.
pub struct State {
    received: Mutex<Vec<Received>>,
    /// How many requests each target got.
    counts: Mutex<HashMap<String, usize>>,
    connections: AtomicUsize,
    let_go: watch::Sender<bool>,
    script: Box<Script>,
    conduct: Box<Conduct>,
}

impl State {
    /// Waits until those that hang are let go.
    pub async fn let_go(&self) {
        let _ = self.let_go.subscribe().wait_for(|go| *go).await;
    }

    /// Remembers a request and tells what to do with it, late if it is to be answered late.
    pub async fn play(&self, received: &Received) -> Play {
        let before = {
            let mut counts = self.counts.lock().unwrap();
            self.received.lock().unwrap().push(received.clone());
            let count = counts.entry(received.target.clone()).or_default();
            *count += 1;
            *count - 1
        };
        match (self.script)(received, before) {
            Play::Late(status, after) => {
                // A slow receiver: this time is what the gateway has to bear.
                tokio::time::sleep(after).await;
                Play::Say(status)
            }
            play => play,
        }
    }
}

impl Receiver {
    /// A receiver that answers 200 to everything.
    pub fn good() -> Self {
        Self::start(|_, _| Play::Say(200))
    }

    /// A receiver that plays by the request and how many came to the same target before.
    pub fn start(script: impl Fn(&Received, usize) -> Play + Send + Sync + 'static) -> Self {
        Self::with(|_| Manner::Serve, script)
    }

    /// The same, minding its connections: each by how many came before it.
    pub fn with(
        conduct: impl Fn(usize) -> Manner + Send + Sync + 'static,
        script: impl Fn(&Received, usize) -> Play + Send + Sync + 'static,
    ) -> Self {
        Self::on(0, &Arc::new(Identity::new(&["http/1.1"])), conduct, script)
    }

    /// The same on this port with these certificates.
    pub fn on(
        port: u16,
        identity: &Arc<Identity>,
        conduct: impl Fn(usize) -> Manner + Send + Sync + 'static,
        script: impl Fn(&Received, usize) -> Play + Send + Sync + 'static,
    ) -> Self {
        Self::at(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), identity, conduct, script)
    }

    /// The same at this address.
    pub fn at(
        address: SocketAddr,
        identity: &Arc<Identity>,
        conduct: impl Fn(usize) -> Manner + Send + Sync + 'static,
        script: impl Fn(&Received, usize) -> Play + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            received: Mutex::default(),
            counts: Mutex::default(),
            connections: AtomicUsize::default(),
            let_go: watch::Sender::new(false),
            script: Box::new(script),
            conduct: Box::new(conduct),
        });
        let (stop, stopped) = oneshot::channel();
        let work = serve(listener, identity.clone(), state.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! { () = work => {}, _ = stopped => {} }
            });
        });
        Self { address, identity: identity.clone(), state, stop: Some(stop), thread: Some(thread) }
    }

    /// The CAs to trust.
    pub fn ca(&self) -> PathBuf {
        self.identity.ca()
    }

    /// The address of a path here.
    pub fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address.port())
    }

    /// The same without TLS.
    pub fn plain_url(&self, path: &str) -> String {
        self.url(path).replacen("https", "http", 1)
    }

    /// Closes everything that hangs, now and later.
    pub fn let_go(&self) {
        self.state.let_go.send_replace(true);
    }

    /// Everything that came, in order.
    pub fn received(&self) -> Vec<Received> {
        self.state.received.lock().unwrap().clone()
    }

    /// What came to a target, in order.
    pub fn of(&self, target: &str) -> Vec<Received> {
        self.state.received.lock().unwrap().iter().filter(|received| received.target == target).cloned().collect()
    }

    /// How many requests came.
    pub fn count(&self) -> usize {
        self.state.received.lock().unwrap().len()
    }

    /// How many connections came, whatever became of them.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// Waits until a target got so many requests.
    pub async fn got(&self, target: &str, times: usize) -> Vec<Received> {
        let what = format!("{target} is called {times} times");
        super::eventually(&what, async || {
            let received = self.of(target);
            (received.len() >= times).then_some(received)
        })
        .await
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        // A script that panicked has said so in its own thread; the test must not pass over it.
        assert!(ended.is_none_or(|ended| ended.is_ok()) || std::thread::panicking(), "the receiver panicked");
    }
}

/// Bytes to and from a caller.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

async fn serve(listener: TcpListener, identity: Arc<Identity>, state: Arc<State>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((socket, _)) = accepted else { continue };
                let number = state.connections.fetch_add(1, Ordering::Relaxed);
                connections.spawn(connection(socket, number, identity.clone(), state.clone()));
            }
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended && error.is_panic() {
                    std::panic::resume_unwind(error.into_panic());
                }
            }
        }
    }
}

async fn connection(socket: TcpStream, number: usize, identity: Arc<Identity>, state: Arc<State>) {
    let _ = socket.set_nodelay(true);
    match (state.conduct)(number) {
        Manner::Close => {}
        Manner::Mute => tokio::select! { () = until_closed(socket) => {}, () = state.let_go() => {} },
        Manner::Plain => wire::http1(Box::new(socket), number, &state).await,
        Manner::CloseInside => drop(identity.own.accept(socket).await),
        Manner::OtherName => refused(&identity.other_name, socket).await,
        Manner::OtherCa => refused(&identity.other_ca, socket).await,
        Manner::Serve => {
            let Ok(stream) = identity.own.accept(socket).await else { return };
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                wire::http2(stream, number, state).await;
            } else {
                wire::http1(Box::new(stream), number, &state).await;
            }
        }
    }
}

/// Nothing may be said to somebody with this certificate.
async fn refused(acceptor: &TlsAcceptor, socket: TcpStream) {
    if let Ok(mut stream) = acceptor.accept(socket).await {
        let mut byte = [0];
        let read = tokio::io::AsyncReadExt::read(&mut stream, &mut byte).await;
        assert!(!matches!(read, Ok(1..)), "something was said to a stranger");
    }
}

async fn until_closed(mut socket: TcpStream) {
    let mut chunk = [0; 4096];
    while matches!(tokio::io::AsyncReadExt::read(&mut socket, &mut chunk).await, Ok(1..)) {}
}

/// A request that was read whole now.
pub fn received_now(connection: usize, is_http2: bool) -> Received {
    Received {
        at: Instant::now(),
        unix: unix_now(),
        connection,
        is_http2,
        method: String::new(),
        target: String::new(),
        headers: Vec::new(),
        names: Vec::new(),
        body: Vec::new(),
    }
}

/// The keys of `[callbacks]` that let a gateway call these receivers.
pub fn trusting(identities: &[&Path]) -> String {
    let list: Vec<_> = identities.iter().map(|path| format!("{:?}", path.to_str().unwrap())).collect();
    format!("trust = [{}]", list.join(", "))
}
