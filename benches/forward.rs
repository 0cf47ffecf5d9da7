//! What mode `shadow` adds to a forwarded create, against mode `legacy` in the same run: replies must not wait for checks, also
//! where the queue of checks is full.
//!
//! ```text
//! cargo bench --bench forward [-- ROUNDS]
//! ```
//!
//! Prints the median and the 99th percentile of each mode, and the ratio of `shadow` to `legacy`, round by round and in all.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on panics")]
#![allow(clippy::print_stdout, reason = "its output is the figures")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use support::receiver::{Play, Receiver};
use support::request::ACME;
use support::{Gateway, Request, Rules, payin};
use tokio::time::Instant;

/// Callers at once, each with a connection of its own.
const CALLERS: usize = 4;

/// Creates of a caller in a round.
const CREATES: usize = 500;

/// How often the schema below matches each word of a body: checks of long bodies take longer than forwarding them, so that
/// their queue is full.
const MATCHES: usize = 40;

/// Pairs of modes, the baseline first, and how many words their creates have beside the usual members.
const WORLDS: [(&str, &str, usize); 4] = [
    ("legacy", "legacy", 0),
    ("shadow", "shadow", 0),
    ("legacy, long bodies", "legacy", 1500),
    ("shadow, long bodies", "shadow", 1500),
];

fn main() {
    let rounds = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(6);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(measure(rounds));
}

async fn measure(rounds: usize) {
    let body = r#"{"status":"ok"}"#;
    let old = Receiver::start(move |_, _| {
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
        Play::Bytes((head + body).into_bytes())
    });
    let gateways = WORLDS.map(|(_, mode, _)| Gateway::start_on_file(&rules(&old, mode)));
    let mut all: [Vec<Duration>; WORLDS.len()] = Default::default();
    for round in 0..rounds {
        let mut line = format!("round {}:", round + 1);
        // The order changes from round to round, so that drift meets all of them.
        for place in 0..WORLDS.len() {
            let world = (place + round) % WORLDS.len();
            let times = creates(&gateways[world], WORLDS[world].2, round).await;
            all[world].extend(times);
        }
        for ((name, ..), times) in WORLDS.iter().zip(&all) {
            let _ = write!(line, " {name} p99 {:.0} us;", percentile(times, 99).as_secs_f64() * 1e6);
        }
        println!("{line}");
    }
    for (world, ((name, ..), times)) in WORLDS.iter().zip(&all).enumerate() {
        let (baseline, (median, p99)) = (percentiles(&all[world - world % 2]), percentiles(times));
        println!(
            "{name}: median {:.0} us, p99 {:.0} us; against its baseline {:.2} and {:.2}",
            median * 1e6,
            p99 * 1e6,
            median / baseline.0,
            p99 / baseline.1,
        );
    }
    let (_, metrics) = gateways[3].admin_get("/metrics").unwrap();
    let missed = metrics.lines().filter(|line| line.starts_with("paybridge_shadow_checks_total")).collect::<Vec<_>>();
    println!("checks of long bodies: {missed:?}");
}

fn rules(old: &Receiver, mode: &str) -> Rules {
    let (url, ca) = (old.url(""), old.ca());
    let patterns = vec![json!({ "pattern": "^[a-z0-9 ]*[^!]$" }); MATCHES];
    let extra = json!({ "type": "array", "uniqueItems": true, "items": { "type": "string", "allOf": patterns } });
    let schema =
        json!({ "type": "object", "properties": { "email": { "type": "string" }, "extra": extra } }).to_string();
    Rules::default()
        .with("legacy", &format!("url = \"{url}\"\ntrust = [\"{}\"]", ca.display()))
        .edit("merchants/acme.toml", "name = \"Acme Ltd\"\n", &format!("name = \"Acme Ltd\"\nv1.mode = \"{mode}\"\n"))
        .file("shops/card-eur.payin.json", schema)
}

/// Sends creates over several connections at once; returns how long each took.
async fn creates(gateway: &Gateway, words: usize, round: usize) -> Vec<Duration> {
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let client = gateway.client();
            tokio::spawn(async move {
                let mut connection = client.connect().await;
                let mut times = Vec::with_capacity(CREATES);
                for number in 0..CREATES {
                    let mut body = payin(&format!("{round}-{caller}-{number}"));
                    if words > 0 {
                        let words: Vec<_> = (0..words).map(|word| format!("word number {word}")).collect();
                        body["paymentData"]["extra"] = words.into();
                    }
                    let request = Request::payin(&ACME, &body);
                    let began = Instant::now();
                    connection.send(&request).await.expect(200);
                    times.push(began.elapsed());
                }
                times
            })
        })
        .collect();
    let mut times = Vec::new();
    for caller in callers {
        times.extend(caller.await.unwrap());
    }
    times
}

/// Returns the median and the 99th percentile, in seconds.
fn percentiles(times: &[Duration]) -> (f64, f64) {
    (percentile(times, 50).as_secs_f64(), percentile(times, 99).as_secs_f64())
}

fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}
