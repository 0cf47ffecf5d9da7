//! How far a long job got, on standard error: a bar with rate and time left on a terminal, else a plain line every few
//! seconds, so that logs show it too.

use std::fmt::Write as _;
use std::io::Write;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use tokio::time::{MissedTickBehavior, interval};

/// Between two plain lines; a job that is done sooner is told of by its result alone.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// How often [`Progress::during`] looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// The counters of a job that runs elsewhere.
#[derive(Debug, Default)]
pub struct Counters {
    /// How much is done.
    pub done: AtomicU64,
    /// How much there is; 0 while nobody knows.
    pub total: AtomicU64,
}

/// The progress of one job. Whether anybody takes what it says changes nothing for the job.
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    unit: &'static str,
    total: Option<u64>,
    started: Instant,
    last_line: Instant,
    bar: ProgressBar,
}

impl Progress {
    /// Starts to count; `total` is `None` while nobody knows how much there is. Shown as `what: 3 of 10 unit`.
    #[must_use]
    pub fn start(what: &'static str, unit: &'static str, total: Option<u64>) -> Self {
        let now = Instant::now();
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr()).with_prefix(what);
        bar.set_style(style(unit, total.is_some()));
        Self { what, unit, total, started: now, last_line: now, bar }
    }

    /// So much is done.
    pub fn at(&mut self, done: u64, err: &mut dyn Write) {
        self.bar.set_position(done);
        if self.bar.is_hidden() && self.last_line.elapsed() >= PLAIN_INTERVAL {
            self.last_line = Instant::now();
            let line = plain(self.what, self.unit, done, self.total, self.started.elapsed());
            let _ = writeln!(err, "{line}");
        }
    }

    /// Says something in a line of its own.
    pub fn say(&self, line: &str, err: &mut dyn Write) {
        self.bar.suspend(|| {
            let _ = writeln!(err, "{line}");
        });
    }

    /// Waits for a job that runs elsewhere and shows its counters meanwhile.
    pub async fn during<T>(&mut self, counters: &Counters, err: &mut dyn Write, job: impl Future<Output = T>) -> T {
        let mut job = pin!(job);
        let mut looks = interval(LOOK_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                result = &mut job => return result,
                _ = looks.tick() => {
                    self.learn_total(counters.total.load(Ordering::Relaxed));
                    self.at(counters.done.load(Ordering::Relaxed), err);
                }
            }
        }
    }

    fn learn_total(&mut self, total: u64) {
        if total > 0 && self.total != Some(total) {
            self.total = Some(total);
            self.bar.set_length(total);
            self.bar.set_style(style(self.unit, true));
        }
    }
}

/// What is said next starts on a clean line.
impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

const BOUNDED: &str = "{prefix} {wide_bar} {human_pos}/{human_len} {unit}, {rate} a second, {left} left";
const UNBOUNDED: &str = "{prefix}: {human_pos} {unit}, {rate} a second";

fn style(unit: &'static str, bounded: bool) -> ProgressStyle {
    let template = if bounded { BOUNDED } else { UNBOUNDED };
    // A template that is wrong would only make a plainer bar.
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style
        .with_key("unit", move |_: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = text.write_str(unit);
        })
        .with_key("rate", |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = write!(text, "{}", HumanCount(per_second(state.pos(), state.elapsed())));
        })
        .with_key("left", |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = text.write_str(&span(state.eta()));
        })
}

fn plain(what: &str, unit: &str, done: u64, total: Option<u64>, elapsed: Duration) -> String {
    let rate = per_second(done, elapsed);
    let mut line = format!("{what}: {}", HumanCount(done));
    // Writing to a String does not fail.
    if let Some(total) = total.filter(|total| *total > 0) {
        let percent = u128::from(done) * 100 / u128::from(total);
        let _ = write!(line, " of {} {unit} ({percent}%), {} a second", HumanCount(total), HumanCount(rate));
        if let Some(seconds) = total.saturating_sub(done).checked_div(rate) {
            let _ = write!(line, ", {} left", span(Duration::from_secs(seconds)));
        }
    } else {
        let _ = write!(line, " {unit}, {} a second", HumanCount(rate));
    }
    line
}

/// The average since the start.
fn per_second(done: u64, elapsed: Duration) -> u64 {
    let rate = u128::from(done) * 1000 / elapsed.as_millis().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// A span of time for people: `4.2 s`, `3 min 7 s`, `2 h 5 min`.
#[must_use]
pub fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..60 => format!("{seconds}.{} s", span.subsec_millis() / 100),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn spans_are_for_people() {
        let shown = |millis| span(Duration::from_millis(millis));
        assert_eq!([shown(0), shown(4_260), shown(59_999)], ["0.0 s", "4.2 s", "59.9 s"]);
        assert_eq!([shown(60_000), shown(187_000), shown(7_500_000)], ["1 min 0 s", "3 min 7 s", "2 h 5 min"]);
    }

    #[test]
    fn plain_lines_tell_rate_and_time_left() {
        let line = |done, total, seconds| plain("importing", "lines", done, total, Duration::from_secs(seconds));
        assert_eq!(
            line(120_000, Some(3_000_000), 3),
            "importing: 120,000 of 3,000,000 lines (4%), 40,000 a second, 1 min 12 s left"
        );
        assert_eq!(line(0, Some(10), 5), "importing: 0 of 10 lines (0%), 0 a second");
        assert_eq!(line(700, None, 7), "importing: 700 lines, 100 a second");
        assert_eq!(line(5, Some(0), 0), "importing: 5 lines, 5,000 a second");
    }

    #[test]
    fn templates_are_right() {
        for template in [BOUNDED, UNBOUNDED] {
            ProgressStyle::with_template(template).unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_elsewhere_is_waited_for() {
        let counters = Arc::new(Counters::default());
        let mut progress = Progress::start("checking", "lines", None);
        let job = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            counters.total.store(9, Ordering::Relaxed);
            counters.done.store(7, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(1)).await;
            "done"
        };
        assert_eq!(progress.during(&counters, &mut Vec::new(), job).await, "done");
        assert_eq!((progress.total, progress.bar.position()), (Some(9), 7));
    }
}
