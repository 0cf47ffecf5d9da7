//! Checks which parts of a line are shown and hidden.

use super::*;

fn problem(text: &str, hide: &[&str], mark: &str, message: &str) -> Problem {
    let mut diagnostics = Diagnostics::default();
    let file = diagnostics.file(Path::new("rules/x.toml"), text);
    for hidden in hide {
        let at = text.find(hidden).unwrap();
        diagnostics.sources[file].hidden.push(at..at + hidden.len());
    }
    let at = text.find(mark).unwrap();
    diagnostics.add(file, at..at + mark.len(), message);
    diagnostics.into_problems().unwrap_err().0.remove(0)
}

#[test]
fn a_problem_is_shown_with_its_line() {
    let problem = problem("a = 1\nbé = true\n", &[], "true", "must be a number");
    assert_eq!(problem.to_string(), "rules/x.toml:2:6: must be a number");
    let shown = problem.rendered();
    assert!(shown.starts_with("rules/x.toml:2:6: error: must be a number\n"), "{shown}");
    assert!(shown.contains("2 | bé = true"), "{shown}");
    assert!(shown.contains("|      ^^^^"), "{shown}");
}

#[test]
fn hidden_values_are_never_shown() {
    let text = "k = { secret = \"topsecret\", x = 1, other = \"hush\" }";
    for mark in ["x = 1", "\"topsecret\"", "other", "topsecret\", x"] {
        let shown = problem(text, &["\"topsecret\"", "\"hush\""], mark, "m").rendered();
        assert!(!shown.contains("topsecret") && !shown.contains("hush"), "{shown}");
        assert!(shown.contains("k = { secret = ***, x = 1, other = *** }"), "{shown}");
    }
}

#[test]
fn a_secret_of_several_lines_is_hidden_in_each() {
    let text = "k = \"\"\"one\ntwo\nthree\"\"\"";
    let secret = "\"\"\"one\ntwo\nthree\"\"\"";
    for mark in ["one", "two", "three"] {
        let shown = problem(text, &[secret], mark, "m").rendered();
        assert!(!shown.contains(mark), "{shown}");
    }
}
