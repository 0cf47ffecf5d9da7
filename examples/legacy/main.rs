//! A small old v1 service: an example for `docs/migration.md`, to try a move on one machine.
//!
//! ```text
//! cargo run --example legacy -- --listen 127.0.0.1:8444 --certificate certs/server.pem --key certs/server.key
//! ```
//!
//! and in `rules/gateway.toml`:
//!
//! ```toml
//! [legacy]
//! url = "https://localhost:8444"
//! trust = ["../certs/ca.pem"]
//! ```
//!
//! It answers payins, payouts, statuses, the balance and the list of transactions in the shape of the default dialect, and
//! prints a line for each request. An equal repeat gets the first reply. Orders are kept in memory, for each API key, and
//! succeed at once; no money moves. Unlike a real service it verifies no signature, sends no callback, has no page behind
//! its `redirect_url`, and ignores the filters of the list.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Parser;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

#[derive(Parser)]
struct Options {
    /// The address to listen on
    #[arg(long, default_value = "127.0.0.1:8444")]
    listen: SocketAddr,
    /// The certificate chain: by default the one that the gateway makes for localhost
    #[arg(long, default_value = "certs/server.pem")]
    certificate: PathBuf,
    /// The key of the certificate
    #[arg(long, default_value = "certs/server.key")]
    key: PathBuf,
}

/// An order that this service has made.
struct Order {
    /// The API key that made it.
    api_key: String,
    kind: &'static str,
    external_id: String,
    /// The whole request, with which repeats are compared.
    body: Value,
    hundredths: i64,
    created_at: String,
}

#[derive(Default)]
struct Service {
    /// Oldest first; the position gives the transaction id.
    orders: Mutex<Vec<Order>>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let chain = CertificateDer::pem_file_iter(&options.certificate)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(&options.key)?;
    let crypto = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ServerConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind(options.listen).await?;
    print(&format!("listening on https://{}", listener.local_addr()?));
    let service = Arc::new(Service::default());
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(serve(Arc::clone(&service), acceptor.clone(), stream))),
            // A temporary error, such as too many open files.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn serve(service: Arc<Service>, acceptor: TlsAcceptor, stream: TcpStream) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let answers = service_fn(|request| {
        let service = Arc::clone(&service);
        async move { Ok::<_, Infallible>(service.handle(request).await) }
    });
    // A broken connection needs no action: the merchant sends the request again.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answers).await;
}

