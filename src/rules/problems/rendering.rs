//! Renders problems for people: the line, the place underlined, and a suggestion.

use annotate_snippets::renderer::{AnsiColor, Style};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use anstream::adapter::strip_str;

use super::{Problem, Severity};

const BOLD: Style = Style::new().bold();

impl Problem {
    /// Returns the problem with its line shown and the place underlined. The first line starts with
    /// `file:line:column:`.
    #[must_use]
    pub fn rendered(&self) -> String {
        strip_str(&self.styled()).to_string()
    }

    /// Returns [`Self::rendered`] with ANSI escapes that colour it.
    #[must_use]
    pub fn styled(&self) -> String {
        let (word, color, level) = match self.severity {
            Severity::Error => ("error", AnsiColor::BrightRed, Level::ERROR),
            Severity::Warning => ("warning", AnsiColor::BrightYellow, Level::WARNING),
        };
        let loud = BOLD.fg_color(Some(color.into()));
        let (place, message) = (&self.place, one_line(&self.message));
        let title = format!("{BOLD}{place}:{BOLD:#} {loud}{word}{loud:#}{BOLD}: {message}{BOLD:#}");
        let mut below = Group::with_level(level);
        if let Some(excerpt) = &self.place.excerpt {
            let annotation = AnnotationKind::Primary.span(excerpt.start..excerpt.end);
            let line = Snippet::source(excerpt.text.as_str()).line_start(self.place.start.0);
            below = below.element(line.annotation(annotation));
        }
        if let Some(suggestion) = &self.suggestion {
            below = below.element(Level::HELP.message(suggestion.as_str()));
        }
        if below.is_empty() { title } else { format!("{title}\n{}", Renderer::styled().render(&[below])) }
    }
}

/// Replaces control characters, which would break the line or reach a terminal.
pub(super) fn one_line(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' | '\t' => " ".to_owned(),
        control if control.is_control() => control.escape_debug().to_string(),
        other => other.to_string(),
    };
    text.chars().map(shown).collect()
}
