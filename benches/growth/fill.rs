//! Fills a store as years of use would: deposits of some merchants with their results and ledger entries.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

use paybridge::clock::SystemRandomness;
use paybridge::domain::{CallbackSender, Outcome, UnixMillis};
use paybridge::store::sqlite::{SqliteStore, open};
use paybridge::store::{CompletionOutcome, InsertOutcome, ResultSource, Store};
use paybridge::store_settings::StoreKeys;

use super::common::say;
use super::drafts::Drafts;
use super::support::request::unix_now;

/// Merchants of the rules; each has about the same share of the deposits.
const MERCHANTS: [&str; 3] = ["acme", "beta", "gamma"];

/// The concurrent creates: two full commits.
const CONCURRENT: usize = 512;

/// The time between two creations: ten million cover three months.
const APART_MILLIS: i64 = 800;

/// One operation of this many has failed.
const ONE_FAILED: u64 = 20;

/// One operation of this many is still pending.
const ONE_PENDING: u64 = 1000;

/// The most operations; the first one's time follows from it.
const MOST: i64 = 10_000_000;

/// Adds operations to the store of a gateway that does not run, from number `from` to before `to`, on all cores.
pub fn fill(root: &Path, from: u64, to: u64) {
    let keys = StoreKeys { create_at: Some(root.join("secrets/store.key")), keys: Vec::new() };
    let path = root.join("data/paybridge.db");
    let store = open(&path, &keys, Arc::new(SystemRandomness::default()), Arc::default()).unwrap().store;
    let filling = Arc::new(Filling::of(store, from, to));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..CONCURRENT {
            let filling = filling.clone();
            tasks.spawn(async move { filling.run().await });
        }
        tasks.join_all().await;
        filling.store.close().await.unwrap();
    });
}

/// Reports whether the store of a gateway that does not run passes the checks of `store check`.
pub fn is_clean(root: &Path) -> bool {
    let keys = StoreKeys { create_at: Some(root.join("secrets/store.key")), keys: Vec::new() };
    let path = root.join("data/paybridge.db");
    let store = open(&path, &keys, Arc::new(SystemRandomness::default()), Arc::default()).unwrap().store;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(store.audit(Arc::new(|_| {}))).unwrap().is_clean()
}

struct Filling {
    store: SqliteStore,
    drafts: [Drafts; MERCHANTS.len()],
    begins: i64,
    next: AtomicU64,
    from: u64,
    to: u64,
    started: Instant,
}

impl Filling {
    fn of(store: SqliteStore, from: u64, to: u64) -> Self {
        let drafts = MERCHANTS.map(|merchant| Drafts::new(merchant, "card-eur", store.fingerprint_key().clone()));
        let begins = i64::try_from(unix_now()).unwrap() * 1000 - MOST * APART_MILLIS;
        Self { store, drafts, begins, next: AtomicU64::new(from), from, to, started: Instant::now() }
    }

    async fn run(&self) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.to {
                return;
            }
            self.add(number).await;
            self.log_progress(number);
        }
    }

    /// Creates an operation as its merchant's request would, and completes it as its provider's report would.
    async fn add(&self, number: u64) {
        let now = UnixMillis(self.begins + i64::try_from(number).unwrap() * APART_MILLIS);
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let drafts = &self.drafts[usize::try_from(mixed >> 40).unwrap() % MERCHANTS.len()];
        let mut draft = drafts.deposit(&format!("filled-{mixed:016x}"), now, mixed >> 20);
        let id = draft.operation.id;
        // No provider job and no callback: those of old operations are not measured.
        draft.provider_job = None;
        draft.v1 = Some(CallbackSender::Relayed(None));
        assert!(matches!(self.store.create(draft).await.unwrap(), InsertOutcome::Created(_)), "{number}");
        if number % ONE_PENDING == 7 {
            return;
        }
        let outcome = if number % ONE_FAILED == 3 { Outcome::Failed } else { Outcome::Success { payer: None } };
        let completed =
            self.store.complete(id, outcome, ResultSource::PROVIDER, UnixMillis(now.0 + 30_000)).await.unwrap();
        assert_eq!(completed, CompletionOutcome::Completed, "{number}");
    }

    fn log_progress(&self, number: u64) {
        let done = number - self.from + 1;
        if done.is_multiple_of(500_000) {
            let each = self.started.elapsed().as_micros() / u128::from(done);
            say(&format!("{} of {} rows, {each} us each", number + 1, self.to));
        }
    }
}
