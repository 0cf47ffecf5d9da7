//! The text of a rule file: line and column of a byte, and what of its lines may be shown.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use regex::Regex;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Bytes of a file.
pub(in crate::rules) type Span = Range<usize>;

/// Lines longer than this, in bytes, are not shown at all.
const LONGEST_LINE: usize = 64 << 10;

/// Replaces a hidden value.
const MASK: &str = "***";

/// A byte order mark, which does not count as a character of the first line.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A word in the name of a secret, for patterns.
const SECRET_WORD: &str = "(?:secret|token|key|password)";

/// Matches the user and password of a URL, also of a misspelt one, the values of query parameters that are named for secrets, and
/// what follows such a name within quotes, into which a line with a secret may have been joined.
static SECRETS_IN_TEXTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let credentials = r#"//([^\s"']*)@|([^\s"'/:@]*:[^\s"'/@]*)@"#;
    let parameter = format!(r#"[?&][^=&\s"']*{SECRET_WORD}[^=&\s"']*=([^&\s"']*)"#);
    Regex::new(&format!(r#"(?i){credentials}|{parameter}|["'][^"'?&]*{SECRET_WORD}\w*\s*=\s*([^"'\s][^"']*)"#)).ok()
});

/// Matches what follows the name of a secret in a file that is not valid TOML.
static NAMED_SECRET: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!(r#"(?i){SECRET_WORD}s?["']?\s*[=:"'\[{{]\s*(.*)"#)).ok());

/// The keys that are named like secrets and hold none, each after its table, as the types of the rule files declare them.
/// An API key is no secret either, but pages show it masked (contract section 13), and excerpts are on one.
pub(in crate::rules) const NO_SECRETS: [(&str, &str); 4] =
    [("tls", "key"), ("signature", "api_key"), ("reconcile", "key"), ("reconcile.columns", "key")];

/// The tables with API keys, not all of whose keys are hidden.
const KEYS_TABLE: &str = "api_keys";

/// The table of the database's URL, which may contain a password.
const STORE_TABLE: &str = "store";

/// The keys of a file, each with whether its value may be shown of a line that cannot be parsed.
pub(in crate::rules) type ShownKeys = BTreeMap<String, bool>;

/// A file, and the parts of it that must not be shown.
pub(super) struct Source {
    pub path: PathBuf,
    pub text: Arc<str>,
    /// The places of secrets.
    pub hidden: Vec<Span>,
    /// Whether the text could not be parsed, so that each line is examined separately.
    pub unread: bool,
    /// What such a line may show; `None`: everything, since the file holds no secret.
    pub shown_keys: Option<ShownKeys>,
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
        Self { path, text, hidden, unread: false, shown_keys: None, problems: 0, refused: false, lines }
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
            let is_element =
                |keys| text.trim_start().starts_with(['"', '\'']) && self.is_in_shown_list(line.start, keys);
            let keys = self.shown_keys.as_ref();
            let shown = keys.map_or(text.len(), |keys| shown_of_unread(text, keys, is_element(keys)));
            let named = NAMED_SECRET.iter().filter_map(|named| named.captures(text)?.get(1)).map(|named| named.start());
            let from = named.chain([shown]).min().unwrap_or(0);
            hidden.extend((from < text.len()).then(|| moved(from..text.len())));
        }
        for parts in SECRETS_IN_TEXTS.iter().flat_map(|parts| parts.captures_iter(text)) {
            hidden.extend(parts.iter().skip(1).flatten().map(|part| moved(part.range())));
        }
        hidden.sort_unstable_by_key(|span| (span.start, Reverse(span.end)));
        hidden
    }

    /// Returns where a comment begins that follows what is hidden of a line: it may contain the previous secret.
    fn comment(&self, line: &Span, hidden: &[Span]) -> Option<usize> {
        let last = hidden.iter().map(|span| span.end.clamp(line.start, line.end)).max()?;
        self.text[last..line.end].find('#').map(|comment| last + comment)
    }

    /// Reports whether a text that is quoted is in a list whose key may be shown, which begins some lines above.
    fn is_in_shown_list(&self, start: usize, keys: &ShownKeys) -> bool {
        let mut above = self.text[..start].lines().rev().map(str::trim);
        let is_element = |line: &str| line.starts_with(['"', '\'']) && !line.contains(['[', ']', '=']);
        let began = above.find(|line| !line.is_empty() && !line.starts_with('#') && !is_element(line));
        began.and_then(|line| line.split_once('=')).is_some_and(|(key, value)| {
            let name = key.trim().rsplit('.').next().unwrap_or_default();
            keys.get(name) == Some(&true) && value.trim_start().starts_with('[') && !value.contains(']')
        })
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

/// Returns where what must not be shown of a line begins, in a file that is not valid TOML. A line that begins with a key of the file
/// shows it, and its value unless that may hold a secret; an element of such a value's list is shown, too. Of every other line
/// nothing is shown: it may continue a secret, or its key be misspelt.
fn shown_of_unread(line: &str, keys: &ShownKeys, is_element: bool) -> usize {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let indent = line.len() - line.trim_start().len();
    let key_end = line[indent..].find(|c| !is_bare(c)).map_or(line.len(), |length| indent + length);
    let name = line[indent..key_end].rsplit('.').next().unwrap_or_default();
    let rest = line[key_end..].trim_start();
    let value = line.len() - rest.strip_prefix('=').map_or(rest, str::trim_start).len();
    match keys.get(name) {
        _ if is_mark(line) => line.len(),
        Some(false) => value,
        Some(true) => value + value_end(&line[value..]),
        None if is_element => indent + value_end(&line[indent..]),
        None => header_end(line, keys).unwrap_or(0),
    }
}

/// Returns the length of the value that a text begins with: a quoted text, brackets with what is between them, or words.
fn value_end(text: &str) -> usize {
    let (mut depth, mut quoted) = (0_usize, None);
    for (at, c) in text.char_indices() {
        match (quoted, c) {
            (Some(quote), _) if c != quote => {}
            (Some(_), _) if depth == 0 => return at + 1,
            (Some(_), _) => quoted = None,
            (None, '"' | '\'') if at == 0 || depth > 0 => quoted = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') if depth <= 1 => return at + 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',' | '"' | '\'' | '#' | '=') if depth == 0 => return text[..at].trim_end().len(),
            (None, _) => {}
        }
    }
    text.len()
}

/// Returns the end of a table's header, which may be incomplete; its table must be known.
fn header_end(line: &str, keys: &ShownKeys) -> Option<usize> {
    let header = line.split('#').next()?.trim_end();
    let name = header.trim_start().strip_prefix('[')?.trim_start_matches(['[', ' ']);
    let table = name.split(['.', ']', ' ']).next()?;
    let is_whole = header.ends_with(']') || !name.contains([']', ' ']);
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-] \"".contains(c));
    (keys.contains_key(table) && is_whole && is_plain).then_some(header.len())
}

