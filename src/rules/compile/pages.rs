//! `pages/`: what customers' pages are made of, and what stands in for files that are not there.

use std::sync::{Arc, LazyLock};

use super::memo::KeptPages;
use super::page_template::tried;
use super::template::TemplateProblem;
use super::{Context, Here};
use crate::rules::files::{PAGE_TEMPLATE, Role};
use crate::rules::pages::tag::{canonical, shortened};
use crate::rules::pages::{Language, Pages, TextDirection};
use crate::rules::problems::{Findings, Span, did_you_mean, quoted};
use crate::rules::raw::{self, Field, RawTexts, Separator, TABLES};
use crate::rules::shelf::{ContentHash, RuleFile};
use serde_json::{Map, Value};

/// The language for customers who ask for none of the others, unless the rules name another one. It has every text, so
/// that it can stand in for any.
const FIRST: &str = "en";

/// The languages that are there without any file.
const LANGUAGES: &[(&str, &str)] = &[
    ("en", include_str!("../../../rules/pages/en.toml")),
    ("ar", include_str!("../../../rules/pages/ar.toml")),
    ("de", include_str!("../../../rules/pages/de.toml")),
    ("es", include_str!("../../../rules/pages/es.toml")),
    ("fr", include_str!("../../../rules/pages/fr.toml")),
];

const TEMPLATE: &str = include_str!("../../../rules/pages/page.html");
const STYLE: &str = include_str!("../../../rules/pages/style.css");

/// The built-in languages' texts, by tag.
static TEXTS: LazyLock<Vec<(&str, RawTexts)>> = LazyLock::new(|| {
    let read = |(tag, text): &(&'static str, &str)| {
        let mut findings = Findings::default();
        let file = findings.file(std::path::Path::new(tag), *text);
        (*tag, raw::read(text, file, &mut findings).unwrap_or_default())
    };
    LANGUAGES.iter().map(read).collect()
});

/// The pages that are there without any file; the same ones for as long as the process runs.
static BUILT_IN: LazyLock<Option<Arc<Pages>>> = LazyLock::new(|| {
    let pages = Pages::new(languages(&[], FIRST), TEMPLATE.to_owned(), as_browsers_read(STYLE));
    pages.ok().map(Arc::new)
});

/// The pages that are there without any file; always there, as a test proves.
pub(crate) fn built_in() -> Option<Arc<Pages>> {
    BUILT_IN.clone()
}

