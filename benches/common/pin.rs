//! Pins threads and processes to cores. Processes inherit the cores of the thread that starts them.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores of a benchmark.
#[derive(Debug, Clone, Copy)]
pub struct Cores {
    /// Runs the measured servers.
    pub servers: usize,
    /// Runs the client and the back ends of the servers.
    pub client: usize,
}

impl Cores {
    /// Returns the first two cores that this process may use; a single one is used for both.
    #[must_use]
    pub fn choose() -> Self {
        let allowed = sched_getaffinity(None).unwrap();
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
        let servers = cores.next().unwrap();
        Self { servers, client: cores.next().unwrap_or(servers) }
    }

    /// Reports whether client and servers have different cores.
    #[must_use]
    pub fn apart(self) -> bool {
        self.servers != self.client
    }

    /// Returns the line of the report.
    #[must_use]
    pub fn describe(self) -> &'static str {
        if self.apart() {
            "one core for the server, another for the client and the stub back ends"
        } else {
            "one core for everything: the client disturbs what it measures"
        }
    }
}

/// Pins this thread, and what it starts from now on, to one core.
pub fn to(core: usize) {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).unwrap();
}
