//! Compiles `pages/` and `[pages]`: the texts, languages and brand of customers' pages.

use std::sync::Arc;

use serde_json::{Map, Value};
use toml::Spanned;

use super::gateway::RawPages;
use super::page_texts::RawTexts;
use super::{Context, FileContext, ReadFile};
use crate::names::{did_you_mean, quoted};
use crate::rules::color::{Color, LEAST_CONTRAST};
use crate::rules::external_files::ExternalContent;
use crate::rules::files::{FileRole, RuleFile};
use crate::rules::pages::languages::{BUILT_IN, FIRST, languages};
use crate::rules::pages::tag::canonical;
use crate::rules::pages::{Brand, LIGHT_FIELD, Pages, image_uri};
use crate::rules::raw::Key;

/// The largest logo, in bytes: it is embedded in every page.
const LARGEST_LOGO: u64 = 64 << 10;

impl Context<'_> {
    /// Returns the tag that `pages.language` names; notes a language that does not exist.
    pub(super) fn default_language(&mut self, context: FileContext<'_>, key: &Key<String>) -> Box<str> {
        let Some(given) = key.given() else { return FIRST.into() };
        let named: &str = given.get_ref();
        let files = self
            .files
            .keys()
            .filter_map(|role| if let FileRole::PageTexts(name) = role { Some(name.as_str()) } else { None });
        let mut known: Vec<&str> = BUILT_IN.iter().map(|(tag, _)| *tag).chain(files).collect();
        known.sort_unstable();
        known.dedup();
        if known.iter().any(|known| known.eq_ignore_ascii_case(named)) {
            return canonical(named).unwrap_or_else(|| named.to_owned()).into();
        }
        if !self.diagnostics.unread("pages", &format!("{named}.toml")) {
            let suggestion = did_you_mean(named, known.iter().copied())
                .unwrap_or_else(|| format!("known languages: {}", known.join(", ")));
            let message = format!("`pages.language`: there is no language {}", quoted(named));
            self.diagnostics.add_with(context.file, given.span(), message, Some(suggestion));
        }
        FIRST.into()
    }

    /// Returns the customers' pages. `first` is the language for customers whose browser requests none of the others.
    pub(super) fn customer_pages(&mut self, first: &str, brand: &Brand) -> Pages {
        let files = self.files;
        let texts: Vec<(String, Map<String, Value>)> =
            files.iter().filter_map(|(role, file)| self.page_texts(role, file)).collect();
        let languages = languages(&texts, first);
        for language in languages.iter().filter(|language| language.decimal == language.group) {
            self.note_ambiguous_separators(&language.tag);
        }
        Pages::new(languages, brand)
    }

    /// Returns the brand of `[pages]`.
    pub(super) fn brand(&mut self, context: FileContext<'_>, raw: &RawPages) -> Brand {
        Brand {
            name: raw.name.get().map(|name| name.0.clone()),
            color: raw.color.given().and_then(|given| self.accent_color(context, given)),
            logo: raw.logo.given().and_then(|given| self.logo(context, given)),
        }
    }

    /// Parses `pages.color` and checks its contrast: links have the accent colour, and buttons white text on it.
    fn accent_color(&mut self, context: FileContext<'_>, given: &Spanned<String>) -> Option<Color> {
        let Some(color) = Color::parse(given.get_ref()) else {
            self.problem(
                context,
                given.span(),
                "`pages.color` must be `#` and six hexadecimal digits, such as \"#0b5fff\"",
            );
            return None;
        };
        let contrast = color.contrast(LIGHT_FIELD);
        if contrast >= LEAST_CONTRAST {
            return Some(color);
        }
        let message = format!(
            "`pages.color` is too light: its contrast with the pages' background is {contrast:.2}, and text in it needs \
             {LEAST_CONTRAST} (WCAG AA)"
        );
        let darker = color.readable_before(LIGHT_FIELD, Color::BLACK);
        self.diagnostics.add_with(context.file, given.span(), message, Some(format!("`{darker}` would do")));
        None
    }

    /// Reads the logo as a `data:` URI. In an `<img>`, an SVG runs no script and loads nothing.
    fn logo(&mut self, context: FileContext<'_>, given: &Spanned<String>) -> Option<Box<str>> {
        let path = context.relative(given.get_ref());
        let reason = match self.external.read(&path, ExternalContent::Public, LARGEST_LOGO) {
            Ok(bytes) => match image_uri(&bytes) {
                Some(uri) => return Some(uri),
                None => "is neither SVG nor PNG".to_owned(),
            },
            Err(error) => format!("cannot be read: {error} (at most {} KiB)", LARGEST_LOGO >> 10),
        };
        self.problem(context, given.span(), format!("`pages.logo`: {} {reason}", path.display()));
        None
    }

    /// Notes a language whose `decimal` and `group` are the same: its amounts would be ambiguous.
    fn note_ambiguous_separators(&mut self, tag: &str) {
        let own =
            |role: &FileRole| matches!(role, FileRole::PageTexts(name) if canonical(name).as_deref() == Some(tag));
        if let Some((_, file)) = self.files.iter().find(|(role, _)| own(role)) {
            let id = self.diagnostics.file(&file.path, Arc::clone(&file.text));
            let message = "`decimal` and `group` must differ; a key that the file leaves out has its built-in value";
            self.diagnostics.add(id, 0..0, message);
        }
    }

    /// Reads the texts of a language's file, with its tag.
    fn page_texts(&mut self, role: &FileRole, file: &RuleFile) -> Option<(String, Map<String, Value>)> {
        let FileRole::PageTexts(name) = role else { return None };
        let ReadFile { context, raw, .. } = self.read::<RawTexts>(file)?;
        let Some(tag) = canonical(name) else {
            let message = format!(
                "{} is no language tag: two or three letters, such as `en`, and subtags after hyphens, such as `pt-BR`",
                quoted(name)
            );
            self.problem(context, 0..0, message);
            return None;
        };
        let same = |other: &FileRole| matches!(other, FileRole::PageTexts(other) if other.as_str() < name.as_str() && other.eq_ignore_ascii_case(name));
        if let Some((_, other)) = self.files.iter().find(|(other, _)| same(other)) {
            let message = format!("the language `{tag}` has two files: {} has the same tag", other.path.display());
            self.problem(context, 0..0, message);
            return None;
        }
        Some((tag, raw.0))
    }
}