impl Context<'_> {
    /// What `pages.language` means: the tag of a language that is there.
    pub(super) fn default_language(&mut self, here: Here<'_>, field: &Field<String>) -> Box<str> {
        let Some(given) = field.given() else { return FIRST.into() };
        let named = given.get_ref();
        let files = self.files.keys().filter_map(|role| match role {
            Role::PageTexts(name) => Some(name.as_str()),
            _ => None,
        });
        let mut known: Vec<&str> = LANGUAGES.iter().map(|(tag, _)| *tag).chain(files).collect();
        known.sort_unstable();
        known.dedup();
        if known.iter().any(|known| known.eq_ignore_ascii_case(named)) {
            return canonical(named).unwrap_or_else(|| named.clone()).into();
        }
        if !self.findings.unread("pages", &format!("{named}.toml")) {
            let suggestion = did_you_mean(named, known.iter().copied())
                .unwrap_or_else(|| format!("known here: {}", known.join(", ")));
            let message = format!("`pages.language`: there is no language {}", quoted(named));
            self.findings.add_with(here.file, given.span(), message, Some(suggestion));
        }
        FIRST.into()
    }

    /// What customers' pages are made of; `None` when something is wrong with it. `first` is the language for customers
    /// who ask for none of the others, where that is known.
    pub(super) fn customers_pages(&mut self, first: Option<&str>) -> Option<Arc<Pages>> {
        let first = first.unwrap_or(FIRST);
        let all = self.files;
        let files = || all.iter().filter(|(role, _)| is_of_pages(role));
        let made_from: Vec<(Role, ContentHash)> = files().map(|(role, file)| (role.clone(), file.hash)).collect();
        let before = self.before.pages.take();
        if let Some(known) = before.filter(|known| known.files == made_from && *known.language == *first) {
            let pages = Arc::clone(&known.pages);
            self.kept.pages = Some(known);
            return Some(pages);
        }
        if made_from.is_empty() && first == FIRST {
            return BUILT_IN.clone();
        }
        let found = self.findings.count();
        let texts: Vec<(String, RawTexts)> = files().filter_map(|(role, file)| self.page_texts(role, file)).collect();
        let languages = languages(&texts, first);
        for language in languages.iter().filter(|language| language.decimal == language.group) {
            self.ambiguous(&language.tag);
        }
        let style = self.style();
        let pages = Arc::new(self.template(languages, style)?);
        if self.findings.count() == found {
            let kept = KeptPages { files: made_from, language: first.into(), pages: Arc::clone(&pages) };
            self.kept.pages = Some(kept);
        }
        Some(pages)
    }

    /// An amount that shows one sign for both could be read as another one.
    fn ambiguous(&mut self, tag: &str) {
        let own = |role: &Role| matches!(role, Role::PageTexts(name) if canonical(name).as_deref() == Some(tag));
        if let Some((_, file)) = self.files.iter().find(|(role, _)| own(role)) {
            let id = self.findings.file(&file.path, Arc::clone(&file.text));
            let message = "`decimal` and `group` must not be the same; what the file leaves out is as it is built in";
            self.findings.add(id, 0..0, message);
        }
    }

    /// The texts of a language's file, by its tag.
    fn page_texts(&mut self, role: &Role, file: &RuleFile) -> Option<(String, RawTexts)> {
        let Role::PageTexts(name) = role else { return None };
        let (here, raw) = self.read::<RawTexts>(file)?;
        let Some(tag) = canonical(name) else {
            let message = format!(
                "{} is no language tag: two or three letters, such as `en`, and subtags after hyphens, such as `pt-BR`",
                quoted(name)
            );
            self.problem(here, 0..0, message);
            return None;
        };
        let same = |other: &Role| matches!(other, Role::PageTexts(other) if other.as_str() < name.as_str() && other.eq_ignore_ascii_case(name));
        if let Some((_, other)) = self.files.iter().find(|(other, _)| same(other)) {
            let message = format!("the language `{tag}` is there twice: {} has the same tag", other.path.display());
            self.problem(here, 0..0, message);
            return None;
        }
        Some((tag, raw))
    }

    /// The stylesheet: the file's, when it is there and right.
    fn style(&mut self) -> String {
        let Some(file) = self.files.get(&Role::PageStyle) else { return as_browsers_read(STYLE) };
        let id = self.findings.file(&file.path, Arc::clone(&file.text));
        let problems = style_problems(&file.text);
        let is_right = problems.is_empty();
        for (span, message) in problems {
            self.findings.add(id, span, message);
        }
        if is_right { as_browsers_read(&file.text) } else { as_browsers_read(STYLE) }
    }

    fn template(&mut self, languages: Vec<Language>, style: String) -> Option<Pages> {
        let Some(file) = self.files.get(&Role::PageTemplate) else {
            return Pages::new(languages, TEMPLATE.to_owned(), style).ok();
        };
        let id = self.findings.file(&file.path, Arc::clone(&file.text));
        let source = file.text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&file.text);
        // The built-in one was tried.
        if source == TEMPLATE {
            return Pages::new(languages, TEMPLATE.to_owned(), style).ok();
        }
        let mark = file.text.len() - source.len();
        let place = |problem: &TemplateProblem| problem.at.clone().map_or(0..0, |at| at.start + mark..at.end + mark);
        let message = |problem: &TemplateProblem| format!("`{PAGE_TEMPLATE}` {}", problem.reason);
        match tried(languages, source, style) {
            Ok((pages, warnings)) => {
                for warning in warnings {
                    self.findings.warn(id, place(&warning), message(&warning), warning.suggestion);
                }
                Some(pages)
            }
            Err(problems) => {
                for problem in problems {
                    self.findings.add_with(id, place(&problem), message(&problem), problem.suggestion);
                }
                None
            }
        }
    }
}

