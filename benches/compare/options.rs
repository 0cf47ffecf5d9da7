//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::common::counters::Counter;

const HELP: &str = "\
Compares Paybridge with other servers on this machine; benches/compare.sh runs it.

  --quick          three short rounds
  --smoke          only checks that everything works
  --only A,B       only these servers and workloads (names as in the tables); nginx always runs
  --baseline BIN   measures another paybridge binary beside this one
  --counters       also prints the processor's counters (perf stat), in thousands per request: instructions and cycles, user
                   and kernel; times are not meaningful then
  --callgrind      counts the instructions and allocations of a Paybridge under valgrind; benches/instructions.sh starts it
  --out DIR        where compare.md, compare.json and compare.svg are written: target/compare, or a directory below it
                   for --quick, --smoke and --callgrind

PAYBRIDGE_BIN names another binary to measure in place of this build's.
PAYBRIDGE_TEST_STORE=postgres puts Paybridge's store into PostgreSQL; the figures are those of the gateway alone.
PAYBRIDGE_REQUIRE_TOOLS=1 fails when another server is not installed, instead of leaving it out.";

/// What the process is to do.
pub enum RunMode {
    /// Run the benchmark.
    Measure(Options),
    /// Run the bare server, for the benchmark that started it.
    Floor {
        /// The address to listen on.
        address: SocketAddr,
        /// The directory of its certificate.
        certs: PathBuf,
    },
    /// Print a text.
    Help(String),
}

/// The benchmark's options.
pub struct Options {
    /// The sizes and counts of a run.
    pub plan: Plan,
    /// Names of servers and workloads; empty: all.
    pub only: Vec<String>,
    /// Whether nginx is left out too when it is not named.
    pub alone: bool,
    /// Another binary to measure too.
    pub baseline: Option<PathBuf>,
    /// Counts instructions too.
    pub counters: Option<Counter>,
    /// The directory of the results.
    pub out: PathBuf,
}

impl Options {
    fn new() -> Self {
        let out = PathBuf::new();
        Self { plan: FULL, only: Vec::new(), alone: false, baseline: None, counters: None, out }
    }
}

/// The sizes and counts of a run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Its name in the report.
    pub name: &'static str,
    /// The default directory of its results.
    out: &'static str,
    /// The rounds: every server has a turn in each.
    pub rounds: usize,
    /// The duration of a workload at 64 connections.
    pub load: Duration,
    /// The duration at 8 connections.
    pub latency: Duration,
    /// The full handshakes of a server in a round.
    pub handshakes: usize,
    /// The idle connections whose memory is measured.
    pub idle: usize,
    /// The disk writes measured in a round.
    pub syncs: usize,
    /// The orders for repeats and status reads.
    pub known_orders: usize,
}

const FULL: Plan = Plan {
    name: "full",
    out: "target/compare",
    rounds: 5,
    load: Duration::from_millis(2500),
    latency: Duration::from_millis(1500),
    handshakes: 600,
    idle: 2000,
    syncs: 200,
    known_orders: 20_000,
};

const QUICK: Plan = Plan {
    name: "quick",
    out: "target/compare/quick",
    rounds: 3,
    load: Duration::from_millis(700),
    latency: Duration::from_millis(500),
    handshakes: 200,
    idle: 500,
    syncs: 100,
    known_orders: 5000,
};

const SMOKE: Plan = Plan {
    name: "smoke: its figures mean nothing",
    out: "target/compare/smoke",
    rounds: 1,
    load: Duration::from_millis(30),
    latency: Duration::from_millis(20),
    handshakes: 5,
    idle: 20,
    syncs: 5,
    known_orders: 100,
};

/// A program runs fifty times as long under valgrind; its counts repeat.
const CALLGRIND: Plan = Plan {
    name: "callgrind: its times mean nothing",
    out: "target/compare/callgrind",
    rounds: 3,
    load: Duration::from_secs(5),
    latency: Duration::from_millis(20),
    handshakes: 5,
    idle: 5,
    syncs: 5,
    known_orders: 500,
};

/// Parses the command line. Cargo adds `--bench` for measurements; without it, as in `cargo test --benches`, only Paybridge
/// and the floor run, and only briefly, unless other options are given.
pub fn read(arguments: impl Iterator<Item = String>) -> RunMode {
    let mut options = Options::new();
    let mut arguments = arguments.peekable();
    let mut measured = false;
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_else(|| panic!("{argument} takes a value\n\n{HELP}"));
        match &*argument {
            "--bench" => measured = true,
            "--quick" => (options.plan, measured) = (QUICK, true),
            "--smoke" => (options.plan, measured) = (SMOKE, true),
            "--counters" => options.counters = Some(Counter::Perf),
            "--callgrind" => {
                (options.plan, measured) = (CALLGRIND, true);
                (options.counters, options.alone) = (Some(Counter::Callgrind), true);
            }
            "--only" => options.only = value().split(',').map(str::to_owned).collect(),
            "--baseline" => options.baseline = Some(value().into()),
            "--out" => options.out = value().into(),
            "--floor" => return RunMode::Floor { address: value().parse().unwrap(), certs: value().into() },
            "--help" | "-h" => return RunMode::Help(HELP.to_owned()),
            other => panic!("{other} is unknown\n\n{HELP}"),
        }
    }
    if !measured {
        options.plan = SMOKE;
        options.only = vec!["floor".to_owned(), "paybridge".to_owned()];
        options.alone = true;
    }
    if options.out.as_os_str().is_empty() {
        options.out = options.plan.out.into();
    }
    RunMode::Measure(options)
}
