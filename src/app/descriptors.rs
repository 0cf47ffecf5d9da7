//! The limit of open files: raises it, and computes how many connections it leaves room for.

use std::num::NonZeroUsize;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Reserved for everything that is not a public connection: the store, the admin listener, the log, certificate files.
const RESERVED: usize = 128;

/// Reserved for outgoing connections to providers and merchants: this many, or a quarter of the limit where that is
/// less.
const OUTGOING: usize = 2304;

/// The descriptors that a worker's runtime holds.
const PER_WORKER: usize = 4;

/// Raises the soft limit of open files to the hard limit and returns it; `None` means that there is no limit.
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

/// Returns how many public connections fit into a limit of `files` open files, at least one.
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
