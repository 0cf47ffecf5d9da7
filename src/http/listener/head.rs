//! Checks a request's head before hyper sees it: finds what hyper would repair, drop or answer with its own error
//! (contract section 3, "What hyper leaves to its user"); and follows the framing of its body, so that
//! [`HeadGuard`](super::head_guard::HeadGuard) knows where the next head begins. It is stricter than hyper's parser behind
//! it: framing that two parsers could read differently is an error here.

use std::mem::MaybeUninit;
use std::net::Ipv6Addr;

use http::uri::Scheme;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, header};
use memchr::memchr;

use super::shared::{HeadCheck, HeadError};
use crate::domain::wide;

/// The most header lines of a request. Below hyper's own bound, so that this one applies.
const MAX_HEADERS: usize = 96;

const BARE_LINE_END: &str = "the lines of a head must end in CRLF";
const HOST_ONCE: &str = "exactly one Host is required";
const HOST_MALFORMED: &str = "Host must be one host with an optional port";
const TARGET: &str = "the request target is malformed";

/// How many bytes of empty lines may precede a request.
const EMPTY_LINES: usize = 4 * 2;

/// Finds the end of a head as its bytes arrive, reading each byte once.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    start: usize,
    line_start: usize,
    scanned: usize,
}

/// The result of a [`Scanner`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scan {
    /// The head is not complete.
    Partial,
    /// The head ends before this position.
    Complete(usize),
    /// A line does not end in CRLF.
    BareLineEnd,
}

impl Scanner {
    /// Continues the scan through `input`, which starts where the last request ended.
    #[expect(clippy::indexing_slicing, reason = "both positions are within the scanned part, which only grows")]
    pub(super) fn scan(&mut self, input: &[u8]) -> Scan {
        while let Some(offset) = memchr(b'\n', &input[self.scanned..]) {
            let at = self.scanned + offset;
            self.scanned = at + 1;
            if !input[self.line_start..at].ends_with(b"\r") {
                return Scan::BareLineEnd;
            }
            if at == self.line_start + 1 {
                // Empty lines before a request are ignored (RFC 9112, section 2.2).
                if self.start < self.line_start || self.start == EMPTY_LINES {
                    return Scan::Complete(at + 1);
                }
                self.start = at + 1;
            }
            self.line_start = at + 1;
        }
        self.scanned = input.len();
        Scan::Partial
    }

    /// Returns the position of the head's first byte.
    pub(super) const fn start(&self) -> usize {
        self.start
    }
}

/// Checks a complete head. Returns the framing of its body.
pub(super) fn check(bytes: &[u8]) -> Result<Framing, HeadCheck> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(bytes, &mut headers) {
        Ok(httparse::Status::Complete(length)) if length == bytes.len() => {
            inspect(&request).map_err(|violation| HeadCheck::violating(HeadError::Malformed, violation))
        }
        Ok(_) => Err(HeadCheck::violating(HeadError::Malformed, BARE_LINE_END)),
        Err(httparse::Error::TooManyHeaders) => Err(too_large()),
        Err(error) => Err(HeadCheck::violating(HeadError::Malformed, message(error))),
    }
}

/// Reads what a refusal needs of a head: the method, the path, and the headers if all of them can be read.
pub(super) fn readable(bytes: &[u8]) -> Request<()> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut []);
    let _ = parsed.parse_with_uninit_headers(bytes, &mut headers);
    let mut request = Request::new(());
    if let Ok(method) = Method::from_bytes(parsed.method.unwrap_or(NO_METHOD).as_bytes()) {
        *request.method_mut() = method;
    }
    if let Some(target) = parsed.path.filter(|path| path.starts_with('/')).and_then(target_uri) {
        *request.uri_mut() = target;
    }
    for header in parsed.headers.iter() {
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(header.name.as_bytes()), HeaderValue::from_bytes(header.value))
        {
            request.headers_mut().append(name, value);
        }
    }
    request
}

/// Returns the violation of a head over the limits.
pub(super) const fn too_large() -> HeadCheck {
    HeadCheck::violating(HeadError::TooLarge, "the request's head is too large")
}

/// Returns the violation of a head that did not arrive in time.
pub(super) const fn too_slow() -> HeadCheck {
    HeadCheck::violating(HeadError::TooSlow, "the request's head did not arrive in time")
}

