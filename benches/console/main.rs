//! What the operators' console costs: the CPU of each page with many shops, operations and failed callbacks, and what ten
//! open consoles, or exports of everything, add to the latency of creates; and what an export and the comparison with a
//! statement take.
//!
//! ```sh
//! cargo bench --bench console                                    # two minutes
//! CONSOLE_ROWS=1000000 CONSOLE_SHOPS=10000 CONSOLE_MERCHANTS=10000 CONSOLE_CREATES=20000 cargo bench --bench console
//! PAYBRIDGE_TEST_STORE=postgres cargo bench --bench console
//! ```
//!
//! CPU is that of all threads of the gateway, and of all processes of PostgreSQL. Latencies are compared within a round.
//! `CONSOLE_ROUNDS` sets the number of rounds, `CONSOLE_CREATES` the creates of a round, `CONSOLE_CALLERS` how many callers send
//! them, one after the other each. No time is asserted.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on panics")]
#![allow(clippy::print_stdout, reason = "its output is the figures")]

mod commands;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/drafts.rs"]
mod drafts;
mod fill;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::cpu::{Usage, quiet};
use common::gateway::{Gateway, binary};
use common::load::{Check, load};
use common::say;
use common::statistics::{Spread, micros, percentile, ratios};
use support::bodies::with;
use support::gateway::{on_postgres, put_store};
use support::postgres::{Database, Server};
use support::request::ACME;
use support::{Request, payin};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The open consoles.
const CONSOLES: u32 = 10;

/// What goes on beside creates: nothing, consoles that are refreshed as their script does it, and ten times as often,
/// exports, one after the other, and a program that only computes, which shows what any program costs on such a machine.
const WORLDS: [Beside; 5] = [
    Beside::Nothing,
    Beside::Consoles(Duration::from_secs(10)),
    Beside::Consoles(Duration::from_secs(1)),
    Beside::Exports,
    Beside::Computation,
];

#[derive(Debug, Clone, Copy)]
enum Beside {
    Nothing,
    Consoles(Duration),
    Exports,
    Computation,
}

/// How often a page is requested. The figure is the median of the batches: work that the gateway repeats every few seconds
/// is not the page's.
const BATCHES: usize = 9;
const A_BATCH: u32 = 25;

/// The pages, without those whose addresses have ids.
const PAGES: &str = "/ /rules /merchants /merchants?text=m1 /merchants?text=nothing /merchants/m1 /merchants/m0 /operations \
    /callbacks /callbacks?state=failed /callbacks?state=failed&merchant=m1 /callbacks?state=failed&merchant=acme \
    /callbacks/resend?state=failed /callbacks/resend?state=failed&merchant=m1 /callbacks/sample /audit /audit?user=ann \
    /operations?status=PENDING /operations?status=FAILED /operations?merchant=m1 /operations?merchant=m1&status=FAILED \
    /operations?merchant=m1&status=PENDING /operations?shop=card-eur&through=v1 /operations?attention=true \
    /api/operations /api/operations?limit=200&status=PENDING /api/operations?limit=200&status=FAILED \
    /api/operations?limit=200&merchant=m1 /api/operations?limit=200&created_to=2100-01-01 \
    /api/operations?limit=200&attention=true /explain POST/explain";

