//! What is wrong with rule files: every problem with its place, shown without a secret.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// Lines longer than this, in bytes, are not shown.
const LONGEST_LINE_SHOWN: usize = 1000;

/// How much is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The rules are refused.
    Error,
    /// The rules can be put in force, and something in them would fail requests: `check` does not pass them, while a
    /// reload does, so that nothing stands between an operator and an urgent change.
    Warning,
}

/// One thing that is wrong in one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    file: PathBuf,
    line: usize,
    column: usize,
    message: String,
    suggestion: Option<String>,
    excerpt: Option<Excerpt>,
    severity: Severity,
}

/// The line a problem is in, with every secret in it replaced.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Excerpt {
    text: String,
    start: usize,
    end: usize,
}

impl Problem {
    /// The file, below the rules directory as the caller named it.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The line, from 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// The column in characters, from 1.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.column
    }

    /// What is wrong, and what was expected.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How much is wrong.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.severity
    }

    /// What may have been meant.
    #[must_use]
    pub fn suggestion(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }

    /// The problem with its line shown and the place underlined.
    #[must_use]
    pub fn rendered(&self) -> String {
        let title = format!("{}:{}:{}: {}", self.file.display(), self.line, self.column, self.message);
        let Some(excerpt) = &self.excerpt else { return self.to_string() };
        let mut group = Level::ERROR.no_name().primary_title(title).element(
            Snippet::source(excerpt.text.as_str())
                .line_start(self.line)
                .annotation(AnnotationKind::Primary.span(excerpt.start..excerpt.end)),
        );
        if let Some(suggestion) = &self.suggestion {
            group = group.element(Level::HELP.message(suggestion.as_str()));
        }
        Renderer::plain().render(&[group])
    }
}

/// `file:line:column: message (suggestion)`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file.display(), self.line, self.column, self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, " ({suggestion})"),
            None => Ok(()),
        }
    }
}