/// Returns the violation of a head with a line that does not end in CRLF.
pub(super) const fn bare_line_end() -> HeadCheck {
    HeadCheck::violating(HeadError::Malformed, BARE_LINE_END)
}

const fn message(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::HeaderName => "a header name is malformed",
        httparse::Error::HeaderValue => "a header value is malformed",
        httparse::Error::NewLine => BARE_LINE_END,
        httparse::Error::Version => "the HTTP version is not supported",
        httparse::Error::Status | httparse::Error::Token | httparse::Error::TooManyHeaders => {
            "the request line is malformed"
        }
    }
}

fn inspect(request: &httparse::Request<'_, '_>) -> Result<Framing, &'static str> {
    let (mut host, mut length, mut chunked) = (None, None, false);
    for header in request.headers.iter() {
        if header.name.eq_ignore_ascii_case("host") {
            if host.replace(header.value).is_some() {
                return Err(HOST_ONCE);
            }
        } else if header.name.eq_ignore_ascii_case("content-length") {
            let announced = content_length(header.value).ok_or("Content-Length must be one number")?;
            if length.replace(announced).is_some() {
                return Err("Content-Length must be given once");
            }
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            let alone = !chunked && request.version == Some(1);
            // Exactly this spelling: some parsers do not ignore case, and would then see no chunks.
            if !alone || header.value != b"chunked" {
                return Err("Transfer-Encoding must be chunked, in lower case, once");
            }
            chunked = true;
        }
    }
    let host = host.ok_or(HOST_ONCE)?;
    check_target(request.method.unwrap_or_default(), request.path.unwrap_or_default(), host)?;
    match (length, chunked) {
        (Some(_), true) => Err("Content-Length and Transfer-Encoding exclude each other"),
        (None, true) => Ok(Framing::chunked()),
        (Some(length), false) => Ok(Framing::Length(length)),
        (None, false) => Ok(Framing::NONE),
    }
}

/// Parses a `Content-Length`: digits only, and few enough for every parser to agree.
fn content_length(value: &[u8]) -> Option<u64> {
    let digits = (1..=18).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    if !digits {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

fn check_target(method: &str, target: &str, host: &[u8]) -> Result<(), &'static str> {
    if !is_host(host) {
        return Err(HOST_MALFORMED);
    }
    let uri = target_uri(target).ok_or(TARGET)?;
    if target.starts_with('/') || (target == "*" && method == "OPTIONS") {
        return Ok(());
    }
    if !matches!(uri.scheme_str(), Some("https" | "http")) {
        return Err(TARGET);
    }
    let same = uri.authority().is_some_and(|authority| authority.as_str().as_bytes().eq_ignore_ascii_case(host));
    if same { Ok(()) } else { Err("the request target and Host name different hosts") }
}

/// Parses a request target. The URI type takes text beyond ASCII and drops a fragment silently; neither is ever part of a
/// target.
fn target_uri(target: &str) -> Option<Uri> {
    let is_plain = target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    Uri::try_from(target).ok().filter(|_| is_plain)
}

/// The method in the log when none was received, or an invalid one.
const NO_METHOD: &str = "-";

/// Checks the head of an HTTP/2 request; h2 has checked its framing. `limit` bounds its size as HTTP/1 would write it,
/// in bytes.
pub(super) fn check_http2<B>(request: &Request<B>, limit: usize) -> HeadCheck {
    debug_assert_eq!(request.version(), Version::HTTP_2);
    let headers = request.headers();
    let written: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if headers.len() > MAX_HEADERS || written + target > limit {
        return too_large();
    }
    match inspect_http2(request) {
        Ok(()) => HeadCheck::default(),
        Err(violation) => HeadCheck::violating(HeadError::Malformed, violation),
    }
}

/// Checks the headers of an HTTP/2 request. Requires `:authority`: without it, h2 does not report the `:scheme`, which
/// may be empty or anything. Every client that speaks HTTP/2 sends an authority (RFC 9113, 8.3.1 requires `:authority`
/// unless a request of HTTP/1 is forwarded), so `Host` alone is not enough here. HTTP/2 is only spoken over TLS, so the
/// scheme is `https`.
fn inspect_http2<B>(request: &Request<B>) -> Result<(), &'static str> {
    let (uri, headers) = (request.uri(), request.headers());
    if headers.values().any(|value| has_edge_space(value.as_bytes())) {
        return Err("a header value begins or ends with a space");
    }
    if headers.get_all(header::CONTENT_LENGTH).iter().count() > 1 {
        return Err("Content-Length must be given once");
    }
    if request.method() == Method::CONNECT {
        return Err("CONNECT is not served here");
    }
    if uri.scheme() != Some(&Scheme::HTTPS) {
        return Err(":scheme must be https, and :authority is required");
    }
    let target = uri.path_and_query().map_or("", |target| target.as_str());
    let asterisk = target == "*" && request.method() == Method::OPTIONS;
    if !(target.starts_with('/') || asterisk) || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(TARGET);
    }
    check_authority(uri, headers)
}

