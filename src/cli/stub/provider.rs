//! A small HTTP provider, to read beside `docs/providers.md` and to copy from:
//!
//! ```text
//! PROVIDER_SECRET=hush paybridge stub provider
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
//! It moves no money: the cents of an amount decide the result of an operation.
//!
//! | cents | deposit | withdrawal |
//! |---|---|---|
//! | .01 | FAILED | FAILED |
//! | .02 | preparation stopped, result unknown | pending, and no report ever |
//! | .03 | instructions, no result | SUCCESS |
//! | .04 | pending, after `--delay` a report of SUCCESS | the same |
//! | .05 | pending, after `--delay` a report of FAILED | the same |
//! | else | a payment page with Pay and Decline, which report | SUCCESS |
//!
//! A real provider must also store its operations on disk, so that they survive a crash, and give its pages addresses that
//! cannot be guessed, since each page is for one customer only. Everything else is here.

#![allow(clippy::indexing_slicing, reason = "a missing member of a JSON document is null")]

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use clap::{Args, ValueHint};
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::Sha256;

use super::server::{bind, serve};
use crate::cli::outcome::{CliError, ExitOutcome};

/// `paybridge stub provider`.
#[derive(Args)]
#[command(after_help = PROVIDER_EXAMPLES)]
pub struct ProviderArgs {
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9100")]
    listen: SocketAddr,
    /// The `secret` of the shop's file: it signs requests in both directions
    #[arg(long, value_name = "SECRET", env = "PROVIDER_SECRET", hide_env_values = true)]
    secret: String,
    /// The certificate of the CA that signed the gateway's certificate
    #[arg(long, value_name = "FILE", default_value = "certs/ca.pem", value_hint = ValueHint::FilePath)]
    ca: PathBuf,
    /// The milliseconds before a result is reported
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    delay: u64,
}

const PROVIDER_EXAMPLES: &str = "\
The cents of an amount decide the result of an operation: .01 fails, .04 succeeds and .05 fails after the delay. With \
most others a deposit gets a page with Pay and Decline, and a withdrawal succeeds.

Examples:
  PROVIDER_SECRET=hush paybridge stub provider
  PROVIDER_SECRET=hush paybridge stub provider --listen 127.0.0.1:9101 --delay 5000";

/// Shows no secret.
impl fmt::Debug for ProviderArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProviderArgs(..)")
    }
}

/// The members of the gateway's request that this provider uses. Unknown members are ignored: later versions may add some.
#[derive(Clone, Deserialize)]
struct Operation {
    transaction_id: String,
    direction: Direction,
    /// A string with two decimals. Never read money as a binary float.
    amount: String,
    currency: String,
    events_url: String,
    /// The address to which a deposit's customer returns, if the shop has returns: signed, to be used unchanged.
    return_url: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Direction {
    Payin,
    Payout,
}

/// An operation that this provider has received.
struct Known {
    operation: Operation,
    /// The current answer. Once it is a result it never changes.
    answer: Value,
}

struct Provider {
    secret: String,
    address: SocketAddr,
    delay: Duration,
    known: Mutex<HashMap<String, Known>>,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// Serves until the process is ended.
///
/// # Errors
/// The address or the certificate cannot be used, or the output cannot be written.
pub(super) async fn run(args: ProviderArgs, out: &mut dyn Write) -> ExitOutcome {
    let listener = bind(args.listen).await?;
    let provider = Arc::new(Provider {
        secret: args.secret,
        address: listener.local_addr()?,
        delay: Duration::from_millis(args.delay),
        known: Mutex::default(),
        client: client(&args.ca)
            .map_err(|error| CliError::failed(format!("cannot read {}: {error}", args.ca.display())))?,
    });
    writeln!(out, "listening on http://{}/operations", provider.address)?;
    let handle = move |request| {
        let provider = Arc::clone(&provider);
        async move { provider.handle(request).await }
    };
    serve(listener, None, handle).await
}

type Reply = Response<Full<Bytes>>;

impl Provider {
    async fn handle(self: &Arc<Self>, request: Request<Incoming>) -> Reply {
        let (head, body) = request.into_parts();
        let Ok(body) = Limited::new(body, 256 * 1024).collect().await else {
            return text(StatusCode::BAD_REQUEST, "the body is too long or incomplete");
        };
        let path: Vec<_> = head.uri.path().trim_matches('/').split('/').collect();
        match (&head.method, &path[..]) {
            (&Method::POST, ["operations"]) => self.answer(&head.headers, &body.to_bytes()),
            (&Method::GET, ["pay", id]) => self.page(id),
            (&Method::POST, ["pay", id, choice @ ("SUCCESS" | "FAILED")]) => self.chosen(id, choice),
            _ => text(StatusCode::NOT_FOUND, "not found"),
        }
    }

