//! Lengths as numbers of 64 bits.

/// A length or a count, in 64 bits.
#[must_use]
#[expect(clippy::as_conversions, reason = "`u64::from` does not take a `usize`, and none is wider than 64 bits")]
pub const fn wide(length: usize) -> u64 {
    length as u64
}