fn check_authority(uri: &Uri, headers: &HeaderMap) -> Result<(), &'static str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (host, more) = (hosts.next().map(HeaderValue::as_bytes), hosts.next());
    let Some(authority) = uri.authority().map(|authority| authority.as_str().as_bytes()) else { return Err(HOST_ONCE) };
    if more.is_some() {
        return Err(HOST_ONCE);
    }
    if host.is_some_and(|host| !authority.eq_ignore_ascii_case(host)) {
        return Err(":authority and Host name different hosts");
    }
    if is_host(authority) { Ok(()) } else { Err(HOST_MALFORMED) }
}

fn has_edge_space(value: &[u8]) -> bool {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    is_space(value.first()) || is_space(value.last())
}

/// Reports whether a `Host` or an authority is one host with an optional port: a name, an IPv4 address or a bracketed
/// IPv6 address; no user information, no list, no spaces.
fn is_host(text: &[u8]) -> bool {
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

/// The most bytes of chunk extensions and trailers in one body, in all.
const OVERHEAD_LIMIT: usize = 16 * 1024;

/// The framing of one body, and how far it has been followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Framing {
    /// A body with a length: how many bytes are still to come.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked(Chunked),
}

/// The error of malformed chunked framing; nothing after it can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadFraming;

impl Framing {
    /// The framing of a request without a body.
    pub(super) const NONE: Self = Self::Length(0);

    /// Returns the framing of a chunked body, at its first byte.
    pub(super) const fn chunked() -> Self {
        Self::Chunked(Chunked { state: State::SizeStart, remaining: 0, overhead: 0 })
    }

    /// Returns how many of the next bytes of the connection belong to this body: all of them, unless it ends among
    /// them.
    pub(super) fn follow(&mut self, input: &[u8]) -> Result<usize, BadFraming> {
        match self {
            Self::Length(remaining) => {
                let taken = usize::try_from(*remaining).unwrap_or(usize::MAX).min(input.len());
                *remaining -= wide(taken);
                Ok(taken)
            }
            Self::Chunked(chunked) => chunked.follow(input),
        }
    }

    /// Reports whether the body has a length, so that hyper takes it in one piece.
    pub(super) const fn has_length(&self) -> bool {
        matches!(self, Self::Length(_))
    }

    /// Reports whether the body has ended.
    pub(super) const fn is_done(&self) -> bool {
        match self {
            Self::Length(remaining) => *remaining == 0,
            Self::Chunked(chunked) => matches!(chunked.state, State::Done),
        }
    }
}

/// The progress through a chunked body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunked {
    state: State,
    /// The chunk size read so far, then how much of the chunk's data is left.
    remaining: u64,
    overhead: usize,
}

/// What the next byte has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The first digit of a size.
    SizeStart,
    /// A digit, `;` or CR.
    Size,
    /// Part of an extension, or CR.
    Extension,
    /// The LF of a size line.
    SizeLf,
    /// A chunk's data.
    Data,
    /// The CR after the data.
    DataCr,
    /// The LF after the data.
    DataLf,
    /// The start of a trailer line, or the CR of the empty one.
    TrailerStart,
    /// Inside a trailer line.
    Trailer,
    /// The LF of a trailer line.
    TrailerLf,
    /// The LF of the empty line at the end.
    EndLf,
    /// None: the body has ended.
    Done,
}

