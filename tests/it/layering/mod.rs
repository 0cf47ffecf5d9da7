//! The repository tests itself: modules import only downward, HTTP statuses are made in one place, money is never a
//! binary float, and nothing unfinished is left lying about.

mod imports;
mod prose;
mod suite;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use regex::Regex;

/// The only files that name an HTTP status code. `listen` is no part of the gateway: it plays a merchant who answers as the
/// command line says.
const STATUS_CODES: &[&str] = &[
    "http/reply.rs",
    "http/admin/reply.rs",
    "cli/listen.rs",
    "cli/listen/exchange.rs",
    "cli/stub/legacy.rs",
    "cli/stub/provider.rs",
];

/// Where amounts pass: no binary floats there, tests included.
const MONEY: &[&str] = &["domain", "engine", "wire", "v1", "v2", "store", "remote", "provider"];

/// The most lines of a file.
const MAX_LINES: usize = 800;

/// The most lines of a file before its tests, and of one that has nothing but tests.
const MAX_CODE: usize = 500;
const MAX_TESTS: usize = 700;

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

    /// Whether the file has nothing but tests and what they need.
    fn is_test(&self) -> bool {
        ["tests", "conformance", "fixture", "testing"].iter().any(|word| self.name.contains(word))
    }

    /// The lines before the tests at the end, without comments, with their numbers.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let end = self.text.find("\n#[cfg(test)]\nmod ").unwrap_or(self.text.len());
        self.text[..end].lines().enumerate().map(|(number, line)| (number + 1, uncommented(line)))
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

/// The rows of the map in `src/lib.rs`, top down: a module imports only from rows below its own, and of its own row only
/// itself. The binary stands above all.
fn rows(sources: &[Source]) -> Vec<Vec<String>> {
    let map = &sources.iter().find(|source| source.name == "lib.rs").unwrap().text;
    let module = Regex::new(r"\[`([a-z0-9_]+)`\]").unwrap();
    let cells = map.lines().filter_map(|line| line.strip_prefix("//! | [")?.split(" | ").next());
    let named = |cell| module.captures_iter(&format!("[{cell}")).map(|found| found[1].to_owned()).collect();
    [vec!["main".to_owned()]].into_iter().chain(cells.map(named)).collect()
}

fn row(rows: &[Vec<String>], module: &str) -> usize {
    let found = rows.iter().position(|row| row.iter().any(|known| known == module));
    found.unwrap_or_else(|| panic!("{module} is on no row of the map in src/lib.rs"))
}

#[track_caller]
fn assert_none(what: &str, found: &[String]) {
    let list = found.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "  {line}");
        text
    });
    assert!(found.is_empty(), "{what}:\n{list}");
}

/// The modules that the code names by `crate::`, in the groups of a `use` as well, with their lines.
fn named(source: &Source) -> Vec<(usize, String)> {
    let mut modules = Vec::new();
    let mut depth = 0; // inside the braces of `crate::{...}`
    for (number, line) in source.code() {
        let mut rest = line;
        loop {
            if depth > 0 {
                rest = group_firsts(rest, &mut depth, |name| modules.push((number, name.to_owned())));
            }
            let Some((_, path)) = rest.split_once("crate::") else { break };
            if let Some(group) = path.strip_prefix('{') {
                depth = 1;
                rest = group;
            } else {
                modules.push((number, first_name(path).to_owned()));
                rest = path;
            }
        }
    }
    // What is no module is an item of the crate's root, such as a macro.
    modules.retain(|(_, name)| name.starts_with(|first: char| first.is_ascii_lowercase()));
    modules
}

/// Takes the first names of a group's members, up to its closing brace, and gives what follows.
fn group_firsts<'a>(text: &'a str, depth: &mut usize, mut take: impl FnMut(&str)) -> &'a str {
    let mut starts = *depth == 1;
    for (at, character) in text.char_indices() {
        match character {
            '{' => *depth += 1,
            '}' => {
                *depth -= 1;
                if *depth == 0 {
                    return &text[at + 1..];
                }
            }
            ',' => starts = *depth == 1,
            _ if starts && character.is_ascii_alphabetic() => {
                take(first_name(&text[at..]));
                starts = false;
            }
            _ => {}
        }
    }
    ""
}

fn first_name(path: &str) -> &str {
    path.split(|character: char| !character.is_ascii_alphanumeric() && character != '_').next().unwrap_or_default()
}

