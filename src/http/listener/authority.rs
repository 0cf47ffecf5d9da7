//! What `Host` and `:authority` may say.

use std::net::Ipv6Addr;

/// Whether a `Host` or an authority is one host with an optional port: a name, an IPv4 address or a bracketed IPv6
/// address; no user information, no list, no spaces.
pub(super) fn is_valid(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let (host, after) = if let Some(rest) = text.strip_prefix('[') {
        let Some((address, after)) = rest.split_once(']') else { return false };
        (address.parse::<Ipv6Addr>().is_ok(), after)
    } else {
        let (name, after) = text.split_at(text.find(':').unwrap_or(text.len()));
        (is_name(name), after)
    };
    host && (after.is_empty() || after.strip_prefix(':').is_some_and(is_port))
}

fn is_name(name: &str) -> bool {
    (1..=255).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'))
}

fn is_port(port: &str) -> bool {
    // The grammar allows an empty port.
    port.is_empty() || (port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_and_an_optional_port() {
        for text in ["localhost", "pay.example.com:8443", "127.0.0.1", "[::1]", "[2001:db8::1]:443", "a_b", "h:"] {
            assert!(is_valid(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            ":443",
            "a b",
            "user@host",
            "a,b",
            "a/b",
            "[::1",
            "[::1]443",
            "[x]",
            "host:x",
            "host:+1",
            "host:65536",
            "a:1:2",
            "h\u{e9}",
            "a?b",
            "a#b",
            "::1",
        ] {
            assert!(!is_valid(text.as_bytes()), "{text}");
        }
    }
}