/// Reports whether a line has brackets alone, or was written by a version control system.
fn is_mark(line: &str) -> bool {
    line.chars().all(|c| "[]{}, \t".contains(c))
        || ["<<<<<<<", "|||||||", "=======", ">>>>>>>"].iter().any(|mark| line.starts_with(mark))
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

/// Hides the values of keys with names of secrets in a table of this name, database URLs, and what may be one.
fn hide_named(table: &DeTable<'_>, name: &str, hidden: &mut Vec<Span>) {
    for (key, value) in table {
        let key = key.get_ref();
        let is_secret = names_a_secret(key) && !NO_SECRETS.contains(&(name, key))
            || name == STORE_TABLE && may_be_database_url(value.get_ref());
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

/// Reports whether a value of `[store]` may be the URL of a database: a number is none, nor a path or a reference.
fn may_be_database_url(value: &DeValue<'_>) -> bool {
    let is_place = |text: &str| ["sqlite:", "env:", "file:"].iter().any(|place| text.starts_with(place));
    match value {
        DeValue::String(text) => !is_place(text) || text.contains(['?', '@']),
        DeValue::Array(_) | DeValue::Table(_) => true,
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => false,
    }
}

/// Reports whether a text is the URL of a database, which may contain a password.
fn is_database_url(text: &str) -> bool {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme).trim();
    ["postgres", "postgresql"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}
