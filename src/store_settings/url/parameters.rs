//! The parameters of a `postgres://` URL, by libpq's names.

use std::str::FromStr as _;

use tokio_postgres::Config;

use crate::names::did_you_mean;

/// `sslmode`, as in libpq.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostgresTls {
    /// Never.
    Off,
    /// Where the server offers it; its certificate is not checked.
    IfOffered,
    /// Always; the certificate is not checked unless `sslrootcert` is given.
    Required,
    /// Always; the certificate must be of a known authority and of the host.
    Verified,
}

/// Parameters that the driver reads, each with its allowed values.
const DRIVER_PARAMETERS: &[(&str, &str)] = &[
    ("application_name", "a name"),
    ("channel_binding", "disable, prefer or require"),
    ("connect_timeout", "whole seconds"),
    ("dbname", "the name of a database"),
    ("host", "hosts, or the directory of a socket"),
    ("hostaddr", "IP addresses"),
    ("keepalives", "0 or 1"),
    ("keepalives_count", "a whole number"),
    ("keepalives_idle", "whole seconds"),
    ("keepalives_interval", "whole seconds"),
    ("options", "options of a session"),
    ("password", "a password"),
    ("port", "1 to 65535"),
    ("sslnegotiation", "postgres or direct"),
    ("user", "a user"),
];

/// Parameters that are read here.
const OWN_PARAMETERS: [&str; 3] = ["sslmode", "sslrootcert", "target_session_attrs"];

/// Parsed parameters.
#[derive(Debug, Default)]
pub(super) struct Parameters<'a> {
    mode: Option<PostgresTls>,
    roots: Option<Roots>,
    /// Parameters of the driver: names and values as written.
    others: Vec<(&'a str, &'a str)>,
}

/// `sslrootcert`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Roots {
    /// The certificate authorities of the system.
    System,
    /// The certificate authorities in a file.
    File(String),
}

impl<'a> Parameters<'a> {
    /// # Errors
    /// As for [`super::PostgresUrl::parse`].
    pub(super) fn of(query: &'a str) -> Result<Self, String> {
        let (mut read, mut names) = (Self::default(), Vec::new());
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            if !is_known(name) {
                return Err(unknown(name, query));
            }
            read.add(name, value)?;
            if names.contains(&name) {
                return Err(format!("has {name} twice"));
            }
            names.push(name);
        }
        Ok(read)
    }

    fn add(&mut self, name: &'a str, value: &'a str) -> Result<(), String> {
        let known = DRIVER_PARAMETERS.iter().find(|(known, _)| *known == name);
        if value.is_empty() {
            return Err(format!("has {name} without a value"));
        }
        match (name, known) {
            ("sslmode", _) => self.mode = Some(parse_mode(value)?),
            ("sslrootcert", _) if value == "system" => self.roots = Some(Roots::System),
            ("sslrootcert", _) => {
                let path = decode(value).ok_or("has an sslrootcert that is no percent-encoded text")?;
                self.roots = Some(Roots::File(path));
            }
            // The driver would read them as one host.
            ("host", _) if value.contains(',') => {
                return Err(
                    "has several hosts in the parameter host: write them before the ?, as in one:5432,two".to_owned()
                );
            }
            ("keepalives_count", _) => self.others.push(("keepalives_retries", value)),
            (_, Some(_)) => self.others.push((name, value)),
            _ if value == "read-write" => {}
            _ => return Err(format!("has a {name} other than read-write, but the gateway writes")),
        }
        match known {
            Some((_, what)) if self.driven("").is_err() => {
                Err(format!("has {name} with an invalid value: it must be {what}"))
            }
            _ => Ok(()),
        }
    }

    /// Reports whether a parameter of the driver is given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.others.iter().any(|(known, _)| *known == name)
    }

    /// Parses `base` with these parameters as the driver does.
    ///
    /// # Errors
    /// The driver's error.
    pub(super) fn driven(&self, base: &str) -> Result<Config, tokio_postgres::Error> {
        let base = if base.is_empty() { "postgres://" } else { base };
        let others: Vec<_> = self.others.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Config::from_str(&format!("{base}?{}", others.join("&")))
    }

    /// Returns how to use TLS.
    ///
    /// # Errors
    /// `sslmode` and `sslrootcert` do not fit together.
    pub(super) fn tls(&self) -> Result<PostgresTls, String> {
        match (self.mode, &self.roots) {
            (None | Some(PostgresTls::Verified), Some(Roots::System)) => Ok(PostgresTls::Verified),
            (Some(_), Some(Roots::System)) => Err("has sslrootcert=system, which needs sslmode=verify-full".to_owned()),
            (None | Some(PostgresTls::Off | PostgresTls::IfOffered), Some(Roots::File(_))) => {
                Err("has sslrootcert, which needs sslmode=require, verify-ca or verify-full".to_owned())
            }
            (mode, _) => Ok(mode.unwrap_or(PostgresTls::IfOffered)),
        }
    }

    /// Returns the file that `sslrootcert` names.
    pub(super) fn roots(&self) -> Option<&str> {
        match &self.roots {
            Some(Roots::File(path)) => Some(path),
            Some(Roots::System) | None => None,
        }
    }
}

/// Parses `sslmode`. libpq's `verify-ca` does not check the host name; here it is checked.
fn parse_mode(text: &str) -> Result<PostgresTls, String> {
    match text {
        "disable" => Ok(PostgresTls::Off),
        "prefer" => Ok(PostgresTls::IfOffered),
        "require" => Ok(PostgresTls::Required),
        "verify-ca" | "verify-full" => Ok(PostgresTls::Verified),
        _ => Err("has an sslmode that is none of disable, prefer, require, verify-ca, verify-full".to_owned()),
    }
}

fn is_known(name: &str) -> bool {
    OWN_PARAMETERS.contains(&name) || DRIVER_PARAMETERS.iter().any(|(known, _)| *known == name)
}

/// Words the refusal of an unknown parameter. The name is shown only if it looks like one, and never if it could be the
/// rest of a password with an `&`.
fn unknown(name: &str, query: &str) -> String {
    let plain = name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if !plain || query.contains("password") {
        return "has an unknown parameter".to_owned();
    }
    let hint = did_you_mean(name, DRIVER_PARAMETERS.iter().map(|(known, _)| *known).chain(OWN_PARAMETERS));
    format!("has an unknown parameter: {name}{}", hint.map(|hint| format!(" ({hint})")).unwrap_or_default())
}

/// Decodes a percent-encoded text as the driver does; `None` if it is invalid.
fn decode(text: &str) -> Option<String> {
    let config = Config::from_str(&format!("postgres://?application_name={text}")).ok()?;
    config.get_application_name().map(str::to_owned)
}
