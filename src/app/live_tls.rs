//! The limits and the certificate for new connections, replaced while the process serves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use rustls::ServerConfig;

use crate::domain::UnixMillis;
use crate::http::admin::AdminTls;
use crate::http::listener::ConnectionRules;
use crate::http::listener::tls::{ServerTls, TlsError, server_tls};
use crate::rules::{GatewayRules, Limits};

/// The settings of new connections; open connections keep theirs.
pub struct LiveTls {
    settings: Arc<ArcSwap<ConnectionRules>>,
    /// The TLS configuration of the admin listener, with the same certificate.
    admin: AdminTls,
    served: ArcSwap<Served>,
    room: Room,
}

/// The most connections that the process can hold, even if the rules allow more.
struct Room {
    connections: usize,
    reported: AtomicBool,
}

impl Room {
    /// Returns the limits, lowered to what the process can hold. Logs once that they are lower than configured.
    fn fit(&self, limits: &Limits) -> Limits {
        if limits.connections <= self.connections {
            return limits.clone();
        }
        if !self.reported.swap(true, Ordering::Relaxed) {
            let (configured, connections) = (limits.connections, self.connections);
            tracing::warn!(
                configured,
                connections,
                "accepting fewer connections than configured: raise the limit of open files"
            );
        }
        Limits { connections: self.connections, ..limits.clone() }
    }
}

/// The certificate in use.
#[derive(Debug)]
struct Served {
    digest: [u8; 32],
    not_after: Option<UnixMillis>,
}

impl Served {
    const fn of(tls: &ServerTls) -> Self {
        Self { digest: tls.digest, not_after: tls.not_after }
    }
}

impl LiveTls {
    /// Loads the certificate that the rules name. At most `connections` are accepted, even if the rules allow more.
    ///
    /// # Errors
    /// Returns why the certificate cannot be used.
    pub fn new(gateway: &GatewayRules, connections: usize) -> Result<Self, TlsError> {
        let tls = server_tls(&gateway.tls)?;
        let served = ArcSwap::from_pointee(Served::of(&tls));
        let room = Room { connections, reported: AtomicBool::new(false) };
        let first = connection_rules(gateway, &room, Some(Arc::new(tls.config)));
        let settings = Arc::new(ArcSwap::from_pointee(first));
        let admin = Arc::new(ArcSwap::from_pointee(tls.admin));
        Ok(Self { settings, admin, served, room })
    }

    /// Returns the settings in force, which the listener reads for each new connection.
    pub fn settings(&self) -> Arc<ArcSwap<ConnectionRules>> {
        Arc::clone(&self.settings)
    }

    /// Returns the TLS configuration of the admin listener, which it reads for each new connection.
    pub fn admin(&self) -> AdminTls {
        Arc::clone(&self.admin)
    }

    /// Returns when the certificate in use expires, if that is known.
    pub fn not_after(&self) -> Option<UnixMillis> {
        self.served.load().not_after
    }

    /// Applies the limits and the certificate of a rule set, and returns whether the certificate is a new one. A pair
    /// that cannot be used leaves the old one in place, but the limits apply all the same. An unchanged pair keeps its
    /// session tickets. The caller sees to it that only one call runs at a time.
    ///
    /// # Errors
    /// Returns why the certificate was not replaced.
    pub fn refresh(&self, gateway: &GatewayRules) -> Result<bool, TlsError> {
        let mut tls = self.settings.load().tls.clone();
        let result = server_tls(&gateway.tls).map(|read| {
            let renewed = read.digest != self.served.load().digest;
            self.served.store(Arc::new(Served::of(&read)));
            if renewed {
                tls = Some(Arc::new(read.config));
                self.admin.store(Arc::new(read.admin));
            }
            renewed
        });
        self.settings.store(Arc::new(connection_rules(gateway, &self.room, tls)));
        result
    }
}

fn connection_rules(gateway: &GatewayRules, room: &Room, tls: Option<Arc<ServerConfig>>) -> ConnectionRules {
    ConnectionRules { limits: room.fit(&gateway.limits), tls, keeps_field_case: gateway.legacy.is_some() }
}
