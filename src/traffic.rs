//! What each merchant sends: numbers of requests, and why they were refused.
//!
//! A request costs its merchant's counters two relaxed additions and stores, a refused one a scan of at most sixteen words
//! more: no lock, no allocation and no search for the merchant. Requests of one merchant on several threads share a cache
//! line, as they share the metrics of their route. A merchant's counters take some 500 bytes.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::domain::UnixMillis;
use crate::slots::{OTHER, Slots};

/// How many reasons are counted by their word; further ones share a count.
const REASONS: usize = 16;

/// The value of [`MerchantTraffic::last_v1`] before the first v1 request.
const NEVER: i64 = i64::MIN;

/// Counts the requests of a merchant.
#[derive(Debug)]
pub struct MerchantTraffic {
    v1: AtomicU64,
    v2: AtomicU64,
    last_v1: AtomicI64,
    refusals: Slots<&'static str, AtomicU64, REASONS>,
}

impl Default for MerchantTraffic {
    fn default() -> Self {
        let (v1, v2, last_v1) = (AtomicU64::new(0), AtomicU64::new(0), AtomicI64::new(NEVER));
        Self { v1, v2, last_v1, refusals: Slots::new() }
    }
}

/// The traffic of a merchant since the process first loaded it.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct TrafficView {
    /// v1 requests with a valid signature.
    pub v1: u64,
    /// v2 requests with a valid signature.
    pub v2: u64,
    /// When the last of these was replied to, refused or not; `None`: there was none.
    pub last_v1: Option<UnixMillis>,
    /// Requests with one of its keys that were refused or failed, by reason, the most frequent first: at most sixteen reasons, and
    /// `other`. Those without a valid signature are counted here alone.
    pub refusals: Vec<(&'static str, u64)>,
}

impl MerchantTraffic {
    /// Counts a v1 request whose signature was valid.
    pub fn v1_request(&self, now: UnixMillis) {
        self.v1.fetch_add(1, Ordering::Relaxed);
        self.last_v1.store(now.0, Ordering::Relaxed);
    }

    /// Counts a v2 request whose signature was valid.
    pub fn v2_request(&self) {
        self.v2.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that was refused or failed, by reason.
    pub fn refused(&self, reason: &'static str) {
        self.refusals.find(reason, OTHER, |_| AtomicU64::new(0)).fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the traffic so far.
    #[must_use]
    pub fn view(&self) -> TrafficView {
        let [v1, v2] = [&self.v1, &self.v2].map(|count| count.load(Ordering::Relaxed));
        let last_v1 = self.last_v1.load(Ordering::Relaxed);
        let refusals = self.refusals.iter(OTHER).map(|(reason, count)| (reason, count.load(Ordering::Relaxed)));
        let mut refusals: Vec<_> = refusals.filter(|(_, count)| *count > 0).collect();
        refusals.sort_by_key(|(reason, count)| (std::cmp::Reverse(*count), *reason));
        TrafficView { v1, v2, last_v1: (last_v1 != NEVER).then_some(UnixMillis(last_v1)), refusals }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_refusals_are_counted() {
        let traffic = MerchantTraffic::default();
        assert_eq!(traffic.view(), TrafficView::default());
        traffic.v1_request(UnixMillis(7));
        traffic.v1_request(UnixMillis(9));
        traffic.v2_request();
        for reason in ["timestamp", "signature", "signature"] {
            traffic.refused(reason);
        }
        let refusals = vec![("signature", 2), ("timestamp", 1)];
        assert_eq!(traffic.view(), TrafficView { v1: 2, v2: 1, last_v1: Some(UnixMillis(9)), refusals });
    }

    #[test]
    fn further_reasons_share_a_count() {
        let traffic = MerchantTraffic::default();
        for reason in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "r"] {
            traffic.refused(reason);
        }
        let refusals = traffic.view().refusals;
        assert_eq!((refusals.len(), refusals[0]), (17, ("other", 3)));
    }
}
