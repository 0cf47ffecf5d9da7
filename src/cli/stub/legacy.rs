//! A small old v1 service, to try a move on one machine: `docs/migration.md`.
//!
//! It answers payins, payouts, statuses, the balance and the list of transactions in the shape of the default dialect, and
//! prints a line for each request. An equal repeat gets the first reply. Orders are kept in memory, for each API key, and
//! succeed at once; no money moves. Unlike a real service it verifies no signature, sends no callback, has no page behind
//! its `redirect_url`, and ignores the filters of the list.

#![allow(
    clippy::indexing_slicing,
    reason = "a missing member of a JSON document is null, and the number of an order is its place"
)]

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use clap::{Args, ValueHint};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;

use super::server::{bind, serve};
use crate::cli::outcome::{CliError, ExitOutcome};
use crate::clock::{Clock as _, SystemClock};
use crate::domain::{Amount, Decimals};
use crate::http::listener::tls::server_tls;
use crate::rules::TlsRules;
use crate::v1::query::parameter;
use crate::wire::time::rfc3339;

/// `paybridge stub legacy`.
#[derive(Debug, Args)]
#[command(after_help = LEGACY_EXAMPLES)]
pub struct LegacyArgs {
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8444")]
    listen: SocketAddr,
    /// The certificate chain: by default the one that the gateway creates for localhost
    #[arg(long, value_name = "FILE", default_value = "certs/server.pem", value_hint = ValueHint::FilePath)]
    certificate: PathBuf,
    /// The key of the certificate
    #[arg(long, value_name = "FILE", default_value = "certs/server.key", value_hint = ValueHint::FilePath)]
    key: PathBuf,
}

const LEGACY_EXAMPLES: &str = "\
Prints a line for each request. Name it in gateway.toml: [legacy] url = \"https://localhost:8444\", with \
trust = [\"../certs/ca.pem\"].

Examples:
  paybridge stub legacy
  paybridge stub legacy --listen 127.0.0.1:8445";

/// An order that this service has made.
struct Order {
    /// The API key that made it.
    api_key: String,
    kind: &'static str,
    external_id: String,
    /// The whole request, with which repeats are compared.
    body: Value,
    amount: Amount,
    created_at: String,
}

#[derive(Default)]
struct Service {
    /// Oldest first; the position gives the transaction id.
    orders: Mutex<Vec<Order>>,
}

/// Serves until the process is ended.
///
/// # Errors
/// The address or the certificate cannot be used, or the output cannot be written.
pub(super) async fn run(args: &LegacyArgs, out: &mut dyn Write) -> ExitOutcome {
    let (certificate, key) = (args.certificate.clone(), args.key.clone());
    let tls = server_tls(&TlsRules { certificate, key, generate: false, client_ca: None });
    let mut tls = tls.map_err(|error| CliError::failed(format!("{error} (`paybridge serve` creates one)")))?.config;
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let listener = bind(args.listen).await?;
    writeln!(out, "listening on https://{}", listener.local_addr()?)?;
    let service = Arc::new(Service::default());
    let handle = move |request| {
        let service = Arc::clone(&service);
        async move { service.handle(request).await }
    };
    serve(listener, Some(TlsAcceptor::from(Arc::new(tls))), handle).await
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
        let amount = body["amount"].as_str().and_then(|text| Amount::from_decimal_string(text).ok());
        let amount = amount.ok_or(invalid("amount is malformed"))?;
        body["currency"].as_str().ok_or(invalid("currency is required"))?;
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let number = match position(&orders, kind, api_key, &external_id) {
            Some(number) if orders[number].body != body => {
                return Err((StatusCode::CONFLICT, "external_id names another order"));
            }
            Some(number) => number,
            None => {
                let created_at = rfc3339(SystemClock.now());
                let api_key = api_key.to_owned();
                orders.push(Order { api_key, kind, external_id: external_id.clone(), body, amount, created_at });
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
        let external_id = parameter(query, "external_id").ok().flatten();
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
            let signed = if order.kind == "payin" { order.amount.signed() } else { -order.amount.signed() };
            *sums.entry(currency(order)).or_default() += signed;
        }
        let balances = sums.into_iter().map(
            |(currency, sum)| json!({ "currency": currency, "available": Decimals(sum).to_string(), "held": "0.00" }),
        );
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
        "amount": Decimals(order.amount.signed()).to_string(),
        "currency": currency(order),
        "shop_code": order.body["shop_code"],
    })
}

fn currency(order: &Order) -> String {
    order.body["currency"].as_str().unwrap_or_default().to_owned()
}

fn print(line: &str) {
    // Requests are answered whether or not anything reads these lines.
    let _ = writeln!(std::io::stdout(), "{line}");
}
