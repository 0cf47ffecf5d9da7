//! Connecting to the one of several hosts that takes writes.
//!
//! They are tried one after the other, the last good one first. Each has its time for all of it: a machine that is frozen
//! takes connections and never says a word.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::Connect;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, Connection, Error, Socket};

use super::refusals::Refusals;
use super::words::{describe, with_source};
use crate::rules::host_and_port;

/// How long a host may take: TCP, TLS and login together.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long all hosts together may take.
pub(super) fn patience(config: &Config) -> Duration {
    let hosts = config.get_hosts().len().max(config.get_hostaddrs().len());
    PATIENCE * u32::try_from(hosts).unwrap_or(u32::MAX)
}

/// Connects to whichever host takes writes.
pub(super) struct HostSelector<T> {
    /// Each with one host.
    configs: Vec<Config>,
    /// The one to begin with. It moves on with each that fails, so that a try that is given up half way is not begun anew.
    first: AtomicUsize,
    tls: T,
}

impl<T> HostSelector<T> {
    pub(super) fn new(config: &Config, tls: T) -> Self {
        Self { configs: each(config), first: AtomicUsize::new(0), tls }
    }

    /// The first connection that comes to be.
    async fn connected(&self) -> Result<(Client, Connection<Socket, T::Stream>), Error>
    where
        T: MakeTlsConnect<Socket> + Clone,
    {
        let count = self.configs.len();
        let begin = self.first.load(Ordering::Relaxed);
        let mut refused = Vec::new();
        for (number, config) in self.configs.iter().enumerate().cycle().skip(begin).take(count) {
            let error = match timeout(PATIENCE, config.connect(self.tls.clone())).await {
                Ok(Ok(connected)) => {
                    self.first.store(number, Ordering::Relaxed);
                    return Ok(connected);
                }
                Ok(Err(error)) if count == 1 => return Err(error),
                Ok(Err(error)) => Some(error),
                Err(_) => None,
            };
            let next = (number + 1) % count;
            // Another try may have found a good one meanwhile.
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

/// The same for each host alone.
fn each(config: &Config) -> Vec<Config> {
    let (hosts, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let alone = |number: usize| {
        let mut alone = without_hosts(config);
        match hosts.get(number) {
            Some(Host::Tcp(name)) => _ = alone.host(name),
            // Nobody listens in between, and servers offer no TLS there: as with libpq, `sslmode` is of the others.
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

/// A configuration has no way to lose a host.
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
