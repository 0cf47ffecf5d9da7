//! The text of a rule file: where a byte is, and what may be shown of its line.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Span;

/// Lines longer than this, in bytes, are not shown at all.
const LONGEST_LINE: usize = 64 << 10;

/// At most this much of a line is shown, in bytes, and at most so much of it before the place that is marked.
const MOST_SHOWN: usize = 1000;
const MOST_SHOWN_BEFORE: usize = 300;

/// What stands for the rest of a line that is not shown whole.
const CUT: &str = "...";

/// What a byte order mark is in UTF-8. It is no character of the first line.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A file, and what must not be shown of it.
pub(super) struct Source {
    pub path: PathBuf,
    pub text: Arc<str>,
    /// Secrets, and values of keys that may be misspelt secrets.
    pub hidden: Vec<Span>,
    /// Whether the text could not be read, so that nobody knows where its secrets are.
    pub unread: bool,
    /// Places at or below keys with secrets: no string of their lines is shown.
    pub blank: Vec<usize>,
    /// How many problems it has, told or not, and whether one of them keeps the rules from being loaded.
    pub problems: usize,
    pub refused: bool,
    /// Where its lines start, once that was asked for.
    lines: OnceCell<Vec<usize>>,
}

/// A line and a column of a text, both from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub line: usize,
    pub column: usize,
}

/// A line, or the part of a long one around the marked place, with every secret in it replaced.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Excerpt {
    pub text: String,
    /// The bytes of `text` that are marked.
    pub start: usize,
    pub end: usize,
}

impl Source {
    pub fn new(path: &Path, text: Arc<str>) -> Self {
        Self {
            path: path.into(),
            text,
            hidden: Vec::new(),
            unread: false,
            blank: Vec::new(),
            problems: 0,
            refused: false,
            lines: OnceCell::new(),
        }
    }

    /// Where a byte is.
    pub fn position(&self, at: usize) -> Position {
        let at = floor_boundary(&self.text, at);
        let (line, line_start) = self.line(at);
        Position { line, column: self.text[line_start..at.max(line_start)].chars().count() + 1 }
    }

    /// The number of a byte's line, from 1, and where its text starts.
    fn line(&self, at: usize) -> (usize, usize) {
        let line = self.lines().partition_point(|start| *start <= at);
        let start = self.lines()[line - 1];
        let mark = if start == 0 && self.text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 };
        (line, start + mark)
    }

    /// Where lines start. They are looked for once: a file may have very many, and many problems.
    fn lines(&self) -> &[usize] {
        let starts =
            || std::iter::once(0).chain(self.text.match_indices('\n').map(|(newline, _)| newline + 1)).collect();
        self.lines.get_or_init(starts)
    }

    /// Puts what must not be shown in order, overlapping parts made one, so that a line's are quickly found.
    pub fn settle(&mut self) {
        self.blank.sort_unstable();
        self.hidden.sort_unstable_by_key(|span| (span.start, span.end));
        self.hidden.dedup_by(|next, span| {
            let overlap = next.start < span.end;
            if overlap {
                span.end = span.end.max(next.end);
            }
            overlap
        });
    }

    /// Whether a place in a line is at or below a key with secrets.
    fn is_blank(&self, line: &Span) -> bool {
        let first = self.blank.partition_point(|at| *at < line.start);
        self.blank.get(first).is_some_and(|at| *at <= line.end)
    }

    /// What must not be shown of a line.
    fn hidden_in(&self, line: &Span) -> Vec<Span> {
        let first = self.hidden.partition_point(|span| span.end <= line.start);
        self.hidden[first..].iter().take_while(|span| span.start < line.end).cloned().collect()
    }

    /// The line in which `span` starts, its secrets replaced, with the part of `span` that is in it.
    pub fn excerpt(&self, span: &Span) -> Option<Excerpt> {
        let (number, line_start) = self.line(floor_boundary(&self.text, span.start));
        let next = self.lines().get(number).map_or(self.text.len(), |next| next - 1);
        let line = self.text[line_start..next].trim_end_matches('\r');
        if line.trim().is_empty() || line.len() > LONGEST_LINE {
            return None;
        }
        let line_end = line_start + line.len();
        let whole = line_start..line_end;
        let mut hidden = self.hidden_in(&whole);
        if self.unread && !harmless(line) {
            let value = line.split_once('=').filter(|(key, _)| is_known(key)).map_or(0, |(key, _)| key.len() + 1);
            hidden.push(line_start + value..line_end);
        }
        if self.is_blank(&whole) || names_a_secret(line) && self.is_toml() {
            hidden.extend(strings(line).into_iter().map(|span| line_start + span.start..line_start + span.end));
        }
        hidden.extend(private_parts(line).into_iter().map(|span| line_start + span.start..line_start + span.end));
        hidden.sort_by_key(|span| (span.start, span.end));
        let start = span.start.clamp(line_start, line_end);
        let end = span.end.clamp(start, line_end);
        Some(self.masked(whole, &hidden, start..end).cut())
    }

    fn is_toml(&self) -> bool {
        self.path.extension().is_some_and(|ending| ending == "toml")
    }

    fn masked(&self, line: Span, hidden: &[Span], marked: Span) -> Excerpt {
        const MASK: &str = "***";
        let mut text = String::new();
        let mut at = line.start;
        // Where a byte of the line went in the text.
        let mut moved = vec![(line.start, 0)];
        for hide in hidden.iter().filter(|hide| hide.start < line.end && hide.end > line.start) {
            let (from, to) = (hide.start.clamp(at, line.end), hide.end.clamp(at, line.end));
            if to == at && from == at {
                continue;
            }
            text.push_str(&self.text[floor_boundary(&self.text, at)..floor_boundary(&self.text, from)]);
            moved.push((from, text.len()));
            text.push_str(MASK);
            moved.push((to, text.len()));
            at = to;
        }
        text.push_str(&self.text[floor_boundary(&self.text, at)..line.end]);
        let place = |byte: usize| {
            let (from, to) = moved.iter().rev().find(|(from, _)| *from <= byte).copied().unwrap_or((line.start, 0));
            floor_boundary(&text, (to + (byte - from)).min(text.len()))
        };
        let (start, end) = (place(marked.start), place(marked.end));
        // These can steer a terminal, and nothing else stands in for them. What does is as long in bytes.
        let text = text.replace(|shown| matches!(shown, '\u{80}'..='\u{9f}'), "\u{b7}");
        Excerpt { start: start.min(end), end: end.max(start), text }
    }
}

