//! Collects the problems of rule files, each with its place, and shows them without secrets.

mod rendering;
mod source;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::{Deref, Index, IndexMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::DeValue;

#[cfg(test)]
pub(super) use self::source::NO_SECRETS;
use self::source::{Excerpt, Source, hide_all};
pub(super) use self::source::{ShownKeys, Span, names_a_secret};

/// The most problems reported of one file, and of all files together; of the others only the number is reported.
const MOST_OF_A_FILE: usize = 100;
const MOST_PROBLEMS: usize = 1000;

/// The severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The rules are rejected.
    Error,
    /// The rules can be put in force, but they are probably not what was meant: some requests would fail, or a file is not
    /// read. `check` fails on it, a reload does not, so that it never blocks an urgent change.
    Warning,
}

impl Severity {
    /// Returns "error" or "warning".
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// A part of a rule file. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, whose path begins with the rules directory as the caller named it.
    pub file: PathBuf,
    /// Line and column of the first character.
    pub start: (usize, usize),
    /// Line and column after the last character.
    pub end: (usize, usize),
    excerpt: Option<Excerpt>,
}

impl Place {
    /// Returns the first line of the place with every secret replaced; of a long line, the part around the place.
    /// `None` for a file without a line to show.
    #[must_use]
    pub fn line_text(&self) -> Option<&str> {
        self.excerpt.as_ref().map(|excerpt| excerpt.text.as_str())
    }
}

/// `file:line:column`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.start.0, self.start.1)
    }
}

/// A problem at one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where it is.
    pub place: Place,
    /// What is wrong, and what was expected.
    pub message: String,
    /// What may have been intended.
    pub suggestion: Option<String>,
    /// The severity of a problem.
    pub severity: Severity,
}

/// `file:line:column: message (suggestion)`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, " ({suggestion})"),
            None => Ok(()),
        }
    }
}

/// All problems of a rejected rule set, warnings included, sorted by file and place; never empty.
#[derive(Debug, Clone)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Renders all problems with their source lines, separated by blank lines.
    #[must_use]
    pub fn rendered(&self) -> String {
        self.0.iter().map(Problem::rendered).collect::<Vec<_>>().join("\n\n")
    }

    /// Returns the errors, for which the rule set is rejected.
    pub fn errors(&self) -> impl Iterator<Item = &Problem> {
        self.of(Severity::Error)
    }

    /// Returns the warnings, for which it would not be rejected.
    pub fn warnings(&self) -> impl Iterator<Item = &Problem> {
        self.of(Severity::Warning)
    }

    fn of(&self, severity: Severity) -> impl Iterator<Item = &Problem> {
        self.0.iter().filter(move |problem| problem.severity == severity)
    }
}

impl Deref for Problems {
    type Target = [Problem];

    fn deref(&self) -> &[Problem] {
        &self.0
    }
}

/// One problem a line.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.iter().map(Problem::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Problems {}

/// Identifies a file of a [`Diagnostics`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileId(usize);

/// The files that were taken.
#[derive(Default)]
struct Sources(Vec<Source>);

impl Sources {
    fn add(&mut self, source: Source) -> FileId {
        self.0.push(source);
        FileId(self.0.len() - 1)
    }
}

#[expect(clippy::indexing_slicing, reason = "only `add` gives out ids, and no file is taken out")]
impl Index<FileId> for Sources {
    type Output = Source;

    fn index(&self, FileId(at): FileId) -> &Source {
        &self.0[at]
    }
}

#[expect(clippy::indexing_slicing, reason = "only `add` gives out ids, and no file is taken out")]
impl IndexMut<FileId> for Sources {
    fn index_mut(&mut self, FileId(at): FileId) -> &mut Source {
        &mut self.0[at]
    }
}

/// Collects problems while rule files are read, and the parts of files that must not be shown.
#[derive(Default)]
pub(super) struct Diagnostics {
    sources: Sources,
    found: Vec<Finding>,
    /// The number of problems found, including those over the limits.
    count: usize,
    /// Whether one of the problems is an error.
    refuse: bool,
}

struct Finding {
    file: FileId,
    span: Span,
    message: String,
    suggestion: Option<String>,
    severity: Severity,
}

impl Diagnostics {
    /// Adds a file; problems name it by `path`.
    pub(super) fn file(&mut self, path: &Path, text: impl Into<Arc<str>>) -> FileId {
        self.sources.add(Source::new(path, text.into()))
    }

    /// Adds an error.
    pub(super) fn add(&mut self, file: FileId, span: Span, message: impl Into<String>) {
        self.add_with(file, span, message, None);
    }

    /// Adds an error and what may have been intended.
    pub(super) fn add_with(
        &mut self,
        file: FileId,
        span: Span,
        message: impl Into<String>,
        suggestion: Option<String>,
    ) {
        self.note(Finding { file, span, message: message.into(), suggestion, severity: Severity::Error });
    }

