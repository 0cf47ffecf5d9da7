//! Durable v1 creates, end to end over TLS 1.3 keep-alive HTTP/1.1, beside a bare hyper + rustls server that answers a
//! static reply of the same size.
//!
//! ```sh
//! cargo bench --bench create              # about a minute
//! cargo bench --bench create -- --quick   # a few seconds, for a first look
//! ```
//!
//! The figure is server CPU (user + system, all threads, from `/proc`) in microseconds a request at 64 connections, and
//! its ratio to the bare server's: the two take turns in the same run, on the same core, and the client has another core
//! where there are two. Latency is looked at with 8 connections. Every request is another order with a signature of its
//! own, signed before the clock starts, and every reply is checked. Nothing is asserted about time.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on panics")]
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::convert::Infallible;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use support::gateway::{Gateway, free_port};
use support::request::{ACME, Request};
use support::{Client, Rules};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// How much is done.
struct Plan {
    rounds: usize,
    /// Requests of each of the 64 connections in a round.
    requests: usize,
    /// The bare server is so quick that the clock ticks of `/proc` need more of them.
    bare_requests: usize,
    /// Requests of each of the 8 connections whose latency is looked at.
    latency_requests: usize,
}

const FULL: Plan = Plan { rounds: 5, requests: 400, bare_requests: 1600, latency_requests: 500 };
const QUICK: Plan = Plan { rounds: 3, requests: 100, bare_requests: 400, latency_requests: 100 };
/// Only shows that it runs: what `cargo test --benches` gets.
const SMOKE: Plan = Plan { rounds: 1, requests: 3, bare_requests: 3, latency_requests: 3 };

const CONNECTIONS: usize = 64;
const LATENCY_CONNECTIONS: usize = 8;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if let [flag, address, certs] = &arguments[..]
        && flag == "--bare"
    {
        return runtime.block_on(serve_bare(address.parse().unwrap(), Path::new(certs)));
    }
    let given = |name: &str| arguments.iter().any(|argument| argument == name);
    let plan = match (given("--quick"), given("--bench")) {
        (true, _) => QUICK,
        (false, true) => FULL,
        (false, false) => SMOKE,
    };
    measure(&runtime, &plan);
}

/// A server process that is stopped when it is not needed any more.
struct Server {
    name: &'static str,
    child: Child,
    client: Client,
    requests: usize,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn measure(runtime: &tokio::runtime::Runtime, plan: &Plan) {
    let gateway = Gateway::prepare(&Rules::default());
    let cores = cores();
    if cores.len() > 1 {
        pin(cores[0]); // the servers inherit it
    }
    let mut quiet = gateway.command();
    let paybridge = quiet.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let paybridge = wait_until_ready(&gateway, paybridge, plan.requests);
    let bare = start_bare(&gateway, plan.bare_requests);
    if cores.len() > 1 {
        pin(cores[1]);
    }
    let apart = if cores.len() > 1 { "one core for the servers, another for the client" } else { "one core for all" };
    say(&format!("{apart}; {} rounds", plan.rounds));

    let servers = [bare, paybridge];
    let mut orders = 0;
    runtime.block_on(async {
        wait_until_listening(&servers[0].client).await;
        for server in &servers {
            load(server, CONNECTIONS, server.requests.div_ceil(4), &mut orders).await;
        }
        let mut cpu = [Vec::new(), Vec::new()];
        let mut latencies = [Vec::new(), Vec::new()];
        for round in 0..plan.rounds {
            for (number, server) in servers.iter().enumerate() {
                let before = cpu_micros(&server.child);
                load(server, CONNECTIONS, server.requests, &mut orders).await;
                let spent = cpu_micros(&server.child) - before;
                cpu[number].push(spent / (CONNECTIONS * server.requests) as f64);
                latencies[number].extend(load(server, LATENCY_CONNECTIONS, plan.latency_requests, &mut orders).await);
            }
            let (bare, ours) = (cpu[0][round], cpu[1][round]);
            say(&format!("round {}: bare {bare:.1} us, paybridge {ours:.1} us, ratio {:.2}", round + 1, ours / bare));
        }
        report(&servers, &cpu, latencies);
    });
}

fn report(servers: &[Server; 2], cpu: &[Vec<f64>; 2], latencies: [Vec<Duration>; 2]) {
    let ratios: Vec<f64> = cpu[1].iter().zip(&cpu[0]).map(|(ours, bare)| ours / bare).collect();
    say("");
    say("| server | CPU us a request, median (range) | to bare, median (range) | p50 at 8 | p99 at 8 |");
    say("|---|---|---|---|---|");
    for (number, mut latencies) in latencies.into_iter().enumerate() {
        latencies.sort();
        let at = |share: usize| latencies[(latencies.len() - 1) * share / 100].as_micros();
        let ratio = if number == 0 { "1.00".to_owned() } else { spread(&ratios, 2) };
        let (p50, p99) = (at(50), at(99));
        say(&format!("| {} | {} | {ratio} | {p50} us | {p99} us |", servers[number].name, spread(&cpu[number], 1)));
    }
}

/// The median and the range.
fn spread(figures: &[f64], decimals: usize) -> String {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let [least, .., most] = sorted[..] else { return format!("{:.decimals$}", sorted[0]) };
    format!("{:.decimals$} ({least:.decimals$} to {most:.decimals$})", sorted[sorted.len() / 2])
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn wait_until_ready(gateway: &Gateway, mut child: Child, requests: usize) -> Server {
    let deadline = Instant::now() + Duration::from_mins(1);
    while gateway.admin_get("/readyz").is_none_or(|(status, _)| status != 200) {
        assert!(child.try_wait().unwrap().is_none(), "paybridge ended");
        assert!(Instant::now() < deadline, "paybridge is not ready");
        std::thread::sleep(Duration::from_millis(20));
    }
    Server {
        name: "paybridge, durable v1 create",
        child,
        client: gateway.client().version(&rustls::version::TLS13),
        requests,
    }
}

fn start_bare(gateway: &Gateway, requests: usize) -> Server {
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let certs = gateway.root.path().join("certs");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--bare", &address.to_string()])
        .arg(&certs)
        .spawn()
        .unwrap();
    let client = Client::new(address, &certs.join("ca.pem")).version(&rustls::version::TLS13);
    Server { name: "bare hyper + rustls, static reply", child, client, requests }
}

async fn wait_until_listening(client: &Client) {
    support::eventually("the bare server listens", async || client.try_connect().await.map(drop)).await;
}

/// The cores this process may use.
fn cores() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect()
}

/// Keeps this thread, and what it starts from here on, on one core.
fn pin(core: usize) {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).unwrap();
}

