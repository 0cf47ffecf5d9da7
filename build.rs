//! Passes the commit that is built, its time and the target to the crate: the same checkout gives the same values
//! everywhere. Without a checkout, or without git, the commit is unknown.

use std::env;
use std::path::Path;
use std::process::Command;

/// What the binary is made of, besides `src`.
const MADE_OF: [&str; 4] = ["Cargo.toml", "Cargo.lock", "build.rs", "docs/openapi.json"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let commit = commit();
    watch(commit.is_some());
    let dirty = if commit.is_some() && is_dirty() { "-dirty" } else { "" };
    let time = env::var("SOURCE_DATE_EPOCH").ok().or_else(|| git(&["log", "-1", "--format=%ct"]));
    let commit = commit.as_deref().map_or("unknown", |commit| &commit[..12]);
    println!("cargo::rustc-env=PAYBRIDGE_COMMIT={commit}{dirty}");
    println!("cargo::rustc-env=PAYBRIDGE_COMMIT_SECONDS={}", time.unwrap_or_default());
    println!("cargo::rustc-env=PAYBRIDGE_TARGET={}", env::var("TARGET").unwrap_or_default());
}

/// Returns the commit of the checkout whose root is this directory. The sources may lie within a checkout of something
/// else, whose commit is not theirs.
fn commit() -> Option<String> {
    let is_root = git(&["rev-parse", "--show-prefix"])?.is_empty();
    git(&["rev-parse", "HEAD"]).filter(|commit| is_root && commit.len() >= 12)
}

fn is_dirty() -> bool {
    let status = ["--no-optional-locks", "status", "--porcelain", "--", "src"];
    git(&[&status[..], &MADE_OF].concat()).is_none_or(|changed| !changed.is_empty())
}

/// Names what may change the values, and nothing that is built more often than them: a file that only tests have is built
/// into no binary. In a worktree `.git` is a file, so git finds the paths. A path that is missing would run this again
/// with each build.
fn watch(in_checkout: bool) {
    if !in_checkout {
        return;
    }
    let at = |name: &str| git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists());
    let reference = git(&["symbolic-ref", "--quiet", "HEAD"]).map(|name| at(&name));
    let heads = match reference {
        Some(Some(reference)) => vec![Some(reference)],
        // The reference is packed; the next commit writes it elsewhere, and into the log of `HEAD`.
        Some(None) => vec![at("packed-refs"), at("logs/HEAD")],
        None => Vec::new(),
    };
    let sources = git(&["ls-files", "src"]).unwrap_or_default();
    let sources = sources.lines().filter(|path| !is_of_tests(path)).chain(MADE_OF).map(str::to_owned);
    for path in at("HEAD").into_iter().chain(heads.into_iter().flatten()).chain(sources) {
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

/// Reports whether a file below `src` belongs to tests alone, by its path.
fn is_of_tests(path: &str) -> bool {
    let of_tests = ["tests", "test", "testing", "conformance", "fixture", "snapshots", "golden", "properties"];
    path.split('/')
        .map(|part| part.trim_end_matches(".rs"))
        .any(|part| of_tests.contains(&part) || part.ends_with("_tests"))
}

/// Returns what git prints; `None` when it fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
}
