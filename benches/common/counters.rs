//! The processor's counters while a server works, by `perf stat`: on a machine that is shared or throttled, instructions and
//! cycles can still be compared where processor time cannot.
//!
//! Counting slows context switches down, so times of a counted run are not meaningful.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::Serialize;

const EVENTS: &str = "instructions:u,instructions:k,cycles:u,cycles:k";
/// The time for perf to begin: it does not report that it has.
const TO_BEGIN: Duration = Duration::from_millis(300);

/// The counts, in thousands per request.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Counted {
    /// Instructions outside the kernel.
    pub instructions_user: f64,
    /// Instructions in the kernel.
    pub instructions_kernel: f64,
    /// Cycles outside the kernel.
    pub cycles_user: f64,
    /// Cycles in the kernel.
    pub cycles_kernel: f64,
}

impl Counted {
    /// Returns the text that follows a time in the output.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { instructions_user, instructions_kernel, cycles_user, cycles_kernel } = self;
        format!(
            "; instructions {instructions_user:.1} k and {instructions_kernel:.1} k, cycles {cycles_user:.1} k and \
             {cycles_kernel:.1} k"
        )
    }
}

/// A running count.
pub struct Counting(Child);

impl Counting {
    /// Starts counting for these processes.
    ///
    /// # Panics
    ///
    /// When `perf` cannot be started.
    pub async fn begin(pids: &[u32]) -> Self {
        let pids = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let mut perf = Command::new("perf");
        perf.args(["stat", "--field-separator", ";", "--event", EVENTS, "--pid", &pids]);
        let child = perf.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("perf can be started");
        tokio::time::sleep(TO_BEGIN).await;
        Self(child)
    }

    /// Ends the count.
    ///
    /// # Panics
    ///
    /// When the processor does not count.
    pub fn end(self, requests: usize) -> Counted {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("perf still counts");
        let stated = self.0.wait_with_output().expect("perf prints its counts");
        let stated = String::from_utf8_lossy(&stated.stderr).into_owned();
        let thousands = |event: &str| {
            let line = stated.lines().find(|line| line.split(';').nth(2) == Some(event));
            let count = line.and_then(|line| line.split(';').next()?.parse::<f64>().ok());
            count.unwrap_or_else(|| panic!("{event} are not counted here: {stated}")) / requests as f64 / 1000.0
        };
        Counted {
            instructions_user: thousands("instructions:u"),
            instructions_kernel: thousands("instructions:k"),
            cycles_user: thousands("cycles:u"),
            cycles_kernel: thousands("cycles:k"),
        }
    }
}
