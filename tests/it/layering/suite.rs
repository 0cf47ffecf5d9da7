//! Keeps the suite whole: every file of tests is compiled, and every filter in `.ci` selects tests.

use std::path::Path;

use regex::Regex;

use crate::layering::assert_none;
use crate::support::tools::root;

/// Adds the files and folders below a directory that its `main.rs` or `mod.rs` does not declare.
fn add_undeclared(directory: &Path, found: &mut Vec<String>) {
    let owner = ["main.rs", "mod.rs"].map(|name| directory.join(name)).into_iter().find(|file| file.is_file());
    let declared = owner.as_ref().map(|file| std::fs::read_to_string(file).unwrap());
    for path in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        let is_source = path.extension().is_some_and(|extension| extension == "rs") && Some(&path) != owner.as_ref();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if path.is_dir() {
            add_undeclared(&path, found);
        }
        if (is_source || path.join("mod.rs").is_file())
            && !declared.as_ref().is_some_and(|text| text.contains(&format!("mod {name};\n")))
        {
            found.push(path.display().to_string());
        }
    }
}

#[test]
fn every_file_of_tests_is_declared() {
    let mut found = Vec::new();
    for binary in ["tests/it", "tests/drills"] {
        add_undeclared(&root().join(binary), &mut found);
    }
    assert_none("files that no binary of tests declares", &found);
}

/// Reports whether a filter such as `callbacks::kills` is a module, or the beginning of tests in one.
fn selects(binary: &str, filter: &str) -> bool {
    let mut path = root().join("tests").join(binary);
    for name in filter.split("::").filter(|name| !name.is_empty()) {
        let file = if path.is_dir() { path.join("mod.rs") } else { path.with_extension("rs") };
        let begins_a_test =
            |text: String| text.contains(&format!("\nfn {name}")) || text.contains(&format!(" fn {name}"));
        path.push(name);
        let is_module = path.join("mod.rs").is_file() || path.with_extension("rs").is_file();
        if !is_module && !std::fs::read_to_string(file).is_ok_and(begins_a_test) {
            return false;
        }
    }
    true
}

#[test]
fn the_filters_of_ci_select_tests() {
    let filter = Regex::new(r"--test (it|drills) ([a-z0-9_:]+)").unwrap();
    let list = Regex::new(r"local (?:subjects|skipped)=\(([a-z0-9_: ]+)\)").unwrap();
    let mut filters = Vec::new();
    for script in [".ci/run", ".ci/full", "tests/drills/failover/run"] {
        let text = std::fs::read_to_string(root().join(script)).unwrap();
        filters.extend(filter.captures_iter(&text).map(|found| (found[1].to_owned(), found[2].to_owned())));
        for names in list.captures_iter(&text) {
            filters.extend(names[1].split(' ').map(|name| ("it".to_owned(), name.to_owned())));
        }
    }
    assert!(filters.len() > 20, "the filters are read: {filters:?}");
    let nothing = filters.iter().filter(|(binary, filter)| !selects(binary, filter));
    let nothing: Vec<_> = nothing.map(|(binary, filter)| format!("{binary}: {filter}")).collect();
    assert_none("filters that select nothing", &nothing);
    assert!(!selects("it", "nowhere::") && !selects("it", "callbacks::nothing") && !selects("drills", "v1::"));
}