fn main() {
    let [rows, shops, merchants] =
        [("CONSOLE_ROWS", 100_000), ("CONSOLE_SHOPS", 1000), ("CONSOLE_MERCHANTS", 1000)].map(size);
    let [rounds, creates, callers] =
        [("CONSOLE_ROUNDS", 6), ("CONSOLE_CREATES", 10_000), ("CONSOLE_CALLERS", 4)].map(size);
    let server = on_postgres().then(|| Server::start(&["fsync=on"]).expect("PostgreSQL is installed"));
    let database = server.as_ref().map(Server::database);
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    if let Some(database) = &database {
        put_store(place.path(), &database.url());
    }
    // Creates the keys and the certificate.
    drop(Gateway::start(&binary(), &common::gateway::rules(), place.path()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(fill::fill(place.path(), database.as_ref(), rows, merchants));
    let gateway = Gateway::start(&binary(), &fill::rules(shops, merchants), place.path());
    println!("{rows} operations with failed callbacks, {shops} shops, {merchants} merchants");
    runtime.block_on(async {
        pages(&gateway, database.as_ref(), &format!("order-{}", rows / 2 / merchants * merchants + 1)).await;
        commands::whole(&gateway.root).await;
        latencies(&gateway, rounds, creates, callers).await;
    });
}

fn size((name, default): (&str, u64)) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Prints the CPU of each page. `order` is an order of `m1`.
async fn pages(gateway: &Gateway, database: Option<&Database>, order: &str) {
    let path = async |page: &str, before: &str| {
        let page = fetch(gateway.admin, page, "").await;
        let link = page.split(before).nth(1).and_then(|rest| rest.split('"').next());
        link.unwrap_or_else(|| panic!("no {before} in {page}")).replace("&amp;", "&")
    };
    let (list, search) = ("/callbacks?state=failed", format!("/operations?merchant=m1&order_id={order}"));
    let next = path(list, "rel=\"next\" href=\"").await;
    let next = format!("/callbacks{}", path(&format!("/callbacks{next}"), "rel=\"next\" href=\"").await);
    let callback = format!("/callbacks/cb_{}", path(list, "href=\"/callbacks/cb_").await);
    let operation = format!("/operations/{}", path(&search, "href=\"/operations/").await);
    let body = payin("explained").to_string().bytes().fold(String::new(), |text, byte| text + &format!("%{byte:02X}"));
    let form = format!("merchant=acme&kind=payin&body={body}");
    let postmaster = database.map(|database| {
        let file = format!("{}/postmaster.pid", database.sql("SHOW data_directory"));
        std::fs::read_to_string(file).unwrap().lines().next().unwrap().parse().unwrap()
    });
    let processes: Vec<u32> = [gateway.pid()].into_iter().chain(postmaster).collect();
    println!("{:>7} {:>8} {:>7}  page", "ms", "ms of PG", "bytes");
    for target in PAGES.split_whitespace().chain([&*search, &operation, &next, &callback]) {
        let (target, form) = target.strip_prefix("POST").map_or((target, ""), |target| (target, &*form));
        let mut length = 0;
        let mut used = [const { Vec::new() }; 2];
        for batch in 0..=BATCHES {
            let usages = || processes.iter().map(|process| Usage::of(&[*process])).collect::<Vec<_>>();
            let before = usages();
            for _ in 0..A_BATCH {
                length = fetch(gateway.admin, target, form).await.len();
            }
            quiet(&processes).await;
            // The first batch only fills caches.
            for (used, (now, before)) in used.iter_mut().zip(usages().iter().zip(&before)).filter(|_| batch > 0) {
                used.push(micros(now.since(before)) / 1000.0 / f64::from(A_BATCH));
            }
        }
        let [of_gateway, of_database] = used.map(|used| Spread::of(&used).map_or(0.0, |spread| spread.median));
        println!("{of_gateway:>7.2} {of_database:>8.2} {length:>7}  {target}");
    }
}

/// Requests a page over a connection of its own, with a form if it is not empty; returns the body of a 200.
async fn fetch(admin: SocketAddr, target: &str, form: &str) -> String {
    let mut socket = TcpStream::connect(admin).await.unwrap();
    let (method, length) = (if form.is_empty() { "GET" } else { "POST" }, form.len());
    let request = format!(
        "{method} {target} HTTP/1.1\r\nHost: {admin}\r\nAccept: text/html\r\nConnection: close\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{form}"
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut reply = String::new();
    socket.read_to_string(&mut reply).await.unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_default();
    assert!(head.starts_with("HTTP/1.1 200"), "{target}: {reply}");
    body.to_owned()
}

/// Prints the latencies of creates alone and beside others.
async fn latencies(gateway: &Gateway, rounds: u64, creates: u64, callers: u64) {
    let mut connections = gateway.target().connect(usize::try_from(callers).unwrap()).await;
    let check: Arc<Check> = Arc::new(|_, reply| reply.status == 200);
    let mut figures = [const { [Vec::new(), Vec::new()] }; WORLDS.len()];
    for round in 0..=rounds {
        // The order changes from round to round, so that drift affects all of them.
        for place in 0..WORLDS.len() {
            let world = (place + usize::try_from(round).unwrap()) % WORLDS.len();
            let request = |number| {
                let body = with(payin(&format!("{round}-{world}-{number}")), "shop_code", Some("slow-eur".into()));
                Request::payin(&ACME, &body).bytes()
            };
            let (requests, served) = ((0..creates).map(request).collect(), Arc::new(AtomicU64::new(0)));
            let others = match WORLDS[world] {
                Beside::Nothing => JoinSet::new(),
                Beside::Consoles(pace) => open_consoles(gateway.admin, pace, &served),
                Beside::Exports => commands::export_all_the_time(gateway.root.clone(), &served),
                Beside::Computation => commands::compute(),
            };
            let latencies = load(&mut connections, requests, &check).await.latencies;
            drop(others);
            let measured = [50, 99].map(|hundredths| micros(percentile(&latencies, hundredths)));
            say(&format!("round {round}: {measured:.0?} us, {:?}: {}", WORLDS[world], served.load(Ordering::Relaxed)));
            // The first round only fills caches.
            for (figures, figure) in figures[world].iter_mut().zip(measured).filter(|_| round > 0) {
                figures.push(figure);
            }
        }
    }
    for (world, figures_beside) in WORLDS.iter().zip(&figures) {
        for (name, (beside, alone)) in ["median", "p99"].into_iter().zip(figures_beside.iter().zip(&figures[0])) {
            let Some((time, ratio)) = Spread::of(beside).zip(Spread::of(&ratios(beside, alone))) else { return };
            println!("{world:?}: {name} {} us, ratio {}", time.text(0), ratio.text(2));
        }
    }
}

/// Opens consoles, which refresh the overview one after the other until the value is dropped.
fn open_consoles(admin: SocketAddr, pace: Duration, served: &Arc<AtomicU64>) -> JoinSet<()> {
    let mut consoles = JoinSet::new();
    for number in 0..CONSOLES {
        let served = Arc::clone(served);
        consoles.spawn(async move {
            tokio::time::sleep(pace * number / CONSOLES).await;
            let mut ticks = tokio::time::interval(pace);
            loop {
                ticks.tick().await;
                fetch(admin, "/", "").await;
                served.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    consoles
}
