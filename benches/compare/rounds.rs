//! The measuring: connections first, while every server is fresh, then rounds in which all have their turn.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::common::load::{Connection, Loaded, load};
use crate::common::statistics::{micros, percentile};
use crate::common::{cpu, disk, memory, say};
use crate::options::Options;
use crate::servers::{Server, Servers};
use crate::workload::{self, Orders, Workload};

/// So many connections where CPU is looked at.
pub const CONNECTIONS: usize = 64;
/// So many where latency is.
pub const FEW_CONNECTIONS: usize = 8;

/// At most so many requests are made ready at once: they are kept in memory.
const MOST_REQUESTS: usize = 150_000;

/// Everything that was measured.
#[derive(Debug, Default, Serialize)]
pub struct Measured {
    /// By server.
    pub memory: BTreeMap<&'static str, Memory>,
    /// One after the other.
    pub rounds: Vec<Round>,
}

impl Measured {
    /// CPU microseconds a request, by round; empty where it was not measured.
    pub fn cpu(&self, server: &str, workload: Workload) -> Vec<f64> {
        let loads = self.rounds.iter().filter_map(|round| round.loads.get(server)?.get(workload.name()));
        loads.map(|load| load.cpu_us).collect()
    }

    /// A figure of the latencies over few connections, by round.
    pub fn latency(&self, server: &str, which: fn(&Latency) -> f64) -> Vec<f64> {
        self.rounds.iter().filter_map(|round| round.latencies.get(server).map(which)).collect()
    }

    /// CPU microseconds of a handshake, by round.
    pub fn handshake(&self, server: &str) -> Vec<f64> {
        self.rounds.iter().filter_map(|round| round.handshakes.get(server).copied()).collect()
    }
}

/// Bytes.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Memory {
    /// Before the first request.
    pub at_start: u64,
    /// After all rounds.
    pub at_end: u64,
    /// Of each TLS connection that does nothing: that never did, and after a request.
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
    /// 4 KiB appended and fdatasync: median and 99 hundredths, in microseconds.
    pub fdatasync: [f64; 2],
}

/// A workload over many connections.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Load {
    /// How many there were.
    pub requests: usize,
    /// Server CPU of one, in microseconds, what the server put off included.
    pub cpu_us: f64,
    /// How much of that came after the last reply.
    pub put_off_us: f64,
    /// Noise where anything else runs.
    pub per_second: f64,
}

/// Microseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Latency {
    /// The median.
    pub p50_us: f64,
    /// 99 of 100 are not above.
    pub p99_us: f64,
}

/// How many requests each load has, once it is known how quick the server is.
type Counts = BTreeMap<(&'static str, Workload, usize), usize>;

/// Measures everything that is asked for.
pub async fn measure(options: &Options, servers: &Servers, directory: &Path) -> Measured {
    let mut measured = Measured::default();
    for server in &servers.all {
        say(&format!("memory: {}", server.name));
        measured.memory.insert(server.name, connections_of(server, options.plan.idle).await);
    }
    let mut orders = Orders::default();
    make_known(options.plan.known_orders, servers, &mut orders).await;
    let mut counts = Counts::new();
    for number in 0..options.plan.rounds {
        let round = round(number, options, servers, directory, &mut orders, &mut counts).await;
        measured.rounds.push(round);
    }
    for server in &servers.all {
        measured.memory.entry(server.name).and_modify(|memory| memory.at_end = memory::of(&server.pids()));
    }
    measured
}

/// The memory of a fresh server, and of connections that do nothing.
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
        // A question for an order that nobody made: nothing is stored of it.
        let question = workload::request(Workload::Status, 999_999_999_999);
        for connection in &mut connections {
            connection.exchange(&question).await;
        }
        cpu::quiet(&pids).await;
        per_connection = Some([fresh, each(memory::of(&pids))]);
    }
    Memory { at_start, at_end: at_start, per_connection }
}

/// Makes the orders that repeats and questions are about, everywhere they are asked for.
async fn make_known(count: usize, servers: &Servers, orders: &mut Orders) {
    let asked = |server: &&Server| server.workloads.iter().any(|workload| workload.is_about_known());
    let mut made = 0;
    for server in servers.all.iter().filter(asked) {
        let mut same = Orders::default();
        let (requests, check) = same.prepare(Workload::Create, server.answers, count);
        load(&mut server.target.connect(CONNECTIONS).await, requests, &check).await;
        made = count;
    }
    *orders = Orders::after(made);
}

