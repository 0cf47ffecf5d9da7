//! File stamps: the metadata by which a change of a file is noticed without reading it.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::domain::UnixMillis;

/// How long after a file's last change its stamp is not trusted, in milliseconds: where times have a resolution of
/// seconds, a second change within the same one leaves the stamp as it was. No filesystem in use is coarser than two
/// seconds.
const SETTLED_AFTER_MS: i64 = 3000;

/// The stamp of a file: its identity, length and times. Links are followed, so that another target is another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileMeta {
    device: u64,
    inode: u64,
    length: u64,
    /// The times of the last change of the content and of the inode, in seconds and nanoseconds; the latter cannot be
    /// set back.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileMeta {
    /// Returns the stamp of a path's target; `None` when it is missing or its metadata cannot be read.
    pub(super) fn at(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|meta| Self::of(&meta))
    }

    /// Returns the stamp of a file with this metadata.
    pub(super) fn of(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            length: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// Reports whether a file that is read at `now` could change once more without getting another stamp.
    pub(super) fn may_hide_a_change(&self, now: UnixMillis) -> bool {
        let changed_ms = self.changed.0.saturating_mul(1000).saturating_add(self.changed.1 / 1_000_000);
        changed_ms.saturating_add(SETTLED_AFTER_MS) > now.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_trusted_once_its_file_is_unchanged_for_a_while() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        fs::write(&path, "one").unwrap();
        let stamp = FileMeta::at(&path).unwrap();
        let changed = UnixMillis(stamp.changed.0 * 1000 + stamp.changed.1 / 1_000_000);
        assert!(stamp.may_hide_a_change(changed));
        assert!(stamp.may_hide_a_change(UnixMillis(changed.0 - 3_600_000)), "a clock that is behind");
        assert!(stamp.may_hide_a_change(UnixMillis(changed.0 + 2999)));
        assert!(!stamp.may_hide_a_change(UnixMillis(changed.0 + 3000)));
        fs::copy(&path, directory.path().join("y")).unwrap();
        fs::rename(directory.path().join("y"), &path).unwrap();
        assert_ne!(stamp, FileMeta::at(&path).unwrap(), "another file of the same length");
    }

    #[test]
    fn every_way_of_changing_a_file_gives_another_stamp() {
        let directory = tempfile::tempdir().unwrap();
        let [file, link, other] = ["file", "link", "other"].map(|name| directory.path().join(name));
        std::os::unix::fs::symlink("file", &link).unwrap();
        let changes: [(&str, &dyn Fn()); 5] = [
            ("made", &|| fs::write(&file, "1").unwrap()),
            ("longer", &|| fs::write(&file, "12").unwrap()),
            ("another file of the same time and length", &|| {
                fs::write(&other, "34").unwrap();
                let written = fs::metadata(&file).unwrap().modified().unwrap();
                fs::File::options().write(true).open(&other).unwrap().set_modified(written).unwrap();
                fs::rename(&other, &file).unwrap();
            }),
            ("the same length, and its time put back", &|| {
                let written = fs::metadata(&file).unwrap().modified().unwrap();
                // The time of a change has the kernel's granularity, not the clock's.
                let before = FileMeta::at(&file);
                while FileMeta::at(&file) == before {
                    fs::write(&file, "56").unwrap();
                    fs::File::options().write(true).open(&file).unwrap().set_modified(written).unwrap();
                }
            }),
            ("gone", &|| fs::remove_file(&file).unwrap()),
        ];
        for (what, change) in changes {
            let before = FileMeta::at(&link);
            change();
            assert_ne!(FileMeta::at(&link), before, "{what}");
        }
    }
}
