//! What a file's content is told apart by without reading it.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::domain::UnixMillis;

/// How long after its last change a file's stamp is not trusted, in milliseconds: where times are kept by the second, a
/// second change within the same one leaves the stamp as it was. No filesystem in use is coarser than two seconds.
const SETTLED_AFTER_MS: i64 = 3000;

/// Which file it is, how long, and when it was last changed: links are followed, so that another target is another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    /// Seconds and nanoseconds: the content's, and the inode's, which nobody can set back.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Of what a path leads to; nothing for what cannot be looked at, or is not there.
    pub fn at(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|meta| Self::of(&meta))
    }

    /// Of what was looked at.
    pub fn of(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            length: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// Whether a file that is read at `now` could change once more without another stamp.
    fn may_hide_a_change(&self, now: UnixMillis) -> bool {
        let changed_ms = self.changed.0.saturating_mul(1000).saturating_add(self.changed.1 / 1_000_000);
        changed_ms.saturating_add(SETTLED_AFTER_MS) > now.0
    }
}

/// The stamp that a file had when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadStamp {
    /// `None`: it was not there.
    stamp: Option<Stamp>,
    /// Whether it had only just been changed, so that its stamp proves nothing.
    fresh: bool,
}

impl ReadStamp {
    /// Of a file that is read at `now`, stamped before that: a change in between is seen the next time.
    pub fn new(stamp: Option<Stamp>, now: UnixMillis) -> Self {
        Self { stamp, fresh: may_hide(stamp, now) }
    }

    /// Whether a file with this stamp holds, beyond doubt, what was read.
    pub fn proves(&self, stamp: Option<Stamp>) -> bool {
        !self.fresh && self.is_still(stamp)
    }

    /// Whether the stamp is the same; that proves nothing of a file that had only just been changed.
    pub fn is_still(&self, stamp: Option<Stamp>) -> bool {
        self.stamp == stamp
    }

    /// Whether a file that has the same stamp at `now` holds the same. Asks `is_same`, which reads it, only where the stamp
    /// proves nothing.
    pub fn still_holds(&mut self, now: UnixMillis, is_same: impl FnOnce() -> bool) -> bool {
        if !self.fresh {
            return true;
        }
        let same = is_same();
        self.fresh = !same || may_hide(self.stamp, now);
        same
    }
}

fn may_hide(stamp: Option<Stamp>, now: UnixMillis) -> bool {
    stamp.is_some_and(|stamp| stamp.may_hide_a_change(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_trusted_once_its_file_was_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        fs::write(&path, "one").unwrap();
        let stamp = Stamp::at(&path).unwrap();
        let changed = UnixMillis(stamp.changed.0 * 1000 + stamp.changed.1 / 1_000_000);
        assert!(stamp.may_hide_a_change(changed));
        assert!(stamp.may_hide_a_change(UnixMillis(changed.0 - 3_600_000)), "a clock that is behind");
        assert!(stamp.may_hide_a_change(UnixMillis(changed.0 + 2999)));
        assert!(!stamp.may_hide_a_change(UnixMillis(changed.0 + 3000)));
        fs::copy(&path, directory.path().join("y")).unwrap();
        fs::rename(directory.path().join("y"), &path).unwrap();
        assert_ne!(stamp, Stamp::at(&path).unwrap(), "another file of the same length");
    }

    #[test]
    fn only_a_file_whose_stamp_proves_nothing_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        fs::write(&path, "one").unwrap();
        let stamp = Stamp::at(&path);
        let changed = UnixMillis(stamp.unwrap().changed.0 * 1000);
        let (soon, late) = (changed, UnixMillis(changed.0 + 60_000));
        let mut settled = ReadStamp::new(stamp, late);
        assert!(settled.proves(stamp) && !settled.proves(None) && settled.is_still(stamp));
        assert!(settled.still_holds(late, || panic!("it need not be read")));
        let mut fresh = ReadStamp::new(stamp, soon);
        assert!(!fresh.proves(stamp) && fresh.is_still(stamp));
        assert!(!fresh.still_holds(late, || false), "it was read, and holds something else");
        assert!(fresh.still_holds(soon, || true) && !fresh.proves(stamp), "it may change once more");
        assert!(fresh.still_holds(late, || true) && fresh.proves(stamp), "it was read when its stamp was settled");
        let missing = ReadStamp::new(None, soon);
        assert!(missing.proves(None) && !missing.proves(stamp), "what comes has a stamp");
    }
}
