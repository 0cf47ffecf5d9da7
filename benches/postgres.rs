//! What creates cost PostgreSQL, beside what it costs to insert such rows one by one.
//!
//! ```text
//! cargo bench --bench postgres [-- ROWS ...]
//! ```
//!
//! A server is started from the installed binaries, with `fsync` on. In turns, 64 callers store deposits through the store,
//! as gateways do, and 64 clients of pgbench insert rows of the same columns and indexes, one a commit. Prints the
//! processor time of the server, all its processes together, for each; asserts nothing about time.

#![expect(clippy::unwrap_used, reason = "a benchmark ends where it cannot go on")]

#[path = "common/cpu.rs"]
#[allow(dead_code, reason = "other benchmarks use the rest")]
mod cpu;
#[path = "common/drafts.rs"]
mod drafts;
#[path = "../tests/support/postgres.rs"]
mod server;

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cpu::Usage;
use drafts::Drafts;
use paybridge::clock::SystemRandomness;
use paybridge::domain::UnixMillis;
use paybridge::rules::{PostgresUrl, Secret, StoreKeys};
use paybridge::store::postgres::{PostgresStore, open};
use paybridge::store::{Creation, Store as _, Verdict};
use server::{Database, Server};

const CALLERS: usize = 64;

/// So many creates and inserts are measured in a turn.
const MEASURED: usize = 30_000;

const TURNS: usize = 3;

fn main() {
    let given: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let smoke = !std::env::args().any(|argument| argument == "--bench");
    let (rows, measured, turns) = match (smoke, given.is_empty()) {
        (true, _) => (vec![0], 512, 1),
        (false, true) => (vec![10_000, 200_000], MEASURED, TURNS),
        (false, false) => (given, MEASURED, TURNS),
    };
    let Some(server) = Server::start(&["fsync=on", "shared_buffers=1GB", "max_wal_size=8GB"]) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(measure(&server, &rows, measured, turns));
}

async fn measure(server: &Server, rows: &[usize], measured: usize, turns: usize) {
    let database = server.database();
    let postmaster = postmaster_of(&database);
    let url = PostgresUrl::parse(&database.url(), |path| path.into()).unwrap();
    let keys = StoreKeys { create_at: None, keys: vec![Secret::new(&[1; 32])] };
    let store = Arc::new(open(&url, &keys, Arc::new(SystemRandomness::default())).unwrap().store);
    let pgbench = Pgbench::prepare(&database);
    print(format_args!("{}", database.sql("SELECT version()")));
    let mut stored = 0;
    for fill in rows {
        let missing = fill.saturating_sub(stored);
        create_all(&store, stored, missing).await;
        stored += missing;
        for _ in 0..turns {
            let (used, took) = used_by(postmaster, create_all(&store, stored, measured)).await;
            tell("the store, 64 callers", stored, measured, used, took);
            let inserts = measured / 2;
            let (used, took) = used_by(postmaster, async { pgbench.run(inserts) }).await;
            tell("pgbench, one by one, 64 clients", stored, inserts, used, took);
            stored += measured;
        }
    }
}

/// What a piece of work costs the server, and how long it takes.
async fn used_by(postmaster: u32, work: impl Future<Output = ()>) -> (Duration, Duration) {
    let (before, began) = (Usage::of(&[postmaster]), Instant::now());
    work.await;
    let took = began.elapsed();
    (Usage::of(&[postmaster]).since(&before), took)
}

fn tell(what: &str, rows: usize, count: usize, used: Duration, took: Duration) {
    // In tenths, so that no part of it is a float.
    let each = used.as_nanos() / 100 / count as u128;
    let a_second = count as u128 * 1_000_000 / took.as_micros().max(1);
    print(format_args!(
        "{rows:>8} rows, {what:<32} {:>4}.{} us of the database's CPU each, {a_second} a second",
        each / 10,
        each % 10
    ));
}

