//! What new connections are served by: limits and certificates, exchanged while connections come.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::http::listener::ConnectionRules;
use crate::http::listener::tls::{TlsError, server_config};
use crate::rules::Gateway;

/// The settings of new connections; open ones keep theirs.
pub struct LiveTls(Arc<ArcSwap<ConnectionRules>>);

impl LiveTls {
    /// Reads the certificate that the rules name.
    ///
    /// # Errors
    /// It cannot be served.
    pub fn new(gateway: &Gateway) -> Result<Self, TlsError> {
        let first =
            ConnectionRules { limits: gateway.limits.clone(), tls: Some(Arc::new(server_config(&gateway.tls)?)) };
        Ok(Self(Arc::new(ArcSwap::from_pointee(first))))
    }

    /// Asked by the listener for every connection.
    pub fn settings(&self) -> Arc<dyn Fn() -> Arc<ConnectionRules> + Send + Sync> {
        let current = Arc::clone(&self.0);
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
            Err(error) => (self.0.load().tls.clone(), Err(error)),
        };
        self.0.store(Arc::new(ConnectionRules { limits: gateway.limits.clone(), tls }));
        result
    }
}