/// Everything that is wrong with a rule set that is refused, warnings included, sorted by file and place; never empty.
#[derive(Debug, Clone)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// The problems, sorted.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// All of them with their lines shown, a blank line between two.
    #[must_use]
    pub fn rendered(&self) -> String {
        self.0.iter().map(Problem::rendered).collect::<Vec<_>>().join("\n\n")
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One line a problem.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Names a file among those a [`Findings`] knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId(usize);

/// Bytes of a file.
pub(super) type Span = Range<usize>;

/// Collects problems while rule files are read, and what must not be shown of them.
#[derive(Default)]
pub(super) struct Findings {
    sources: Vec<Source>,
    found: Vec<Finding>,
}

struct Source {
    path: PathBuf,
    text: Arc<str>,
    /// Secrets, and values of keys that may be misspelt secrets.
    hidden: Vec<Span>,
    /// Whether the text could not be read, so that nobody knows where its secrets are.
    unread: bool,
    /// Places at or below keys with secrets: no string of their lines is shown.
    blank: Vec<usize>,
}

struct Finding {
    file: FileId,
    span: Span,
    message: String,
    suggestion: Option<String>,
    severity: Severity,
}

impl Findings {
    /// Takes a file; `path` is how problems name it.
    pub fn file(&mut self, path: &Path, text: impl Into<Arc<str>>) -> FileId {
        self.sources.push(Source {
            path: path.into(),
            text: text.into(),
            hidden: Vec::new(),
            unread: false,
            blank: Vec::new(),
        });
        FileId(self.sources.len() - 1)
    }

    /// Notes a problem.
    pub fn add(&mut self, file: FileId, span: Span, message: impl Into<String>) {
        self.add_with(file, span, message, None);
    }

    /// Notes a problem and what may have been meant.
    pub fn add_with(&mut self, file: FileId, span: Span, message: impl Into<String>, suggestion: Option<String>) {
        self.found.push(Finding { file, span, message: message.into(), suggestion, severity: Severity::Error });
    }

    /// Notes something that does not keep the rules from being loaded, and would fail requests.
    pub fn warn(&mut self, file: FileId, span: Span, message: impl Into<String>, suggestion: Option<String>) {
        self.found.push(Finding { file, span, message: message.into(), suggestion, severity: Severity::Warning });
    }

    /// Notes a problem of a file that has no text to point at.
    pub fn add_unreadable(&mut self, path: &Path, message: impl Into<String>) {
        let file = self.file(path, "");
        self.add(file, 0..0, message);
    }

    /// Keeps a part of a file out of everything that is shown.
    pub fn hide(&mut self, file: FileId, span: Span) {
        self.sources[file.0].hidden.push(span);
    }

    /// Keeps every string of a place's line out of everything that is shown.
    pub fn blank(&mut self, file: FileId, at: usize) {
        self.sources[file.0].blank.push(at);
    }

    /// Says that a file's text could not be read: only lines that cannot hold a secret are shown of it.
    pub fn distrust(&mut self, file: FileId) {
        self.sources[file.0].unread = true;
    }

    /// Whether something was found that keeps the rules from being loaded.
    pub fn refuse(&self) -> bool {
        self.found.iter().any(|found| found.severity == Severity::Error)
    }

    /// How much was found.
    pub fn count(&self) -> usize {
        self.found.len()
    }

    /// The text of a file.
    pub fn text(&self, file: FileId) -> &str {
        &self.sources[file.0].text
    }

    /// `file:line:column` of a place, to be named in another problem.
    pub fn place(&self, file: FileId, span: &Span) -> String {
        let source = &self.sources[file.0];
        let (line, column, _) = source.position(span.start);
        format!("{}:{line}:{column}", source.path.display())
    }

    /// Everything that was found, sorted: warnings alone, when the rules can be loaded.
    pub fn into_problems(self) -> Result<Vec<Problem>, Problems> {
        let refused = self.refuse();
        let mut problems: Vec<Problem> = self.found.into_iter().map(|found| finished(&self.sources, found)).collect();
        problems.sort();
        problems.dedup();
        if refused { Err(Problems(problems)) } else { Ok(problems) }
    }
}

fn finished(sources: &[Source], found: Finding) -> Problem {
    let source = &sources[found.file.0];
    let (line, column, line_start) = source.position(found.span.start);
    let excerpt = source.excerpt(line_start, &found.span);
    let Finding { message, suggestion, severity, .. } = found;
    Problem { file: source.path.clone(), line, column, message, suggestion, excerpt, severity }
}

impl Source {
    /// Line and column of a byte, both from 1, and where the line starts.
    fn position(&self, at: usize) -> (usize, usize, usize) {
        let at = floor_boundary(&self.text, at);
        let before = &self.text[..at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        (line, before[line_start..].chars().count() + 1, line_start)
    }

    /// The line that starts at `line_start`, its secrets replaced, with the part of `span` that is in it.
    fn excerpt(&self, line_start: usize, span: &Span) -> Option<Excerpt> {
        let rest = &self.text[line_start..];
        let line = rest.split('\n').next().unwrap_or(rest).trim_end_matches('\r');
        if line.trim().is_empty() || line.len() > LONGEST_LINE_SHOWN {
            return None;
        }
        let line_end = line_start + line.len();
        let mut hidden = self.hidden.clone();
        if self.unread && !harmless(line) {
            let from = line.find('=').map_or(line_start, |equals| line_start + equals + 1);
            hidden.push(from..line_end);
        }
        if self.blank.iter().any(|at| (line_start..=line_end).contains(at)) || names_a_secret(line) && self.is_toml() {
            hidden.extend(strings(line).into_iter().map(|span| line_start + span.start..line_start + span.end));
        }
        hidden.extend(userinfo(line).into_iter().map(|span| line_start + span.start..line_start + span.end));
        hidden.sort_by_key(|span| (span.start, span.end));
        let (start, end) = (span.start.min(line_end), span.end.clamp(span.start.min(line_end), line_end));
        Some(self.masked(line_start..line_end, &hidden, start..end))
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
        Excerpt { start: start.min(end), end: end.max(start), text }
    }
}

/// Whether a line of a file that could not be read may be shown whole: a header, a comment, or a key that is known and
/// holds no secret.
fn harmless(line: &str) -> bool {
    let line = line.trim_start();
    if names_a_secret(line) {
        return false;
    }
    let key = line.split('=').next().unwrap_or(line).trim();
    line.starts_with('#') || (line.starts_with('[') && !line.contains('=')) || super::raw::HARMLESS_KEYS.contains(&key)
}

/// Whether a text has a name in it that keys with secrets have.
pub(super) fn names_a_secret(text: &str) -> bool {
    ["secret", "token", "keys"].iter().any(|word| text.contains(word))
}

/// The strings of a line. Where one of several lines may begin or end, everything from there on is taken for one.
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
            _ => {}
        }
    }
    strings.extend(open.map(|(start, _)| start..line.len()));
    strings
}

