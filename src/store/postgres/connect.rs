//! Connections to the database: a pool, each connection with the session settings that the store needs, to the one of
//! several hosts that accepts writes.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::{
    Connect, Hook, HookError, Manager, ManagerConfig, Pool, QueueMode, RecyclingMethod, Runtime, Timeouts,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, Connection, Error, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::errors::{Refusals, describe, with_source};
use super::presence::{self, OldestFormat};
use crate::store_settings::host_and_port;
use crate::store_settings::{PostgresTls, PostgresUrl};
use crate::trust::{certificates, client_config};

/// How much longer the pool waits than all hosts may take, so that the error is about the hosts; how long it waits
/// otherwise, and how long an idle connection may take to prove that it works.
const WAIT: Duration = Duration::from_secs(1);

/// The settings of every session. An acknowledged operation is on disk, regardless of the server's default; where commits
/// also wait for a standby, they still do. Nothing waits for ever, and the server gives up before
/// [`LIMIT`](super::permits::LIMIT). A node that freezes releases its rows before others give up waiting for them; a
/// statement that waits for a row is sent again ([`errors`](super::errors)), and holds no connection in between. No
/// statement is worth JIT compilation: each is some steps into indexes, and the planner overestimates a scan of a small
/// table when scans are disabled.
const SESSION: &str = "\
    SET default_transaction_isolation = 'read committed'; \
    SET statement_timeout = '7s'; \
    SET lock_timeout = '1s'; \
    SET idle_in_transaction_session_timeout = '4s'; \
    SET enable_seqscan = off; \
    SET random_page_cost = 1.1; \
    SET jit = off; \
    SELECT set_config('synchronous_commit', 'on', false) \
      WHERE current_setting('synchronous_commit') IN ('off', 'local')";

/// Returns a pool that connects on demand, for as long as this release is not locked out of the store.
///
/// # Errors
/// `sslrootcert` cannot be read, in one line.
pub(super) fn pool(url: &PostgresUrl, oldest: Arc<OldestFormat>) -> Result<Pool, String> {
    let how = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = match tls(url)? {
        None => Manager::from_connect(url.config().clone(), HostSelector::new(url.config(), NoTls), how),
        Some(config) => {
            let tls = MakeRustlsConnect::new(config);
            Manager::from_connect(url.config().clone(), HostSelector::new(url.config(), tls), how)
        }
    };
    let prepared = Hook::async_fn(move |client, _| {
        let oldest = Arc::clone(&oldest);
        Box::pin(async move {
            let begun = async {
                client.batch_execute(SESSION).await.map_err(HookError::Backend)?;
                presence::enter(client, &oldest).await
            };
            let begun = timeout(HOST_TIMEOUT, begun).await;
            begun.unwrap_or_else(|_| Err(HookError::message("the database does not answer")))
        })
    });
    Pool::builder(manager)
        .max_size(url.connections())
        // The caches of one of the server's processes serve the next query too.
        .queue_mode(QueueMode::Lifo)
        .timeouts(Timeouts {
            // Its connections are given out elsewhere, and never more than there may be.
            wait: Some(WAIT),
            create: Some(all_hosts_timeout(url.config()) + WAIT),
            recycle: Some(WAIT),
        })
        .runtime(Runtime::Tokio1)
        .post_create(prepared)
        .build()
        .map_err(|error| error.to_string())
}

fn tls(url: &PostgresUrl) -> Result<Option<ClientConfig>, String> {
    let (system, named) = match (url.tls(), url.roots()) {
        (PostgresTls::Off, _) => return Ok(None),
        (PostgresTls::IfOffered | PostgresTls::Required, None) => return any_certificate().map(Some),
        (_, Some(path)) => (Vec::new(), roots_in(path)?),
        (PostgresTls::Verified, None) => (rustls_native_certs::load_native_certs().certs, Vec::new()),
    };
    client_config(&system, &named).map(|(config, _)| Some(config)).map_err(|error| error.to_string())
}

fn any_certificate() -> Result<ClientConfig, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let verifier = Arc::new(AnyCertificate(provider));
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Reads the certificates of `sslrootcert`.
fn roots_in(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = path.display();
    let text = std::fs::read(path).map_err(|error| format!("sslrootcert {shown}: {error}"))?;
    let roots = certificates(&text).map_err(|_| format!("sslrootcert {shown}: is not well-formed PEM"))?;
    if roots.is_empty() {
        return Err(format!("sslrootcert {shown}: holds no certificate"));
    }
    let mut store = RootCertStore::empty();
    for certificate in &roots {
        store.add(certificate.clone()).map_err(|error| format!("sslrootcert {shown}: {error}"))?;
    }
    Ok(roots)
}

/// The certificate verifier for `sslmode=prefer` and `require`: it accepts any certificate. They protect against
/// eavesdropping only.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// How long a host may take: TCP, TLS and login together.
pub(super) const HOST_TIMEOUT: Duration = Duration::from_secs(2);

/// How long all hosts together may take.
pub(super) fn all_hosts_timeout(config: &Config) -> Duration {
    let hosts = config.get_hosts().len().max(config.get_hostaddrs().len());
    HOST_TIMEOUT * u32::try_from(hosts).unwrap_or(u32::MAX)
}