impl Chunked {
    fn follow(&mut self, input: &[u8]) -> Result<usize, BadFraming> {
        let mut at = 0;
        while let Some(byte) = input.get(at)
            && self.state != State::Done
        {
            if self.state == State::Data {
                let taken = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(input.len() - at);
                self.remaining -= wide(taken);
                at += taken;
                if self.remaining == 0 {
                    self.state = State::DataCr;
                }
            } else {
                self.state = self.step(*byte)?;
                at += 1;
            }
        }
        Ok(at)
    }

    fn step(&mut self, byte: u8) -> Result<State, BadFraming> {
        match (self.state, byte) {
            (State::SizeStart, _) => {
                self.remaining = digit(byte)?;
                Ok(State::Size)
            }
            (State::Size | State::Extension, b'\r') => Ok(State::SizeLf),
            (State::Size, b';') => self.count_overhead(State::Extension),
            (State::Size, _) => {
                let shifted = self.remaining.checked_mul(16).ok_or(BadFraming)?;
                self.remaining = shifted | digit(byte)?;
                // Every further digit counts as overhead, so that leading zeros are bounded.
                self.count_overhead(State::Size)
            }
            (State::Extension, byte) if byte != b'\n' => self.count_overhead(State::Extension),
            (State::SizeLf, b'\n') if self.remaining == 0 => Ok(State::TrailerStart),
            (State::SizeLf, b'\n') => Ok(State::Data),
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => Ok(State::SizeStart),
            (State::TrailerStart, b'\r') => Ok(State::EndLf),
            (State::Trailer, b'\r') => Ok(State::TrailerLf),
            (State::TrailerStart | State::Trailer, byte) if byte != b'\n' => self.count_overhead(State::Trailer),
            (State::TrailerLf, b'\n') => Ok(State::TrailerStart),
            (State::EndLf, b'\n') => Ok(State::Done),
            _ => Err(BadFraming),
        }
    }

    fn count_overhead(&mut self, next: State) -> Result<State, BadFraming> {
        self.overhead += 1;
        if self.overhead > OVERHEAD_LIMIT { Err(BadFraming) } else { Ok(next) }
    }
}

