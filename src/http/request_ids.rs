//! Identifiers that correlate a request with other systems' logs: `X-Request-Id` and `traceparent`.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::reply::REQUEST_ID;
use crate::clock::Random;
use crate::domain::push_hex;
use crate::v2::ForwardedHeaders;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Returns the id of a request, which its reply, the log and the requests that are made for it carry: the caller's, if it
/// sent exactly one, of 1 to 128 visible ASCII characters; otherwise a new one of 32 hexadecimal digits (contract
/// section 3).
pub(super) fn request_id_of(headers: &HeaderMap, random: &dyn Random) -> HeaderValue {
    if let Some(sent) = only(headers, &REQUEST_ID)
        && (1..=128).contains(&sent.len())
        && sent.as_bytes().iter().all(u8::is_ascii_graphic)
    {
        return sent.clone();
    }
    let mut bytes = [0_u8; 16];
    random.fill(&mut bytes);
    // Two of the 32 digits are letters, so that no run of decimal digits is as long as a card number.
    bytes[5] |= 0xc0;
    bytes[10] |= 0x0c;
    let mut digits = String::with_capacity(32);
    push_hex(&mut digits, &bytes);
    HeaderValue::try_from(digits).expect("digits are a header's value")
}

/// Returns the trace id of a valid W3C `traceparent`: 32 lowercase hexadecimal digits. Versions after 00 may add fields
/// after the four known ones.
pub(super) fn trace_id(headers: &HeaderMap) -> Option<&str> {
    let text = only(headers, &TRACEPARENT)?.to_str().ok()?;
    let mut fields = text.split('-');
    let (version, trace, parent, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let version_fits = version != "ff" && (version != "00" || fields.next().is_none());
    let shaped = hex(version, 2) && hex(trace, 32) && hex(parent, 16) && hex(flags, 2);
    let named = [trace, parent].iter().all(|id| id.bytes().any(|digit| digit != b'0'));
    (version_fits && shaped && named).then_some(trace)
}

/// Returns the headers that are forwarded with calls to a remote engine (contract section 13): the request's id and its
/// trace.
pub(super) fn forwarded_headers(request_id: &HeaderValue, headers: &HeaderMap) -> ForwardedHeaders {
    let traceparent = trace_id(headers).and(only(headers, &TRACEPARENT)).cloned();
    ForwardedHeaders { request_id: Some(request_id.clone()), traceparent }
}

fn hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the value of a header that was sent exactly once.
pub(super) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &HeaderName, values: &[&[u8]]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), HeaderValue::from_bytes(value).unwrap())).collect()
    }

    #[test]
    fn a_valid_traceparent_names_a_trace() {
        let trace = |values: &[&[u8]]| trace_id(&headers(&TRACEPARENT, values)).map(str::to_owned);
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(trace(&[b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"]).as_deref(), Some(id));
        assert_eq!(trace(&[b"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"]).as_deref(), Some(id));
        for invalid in [
            &b""[..],
            b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            b"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            b"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            b"00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            b"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            b"00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            b"0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(trace(&[invalid]), None, "{invalid:?}");
        }
        let good = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(trace(&[good, good]), None, "sent twice");
        let forwarded = |values: &[&[u8]]| {
            forwarded_headers(&HeaderValue::from_static("r"), &headers(&TRACEPARENT, values)).traceparent
        };
        assert_eq!(forwarded(&[good]).unwrap().as_bytes(), good);
        assert_eq!(forwarded(&[b"00-0"]), None, "an invalid traceparent is not forwarded");
    }
}
