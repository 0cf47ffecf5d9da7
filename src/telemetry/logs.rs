//! The log on stderr: `tracing` events and access lines, through one bounded buffer that its own thread writes out.
//! Logging never waits for the reader of the log: when the buffer is full, lines are dropped and counted. Lines are
//! never mixed.
//!
//! `tracing-appender` would bound the number of lines instead of bytes, let access lines displace events, and make a
//! system call per line.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tracing::level_filters::LevelFilter;
use tracing::{Dispatch, Level, dispatcher};
use tracing_subscriber::EnvFilter;

use super::Metrics;
use super::access::{AccessLine, AccessLog, LogFormat, TARGET};

/// How many bytes may wait to be written before access lines are dropped.
const ACCESS_BYTES: usize = 1024 * 1024;

/// The same for events, which are few and matter more: they still find room when access lines do not.
const EVENT_BYTES: usize = ACCESS_BYTES + 256 * 1024;

/// How long the writer gathers lines after a write, so that a busy process makes few system calls.
const GATHER: Duration = Duration::from_millis(50);

/// How long the exit of the process waits for the last lines.
const LAST_LINES: Duration = Duration::from_secs(2);

/// Why logging cannot start.
#[derive(Debug, thiserror::Error)]
pub enum LogsError {
    /// `RUST_LOG` is not a valid filter.
    #[error("RUST_LOG is not a valid filter: {0}")]
    Filter(String),
    /// A global subscriber exists already.
    #[error("logging was started already")]
    Started,
    /// The system cannot start a thread.
    #[error("the log thread cannot be started: {0}")]
    Thread(io::Error),
}

/// The log of the process. Dropping it writes out the remaining lines.
#[derive(Debug)]
pub struct Logs {
    sink: Arc<Sink>,
    format: LogFormat,
    access: bool,
}

impl Logs {
    /// Directs the log of this process to stderr. `filter` is the text of `RUST_LOG`; by default, info and above are
    /// shown.
    ///
    /// # Errors
    /// An invalid filter, or a second start.
    pub fn start(format: LogFormat, filter: Option<&str>, metrics: &Metrics) -> Result<Self, LogsError> {
        let filter = parse_filter(filter)?;
        let sink = Sink::start(io::stderr(), metrics.log_lines_dropped()).map_err(LogsError::Thread)?;
        let dispatch = dispatch(format, filter, Arc::clone(&sink));
        let access = shows_access_lines(&dispatch);
        dispatcher::set_global_default(dispatch).map_err(|_| LogsError::Started)?;
        Ok(Self { sink, format, access })
    }

    /// Returns the receiver of access lines.
    #[must_use]
    pub fn access(&self) -> Arc<dyn AccessLog> {
        Arc::new(AccessLines { sink: self.access.then(|| Arc::clone(&self.sink)), format: self.format })
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        self.sink.close();
    }
}

fn parse_filter(text: Option<&str>) -> Result<EnvFilter, LogsError> {
    EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .parse(text.unwrap_or_default())
        .map_err(|error| LogsError::Filter(error.to_string()))
}

fn dispatch(format: LogFormat, filter: EnvFilter, sink: Arc<Sink>) -> Dispatch {
    let builder = tracing_subscriber::fmt().with_ansi(false).with_env_filter(filter).with_writer(sink);
    match format {
        LogFormat::Text => Dispatch::new(builder.finish()),
        LogFormat::Json => Dispatch::new(builder.json().flatten_event(true).finish()),
    }
}

/// Checked once: the filter does not change while the process runs.
fn shows_access_lines(dispatch: &Dispatch) -> bool {
    dispatcher::with_default(dispatch, || tracing::enabled!(target: TARGET, Level::INFO))
}

/// Passes access lines to the sink; discards them if the filter hides them.
struct AccessLines {
    sink: Option<Arc<Sink>>,
    format: LogFormat,
}

impl AccessLog for AccessLines {
    fn line(&self, line: &AccessLine<'_>) {
        if let Some(sink) = &self.sink {
            line.with_text(self.format, |text| sink.push(text, ACCESS_BYTES));
        }
    }
}

/// The buffer between the threads that log and the thread that writes.
#[derive(Debug)]
struct Sink {
    state: Mutex<State>,
    changed: Condvar,
    dropped: Counter,
}

#[derive(Debug, Default)]
struct State {
    pending: Vec<u8>,
    /// The writer waits for the first line, which has to wake it; later lines need not.
    idle: bool,
    closing: bool,
    closed: bool,
}