impl Excerpt {
    /// Of a long line only the part around the marked place.
    fn cut(self) -> Self {
        if self.text.len() <= MOST_SHOWN {
            return self;
        }
        let from = floor_boundary(&self.text, self.start.saturating_sub(MOST_SHOWN_BEFORE));
        let to = floor_boundary(&self.text, from + MOST_SHOWN);
        let before = if from > 0 { CUT } else { "" };
        let after = if to < self.text.len() { CUT } else { "" };
        let moved = |at: usize| at.min(to) - from + before.len();
        let (start, end) = (moved(self.start), moved(self.end));
        Self { text: format!("{before}{}{after}", &self.text[from..to]), start, end }
    }
}

/// Whether a line of a file that could not be read may be shown whole: a table's header or a comment without a string in
/// it, or a key that is known and holds no secret. What begins like a header may be a list of secrets.
fn harmless(line: &str) -> bool {
    let line = line.trim_start();
    if names_a_secret(line) {
        return false;
    }
    let key = line.split('=').next().unwrap_or(line).trim();
    let left_by_a_merge = ["<<<<<<< ", ">>>>>>> "].iter().any(|marker| line.starts_with(marker));
    left_by_a_merge
        || (line.starts_with('#') && !line.contains(['"', '\'']))
        || is_header(line)
        || crate::rules::raw::HARMLESS_KEYS.contains(&key)
}

/// Whether a line is a table's header, or a broken one.
fn is_header(line: &str) -> bool {
    const TABLES: &[&str] = &[
        "admin",
        "api_keys",
        "balance",
        "callbacks",
        "checks",
        "clients",
        "engine",
        "limits",
        "pages",
        "payin",
        "payout",
        "provider",
        "replies",
        "requests",
        "routes",
        "server",
        "shops",
        "signature",
        "statuses",
        "store",
        "tls",
        "v1",
    ];
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "_.- ".contains(c);
    let Some(inside) = line.strip_prefix('[') else { return false };
    let name = inside.trim_start_matches('[').trim_end().trim_end_matches(']');
    let first = name.split('.').next().unwrap_or(name).trim();
    name.chars().all(is_bare) && TABLES.contains(&first)
}

/// Whether a text is a key as rule files have it. What stands before a `=` may also be the end of a secret of several lines,
/// in base64.
fn is_known(key: &str) -> bool {
    const WITH_SECRETS: [&str; 7] = ["api_keys", "key", "keys", "secret", "token", "v1_secret", "v2_secret"];
    let parts = key.split('.').map(str::trim);
    parts.into_iter().all(|part| WITH_SECRETS.contains(&part) || crate::rules::raw::HARMLESS_KEYS.contains(&part))
}

/// Whether a text has a name in it that keys with secrets have.
pub(in crate::rules) fn names_a_secret(text: &str) -> bool {
    ["secret", "token", "keys"].iter().any(|word| text.contains(word))
}

/// The strings of a line, and its comment. Where one of several lines may begin or end, everything from there on is taken for one.
fn strings(line: &str) -> Vec<Span> {
    if line.contains("\"\"\"") || line.contains("'''") {
        return std::iter::once(line.find('=').map_or(0, |equals| equals + 1)..line.len()).collect();
    }
    let mut strings = Vec::new();
    let mut open: Option<(usize, char)> = None;
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match open {
            Some(_) if escaped => escaped = false,
            Some((_, '"')) if c == '\\' => escaped = true,
            Some((start, quote)) if c == quote => {
                strings.push(start..at + 1);
                open = None;
            }
            None if c == '"' || c == '\'' => open = Some((at, c)),
            // What was the secret before may have been left there.
            None if c == '#' => {
                strings.push(at..line.len());
                return strings;
            }
            _ => {}
        }
    }
    strings.extend(open.map(|(start, _)| start..line.len()));
    strings
}

/// What stands before the host of URLs, which may be a password, and their queries, which may hold a token.
fn private_parts(line: &str) -> Vec<Span> {
    let parts = |(slashes, _): (usize, &str)| {
        let start = slashes + "://".len();
        let url = line[start..].split(['"', '\'']).next().unwrap_or_default();
        // A password of a database may have quotation marks in it.
        let is_database = ["postgres", "postgresql"].iter().any(|scheme| line[..slashes].ends_with(scheme));
        let end = if is_database { Some(line.len()) } else { url.rfind('@').map(|end| start + end) };
        let query = url.find('?').map(|query| start + query + 1..start + url.len());
        end.map(|end| start..end).into_iter().chain(query.filter(|query| !query.is_empty()))
    };
    line.match_indices("://").flat_map(parts).collect()
}

/// The last character boundary at or before a byte.
fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
