//! The text of a rule file: line and column of a byte, and what of its lines may be shown.

use std::cell::OnceCell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use regex::Regex;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::names::meant;

/// Bytes of a file.
pub(in crate::rules) type Span = Range<usize>;

/// Lines longer than this, in bytes, are not shown at all.
const LONGEST_LINE: usize = 64 << 10;

/// Replaces a hidden value.
const MASK: &str = "***";

/// A byte order mark, which does not count as a character of the first line.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Matches the user and password of a URL, and the values of query parameters that are named for secrets.
static URL_SECRETS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"//([^\s"']*)@|(?i)[?&][^=&\s"']*(?:secret|token|key|password)[^=&\s"']*=([^&\s"']*)"#).ok()
});

/// Matches the beginning of the URL of a database.
static DATABASE_URL: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?i)postgres(?:ql)?\s*://").ok());

/// The keys that are named like secrets and hold none, each after its table, as the types of the rule files declare them.
/// An API key is no secret either, but pages show it masked (contract section 13), and excerpts are on one.
pub(in crate::rules) const NO_SECRETS: [(&str, &str); 4] =
    [("tls", "key"), ("signature", "api_key"), ("reconcile", "key"), ("reconcile.columns", "key")];

/// The tables with API keys, not all of whose keys are hidden.
const KEYS_TABLE: &str = "api_keys";

/// The tables with keys that hold secrets: of a line in one of them that is not valid TOML by itself or in its file, only the key
/// is shown. The name of a key may be misspelt so far that it resembles none.
pub(in crate::rules) const TABLES_WITH_SECRETS: [&str; 6] =
    ["admin", "admin.users", KEYS_TABLE, "pages", "provider", "store"];

/// Stands for a table whose name is not known.
const SOME_TABLE: &str = "?";

/// A file, and the parts of it that must not be shown.
pub(super) struct Source {
    pub path: PathBuf,
    pub text: Arc<str>,
    /// The places of secrets.
    pub hidden: Vec<Span>,
    /// Whether the text could not be parsed, so that each line is examined separately.
    pub unread: bool,
    /// The number of its problems, reported or not, and whether one of them prevents the rules from being loaded.
    pub problems: usize,
    pub refused: bool,
    /// Where its lines start, computed on first use.
    lines: OnceCell<Vec<usize>>,
}

/// A line with every secret replaced, and a marked place in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Excerpt {
    pub text: String,
    /// The bytes of `text` that are marked.
    pub start: usize,
    pub end: usize,
}

impl Source {
    pub(super) fn new(path: &Path, text: Arc<str>) -> Self {
        let (path, hidden, lines) = (path.into(), Vec::new(), OnceCell::new());
        Self { path, text, hidden, unread: false, problems: 0, refused: false, lines }
    }

    /// Returns the line and column of a byte, both from 1; columns count characters.
    pub(super) fn position(&self, at: usize) -> (usize, usize) {
        let at = self.text.floor_char_boundary(at);
        let (line, line_start) = self.line(at);
        (line, self.text[line_start..at.max(line_start)].chars().count() + 1)
    }