/// Creates so many operations of as many merchants as there are callers.
async fn create_all(store: &Arc<PostgresStore>, from: usize, count: usize) {
    let share = |caller: usize| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            let drafts = Drafts::new(&format!("merchant-{caller}"), "card-eur", store.comparer().clone());
            for number in (from + caller..from + count).step_by(CALLERS) {
                let at = UnixMillis(1_790_000_000_000 + i64::try_from(number / 8).unwrap());
                let created = store.create(drafts.deposit(&format!("order-{number:012}"), at, number as u64)).await;
                assert!(matches!(created.unwrap(), Creation::Created(Verdict::AsDrafted)));
            }
        })
    };
    for caller in (0..CALLERS).map(share).collect::<Vec<_>>() {
        caller.await.unwrap();
    }
}

/// Inserts rows like those of the store, one by one.
struct Pgbench {
    url: String,
    script: tempfile::NamedTempFile,
}

impl Pgbench {
    fn prepare(database: &Database) -> Self {
        database.sql(
            "CREATE TABLE one_by_one (LIKE operations INCLUDING ALL); \
             CREATE TABLE one_by_one_jobs (LIKE provider_jobs INCLUDING ALL)",
        );
        let script = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(script.path(), SCRIPT).unwrap();
        Self { url: database.url(), script }
    }

    fn run(&self, inserts: usize) {
        let each = inserts.div_ceil(CALLERS).to_string();
        let ran = Command::new(program("pgbench"))
            .args(["--no-vacuum", "--protocol=prepared", "--client=64", "--jobs=1", "--transactions", &each, "--file"])
            .arg(self.script.path())
            .arg(&self.url)
            .output()
            .unwrap();
        assert!(ran.status.success(), "pgbench: {}", String::from_utf8_lossy(&ran.stderr));
    }
}

/// A deposit as the store writes it, in a statement and a commit of its own.
const SCRIPT: &str = "\\set id random(1, 9000000000000000)
WITH stored AS (INSERT INTO one_by_one (transaction_id, created_at, amount, kept, bucket, direction, status, provider,
relayed, order_key, digest, v1_digest, v1_members, currency, merchant, order_id, api_key, shop, callback_url,
v1_callback_url, success_url, redirect_url, fields)
VALUES (:id::bigint, 1790000000000, 1050, 1, (:id::bigint % 1024)::smallint, 0, 0, 0, true, decode(md5(:id::bigint::text), 'hex'),
decode('00112233445566778899aabbccddeeff', 'hex'), decode('00112233445566778899aabbccddeeff', 'hex'),
decode(repeat('00', 40), 'hex'), 'EUR', 'merchant-1', 'order-' || :id::bigint, 'acme-live', 'card-eur',
'https://localhost:8443/relay/merchant-1.payin.00112233445566778899aabbccddeeff', 'https://acme.example/cb',
'https://acme.example/done', 'https://localhost:8443/pay/' || :id::bigint || '?expires=1790000000&signature='
|| md5(:id::bigint::text) || md5(:id::bigint::text), decode(repeat('00', 120), 'hex'))
ON CONFLICT DO NOTHING RETURNING transaction_id, bucket, shop)
INSERT INTO one_by_one_jobs (transaction_id, due_at, attempts, bucket, leased, shop)
SELECT transaction_id, 1790000000000, 0, bucket, false, shop FROM stored;
";

/// Where Debian keeps it, or on the path.
fn program(name: &str) -> std::path::PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let found = versions.map(|version| version.path().join("bin").join(name)).filter(|path| path.exists()).max();
    found.unwrap_or_else(|| name.into())
}

fn postmaster_of(database: &Database) -> u32 {
    let file = format!("{}/postmaster.pid", database.sql("SHOW data_directory"));
    std::fs::read_to_string(file).unwrap().lines().next().unwrap().parse().unwrap()
}

fn print(line: std::fmt::Arguments<'_>) {
    use std::io::Write as _;
    writeln!(std::io::stdout().lock(), "{line}").unwrap();
}
