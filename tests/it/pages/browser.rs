//! A browser that checks what must hold of every answer, and reads pages without knowing how they are built.

use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::pages::markup::Document;
use crate::support::client::PATIENCE;
use crate::support::http2::Http2;
use crate::support::reply::take_reply;
use crate::support::request::{KEYS, Protocol};
use crate::support::{CARD, Client, Gateway, Reply, Request};

/// What browsers send.
pub const ACCEPT: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";

/// A request as a browser makes it, from an address that no other request has.
pub fn request(method: &str, target: &str) -> Request {
    static VISITORS: AtomicU32 = AtomicU32::new(1);
    let [_, a, b, c] = VISITORS.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    from(&format!("198.{a}.{b}.{c}"), method, target)
}

/// The same from this address.
pub fn from(address: &str, method: &str, target: &str) -> Request {
    Request::new(method, target, "")
        .header("Accept", ACCEPT)
        .header("Accept-Language", "en")
        .header("X-Forwarded-For", address)
}

/// A form as a browser sends it.
pub fn form(target: &str, body: &str) -> Request {
    let mut request = request("POST", target).header("Content-Type", "application/x-www-form-urlencoded");
    request.body = body.into();
    request
}

/// Opens a link.
pub async fn open(gateway: &Gateway, target: &str) -> Reply {
    visit(gateway, Protocol::Http1, &request("GET", target)).await
}

/// Presses a button of the sandbox's page.
pub async fn press(gateway: &Gateway, target: &str, decision: &str) -> Reply {
    visit(gateway, Protocol::Http1, &form(target, &format!("decision={decision}"))).await
}

/// Sends a request and checks what must hold of every answer.
pub async fn visit(gateway: &Gateway, protocol: Protocol, request: &Request) -> Reply {
    let reply = exchange(&gateway.client(), protocol, request).await;
    check(request, &reply);
    reply
}

/// Where a redirect leads; it is a 303.
#[track_caller]
pub fn location(reply: &Reply) -> &str {
    assert_eq!(reply.status, 303, "{}", reply.text());
    reply.header("location")
}

/// The page of an answer with this status.
#[track_caller]
pub fn page(reply: &Reply, status: u16) -> Document {
    assert_eq!(reply.status, status, "{} {:?}", reply.text(), reply.headers);
    assert_eq!(reply.header("content-type"), "text/html; charset=utf-8");
    Document::parse(&reply.text())
}

/// Asserts that a page is the one of this state, by the title that the texts give it.
#[track_caller]
pub fn assert_state(document: &Document, state: &str) {
    let texts: toml::Table = toml::from_str(include_str!("../../../src/rules/pages/en.toml")).unwrap();
    let title = texts[state]["title"].as_str().unwrap();
    assert!(document.text().contains(title), "not the page of {state:?}: {}", document.text());
}

/// Sends a request and takes the answer as it comes.
pub async fn exchange(client: &Client, protocol: Protocol, request: &Request) -> Reply {
    match protocol {
        Protocol::Http2 => {
            let mut connection = Http2::connect(client).await;
            connection.exchange("localhost", request, false).await.expect("a reply")
        }
        Protocol::Http1 => exchange_http1(client, request).await,
    }
}

/// Over a connection that ends with the reply, so that whatever follows a reply to HEAD would be seen.
async fn exchange_http1(client: &Client, request: &Request) -> Reply {
    let mut stream = client.tls(&["http/1.1"]).await.expect("a TLS connection");
    let has_body = !request.body.is_empty() || request.method == "POST";
    let length = if has_body { format!("Content-Length: {}\r\n", request.body.len()) } else { String::new() };
    let mut bytes = request.head(&format!("{length}Connection: close\r\n"));
    bytes.extend_from_slice(&request.body);
    stream.write_all(&bytes).await.unwrap();
    let mut received = Vec::new();
    // Who closes without a word has said all that there is, too.
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut received)).await.expect("an answer in time");
    if request.method == "HEAD" { head_only(&received) } else { whole(received) }
}

#[track_caller]
fn whole(mut received: Vec<u8>) -> Reply {
    let reply = take_reply(&mut received).expect("a whole reply");
    assert!(received.is_empty(), "bytes after the reply: {}", String::from_utf8_lossy(&received));
    reply
}

/// A reply whose length announces a body that is not there.
#[track_caller]
fn head_only(received: &[u8]) -> Reply {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head) = parsed.parse(received).expect("an HTTP reply") else {
        panic!("no whole head: {}", String::from_utf8_lossy(received));
    };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let headers = parsed.headers.iter().map(|header| (header.name.to_owned(), text(header.value))).collect();
    Reply { status: parsed.code.unwrap(), headers, body: received[head..].to_vec() }
}