    /// Returns the number of a byte's line, from 1, and where its text starts.
    fn line(&self, at: usize) -> (usize, usize) {
        let line = self.lines().partition_point(|start| *start <= at);
        let start = self.lines().get(line - 1).copied().unwrap_or_default();
        let mark = if start == 0 && self.text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 };
        (line, start + mark)
    }

    /// Returns where lines start. Computed once: a file may have very many lines and problems.
    fn lines(&self) -> &[usize] {
        let starts =
            || std::iter::once(0).chain(self.text.match_indices('\n').map(|(newline, _)| newline + 1)).collect();
        self.lines.get_or_init(starts)
    }

    fn is_toml(&self) -> bool {
        self.path.extension().is_some_and(|ending| ending == "toml")
    }

    /// Finds everything that must not be shown, and merges overlapping parts, so that those of a line are found
    /// quickly.
    pub(super) fn settle(&mut self) {
        if self.is_toml()
            && !self.unread
            && let Ok(table) = DeTable::parse(&self.text)
        {
            hide_named(table.get_ref(), "", &mut self.hidden);
        }
        self.hidden.sort_unstable_by_key(|span| (span.start, span.end));
        self.hidden.dedup_by(|next, span| {
            let overlap = next.start < span.end;
            if overlap {
                span.end = span.end.max(next.end);
            }
            overlap
        });
    }

    /// Returns what must not be shown of a line, sorted.
    fn hidden_in(&self, line: &Span) -> Vec<Span> {
        let first = self.hidden.partition_point(|span| span.end <= line.start);
        let mut hidden: Vec<Span> =
            self.hidden.iter().skip(first).take_while(|span| span.start < line.end).cloned().collect();
        let text = &self.text[line.clone()];
        let moved = |span: Span| line.start + span.start..line.start + span.end;
        if self.unread {
            hidden.extend(self.hidden_in_unread(text, line.start).into_iter().map(moved));
        }
        for parts in URL_SECRETS.iter().flat_map(|parts| parts.captures_iter(text)) {
            hidden.extend(parts.iter().skip(1).flatten().map(|part| moved(part.range())));
        }
        hidden.sort_unstable_by_key(|span| (span.start, span.end));
        hidden
    }

    /// Returns where a comment begins that follows what is hidden of a line: it may contain the previous secret.
    fn comment(&self, line: &Span, hidden: &[Span]) -> Option<usize> {
        let last = hidden.iter().map(|span| span.end.clamp(line.start, line.end)).max()?;
        self.text[last..line.end].find('#').map(|comment| last + comment)
    }

    /// Returns the parts of a line that must not be shown, in a file that is not valid TOML. In a table with secrets they are
    /// everything but the first key. Elsewhere, if the line is valid by itself, its keys decide; otherwise everything after a
    /// secret's key is hidden, and so are lines that continue a secret's value.
    fn hidden_in_unread(&self, line: &str, start: usize) -> Vec<Span> {
        if !self.is_toml() || self.continues_secret(line, start) || self.ends_secret_key(line, start) {
            return std::iter::once(0..line.len()).collect();
        }
        if is_header(line) {
            return Vec::new();
        }
        let table = self.table_of(start);
        if table == SOME_TABLE || meant(table, TABLES_WITH_SECRETS).is_some() {
            let value =
                line.split_once('=').filter(|_| begins_with_key(line)).map_or(line, |(_, value)| value.trim_start());
            return std::iter::once(line.len() - value.len()..line.len()).collect();
        }
        if let Ok(values) = DeTable::parse(line)
            && !line.trim_start().starts_with('[')
        {
            let mut hidden = Vec::new();
            hide_named(values.get_ref(), table, &mut hidden);
            return hidden;
        }
        let database = DATABASE_URL.iter().find_map(|url| url.find(line)).map(|url| url.start());
        secret_value(line, table).into_iter().chain(database).min().map(|from| from..line.len()).into_iter().collect()
    }

    /// Returns the table of a line by the last header above it, of which the whole must be known.
    fn table_of(&self, start: usize) -> &str {
        let begins_table = |line: &&str| line.split('=').next().is_some_and(|key| key.contains('['));
        let header = self.text[..start].lines().rev().find(begins_table);
        header.map_or("", |line| if is_whole_header(line) { line.trim().trim_matches(['[', ']']) } else { SOME_TABLE })
    }

    /// Reports whether a line may continue the value of a key that holds a secret: the nearest key above decides, and for
    /// text that seems to be within quotes of several lines the key before the quotes, too.
    fn continues_secret(&self, line: &str, start: usize) -> bool {
        let above = &self.text[..start];
        let opened = |quotes| {
            let mut places = above.match_indices(quotes);
            let last = places.by_ref().last();
            last.filter(|_| above.matches(quotes).count() % 2 == 1).map(|(at, _)| at)
        };
        let quoted = opened("\"\"\"").max(opened("'''"));
        let is_secret = |line: &str| secret_value(line, SOME_TABLE).is_some();
        let decides = |line: &&str| begins_with_key(line) || is_secret(line) || is_whole_header(line);
        let follows_secret = |above: &str| above.lines().rev().find(decides).is_some_and(is_secret);
        quoted.is_some_and(|at| follows_secret(&above[..at])) || !begins_with_key(line) && follows_secret(above)
    }

    /// Reports whether a line break went into the key of a secret, so that the line begins with the rest of it.
    fn ends_secret_key(&self, line: &str, start: usize) -> bool {
        let above = self.text[..start].lines().next_back().unwrap_or_default().trim();
        let is_key = !above.is_empty() && !above.starts_with(['#', '[']) && !above.contains('=');
        is_key && secret_value(&format!("{above}{}", line.trim_start()), SOME_TABLE).is_some()
    }

    /// Returns the line in which `span` starts, its secrets replaced, with the part of `span` in it.
    pub(super) fn excerpt(&self, span: &Span) -> Option<Excerpt> {
        let (number, line_start) = self.line(self.text.floor_char_boundary(span.start));
        let next = self.lines().get(number).map_or(self.text.len(), |next| next - 1);
        let line = self.text[line_start..next].trim_end_matches('\r');
        if line.trim().is_empty() || line.len() > LONGEST_LINE {
            return None;
        }
        let mut whole = line_start..line_start + line.len();
        let hidden = self.hidden_in(&whole);
        if let Some(comment) = self.comment(&whole, &hidden) {
            whole.end = line_start + self.text[line_start..comment].trim_end().len();
        }
        let start = span.start.clamp(whole.start, whole.end);
        let marked = start..span.end.clamp(start, whole.end);
        Some(self.masked(whole, &hidden, marked))
    }

    fn masked(&self, line: Span, hidden: &[Span], marked: Span) -> Excerpt {
        let mut text = String::new();
        let mut at = line.start;
        // Maps bytes of the line to bytes of the text.
        let mut moved = vec![(line.start, 0)];
        for hide in hidden {
            let (from, to) = (hide.start.clamp(at, line.end), hide.end.clamp(at, line.end));
            if from == to {
                continue;
            }
            text.push_str(&self.text[at..from]);
            moved.push((from, text.len()));
            text.push_str(MASK);
            moved.push((to, text.len()));
            at = to;
        }
        text.push_str(&self.text[at..line.end]);
        let place = |byte: usize| {
            let (from, to) = moved.iter().rev().find(|(from, _)| *from <= byte).copied().unwrap_or((line.start, 0));
            text.floor_char_boundary(to + (byte - from))
        };
        let (start, end) = (place(marked.start), place(marked.end));
        // C1 control characters can control a terminal, and the renderer does not replace them. The replacement has the
        // same length in bytes.
        let text = text.replace(|shown| matches!(shown, '\u{80}'..='\u{9f}'), "\u{b7}");
        Excerpt { start: start.min(end), end: end.max(start), text }
    }
}

