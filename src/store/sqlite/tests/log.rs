//! The write-ahead log under continuous load.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::*;
use crate::store::conformance::audited;
use crate::telemetry::Metrics;

/// Reads from the header of the log how often it was restarted.
fn beginnings(log: &Path) -> u32 {
    let header = fs::read(log).unwrap();
    header[12..16].try_into().map(u32::from_be_bytes).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_is_restarted_long_before_its_bound() {
    let place = Place::new();
    let store = Arc::new(place.open_made().unwrap());
    let log = place.path().with_extension("db-wal");
    created(&*store, deposit("acme", "first")).await;
    let first = beginnings(&log);
    let (numbers, enough) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let callers = (0..64).map(|_| {
        let (store, numbers, enough) = (Arc::clone(&store), Arc::clone(&numbers), Arc::clone(&enough));
        tokio::spawn(async move {
            while !enough.load(Ordering::Relaxed) {
                let number = numbers.fetch_add(1, Ordering::Relaxed);
                created(&*store, deposit("acme", &format!("o{number}"))).await;
            }
        })
    });
    let callers: Vec<_> = callers.collect();
    // The third time: the first two may have been lucky.
    while beginnings(&log) < first + 3 {
        let length = fs::metadata(&log).unwrap().len();
        assert!(length < 64 << 20, "{length} bytes after {} operations", numbers.load(Ordering::Relaxed));
        tokio::task::yield_now().await;
    }
    enough.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
}

/// A store beside another process that has held a read lock since the first order.
struct Held {
    place: Place,
    store: Arc<SqliteStore>,
    faults: Arc<Faults>,
    metrics: Arc<Metrics>,
    reader: rusqlite::Connection,
}

impl Held {
    async fn new() -> Self {
        let (place, metrics) = (Place::new(), Arc::new(Metrics::default()));
        let source = StoreFile::new(&place.path());
        let (faults, random) = (Arc::clone(&source.faults), Arc::new(SystemRandomness::default()));
        let store = open_source(source, &named(&[1]), random, Arc::clone(&metrics)).unwrap().store;
        created(&store, deposit("acme", "first")).await;
        let reader = rusqlite::Connection::open(place.path()).unwrap();
        reader.execute_batch("BEGIN").unwrap();
        let held = Self { place, store: Arc::new(store), faults, metrics, reader };
        held.assert_still_reading();
        held
    }

    fn assert_still_reading(&self) {
        let orders = self.reader.query_row("SELECT count(*) FROM operations", [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(orders, 1, "the reader sees the store as it was");
    }

    fn log_bytes(&self) -> u64 {
        fs::metadata(self.place.path().with_extension("db-wal")).unwrap().len()
    }

    /// Returns the size as the metric has it.
    fn gauge(&self) -> u64 {
        let page = self.metrics.render();
        page.lines().find_map(|line| line.strip_prefix("paybridge_store_log_bytes ")).unwrap().parse().unwrap()
    }

    /// Creates orders, many at once, until the log is longer than `bytes`.
    async fn grow(&self, bytes: u64) {
        let numbers = AtomicU32::new(0);
        let callers = (0..64).map(async |_| {
            while self.log_bytes() <= bytes {
                let number = numbers.fetch_add(1, Ordering::Relaxed);
                created(&*self.store, deposit("acme", &format!("grows {number}"))).await;
            }
        });
        futures_util::future::join_all(callers).await;
    }
}

#[tokio::test]
async fn the_log_grows_while_another_process_reads_it_and_shrinks_afterwards() {
    const USUAL: u64 = 64 << 20;
    let held = Held::new().await;
    // Beyond two attempts to restart it.
    held.grow(5 * USUAL / 2).await;
    created(&*held.store, deposit("acme", "beside")).await;
    held.assert_still_reading();
    assert!(held.gauge() > 2 * USUAL, "{}", held.gauge());
    held.reader.execute_batch("COMMIT").unwrap();
    // The checkpointer notices it, and the next commits restart the log and cut its file.
    let mut orders = 0..1_000_000;
    while held.gauge() > USUAL {
        let order = format!("after {}", orders.next().expect("the log is cut"));
        created(&*held.store, deposit("acme", &order)).await;
    }
    assert!(held.log_bytes() <= USUAL, "{}", held.log_bytes());
}

#[tokio::test]
async fn a_failed_disk_recovers_beside_a_process_that_reads_the_log() {
    let held = Held::new().await;
    let faults: [fn(&Faults, bool); 2] = [Faults::disk_full, Faults::failing_commits];
    let mut acknowledged = Vec::new();
    for (number, fault) in faults.iter().enumerate() {
        for order in ["before", "after"] {
            let draft = deposit("acme", &format!("{order} {number}"));
            acknowledged.push(stored(&draft));
            created(&*held.store, draft).await;
            if order == "before" {
                fault(&held.faults, true);
                acknowledged.extend(create_until_refused(&held.store).await.0);
                assert!(matches!(held.store.probe().await, Err(StoreError::Unavailable(_))));
                fault(&held.faults, false);
                recovered(&held.store).await;
                held.store.probe().await.unwrap();
            }
        }
        held.assert_still_reading();
    }

    // Nor does a start wait for the reader.
    held.store.close().await.unwrap();
    let again = held.place.open_with(&named(&[1])).unwrap();
    held.assert_still_reading();
    held.reader.execute_batch("COMMIT").unwrap();
    for expected in &acknowledged {
        assert_eq!(again.by_id(expected.operation.id).await.unwrap().as_ref(), Some(expected));
    }
    audited(&again).await;
}
