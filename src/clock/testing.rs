//! Waits of tests for other threads and processes, and the seeds of their random numbers.

use std::io::Write as _;
use std::time::Duration;

use tokio::time::Instant;

use super::{Random as _, SystemRandomness};

/// Longer than anything takes that a test waits for.
const WAIT_LIMIT: Duration = Duration::from_mins(1);

const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Blocks until the condition holds; panics if it never does.
#[track_caller]
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_LIMIT;
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Waits until the condition holds; panics if it never does.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_LIMIT;
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Returns the seed that `PAYBRIDGE_SEED` gives, or a new one, and shows it.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("PAYBRIDGE_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| SystemRandomness::default().number());
    let _ = writeln!(std::io::stderr(), "PAYBRIDGE_SEED={seed}");
    seed
}