/// Reports whether a line is a table's header, or an incomplete one, without anything that could be a value.
fn is_header(line: &str) -> bool {
    let bare = |c: char| c.is_ascii_alphanumeric() || "_.-[] ".contains(c);
    line.trim_start().starts_with('[') && line.trim().chars().all(bare)
}

fn is_whole_header(line: &str) -> bool {
    is_header(line) && line.trim().ends_with(']')
}

/// Reports whether a line begins with a key and a value. Text before a `=` at the end of a line may be the end of a secret in
/// base64.
fn begins_with_key(line: &str) -> bool {
    let bare = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    let quoted =
        |key: &str| ['"', '\''].iter().any(|quote| key.len() > 1 && key.starts_with(*quote) && key.ends_with(*quote));
    line.split_once('=').is_some_and(|(key, value)| {
        let key = key.trim();
        (bare(key) || quoted(key)) && !value.trim_matches([' ', '=', '"', '\'', ',']).is_empty()
    })
}

/// Returns where a line's first secret value begins. A key holds a secret if its name in this table, or its probable
/// correct spelling, is one of a secret; also if a bracket or comma was typed into it, or the `=` was left out.
fn secret_value(line: &str, table: &str) -> Option<usize> {
    if !line.contains('=') {
        let indent = line.len() - line.trim_start().len();
        let (key, _) = line.trim_start().split_once([' ', '\t', '"', '\''])?;
        return (names_a_secret(key) || is_misspelt_key(key)).then_some(indent + key.len());
    }
    let separators = [',', '{', '}', '['];
    let (mut key_start, mut last_value) = (0, 0);
    line.char_indices().find_map(|(at, c)| {
        if separators.contains(&c) {
            key_start = at + 1;
        }
        let key = line.get(key_start..at).filter(|_| c == '=')?.trim();
        let (joined, value) = (line[last_value..at].replace(separators, ""), &line[at + 1..]);
        last_value = at + 1;
        let is_none = key_start == 0 && NO_SECRETS.contains(&(table, key));
        let is_split = joined.trim() != key && names_a_secret(joined.trim());
        let is_secret = !is_none && (names_a_secret(key) || is_misspelt_key(key)) || is_split;
        is_secret.then_some(line.len() - value.trim_start().len())
    })
}