#[test]
fn modules_import_only_downward() {
    let sources = sources();
    let rows = rows(&sources);
    assert!(rows.len() > 10, "the map is read: {rows:?}");
    let mut upward = Vec::new();
    for source in sources.iter().filter(|source| source.name != "lib.rs" && !source.name.ends_with("tests.rs")) {
        let from = source.module();
        for (number, to) in named(source) {
            if to != from && row(&rows, &to) <= row(&rows, from) {
                upward.push(format!("src/{}:{number}: {from} imports {to}", source.name));
            }
        }
    }
    assert_none("imports against the order of the map in src/lib.rs", &upward);
}

#[test]
fn files_do_not_import_in_circles() {
    let circles = imports::Imports::of(&sources()).circles();
    let circles: Vec<_> = circles.iter().map(|circle| circle.join(", ")).collect();
    assert_none("files that import each other in a circle", &circles);
}

/// The modules that a module does without, though the map allows them: the engine decides about domain types, shapes on the
/// wire belong to no storage, rules name a store and open none, what a load of them takes is counted by its caller, and a
/// store or a signature takes a secret or a path and no rule.
const DOES_WITHOUT: &[(&str, &[&str])] = &[
    ("engine", &["wire"]),
    ("wire", &["store", "engine"]),
    ("rules", &["store", "telemetry"]),
    ("store", &["rules"]),
    ("auth", &["rules"]),
];

/// The names that a module does not use: the engine knows no JSON and sends nothing, and a request is served by the rules
/// of its caller.
const NOT_USED: &[(&str, &[&str])] = &[
    ("engine", &["serde_json", "deps.rules", "deps.outbound"]),
    ("homes", &["deps.rules"]),
    ("shadow", &["deps.rules"]),
];

/// The file that looks callers up, in the rules.
const LOOKS_CALLERS_UP: &str = "auth/callers.rs";

#[test]
fn modules_do_without_what_is_not_theirs() {
    let rows = rows(&sources());
    for name in DOES_WITHOUT.iter().flat_map(|(module, names)| names.iter().chain([module])) {
        row(&rows, name);
    }
    let mut strays = Vec::new();
    for source in sources().iter().filter(|source| !source.name.contains("tests") && source.name != LOOKS_CALLERS_UP) {
        for (_, unwanted) in DOES_WITHOUT.iter().filter(|(module, _)| *module == source.module()) {
            let imports = named(source).into_iter().filter(|(_, name)| unwanted.contains(&&**name));
            strays.extend(imports.map(|(number, name)| format!("src/{}:{number}: imports {name}", source.name)));
        }
        for (_, unwanted) in NOT_USED.iter().filter(|(module, _)| *module == source.module()) {
            let uses = source.code().filter(|(_, line)| unwanted.iter().any(|name| line.contains(name)));
            strays.extend(uses.map(|(number, line)| format!("src/{}:{number}: {}", source.name, line.trim())));
        }
    }
    assert_none("imports of what the module does without", &strays);
}

#[test]
fn repeats_are_answered_in_one_place() {
    let lookup = Regex::new(r"\.by_order\(").unwrap();
    let mut callers = Vec::new();
    for source in sources().iter().filter(|source| !source.name.contains("tests") && source.module() != "store") {
        let calls = source.code().filter(|(_, line)| lookup.is_match(line));
        callers.extend(calls.map(|_| source.name.clone()));
    }
    // The import counts what it would change.
    let known = ["cli/import_ids.rs", "engine/repeat.rs"];
    assert_eq!(callers, known, "the files that look an order up");
}

