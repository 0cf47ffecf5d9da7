//! Time and randomness, injected: nothing else in the crate reads the wall clock or the system's random source.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::{SecureRandom, SystemRandom};

use crate::domain::UnixMillis;

/// Tells the time of day.
pub trait Clock: Send + Sync + 'static {
    /// Now, as the store and signatures count it.
    fn now(&self) -> UnixMillis;
}

/// Gives unpredictable bytes.
pub trait Random: Send + Sync + 'static {
    /// Fills `bytes`.
    fn fill(&self, bytes: &mut [u8]);

    /// An unpredictable number.
    fn number(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    fn now(&self) -> UnixMillis {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        UnixMillis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }
}

/// The operating system's random source, through the crypto provider.
#[derive(Debug, Default)]
pub struct SystemRandomness(SystemRandom);

impl Random for SystemRandomness {
    fn fill(&self, bytes: &mut [u8]) {
        // The provider draws from the kernel after its start-up self-test; there is nothing sensible to do without it,
        // and continuing with predictable bytes would forge links and repeat nonces.
        self.0.fill(bytes).expect("the system's random source answers");
    }
}

/// A clock that a test moves by hand.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that stands at `now`.
    #[must_use]
    pub const fn at(now: UnixMillis) -> Self {
        Self(AtomicI64::new(now.0))
    }

    /// Moves the clock forward.
    pub fn advance(&self, span: Duration) {
        self.0.fetch_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> UnixMillis {
        UnixMillis(self.0.load(Ordering::SeqCst))
    }
}
