//! Lookup tables for handles of labelled metrics, without locks or hashing.
//!
//! The label values of hot metrics are few and fixed in the code (routes, statuses, reasons). Scanning a few of them is
//! cheaper than hashing one, and the size of the table bounds the number of series.

use std::sync::OnceLock;

/// The label value for everything beyond a full table.
pub(crate) const OTHER: &str = "other";

/// A table of `N` handles that fills up as names occur; filled slots are only read. Once it is full, all further names
/// share one handle.
#[derive(Debug)]
pub(crate) struct Slots<K, T, const N: usize> {
    named: [OnceLock<(K, T)>; N],
    others: OnceLock<T>,
}

impl<K: Copy + Eq, T, const N: usize> Slots<K, T, N> {
    /// Creates an empty table.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self { named: [const { OnceLock::new() }; N], others: OnceLock::new() }
    }

    /// Returns the handle of `name`, created on first use. In a full table all further names share the handle of
    /// `other`.
    pub(crate) fn find(&self, name: K, other: K, make: impl Fn(K) -> T) -> &T {
        for slot in &self.named {
            // A slot that another thread has just taken for another name is skipped like any taken slot.
            let (taken, handle) = slot.get_or_init(|| (name, make(name)));
            if *taken == name {
                return handle;
            }
        }
        self.others.get_or_init(|| make(other))
    }

    /// Returns the handles in use with their names, the first created first, so that a handle keeps its position. `other`
    /// names the one that further names share, which comes last.
    pub(crate) fn iter(&self, other: K) -> impl Iterator<Item = (K, &T)> {
        let named = self.named.iter().filter_map(OnceLock::get).map(|(name, handle)| (*name, handle));
        named.chain(self.others.get().map(|handle| (other, handle)))
    }
}

impl<K: Copy + Eq, T, const N: usize> Default for Slots<K, T, N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_handle_and_a_full_table_shares_another() {
        let slots: Slots<&'static str, String, 2> = Slots::new();
        let find = |name| slots.find(name, "other", str::to_owned);
        let first = find("a");
        assert_eq!(find("b"), "b");
        assert!(std::ptr::eq(find("a"), first));
        assert_eq!(find("c"), "other");
        assert!(std::ptr::eq(find("d"), find("c")));
        let handles: Vec<_> = slots.iter("more").map(|(name, handle)| (name, handle.as_str())).collect();
        assert_eq!(handles, [("a", "a"), ("b", "b"), ("more", "other")]);
    }
}