/// The document of a 200, or the status and message of an error.
type Answer = Result<Value, (StatusCode, &'static str)>;

impl Service {
    async fn handle(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let target = head.uri.path_and_query().map_or("", |target| target.as_str());
        let api_key = head.headers.get("X-Api-Key").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let answer = match Limited::new(body, 256 * 1024).collect().await {
            Ok(body) => self.answer(&head.method, head.uri.path(), head.uri.query(), api_key, &body.to_bytes()),
            Err(_) => Err((StatusCode::BAD_REQUEST, "the body is too long or incomplete")),
        };
        let (status, document) = match answer {
            Ok(document) => (StatusCode::OK, document),
            Err((status, message)) => (status, json!({ "error": { "code": status.as_u16(), "message": message } })),
        };
        print(&format!("{} {target} -> {}", head.method, status.as_u16()));
        let mut reply = Response::new(Full::from(document.to_string()));
        *reply.status_mut() = status;
        reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        reply
    }

    fn answer(&self, method: &Method, path: &str, query: Option<&str>, api_key: &str, body: &[u8]) -> Answer {
        match (method, path) {
            (&Method::POST, "/api/v1/payin") => self.create("payin", api_key, body),
            (&Method::POST, "/api/v1/payout") => self.create("payout", api_key, body),
            (&Method::GET, "/api/v1/payin/status") => self.status("payin", api_key, query),
            (&Method::GET, "/api/v1/payout/status") => self.status("payout", api_key, query),
            (&Method::GET, "/api/v1/balance") => Ok(self.balance(api_key)),
            (&Method::GET, "/api/v1/transactions") => Ok(self.transactions(api_key)),
            _ => Err((StatusCode::NOT_FOUND, "no such path")),
        }
    }

    /// Makes an order, or answers a repeat. It takes any members beside those it reads, as old services do.
    fn create(&self, kind: &'static str, api_key: &str, body: &[u8]) -> Answer {
        let invalid = |message| (StatusCode::BAD_REQUEST, message);
        let body: Value = serde_json::from_slice(body).map_err(|_| invalid("the body must be JSON"))?;
        let external_id = body["external_id"].as_str().ok_or(invalid("external_id is required"))?.to_owned();
        let hundredths = body["amount"].as_str().and_then(hundredths).ok_or(invalid("amount is malformed"))?;
        body["currency"].as_str().ok_or(invalid("currency is required"))?;
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let number = match position(&orders, kind, api_key, &external_id) {
            Some(number) if orders[number].body != body => {
                return Err((StatusCode::CONFLICT, "external_id names another order"));
            }
            Some(number) => number,
            None => {
                let created_at = jiff::Timestamp::now().to_string();
                let api_key = api_key.to_owned();
                orders.push(Order { api_key, kind, external_id: external_id.clone(), body, hundredths, created_at });
                orders.len() - 1
            }
        };
        let id = transaction_id(number);
        let mut reply = json!({ "transaction_id": id, "external_id": external_id });
        if kind == "payin" {
            reply["redirect_url"] = format!("https://old.example/pay/{id}").into();
        }
        Ok(reply)
    }

    fn status(&self, kind: &str, api_key: &str, query: Option<&str>) -> Answer {
        let pairs = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let external_id = pairs.into_iter().find_map(|(name, value)| (name == "external_id").then(|| decoded(value)));
        let external_id = external_id.ok_or((StatusCode::BAD_REQUEST, "external_id is required"))?;
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let number = position(&orders, kind, api_key, &external_id).ok_or((StatusCode::NOT_FOUND, "no such order"))?;
        Ok(shown(number, &orders[number]))
    }

    /// Returns what the payins brought, less the payouts, for each currency.
    fn balance(&self, api_key: &str) -> Value {
        let mut sums = BTreeMap::<String, i64>::new();
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        for order in orders.iter().filter(|order| order.api_key == api_key) {
            let signed = if order.kind == "payin" { order.hundredths } else { -order.hundredths };
            *sums.entry(currency(order)).or_default() += signed;
        }
        let balances = sums
            .into_iter()
            .map(|(currency, sum)| json!({ "currency": currency, "available": decimal(sum), "held": "0.00" }));
        json!({ "balances": balances.collect::<Vec<_>>() })
    }

    /// Returns all orders on one page, newest first.
    fn transactions(&self, api_key: &str) -> Value {
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let own = orders.iter().enumerate().rev().filter(|(_, order)| order.api_key == api_key);
        let rows = own.map(|(number, order)| {
            let mut row = shown(number, order);
            row["type"] = order.kind.into();
            row["created_at"] = order.created_at.clone().into();
            row
        });
        json!({ "transactions": rows.collect::<Vec<_>>(), "page": 1, "per_page": 50, "has_more": false })
    }
}

fn position(orders: &[Order], kind: &str, api_key: &str, external_id: &str) -> Option<usize> {
    orders.iter().position(|order| order.kind == kind && order.api_key == api_key && order.external_id == external_id)
}

fn transaction_id(number: usize) -> String {
    format!("old-{}", number + 1)
}

/// Returns the status document of an order.
fn shown(number: usize, order: &Order) -> Value {
    json!({
        "transaction_id": transaction_id(number),
        "external_id": order.external_id,
        "status": "SUCCESS",
        "amount": decimal(order.hundredths),
        "currency": currency(order),
        "shop_code": order.body["shop_code"],
    })
}

fn currency(order: &Order) -> String {
    order.body["currency"].as_str().unwrap_or_default().to_owned()
}

/// Reads digits with at most two decimals. Never read money as a binary float.
fn hundredths(text: &str) -> Option<i64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || whole.len() > 13 || decimals.len() > 2 {
        return None;
    }
    format!("{whole}{decimals:0<2}").parse().ok()
}

fn decimal(hundredths: i64) -> String {
    let sign = if hundredths < 0 { "-" } else { "" };
    let positive = hundredths.unsigned_abs();
    format!("{sign}{}.{:02}", positive / 100, positive % 100)
}

/// Decodes a value of a query: `%41` and `+`. What is malformed is taken as it is.
fn decoded(value: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), value.as_bytes());
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            bytes.push(byte);
            rest = &tail[2..];
        } else {
            bytes.push(if *first == b'+' { b' ' } else { *first });
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn print(line: &str) {
    // Requests are answered whether or not anything reads these lines.
    let _ = writeln!(std::io::stdout(), "{line}");
}
