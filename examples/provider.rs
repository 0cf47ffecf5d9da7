//! A small payment provider for Paybridge, to be read beside `docs/providers.md`.
//!
//! ```text
//! PROVIDER_SECRET=hush cargo run --example provider -- --listen 127.0.0.1:9100 --ca certs/ca.pem
//! ```
//!
//! and in a shop's file:
//!
//! ```toml
//! [provider]
//! kind = "http"
//! url = "http://127.0.0.1:9100/operations"
//! secret = "hush"
//! ```
//!
//! It moves no money: the cents of an amount decide what becomes of an operation.
//!
//! | cents | deposit | withdrawal |
//! |---|---|---|
//! | .01 | FAILED | FAILED |
//! | .02 | preparation stopped, result unknown | nothing yet, and nothing later |
//! | .03 | instructions, no result | SUCCESS |
//! | .04 | nothing yet, after `--delay` a report of SUCCESS | the same |
//! | .05 | nothing yet, after `--delay` a report of FAILED | the same |
//! | else | a payment page with Pay and Decline, which report | SUCCESS |
//!
//! What a real one does better: it keeps what it knows on disk, so that it survives a crash, and its pages have addresses that
//! nobody can guess, since each shows what is for its customer alone. Everything else is here.

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Parser;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::net::{TcpListener, TcpStream};

#[derive(Parser)]
struct Options {
    /// Where the gateway reaches this provider.
    #[arg(long, default_value = "127.0.0.1:9100")]
    listen: SocketAddr,
    /// What the shop's file names as `secret`: it signs both ways.
    #[arg(long, env = "PROVIDER_SECRET", hide_env_values = true)]
    secret: String,
    /// The certificate that the gateway's own was signed with.
    #[arg(long, default_value = "certs/ca.pem")]
    ca: PathBuf,
    /// How many milliseconds pass before a result is reported.
    #[arg(long, default_value_t = 1000)]
    delay: u64,
}

/// What the gateway sends, as far as this provider cares. Members that are not known are passed over: more may come.
#[derive(Clone, Deserialize)]
struct Operation {
    transaction_id: String,
    direction: Direction,
    /// A string with two decimals. Never read money as a binary float.
    amount: String,
    currency: String,
    events_url: String,
    /// Where a deposit's customer goes back, if the shop wants them back: signed, and used as it came.
    return_url: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Direction {
    Payin,
    Payout,
}

/// What this provider knows of an operation.
struct Known {
    operation: Operation,
    /// What it answers now. Once that is a result it never changes.
    answer: Value,
}

struct Provider {
    secret: String,
    address: SocketAddr,
    delay: Duration,
    known: Mutex<HashMap<String, Known>>,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let listener = TcpListener::bind(options.listen).await?;
    let provider = Arc::new(Provider {
        secret: options.secret,
        address: listener.local_addr()?,
        delay: Duration::from_millis(options.delay),
        known: Mutex::default(),
        client: client(&options.ca)?,
    });
    writeln!(std::io::stdout(), "listening on http://{}/operations", provider.address)?;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(serve(Arc::clone(&provider), stream))),
            // Such as too many open files: it passes.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn serve(provider: Arc<Provider>, stream: TcpStream) {
    let service = service_fn(|request| {
        let provider = Arc::clone(&provider);
        async move { Ok::<_, Infallible>(provider.handle(request).await) }
    });
    // A connection that breaks off is the other side's affair: it asks again.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

type Reply = Response<Full<Bytes>>;

impl Provider {
    async fn handle(self: &Arc<Self>, request: Request<Incoming>) -> Reply {
        let (head, body) = request.into_parts();
        let Ok(body) = Limited::new(body, 256 * 1024).collect().await else {
            return text(StatusCode::BAD_REQUEST, "the body is too long, or broke off");
        };
        let path: Vec<_> = head.uri.path().trim_matches('/').split('/').collect();
        match (&head.method, &path[..]) {
            (&Method::POST, ["operations"]) => self.answer(&head.headers, &body.to_bytes()),
            (&Method::GET, ["pay", id]) => self.page(id),
            (&Method::POST, ["pay", id, choice @ ("SUCCESS" | "FAILED")]) => self.chosen(id, choice),
            _ => text(StatusCode::NOT_FOUND, "not found"),
        }
    }

    /// The gateway asks about an operation, for the first time or again.
    fn answer(self: &Arc<Self>, headers: &HeaderMap, body: &Bytes) -> Reply {
        // Before anything of the body is believed.
        if !self.is_signed(headers, body) {
            return text(StatusCode::UNAUTHORIZED, "wrong signature");
        }
        let Ok(operation) = serde_json::from_slice::<Operation>(body) else {
            return text(StatusCode::BAD_REQUEST, "not an operation");
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // The gateway asks again when it did not get, or could not keep, an answer. The same transaction_id is the same
        // operation: whatever was done for it is not done twice.
        if let Some(known) = known.get(&operation.transaction_id) {
            return reply(&known.answer);
        }
        // Every answer names its operation: the gateway believes none that could be another one's.
        let mut answer = self.begin(&operation);
        answer["transaction_id"] = operation.transaction_id.clone().into();
        let answered = reply(&answer);
        known.insert(operation.transaction_id.clone(), Known { operation, answer });
        answered
    }

    /// Begins a new operation and gives the first answer.
    fn begin(self: &Arc<Self>, operation: &Operation) -> Value {
        let cents = operation.amount.rsplit('.').next().unwrap_or_default();
        match (cents, operation.direction) {
            ("01", _) => json!({ "status": "FAILED" }),
            ("02", Direction::Payin) => json!({ "status": "PENDING", "preparation": "stopped" }),
            ("02", Direction::Payout) => json!({ "status": "PENDING" }),
            ("03", Direction::Payin) => json!({ "status": "PENDING", "instructions": instructions(operation) }),
            ("04", _) => self.later(operation, "SUCCESS"),
            ("05", _) => self.later(operation, "FAILED"),
            (_, Direction::Payin) => {
                let url = format!("http://{}/pay/{}", self.address, operation.transaction_id);
                json!({ "status": "PENDING", "page": { "url": url } })
            }
            (_, Direction::Payout) => json!({ "status": "SUCCESS" }),
        }
    }

    /// Nothing yet; the result is reported when it is there.
    fn later(self: &Arc<Self>, operation: &Operation, status: &'static str) -> Value {
        let (provider, id) = (Arc::clone(self), operation.transaction_id.clone());
        tokio::spawn(async move {
            tokio::time::sleep(provider.delay).await;
            provider.finish(&id, status);
        });
        json!({ "status": "PENDING" })
    }

    /// Keeps a result, once, and reports it.
    fn finish(self: &Arc<Self>, id: &str, status: &str) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = known.get_mut(id).filter(|known| known.answer["status"] == "PENDING") else { return };
        known.answer = json!({ "transaction_id": id, "status": status });
        if status == "SUCCESS" && known.operation.direction == Direction::Payin {
            known.answer["payer_account"] = "4111111111111111".into();
        }
        tokio::spawn(Arc::clone(self).report(known.operation.events_url.clone(), known.answer.to_string()));
    }

