//! Runs the pieces under callgrind, and writes or reads what was recorded.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use super::pieces::PIECES;
use super::{Piece, Scope};

/// How often a piece is counted.
const TIMES: u32 = 50;

/// The rounds of the two runs whose difference is what a round takes.
const ROUNDS: [u32; 2] = [2, 6];

/// From this change on a piece is marked, in per cent.
const MARKED: f64 = 1.0;

/// What `benches/counts.toml` holds.
#[derive(serde::Deserialize)]
struct Recorded {
    /// The compiler and the counter that it was recorded with.
    made_with: String,
    pieces: BTreeMap<String, u64>,
}

/// Counts every piece and writes the figures down.
pub fn record() -> ExitCode {
    let mut text = String::from(
        "# Instructions that each hot piece takes, once. Written by `benches/counts.sh --record`, compared by\n\
         # `benches/counts.sh`; benches/counts/main.rs says what is counted, and how.\n",
    );
    let _ = writeln!(text, "made_with = \"{}\"\n\n[pieces]", made_with());
    let mut whole = true;
    for piece in PIECES {
        match count(piece) {
            Ok(now) => {
                say(&format!("{:<18} {now:>9}  {}", piece.name, piece.about));
                let _ = writeln!(text, "# {}\n{} = {now}", piece.about, piece.name);
            }
            Err(trouble) => {
                say(&format!("{:<18} {trouble}", piece.name));
                whole = false;
            }
        }
    }
    if !whole {
        say("not every piece ran: nothing was recorded");
        return ExitCode::FAILURE;
    }
    std::fs::write(file(), text).unwrap();
    say(&format!("recorded in {}", file().display()));
    ExitCode::SUCCESS
}

/// Counts every piece and prints it beside what was recorded. A change is no failure.
pub fn compare() -> ExitCode {
    let recorded = std::fs::read_to_string(file()).unwrap_or_default();
    let recorded = toml::from_str(&recorded)
        .unwrap_or_else(|_| Recorded { made_with: "nothing".to_owned(), pieces: BTreeMap::new() });
    if recorded.made_with != made_with() {
        say(&format!("recorded with {}, now {}: both change counts", recorded.made_with, made_with()));
    }
    say(&format!("{:<18} {:>9} {:>9} {:>8}", "instructions", "recorded", "now", "change"));
    let mut whole = true;
    for piece in PIECES {
        match count(piece) {
            Ok(now) => say(&line(piece, recorded.pieces.get(piece.name).copied(), now)),
            Err(trouble) => {
                say(&format!("{:<18} {trouble}", piece.name));
                whole = false;
            }
        }
    }
    if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn line(piece: &Piece, recorded: Option<u64>, now: u64) -> String {
    let Some(recorded) = recorded else { return format!("{:<18} {:>9} {now:>9} {:>8}", piece.name, "-", "new") };
    let change = change(recorded, now);
    let mark = if change.abs() > MARKED { "  <--" } else { "" };
    format!("{:<18} {recorded:>9} {now:>9} {change:>+7.2}%{mark}", piece.name)
}

/// In per cent of what was recorded.
#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn change(recorded: u64, now: u64) -> f64 {
    (now as f64 / recorded.max(1) as f64 - 1.0) * 100.0
}

/// What a piece takes, once.
fn count(piece: &Piece) -> Result<u64, String> {
    match piece.scope {
        Scope::Counted(_) => Ok(collected(piece, TIMES, &["--toggle-collect=*counts::counted*"])? / u64::from(TIMES)),
        Scope::Process(_) => {
            let [few, many] = ROUNDS;
            let more = collected(piece, many, &[])?.saturating_sub(collected(piece, few, &[])?);
            Ok(more / u64::from(many - few))
        }
    }
}

/// The instructions of one run under callgrind. What callgrind wrote stays in `target/counts`, for `callgrind_annotate`.
fn collected(piece: &Piece, times: u32, options: &[&str]) -> Result<u64, String> {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/counts");
    std::fs::create_dir_all(&kept).unwrap();
    let (profile, log) = (kept.join(piece.name).with_extension("out"), kept.join(piece.name).with_extension("log"));
    let mut valgrind = Command::new("valgrind");
    valgrind.arg("--tool=callgrind").args(options);
    valgrind.arg(format!("--callgrind-out-file={}", profile.display()));
    valgrind.arg(format!("--log-file={}", log.display()));
    run(valgrind.arg(std::env::current_exe().unwrap()), piece, times)?;
    let log = std::fs::read_to_string(&log).unwrap_or_default();
    let count = log.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    count.filter(|count| *count > 0).ok_or_else(|| "callgrind counted nothing".to_owned())
}

/// Shows that every piece runs, without valgrind.
pub fn smoke() -> ExitCode {
    for piece in PIECES {
        if let Err(trouble) = run(&mut Command::new(std::env::current_exe().unwrap()), piece, 2) {
            say(&format!("{}: {trouble}", piece.name));
            return ExitCode::FAILURE;
        }
    }
    say(&format!("{} pieces run", PIECES.len()));
    ExitCode::SUCCESS
}

fn run(program: &mut Command, piece: &Piece, times: u32) -> Result<(), String> {
    let program = program.args(["--piece", piece.name, &times.to_string()]).stdin(Stdio::null());
    let output = program.output().map_err(|error| format!("cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("failed: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/counts.toml")
}

/// The versions that counts depend on.
fn made_with() -> String {
    let said = |program: &str| {
        let output = Command::new(program).arg("--version").output();
        output.map_or_else(|_| format!("no {program}"), |output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let rustc = said("rustc");
    let rustc: Vec<_> = rustc.split(' ').take(2).collect();
    format!("{}, {}", rustc.join(" "), said("valgrind").trim())
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
