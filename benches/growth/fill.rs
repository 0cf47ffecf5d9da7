//! Fills a store with what years of use leave: deposits of some merchants with their results and ledger entries.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

use paybridge::clock::SystemRandomness;
use paybridge::domain::{Outcome, UnixMillis};
use paybridge::rules::StoreKeys;
use paybridge::store::sqlite::{SqliteStore, open};
use paybridge::store::{CallbackSender, CompletionOutcome, InsertOutcome, Store};

use super::common::say;
use super::drafts::Drafts;
use super::support::request::unix_now;

/// Of the rules' merchants, each with about the same share.
const MERCHANTS: [&str; 3] = ["acme", "beta", "gamma"];

/// How many wait for a commit together: two full ones.
const CONCURRENT: usize = 512;

/// Between two creations: ten million go back three months.
const APART_MILLIS: i64 = 800;

/// One in so many failed.
const ONE_FAILED: u64 = 20;

/// One in so many is still pending.
const ONE_PENDING: u64 = 1000;

/// The most that is filled; tells where time begins.
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
            tasks.spawn(async move { filling.go_on().await });
        }
        tasks.join_all().await;
        filling.store.close().await.unwrap();
    });
}

/// Whether the store of a gateway that does not run is as a store must be.
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

    async fn go_on(&self) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.to {
                return;
            }
            self.add(number).await;
            self.tell(number);
        }
    }

    /// Creates an operation as its merchant's request did, and books its result as its provider's report did.
    async fn add(&self, number: u64) {
        let now = UnixMillis(self.begins + i64::try_from(number).unwrap() * APART_MILLIS);
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let drafts = &self.drafts[usize::try_from(mixed >> 40).unwrap() % MERCHANTS.len()];
        let mut draft = drafts.deposit(&format!("filled-{mixed:016x}"), now, mixed >> 20);
        let id = draft.operation.id;
        // It waits for its customer, and nobody is told: what was told long ago is not what is measured.
        draft.provider_job = None;
        draft.v1 = Some(CallbackSender::Relayed(None));
        assert!(matches!(self.store.create(draft).await.unwrap(), InsertOutcome::Created(_)), "{number}");
        if number % ONE_PENDING == 7 {
            return;
        }
        let outcome = if number % ONE_FAILED == 3 { Outcome::Failed } else { Outcome::Success { payer: None } };
        let booked = self.store.complete(id, outcome, UnixMillis(now.0 + 30_000)).await.unwrap();
        assert_eq!(booked, CompletionOutcome::Completed, "{number}");
    }

    fn tell(&self, number: u64) {
        let done = number - self.from + 1;
        if done.is_multiple_of(500_000) {
            let each = self.started.elapsed().as_micros() / u128::from(done);
            say(&format!("{} of {} rows, {each} us each", number + 1, self.to));
        }
    }
}
