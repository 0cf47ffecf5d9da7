//! Shared by the benchmarks that start processes: a client that costs as little as possible, the CPU and memory of a server
//! with all its processes, the cores that each runs on, and figures as tables and pictures.
//!
//! It uses `tests/support`, which the benchmark includes as its module `support`. No time is asserted. Errors panic: a
//! benchmark that cannot continue has no figures.
#![allow(dead_code, reason = "each benchmark uses its part")]
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on panics")]
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

pub mod counters;
pub mod cpu;
pub mod disk;
pub mod gateway;
pub mod load;
pub mod machine;
pub mod memory;
pub mod pin;
pub mod plot;
pub mod statistics;

use std::io::Write as _;

/// Writes a line of progress to standard error.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
