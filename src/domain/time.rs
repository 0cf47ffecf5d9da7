//! Points in time as the store keeps them.

use std::time::Duration;

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMillis(pub i64);

/// A UTC day: days since 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixDay(pub i32);

impl UnixMillis {
    /// The UTC day it falls into.
    #[must_use]
    pub fn day(self) -> UnixDay {
        // The days of an i64 of milliseconds fit an i64; those of any real moment fit an i32.
        UnixDay(i32::try_from(self.0.div_euclid(86_400_000)).unwrap_or(i32::MAX))
    }

    /// Whole seconds since the epoch, rounded down.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// This point moved later by `span`, saturating.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// How far `later` is ahead of this point; zero when it is not.
    #[must_use]
    pub fn until(self, later: Self) -> Duration {
        Duration::from_millis(u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0))
    }
}