/// What stands before the host of URLs: it may be a password.
fn userinfo(line: &str) -> Vec<Span> {
    let part = |(slashes, _): (usize, &str)| {
        let start = slashes + "://".len();
        let url = line[start..].split(['"', '\'']).next().unwrap_or_default();
        url.rfind('@').map(|end| start..start + end)
    };
    line.match_indices("://").filter_map(part).collect()
}

/// The last character boundary at or before a byte.
fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// A name from a rule file, fit to stand in a message: control characters escaped, overlong names cut.
pub(super) fn quoted(name: &str) -> String {
    const LONGEST: usize = 80;
    let shown: String = name.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    let more = if name.chars().nth(LONGEST).is_some() { "..." } else { "" };
    format!("`{shown}{more}`")
}

/// "did you mean `x`?", when one of the known names is near.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    if name.len() > 80 {
        return None;
    }
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .filter(|candidate| candidate.len() <= 80)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| format!("did you mean `{candidate}`?"))
}

/// How many letters must be changed, left out, put in or swapped with their neighbour to make `b` from `a`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_previous: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut current = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let mut cost = (previous[j] + usize::from(from != to)).min(previous[j + 1] + 1).min(current[j] + 1);
            if i > 0 && j > 0 && *from == b[j - 1] && a[i - 1] == *to {
                cost = cost.min(before_previous[j - 1] + 1);
            }
            current.push(cost);
        }
        before_previous = std::mem::replace(&mut previous, current);
    }
    previous[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str, hide: &[&str], mark: &str, message: &str) -> Problem {
        let mut findings = Findings::default();
        let file = findings.file(Path::new("rules/x.toml"), text);
        for hidden in hide {
            let at = text.find(hidden).unwrap();
            findings.hide(file, at..at + hidden.len());
        }
        let at = text.find(mark).unwrap();
        findings.add(file, at..at + mark.len(), message);
        findings.into_problems().unwrap_err().0.remove(0)
    }

    #[test]
    fn a_problem_is_shown_with_its_line() {
        let problem = problem("a = 1\nbé = true\n", &[], "true", "must be a number");
        assert_eq!(problem.to_string(), "rules/x.toml:2:6: must be a number");
        let shown = problem.rendered();
        assert!(shown.starts_with("rules/x.toml:2:6: must be a number\n"), "{shown}");
        assert!(shown.contains("2 | bé = true"), "{shown}");
        assert!(shown.contains("|      ^^^^"), "{shown}");
    }

    #[test]
    fn what_is_hidden_is_never_shown() {
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

    #[test]
    fn near_names_are_suggested() {
        let known = ["default_shop", "name", "api_keys"];
        assert_eq!(did_you_mean("defalt_shop", known).as_deref(), Some("did you mean `default_shop`?"));
        assert_eq!(did_you_mean("nmae", known).as_deref(), Some("did you mean `name`?"));
        assert_eq!(did_you_mean("colour", known), None);
        assert_eq!(distance("abc", "acb"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}
