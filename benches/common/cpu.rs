//! The processor time of a server: user and system, of all its threads and of every process below it.
//!
//! `/proc/PID/task/TID/schedstat` counts nanoseconds, but forgets a thread that ends; `/proc/PID/stat` counts ticks of 10 ms
//! and includes ended threads and waited-for children. The first is used; if the second is so much larger that a thread or
//! process must have ended in between, the second is used instead.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use tokio::time::Instant;

/// The error of the ticks of one process: two figures are rounded down.
const TICKS_ARE_ROUGH: Duration = Duration::from_millis(20);

/// A process is quiet when it takes less than this of [`A_WHILE`].
const QUIET: Duration = Duration::from_millis(2);
const A_WHILE: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(20);

/// The processor time that a process and its descendants have used up to a moment.
#[derive(Debug, Clone, Default)]
pub struct Usage {
    /// Nanoseconds of each live thread.
    threads: BTreeMap<u32, u64>,
    /// Ticks of all processes, including ended threads and children.
    ticks: u64,
    processes: u32,
}

impl Usage {
    /// Returns the usage of these processes and all their descendants up to now.
    #[must_use]
    pub fn of(roots: &[u32]) -> Self {
        let mut usage = Self::default();
        for pid in family(roots) {
            usage.add(pid);
        }
        usage
    }

    /// Returns the processor time used since an earlier moment.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Duration {
        let used = |(thread, now): (&u32, &u64)| now.saturating_sub(earlier.threads.get(thread).copied().unwrap_or(0));
        let precise = Duration::from_nanos(self.threads.iter().map(used).sum());
        let ticks = self.ticks.saturating_sub(earlier.ticks);
        let a_second = rustix::param::clock_ticks_per_second();
        let rough = Duration::from_millis(ticks * 1000 / a_second).saturating_sub(TICKS_ARE_ROUGH * self.processes);
        precise.max(rough)
    }

    /// A process that ended meanwhile adds nothing.
    fn add(&mut self, pid: u32) {
        let Some(stat) = stat_after_name(pid) else { return };
        self.processes += 1;
        // utime, stime, cutime and cstime.
        self.ticks += stat.split(' ').skip(11).take(4).filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>();
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return };
        for task in tasks.filter_map(Result::ok) {
            let Some(thread) = task.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let Ok(schedstat) = fs::read_to_string(task.path().join("schedstat")) else { continue };
            let nanoseconds = schedstat.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0);
            self.threads.insert(thread, nanoseconds);
        }
    }
}

/// Waits until these processes are idle, so that work that a server has deferred is counted for it.
pub async fn quiet(roots: &[u32]) {
    let deadline = Instant::now() + PATIENCE;
    let mut before = Usage::of(roots);
    loop {
        tokio::time::sleep(A_WHILE).await;
        let now = Usage::of(roots);
        if now.since(&before) < QUIET || Instant::now() > deadline {
            return;
        }
        before = now;
    }
}

/// Returns these processes and all their descendants.
#[must_use]
pub fn family(roots: &[u32]) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok) {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Some(parent) = stat_after_name(pid).and_then(|stat| stat.split(' ').nth(1)?.parse().ok()) else { continue };
        children.entry(parent).or_default().push(pid);
    }
    let mut found = roots.to_vec();
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    found
}

/// Returns the fields of `/proc/PID/stat` from the third on: the second is a name that may contain any character.
fn stat_after_name(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(") ")?.1.to_owned())
}
