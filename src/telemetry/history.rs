//! The last hour of the process in points of ten seconds, for the console's plots: the differences of what the metrics
//! count anyway, so that no request pays for it.
//!
//! 360 points hold at most 0.9 MB: each some 120 bytes, and 32 more for every reason with refusals in its ten seconds, which
//! are at most 66 (two tables of the metrics, each with 32 names and a shared one).

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::text;
use prometheus_client::registry::{Metric, Registry};

use super::metrics::Metrics;
use crate::domain::UnixMillis;
use crate::slots::OTHER;

/// The time between two points.
pub const POINT_INTERVAL: Duration = Duration::from_secs(10);

/// The most points.
const MOST_POINTS: usize = 360;

/// How old a point may become.
const HOUR: Duration = Duration::from_hours(1);

/// The points of the last hour.
#[derive(Debug, Default)]
pub struct History(Mutex<Recorded>);

#[derive(Debug, Default)]
struct Recorded {
    /// What the metrics had counted when the last point ended.
    last: Option<(UnixMillis, Totals)>,
    /// The points, the oldest first, each with its refusals.
    points: VecDeque<(HistoryPoint, Box<[RefusalCount]>)>,
}

/// What happened between two recordings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HistoryPoint {
    /// The end of its time.
    pub at: UnixMillis,
    /// The length of its time in seconds: 10, or more after points were missed.
    pub seconds: f64,
    /// Replies with a status below 400.
    pub succeeded: u32,
    /// Replies with a status from 400 to 499.
    pub refused: u32,
    /// Replies with a status from 500.
    pub failed: u32,
    /// The median of the time from a request's head to its reply, in seconds; `None`: there was no request.
    pub p50: Option<f64>,
    /// The 99th percentile of the same, in seconds.
    pub p99: Option<f64>,
    /// Commits of the store.
    pub commits: u32,
    /// Attempts of callbacks that delivered one.
    pub callbacks_delivered: u32,
    /// Attempts of callbacks that did not.
    pub callbacks_failed: u32,
}

impl HistoryPoint {
    /// Returns how many of `count` there were a second.
    #[must_use]
    pub fn rate(&self, count: u32) -> f64 {
        f64::from(count) / self.seconds
    }
}

/// Refused requests of a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct RefusalCount {
    /// The reason, a word of the metrics.
    pub reason: &'static str,
    /// How many.
    pub count: u64,
}

/// A copy of the history.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HistorySnapshot {
    /// The points, the oldest first; `None` stands for one that was missed.
    pub points: Vec<Option<HistoryPoint>>,
    /// The refusals of all points, the most frequent first.
    pub refusals: Vec<RefusalCount>,
}

impl History {
    /// Adds a point with what was counted since the last call, and drops those that are older than an hour; to be called each
    /// [`POINT_INTERVAL`]. The first call only begins the history. A clock that was set back begins it again.
    ///
    /// Reading the metrics costs as much as a small scrape: each histogram is locked while 16 numbers are copied.
    pub fn record(&self, metrics: &Metrics, now: UnixMillis) {
        let totals = Totals::read(metrics);
        let mut recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.points.retain(|(point, _)| point.at < now && point.at.until(now) < HOUR);
        if let Some((since, earlier)) = &recorded.last
            && *since < now
        {
            let point = (totals.point_since(earlier, *since, now), totals.refusals_since(earlier));
            recorded.points.push_back(point);
        }
        while recorded.points.len() > MOST_POINTS {
            recorded.points.pop_front();
        }
        recorded.last = Some((now, totals));
    }

    /// Copies the history.
    #[must_use]
    pub fn snapshot(&self) -> HistorySnapshot {
        let recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut snapshot = HistorySnapshot::default();
        let mut last = None;
        for (point, refusals) in &recorded.points {
            let missed = last.map_or(0, |last| missed_points(last, point.at));
            snapshot.points.extend(std::iter::repeat_n(None, missed));
            snapshot.points.push(Some(*point));
            last = Some(point.at);
            for refusal in refusals {
                add(&mut snapshot.refusals, *refusal);
            }
        }
        snapshot.refusals.sort_by_key(|refusal| (std::cmp::Reverse(refusal.count), refusal.reason));
        snapshot
    }
}

/// Returns how many points are missing between two. A late one is not missed: intervals are rounded.
fn missed_points(earlier: UnixMillis, later: UnixMillis) -> usize {
    let intervals = (earlier.until(later) + POINT_INTERVAL / 2).as_millis() / POINT_INTERVAL.as_millis();
    usize::try_from(intervals).unwrap_or(MOST_POINTS).saturating_sub(1)
}

fn add(refusals: &mut Vec<RefusalCount>, more: RefusalCount) {
    match refusals.iter_mut().find(|known| known.reason == more.reason) {
        Some(known) => known.count = known.count.saturating_add(more.count),
        None => refusals.push(more),
    }
}

