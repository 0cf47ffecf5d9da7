//! What each merchant sends: numbers of requests, and why they were refused.
//!
//! A request costs its merchant's counters two relaxed additions and stores, a refused one a scan of at most eight words
//! more: no lock, no allocation and no search for the merchant. Requests of one merchant on several threads share a cache
//! line, as they share the metrics of their route.
//!
//! A merchant's counters take some 400 bytes; its samples of the last hour 600 more, once it has sent anything.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::labels::OTHER;
use super::slots::Slots;
use crate::domain::UnixMillis;

/// The time between two samples.
pub const TRAFFIC_SAMPLE_INTERVAL: Duration = Duration::from_mins(5);

/// How many samples are kept: the oldest of them is an hour older than the newest.
const SAMPLES: usize = 13;

/// How many reasons are counted by their word; further ones share a count.
const REASONS: usize = 8;

/// The counts of a sample: v1, v2, each reason, the further reasons.
const COUNTS: usize = 2 + REASONS + 1;

/// The value of [`MerchantTraffic::last_v1`] before the first v1 request.
const NEVER: i64 = i64::MIN;

/// Counts the requests of a merchant.
#[derive(Debug)]
pub struct MerchantTraffic {
    v1: AtomicU64,
    v2: AtomicU64,
    last_v1: AtomicI64,
    refusals: Slots<&'static str, AtomicU64, REASONS>,
    /// What was counted at the last samples, the oldest first: the low half of each number, which is enough for differences.
    samples: Mutex<VecDeque<[u32; COUNTS]>>,
}

impl Default for MerchantTraffic {
    fn default() -> Self {
        Self {
            v1: AtomicU64::new(0),
            v2: AtomicU64::new(0),
            last_v1: AtomicI64::new(NEVER),
            refusals: Slots::new(),
            samples: Mutex::default(),
        }
    }
}

/// The traffic of a merchant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrafficView {
    /// Since the process first loaded the merchant.
    pub since_start: TrafficCounts,
    /// In the last hour, and up to five minutes before.
    pub last_hour: TrafficCounts,
    /// When the last v1 request was replied to; `None`: there was none.
    pub last_v1: Option<UnixMillis>,
}

/// The requests of a merchant in some time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrafficCounts {
    /// v1 requests with a valid signature.
    pub v1: u64,
    /// v2 requests with a valid signature.
    pub v2: u64,
    /// Requests with one of its keys that were refused or failed, by reason, the most frequent first: at most eight reasons, and
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

    /// Samples the counters; to be called each [`TRAFFIC_SAMPLE_INTERVAL`].
    pub fn sample(&self) {
        let counts = self.counts().map(low_half);
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        // A merchant that sends nothing needs no memory for it.
        if samples.is_empty() && counts == [0; COUNTS] {
            return;
        }
        while samples.len() >= SAMPLES {
            samples.pop_front();
        }
        samples.push_back(counts);
    }

    /// Returns the traffic so far.
    #[must_use]
    pub fn view(&self) -> TrafficView {
        let counts = self.counts();
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        // With fewer samples, nothing was counted before the last hour.
        let before = if samples.len() == SAMPLES { samples.front().copied() } else { None };
        drop(samples);
        let mut hour = counts.map(low_half);
        for (count, before) in hour.iter_mut().zip(before.unwrap_or_default()) {
            *count = count.wrapping_sub(before);
        }
        let last_v1 = self.last_v1.load(Ordering::Relaxed);
        TrafficView {
            since_start: self.named(counts),
            last_hour: self.named(hour.map(u64::from)),
            last_v1: (last_v1 != NEVER).then_some(UnixMillis(last_v1)),
        }
    }

    fn counts(&self) -> [u64; COUNTS] {
        let refusals = self.refusals.iter(OTHER).map(|(_, count)| count);
        let mut counts = [0; COUNTS];
        for (count, counter) in counts.iter_mut().zip([&self.v1, &self.v2].into_iter().chain(refusals)) {
            *count = counter.load(Ordering::Relaxed);
        }
        counts
    }

    /// Names the counts by their positions.
    fn named(&self, [v1, v2, refusals @ ..]: [u64; COUNTS]) -> TrafficCounts {
        let names = self.refusals.iter(OTHER).map(|(reason, _)| reason);
        let mut refusals: Vec<_> = names.zip(refusals).filter(|(_, count)| *count > 0).collect();
        refusals.sort_by_key(|(reason, count)| (std::cmp::Reverse(*count), *reason));
        TrafficCounts { v1, v2, refusals }
    }
}

const fn low_half(count: u64) -> u32 {
    let [low_0, low_1, low_2, low_3, ..] = count.to_le_bytes();
    u32::from_le_bytes([low_0, low_1, low_2, low_3])
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
        let counts = TrafficCounts { v1: 2, v2: 1, refusals: vec![("signature", 2), ("timestamp", 1)] };
        let expected = TrafficView { since_start: counts.clone(), last_hour: counts, last_v1: Some(UnixMillis(9)) };
        assert_eq!(traffic.view(), expected);
    }

    #[test]
    fn further_reasons_share_a_count() {
        let traffic = MerchantTraffic::default();
        for reason in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "j"] {
            traffic.refused(reason);
        }
        let refusals = traffic.view().since_start.refusals;
        assert_eq!((refusals.len(), refusals[0]), (9, ("other", 3)));
    }

    #[test]
    fn the_last_hour_is_the_difference_to_the_sample_of_an_hour_ago() {
        let traffic = MerchantTraffic::default();
        for _ in 0..5 {
            traffic.sample();
        }
        assert!(traffic.samples.lock().unwrap().is_empty(), "an idle merchant has no samples");
        let hour = |traffic: &MerchantTraffic| {
            let view = traffic.view();
            assert_eq!(
                view.last_hour.v1 + view.last_hour.v2,
                view.last_hour.refusals.iter().map(|(_, n)| n).sum::<u64>()
            );
            (view.last_hour.v1, view.last_hour.v2)
        };
        traffic.v1_request(UnixMillis(1));
        traffic.refused("early");
        for sample in 0..100 {
            traffic.sample();
            traffic.v2_request();
            traffic.refused("late");
            let expected = if sample < 12 { (1, sample + 1) } else { (0, 13) };
            assert_eq!(hour(&traffic), expected, "{sample}");
        }
        assert_eq!(traffic.samples.lock().unwrap().len(), SAMPLES);
        assert_eq!(traffic.view().since_start.v2, 100);
        for _ in 0..SAMPLES {
            traffic.sample();
        }
        assert_eq!(traffic.view().last_hour, TrafficCounts::default());
    }

    #[test]
    fn differences_outlast_an_overflow_of_samples() {
        let traffic = MerchantTraffic { v1: AtomicU64::new(u64::from(u32::MAX)), ..MerchantTraffic::default() };
        for _ in 0..SAMPLES {
            traffic.sample();
        }
        traffic.v1_request(UnixMillis(1));
        traffic.v1_request(UnixMillis(1));
        assert_eq!(traffic.view().last_hour.v1, 2);
        assert_eq!(traffic.view().since_start.v1, u64::from(u32::MAX) + 2);
    }
}
