//! The processor time of a server: user and system, of all its threads and of every process below it.
//!
//! `/proc/PID/task/TID/schedstat` counts nanoseconds, but forgets a thread that ends; `/proc/PID/stat` counts ticks of 10 ms
//! and remembers threads that ended and children that were waited for. The first is the figure; where the second is so much
//! larger that something must have ended in between, it is taken instead.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use tokio::time::Instant;

/// How far the ticks may be off: each process rounds two figures down.
const TICKS_ARE_ROUGH: Duration = Duration::from_millis(20);

/// A process is quiet when it takes less than this of [`A_WHILE`].
const QUIET: Duration = Duration::from_millis(2);
const A_WHILE: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(20);

/// What a process and those below it have used up to a moment.
#[derive(Debug, Clone, Default)]
pub struct Usage {
    /// Nanoseconds of each thread that lives.
    threads: BTreeMap<u32, u64>,
    /// Ticks of all processes, threads and children that ended included.
    ticks: u64,
    processes: u32,
}

impl Usage {
    /// The usage of these processes and of all below them, now.
    #[must_use]
    pub fn of(roots: &[u32]) -> Self {
        let mut usage = Self::default();
        for pid in family(roots) {
            usage.add(pid);
        }
        usage
    }

    /// What was used since an earlier moment.
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

/// Waits until these processes have nothing left to do, so that what a server puts off counts as its own.
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

/// These processes and all that descend from them.
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

/// The fields of `/proc/PID/stat` from the third on: the second is a name that may hold anything.
fn stat_after_name(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(") ")?.1.to_owned())
}