    /// Answers a request for an operation's result, the first one or a repeat.
    fn answer(self: &Arc<Self>, headers: &HeaderMap, body: &Bytes) -> Reply {
        // Verified before the body is read.
        if !self.is_signed(headers, body) {
            return text(StatusCode::UNAUTHORIZED, "wrong signature");
        }
        let Ok(operation) = serde_json::from_slice::<Operation>(body) else {
            return text(StatusCode::BAD_REQUEST, "not an operation");
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // The gateway repeats a request if it did not receive, or could not store, the answer. The same transaction_id is the
        // same operation, and must not be carried out twice.
        if let Some(known) = known.get(&operation.transaction_id) {
            return reply(&known.answer);
        }
        // Every answer names its operation: the gateway rejects an answer that could be another operation's.
        let mut answer = self.begin(&operation);
        answer["transaction_id"] = operation.transaction_id.clone().into();
        let answered = reply(&answer);
        known.insert(operation.transaction_id.clone(), Known { operation, answer });
        answered
    }

    /// Begins a new operation and returns the first answer.
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

    /// Returns a pending answer; the result is reported after the delay.
    fn later(self: &Arc<Self>, operation: &Operation, status: &'static str) -> Value {
        let (provider, id) = (Arc::clone(self), operation.transaction_id.clone());
        tokio::spawn(async move {
            tokio::time::sleep(provider.delay).await;
            provider.finish(&id, status);
        });
        json!({ "status": "PENDING" })
    }

    /// Stores a result, once, and reports it.
    fn finish(self: &Arc<Self>, id: &str, status: &str) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = known.get_mut(id).filter(|known| known.answer["status"] == "PENDING") else { return };
        known.answer = json!({ "transaction_id": id, "status": status });
        if status == "SUCCESS" && known.operation.direction == Direction::Payin {
            known.answer["payer_account"] = "4111111111111111".into();
        }
        tokio::spawn(Arc::clone(self).report(known.operation.events_url.clone(), known.answer.to_string()));
    }

    /// Reports a result until the gateway accepts or rejects it. A report may be sent any number of times.
    async fn report(self: Arc<Self>, url: String, body: String) {
        let mut wait = Duration::from_millis(200);
        // 200: accepted. 400, 404 and 409 will not change, and need an operator: 409 is a contradiction, for example.
        while !matches!(self.report_once(&url, &body).await, Some(200 | 400 | 404 | 409)) {
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(Duration::from_mins(1));
        }
    }

    /// Sends a report once. Returns the status of the reply, if there was one.
    async fn report_once(&self, url: &str, body: &str) -> Option<u16> {
        let request = Request::post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("X-Signature", hex::encode(self.mac(body.as_bytes()).finalize().into_bytes()))
            .body(Full::from(body.to_owned()))
            .ok()?;
        let reply = tokio::time::timeout(Duration::from_secs(10), self.client.request(request)).await;
        Some(reply.ok()?.ok()?.status().as_u16())
    }

    /// Returns the customer's payment page.
    fn page(&self, id: &str) -> Reply {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Known { operation, answer }) = known.get(id) else {
            return text(StatusCode::NOT_FOUND, "no such payment");
        };
        // Safe without escaping: in the gateway's values these contain only digits, a point and letters.
        let amount = format!("{} {}", operation.amount, operation.currency);
        let below = if answer["status"] == "PENDING" {
            ["SUCCESS", "FAILED"].map(|choice| form(id, choice)).concat()
        } else {
            "<p>This payment is over.</p>".to_owned()
        };
        // A customer who follows it has not necessarily paid.
        let back = operation.return_url.as_deref().map_or_else(String::new, back);
        html(&format!("<h1>Pay {amount}</h1><p>A demonstration: no money moves.</p>{below}{back}"))
    }

    /// Stores the result of the button that the customer pressed.
    fn chosen(self: &Arc<Self>, id: &str, status: &str) -> Reply {
        self.finish(id, status);
        self.page(id)
    }

    fn mac(&self, body: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.as_bytes()).expect("HMAC takes keys of any length");
        mac.update(body);
        mac
    }

    /// Reports whether the gateway signed the body: hexadecimal HMAC-SHA256 over the bytes as received.
    fn is_signed(&self, headers: &HeaderMap, body: &[u8]) -> bool {
        let sent = headers.get("X-Signature").and_then(|value| hex::decode(value).ok());
        // `verify_slice` compares in constant time.
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

/// Returns the link back to the shop. A URL contains no double quote, so only `&` needs escaping.
fn back(return_url: &str) -> String {
    format!("<p><a href=\"{}\">Back to the shop</a></p>", return_url.replace('&', "&amp;"))
}

fn reply(answer: &Value) -> Reply {
    let mut reply = Response::new(Full::from(answer.to_string()));
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

fn html(body: &str) -> Reply {
    let page = format!("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Payment</title>{body}</html>");
    let mut reply = Response::new(Full::from(page));
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    reply
}

fn text(status: StatusCode, text: &'static str) -> Reply {
    let mut reply = Response::new(Full::from(text));
    *reply.status_mut() = status;
    reply
}

/// Creates the client that sends reports. It trusts only this certificate, so that reports reach the real gateway.
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
