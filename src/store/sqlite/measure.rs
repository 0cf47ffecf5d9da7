//! What a create and a page of a history cost. Prints, asserts nothing about time:
//! `cargo test --release --lib _cost -- --ignored --nocapture`

use std::sync::Arc;
use std::time::Instant;

use super::*;
use crate::clock::SystemRandomness;
use crate::domain::{Bucket, CallbackUrl, State, Status};
use crate::rules::{Secret, StoreKeys};
use crate::store::conformance::{NOW, created, deposit, first_page, withdrawal};
use crate::store::{
    CallbackClaim, CallbackNext, CallbackQuery, CallbackState, CallbackTarget, CallbackTry, Digest, Outbox, TryOutcome,
    V1Part, V1Told,
};

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

/// Operations of one merchant, a tenth of a second apart: most are of one shop, direction and result, one in a thousand
/// is pending.
fn passed(number: u64) -> Draft {
    let order = format!("order-{number:08}");
    let chance = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let mut draft = if chance.is_multiple_of(20) { withdrawal("acme", &order) } else { deposit("acme", &order) };
    draft.v1 = Some(V1Part { digest: Digest([3; 16]), members: None, told: V1Told::Relayed(None) });
    let operation = &mut draft.operation;
    operation.created_at = UnixMillis(NOW.0 + i64::try_from(number * 100).unwrap());
    operation.id = TransactionId::compose(operation.created_at, Bucket::of(&operation.merchant), chance);
    if chance % 7 == 3 {
        operation.shop = ShopCode::new("mobile-kes").unwrap();
    }
    let outcome = match chance % 1000 {
        7 => return draft,
        8..60 => Outcome::Failed,
        _ => Outcome::Success { payer: None },
    };
    operation.state = State::Finished { outcome, at: operation.created_at };
    draft
}

/// Stores operations alone, without their entries and jobs.
async fn fill(store: &SqliteStore, rows: u64) {
    for from in (0..rows).step_by(10_000) {
        let row = |number| NewRow::new(passed(number), &store.vault, None);
        let rows: Vec<_> = (from..rows.min(from + 10_000)).map(row).collect();
        let insert = move |connection: &rusqlite::Connection| {
            rows.iter().try_for_each(|row| row.insert(connection, &row.draft().operation.state, None).map(drop))
        };
        store.writer.submit(insert).await.unwrap();
    }
}

