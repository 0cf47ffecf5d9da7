//! The repository tests itself: modules import only downward, HTTP statuses are made in one place, money is never a
//! binary float, and nothing unfinished is left lying about.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use regex::Regex;

/// The rows of the map in `src/lib.rs`, top down: a module imports only from rows below its own, and from its own row
/// only itself.
const ROWS: &[&[&str]] = &[
    &["main"],
    &["cli"],
    &["app"],
    &["http"],
    &["v1"],
    &["upstream"],
    &["v2"],
    &["pages", "callback"],
    &["provider"],
    &["engine"],
    &["auth"],
    &["wire"],
    &["store"],
    &["rules"],
    &["failure"],
    &["certs", "telemetry"],
    &["clock"],
    &["domain"],
];

/// Imports against the order, each with its reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// The only files that name an HTTP status code.
const STATUS_CODES: &[&str] = &["http/reply.rs", "http/admin.rs", "http/listener/refusal.rs"];

/// Where amounts pass: no binary floats there, tests included.
const MONEY: &[&str] = &["domain", "engine", "wire", "v1", "v2", "store", "upstream", "provider"];

const MAX_LINES: usize = 800;

struct Source {
    /// Below `src/`, with slashes.
    name: String,
    text: String,
}

impl Source {
    /// The top-level module it belongs to.
    fn module(&self) -> &str {
        self.name.split('/').next().unwrap().trim_end_matches(".rs")
    }

    /// The lines before the tests at the end, with their numbers.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate();
        lines.take_while(|(_, line)| *line != "#[cfg(test)]").map(|(number, line)| (number + 1, line))
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = Vec::new();
    let mut directories: Vec<PathBuf> = vec![root.clone()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
                sources.push(Source { name, text: std::fs::read_to_string(&path).unwrap() });
            }
        }
    }
    sources.sort_by(|one, other| one.name.cmp(&other.name));
    sources
}

/// A line without its comment; a `//` inside a string only shortens what is looked at.
fn uncommented(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

fn row(module: &str) -> usize {
    ROWS.iter().position(|row| row.contains(&module)).unwrap_or_else(|| panic!("{module} is on no row of the map"))
}

#[track_caller]
fn assert_none(what: &str, found: &[String]) {
    let list = found.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "  {line}");
        text
    });
    assert!(found.is_empty(), "{what}:\n{list}");
}

/// The modules that a line names by `crate::`, in a group of a `use` as well.
fn named(line: &str) -> Vec<String> {
    let path = Regex::new(r"\b(?:crate|paybridge)::(?:\{([^}]*)\}?|([a-z_0-9]+))").unwrap();
    let mut modules = Vec::new();
    for found in path.captures_iter(line) {
        match (found.get(1), found.get(2)) {
            (Some(group), _) => {
                let firsts = group.as_str().split(',').map(|part| part.trim().split("::").next().unwrap().to_owned());
                modules.extend(firsts.filter(|name| name.starts_with(|first: char| first.is_ascii_lowercase())));
            }
            (_, Some(one)) => modules.push(one.as_str().to_owned()),
            _ => {}
        }
    }
    modules
}

#[test]
fn modules_import_only_downward() {
    let mut upward = Vec::new();
    for source in sources().iter().filter(|source| source.name != "lib.rs") {
        let from = source.module();
        for (number, line) in source.code() {
            for to in named(uncommented(line)) {
                let excused = EXCEPTIONS.iter().any(|(name, module, _)| *name == source.name && *module == to);
                if to != from && row(&to) <= row(from) && !excused {
                    upward.push(format!("src/{}:{number}: {from} imports {to}", source.name));
                }
            }
        }
    }
    assert_none("imports against the order of the map in src/lib.rs", &upward);
}

#[test]
fn every_exception_is_still_needed() {
    for (name, module, reason) in EXCEPTIONS {
        let sources = sources();
        let source = sources.iter().find(|source| source.name == *name);
        let used =
            source.is_some_and(|source| source.code().any(|(_, line)| named(line).iter().any(|to| to == module)));
        assert!(used, "{name} does not import {module} any more ({reason})");
    }
}

#[test]
fn the_map_names_every_module() {
    let sources = sources();
    let map = &sources.iter().find(|source| source.name == "lib.rs").unwrap().text;
    for source in &sources {
        let module = source.module();
        assert!(module == "lib" || row(module) < ROWS.len());
        let shown = map.lines().any(|line| line.starts_with("//! |") && line.contains(&format!("[`{module}`]")));
        assert!(["lib", "main"].contains(&module) || shown, "{module} is not in the map of src/lib.rs");
    }
}

#[test]
fn statuses_are_made_in_one_place() {
    let mut strays = Vec::new();
    for source in sources().iter().filter(|source| !STATUS_CODES.contains(&source.name.as_str())) {
        for (number, line) in source.code() {
            if uncommented(line).contains("StatusCode") {
                strays.push(format!("src/{}:{number}: {}", source.name, line.trim()));
            }
        }
    }
    assert_none("StatusCode outside http::reply", &strays);
}

#[test]
fn money_is_no_binary_float() {
    let float = Regex::new(r"\b(f32|f64|as_f64|from_f64)\b").unwrap();
    let mut strays = Vec::new();
    for source in sources().iter().filter(|source| MONEY.contains(&source.module())) {
        for (number, line) in source.code() {
            if float.is_match(uncommented(line)) {
                strays.push(format!("src/{}:{number}: {}", source.name, line.trim()));
            }
        }
    }
    assert_none("binary floats where money passes", &strays);
}

#[test]
fn nothing_unfinished_is_left() {
    let marks = Regex::new(concat!(r"\b(TO", r"DO|FIX", r"ME|X", r"XX)\b|\b(todo|unimplemented|dbg)!")).unwrap();
    let mut strays = Vec::new();
    for source in sources() {
        for (number, line) in source.text.lines().enumerate() {
            if marks.is_match(line) {
                strays.push(format!("src/{}:{}: {}", source.name, number + 1, line.trim()));
            }
        }
        let lines = source.text.lines().count();
        if lines > MAX_LINES {
            strays.push(format!("src/{}: {lines} lines", source.name));
        }
    }
    assert_none("unfinished or overlong", &strays);
}

#[test]
fn the_wall_clock_and_the_exit_have_one_place() {
    let mut strays = Vec::new();
    for source in sources() {
        for (number, line) in source.code() {
            let line = uncommented(line);
            let clock = line.contains("SystemTime::now") && source.name != "clock.rs";
            let exit = line.contains("process::exit") && source.name != "main.rs";
            if clock || exit {
                strays.push(format!("src/{}:{number}: {}", source.name, line.trim()));
            }
        }
    }
    assert_none("the wall clock or an exit in the wrong place", &strays);
}