/// User and system time of all threads of a process, in microseconds.
fn cpu_micros(child: &Child) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let (_, after_name) = stat.rsplit_once(") ").unwrap();
    let ticks: u64 = after_name.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    let a_second = rustix::param::clock_ticks_per_second();
    ticks as f64 * 1e6 / a_second as f64
}

/// Sends `each` requests over each of so many connections, checks every reply and gives the latencies.
async fn load(server: &Server, connections: usize, each: usize, orders: &mut usize) -> Vec<Duration> {
    let mut prepared = Vec::new();
    for _ in 0..connections {
        let requests: Vec<_> = (0..each).map(|number| request(*orders + number)).collect();
        *orders += each;
        prepared.push((server.client.tls(&["http/1.1"]).await.expect("a connection"), requests));
    }
    let mut callers = tokio::task::JoinSet::new();
    for (mut stream, requests) in prepared {
        callers.spawn(async move {
            let mut latencies = Vec::with_capacity(requests.len());
            let mut received = Vec::with_capacity(1024);
            for request in requests {
                let start = Instant::now();
                stream.write_all(&request).await.unwrap();
                stream.flush().await.unwrap();
                received.clear();
                while !whole_reply(&received) {
                    assert!(stream.read_buf(&mut received).await.unwrap() > 0, "closed inside a reply");
                }
                latencies.push(start.elapsed());
            }
            latencies
        });
    }
    callers.join_all().await.concat()
}

/// A v1 create of about 445 bytes.
fn request(order: usize) -> Vec<u8> {
    let body = format!(
        r#"{{"external_id":"order-{order:012}","amount":"{}.{:02}","currency":"EUR","shop_code":"card-eur","callback_url":"https://acme.example/payments/callback","merchant_user_id":"{order}","merchant_user_ip":"203.0.113.9","paymentData":{{"return_user_url":"https://acme.example/payments/done?order={order}","email":"customer-{order}@example.com","first_name":"Annabelle","phone":"+491701234567","bank_code":"BANK-A","channel":"app","level":3}}}}"#,
        10 + order % 900,
        order % 90 + 5
    );
    Request::payin(&ACME, &body).bytes()
}

/// Whether all of a reply has come; it must be the 200 of a create.
fn whole_reply(received: &[u8]) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut reply = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head) = reply.parse(received).expect("an HTTP reply") else { return false };
    let length = reply.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length: usize = std::str::from_utf8(length.expect("a length").value).unwrap().parse().unwrap();
    if received.len() < head + length {
        return false;
    }
    let body = String::from_utf8_lossy(&received[head..]);
    assert!(reply.code == Some(200) && body.starts_with("{\"transaction_id\":\""), "{body}");
    true
}

/// The bare server: reads the whole request, answers the same 150 bytes.
async fn serve_bare(address: SocketAddr, certs: &Path) {
    let chain = CertificateDer::pem_file_iter(certs.join("server.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(certs.join("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        socket.set_nodelay(true).unwrap();
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(socket).await else { return };
            let io = hyper_util::rt::TokioIo::new(stream);
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service_fn(static_reply)).await;
        });
    }
}

async fn static_reply(
    request: http::Request<hyper::body::Incoming>,
) -> Result<http::Response<Full<Bytes>>, Infallible> {
    const BODY: &str = concat!(
        r#"{"transaction_id":"1234567890123456789","external_id":"order-000000000001","#,
        r#""redirect_url":"https://localhost:8443/pay/1234567890123456789?expires=1"}"#
    );
    let _ = request.into_body().collect().await;
    let reply = http::Response::builder().header("content-type", "application/json");
    Ok(reply.body(Full::new(Bytes::from_static(BODY.as_bytes()))).unwrap())
}
