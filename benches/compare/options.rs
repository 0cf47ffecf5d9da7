//! What is asked for on the command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

const HELP: &str = "\
Compares Paybridge with other servers on this machine; benches/compare.sh runs it.

  --quick          three short rounds
  --smoke          only whether everything works
  --only A,B       only these servers and workloads (names as in the tables); nginx always runs
  --baseline BIN   measures another paybridge binary beside this one
  --counters       also prints what the processor counts (perf stat), in thousands a request: instructions and cycles, user
                   and kernel; times are no measure then
  --out DIR        where compare.md, compare.json and compare.svg are written: target/compare, or a directory below it
                   for --quick and --smoke

PAYBRIDGE_BIN names another binary to be measured in place of this build's.
PAYBRIDGE_REQUIRE_TOOLS=1 fails when another server is not installed, instead of leaving it out.";

/// What the process is to be.
pub enum Asked {
    /// The benchmark.
    Measure(Options),
    /// The bare server, for the benchmark that started it.
    Floor {
        /// Where it listens.
        address: SocketAddr,
        /// The directory of its certificate.
        certs: PathBuf,
    },
    /// A text.
    Help(String),
}

/// The benchmark's options.
pub struct Options {
    /// How much is done.
    pub plan: Plan,
    /// Names of servers and workloads; empty: all.
    pub only: Vec<String>,
    /// Whether nginx is left out too when it is not named.
    pub alone: bool,
    /// Another binary to be measured beside.
    pub baseline: Option<PathBuf>,
    /// Whether instructions and cycles are counted.
    pub counters: bool,
    /// Where the results go.
    pub out: PathBuf,
}

impl Options {
    fn new() -> Self {
        let out = PathBuf::new();
        Self { plan: FULL, only: Vec::new(), alone: false, baseline: None, counters: false, out }
    }
}

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// What it is called in the report.
    pub name: &'static str,
    /// Where its results go, unless told.
    out: &'static str,
    /// Every server has a turn in each.
    pub rounds: usize,
    /// How long a workload is to last at 64 connections.
    pub load: Duration,
    /// And at 8.
    pub latency: Duration,
    /// Full handshakes of a server in a round.
    pub handshakes: usize,
    /// Connections that do nothing, whose memory is looked at.
    pub idle: usize,
    /// Writes to the disk whose time is looked at in a round.
    pub syncs: usize,
    /// Orders that repeats and questions are about.
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

/// Reads the command line. Cargo adds `--bench` when it measures; without it, as in `cargo test --benches`, nothing but
/// Paybridge and the floor is looked at, and only briefly, unless more is asked for.
pub fn read(arguments: impl Iterator<Item = String>) -> Asked {
    let mut options = Options::new();
    let mut arguments = arguments.peekable();
    let mut measured = false;
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_else(|| panic!("{argument} takes a value\n\n{HELP}"));
        match &*argument {
            "--bench" => measured = true,
            "--quick" => (options.plan, measured) = (QUICK, true),
            "--smoke" => (options.plan, measured) = (SMOKE, true),
            "--counters" => options.counters = true,
            "--only" => options.only = value().split(',').map(str::to_owned).collect(),
            "--baseline" => options.baseline = Some(value().into()),
            "--out" => options.out = value().into(),
            "--floor" => return Asked::Floor { address: value().parse().unwrap(), certs: value().into() },
            "--help" | "-h" => return Asked::Help(HELP.to_owned()),
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
    Asked::Measure(options)
}
