//! The time that the disk takes for a durable write.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

/// The bytes appended before each fdatasync.
const PAGE: [u8; 4096] = [0x5a; 4096];

/// Appends 4 KiB to a file of this directory and calls fdatasync, as often as `times`. Returns the durations, sorted.
///
/// # Panics
/// The directory cannot be written.
#[must_use]
pub fn fdatasync(directory: &Path, times: usize) -> Vec<Duration> {
    let path = directory.join("fdatasync.probe");
    let mut file = File::create(&path).unwrap();
    let mut took: Vec<_> = (0..times)
        .map(|_| {
            let started = Instant::now();
            file.write_all(&PAGE).unwrap();
            file.sync_data().unwrap();
            started.elapsed()
        })
        .collect();
    std::fs::remove_file(&path).unwrap();
    took.sort();
    took
}

/// Returns the type of a directory's filesystem, as `/proc/self/mounts` names it.
#[must_use]
pub fn filesystem(directory: &Path) -> String {
    let directory = directory.canonicalize().unwrap();
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let holding = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind) = (words.next()?, words.next()?);
        directory.starts_with(place).then_some((place.len(), kind))
    });
    holding.max_by_key(|(length, _)| *length).map_or_else(|| "unknown".to_owned(), |(_, kind)| kind.to_owned())
}

/// Reports whether a directory's files are only in memory.
#[must_use]
pub fn is_memory(directory: &Path) -> bool {
    matches!(&*filesystem(directory), "tmpfs" | "ramfs")
}