/// Connects to the first host that accepts writes. The hosts are tried one after the other, the last good one first.
/// Each has a time limit for the whole attempt: a frozen machine accepts connections and never responds.
pub(super) struct HostSelector<T> {
    /// The configuration of each host.
    configs: Vec<Config>,
    /// The host to begin with. It advances with each failure, so that an attempt that was abandoned half way is not
    /// repeated from the start.
    first: AtomicUsize,
    tls: T,
}

impl<T> HostSelector<T> {
    pub(super) fn new(config: &Config, tls: T) -> Self {
        Self { configs: each(config), first: AtomicUsize::new(0), tls }
    }

    /// Returns the first connection that succeeds.
    async fn connected(&self) -> Result<(Client, Connection<Socket, T::Stream>), Error>
    where
        T: MakeTlsConnect<Socket> + Clone,
    {
        let count = self.configs.len();
        let begin = self.first.load(Ordering::Relaxed);
        let mut refused = Vec::new();
        for (number, config) in self.configs.iter().enumerate().cycle().skip(begin).take(count) {
            let error = match timeout(HOST_TIMEOUT, config.connect(self.tls.clone())).await {
                Ok(Ok(connected)) => {
                    self.first.store(number, Ordering::Relaxed);
                    return Ok(connected);
                }
                Ok(Err(error)) if count == 1 => return Err(error),
                Ok(Err(error)) => Some(error),
                Err(_) => None,
            };
            let next = (number + 1) % count;
            // Another attempt may have found a good host meanwhile.
            let _ = self.first.compare_exchange(number, next, Ordering::Relaxed, Ordering::Relaxed);
            refused.push((number, config, error));
        }
        refused.sort_by_key(|(number, ..)| *number);
        let refusals = refused.into_iter().map(|(_, config, error)| (place(config), error)).collect();
        Err(Refusals::new(refusals).into_error().await)
    }
}

impl<T> Connect for HostSelector<T>
where
    T: MakeTlsConnect<Socket> + Clone + Sync + Send + 'static,
    T::Stream: Sync + Send,
    T::TlsConnect: Sync + Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    fn connect(
        &self,
        _: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        Box::pin(async move {
            let (client, connection) = self.connected().await?;
            let driven = tokio::spawn(async move {
                if let Err(error) = connection.await {
                    let error = error.as_db_error().map_or_else(|| with_source(&error), describe);
                    tracing::debug!(error, "a connection to the database has ended");
                }
            });
            Ok((client, driven))
        })
    }
}

fn place(config: &Config) -> String {
    let port = config.get_ports().first().copied().unwrap_or(5432);
    config.get_hosts().first().map(|host| host_and_port(host, port)).unwrap_or_default()
}

/// Returns the configuration of each host on its own.
fn each(config: &Config) -> Vec<Config> {
    let (hosts, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let alone = |number: usize| {
        let mut alone = without_hosts(config);
        match hosts.get(number) {
            Some(Host::Tcp(name)) => _ = alone.host(name),
            // A Unix socket cannot be intercepted, and servers offer no TLS on it: as with libpq, `sslmode` applies to
            // the others.
            Some(Host::Unix(directory)) => _ = alone.host_path(directory).ssl_mode(SslMode::Disable),
            None => {}
        }
        if let Some(address) = addresses.get(number) {
            alone.hostaddr(*address);
        }
        if let Some(port) = ports.get(number).or_else(|| ports.first()) {
            alone.port(*port);
        }
        alone
    };
    (0..hosts.len().max(addresses.len())).map(alone).collect()
}

/// Returns a copy without hosts: `Config` has no way to remove one.
fn without_hosts(config: &Config) -> Config {
    let mut bare = Config::new();
    bare.ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding())
        .load_balance_hosts(config.get_load_balance_hosts());
    config.get_user().map(|user| bare.user(user));
    config.get_password().map(|password| bare.password(password));
    config.get_dbname().map(|name| bare.dbname(name));
    config.get_options().map(|options| bare.options(options));
    config.get_application_name().map(|name| bare.application_name(name));
    config.get_connect_timeout().map(|timeout| bare.connect_timeout(*timeout));
    config.get_tcp_user_timeout().map(|timeout| bare.tcp_user_timeout(*timeout));
    config.get_keepalives_interval().map(|interval| bare.keepalives_interval(interval));
    config.get_keepalives_retries().map(|retries| bare.keepalives_retries(retries));
    bare
}

#[cfg(test)]
mod tests {
    use std::str::FromStr as _;

    use super::*;

    #[test]
    fn each_host_keeps_the_connection_settings() {
        let rest = "/bank?sslmode=require&channel_binding=require&options=-cgeqo%3Doff&application_name=pay&connect_timeout=2\
                    &tcp_user_timeout=4&keepalives=0&keepalives_idle=30&keepalives_interval=10&keepalives_retries=3\
                    &target_session_attrs=read-write&load_balance_hosts=random&sslnegotiation=direct";
        let parsed = |hosts: &str| Config::from_str(&format!("postgres://u:hush@{hosts}{rest}")).unwrap();
        assert_eq!(each(&parsed("one:1,two:2")), [parsed("one:1"), parsed("two:2")]);
        assert_eq!(each(&parsed("one")), [parsed("one:5432")]);
        let mut socket = parsed("%2Frun:5432");
        assert_eq!(each(&parsed("%2Frun")), [socket.ssl_mode(SslMode::Disable).clone()]);
    }
}
