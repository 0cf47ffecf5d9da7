//! The measurement: connections first, while every server is fresh, then rounds in which all servers have their turn.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::common::counters::{Counted, Counting};
use crate::common::load::{Loaded, load};
use crate::common::statistics::{micros, percentile};
use crate::common::{cpu, disk, memory, say};
use crate::options::Options;
use crate::servers::{REFERENCE, Server, Servers};
use crate::workload::{self, Orders, Workload};

/// The connections for measurements of CPU.
pub const CONNECTIONS: usize = 64;
/// The connections for measurements of latency.
pub const FEW_CONNECTIONS: usize = 8;

/// The most requests that are prepared at once: they are in memory.
const MOST_REQUESTS: usize = 150_000;

/// All measured figures.
#[derive(Debug, Default, Serialize)]
pub struct Measured {
    /// By server.
    pub memory: BTreeMap<&'static str, Memory>,
    /// In order.
    pub rounds: Vec<Round>,
}

impl Measured {
    /// Returns CPU microseconds per request, by round; empty if it was not measured.
    pub fn cpu(&self, server: &str, workload: Workload) -> Vec<f64> {
        let loads = self.rounds.iter().filter_map(|round| round.loads.get(server)?.get(workload.name()));
        loads.map(|load| load.cpu_us).collect()
    }

    /// Returns a figure of the latencies over few connections, by round.
    pub fn latency(&self, server: &str, which: fn(&Latency) -> f64) -> Vec<f64> {
        self.rounds.iter().filter_map(|round| round.latencies.get(server).map(which)).collect()
    }

    /// Returns CPU microseconds per handshake, by round.
    pub fn handshake(&self, server: &str) -> Vec<f64> {
        self.rounds.iter().filter_map(|round| round.handshakes.get(server).copied()).collect()
    }
}

/// A server's memory, in bytes.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Memory {
    /// Before the first request.
    pub at_start: u64,
    /// After all rounds.
    pub at_end: u64,
    /// Of each idle TLS connection: before its first request, and after one.
    pub per_connection: Option<[f64; 2]>,
}

/// One round.
#[derive(Debug, Default, Serialize)]
pub struct Round {
    /// By server, then by workload.
    pub loads: BTreeMap<&'static str, BTreeMap<&'static str, Load>>,
    /// v1 creates over few connections, by server.
    pub latencies: BTreeMap<&'static str, Latency>,
    /// CPU of a full handshake in microseconds, by server.
    pub handshakes: BTreeMap<&'static str, f64>,
    /// 4 KiB appended and fdatasync: median and 99th percentile, in microseconds.
    pub fdatasync: [f64; 2],
}

/// The figures of a workload over many connections.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Load {
    /// The number of requests.
    pub requests: usize,
    /// Server CPU per request in microseconds, deferred work included.
    pub cpu_us: f64,
    /// The part of it that was used after the last reply.
    pub put_off_us: f64,
    /// Requests per second; unreliable if anything else runs on the machine.
    pub per_second: f64,
    /// The counts, if `--counters` or `--callgrind` is given.
    pub counted: Option<Counted>,
}

/// Latencies in microseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Latency {
    /// The median.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
}

