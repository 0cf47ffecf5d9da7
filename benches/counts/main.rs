//! How many instructions the hot pieces of a request take, beside what was recorded: a change that costs is seen in
//! review, on any machine, whatever else runs there.
//!
//! ```sh
//! benches/counts.sh            # each piece: recorded, now, change
//! benches/counts.sh --record   # writes benches/counts.toml
//! cargo test --bench counts    # only shows that every piece runs, without valgrind
//! ```
//!
//! Each piece runs in a process of its own under callgrind, which counts what runs below [`counted`] and nothing else; the
//! commit of a batch, which is another thread's work, is the difference between two runs. Rules, bodies, clock and
//! randomness are always the same, so that most figures repeat exactly. What is left wobbles by up to 0.6 %: the standard
//! library's maps have other seeds in every process, and the batch's threads wake each other as they are scheduled.
//!
//! Instructions are not time. The kernel's are not counted (a commit's `fdatasync` is nothing here), and valgrind shows
//! programs a processor without SHA instructions: where HMAC-SHA256 is part of a piece, the portable code counts, which is
//! many times as long. AES is counted as the processor has it.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on panics")]

mod fixture;
mod pieces;
mod record;
mod stored;

#[path = "../common/drafts.rs"]
mod drafts;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::hint::black_box;

use pieces::PIECES;

/// The product's own: what it takes to allocate is part of every piece.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A hot piece.
struct Piece {
    /// Its name in `counts.toml`.
    name: &'static str,
    /// What it is, for people.
    about: &'static str,
    scope: Scope,
}

/// What of a process belongs to a piece.
#[derive(Clone, Copy)]
enum Scope {
    /// What runs below [`counted`], so many times.
    Counted(fn(u32)),
    /// What a process does more for each further round, whichever thread does it.
    Process(fn(u32)),
}

/// Callgrind counts what runs below this function.
#[inline(never)]
fn counted(piece: &mut dyn FnMut()) {
    piece();
    black_box(());
}

/// Counts a piece so many times, after once uncounted: what only the first call does is not part of it.
fn repeat(times: u32, mut piece: impl FnMut()) {
    piece();
    for _ in 0..times {
        counted(&mut piece);
    }
}

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--piece", name, times] => {
            run(PIECES.iter().find(|piece| piece.name == name).expect("a piece"), times.parse().unwrap());
            std::process::ExitCode::SUCCESS
        }
        _ if words.contains(&"--record") => record::record(),
        _ if words.contains(&"--bench") => record::compare(),
        _ => record::smoke(),
    }
}

fn run(piece: &Piece, times: u32) {
    match piece.scope {
        Scope::Counted(run) | Scope::Process(run) => run(times),
    }
}
