//! Time and randomness, injected: nothing else in the crate reads the wall clock or the system's random source.
//!
//! The wall clock dates what is stored, signed and shown. It can be set at any moment, so a wait that ends in this
//! process goes by the monotonic clock, and [`ClockJumps`] reports how far stored times can be relied on.

mod jumps;
#[cfg(test)]
pub(crate) mod testing;

use std::cell::RefCell;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::{SecureRandom, SystemRandom};

pub use self::jumps::{ClockJumps, DatedWaits};
use crate::domain::UnixMillis;

/// A source of the current time.
pub trait Clock: Send + Sync + 'static {
    /// Returns the current time, by the wall clock.
    fn now(&self) -> UnixMillis;

    /// Returns a reading of the monotonic clock, which cannot be set.
    fn monotonic(&self) -> Instant;
}

/// A source of unpredictable bytes.
pub trait Random: Send + Sync + 'static {
    /// Fills `bytes` with unpredictable bytes.
    fn fill(&self, bytes: &mut [u8]);

    /// Returns an unpredictable number.
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

    fn monotonic(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

/// The operating system's random source, through the crypto provider.
///
/// A request needs a few short numbers, and drawing 8 bytes costs the provider as much as drawing hundreds. So each
/// thread draws a stock of bytes and serves short requests from it. No byte is used twice, and used bytes are erased
/// from the stock.
#[derive(Debug, Default)]
pub struct SystemRandomness(SystemRandom);

/// How many bytes a thread draws at once.
const STOCK_BYTES: usize = 512;

/// Random bytes drawn in advance; those from `used` on are unused.
struct Stock {
    bytes: [u8; STOCK_BYTES],
    used: usize,
}

thread_local! {
    static DRAWN: RefCell<Stock> = const { RefCell::new(Stock { bytes: [0; STOCK_BYTES], used: STOCK_BYTES }) };
}

impl Stock {
    /// Copies the next unused bytes into `wanted`, which is at most [`STOCK_BYTES`] long, and erases them from the stock.
    fn take(&mut self, wanted: &mut [u8], draw: impl FnOnce(&mut [u8])) {
        if STOCK_BYTES - self.used < wanted.len() {
            draw(&mut self.bytes);
            self.used = 0;
        }
        let (_, unused) = self.bytes.split_at_mut(self.used);
        let (next, _) = unused.split_at_mut(wanted.len());
        wanted.copy_from_slice(next);
        next.fill(0);
        self.used += wanted.len();
    }
}

impl SystemRandomness {
    fn draw(&self, bytes: &mut [u8]) {
        // The provider draws from the kernel after its start-up self-test. If that fails, nothing sensible can follow:
        // predictable bytes would make links forgeable and repeat nonces.
        self.0.fill(bytes).expect("the system's random source answers");
    }
}

impl Random for SystemRandomness {
    fn fill(&self, bytes: &mut [u8]) {
        // Long values, such as keys, do not go through the stock.
        if bytes.len() > STOCK_BYTES / 16 {
            return self.draw(bytes);
        }
        DRAWN.with_borrow_mut(|stock| stock.take(bytes, |bytes| self.draw(bytes)));
    }
}

/// A clock that a test sets by hand.
#[derive(Debug)]
pub struct ManualClock {
    wall: AtomicI64,
    started: Instant,
    passed_millis: AtomicU64,
}

impl ManualClock {
    /// Creates a clock that shows `now`.
    #[must_use]
    pub fn at(now: UnixMillis) -> Self {
        Self { wall: AtomicI64::new(now.0), started: SystemClock.monotonic(), passed_millis: AtomicU64::new(0) }
    }

    /// Lets time pass.
    pub fn advance(&self, span: Duration) {
        self.set_ahead(i64::try_from(span.as_millis()).unwrap_or(i64::MAX));
        self.passed_millis.fetch_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// Sets the wall clock ahead by this many milliseconds, or back, while no time passes.
    pub fn set_ahead(&self, millis: i64) {
        self.wall.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> UnixMillis {
        UnixMillis(self.wall.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Instant {
        self.started + Duration::from_millis(self.passed_millis.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn stocked_bytes_are_used_once_and_erased() {
        let mut stock = Stock { bytes: [0; STOCK_BYTES], used: STOCK_BYTES };
        let mut draws = 0_u8;
        let mut seen = Vec::new();
        for _ in 0..100 {
            let mut wanted = [0; 12];
            stock.take(&mut wanted, |bytes| {
                draws += 1;
                // Each byte pair of a stock is unique.
                for (place, byte) in bytes.chunks_exact_mut(2).enumerate() {
                    byte.copy_from_slice(&[draws, u8::try_from(place).unwrap()]);
                }
            });
            seen.push(wanted);
            assert!(stock.bytes[..stock.used].iter().all(|byte| *byte == 0));
        }
        // 42 times 12 bytes fit in a stock of 512.
        assert_eq!(draws, 3);
        assert_eq!(seen.iter().collect::<HashSet<_>>().len(), 100);
    }

    #[test]
    fn numbers_and_long_secrets_are_all_different() {
        let random = SystemRandomness::default();
        let numbers: HashSet<u64> = (0..1000).map(|_| random.number()).collect();
        assert_eq!(numbers.len(), 1000);
        let (mut key, mut other) = ([0; 32], [0; 600]);
        random.fill(&mut key);
        random.fill(&mut other);
        assert_ne!(key, [0; 32]);
        assert!(other.chunks(32).all(|chunk| chunk != &key[..chunk.len()]));
        let of_other_thread = std::thread::spawn(|| SystemRandomness::default().number()).join().unwrap();
        assert!(!numbers.contains(&of_other_thread));
    }
}
