//! The `paybridge` command.

#![warn(clippy::as_conversions, clippy::indexing_slicing, clippy::wildcard_enum_match_arm)]

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    paybridge::cli::run(std::env::args_os())
}