/// The requests of a load of the planned duration, once the speed of the server is known.
type Counts = BTreeMap<(&'static str, Workload, usize), usize>;

/// Measures everything that the options select; `directory` is on the disk of the stores.
pub async fn measure(options: &Options, servers: &Servers, directory: &Path) -> Measured {
    let mut measured = Measured::default();
    for server in &servers.all {
        say(&format!("memory: {}", server.name));
        measured.memory.insert(server.name, connections_of(server, options.plan.idle).await);
    }
    let orders = make_known(options.plan.known_orders, servers).await;
    let mut rounds = Rounds { options, servers, directory, orders, counts: Counts::new() };
    for number in 0..options.plan.rounds {
        measured.rounds.push(rounds.next(number).await);
    }
    for server in &servers.all {
        measured.memory.entry(server.name).and_modify(|memory| memory.at_end = memory::of(&server.pids()));
    }
    measured
}

/// How long used connections are idle before their memory is measured. All servers close them much later.
const UNUSED: Duration = Duration::from_secs(5);

/// Measures the memory of a fresh server and of idle connections.
async fn connections_of(server: &Server, idle: usize) -> Memory {
    let pids = server.pids();
    cpu::quiet(&pids).await;
    let at_start = memory::of(&pids);
    let mut per_connection = None;
    if server.connections {
        let mut connections = server.target.connect(idle).await;
        cpu::quiet(&pids).await;
        let each = |bytes: u64| (bytes as f64 - at_start as f64) / idle as f64;
        let fresh = each(memory::of(&pids));
        // A status read of an order that does not exist, which stores nothing.
        let question = workload::request(Workload::Status, 999_999_999_999);
        for connection in &mut connections {
            connection.exchange(&question).await;
        }
        tokio::time::sleep(UNUSED).await;
        cpu::quiet(&pids).await;
        per_connection = Some([fresh, each(memory::of(&pids))]);
    }
    Memory { at_start, at_end: at_start, per_connection }
}

/// Creates the orders for repeats and status reads, on every server that has these workloads.
async fn make_known(count: usize, servers: &Servers) -> Orders {
    let asked = |server: &&Server| server.workloads.iter().any(|workload| workload.is_about_known());
    for server in servers.all.iter().filter(asked) {
        let (requests, check) = Orders::default().prepare(Workload::Create, server.answers, count);
        load(&mut server.target.connect(CONNECTIONS).await, requests, &check).await;
    }
    Orders::after(count)
}

/// The state that is kept between rounds.
struct Rounds<'a> {
    options: &'a Options,
    servers: &'a Servers,
    directory: &'a Path,
    orders: Orders,
    counts: Counts,
}

/// One server's turn at one workload.
struct Turn<'a> {
    server: &'a Server,
    workload: Workload,
    connections: usize,
    lasting: Duration,
}

/// The result of a turn.
struct Ran {
    loaded: Loaded,
    /// CPU during the load, and of the deferred work after it.
    spent: [Duration; 2],
    counted: Option<Counted>,
}

impl<'a> Rounds<'a> {
    async fn next(&mut self, number: usize) -> Round {
        let mut round = Round::default();
        let syncs = disk::fdatasync(self.directory, self.options.plan.syncs);
        round.fdatasync = [micros(percentile(&syncs, 50)), micros(percentile(&syncs, 99))];
        for (server, again) in self.turns(number) {
            for workload in &server.workloads {
                let load = self.cpu(server, *workload).await;
                let (round_number, of, name) = (number + 1, self.options.plan.rounds, workload.name());
                let counted = load.counted.map_or_else(String::new, |counted| counted.text());
                say(&format!("round {round_number} of {of}: {}, {name}: {:.1} us{counted}", server.name, load.cpu_us));
                let loads = round.loads.entry(server.name).or_default();
                loads.entry(name).and_modify(|first| *first = first.and(load)).or_insert(load);
            }
            if again {
                continue;
            }
            if server.workloads.contains(&Workload::Create) {
                round.latencies.insert(server.name, self.latency(server).await);
            }
            if server.connections {
                round.handshakes.insert(server.name, handshake(server, self.options.plan.handshakes).await);
            }
        }
        round
    }

    /// Returns every server, each round beginning with another one. The reference has a second turn, in the other half of the
    /// round (marked), since every ratio depends on it.
    fn turns(&self, number: usize) -> Vec<(&'a Server, bool)> {
        let mut turns: Vec<_> = self.servers.all.iter().map(|server| (server, false)).collect();
        let count = turns.len();
        turns.rotate_left(number % count.max(1));
        let place = turns.iter().position(|(server, _)| server.name == REFERENCE);
        if let Some(place) = place.filter(|_| count > 2) {
            let other = if place < count / 2 { count - 1 } else { 1 };
            turns.insert(other, (turns[place].0, true));
        }
        turns
    }