    /// Adds a warning: the rules can be loaded, but are probably not what was meant.
    pub(super) fn warn(&mut self, file: FileId, span: Span, message: impl Into<String>, suggestion: Option<String>) {
        self.note(Finding { file, span, message: message.into(), suggestion, severity: Severity::Warning });
    }

    fn note(&mut self, finding: Finding) {
        let source = &mut self.sources[finding.file];
        source.problems += 1;
        source.refused |= finding.severity == Severity::Error;
        self.count += 1;
        self.refuse |= finding.severity == Severity::Error;
        if source.problems <= MOST_OF_A_FILE && self.found.len() < MOST_PROBLEMS {
            self.found.push(finding);
        }
    }

    /// Adds a problem that states how many problems were left out.
    fn note_the_rest(&mut self) {
        let unreported = self.count - self.found.len();
        if let Some(file) = self.found.iter().map(|finding| finding.file).max_by_key(|file| &self.sources[*file].path)
            && unreported > 0
        {
            let severity = if self.refuse { Severity::Error } else { Severity::Warning };
            let end = self.sources[file].text.len();
            let message = format!("{unreported} more problems are not shown");
            self.found.push(Finding { file, span: end..end, message, suggestion: None, severity });
        }
    }

    /// Adds an error of a file without text to point at.
    pub(super) fn add_unreadable(&mut self, path: &Path, message: impl Into<String>) {
        let file = self.file(path, "");
        self.add(file, 0..0, message);
    }

    /// Excludes a value, and everything in tables below it, from everything that is shown.
    pub(super) fn hide_value(&mut self, file: FileId, value: &Spanned<DeValue<'_>>) {
        hide_all(value, &mut self.sources[file].hidden);
    }

    /// Marks a file whose text could not be read, and states what its lines may show; `None`: everything.
    pub(super) fn distrust(&mut self, file: FileId, shown_keys: Option<ShownKeys>) {
        let source = &mut self.sources[file];
        (source.unread, source.shown_keys) = (true, shown_keys);
    }

    /// Returns the line and column of a byte of a file, both from 1.
    pub(super) fn position(&self, file: FileId, at: usize) -> (usize, usize) {
        self.sources[file].position(at)
    }

    /// Returns the path by which problems name a file.
    pub(super) fn path(&self, file: FileId) -> &Path {
        &self.sources[file].path
    }

    /// Reports whether any error was found.
    pub(super) const fn refuse(&self) -> bool {
        self.refuse
    }

    /// Returns the added files, by path.
    pub(super) fn files(&self) -> HashMap<PathBuf, FileId> {
        self.sources.0.iter().enumerate().map(|(at, source)| (source.path.clone(), FileId(at))).collect()
    }

    /// Reports whether one of the collected problems lies within a part of a file.
    pub(super) fn is_wrong(&self, file: FileId, within: &Span) -> bool {
        let inside = |span: &Span| span.start >= within.start && span.end <= within.end;
        self.found.iter().any(|found| found.file == file && inside(&found.span))
    }

    /// Reports whether an error was found in a file.
    pub(super) fn refuses(&self, file: FileId) -> bool {
        self.sources[file].refused
    }

    /// Reports whether a file (`merchants/acme.toml`) or its directory exists and could not be read, so that its
    /// content is unknown.
    pub(super) fn unread(&self, directory: &str, name: &str) -> bool {
        let (directory, file) = (Path::new(directory), Path::new(directory).join(name));
        self.unread_files().any(|path| path.ends_with(&file) || path.ends_with(directory))
    }

    /// Returns the files and directories that exist and could not be read.
    pub(super) fn unread_files(&self) -> impl Iterator<Item = &Path> {
        self.sources.0.iter().filter(|source| source.unread).map(|source| source.path.as_path())
    }

    /// Returns the text of a file.
    pub(super) fn text(&self, file: FileId) -> &str {
        &self.sources[file].text
    }

    /// Returns all problems, sorted: `Ok` with the warnings when the rules can be loaded.
    pub(super) fn into_problems(mut self) -> Result<Vec<Problem>, Problems> {
        let refused = self.refuse();
        self.note_the_rest();
        for file in self.found.iter().map(|found| found.file).collect::<HashSet<_>>() {
            self.sources[file].settle();
        }
        let mut problems: Vec<Problem> =
            self.found.into_iter().map(|found| finished(&self.sources[found.file], found)).collect();
        problems.sort();
        problems.dedup();
        if refused { Err(Problems(problems)) } else { Ok(problems) }
    }
}

fn finished(source: &Source, found: Finding) -> Problem {
    let Finding { span, message, suggestion, severity, .. } = found;
    let place = Place {
        file: source.path.clone(),
        start: source.position(span.start),
        end: source.position(span.end.max(span.start)),
        excerpt: source.excerpt(&span),
    };
    Problem { place, message, suggestion, severity }
}
