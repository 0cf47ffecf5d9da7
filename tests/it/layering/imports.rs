//! Which file of `src` imports from which, and whether any of them do so in a circle.
//!
//! An import of an item counts for the file that declares it: names that a `mod.rs` passes on with `pub use` are followed.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use crate::layering::Source;

/// The path of a module below the crate, such as `["http", "router"]`; the crate's root is empty.
type ModulePath = Vec<String>;

/// One name that a file imports or names by a path.
struct Import {
    /// `crate::`, `super::` or `self::` resolved.
    path: ModulePath,
    /// The name that `pub use` gives it here.
    passed_on_as: Option<String>,
}

/// The imports of all files of the library, tests aside.
pub struct Imports {
    by_module: BTreeMap<ModulePath, Vec<Import>>,
    /// The modules that only tests have.
    tests: BTreeSet<ModulePath>,
}

impl Imports {
    pub fn of(sources: &[Source]) -> Self {
        let test_module = Regex::new(r"#\[cfg\(test\)\]\s*(?:pub(?:\([a-z ]+\))? )?mod (\w+);").unwrap();
        let mut tests = BTreeSet::new();
        for source in sources {
            for found in test_module.captures_iter(&source.text) {
                tests.insert([module_of(&source.name), vec![found[1].to_owned()]].concat());
            }
        }
        let is_test = |module: &ModulePath| is_within(module, &tests);
        let mut modules = BTreeMap::new();
        for source in sources.iter().filter(|source| source.name != "main.rs") {
            let module = module_of(&source.name);
            if !is_test(&module) {
                modules.insert(module, code_of(&source.text));
            }
        }
        let known = modules.keys().cloned().collect();
        let by_module =
            modules.iter().map(|(module, code)| (module.clone(), imports_of(module, code, &known))).collect();
        Self { by_module, tests }
    }

    /// The circles of modules that import each other, each sorted.
    pub fn circles(&self) -> Vec<Vec<String>> {
        let edges: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> =
            self.by_module.iter().map(|(module, imports)| (module, self.targets(module, imports))).collect();
        let reached = |from: &ModulePath| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
            while let Some(module) = open.pop() {
                let next = edges.get(&module).into_iter().flatten();
                open.extend(next.filter(|target| seen.insert((**target).clone())).map(|target| (*target).clone()));
            }
            seen
        };
        let reach: BTreeMap<&ModulePath, BTreeSet<ModulePath>> =
            edges.keys().map(|module| (*module, reached(module))).collect();
        let circle_of = |module: &ModulePath| -> Vec<String> {
            let mutual =
                reach[module].iter().filter(|other| reach.get(other).is_some_and(|back| back.contains(module)));
            mutual.map(|module| module.join("::")).collect()
        };
        let circles: BTreeSet<_> = reach.keys().map(|module| circle_of(module)).filter(|one| one.len() > 1).collect();
        circles.into_iter().collect()
    }

    /// The files that declare what a module imports.
    fn targets<'m>(&'m self, module: &ModulePath, imports: &[Import]) -> BTreeSet<&'m ModulePath> {
        let used =
            imports.iter().filter(|import| import.passed_on_as.is_none() && !is_within(&import.path, &self.tests));
        used.map(|import| self.declared_in(&import.path, 0)).filter(|target| *target != module).collect()
    }

    fn declared_in(&self, path: &[String], depth: usize) -> &ModulePath {
        let known = (0..=path.len()).rev().find_map(|length| self.by_module.get_key_value(&path[..length]));
        let (module, imports) = known.expect("the crate's root is a module");
        let Some(name) = path.get(module.len()).filter(|_| depth < 8) else { return module };
        let passed_on = imports.iter().find(|import| import.passed_on_as.as_ref() == Some(name));
        passed_on.map_or(module, |import| self.declared_in(&import.path, depth + 1))
    }
}

