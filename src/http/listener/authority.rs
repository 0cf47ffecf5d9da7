//! The syntax of `Host` and `:authority`.

use std::net::Ipv6Addr;

/// Reports whether a `Host` or an authority is one host with an optional port: a name, an IPv4 address or a bracketed
/// IPv6 address; no user information, no list, no spaces.
pub(super) fn is_valid(text: &[u8]) -> bool {
    let (host, after) = if let Some(rest) = text.strip_prefix(b"[") {
        let mut parts = rest.splitn(2, |byte| *byte == b']');
        let (Some(address), Some(after)) = (parts.next(), parts.next()) else { return false };
        (is_address(address), after)
    } else {
        let end = text.iter().position(|byte| !is_name_byte(*byte)).unwrap_or(text.len());
        let (name, after) = text.split_at(end);
        ((1..=255).contains(&name.len()), after)
    };
    host && (after.is_empty() || after.strip_prefix(b":").is_some_and(is_port))
}

fn is_address(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')
}

/// Reports whether `port` is valid. The grammar allows an empty port and leading zeros.
fn is_port(port: &[u8]) -> bool {
    let mut number = 0_u16;
    port.iter().all(|digit| {
        let longer = number.checked_mul(10).and_then(|tens| tens.checked_add(u16::from(digit.wrapping_sub(b'0'))));
        number = longer.unwrap_or_default();
        digit.is_ascii_digit() && longer.is_some()
    })
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