    /// Reports until it is taken. A report may be made any number of times.
    async fn report(self: Arc<Self>, url: String, body: String) {
        let mut wait = Duration::from_millis(200);
        // 200 is taken. 400, 404 and 409 will not change: a contradiction, say, is a matter for people.
        while !matches!(self.report_once(&url, &body).await, Some(200 | 400 | 404 | 409)) {
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(Duration::from_mins(1));
        }
    }

    /// The status of the reply, if there was one.
    async fn report_once(&self, url: &str, body: &str) -> Option<u16> {
        let request = Request::post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("X-Signature", hex(&self.mac(body.as_bytes()).finalize().into_bytes()))
            .body(Full::from(body.to_owned()))
            .ok()?;
        let reply = tokio::time::timeout(Duration::from_secs(10), self.client.request(request)).await;
        Some(reply.ok()?.ok()?.status().as_u16())
    }

    /// What the customer sees.
    fn page(&self, id: &str) -> Reply {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Known { operation, answer }) = known.get(id) else {
            return text(StatusCode::NOT_FOUND, "no such payment");
        };
        // Both come from the gateway, which lets nothing but digits, a point and letters pass.
        let amount = format!("{} {}", operation.amount, operation.currency);
        let below = if answer["status"] == "PENDING" {
            ["SUCCESS", "FAILED"].map(|choice| form(id, choice)).concat()
        } else {
            "<p>This payment is over.</p>".to_owned()
        };
        // That a customer follows it says nothing of the payment.
        let back = operation.return_url.as_deref().map_or_else(String::new, back);
        html(&format!("<h1>Pay {amount}</h1><p>A demonstration: no money moves.</p>{below}{back}"))
    }

    /// The customer pressed a button.
    fn chosen(self: &Arc<Self>, id: &str, status: &str) -> Reply {
        self.finish(id, status);
        self.page(id)
    }

    fn mac(&self, body: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.as_bytes()).expect("HMAC takes keys of any length");
        mac.update(body);
        mac
    }

    /// Whether the body was signed by the gateway: lowercase hexadecimal HMAC-SHA256 over its bytes as they came.
    fn is_signed(&self, headers: &HeaderMap, body: &[u8]) -> bool {
        let sent = headers.get("X-Signature").and_then(|value| value.to_str().ok()).and_then(unhex);
        // `verify_slice` takes as long for a nearly right signature as for a wrong one.
        sent.is_some_and(|sent| self.mac(body).verify_slice(&sent).is_ok())
    }
}

fn instructions(operation: &Operation) -> Value {
    json!({
        "text": "Send the amount with the reference below.\nIt may take a day to arrive.",
        "details": [
            { "label": "IBAN", "value": "DE02 1203 0000 0000 2020 51" },
            { "label": "Amount", "value": format!("{} {}", operation.amount, operation.currency) },
            { "label": "Reference", "value": operation.transaction_id },
        ],
    })
}

fn form(id: &str, choice: &str) -> String {
    let label = if choice == "SUCCESS" { "Pay" } else { "Decline" };
    format!("<form method=\"post\" action=\"/pay/{id}/{choice}\"><button>{label}</button></form>")
}

/// The way back to the shop. A URL holds no double quote, and `&` is spelled so in HTML.
fn back(return_url: &str) -> String {
    format!("<p><a href=\"{}\">Back to the shop</a></p>", return_url.replace('&', "&amp;"))
}

fn reply(answer: &Value) -> Reply {
    let mut reply = Response::new(Full::from(answer.to_string()));
    reply.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("application/json"));
    reply
}

fn html(body: &str) -> Reply {
    let page = format!("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Payment</title>{body}</html>");
    let mut reply = Response::new(Full::from(page));
    reply.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("text/html; charset=utf-8"));
    reply
}

fn text(status: StatusCode, text: &'static str) -> Reply {
    let mut reply = Response::new(Full::from(text));
    *reply.status_mut() = status;
    reply
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// Exactly 64 lowercase hexadecimal digits.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 64 || !text.as_bytes().iter().all(digit) {
        return None;
    }
    (0..32).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()).collect()
}

/// A client that trusts one certificate: who reports results wants to know to whom.
fn client(ca: &Path) -> Result<Client<HttpsConnector<HttpConnector>, Full<Bytes>>, Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca)? {
        roots.add(certificate?)?;
    }
    let crypto = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ClientConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1().build();
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}
