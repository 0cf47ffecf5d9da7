//! File descriptors: as many as the process may have, and how many connections that is enough for.

use std::num::NonZeroUsize;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Left to everything that is no public connection: the store, the admin listener, the log, certificates that are read.
const RESERVED: usize = 128;

/// Left to connections that the process opens itself, to providers and merchants: this many, or a quarter of all files
/// where there are few.
const OUTGOING: usize = 2304;

/// What the runtime of a worker holds.
const PER_WORKER: usize = 4;

/// Raises the limit of open files as far as the process may by itself; `None`: there is no limit.
///
/// The soft limit is 1024 on most systems for the sake of `select`, which nothing here uses.
pub(super) fn raise() -> Option<usize> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
    getrlimit(Resource::Nofile).current.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// The connections that so many open files leave room for, at least one.
pub(super) fn room_for_connections(files: Option<usize>, workers: NonZeroUsize) -> usize {
    let others = RESERVED.saturating_add(workers.get().saturating_mul(PER_WORKER));
    files.map_or(usize::MAX, |files| files.saturating_sub(others).saturating_sub(OUTGOING.min(files / 4)).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_files_are_left_for_everything_else() {
        let two = NonZeroUsize::new(2).unwrap();
        assert_eq!(room_for_connections(None, two), usize::MAX);
        assert_eq!(room_for_connections(Some(1024), two), 1024 - 128 - 8 - 256);
        assert_eq!(room_for_connections(Some(65_536), two), 65_536 - 128 - 8 - 2304);
        for few in [0, 100, 136, 137, 182] {
            assert_eq!(room_for_connections(Some(few), two), 1);
        }
    }

    #[test]
    fn the_limit_is_raised_to_what_is_allowed() {
        let raised = raise();
        let now = getrlimit(Resource::Nofile);
        assert_eq!(now.current, now.maximum);
        assert_eq!(raised, now.current.map(|limit| usize::try_from(limit).unwrap()));
    }
}
