//! What a create costs. Prints, asserts nothing about time:
//! `cargo test --release --lib creates_cost -- --ignored --nocapture`

use std::sync::Arc;
use std::time::Instant;

use super::*;
use crate::clock::SystemRandomness;
use crate::rules::{Secret, StoreKeys};
use crate::store::conformance::{created, deposit};

/// CPU time of this process, user and system, in microseconds (in steps of 10 ms).
fn cpu_us() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    let field = |number: usize| after_name.split_whitespace().nth(number).unwrap().parse::<u64>().unwrap();
    (field(11) + field(12)) * 10_000
}

fn drafts(from: usize, count: usize, job: bool) -> Vec<Draft> {
    let draft = |number: usize| {
        let mut draft = deposit("acme", &format!("order-{number:08}"));
        draft.fields.sent =
            r#"{"first_name":"Ada","last_name":"Lovelace","email":"ada@example.com","bank":"x"}"#.into();
        draft.comparison.kept = Kept::Names(["bank".into(), "email".into(), "first_name".into()].into());
        draft.provider_job = job.then_some(draft.operation.created_at);
        draft
    };
    (from..from + count).map(draft).collect()
}

/// Creates everything, `concurrent` at a time (it divides the number of drafts); gives creates a second and CPU microseconds a create.
async fn run(store: &Arc<SqliteStore>, mut drafts: Vec<Draft>, concurrent: usize) -> (u128, u64) {
    let total = drafts.len();
    let shares: Vec<_> = (0..concurrent).map(|_| drafts.split_off(drafts.len() - total / concurrent)).collect();
    let (started, cpu) = (Instant::now(), cpu_us());
    let share = |share: Vec<Draft>| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            for draft in share {
                created(&*store, draft).await;
            }
        })
    };
    for task in shares.into_iter().map(share).collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let spent = cpu_us() - cpu;
    let total = total.max(1);
    (total as u128 * 1_000_000 / started.elapsed().as_micros().max(1), spent / total as u64)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn creates_cost() {
    let directory = tempfile::tempdir_in(std::env::var("CARGO_MANIFEST_DIR").unwrap() + "/target").unwrap();
    let path = directory.path().join("paybridge.db");
    let keys = StoreKeys { create_at: None, keys: vec![Secret::new(&[1; 32])] };
    let open = || open(&path, &keys, Arc::new(SystemRandomness::default()), Arc::default()).unwrap().store;
    let store = Arc::new(open());
    let mut rows = 0;
    for (fill, concurrent, job) in
        [(0, 64, false), (0, 256, false), (0, 64, true), (0, 1, false), (179_200, 64, false), (0, 256, false)]
    {
        run(&store, drafts(rows, fill, false), 256).await;
        rows += fill;
        let count = if concurrent == 1 { 2048 } else { 20_480 };
        let (a_second, cpu) = run(&store, drafts(rows, count, job), concurrent).await;
        println!("{rows:>7} rows, {concurrent:>3} at once, job {job}: {a_second:>6}/s, {cpu:>3} us CPU a create");
        rows += count;
    }
    let size = |extension: &str| std::fs::metadata(path.with_extension(extension)).map_or(0, |file| file.len() >> 20);
    println!("file {} MiB, log {} MiB", size("db"), size("db-wal"));
    let ids = drafts(0, 1, false);
    let (started, lookups) = (Instant::now(), 100_000);
    for _ in 0..lookups {
        let operation = &ids[0].operation;
        store
            .by_order(&operation.merchant, operation.direction(), &operation.order_id)
            .await
            .unwrap()
            .operation()
            .unwrap();
    }
    println!("lookup by order: {} ns", started.elapsed().as_nanos() / lookups);
}