/// What the metrics have counted since the process started.
#[derive(Debug, Default)]
struct Totals {
    succeeded: u64,
    refused: u64,
    failed: u64,
    latencies: Distribution,
    commits: u64,
    callbacks_delivered: u64,
    callbacks_failed: u64,
    refusals: Vec<RefusalCount>,
}

impl Totals {
    fn read(metrics: &Metrics) -> Self {
        let mut totals = Self {
            latencies: Distribution::read(metrics.request_duration.clone()),
            commits: metrics.store().commits.get(),
            ..Self::default()
        };
        let statuses = metrics.routes.iter(OTHER).flat_map(|(_, route)| route.statuses.iter(0));
        for (status, requests) in statuses {
            match status {
                200..400 => totals.succeeded += requests.get(),
                400..500 => totals.refused += requests.get(),
                _ => totals.failed += requests.get(),
            }
        }
        for (outcome, attempts) in metrics.callback_tries.handles.iter(OTHER) {
            match outcome {
                "delivered" => totals.callbacks_delivered += attempts.get(),
                _ => totals.callbacks_failed += attempts.get(),
            }
        }
        let refusals = metrics.refusals.handles.iter(OTHER);
        totals.refusals = refusals.map(|(reason, count)| RefusalCount { reason, count: count.get() }).collect();
        totals
    }

    fn point_since(&self, earlier: &Self, since: UnixMillis, now: UnixMillis) -> HistoryPoint {
        let latencies = self.latencies.since(&earlier.latencies);
        HistoryPoint {
            at: now,
            seconds: since.until(now).as_secs_f64(),
            succeeded: difference(self.succeeded, earlier.succeeded),
            refused: difference(self.refused, earlier.refused),
            failed: difference(self.failed, earlier.failed),
            p50: latencies.quantile(0.5),
            p99: latencies.quantile(0.99),
            commits: difference(self.commits, earlier.commits),
            callbacks_delivered: difference(self.callbacks_delivered, earlier.callbacks_delivered),
            callbacks_failed: difference(self.callbacks_failed, earlier.callbacks_failed),
        }
    }

    fn refusals_since(&self, earlier: &Self) -> Box<[RefusalCount]> {
        let since = |now: &RefusalCount| {
            let before = earlier.refusals.iter().find(|old| old.reason == now.reason);
            RefusalCount { count: now.count.saturating_sub(before.map_or(0, |old| old.count)), ..*now }
        };
        self.refusals.iter().map(since).filter(|refusal| refusal.count > 0).collect()
    }
}

fn difference(now: u64, earlier: u64) -> u32 {
    u32::try_from(now.saturating_sub(earlier)).unwrap_or(u32::MAX)
}

/// A histogram, over all its labels.
#[derive(Debug, Default)]
struct Distribution {
    sum: f64,
    /// Upper bounds, ascending, each with the number of all values up to it.
    buckets: Vec<(f64, u64)>,
}

impl Distribution {
    /// Reads a histogram, or a family of them, from the text of a scrape: the library offers no other way to its numbers.
    fn read(metric: impl Metric) -> Self {
        let mut registry = Registry::default();
        registry.register("h", "", metric);
        let mut page = String::new();
        let written = text::encode(&mut page, &registry);
        debug_assert!(written.is_ok(), "writing to a String does not fail");
        let mut read = Self::default();
        for (series, value) in page.lines().filter_map(|line| line.rsplit_once(' ')) {
            if let Some(bound) = series.strip_prefix("h_bucket{le=\"").and_then(|rest| rest.split('"').next()) {
                read.add(bound.parse().unwrap_or(f64::INFINITY), value.parse().unwrap_or(0));
            } else if series.starts_with("h_sum") {
                read.sum += value.parse().unwrap_or(0.0);
            }
        }
        read
    }

    /// Adds values of one label; all labels have the same bounds in the same order.
    fn add(&mut self, bound: f64, count: u64) {
        match self.buckets.iter_mut().find(|(known, _)| known.total_cmp(&bound).is_eq()) {
            Some((_, known)) => *known += count,
            None => self.buckets.push((bound, count)),
        }
    }

    fn since(&self, earlier: &Self) -> Self {
        let before = earlier.buckets.iter().map(|(_, count)| *count).chain(std::iter::repeat(0));
        let buckets = self.buckets.iter().zip(before);
        Self {
            sum: self.sum - earlier.sum,
            buckets: buckets.map(|((bound, count), before)| (*bound, count.saturating_sub(before))).collect(),
        }
    }

    /// Returns how many values there are; `None` if there is none.
    fn count(&self) -> Option<f64> {
        let count = self.buckets.last().map_or(0, |(_, count)| *count);
        (count > 0).then(|| f64::from(difference(count, 0)))
    }

