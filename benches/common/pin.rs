//! Which core runs what. Processes inherit the cores of the thread that starts them.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores of a benchmark.
#[derive(Debug, Clone, Copy)]
pub struct Cores {
    /// Runs what is measured.
    pub servers: usize,
    /// Runs the client, and whatever stands behind the servers.
    pub client: usize,
}

impl Cores {
    /// The first two cores that this process may use; a single one does for both.
    #[must_use]
    pub fn choose() -> Self {
        let allowed = sched_getaffinity(None).unwrap();
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
        let servers = cores.next().unwrap();
        Self { servers, client: cores.next().unwrap_or(servers) }
    }

    /// Whether client and servers are kept apart.
    #[must_use]
    pub fn apart(self) -> bool {
        self.servers != self.client
    }

    /// What is said of it.
    #[must_use]
    pub fn describe(self) -> &'static str {
        if self.apart() {
            "one core for the server, another for the client and the stub back ends"
        } else {
            "one core for everything: the client disturbs what it measures"
        }
    }
}

/// Keeps this thread, and what it starts from here on, on one core.
pub fn to(core: usize) {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).unwrap();
}
