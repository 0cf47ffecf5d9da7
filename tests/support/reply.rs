//! A reply, and what must hold of every one.

use serde_json::{Value, json};

use super::request::{KEYS, Protocol, Request};

/// What came back.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// In the order received.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Reply {
    /// Every value of a header.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let named = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// The one value of a header.
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        let [value] = self.all(name)[..] else { panic!("not exactly one {name} in {self:?}") };
        value
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The error's sentence.
    #[track_caller]
    pub fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap_or_else(|| panic!("no message in {self:?}")).to_owned()
    }

    /// Asserts the status and gives the reply back.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{} {:?}", self.text(), self.headers);
        self
    }

    /// Asserts what the contract says of every reply, errors in the default shape.
    #[track_caller]
    pub fn check(&self, request: Option<&Request>) {
        self.check_but_for_shape(request);
        if self.status >= 400 {
            let (body, message) = (self.json(), self.message());
            assert_eq!(body, json!({ "error": { "code": self.status, "message": message } }), "error shape");
            assert!(!message.is_empty(), "a message that says nothing");
        }
    }

    /// The same, whatever shape a dialect gives its errors.
    #[track_caller]
    pub fn check_but_for_shape(&self, request: Option<&Request>) {
        self.check_request_id(request);
        let kind = self.header("content-type");
        assert!(kind == "application/json" || kind.starts_with("application/json;"), "content type {kind}");
        self.json();
        assert!(self.status >= 400 || self.status == 200, "{self:?}");
        let challenge = (self.status == 401).then_some("HMAC-SHA256 realm=\"paybridge\"");
        assert_eq!(self.all("www-authenticate"), Vec::from_iter(challenge), "{self:?}");
        self.check_secrecy(request);
    }

    #[track_caller]
    fn check_request_id(&self, request: Option<&Request>) {
        let id = self.header("x-request-id");
        assert!((1..=128).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic()), "request id {id:?}");
        let sent = request.and_then(|request| request.value("x-request-id"));
        let valid = sent.filter(|id| (1..=128).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic()));
        match (valid, sent) {
            (Some(valid), _) => assert_eq!(id, valid, "the caller's request id"),
            (None, Some(sent)) => assert_ne!(id, sent, "a request id that may not be used"),
            (None, None) => {}
        }
    }

    #[track_caller]
    fn check_secrecy(&self, request: Option<&Request>) {
        let mut whole = self.text();
        for (name, value) in &self.headers {
            whole.extend(["\n", name, ": ", value]);
        }
        let secrets = KEYS.iter().flat_map(|key| [key.v1, key.v2]).flatten();
        let signature = request.and_then(|request| request.value("x-signature")).filter(|text| text.len() >= 16);
        for secret in secrets.chain(signature).chain([super::CARD]) {
            assert!(!whole.contains(secret), "{secret} is in the reply {whole}");
        }
    }
}

/// Takes one reply off the front of what was received; `None` while it is not whole. Interim replies are passed over.
#[track_caller]
pub fn take_reply(received: &mut Vec<u8>) -> Option<Reply> {
    take_reply_to("", received)
}

/// Takes the reply to a request with this method.
#[track_caller]
pub fn take_reply_to(method: &str, received: &mut Vec<u8>) -> Option<Reply> {
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut parsed = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(head) = parsed.parse(received).expect("an HTTP reply") else { return None };
        let status = parsed.code.unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("header values are text");
        let headers: Vec<_> = parsed.headers.iter().map(|h| (h.name.to_owned(), text(h.value))).collect();
        if status == 100 {
            received.drain(..head);
            continue;
        }
        let mut reply = Reply { status, headers, body: Vec::new() };
        let is_without_body = method == "HEAD" || matches!(status, 204 | 304);
        let length: usize = if is_without_body { 0 } else { reply.header("content-length").parse().unwrap() };
        assert!(reply.all("transfer-encoding").is_empty(), "a reply framed twice");
        if received.len() < head + length {
            return None;
        }
        reply.body = received[head..head + length].to_vec();
        received.drain(..head + length);
        return Some(reply);
    }
}

/// Whether two replies differ in nothing that a caller could tell them apart by, request ids and dates aside.
#[track_caller]
pub fn assert_same(one: &Reply, other: &Reply) {
    assert_eq!(one.status, other.status);
    assert_eq!(one.text(), other.text());
    let names = |reply: &Reply| {
        let mut rest: Vec<_> =
            reply.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
        rest.retain(|(name, _)| name != "x-request-id" && name != "date");
        rest.sort();
        rest
    };
    assert_eq!(names(one), names(other));
}

/// The protocol's name, for messages.
pub const fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Http1 => "HTTP/1.1",
        Protocol::Http2 => "HTTP/2",
    }
}
