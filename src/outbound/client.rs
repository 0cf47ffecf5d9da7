//! Builds pooled clients: their trusted roots, egress policy and limits.

use std::error::Error;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use tokio::sync::Semaphore;
use tower_service::Service;

use super::counted::Counted;
use super::egress::EgressPolicy;
use super::resolver::{Forbidden, Lookups, Resolver};
use crate::trust::client_config;

/// A pool of connections. Clones share it.
pub(super) type Client = hyper_util::client::legacy::Client<Connector, Full<Bytes>>;

/// How long an idle connection is kept: to hosts that the rules name, and to all others, of which there may be any
/// number.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
const IDLE_TIMEOUT_PUBLIC: Duration = Duration::from_secs(10);
/// How long a new connection waits for its permit.
const PERMIT_WAIT: Duration = Duration::from_secs(1);
/// How long establishing a connection may take, TLS included. A request that finds another connection leaves the one it
/// began to complete in the background, and a peer that never finishes the handshake would hold it for ever.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The most idle connections to a host.
const IDLE_CONNECTIONS: usize = 32;
/// The largest head of a response, in bytes.
const LARGEST_HEAD: u16 = 32 * 1024;
/// How long the peer of an HTTP/2 connection with open requests may be silent before it is pinged, and how long it then
/// has to answer. Otherwise every request would wait for a dead connection of the pool.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(4);

/// The options of all clients with one egress policy, and what they share.
#[derive(Clone)]
pub(super) struct ClientOptions {
    pub egress: EgressPolicy,
    pub lookups: Arc<Lookups>,
    /// Permits for open connections; `None`: unlimited, because the rules name the hosts.
    pub permits: Option<Arc<Semaphore>>,
}

/// The error when no connection permit is free.
#[derive(Debug, thiserror::Error)]
#[error("too many connections are open")]
pub(super) struct PoolExhausted;

/// Builds the connector of clients for plain HTTP, which trusts no certificate.
///
/// # Errors
/// As [`https`].
pub(super) fn plain(options: &ClientOptions) -> Result<Connector, rustls::Error> {
    https(&[], &[], options)
}

/// Builds the connector of clients for HTTPS that trust these certificates; those in `extra` are also trusted as a server's
/// own.
///
/// # Errors
/// The crypto provider has no usable protocol version.
pub(super) fn https(
    system: &[CertificateDer<'static>],
    extra: &[CertificateDer<'static>],
    options: &ClientOptions,
) -> Result<Connector, rustls::Error> {
    let (tls, unusable) = client_config(system, extra)?;
    if unusable > 0 {
        tracing::warn!(unusable, "some certificates that the rules trust cannot be used");
    }
    Ok(connector(tls, options.clone()))
}

/// Loads the system's trusted roots, on a blocking thread because it reads files.
pub(super) async fn system_roots() -> Arc<[CertificateDer<'static>]> {
    let loaded = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await.unwrap_or_default();
    for error in loaded.errors.iter().take(3) {
        tracing::warn!(%error, "some of the system's trusted certificates cannot be read");
    }
    if loaded.certs.is_empty() {
        tracing::warn!("the system has no trusted certificates: only those that the rules name are trusted");
    }
    loaded.certs.into()
}

fn connector(tls: ClientConfig, options: ClientOptions) -> Connector {
    let mut tcp = HttpConnector::new_with_resolver(Resolver::new(options.egress, Arc::clone(&options.lookups)));
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let inner =
        HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_all_versions().wrap_connector(tcp);
    Connector { options, inner }
}

/// Builds a client with connections of its own.
pub(super) fn build(connector: Connector) -> Client {
    let is_limited = connector.options.permits.is_some();
    let mut client = hyper_util::client::legacy::Client::builder(TokioExecutor::new());
    client
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(if is_limited { IDLE_TIMEOUT_PUBLIC } else { IDLE_TIMEOUT })
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .http1_max_buf_size(LARGEST_HEAD.into())
        .http1_title_case_headers(true)
        // Names of forwarded requests and of their replies keep their case.
        .http1_preserve_header_case(true)
        .http2_max_header_list_size(LARGEST_HEAD.into())
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .http2_keep_alive_timeout(KEEP_ALIVE_INTERVAL)
        // Retries only requests of which no byte was written, so that nothing can be sent twice.
        .retry_canceled_requests(true);
    client.build(connector)
}

/// Connects within [`CONNECT_TIMEOUT`], and only to addresses that the egress policy allows. The resolver checks the
/// addresses of names; addresses that are written in the URL do not pass through it, so they are checked here.
#[derive(Clone)]
pub(super) struct Connector {
    options: ClientOptions,
    inner: HttpsConnector<HttpConnector<Resolver>>,
}

type BoxError = Box<dyn Error + Send + Sync>;

impl Service<Uri> for Connector {
    type Response = Counted<<HttpsConnector<HttpConnector<Resolver>> as Service<Uri>>::Response>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        if let Some(host) = literal_address(&uri).filter(|address| !self.options.egress.allows(*address)) {
            return Box::pin(async move { Err(Forbidden(host.to_string()).into()) });
        }
        let (permits, connecting) = (self.options.permits.clone(), self.inner.call(uri));
        Box::pin(async move {
            let permit = match permits {
                Some(permits) => Some(
                    tokio::time::timeout(PERMIT_WAIT, permits.acquire_owned()).await.map_err(|_| PoolExhausted)??,
                ),
                None => None,
            };
            Ok(Counted::new(tokio::time::timeout(CONNECT_TIMEOUT, connecting).await??, permit))
        })
    }
}

/// Returns the host if it is written as an IP address.
fn literal_address(uri: &Uri) -> Option<IpAddr> {
    let host = uri.host()?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    bare.unwrap_or(host).parse().ok()
}
