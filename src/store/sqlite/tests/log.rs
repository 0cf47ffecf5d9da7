//! The write-ahead log under continuous load.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::*;

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
