//! The progress of a long job, on standard error: a bar on a terminal, else a plain line every few seconds, which suits
//! logs.

use std::io::Write;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::{MissedTickBehavior, interval};

use crate::telemetry::Stopwatch;

/// The time between two plain lines; a shorter job prints only its result.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// How often [`Progress::during`] reads the counters.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The counters of a job that runs on another thread.
#[derive(Debug, Default)]
pub struct Counters {
    done: AtomicU64,
    /// 0 while the total is unknown.
    total: AtomicU64,
}

impl Counters {
    /// Sets how much is done, and the total.
    pub fn set(&self, done: u64, total: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }
}

/// The progress of one job. Failures to write it are ignored.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    last_line: Stopwatch,
}

impl Progress {
    /// Starts the display; `total` is `None` while it is unknown. Shown as `what: 3 of 10 unit`.
    #[must_use]
    pub fn start(what: &'static str, unit: &'static str, total: Option<u64>) -> Self {
        let bar =
            ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr()).with_prefix(what).with_message(unit);
        bar.set_style(style(total.is_some()));
        Self { bar, last_line: Stopwatch::start() }
    }

    /// Updates how much is done.
    pub fn at(&mut self, done: u64, err: &mut dyn Write) {
        self.bar.set_position(done);
        if self.bar.is_hidden() && self.last_line.elapsed() >= PLAIN_INTERVAL {
            self.last_line = Stopwatch::start();
            let _ = writeln!(err, "{}", self.plain());
        }
    }

    /// Writes a line above the progress.
    pub fn print_line(&self, line: &str, err: &mut dyn Write) {
        self.bar.suspend(|| {
            let _ = writeln!(err, "{line}");
        });
    }

    /// Waits for a job on another thread and shows its counters meanwhile.
    pub async fn during<T>(&mut self, counters: &Counters, err: &mut dyn Write, job: impl Future<Output = T>) -> T {
        let mut job = pin!(job);
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                result = &mut job => return result,
                _ = ticks.tick() => {
                    let total = counters.total.load(Ordering::Relaxed);
                    if total > 0 && self.bar.length() != Some(total) {
                        self.bar.set_length(total);
                        self.bar.set_style(style(true));
                    }
                    self.at(counters.done.load(Ordering::Relaxed), err);
                }
            }
        }
    }

    fn plain(&self) -> String {
        let (what, unit, rate) = (self.bar.prefix(), self.bar.message(), self.bar.per_sec());
        let done = HumanCount(self.bar.position());
        match self.bar.length() {
            Some(total) => {
                let (total, left) = (HumanCount(total), HumanDuration(self.bar.eta()));
                format!("{what}: {done} of {total} {unit}, {rate:.0} a second, {left} left")
            }
            None => format!("{what}: {done} {unit}, {rate:.0} a second"),
        }
    }
}

/// Clears the bar, so that the next output starts on a clean line.
impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

const BOUNDED: &str = "{prefix} {wide_bar} {human_pos}/{human_len} {msg}, {per_sec}, {eta} left";
const UNBOUNDED: &str = "{prefix}: {human_pos} {msg}, {per_sec}";

fn style(bounded: bool) -> ProgressStyle {
    // With an invalid template, the default bar is shown.
    ProgressStyle::with_template(if bounded { BOUNDED } else { UNBOUNDED })
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Formats a duration for people: `4.2 s`, `3 min 7 s`, `2 h 5 min`.
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
    fn spans_are_formatted() {
        let shown = |millis| span(Duration::from_millis(millis));
        assert_eq!([shown(0), shown(4_260), shown(59_999)], ["0.0 s", "4.2 s", "59.9 s"]);
        assert_eq!([shown(60_000), shown(187_000), shown(7_500_000)], ["1 min 0 s", "3 min 7 s", "2 h 5 min"]);
    }

    #[test]
    fn plain_lines_show_rate_and_time_left() {
        let plain = |done, total| {
            let mut progress = Progress::start("importing", "lines", total);
            progress.at(done, &mut Vec::new());
            progress.plain()
        };
        let line = plain(120_000, Some(3_000_000));
        assert!(line.starts_with("importing: 120,000 of 3,000,000 lines, ") && line.ends_with(" left"), "{line}");
        let line = plain(700, None);
        assert!(line.starts_with("importing: 700 lines, ") && line.ends_with(" a second"), "{line}");
    }

    #[test]
    fn templates_are_valid() {
        for template in [BOUNDED, UNBOUNDED] {
            ProgressStyle::with_template(template).unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_on_another_thread_is_awaited() {
        let counters = Arc::new(Counters::default());
        let mut progress = Progress::start("checking", "lines", None);
        let job = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            counters.set(7, 9);
            tokio::time::sleep(Duration::from_secs(1)).await;
            "done"
        };
        assert_eq!(progress.during(&counters, &mut Vec::new(), job).await, "done");
        assert_eq!((progress.bar.length(), progress.bar.position()), (Some(9), 7));
    }
}
