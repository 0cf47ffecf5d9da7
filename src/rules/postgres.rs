//! `store.url` of a PostgreSQL database (contract section 11).

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// How long a connection to a host may take. All hosts are asked at once.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// What was sent and not confirmed for so long is lost, and the connection with it.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(5);

/// Where a PostgreSQL database is, and how it is spoken to. `Debug` and `Display` show hosts and the database's name alone.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    /// All but TLS. It may hold a password.
    config: Config,
    tls: PostgresTls,
    roots: Option<PathBuf>,
}

/// `sslmode`, as libpq understands it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostgresTls {
    /// Never.
    Off,
    /// Where the server offers it; its certificate is not looked at.
    IfOffered,
    /// Always; the certificate is not looked at unless `sslrootcert` is given.
    Required,
    /// Always, and the certificate is of a known authority and of the host.
    Verified,
}

impl PostgresUrl {
    /// Reads a `postgres://` URL; `sslrootcert` is a path that `resolve` makes whole.
    ///
    /// # Errors
    /// What is wrong with it, in words that hold nothing of it.
    pub fn parse(text: &str, resolve: impl FnOnce(&str) -> PathBuf) -> Result<Self, String> {
        // What stands behind an `@` of a password would be taken for the host, and hosts are shown.
        if text.matches('@').count() > 1 {
            return Err("has more than one @: in a user or a password it is written %40".to_owned());
        }
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut tls, mut roots, mut others) = (None, None, Vec::new());
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslmode", mode)) => tls = Some(mode_of(mode)?),
                Some(("sslrootcert", path)) => roots = Some(path),
                _ => others.push(parameter),
            }
        }
        let rest = if others.is_empty() { base.to_owned() } else { format!("{base}?{}", others.join("&")) };
        let mut config = Config::from_str(&rest).map_err(|_| "is no PostgreSQL URL that is understood".to_owned())?;
        if config.get_hosts().is_empty() {
            return Err("names no host".to_owned());
        }
        if config.get_user().is_none() {
            return Err("names no user".to_owned());
        }
        let tls = tls.unwrap_or(PostgresTls::IfOffered);
        if roots.is_some() && matches!(tls, PostgresTls::Off | PostgresTls::IfOffered) {
            return Err("has sslrootcert, which needs sslmode=require, verify-ca or verify-full".to_owned());
        }
        config.ssl_mode(match tls {
            PostgresTls::Off => SslMode::Disable,
            PostgresTls::IfOffered => SslMode::Prefer,
            PostgresTls::Required | PostgresTls::Verified => SslMode::Require,
        });
        // A node that cannot write is no use: with several hosts, the one that can is looked for.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("paybridge");
        }
        config.tcp_user_timeout(TCP_USER_TIMEOUT);
        Ok(Self { config, tls, roots: roots.map(resolve) })
    }

    /// How to connect. It may hold a password.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// How to use TLS.
    #[must_use]
    pub const fn tls(&self) -> PostgresTls {
        self.tls
    }

    /// The authorities that the server's certificate must be of, PEM; `None`: the system's.
    #[must_use]
    pub fn roots(&self) -> Option<&Path> {
        self.roots.as_deref()
    }
}

/// libpq's `verify-ca` does not look at the host's name; here it is looked at.
fn mode_of(text: &str) -> Result<PostgresTls, String> {
    match text {
        "disable" => Ok(PostgresTls::Off),
        "prefer" => Ok(PostgresTls::IfOffered),
        "require" => Ok(PostgresTls::Required),
        "verify-ca" | "verify-full" => Ok(PostgresTls::Verified),
        _ => Err("has an sslmode that is none of disable, prefer, require, verify-ca, verify-full".to_owned()),
    }
}

/// A server, for people.
pub(crate) fn host_and_port(host: &Host, port: u16) -> String {
    match host {
        Host::Tcp(name) if name.contains(':') => format!("[{name}]:{port}"),
        Host::Tcp(name) => format!("{name}:{port}"),
        Host::Unix(directory) => format!("{}:{port}", directory.display()),
    }
}

/// `postgres://one:5432,two:5432/name`: for people.
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
    fn what_is_no_url_is_refused_without_its_words() {
        for (text, why) in [
            ("postgres://", "host"),
            ("postgres://host/db", "user"),
            ("postgres://u:TOPSECRET@h/db?sslmode=maybe", "sslmode"),
            ("postgres://u:TOPSECRET@h/db?sslrootcert=ca.pem", "sslrootcert"),
            ("postgres://u:TOPSECRET@h/db?sslmode=disable&sslrootcert=ca.pem", "sslrootcert"),
            ("postgres://u:p@TOPSECRET@h/db", "%40"),
            ("postgres://u:TOP@SECRET/TOPSECRET@h/db", "%40"),
            ("postgres://u:TOPSECRET@h:port/db", "understood"),
            ("postgres://u:TOPSECRET@h/db?unknown=1", "understood"),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(why) && !error.contains("TOPSECRET"), "{text}: {error}");
        }
    }
}