#[test]
fn statuses_are_made_in_one_place() {
    let mut strays = Vec::new();
    for source in sources().iter().filter(|source| !STATUS_CODES.contains(&source.name.as_str())) {
        for (number, line) in source.code() {
            if line.contains("StatusCode") {
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
            if float.is_match(line) {
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
        let (lines, code) = (source.text.lines().count(), source.code().count());
        if lines > MAX_LINES || code > if source.is_test() { MAX_TESTS } else { MAX_CODE } {
            strays.push(format!("src/{}: {lines} lines, {code} before its tests", source.name));
        }
    }
    assert_none("unfinished or overlong", &strays);
}

#[test]
fn the_wall_clock_and_the_exit_have_one_place() {
    // And another, where nothing may be closed on the way to main.
    const EXITS: [&str; 2] = ["main.rs", "store/sqlite/failures.rs"];
    let mut strays = Vec::new();
    for source in sources() {
        for (number, line) in source.code() {
            let clock = line.contains("SystemTime::now") && source.name != "clock.rs";
            let exit = line.contains("process::exit") && !EXITS.contains(&source.name.as_str());
            if clock || exit {
                strays.push(format!("src/{}:{number}: {}", source.name, line.trim()));
            }
        }
    }
    assert_none("the wall clock or an exit in the wrong place", &strays);
}

#[test]
fn the_system_clock_and_the_random_source_are_injected() {
    // A placeholder for a secret that was not asked for is drawn where it stands: nothing is ever signed with it.
    const MAKERS: [&str; 3] = ["app.rs", "clock.rs", "rules/compile/secrets.rs"];
    let mut strays = Vec::new();
    for source in sources() {
        if source.module() == "cli"
            || MAKERS.contains(&source.name.as_str())
            || ["test", "fixture"].iter().any(|word| source.name.contains(word))
        {
            continue;
        }
        for (number, line) in source.code() {
            if line.contains("SystemClock") || line.contains("SystemRandomness") {
                strays.push(format!("src/{}:{number}: {}", source.name, line.trim()));
            }
        }
    }
    assert_none("a clock or a random source that is not injected", &strays);
}

/// Names that every module may have one of.
const COMMON: &[&str] = &["Error", "Row"];

#[test]
fn a_public_type_name_means_one_thing() {
    let declared = Regex::new(r"(?m)^\s*pub(?:\([^)]*\))? (?:unsafe )?(?:struct|enum|union|trait|type) (\w+)").unwrap();
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in &sources() {
        for found in declared.captures_iter(&source.text) {
            places.entry(found[1].to_owned()).or_default().push(source.name.clone());
        }
    }
    let twice = places.iter().filter(|(name, places)| places.len() > 1 && !COMMON.contains(&name.as_str()));
    let twice: Vec<_> = twice.map(|(name, places)| format!("{name}: {}", places.join(", "))).collect();
    assert!(places.len() > 300, "the declarations are found");
    assert_none("a type name means two things", &twice);
}

/// Words that say no more than that something is bounded, or that a file has one of its kind.
const BARE_CONSTANTS: &str = r"\b(?:const|static) (?:BOUND|LONGEST|MOST|OLD|PATIENCE|PUT_OFF|QUIET|SHOWN): ";

#[test]
fn constants_name_their_subject() {
    let bare = Regex::new(BARE_CONSTANTS).unwrap();
    let mut found = Vec::new();
    for source in &sources() {
        let lines = source.text.lines().map(uncommented).enumerate().filter(|(_, line)| !line.contains("<const"));
        let bare = lines.filter(|(_, line)| bare.is_match(line));
        found.extend(bare.map(|(number, line)| format!("{}:{}: {}", source.name, number + 1, line.trim())));
    }
    assert_none("constants without a subject", &found);
}

#[test]
fn identifiers_use_standard_words() {
    let verbs = Regex::new(r"\b(?:[a-z0-9]+_)*(?:told|tells|said|heard|hears|stood|felt|whoever|whatever|nobody|somebody|complaints?|intents?|news|elsewhere|facts?|asked)(?:_[a-z0-9]+)*\b").unwrap();
    let text = Regex::new(r#""(?:[^"\\]|\\.)*""#).unwrap();
    let mut found = Vec::new();
    for source in &sources() {
        for (number, line) in source.code() {
            let code = text.replace_all(line, "");
            found.extend(verbs.find_iter(&code).map(|word| format!("{}:{number}: {}", source.name, word.as_str())));
        }
    }
    assert_none("identifiers with words that the glossary replaces", &found);
}

#[test]
fn the_glossary_names_what_is_declared() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let glossary = std::fs::read_to_string(root.join("docs/glossary.md")).unwrap();
    let row = Regex::new(r"(?m)^\| `(\w+)` \| .+ \| `src/([^`]+)` \|$").unwrap();
    let sources = sources();
    let (mut rows, mut found) = (0, Vec::new());
    for named in row.captures_iter(&glossary) {
        rows += 1;
        let declared = Regex::new(&format!(r"(?:struct|enum|trait|type) {}\b", &named[1])).unwrap();
        let file = sources.iter().find(|source| source.name == named[2]);
        if !file.is_some_and(|file| declared.is_match(&file.text)) {
            found.push(format!("{} is not declared in {}", &named[1], &named[2]));
        }
    }
    assert!(rows > 50, "the rows are read");
    assert_none("docs/glossary.md names what is not there", &found);
}