async fn round(
    number: usize,
    options: &Options,
    servers: &Servers,
    directory: &Path,
    orders: &mut Orders,
    counts: &mut Counts,
) -> Round {
    let mut round = Round::default();
    let syncs = disk::fdatasync(directory, options.plan.syncs);
    round.fdatasync = [micros(percentile(&syncs, 50)), micros(percentile(&syncs, 99))];
    let mut turns: Vec<_> = servers.all.iter().collect();
    let first = number % turns.len().max(1);
    turns.rotate_left(first);
    for server in turns {
        for workload in &server.workloads {
            let turn = Turn { server, workload: *workload, connections: CONNECTIONS, lasting: options.plan.load };
            let (loaded, spent) = turn.run(orders, counts).await;
            let load = figures(&loaded, spent);
            say(&format!(
                "round {} of {}: {}, {}: {:.1} us",
                number + 1,
                options.plan.rounds,
                server.name,
                workload.name(),
                load.cpu_us
            ));
            round.loads.entry(server.name).or_default().insert(workload.name(), load);
        }
        if server.workloads.contains(&Workload::Create) {
            let (workload, lasting) = (Workload::Create, options.plan.latency);
            let turn = Turn { server, workload, connections: FEW_CONNECTIONS, lasting };
            let (loaded, _) = turn.run(orders, counts).await;
            let at = |hundredths| micros(percentile(&loaded.latencies, hundredths));
            round.latencies.insert(server.name, Latency { p50_us: at(50), p99_us: at(99) });
        }
        if server.connections {
            round.handshakes.insert(server.name, handshake(server, options.plan.handshakes).await);
        }
    }
    round
}

fn figures(loaded: &Loaded, [spent, put_off]: [Duration; 2]) -> Load {
    let requests = loaded.latencies.len();
    let each = |time: Duration| micros(time) / requests as f64;
    let per_second = requests as f64 / loaded.elapsed.as_secs_f64();
    Load { requests, cpu_us: each(spent + put_off), put_off_us: each(put_off), per_second }
}

/// CPU of a full handshake, its connection's end included.
async fn handshake(server: &Server, count: usize) -> f64 {
    let pids = server.pids();
    server.target.handshakes(count.div_ceil(10)).await;
    cpu::quiet(&pids).await;
    let before = cpu::Usage::of(&pids);
    server.target.handshakes(count).await;
    cpu::quiet(&pids).await;
    micros(cpu::Usage::of(&pids).since(&before)) / count as f64
}

/// One server's turn at one workload.
struct Turn<'a> {
    server: &'a Server,
    workload: Workload,
    connections: usize,
    lasting: Duration,
}

impl Turn<'_> {
    /// Warms up, then loads; the CPU during the load, and that of what was put off.
    async fn run(&self, orders: &mut Orders, counts: &mut Counts) -> (Loaded, [Duration; 2]) {
        let mut connections = self.server.target.connect(self.connections).await;
        let count = self.warm_up(&mut connections, orders, counts).await;
        let pids = self.server.pids();
        cpu::quiet(&pids).await;
        let (requests, check) = orders.prepare(self.workload, self.server.answers, count);
        let before = cpu::Usage::of(&pids);
        let loaded = load(&mut connections, requests, &check).await;
        let then = cpu::Usage::of(&pids);
        cpu::quiet(&pids).await;
        let spent = [then.since(&before), cpu::Usage::of(&pids).since(&then)];
        (loaded, spent)
    }

    /// The first time, it tells how many requests last as long as they should.
    async fn warm_up(&self, connections: &mut Vec<Connection>, orders: &mut Orders, counts: &mut Counts) -> usize {
        let known = counts.get(&(self.server.name, self.workload, self.connections)).copied();
        let warming = known.map_or(16, |_| 4) * self.connections;
        let (requests, check) = orders.prepare(self.workload, self.server.answers, warming);
        let loaded = load(connections, requests, &check).await;
        known.unwrap_or_else(|| {
            let second = warming as f64 / loaded.elapsed.as_secs_f64();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a count that is far from either end"
            )]
            let count = (second * self.lasting.as_secs_f64()) as usize;
            let count = count.clamp(4 * self.connections, MOST_REQUESTS);
            counts.insert((self.server.name, self.workload, self.connections), count);
            count
        })
    }
}
