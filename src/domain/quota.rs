//! Rates.

use std::num::NonZeroU32;

/// The quota of a rate limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// The tokens added per second.
    pub per_second: NonZeroU32,
    /// The most tokens at once.
    pub burst: NonZeroU32,
}