/// Asserts what must hold of every answer of a customer's page, redirects, refusals and errors for programs included.
#[track_caller]
pub fn check(request: &Request, reply: &Reply) {
    for (name, value) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
    ] {
        assert_eq!(reply.all(name), [value], "{name} of {request:?}: {reply:?}");
    }
    for name in ["set-cookie", "server", "x-powered-by", "via", "access-control-allow-origin", "etag", "last-modified"]
    {
        assert!(reply.all(name).is_empty(), "{name}: {reply:?}");
    }
    let id = reply.header("x-request-id");
    assert!((1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()), "{id:?}");
    let policy = Policy::of(reply);
    policy.assert_strict();
    check_secrecy(reply);
    let kind = reply.all("content-type").concat();
    match reply.status {
        303 => assert!(!reply.header("location").is_empty() && reply.body.is_empty(), "{reply:?}"),
        _ if kind.starts_with("application/json") && request.method != "HEAD" => {
            let stated = reply.json();
            let message = stated["error"]["message"].as_str().unwrap();
            assert_eq!(stated, serde_json::json!({ "error": { "code": reply.status, "message": message } }));
        }
        _ => {
            assert_eq!(kind, "text/html; charset=utf-8", "{reply:?}");
            policy.assert_fits_a_page();
            if request.method != "HEAD" {
                check_document(reply, &policy);
            }
        }
    }
}

#[track_caller]
fn check_secrecy(reply: &Reply) {
    let whole = format!("{}{:?}", reply.text(), reply.headers);
    let secrets = KEYS.iter().flat_map(|key| [key.v1, key.v2]).flatten();
    for secret in secrets.chain([CARD, crate::pages::SECRET]) {
        assert!(!whole.contains(secret), "{secret} is in {whole}");
    }
}

/// A page is in the language that its header names, its one stylesheet is the one that the policy allows, and nothing of it
/// comes from elsewhere or runs.
#[track_caller]
fn check_document(reply: &Reply, policy: &Policy) {
    let document = Document::parse(&reply.text());
    assert_eq!(document.only("html").attribute("lang"), Some(reply.header("content-language")));
    let style = document.only("style");
    let hash = format!("'sha256-{}'", STANDARD.encode(Sha256::digest(style.raw.as_bytes())));
    assert_eq!(policy.get("style-src"), Some(&hash[..]), "the one stylesheet and no other");
    for element in &document.elements {
        let name = &*element.name;
        assert!(!["script", "iframe", "object", "embed", "base", "frame"].contains(&name), "<{name}>");
        for (attribute, value) in &element.attributes {
            assert!(!attribute.starts_with("on") && attribute != "style", "<{name} {attribute}={value:?}>");
            let loads = attribute == "src" || attribute == "srcset" || (name == "link" && attribute == "href");
            assert!(!loads || value.starts_with("data:"), "<{name} {attribute}={value:?}> is loaded");
        }
    }
    // What the header says, the page says to whoever kept the page alone.
    let refreshes = document.all("meta").filter_map(|meta| {
        let is = meta.attribute("http-equiv").is_some_and(|what| what.eq_ignore_ascii_case("refresh"));
        meta.attribute("content").filter(|_| is)
    });
    let header = reply.all("refresh");
    assert_eq!(refreshes.collect::<Vec<_>>(), header, "the page and its header agree");
}

/// A Content-Security-Policy.
struct Policy(Vec<(String, String)>);

impl Policy {
    #[track_caller]
    fn of(reply: &Reply) -> Self {
        let directives =
            reply.header("content-security-policy").split(';').map(str::trim).filter(|text| !text.is_empty());
        let pairs = directives.map(|text| text.split_once(' ').unwrap_or((text, "")));
        Self(pairs.map(|(name, sources)| (name.to_ascii_lowercase(), sources.trim().to_owned())).collect())
    }

    /// A directive that stands once: browsers pass over a second one.
    #[track_caller]
    fn get(&self, name: &str) -> Option<&str> {
        let mut named = self.0.iter().filter(|(known, _)| known == name);
        let sources = named.next().map(|(_, sources)| &sources[..]);
        assert!(named.next().is_none(), "{name} stands twice");
        sources
    }

    #[track_caller]
    fn assert_strict(&self) {
        assert_eq!(self.get("default-src"), Some("'none'"));
        assert_eq!(self.get("frame-ancestors"), Some("'none'"));
        for (name, sources) in &self.0 {
            let known = ["default-src", "frame-ancestors", "style-src", "img-src", "form-action", "base-uri"];
            assert!(known.contains(&&name[..]), "{name} {sources}");
            assert!(
                !sources.contains("unsafe") && !sources.contains('*') && !sources.contains("http"),
                "{name} {sources}"
            );
        }
    }

    #[track_caller]
    fn assert_fits_a_page(&self) {
        assert_eq!(self.get("base-uri"), Some("'none'"));
        assert_eq!(self.get("form-action"), Some("'self'"));
    }
}