/// The largest stylesheet, in bytes: it is part of every page.
const LARGEST_STYLE: usize = 32 << 10;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// What no stylesheet may hold, in small letters, and why.
const NOT_IN_STYLES: &[(&str, &str)] = &[
    ("</", "it would end the element that the stylesheet stands in"),
    ("<!--", "it stands in HTML, and that begins a comment there"),
    ("@import", "no other stylesheet may be loaded"),
    ("\0", "browsers read another character in its place"),
];

/// What is wrong with a stylesheet.
fn style_problems(text: &str) -> Vec<(Span, String)> {
    let small = text.to_ascii_lowercase();
    let mut problems = Vec::new();
    if text.len() > LARGEST_STYLE {
        problems.push((
            0..0,
            format!("the stylesheet is larger than {} KiB: every page has all of it", LARGEST_STYLE >> 10),
        ));
    }
    for (found, why) in NOT_IN_STYLES {
        let places = small
            .match_indices(found)
            .map(|(at, _)| (at..at + found.len(), format!("{} cannot be here: {why}", quoted(found))));
        problems.extend(places);
    }
    for (at, url) in small.match_indices("url(") {
        let named = small[at + url.len()..].trim_start_matches([' ', '\t', '\r', '\n', '"', '\'']);
        if !named.starts_with("data:") {
            let message = "`url(` may name nothing but `data:`: pages load nothing beside themselves";
            problems.push((at..at + url.len(), message.to_owned()));
        }
    }
    problems
}

/// A stylesheet as browsers read it when it stands in a page, so that the hash that allows it is that of what they see.
fn as_browsers_read(text: &str) -> String {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n")
}

fn is_of_pages(role: &Role) -> bool {
    matches!(role, Role::PageTemplate | Role::PageStyle | Role::PageTexts(_))
}

/// All languages, those of files and those that are built in, `first` before the others.
fn languages(files: &[(String, RawTexts)], first: &str) -> Vec<Language> {
    let built_in = |tag: &str| TEXTS.iter().find(|(known, _)| *known == tag).map(|(_, texts)| texts);
    let tags = TEXTS.iter().map(|(tag, _)| *tag).chain(files.iter().map(|(tag, _)| tag.as_str()));
    let mut tags: Vec<&str> = tags.collect();
    tags.sort_by_key(|tag| (*tag != first, *tag));
    tags.dedup();
    let language = |tag: &str| {
        let own = files.iter().find(|(known, _)| known == tag).map(|(_, texts)| texts);
        // What a region's file leaves out is as in its language, where that is built in.
        let near = shortened(tag).find_map(built_in);
        let sources: Vec<&RawTexts> = own.into_iter().chain(near).chain(built_in(FIRST)).collect();
        composed(tag, &sources)
    };
    tags.into_iter().map(language).collect()
}

/// A language of what the first of some sources has for each key.
fn composed(tag: &str, sources: &[&RawTexts]) -> Language {
    let separator = |of: fn(&RawTexts) -> &Field<Separator>| {
        let found = sources.iter().find_map(|source| of(source).get());
        found.map_or("", |separator| separator.0.as_str()).into()
    };
    let direction = sources.iter().find_map(|source| source.direction.get()).copied();
    let mut texts = Map::new();
    for table in TABLES {
        let text = |key: &str| sources.iter().find_map(|source| source.text(table.name, key));
        let value = |key: &raw::TextKey| text(key.name).map_or_else(|| absent(key), Value::from);
        let values: Map<String, Value> = table.keys.iter().map(|key| (key.name.to_owned(), value(key))).collect();
        texts.insert(table.name.to_owned(), values.into());
    }
    Language {
        tag: tag.into(),
        direction: direction.unwrap_or(TextDirection::Ltr),
        decimal: separator(|source| &source.decimal),
        group: separator(|source| &source.group),
        texts: texts.into(),
    }
}

/// What templates read where no language has a text.
fn absent(key: &raw::TextKey) -> Value {
    if key.optional { Value::Null } else { Value::from("") }
}
