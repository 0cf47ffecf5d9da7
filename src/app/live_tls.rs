//! What new connections are served by: limits and certificates, exchanged while connections come.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;

use crate::http::listener::ConnectionRules;
use crate::http::listener::tls::{TlsError, server_config};
use crate::rules::{Gateway, Limits};

/// The settings of new connections; open ones keep theirs.
pub struct LiveTls {
    current: Arc<ArcSwap<ConnectionRules>>,
    room: Room,
}

/// How many connections the process has room for, whatever the rules allow.
struct Room {
    connections: usize,
    told: AtomicBool,
}

impl Room {
    /// The limits as they can be kept. That they are lower than configured is said once.
    fn fit(&self, limits: &Limits) -> Limits {
        if limits.connections <= self.connections {
            return limits.clone();
        }
        if !self.told.swap(true, Ordering::Relaxed) {
            let (configured, connections) = (limits.connections, self.connections);
            tracing::warn!(configured, connections, "fewer connections than configured: raise the limit of open files");
        }
        Limits { connections: self.connections, ..limits.clone() }
    }
}

impl LiveTls {
    /// Reads the certificate that the rules name. There is room for so many connections, whatever the rules allow.
    ///
    /// # Errors
    /// It cannot be served.
    pub fn new(gateway: &Gateway, connections: usize) -> Result<Self, TlsError> {
        let tls = Some(Arc::new(server_config(&gateway.tls)?));
        let room = Room { connections, told: AtomicBool::new(false) };
        let first = ConnectionRules { limits: room.fit(&gateway.limits), tls };
        Ok(Self { current: Arc::new(ArcSwap::from_pointee(first)), room })
    }

    /// Asked by the listener for every connection.
    pub fn settings(&self) -> Arc<dyn Fn() -> Arc<ConnectionRules> + Send + Sync> {
        let current = Arc::clone(&self.current);
        Arc::new(move || current.load_full())
    }

    /// Takes over the limits and the certificate of a rule set. A pair that cannot be served keeps the old one; the
    /// limits change all the same.
    ///
    /// # Errors
    /// Why the certificate stayed as it was.
    pub fn refresh(&self, gateway: &Gateway) -> Result<(), TlsError> {
        let (tls, result) = match server_config(&gateway.tls) {
            Ok(config) => (Some(Arc::new(config)), Ok(())),
            Err(error) => (self.current.load().tls.clone(), Err(error)),
        };
        self.current.store(Arc::new(ConnectionRules { limits: self.room.fit(&gateway.limits), tls }));
        result
    }
}
