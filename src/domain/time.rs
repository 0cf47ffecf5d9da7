//! Points in time as they are stored.

use std::time::Duration;

use serde::Serialize;

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct UnixMillis(pub i64);

/// A UTC day: days since 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixDay(pub i32);

impl UnixMillis {
    /// Returns the UTC day that contains this time.
    #[must_use]
    pub fn day(self) -> UnixDay {
        // The days of any real time fit an i32.
        UnixDay(i32::try_from(self.0.div_euclid(86_400_000)).unwrap_or(i32::MAX))
    }

    /// Returns whole seconds since the epoch, rounded down.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Returns the time `span` later, saturating.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// Returns the duration from this time to `later`; zero if `later` is earlier.
    #[must_use]
    pub fn until(self, later: Self) -> Duration {
        Duration::from_millis(u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0))
    }
}
