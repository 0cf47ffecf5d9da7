//! What a server executes for a request, where its processor time cannot be compared: on a machine that is shared or throttled.
//!
//! `perf stat` reads the processor's counters; counting slows context switches down. Under callgrind a program is interpreted
//! on one core, and its instructions and allocations are counted by function: these counts hardly change between runs. Times
//! of a counted run are not meaningful.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::Serialize;

const EVENTS: &str = "instructions:u,instructions:k,cycles:u,cycles:k";
/// The time for perf to begin: it does not report that it has.
const TO_BEGIN: Duration = Duration::from_millis(300);

/// The program that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// `perf stat`.
    Perf,
    /// callgrind, under which the server already runs.
    Callgrind,
}

/// The counts of a request.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged)]
pub enum Counted {
    /// By the processor, in thousands.
    Perf {
        /// Instructions outside the kernel.
        instructions_user: f64,
        /// Instructions in the kernel.
        instructions_kernel: f64,
        /// Cycles outside the kernel.
        cycles_user: f64,
        /// Cycles in the kernel.
        cycles_kernel: f64,
    },
    /// By callgrind.
    Callgrind {
        /// Instructions outside the kernel, in thousands.
        instructions: f64,
        /// Those of SHA-256, in thousands: valgrind offers no instructions for it, and what a program does instead takes a
        /// multiple of the time.
        sha256: f64,
        /// Allocations.
        allocations: f64,
    },
}

impl Counted {
    /// Returns the text that follows a time in the output.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Perf { instructions_user, instructions_kernel, cycles_user, cycles_kernel } => format!(
                "; instructions {instructions_user:.1} k and {instructions_kernel:.1} k, cycles {cycles_user:.1} k and \
                 {cycles_kernel:.1} k"
            ),
            Self::Callgrind { instructions, sha256, allocations } => format!(
                "; instructions {instructions:.1} k, without SHA-256 {:.1} k; allocations {allocations:.1}",
                instructions - sha256
            ),
        }
    }
}

/// A running count.
pub enum Counting {
    /// The running `perf`.
    Perf(Child),
    /// The ids of the processes.
    Callgrind(Vec<u32>),
}

impl Counting {
    /// Starts counting for these processes.
    ///
    /// # Panics
    ///
    /// When `perf` cannot be started, or a process does not run under callgrind.
    pub async fn begin(counter: Counter, pids: &[u32]) -> Self {
        if counter == Counter::Callgrind {
            for pid in pids {
                callgrind_control("--zero", *pid);
            }
            return Self::Callgrind(pids.to_vec());
        }
        let pids = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let mut perf = Command::new("perf");
        perf.args(["stat", "--field-separator", ";", "--event", EVENTS, "--pid", &pids]);
        let child = perf.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("perf can be started");
        tokio::time::sleep(TO_BEGIN).await;
        Self::Perf(child)
    }

    /// Ends the count.
    ///
    /// # Panics
    ///
    /// When nothing is counted.
    pub fn end(self, requests: usize) -> Counted {
        match self {
            Self::Perf(perf) => of_perf(perf, requests as f64),
            Self::Callgrind(pids) => of_callgrind(&pids, requests as f64),
        }
    }
}

fn of_perf(perf: Child, requests: f64) -> Counted {
    let pid = rustix::process::Pid::from_child(&perf);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("perf still counts");
    let stated = perf.wait_with_output().expect("perf prints its counts");
    let stated = String::from_utf8_lossy(&stated.stderr).into_owned();
    let thousands = |event: &str| {
        let line = stated.lines().find(|line| line.split(';').nth(2) == Some(event));
        let count = line.and_then(|line| line.split(';').next()?.parse::<f64>().ok());
        count.unwrap_or_else(|| panic!("{event} are not counted here: {stated}")) / requests / 1000.0
    };
    Counted::Perf {
        instructions_user: thousands("instructions:u"),
        instructions_kernel: thousands("instructions:k"),
        cycles_user: thousands("cycles:u"),
        cycles_kernel: thousands("cycles:k"),
    }
}

fn callgrind_control(command: &str, pid: u32) {
    let ran = Command::new("callgrind_control").arg(command).arg(pid.to_string()).output().expect("it can be started");
    assert!(ran.status.success(), "callgrind_control: {}", String::from_utf8_lossy(&ran.stdout));
}

/// Reads what callgrind writes into the server's directory, by names and numbers that are not compressed.
fn of_callgrind(pids: &[u32], requests: f64) -> Counted {
    let (mut all, mut sha256, mut allocations) = (0_u64, 0_u64, 0_u64);
    for pid in pids {
        callgrind_control("--dump", *pid);
        let (mut function, mut callee) = (String::new(), String::new());
        let mut is_of_a_call = false;
        for line in fs::read_to_string(newest_dump(*pid)).unwrap().lines() {
            if let Some(name) = line.strip_prefix("fn=") {
                name.clone_into(&mut function);
            } else if let Some(name) = line.strip_prefix("cfn=") {
                name.clone_into(&mut callee);
            } else if let Some(call) = line.strip_prefix("calls=") {
                // The costs of the next line are the callee's.
                is_of_a_call = true;
                if allocates(&callee) && !allocates(&function) {
                    allocations += call.split(' ').next().unwrap().parse::<u64>().unwrap();
                }
            } else if line.starts_with(|first: char| first.is_ascii_digit()) && !std::mem::take(&mut is_of_a_call) {
                let count = line.split(' ').nth(1).map_or(0, |count| count.parse::<u64>().unwrap());
                all += count;
                if function.contains("sha2") && function.contains("compress") {
                    sha256 += count;
                }
            }
        }
    }
    let each = |count: u64| count as f64 / requests;
    assert!(all > 0, "callgrind has counted nothing");
    Counted::Callgrind { instructions: each(all) / 1e3, sha256: each(sha256) / 1e3, allocations: each(allocations) }
}

/// Reports whether a function of this name allocates, for Rust or C.
fn allocates(function: &str) -> bool {
    let name = function.strip_prefix("mi_").unwrap_or(function);
    ["malloc", "calloc", "zalloc", "realloc", "heap_malloc"].iter().any(|start| name.starts_with(start))
}

fn newest_dump(pid: u32) -> PathBuf {
    let prefix = format!("callgrind.out.{pid}.");
    let entries = fs::read_dir(format!("/proc/{pid}/cwd")).unwrap().map(|entry| entry.unwrap().path());
    let number = |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix(&prefix)?.parse::<u32>().ok();
    entries.filter(|path| number(path).is_some()).max_by_key(number).expect("callgrind has written a file")
}