    /// Returns the value that a share of the values does not exceed, as if values were spread evenly within each bucket;
    /// the largest bound for values beyond it.
    fn quantile(&self, share: f64) -> Option<f64> {
        let rank = self.count()? * share;
        let (mut below, mut lower) = (0.0, 0.0);
        for (bound, count) in &self.buckets {
            let count = f64::from(difference(*count, 0));
            if count >= rank && bound.is_finite() {
                return Some(lower + (bound - lower) * (rank - below) / (count - below));
            }
            if bound.is_finite() {
                (below, lower) = (count, *bound);
            }
        }
        Some(lower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_800_000_000_000;

    fn at(seconds: i64) -> UnixMillis {
        UnixMillis(START + 1000 * seconds)
    }

    fn only(history: &History) -> HistoryPoint {
        let points = history.snapshot().points;
        assert_eq!(points.len(), 1, "{points:?}");
        points[0].unwrap()
    }

    #[test]
    fn a_point_has_what_was_counted_since_the_last_one() {
        let (metrics, history) = (Metrics::default(), History::default());
        metrics.request("payin", 200, Duration::from_millis(400));
        metrics.store().commit(100, Duration::from_millis(1));
        metrics.refused("address");
        history.record(&metrics, at(0));
        assert_eq!(history.snapshot(), HistorySnapshot::default(), "the first call only begins");

        for _ in 0..99 {
            metrics.request("payin", 200, Duration::from_micros(700));
        }
        metrics.request("v2_deposits", 302, Duration::from_millis(40));
        metrics.request("payin", 401, Duration::from_micros(700));
        metrics.request("payin", 503, Duration::from_micros(700));
        for reason in ["signature", "rate_limit", "signature", "signature"] {
            metrics.refused(reason);
        }
        metrics.translation_refused("callback_url");
        metrics.refused("callback_url");
        metrics.refused("callback_url");
        metrics.store().commit(3, Duration::from_millis(1));
        metrics.store().commit(4, Duration::from_millis(1));
        for outcome in ["delivered", "refused", "engine"] {
            metrics.callback_try(outcome);
        }
        history.record(&metrics, at(10));
        let point = only(&history);
        assert_eq!((point.at, point.seconds), (at(10), 10.0));
        assert_eq!((point.succeeded, point.refused, point.failed), (100, 1, 1));
        assert_eq!((point.rate(point.succeeded), point.commits), (10.0, 2));
        assert_eq!((point.callbacks_delivered, point.callbacks_failed), (1, 2));
        // 101 of 102 values lie between 0.5 and 1 ms.
        let (p50, p99) = (point.p50.unwrap(), point.p99.unwrap());
        assert!((p50 - (0.000_5 + 0.000_5 * 51.0 / 101.0)).abs() < 1e-9, "{p50}");
        assert!((0.000_99..=0.001).contains(&p99), "{p99}");
        let refusals = history.snapshot().refusals;
        let counted: Vec<_> = refusals.iter().map(|found| (found.reason, found.count)).collect();
        assert_eq!(counted, [("signature", 3), ("callback_url", 2), ("rate_limit", 1)]);

        history.record(&metrics, at(20));
        let idle = history.snapshot().points[1].unwrap();
        assert_eq!((idle.succeeded, idle.p50, idle.p99, idle.commits), (0, None, None, 0));
    }

    #[test]
    fn values_beyond_all_bounds_count_as_the_largest() {
        let (metrics, history) = (Metrics::default(), History::default());
        history.record(&metrics, at(0));
        metrics.request("payin", 200, Duration::from_mins(1));
        history.record(&metrics, at(10));
        assert_eq!(only(&history).p99, Some(10.0));
    }

    #[test]
    fn missed_points_stay_a_gap() {
        let (metrics, history) = (Metrics::default(), History::default());
        let mut millis = START;
        for late in [0, 40, -40, 20, 4_000] {
            history.record(&metrics, UnixMillis(millis + late));
            millis += 10_000;
        }
        assert_eq!(history.snapshot().points.len(), 4, "a late point is none that was missed");
        metrics.request("payin", 200, Duration::from_millis(1));
        history.record(&metrics, at(80));
        let points = history.snapshot().points;
        let present: Vec<_> = points.iter().map(Option::is_some).collect();
        assert_eq!(present, [true, true, true, true, false, false, false, true]);
        let last = points[7].unwrap();
        assert!((last.seconds - 36.0).abs() < 1e-9 && last.succeeded == 1, "{last:?}");
    }

    #[test]
    fn an_hour_is_kept_at_most() {
        let (metrics, history) = (Metrics::default(), History::default());
        for point in 0..1000 {
            history.record(&metrics, at(10 * point));
        }
        let points = history.snapshot().points;
        assert_eq!((points.len(), points[0].unwrap().at), (MOST_POINTS, at(6400)));
        for quick in 0..1000 {
            history.record(&metrics, UnixMillis(at(9990).0 + quick));
        }
        assert_eq!(history.snapshot().points.len(), MOST_POINTS);
        history.record(&metrics, at(20_000));
        assert_eq!(only(&history).at, at(20_000), "a machine that slept");
        history.record(&metrics, at(5));
        assert_eq!(history.snapshot(), HistorySnapshot::default(), "a clock that was set back");
        history.record(&metrics, at(15));
        assert_eq!(only(&history).at, at(15));
    }
}