/// Reports whether the letters of `key` or `keys` are in another order.
fn is_misspelt_key(name: &str) -> bool {
    let sorted = |word: &str| {
        let mut letters = word.to_ascii_lowercase().into_bytes();
        letters.sort_unstable();
        letters
    };
    name.split(['_', '-', '.', ' '])
        .any(|part| part.len() <= 4 && ["key", "keys"].iter().any(|key| sorted(part) == sorted(key)))
}

/// Reports whether a key's name, or its probable correct spelling, means that its value is a secret.
pub(in crate::rules) fn names_a_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["secret", "token", "key", "password"].iter().any(|word| key.contains(word))
        || key.split(['_', '-', '.', ' ']).any(|part| {
            let cut = |word: &str| part.len() >= 3 && word.starts_with(part);
            let near = |(word, allowed)| cut(word) || strsim::osa_distance(part, word) <= allowed;
            part.len() <= 80 && [("secret", 2), ("token", 1), ("password", 2)].into_iter().any(near)
        })
}

/// Hides the values of keys with names of secrets in a table of this name, and database URLs.
fn hide_named(table: &DeTable<'_>, name: &str, hidden: &mut Vec<Span>) {
    for (key, value) in table {
        let key = key.get_ref();
        let is_secret = names_a_secret(key) && !NO_SECRETS.contains(&(name, key));
        hide_values(value, is_secret, hidden, &mut |table, hidden| {
            if is_secret && key != KEYS_TABLE {
                table.values().for_each(|value| hide_all(value, hidden));
            } else {
                let name = if name.is_empty() { key.to_string() } else { format!("{name}.{key}") };
                hide_named(table, &name, hidden);
            }
        });
    }
}

/// Hides a value that is a secret, and everything in tables below it, under any key.
pub(super) fn hide_all(value: &Spanned<DeValue<'_>>, hidden: &mut Vec<Span>) {
    hide_values(value, true, hidden, &mut |table, hidden| table.values().for_each(|value| hide_all(value, hidden)));
}

/// Hides a value that is a secret, or each element of a list; passes tables on.
fn hide_values(
    value: &Spanned<DeValue<'_>>,
    is_secret: bool,
    hidden: &mut Vec<Span>,
    in_table: &mut dyn FnMut(&DeTable<'_>, &mut Vec<Span>),
) {
    match value.get_ref() {
        DeValue::Table(table) => in_table(table, hidden),
        DeValue::Array(elements) => {
            for element in elements {
                hide_values(element, is_secret, hidden, in_table);
            }
        }
        DeValue::String(text) if is_database_url(text) => hidden.push(value.span()),
        DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {
            if is_secret {
                hidden.push(value.span());
            }
        }
    }
}

/// Reports whether a text is the URL of a database, which may contain a password.
fn is_database_url(text: &str) -> bool {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme).trim();
    ["postgres", "postgresql"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}
