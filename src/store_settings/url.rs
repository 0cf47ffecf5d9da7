//! Parses `store.url` (contract section 11).

mod parameters;
mod parts;
mod sqlite;

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

pub use self::parameters::PostgresTls;

use self::parameters::Parameters;
use self::parts::UrlParts;

/// How long sent data may stay unacknowledged before the connection counts as lost.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(5);

/// The default of the most connections of a process.
const DEFAULT_CONNECTIONS: usize = 16;

/// The location of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// A SQLite file, resolved.
    Sqlite(PathBuf),
    /// A PostgreSQL database.
    Postgres(Box<PostgresUrl>),
}

impl StoreUrl {
    /// Parses the URL of a store; `resolve` resolves its paths.
    ///
    /// # Errors
    /// What is wrong, as the end of a sentence that begins with the name of the setting. It contains no part that may
    /// be secret: the text may hold a password.
    pub fn parse(text: &str, resolve: impl FnOnce(&str) -> PathBuf) -> Result<Self, String> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return PostgresUrl::parse(text, resolve).map(|url| Self::Postgres(Box::new(url)));
        }
        match text.strip_prefix("sqlite:") {
            Some(path) => sqlite::check_path(path).map(|()| Self::Sqlite(resolve(path))),
            None => Err("must be \"sqlite:\" and the path of a file, or a \"postgres://\" URL".to_owned()),
        }
    }
}

/// The location of a PostgreSQL database and how to connect to it. `Debug` and `Display` show only hosts and the
/// database's name.
#[derive(Clone)]
pub struct PostgresUrl {
    /// Everything but TLS. It may hold a password.
    config: Config,
    tls: PostgresTls,
    roots: Option<PathBuf>,
    connections: usize,
}

/// The number of connections is not part of the URL, so it is not compared.
impl PartialEq for PostgresUrl {
    fn eq(&self, other: &Self) -> bool {
        (&self.config, self.tls, &self.roots) == (&other.config, other.tls, &other.roots)
    }
}

impl Eq for PostgresUrl {}

impl PostgresUrl {
    /// Parses a `postgres://` URL; `resolve` resolves the path of `sslrootcert`.
    ///
    /// # Errors
    /// What is wrong with the URL; the message contains no part that may be secret.
    pub fn parse(text: &str, resolve: impl FnOnce(&str) -> PathBuf) -> Result<Self, String> {
        let parts = UrlParts::of(text)?;
        let parameters = Parameters::of(parts.query)?;
        if !parts.has_user && !parameters.has("user") {
            return Err("names no user".to_owned());
        }
        parts.check_hosts()?;
        for (name, is_given) in [
            ("user", parts.has_user),
            ("password", parts.has_password),
            ("dbname", !parts.name.is_empty()),
            ("host", !parts.hosts.is_empty()),
            ("port", !parts.hosts.is_empty()),
        ] {
            if is_given && parameters.has(name) {
                return Err(format!("has a parameter {name}, and also gives it before the ?"));
            }
        }
        let parsed = parameters.driven(parts.base);
        let mut config = parsed.map_err(|_| "is not a valid PostgreSQL URL".to_owned())?;
        check_counts(&config)?;
        let tls = parameters.tls()?;
        config.ssl_mode(match tls {
            PostgresTls::Off => SslMode::Disable,
            PostgresTls::IfOffered => SslMode::Prefer,
            PostgresTls::Required | PostgresTls::Verified => SslMode::Require,
        });
        // Of several hosts, the one that accepts writes is wanted.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_application_name().is_none() {
            config.application_name("paybridge");
        }
        config.tcp_user_timeout(TCP_USER_TIMEOUT);
        Ok(Self { config, tls, roots: parameters.roots().map(resolve), connections: DEFAULT_CONNECTIONS })
    }

    /// Returns the URL with another limit of connections.
    #[must_use]
    pub const fn with_connections(mut self, most: usize) -> Self {
        self.connections = most;
        self
    }

    /// Returns the most connections of a process.
    #[must_use]
    pub const fn connections(&self) -> usize {
        self.connections
    }

    /// Returns the connection parameters except TLS. They may hold a password.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Returns how to use TLS.
    #[must_use]
    pub const fn tls(&self) -> PostgresTls {
        self.tls
    }

    /// Reports whether an attacker on the network could suppress TLS: with `prefer`, and a host that is not this
    /// machine.
    #[must_use]
    pub fn may_be_downgraded(&self) -> bool {
        let is_remote = |host: &Host| match host {
            Host::Tcp(name) => {
                let address = name.parse::<IpAddr>();
                !name.eq_ignore_ascii_case("localhost") && !address.is_ok_and(|address| address.is_loopback())
            }
            Host::Unix(_) => false,
        };
        // When `hostaddr` is given, it is what is connected to.
        let addresses = self.config.get_hostaddrs();
        let leaves_machine = match addresses {
            [] => self.config.get_hosts().iter().any(is_remote),
            addresses => !addresses.iter().all(IpAddr::is_loopback),
        };
        self.tls == PostgresTls::IfOffered && leaves_machine
    }

    /// Returns the PEM file of the authorities that may issue the server's certificate; `None`: the system's.
    #[must_use]
    pub fn roots(&self) -> Option<&Path> {
        self.roots.as_deref()
    }
}

