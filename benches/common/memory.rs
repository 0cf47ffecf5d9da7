//! The memory of a server.

use std::fs;

use super::cpu::family;

/// Returns the bytes of memory of these processes and all their descendants: for a single process the resident size, for
/// several the sum of their proportional shares, so that shared memory counts once.
///
/// # Panics
/// None of them is running.
#[must_use]
pub fn of(roots: &[u32]) -> u64 {
    let family = family(roots);
    let bytes = match family[..] {
        [one] => figure(&format!("/proc/{one}/status"), "VmRSS:").unwrap_or(0),
        _ => family.iter().filter_map(|pid| figure(&format!("/proc/{pid}/smaps_rollup"), "Pss:")).sum(),
    };
    assert!(bytes > 0, "no memory could be read of {roots:?}");
    bytes
}

/// Returns the most bytes that a process ever had in memory; 0 once it has ended.
#[must_use]
pub fn peak(process: u32) -> u64 {
    figure(&format!("/proc/{process}/status"), "VmHWM:").unwrap_or(0)
}

/// Returns the value of a line in kilobytes of a file of `/proc`.
fn figure(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}