/// Whether a path leads into one of these modules.
fn is_within(path: &ModulePath, modules: &BTreeSet<ModulePath>) -> bool {
    (1..=path.len()).any(|length| modules.contains(&path[..length]))
}

fn module_of(file: &str) -> ModulePath {
    let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
    if path == "lib" { Vec::new() } else { path.split('/').map(str::to_owned).collect() }
}

/// A file's text without its tests, comments and strings.
fn code_of(text: &str) -> String {
    let tests = Regex::new(r"\n#\[cfg\(test\)\]\n(?:pub(?:\([a-z ]+\))? )?mod \w+ \{").unwrap();
    let for_tests = Regex::new(r"#\[cfg\(test\)\]\s*(?:pub(?:\([a-z: ]+\))? )?use [^;]*;").unwrap();
    let hidden = Regex::new(r#"//[^\n]*|"(?:[^"\\]|\\.)*"|\bpub\(in [a-z:]+\)"#).unwrap();
    let end = tests.find(text).map_or(text.len(), |found| found.start());
    let code = hidden
        .replace_all(&text[..end], |found: &regex::Captures<'_>| if found[0].starts_with("pub") { "pub" } else { "" });
    for_tests.replace_all(&code, "").into_owned()
}

fn imports_of(module: &ModulePath, code: &str, known: &BTreeSet<ModulePath>) -> Vec<Import> {
    let statement = Regex::new(r"(?m)^\s*(pub(?:\([^)]*\))? )?use ([^;]+);").unwrap();
    let named = Regex::new(r"(?:^|[^:\w])([a-z_]+(?:::\w+)+)").unwrap();
    let mut imports = Vec::new();
    for found in statement.captures_iter(code) {
        let is_public = found.get(1).is_some();
        let tree = found[2].split_whitespace().collect::<Vec<_>>().join(" ");
        for leaf in leaves(&tree) {
            let (path, name) = match leaf.split_once(" as ") {
                Some((path, name)) => (path.to_owned(), name.to_owned()),
                None => (leaf.clone(), leaf.rsplit("::").next().unwrap().to_owned()),
            };
            if let Some(path) = absolute(module, &path, known) {
                imports.push(Import { path, passed_on_as: is_public.then_some(name) });
            }
        }
    }
    for found in named.captures_iter(&statement.replace_all(code, "")) {
        if let Some(path) = absolute(module, &found[1], known) {
            imports.push(Import { path, passed_on_as: None });
        }
    }
    imports
}

/// The paths of a `use` tree.
fn leaves(tree: &str) -> Vec<String> {
    let Some((prefix, rest)) = tree.trim().split_once('{') else { return vec![tree.trim().to_owned()] };
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for character in rest[..rest.rfind('}').unwrap()].chars() {
        match character {
            ',' if depth == 0 => parts.push(String::new()),
            _ => {
                depth += i32::from(character == '{') - i32::from(character == '}');
                parts.last_mut().unwrap().push(character);
            }
        }
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| leaves(part)).map(|leaf| format!("{prefix}{leaf}")).collect()
}

/// A path from the crate's root; `None` when it leads out of the crate.
fn absolute(module: &ModulePath, path: &str, known: &BTreeSet<ModulePath>) -> Option<ModulePath> {
    let mut names = path.split("::").map(|name| name.trim().to_owned()).filter(|name| name != "self" && name != "*");
    let first = if path.starts_with("self") { None } else { names.next() };
    let supers = |count: usize| module[..module.len().saturating_sub(count)].to_vec();
    match first.as_deref() {
        None => Some([module.clone(), names.collect()].concat()),
        Some("crate") => Some(names.collect()),
        Some("super") => {
            let rest: Vec<String> = names.collect();
            let more = rest.iter().take_while(|name| *name == "super").count();
            Some([supers(1 + more), rest[more..].to_vec()].concat())
        }
        Some(child) => {
            let start = [module.clone(), vec![child.to_owned()]].concat();
            known.contains(&start).then(|| [start, names.collect()].concat())
        }
    }
}