/// Checks that there is a host, and that the numbers of ports and addresses fit the number of hosts.
fn check_counts(config: &Config) -> Result<(), String> {
    let (hosts, ports) = (config.get_hosts().len(), config.get_ports());
    if hosts == 0 {
        return Err("names no host".to_owned());
    }
    if ports.contains(&0) {
        return Err("has an invalid port: a port is 1 to 65535".to_owned());
    }
    if ports.len() > 1 && ports.len() != hosts {
        return Err(format!("names {hosts} hosts and {} ports", ports.len()));
    }
    match config.get_hostaddrs().len() {
        0 => Ok(()),
        addresses if addresses == hosts => Ok(()),
        addresses => Err(format!("names {hosts} hosts and {addresses} addresses in hostaddr")),
    }
}

/// Formats a server for display.
pub(crate) fn host_and_port(host: &Host, port: u16) -> String {
    match host {
        Host::Tcp(name) if name.contains(':') => format!("[{name}]:{port}"),
        Host::Tcp(name) => format!("{name}:{port}"),
        Host::Unix(directory) => format!("{}:{port}", directory.display()),
    }
}

/// Formats the URL for display, without credentials: `postgres://one:5432,two:5432/name`.
impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        for (number, host) in self.config.get_hosts().iter().enumerate() {
            let separator = if number == 0 { "" } else { "," };
            let ports = self.config.get_ports();
            let port = ports.get(number).or_else(|| ports.first()).copied().unwrap_or(5432);
            write!(f, "{separator}{}", host_and_port(host, port))?;
        }
        write!(f, "/{}", self.config.get_dbname().or(self.config.get_user()).unwrap_or_default())
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<PostgresUrl, String> {
        PostgresUrl::parse(text, |path| Path::new("/rules").join(path))
    }

    #[test]
    fn a_url_is_shown_without_its_password() {
        let url = parsed("postgres://pay:TOPSECRET@one,two:5433/bank?sslmode=verify-full&sslrootcert=ca.pem").unwrap();
        for shown in [url.to_string(), format!("{url:?}")] {
            assert_eq!(shown, "postgres://one:5432,two:5433/bank");
        }
        assert_eq!(url.config().get_password(), Some(&b"TOPSECRET"[..]));
        assert_eq!((url.tls(), url.roots()), (PostgresTls::Verified, Some(Path::new("/rules/ca.pem"))));
        assert_eq!(url.config().get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    }

    #[test]
    fn only_connections_within_the_machine_cannot_be_downgraded() {
        for (text, weak) in [
            ("postgres://u@h/db", true),
            ("postgres://u@h/db?sslmode=prefer", true),
            ("postgres://u@localhost,h/db", true),
            ("postgres://u@192.0.2.1/db", true),
            ("postgres://u@localhost,127.0.0.2,[::1]/db", false),
            ("postgres://u@%2Frun/db", false),
            ("postgres://u@h/db?sslmode=disable", false),
            ("postgres://u@h/db?sslmode=require", false),
        ] {
            assert_eq!(parsed(text).unwrap().may_be_downgraded(), weak, "{text}");
        }
    }

    #[test]
    fn parameters_of_libpq_are_supported() {
        let url = parsed("postgres:///bank?user=pay&host=%2Frun%2Fpg&port=5433").unwrap();
        assert_eq!(url.to_string(), "postgres:///run/pg:5433/bank");
        let url = parsed(
            "postgres://pay@h/bank?sslmode=verify-ca&sslrootcert=my%20ca.pem&target_session_attrs=read-write\
             &connect_timeout=2&keepalives=1&keepalives_idle=30&keepalives_interval=10&keepalives_count=3\
             &application_name=pay%20here&options=-cgeqo%3Doff&channel_binding=require&sslnegotiation=direct\
             &hostaddr=127.0.0.1",
        );
        let url = url.unwrap();
        assert_eq!((url.tls(), url.roots()), (PostgresTls::Verified, Some(Path::new("/rules/my ca.pem"))));
        assert_eq!(url.config().get_application_name(), Some("pay here"));
        assert_eq!(url.config().get_keepalives_retries(), Some(3));
        for system in ["sslrootcert=system", "sslmode=verify-full&sslrootcert=system", "sslmode=verify-full"] {
            let url = parsed(&format!("postgres://pay@h/bank?{system}")).unwrap();
            assert_eq!((url.tls(), url.roots()), (PostgresTls::Verified, None), "{system}");
        }
    }

    #[test]
    fn invalid_urls_are_rejected_without_showing_secrets() {
        for (text, why) in [
            ("postgres://", "no user"),
            ("postgres://u@", "no host"),
            ("postgres://host/db", "user"),
            ("postgres://u:TOPSECRET@h/db?sslmode=maybe", "sslmode"),
            ("postgres://u:TOPSECRET@h/db?sslrootcert=ca.pem", "sslrootcert"),
            ("postgres://u:TOPSECRET@h/db?sslmode=disable&sslrootcert=ca.pem", "sslrootcert"),
            ("postgres://u:p@TOPSECRET@h/db", "%40"),
            ("postgres://u:TOP@SECRET/TOPSECRET@h/db", "%40"),
            ("postgres://u:TOP?SECRET@h/db", "%3F"),
            ("postgres://u:TOPSECRET", "no user"),
            ("postgres://:TOPSECRET@h/db", "no user"),
            ("postgres://u:TOPSECRET@one,two:port/db", "an invalid port for two: a port is 1 to 65535"),
            ("postgres://u:TOPSECRET@h:0/db", "an invalid port for h"),
            ("postgres://u:TOPSECRET@h:65536/db", "an invalid port for h"),
            ("postgres://u:TOPSECRET@1::2/db", "in brackets"),
            ("postgres://u:TOPSECRET@[::1/db", "without ]"),
            ("postgres://u:TOPSECRET@one,,two/db", "an empty host"),
            ("postgres://u:TOPSECRET@h/db?unknown=1", "has an unknown parameter: unknown"),
            (
                "postgres://u:TOPSECRET@h/db?sslmod=require",
                "has an unknown parameter: sslmod (did you mean `sslmode`?)",
            ),
            ("postgres://u:TOPSECRET@h/db?tcp_user_timeout=9", "has an unknown parameter: tcp_user_timeout"),
            ("postgres://u:TOPSECRET@h/db?load_balance_hosts=random", "has an unknown parameter: load_balance_hosts"),
            ("postgres://u:TOPSECRET@h/db?Top-Secret=1", "an unknown parameter"),
            ("postgres://u@h/db?password=x&topsecret=1", "an unknown parameter"),
            ("postgres://u:p@h/db?password=TOPSECRET", "has a parameter password, and"),
            ("postgres://u:TOPSECRET@h/db?sslmode=disable&sslmode=require", "has sslmode twice"),
            ("postgres://u:TOPSECRET@h/db?sslmode=allow", "none of disable, prefer, require"),
            ("postgres://u:TOPSECRET@h/db?sslmode", "has sslmode without a value"),
            ("postgres://u:TOPSECRET@h/db?sslmode=require&sslrootcert=system", "needs sslmode=verify-full"),
            ("postgres://u:TOPSECRET@h/db?sslmode=require&sslrootcert=%ff", "sslrootcert that is no"),
            ("postgres://u:TOPSECRET@h/db?target_session_attrs=any", "other than read-write"),
            ("postgres://u:TOPSECRET@h/db?host=other", "has a parameter host, and"),
            ("postgres://u:TOPSECRET@h/db?port=1", "has a parameter port, and"),
            ("postgres://u:TOPSECRET@h/db?user=v", "has a parameter user, and"),
            ("postgres://u:TOPSECRET@h/db?dbname=v", "has a parameter dbname, and"),
            ("postgres://u:TOPSECRET@/db?host=a,b", "several hosts in the parameter host"),
            ("postgres://u:TOPSECRET@/db?host=a&port=1,2", "names 1 hosts and 2 ports"),
            ("postgres://u:TOPSECRET@/db?host=a&port=0", "an invalid port"),
            ("postgres://u:TOPSECRET@one,two/db?hostaddr=127.0.0.1", "names 2 hosts and 1 addresses"),
            (
                "postgres://u:TOPSECRET@h/db?connect_timeout=3s",
                "has connect_timeout with an invalid value: it must be whole seconds",
            ),
            ("postgres://u:TOPSECRET@h/db?channel_binding=on", "it must be disable, prefer or require"),
            ("postgres://u:TOPSECRET@h/db?application_name=%ff", "has application_name with an invalid value"),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(why) && !error.to_uppercase().contains("TOPSECRET"), "{text}: {error}");
        }
    }
}