/// The microseconds of a page: the least of some.
async fn page_us(store: &SqliteStore, query: &HistoryQuery) -> (u128, usize) {
    let (mut least, mut found) = (u128::MAX, 0);
    for _ in 0..7 {
        let started = Instant::now();
        found = store.history(query.clone()).await.unwrap().items.len();
        least = least.min(started.elapsed().as_micros());
    }
    (least, found)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn histories_cost() {
    let rows = std::env::var("PAYBRIDGE_ROWS").map_or(1_000_000, |text| text.parse().unwrap());
    let directory = tempfile::tempdir_in(std::env::var("CARGO_MANIFEST_DIR").unwrap() + "/target").unwrap();
    let path = directory.path().join("paybridge.db");
    let keys = StoreKeys { create_at: None, keys: vec![Secret::new(&[1; 32])] };
    let store = open(&path, &keys, Arc::new(SystemRandomness::default()), Arc::default()).unwrap().store;
    fill(&store, rows).await;
    let first = first_page("acme");
    let middle = UnixMillis(NOW.0 + i64::try_from(rows * 50).unwrap());
    let window = HistoryQuery {
        created_from: Some(middle),
        created_to: Some(UnixMillis(middle.0 + 3_600_000)),
        ..first.clone()
    };
    let pending = HistoryQuery { status: Some(Status::Pending), ..first.clone() };
    let payouts = HistoryQuery { direction: Some(Direction::Payout), ..first.clone() };
    for (name, query) in [
        ("the first page", first.clone()),
        ("page 20", HistoryQuery { skip: 950, ..first.clone() }),
        ("page 200", HistoryQuery { skip: 9_950, ..first.clone() }),
        ("the middle page", HistoryQuery { skip: rows / 2, ..first.clone() }),
        ("the last page", HistoryQuery { skip: rows - 50, ..first.clone() }),
        ("beyond the end", HistoryQuery { skip: rows * 1000, ..first.clone() }),
        ("pending (1 in 1000)", pending.clone()),
        ("pending, last page", HistoryQuery { skip: rows / 1000 - 50, ..pending }),
        ("payouts (1 in 20)", payouts),
        ("an hour in the middle", window.clone()),
        ("its page 20", HistoryQuery { skip: 950, ..window }),
    ] {
        let (us, found) = page_us(&store, &query).await;
        println!("{rows} rows, {name:<22} {found:>3} found: {us:>7} us");
    }
}

/// What the worker asks for, with many callbacks waiting for a dead target and one for a live one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn the_outbox_costs() {
    let rows = std::env::var("PAYBRIDGE_ROWS").map_or(100_000, |text| text.parse().unwrap());
    let directory = tempfile::tempdir_in(std::env::var("CARGO_MANIFEST_DIR").unwrap() + "/target").unwrap();
    let path = directory.path().join("paybridge.db");
    let keys = StoreKeys { create_at: None, keys: vec![Secret::new(&[1; 32])] };
    let store = Arc::new(open(&path, &keys, Arc::new(SystemRandomness::default()), Arc::default()).unwrap().store);
    let failed = |mut draft: Draft| {
        draft.operation.state = State::Finished { outcome: Outcome::Failed, at: NOW };
        draft
    };
    let (a_second, cpu) = run(&store, drafts(0, rows, false).into_iter().map(failed).collect(), 256).await;
    println!("{rows} results: {a_second}/s, {cpu} us CPU a result");
    let mut live = deposit("live", "live");
    live.operation.callback_url = CallbackUrl::new("https://live.example/").unwrap();
    created(&*store, failed(live)).await;
    let target = CallbackTarget::Origin("https://acme.example:443".into());
    for round in 0..4 {
        let started = Instant::now();
        assert_eq!(store.callback_queues().await.unwrap().len(), 2);
        let queues = started.elapsed();
        let started = Instant::now();
        let shares = vec![(target.clone(), 64)];
        let claim = CallbackClaim { shares, now: NOW, lease_until: UnixMillis(NOW.0 + 10_000) };
        let jobs = store.claim_callbacks(claim).await.unwrap();
        let claim = started.elapsed();
        let started = Instant::now();
        for job in &jobs {
            let outcome = TryOutcome::Error("no answer".into());
            let tried = CallbackTry { at: NOW, duration: std::time::Duration::from_secs(1), outcome };
            store.callback_tried(job.id, tried, CallbackNext::RetryAt(UnixMillis(NOW.0 + 5000))).await.unwrap();
        }
        let tried = started.elapsed() / 64;
        let started = Instant::now();
        let size = store.outbox_size().await.unwrap();
        println!(
            "{round}: queues {queues:?}, a claim of {} {claim:?}, a try {tried:?}, the size {:?} ({} pending)",
            jobs.len(),
            started.elapsed(),
            size.pending
        );
    }
    let query = |name: &str| CallbackQuery {
        states: vec![CallbackState::Pending],
        merchant: Some(MerchantId::new(name).unwrap()),
        order_id: None,
        since: None,
        until: None,
        after: None,
        limit: 50,
    };
    for name in ["acme", "live", "none"] {
        let started = Instant::now();
        let found = store.callbacks(query(name)).await.unwrap().len();
        println!("a list of {name}: {found} in {:?}", started.elapsed());
    }
    let started = Instant::now();
    let reopening = Arc::into_inner(store).unwrap();
    drop(reopening);
    let closed = started.elapsed();
    let started = Instant::now();
    let store = open(&path, &keys, Arc::new(SystemRandomness::default()), Arc::default()).unwrap().store;
    println!("closing {closed:?}, opening {:?}", started.elapsed());
    let started = Instant::now();
    let audit = store.audit(Arc::new(|_| {})).await.unwrap();
    println!("an audit of {} callbacks {:?}", audit.callbacks, started.elapsed());
}