    async fn cpu(&mut self, server: &Server, workload: Workload) -> Load {
        let lasting = self.options.plan.load;
        let turn = Turn { server, workload, connections: CONNECTIONS, lasting };
        let Ran { loaded, spent: [spent, put_off], counted } = self.run(&turn).await;
        let requests = loaded.latencies.len();
        let each = |time: Duration| micros(time) / requests as f64;
        let per_second = requests as f64 / loaded.elapsed.as_secs_f64();
        Load { requests, cpu_us: each(spent + put_off), put_off_us: each(put_off), per_second, counted }
    }

    async fn latency(&mut self, server: &Server) -> Latency {
        let (workload, lasting) = (Workload::Create, self.options.plan.latency);
        let loaded = self.run(&Turn { server, workload, connections: FEW_CONNECTIONS, lasting }).await.loaded;
        let at = |hundredths| micros(percentile(&loaded.latencies, hundredths));
        Latency { p50_us: at(50), p99_us: at(99) }
    }

    /// Warms the server up, then measures a load.
    async fn run(&mut self, turn: &Turn<'_>) -> Ran {
        let mut connections = turn.server.target.connect(turn.connections).await;
        let place = (turn.server.name, turn.workload, turn.connections);
        let warming = if self.counts.contains_key(&place) { 4 } else { 32 } * turn.connections;
        let (requests, check) = self.orders.prepare(turn.workload, turn.server.answers, warming);
        let warmed = load(&mut connections, requests, &check).await;
        let count = *self.counts.entry(place).or_insert_with(|| turn.count(&warmed));
        let pids = turn.server.pids();
        cpu::quiet(&pids).await;
        let (requests, check) = self.orders.prepare(turn.workload, turn.server.answers, count);
        let counting = match self.options.counters {
            Some(counter) => Some(Counting::begin(counter, &cpu::family(&pids)).await),
            None => None,
        };
        let before = cpu::Usage::of(&pids);
        let loaded = load(&mut connections, requests, &check).await;
        let then = cpu::Usage::of(&pids);
        cpu::quiet(&pids).await;
        let spent = [then.since(&before), cpu::Usage::of(&pids).since(&then)];
        let counted = counting.map(|counting| counting.end(loaded.latencies.len()));
        self.counts.insert(place, turn.count(&loaded));
        Ran { loaded, spent, counted }
    }
}

impl Turn<'_> {
    /// Returns how many requests take the planned duration, judging by these.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count that is far from either end")]
    fn count(&self, loaded: &Loaded) -> usize {
        let second = loaded.latencies.len() as f64 / loaded.elapsed.as_secs_f64();
        let count = (second * self.lasting.as_secs_f64()) as usize;
        count.clamp(4 * self.connections, MOST_REQUESTS)
    }
}

impl Load {
    /// Returns the average of two loads, weighted by their requests.
    fn and(self, other: Self) -> Self {
        let requests = self.requests + other.requests;
        let both = |figure: fn(&Self) -> f64| {
            (figure(&self) * self.requests as f64 + figure(&other) * other.requests as f64) / requests as f64
        };
        Self {
            requests,
            cpu_us: both(|load| load.cpu_us),
            put_off_us: both(|load| load.put_off_us),
            per_second: both(|load| load.per_second),
            counted: self.counted,
        }
    }
}

/// Returns the CPU of a full handshake, including the close of its connection.
async fn handshake(server: &Server, count: usize) -> f64 {
    let pids = server.pids();
    server.target.handshakes(count.div_ceil(10)).await;
    cpu::quiet(&pids).await;
    let before = cpu::Usage::of(&pids);
    server.target.handshakes(count).await;
    cpu::quiet(&pids).await;
    micros(cpu::Usage::of(&pids).since(&before)) / count as f64
}
