//! What creates cost in the store alone, over the disk of the directory it runs in.
//!
//! ```text
//! cargo bench --bench store [-- ROWS ...]
//! ```
//!
//! Many tasks on one thread store deposits as the gateway does, first into an empty store, then after it holds so many
//! ROWS (10 thousand and 200 thousand unless said otherwise). Prints the CPU of each thread, what was written and how
//! long creates took; asserts nothing about time. The kernel is asked for all of it, by thread.

#![expect(clippy::unwrap_used, reason = "a benchmark ends where it cannot go on")]

#[path = "common/drafts.rs"]
mod drafts;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use drafts::Drafts;
use paybridge::clock::SystemRandomness;
use paybridge::domain::UnixMillis;
use paybridge::rules::{Secret, StoreKeys};
use paybridge::store::sqlite::{SqliteStore, open};
use paybridge::store::{Creation, Draft, Store as _, Verdict};
use paybridge::telemetry::Metrics;

/// How many creates are measured at 64 at once; at fewer, as many as take about as long.
const MEASURED: usize = 60_000;

fn main() {
    let given: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let smoke = !std::env::args().any(|argument| argument == "--bench");
    let (rows, measured) = match (smoke, given.is_empty()) {
        (true, _) => (vec![64], 512),
        (false, true) => (vec![10_000, 200_000], MEASURED),
        (false, false) => (given, MEASURED),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    runtime.block_on(measure(directory.path(), &rows, measured));
}

async fn measure(directory: &Path, rows: &[usize], measured: usize) {
    let keys = StoreKeys { create_at: None, keys: vec![Secret::new(&[1; 32])] };
    let metrics = Arc::new(Metrics::default());
    let path = directory.join("paybridge.db");
    let store = open(&path, &keys, Arc::new(SystemRandomness::default()), Arc::clone(&metrics)).unwrap().store;
    let store = Arc::new(store);
    let mut stored = 0;
    for fill in rows {
        let missing = fill.saturating_sub(stored);
        create_all(&store, stored, missing, 256).await;
        stored += missing;
        for (at_once, count) in [(64, measured), (8, measured / 16)] {
            let before = Threads::now();
            let waits = create_all(&store, stored, count, at_once).await;
            Threads::now().print_since(&before, stored, at_once, count, &waits);
            stored += count;
        }
    }
}

/// Creates so many operations, a share in each task; gives how long each took, sorted.
async fn create_all(store: &Arc<SqliteStore>, from: usize, count: usize, at_once: usize) -> Vec<Duration> {
    let share = |task: usize| {
        let store = Arc::clone(store);
        let drafts = Drafts::new("acme", "card-eur", store.comparer().clone());
        tokio::spawn(async move {
            let mut waits = Vec::with_capacity(count / at_once + 1);
            for number in (from + task..from + count).step_by(at_once) {
                let draft = deposit(&drafts, number);
                let started = Instant::now();
                let created = store.create(draft).await.unwrap();
                waits.push(started.elapsed());
                assert!(matches!(created, Creation::Created(Verdict::AsDrafted)));
            }
            waits
        })
    };
    let mut waits = Vec::with_capacity(count);
    for task in (0..at_once).map(share).collect::<Vec<_>>() {
        waits.extend(task.await.unwrap());
    }
    waits.sort_unstable();
    waits
}

/// A deposit as a v1 create drafts it, which no provider has to be asked about.
fn deposit(drafts: &Drafts, number: usize) -> Draft {
    let created_at = UnixMillis(1_790_000_000_000 + i64::try_from(number / 8).unwrap());
    let draft = drafts.deposit(&format!("order-{number:012}"), created_at, number as u64);
    Draft { provider_job: None, ..draft }
}

/// What the kernel counted of a thread.
#[derive(Debug, Clone, Default)]
struct Thread {
    name: String,
    cpu_ns: u64,
    written_bytes: u64,
    writes: u64,
}

struct Threads {
    at: Instant,
    all: Vec<Thread>,
}

impl Threads {
    fn now() -> Self {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let all = tasks.filter_map(|task| Thread::of(&task.unwrap().path())).collect();
        Self { at: Instant::now(), all }
    }

    fn print_since(&self, before: &Self, rows: usize, at_once: usize, count: usize, waits: &[Duration]) {
        let a_second = count as u128 * 1_000_000 / (self.at - before.at).as_micros().max(1);
        let at = |percent: usize| waits[(waits.len() - 1) * percent / 100].as_micros();
        print(format_args!(
            "{rows} rows, {at_once} at once: {a_second} a second, p50 {} us, p99 {} us, most {} us",
            at(50),
            at(99),
            at(100)
        ));
        for thread in &self.all {
            let Some(was) = before.all.iter().find(|was| was.name == thread.name) else { continue };
            // In hundredths, so that no part of it is a float.
            let each = |now: u64, was: u64| (now - was) * 100 / count as u64;
            let (cpu, writes) = (each(thread.cpu_ns, was.cpu_ns) / 1000, each(thread.writes, was.writes));
            print(format_args!(
                "  {:<16} {:>3}.{:02} us CPU a create, {:>6} bytes in {}.{:02} writes",
                thread.name,
                cpu / 100,
                cpu % 100,
                each(thread.written_bytes, was.written_bytes) / 100,
                writes / 100,
                writes % 100
            ));
        }
    }
}

impl Thread {
    /// `None` when it has ended.
    fn of(task: &Path) -> Option<Self> {
        let read = |file: &str| std::fs::read_to_string(task.join(file)).ok();
        let io = read("io")?;
        let counted =
            |name: &str| io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or_default();
        Some(Self {
            name: read("comm")?.trim().to_owned(),
            cpu_ns: read("schedstat")?.split_whitespace().next()?.parse().ok()?,
            written_bytes: counted("wchar:"),
            writes: counted("syscw:"),
        })
    }
}

fn print(line: std::fmt::Arguments<'_>) {
    use std::io::Write as _;
    writeln!(std::io::stdout().lock(), "{line}").unwrap();
}