impl Sink {
    fn start(out: impl Write + Send + 'static, dropped: Counter) -> io::Result<Arc<Self>> {
        let sink = Arc::new(Self { state: Mutex::default(), changed: Condvar::new(), dropped });
        let writer = Arc::clone(&sink);
        thread::Builder::new().name("log".to_owned()).spawn(move || writer.write_out(out))?;
        Ok(sink)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds whole lines, or drops and counts them if more than `bound` bytes would wait.
    fn push(&self, lines: &[u8], bound: usize) {
        let mut state = self.state();
        let before = state.pending.len();
        if before + lines.len() > bound {
            drop(state);
            self.dropped.inc();
            return;
        }
        state.pending.extend_from_slice(lines);
        let half_full = ACCESS_BYTES / 2;
        let wake = state.idle || (before < half_full && state.pending.len() >= half_full);
        state.idle = false;
        drop(state);
        if wake {
            self.changed.notify_all();
        }
    }

    fn write_out(&self, mut out: impl Write) {
        let mut taken = Vec::new();
        while self.take(&mut taken) {
            // A failed write cannot be reported anywhere else; the process continues to serve.
            let _ = out.write_all(&taken).and_then(|()| out.flush());
            taken.clear();
            self.wait_for_more();
        }
        self.state().closed = true;
        self.changed.notify_all();
    }

    /// Swaps the pending lines with the empty `taken`; returns false when all lines were written and the log is
    /// closing.
    fn take(&self, taken: &mut Vec<u8>) -> bool {
        let mut state = self.state();
        while state.pending.is_empty() && !state.closing {
            state.idle = true;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.idle = false;
        std::mem::swap(&mut state.pending, taken);
        !taken.is_empty()
    }

    fn wait_for_more(&self) {
        let little = |state: &mut State| !state.closing && state.pending.len() < ACCESS_BYTES / 2;
        drop(self.changed.wait_timeout_while(self.state(), GATHER, little));
    }

    fn close(&self) {
        let mut state = self.state();
        state.closing = true;
        self.changed.notify_all();
        drop(self.changed.wait_timeout_while(state, LAST_LINES, |state| !state.closed));
    }
}

/// The subscriber writes one whole event per call.
impl Write for &Sink {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.push(event, EVENT_BYTES);
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::domain::UnixMillis;

    /// An output that keeps everything.
    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Page {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// An output that blocks until the sender is dropped.
    struct Stuck(mpsc::Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn line() -> AccessLine<'static> {
        AccessLine {
            request_id: "r1",
            merchant: None,
            route: "payin",
            method: "POST",
            status: 200,
            reason: None,
            member: None,
            transaction_id: None,
            duration: Duration::ZERO,
            rules_version: "v",
            peer: [127, 0, 0, 1].into(),
            trace: None,
            time: UnixMillis(0),
        }
    }

    /// Logs into a page with this filter, closes the log, and returns the text.
    fn logged(format: LogFormat, filter: Option<&str>, act: impl FnOnce(&Logs)) -> String {
        let page = Page::default();
        let sink = Sink::start(page.clone(), Counter::default()).unwrap();
        let dispatch = dispatch(format, parse_filter(filter).unwrap(), Arc::clone(&sink));
        let logs = Logs { sink, format, access: shows_access_lines(&dispatch) };
        dispatcher::with_default(&dispatch, || act(&logs));
        drop(logs);
        page.text()
    }

    #[test]
    fn events_and_access_lines_share_the_log_in_order() {
        let text = logged(LogFormat::Text, None, |logs| {
            tracing::info!(port = 8443, "listening");
            logs.access().line(&line());
            tracing::debug!("not shown");
            tracing::warn!("going");
        });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].contains("INFO paybridge::telemetry::logs::tests: listening port=8443"), "{text}");
        assert!(lines[1].contains("INFO paybridge::access: request_id=r1"), "{text}");
        assert!(lines[2].contains("WARN") && lines[2].ends_with("going"), "{text}");
    }

    #[test]
    fn json_events_and_access_lines_have_the_same_keys() {
        let text = logged(LogFormat::Json, None, |logs| {
            tracing::info!("listening");
            logs.access().line(&line());
        });
        for line in text.lines() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            for key in ["timestamp", "level", "target"] {
                assert!(value[key].is_string(), "{line}");
            }
        }
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn the_filter_hides_access_lines() {
        for filter in ["warn", "info,paybridge::access=off", "paybridge::access=warn"] {
            let text = logged(LogFormat::Text, Some(filter), |logs| logs.access().line(&line()));
            assert_eq!(text, "", "{filter}");
        }
        let text = logged(LogFormat::Text, Some("off,paybridge::access=info"), |logs| {
            tracing::error!("hidden");
            logs.access().line(&line());
        });
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(matches!(parse_filter(Some("paybridge=loud")), Err(LogsError::Filter(_))));
    }

    #[test]
    fn concurrent_lines_are_not_mixed() {
        let page = Page::default();
        let sink = Sink::start(page.clone(), Counter::default()).unwrap();
        thread::scope(|scope| {
            for id in 0..8_u8 {
                let sink = &sink;
                scope.spawn(move || {
                    let line = [[b'a' + id; 60].as_slice(), b"\n"].concat();
                    for _ in 0..500 {
                        sink.push(&line, ACCESS_BYTES);
                    }
                });
            }
        });
        sink.close();
        let text = page.text();
        assert_eq!(text.lines().count(), 4000);
        assert!(text.lines().all(|line| line.len() == 60 && line.bytes().all(|b| b == line.as_bytes()[0])));
    }

    #[test]
    fn a_full_buffer_drops_and_counts_access_lines_before_events() {
        let (go, stuck) = mpsc::channel();
        let dropped = Counter::default();
        let sink = Sink::start(Stuck(stuck), dropped.clone()).unwrap();
        let line = [b'x'; 1024];
        // The writer holds one buffer and another one fills up, so two buffers of lines do not fit, whichever thread
        // runs first.
        for _ in 0..=2 * ACCESS_BYTES / line.len() {
            sink.push(&line, ACCESS_BYTES);
        }
        let lost = dropped.get();
        assert!(lost > 0);
        sink.push(&line, EVENT_BYTES);
        assert_eq!(dropped.get(), lost, "an event still fits");
        assert!(sink.state().pending.len() <= EVENT_BYTES);
        drop(go);
        sink.close();
        assert!(sink.state().closed);
    }
}
