//! Splits a `postgres://` URL into its parts. Error messages never contain what may belong to a password.

/// The parts of a URL, as written.
#[derive(Debug)]
pub(super) struct UrlParts<'a> {
    /// Everything before the parameters.
    pub base: &'a str,
    /// Whether the URL names a user.
    pub has_user: bool,
    /// Whether the URL contains a password.
    pub has_password: bool,
    /// The hosts with their ports, such as `one:5432,two`.
    pub hosts: &'a str,
    /// The name of the database.
    pub name: &'a str,
    /// The parameters.
    pub query: &'a str,
}

impl<'a> UrlParts<'a> {
    /// # Errors
    /// As for [`super::PostgresUrl::parse`].
    pub(super) fn of(text: &'a str) -> Result<Self, String> {
        // Text after an `@` in a password would be read as the host, and hosts are shown.
        if text.matches('@').count() > 1 {
            return Err("has more than one @: in a user or a password it is written %40".to_owned());
        }
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        if query.contains('@') {
            return Err(
                "has an @ after a ?: in a user, a password or a parameter they are written %40 and %3F".to_owned()
            );
        }
        let place = base.split_once("://").map_or(base, |(_, place)| place);
        let (user, place) = place.split_once('@').map_or(("", place), |(user, place)| (user, place));
        let (hosts, name) = place.split_once('/').unwrap_or((place, ""));
        let (user, password) = user.split_once(':').unwrap_or((user, ""));
        Ok(Self { base, has_user: !user.is_empty(), has_password: !password.is_empty(), hosts, name, query })
    }

    /// Checks that each host has a name and a valid port.
    ///
    /// # Errors
    /// As for [`super::PostgresUrl::parse`].
    pub(super) fn check_hosts(&self) -> Result<(), String> {
        if self.hosts.is_empty() {
            return Ok(());
        }
        self.hosts.split(',').try_for_each(check_host)
    }
}

fn check_host(text: &str) -> Result<(), String> {
    let bracketed = text.strip_prefix('[').map(|rest| rest.split_once(']').ok_or("has a host with [ but without ]"));
    let (host, port) = match bracketed.transpose()? {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':').ok_or("has text after the ] of a host")?)),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err("has an empty host".to_owned());
    }
    match port {
        None | Some("") => Ok(()),
        Some(port) if port.parse::<u16>().is_ok_and(|port| port > 0) => Ok(()),
        Some(port) if port.contains(':') => {
            Err("has a host with several colons: an IPv6 address is written in brackets, as in [::1]:5432".to_owned())
        }
        Some(_) => Err(format!("has an invalid port for {host}: a port is 1 to 65535")),
    }
}
