//! What the benchmarks that start processes share: a client as cheap as it can be, the CPU and memory of a server with all
//! its processes, the cores that each runs on, and figures as tables and pictures.
//!
//! It stands on `tests/support`, which the benchmark has as its module `support`. Nothing here asserts a time. What goes wrong panics: a benchmark that cannot go on has no figures.
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

/// A line of progress, on standard error.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
