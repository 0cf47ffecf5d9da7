//! The machine, the versions and the time of a measurement: figures mean nothing without them.

use std::fs;
use std::process::Command;

/// Returns pairs of name and value.
#[must_use]
pub fn describe() -> Vec<(&'static str, String)> {
    let cores = fs::read_to_string("/proc/cpuinfo").unwrap_or_default().matches("processor\t:").count();
    vec![
        ("date", date()),
        ("commit", commit()),
        ("processor", format!("{}, {cores} cores", processor())),
        ("memory", memory()),
        ("kernel", first_line("uname", &["-sr"])),
        ("system", system()),
        ("rustc", first_line("rustc", &["--version"])),
    ]
}

/// Returns the first line that a program prints, to either stream.
#[must_use]
pub fn first_line(program: &str, arguments: &[&str]) -> String {
    let Ok(output) = Command::new(program).args(arguments).output() else { return "unknown".to_owned() };
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    String::from_utf8_lossy(&text).lines().next().unwrap_or("unknown").trim().to_owned()
}

#[expect(clippy::disallowed_methods, reason = "a report is dated by the wall clock")]
fn date() -> String {
    jiff::Timestamp::now().strftime("%F %H:%M UTC").to_string()
}

fn commit() -> String {
    let commit = first_line("git", &["rev-parse", "--short=12", "HEAD"]);
    let changed = !matches!(&*first_line("git", &["status", "--porcelain", "--untracked-files=no"]), "" | "unknown");
    if changed { format!("{commit}, with changes") } else { commit }
}

fn processor() -> String {
    value("/proc/cpuinfo", "model name").unwrap_or_else(|| first_line("uname", &["-m"]))
}

fn memory() -> String {
    let kilobytes: u64 =
        value("/proc/meminfo", "MemTotal").and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or(0);
    format!("{} MiB", kilobytes / 1024)
}

fn system() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or_else(|| "unknown".to_owned(), |name| name.trim_matches('"').to_owned())
}

fn value(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
