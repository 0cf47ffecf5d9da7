//! What new connections are served by: limits and certificates, exchanged while connections come.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use crate::domain::UnixMillis;
use crate::http::listener::ConnectionRules;
use crate::http::listener::tls::{ServerTls, TlsError, server_tls};
use crate::rules::{FileMeta, GatewayRules, Limits, TlsRules};

/// The settings of new connections; open ones keep theirs.
pub struct LiveTls {
    settings: Arc<ArcSwap<ConnectionRules>>,
    served: ArcSwap<Served>,
    /// The files, as they were just before they were last read.
    files: Mutex<Vec<(PathBuf, Option<FileMeta>)>>,
    /// Held while files are read: whoever asks what serves does not wait for that.
    refreshing: Mutex<()>,
    room: Room,
}

/// How many connections the process has room for, whatever the rules allow.
struct Room {
    connections: usize,
    reported: AtomicBool,
}

impl Room {
    /// The limits as they can be kept. That they are lower than configured is said once.
    fn fit(&self, limits: &Limits) -> Limits {
        if limits.connections <= self.connections {
            return limits.clone();
        }
        if !self.reported.swap(true, Ordering::Relaxed) {
            let (configured, connections) = (limits.connections, self.connections);
            tracing::warn!(configured, connections, "fewer connections than configured: raise the limit of open files");
        }
        Limits { connections: self.connections, ..limits.clone() }
    }
}

/// The certificate that serves, and why a later one does not.
#[derive(Debug, Clone)]
struct Served {
    digest: [u8; 32],
    not_after: Option<UnixMillis>,
    error: Option<String>,
}

impl Served {
    const fn of(tls: &ServerTls) -> Self {
        Self { digest: tls.digest, not_after: tls.not_after, error: None }
    }
}

impl LiveTls {
    /// Reads the certificate that the rules name. There is room for so many connections, whatever the rules allow.
    ///
    /// # Errors
    /// It cannot be served.
    pub fn new(gateway: &GatewayRules, connections: usize) -> Result<Self, TlsError> {
        let files = Mutex::new(stamped(&gateway.tls));
        let tls = server_tls(&gateway.tls)?;
        let served = ArcSwap::from_pointee(Served::of(&tls));
        let room = Room { connections, reported: AtomicBool::new(false) };
        let first = ConnectionRules { limits: room.fit(&gateway.limits), tls: Some(Arc::new(tls.config)) };
        let settings = Arc::new(ArcSwap::from_pointee(first));
        Ok(Self { settings, served, files, refreshing: Mutex::default(), room })
    }

    /// Asked by the listener for every connection.
    pub fn settings(&self) -> Arc<dyn Fn() -> Arc<ConnectionRules> + Send + Sync> {
        let current = Arc::clone(&self.settings);
        Arc::new(move || current.load_full())
    }

    /// The last moment the certificate in use is good for, where that is known.
    pub fn not_after(&self) -> Option<UnixMillis> {
        self.served.load().not_after
    }

    /// Why the certificate on disk does not serve; `None` when it does.
    pub fn last_error(&self) -> Option<String> {
        self.served.load().error.clone()
    }

    /// Whether the files that the rules name are others than those that were last read, or than they were then.
    pub fn stale(&self, gateway: &GatewayRules) -> bool {
        *self.files.lock().unwrap_or_else(PoisonError::into_inner) != stamped(&gateway.tls)
    }

    /// Notes why the certificate on disk does not serve, until one does.
    pub fn refused(&self, error: &TlsError) {
        let _refreshing = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        let served = self.served.load_full();
        self.served.store(Arc::new(Served { error: Some(error.to_string()), ..(*served).clone() }));
    }

    /// Takes over the limits and the certificate of a rule set, and says whether the certificate is another one. A pair
    /// that cannot be served keeps the old one; the limits change all the same. The same pair keeps its session tickets.
    ///
    /// # Errors
    /// Why the certificate stayed as it was.
    pub fn refresh(&self, gateway: &GatewayRules) -> Result<bool, TlsError> {
        // Held to the end, so that of two calls at a time the later files win.
        let _refreshing = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        // Before anything is read: what changes from here on is found by its stamp.
        *self.files.lock().unwrap_or_else(PoisonError::into_inner) = stamped(&gateway.tls);
        let served = self.served.load_full();
        let mut tls = self.settings.load().tls.clone();
        let result = server_tls(&gateway.tls).map(|read| {
            let renewed = read.digest != served.digest;
            self.served.store(Arc::new(Served::of(&read)));
            if renewed {
                tls = Some(Arc::new(read.config));
            }
            renewed
        });
        self.settings.store(Arc::new(ConnectionRules { limits: self.room.fit(&gateway.limits), tls }));
        result
    }
}

/// What is read for new connections beside the rule files.
pub(super) fn files(tls: &TlsRules) -> Vec<PathBuf> {
    let pair = [&tls.certificate, &tls.key].map(Clone::clone);
    pair.into_iter().chain(tls.client_ca.clone()).collect()
}

fn stamped(tls: &TlsRules) -> Vec<(PathBuf, Option<FileMeta>)> {
    let stamped = |path: PathBuf| {
        let stamp = FileMeta::at(&path);
        (path, stamp)
    };
    files(tls).into_iter().map(stamped).collect()
}
