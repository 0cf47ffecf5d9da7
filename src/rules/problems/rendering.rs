//! Problems as people read them: the line shown, the place underlined, what else belongs to it, and a suggestion.

use annotate_snippets::renderer::{AnsiColor, Style};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::{Place, Problem, Severity};

/// Whether colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// Text alone.
    Plain,
    /// ANSI escapes, for terminals.
    Coloured,
}

const BOLD: Style = Style::new().bold();

impl Problem {
    /// The problem with its line shown and the place underlined. The first line starts with `file:line:column:`.
    #[must_use]
    pub fn rendered(&self) -> String {
        self.painted(Paint::Plain)
    }

    /// As [`Self::rendered`], in colours where they are wanted.
    #[must_use]
    pub fn painted(&self, paint: Paint) -> String {
        let mut text = self.title(paint);
        let group = self.shown();
        if !group.is_empty() {
            let renderer = match paint {
                Paint::Plain => Renderer::plain(),
                Paint::Coloured => Renderer::styled(),
            };
            text.push('\n');
            text.push_str(&renderer.render(&[group]));
        }
        text
    }

    fn title(&self, paint: Paint) -> String {
        let word = self.severity.as_str();
        let colour = match self.severity {
            Severity::Error => AnsiColor::BrightRed,
            Severity::Warning => AnsiColor::BrightYellow,
        };
        let (place, message) = (self.place.to_string(), one_line(&self.message));
        match paint {
            Paint::Plain => format!("{place}: {word}: {message}"),
            Paint::Coloured => {
                let loud = BOLD.fg_color(Some(colour.into()));
                format!("{BOLD}{place}:{BOLD:#} {loud}{word}{loud:#}{BOLD}: {message}{BOLD:#}")
            }
        }
    }

    /// What stands below the title.
    fn shown(&self) -> Group<'_> {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = Group::with_level(level);
        if let Some(snippet) = self.place.snippet(AnnotationKind::Primary, None) {
            group = group.element(snippet);
        }
        for related in &self.related {
            match related.place.snippet(AnnotationKind::Context, Some(&related.label)) {
                Some(snippet) => group = group.element(snippet.path(related.place.file.display().to_string())),
                None => group = group.element(Level::NOTE.message(format!("{}: {}", related.place, related.label))),
            }
        }
        if let Some(suggestion) = &self.suggestion {
            group = group.element(Level::HELP.message(suggestion.as_str()));
        }
        group
    }
}

impl Place {
    fn snippet<'a>(
        &'a self,
        kind: AnnotationKind,
        label: Option<&'a str>,
    ) -> Option<Snippet<'a, annotate_snippets::Annotation<'a>>> {
        let excerpt = self.excerpt.as_ref()?;
        let annotation = kind.span(excerpt.start..excerpt.end).label(label);
        Some(Snippet::source(excerpt.text.as_str()).line_start(self.start.0).annotation(annotation))
    }
}

/// A text whose control characters neither break its line nor reach a terminal.
pub(super) fn one_line(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' | '\t' => " ".to_owned(),
        control if control.is_control() => control.escape_debug().to_string(),
        other => other.to_string(),
    };
    text.chars().map(shown).collect()
}