fn digit(byte: u8) -> Result<u64, BadFraming> {
    char::from(byte).to_digit(16).map(u64::from).ok_or(BadFraming)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with_lines(lines: &str) -> String {
        format!("POST /a?b=c HTTP/1.1\r\nHost: localhost:8443\r\n{lines}\r\n")
    }

    #[test]
    fn a_head_ends_at_its_empty_line_however_it_arrives() {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET";
        let mut scanner = Scanner::default();
        for end in 0..26 {
            assert_eq!(scanner.scan(&head[..end]), Scan::Partial, "{end}");
        }
        assert_eq!(scanner.scan(head), Scan::Complete(27));
        for head in [
            "GET / HTTP/1.1\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\n",
            "\n",
        ] {
            assert_eq!(Scanner::default().scan(head.as_bytes()), Scan::BareLineEnd, "{head:?}");
        }
        for (head, start, result) in [
            ("\r\n\r\n\r\n\r\n", 8, Scan::Partial),
            ("\r\n\r\n\r\n\r\n\r\n", 8, Scan::Complete(10)),
            ("\r\n\r\nGET / HTTP/1.1\r\n\r\nGET", 4, Scan::Complete(22)),
        ] {
            let mut scanner = Scanner::default();
            assert_eq!((scanner.scan(head.as_bytes()), scanner.start()), (result, start), "{head:?}");
        }
    }

    #[test]
    fn framings() {
        for (lines, framing) in [
            ("", Framing::NONE),
            ("Content-Length: 0\r\n", Framing::NONE),
            ("content-length:  12 \r\n", Framing::Length(12)),
            ("Transfer-Encoding: chunked\r\n", Framing::chunked()),
            ("transfer-encoding:  chunked \r\n", Framing::chunked()),
        ] {
            assert_eq!(check(with_lines(lines).as_bytes()).unwrap(), framing, "{lines:?}");
        }
    }

    #[test]
    fn too_many_lines() {
        let lines = |count| with_lines(&"A: b\r\n".repeat(count));
        assert!(check(lines(MAX_HEADERS - 1).as_bytes()).is_ok());
        assert_eq!(check(lines(MAX_HEADERS).as_bytes()).unwrap_err(), too_large());
    }

    #[test]
    fn of_a_refused_head_is_read_what_its_reply_and_the_log_need() {
        let head = "POST /a?b HTTP/1.1\r\nX-Request-Id: r1\r\nHost: a\r\nHost: b\r\n\r\n";
        let request = readable(head.as_bytes());
        assert_eq!((request.method(), request.uri().path(), request.uri().query()), (&Method::POST, "/a", Some("b")));
        assert_eq!(request.headers()["x-request-id"], "r1");
        for nothing in ["", "G", "\0\0", "G\u{e9}T / HTTP/1.1\r\n"] {
            let request = readable(nothing.as_bytes());
            assert_eq!((request.method().as_str(), request.uri().path()), (NO_METHOD, "/"), "{nothing:?}");
        }
        for target in ["/\u{e9}", "/a#b", "a", "https://b/x"] {
            let request = readable(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
            assert_eq!((request.method(), request.uri().path()), (&Method::GET, "/"), "{target:?}");
        }
        assert_eq!(readable(b"POST /a HTTP/1.1\r\nX: y").headers().len(), 0);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_checked(bytes in prop::collection::vec(any::<u8>(), 0..40), place in 0_usize..60) {
            let mut head = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nX-Name: value\r\n\r\n".to_vec();
            let place = place.min(head.len());
            head.splice(place..place, bytes);
            let request = readable(&head);
            if check(&head).is_ok() {
                prop_assert!(request.headers().contains_key(header::HOST));
            }
        }
    }

    #[test]
    fn one_host_and_an_optional_port() {
        for text in ["localhost", "pay.example.com:8443", "127.0.0.1", "[::1]", "[2001:db8::1]:443", "a_b", "h:"] {
            assert!(is_host(text.as_bytes()), "{text}");
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
            assert!(!is_host(text.as_bytes()), "{text}");
        }
    }

    fn follow_all(mut framing: Framing, input: &[u8], step: usize) -> Result<(usize, bool), BadFraming> {
        let mut at = 0;
        while at < input.len() && !framing.is_done() {
            let end = (at + step).min(input.len());
            at += framing.follow(&input[at..end])?;
        }
        Ok((at, framing.is_done()))
    }

    #[test]
    fn bodies_end_where_their_framing_ends() {
        assert!(Framing::NONE.is_done());
        assert_eq!(follow_all(Framing::Length(3), b"abcGET", 6), Ok((3, true)));
        assert_eq!(follow_all(Framing::Length(9), b"abc", 1), Ok((3, false)));
        for step in 1..40 {
            let body = b"3\r\nabc\r\n00a;x=\"1\"\r\n0123456789\r\n0\r\nA: b\r\n\r\n";
            let mut input = body.to_vec();
            input.extend_from_slice(b"GET / HTTP/1.1\r\n");
            assert_eq!(follow_all(Framing::chunked(), &input, step), Ok((body.len(), true)));
        }
    }

    #[test]
    fn ambiguous_framing_is_refused() {
        for body in [
            "\r\n",
            "x\r\n",
            "3\nabc\r\n",
            "3\r\nabcd\r\n",
            "3\r\nabc\n0\r\n\r\n",
            "3 \r\nabc",
            " 3\r\nabc",
            "+3\r\nabc",
            "0x3\r\nabc",
            "-1\r\n",
            ";x\r\n",
            "3;x\nabc",
            "3;x\rabc",
            "3\r\rabc",
            "0\r\n\n",
            "0\r\nA: b\n\r\n",
            "10000000000000000\r\n",
        ] {
            assert_eq!(follow_all(Framing::chunked(), body.as_bytes(), 64), Err(BadFraming), "{body:?}");
        }
        let padded = format!("{}1\r\na", "0".repeat(OVERHEAD_LIMIT + 2));
        assert_eq!(follow_all(Framing::chunked(), padded.as_bytes(), 64), Err(BadFraming));
        let extension = format!("1;{}\r\na", "x".repeat(OVERHEAD_LIMIT + 2));
        assert_eq!(follow_all(Framing::chunked(), extension.as_bytes(), 64), Err(BadFraming));
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_end_at_the_same_place(input: Vec<u8>, step in 1_usize..50) {
            let whole = follow_all(Framing::chunked(), &input, input.len().max(1));
            prop_assert_eq!(follow_all(Framing::chunked(), &input, step), whole);
        }
    }
}
