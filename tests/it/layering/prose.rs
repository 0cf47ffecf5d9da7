//! Finds words in comments and texts of `src` for which the glossary has a standard term.

use std::sync::LazyLock;

use regex::Regex;

use crate::layering::{Source, assert_none, sources};

/// Words with what to write instead, in lowercase. None of them has a use that is clear without its context.
const WORDS: &[(&str, &str)] = &[
    ("told", "reported, delivered"),
    ("tells", "reports, states"),
    ("said", "stated, returned"),
    ("says", "states, returns, contains"),
    ("heard", "received"),
    ("hears", "receives"),
    ("stood", "existed, was stored"),
    ("felt", "probed, noticed"),
    ("asks", "requests, calls, queries"),
    ("asked", "requested, called, queried"),
    ("unasked", "without a request"),
    ("understood", "decoded, parsed"),
    ("whoever", "a client, the caller"),
    ("whatever", "any, regardless of"),
    ("somebody", "a client, a merchant"),
    ("anybody", "a client, any user"),
    ("everybody", "every client, every user"),
    ("nobody", "no client, no merchant"),
    ("whom", "which merchant, the caller that"),
    ("sorry", "an error, a refusal"),
    ("by the way", "also, while doing so"),
    ("goes on", "continues"),
    ("in vain", "without a result"),
    ("aside of", "apart from"),
    ("by way of", "through"),
    ("looks at", "reads, checks"),
    ("looked at", "read, checked"),
    ("looking at", "reading, checking"),
    ("taken up", "claimed"),
];

/// Uses that are right: the file, the word, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

static WORD: LazyLock<Regex> = LazyLock::new(|| {
    let words: Vec<_> = WORDS.iter().map(|(word, _)| word.replace(' ', r"\s+")).collect();
    Regex::new(&format!(r"(?i)\b(?:{})\b", words.join("|"))).unwrap()
});

/// Comments, then string literals (raw, then plain). Character literals are matched so that a quote in one does not begin
/// a string.
static TEXT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?sx) //[^\n]* | /\*.*?\*/
        | \br\#\#\#".*?"\#\#\# | \bb?r\#\#".*?"\#\# | \bb?r\#".*?"\# | \bb?r"[^"]*" | "(?:[^"\\]|\\.)*"
        | '(?:[^'\\\n]|\\[^\n]+?)'"#,
    )
    .unwrap()
});

/// The words of the table in a file's comments and string literals, with the line of each.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for literal in TEXT.find_iter(text).filter(|literal| !literal.as_str().starts_with('\'')) {
        for word in WORD.find_iter(literal.as_str()) {
            let line = 1 + text[..literal.start() + word.start()].matches('\n').count();
            found.push((line, word.as_str().to_lowercase()));
        }
    }
    found
}

fn instead_of(word: &str) -> &'static str {
    let word = word.split_whitespace().collect::<Vec<_>>().join(" ");
    WORDS.iter().find(|(known, _)| *known == word).unwrap().1
}

#[test]
fn prose_has_standard_words() {
    let excepted = |source: &Source, word: &str| {
        EXCEPTIONS.iter().any(|(file, exception, _)| *file == source.name && *exception == word)
    };
    let mut strays = Vec::new();
    for source in sources() {
        for (number, word) in words(&source.text).into_iter().filter(|(_, word)| !excepted(&source, word)) {
            strays.push(format!("src/{}:{number}: \"{word}\", instead: {}", source.name, instead_of(&word)));
        }
    }
    assert_none("words that the glossary (docs/glossary.md) has replaced", &strays);
}

#[test]
fn words_are_found_in_comments_and_strings_only() {
    let text = r##"
//! Whoever calls is told.
fn told(heard: &str) -> char { '"' } // nobody, nobody_else
const TEXT: &str = "it \"says\" so \
    by the
    way";
const RAW: &str = r#"a "felt" hat"#; /* stood */ let whom = '\'';
let lifetime: &'static str = "unsaid";
"##;
    let found = words(text);
    let found: Vec<_> = found.iter().map(|(line, word)| (*line, word.as_str())).collect();
    let expected =
        [(2, "whoever"), (2, "told"), (3, "nobody"), (4, "says"), (5, "by the\n    way"), (7, "felt"), (7, "stood")];
    assert_eq!(found, expected);
    assert_eq!(instead_of("by the\n    way"), "also, while doing so");
}
