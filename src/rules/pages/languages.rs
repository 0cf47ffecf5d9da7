//! The built-in languages, and how an operator's texts override them.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::language::{Language, TextDirection};
use super::tag::shortened;

/// The tag of the default language, unless the rules name another one. It has every text, so that it can complete any
/// language.
pub(in crate::rules) const FIRST: &str = "en";

/// The settings and text tables of each built-in language, by tag.
pub(in crate::rules) static BUILT_IN: LazyLock<[(&str, Map<String, Value>); 5]> = LazyLock::new(|| {
    let languages = [
        (FIRST, include_str!("en.toml")),
        ("ar", include_str!("ar.toml")),
        ("de", include_str!("de.toml")),
        ("es", include_str!("es.toml")),
        ("fr", include_str!("fr.toml")),
    ];
    languages.map(|(tag, text)| (tag, toml::from_str(text).unwrap_or_default()))
});

/// All keys of a language: the settings and text tables of English, and a hint for every page.
pub(in crate::rules) static KNOWN: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let [(_, english), ..] = &*BUILT_IN;
    let mut known = english.clone();
    for page in known.values_mut().filter_map(Value::as_object_mut).filter(|table| table.contains_key("title")) {
        page.entry("hint").or_insert(Value::Null);
    }
    known
});

/// The keys of [`KNOWN`] with every text null.
static EMPTY_TEXTS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let mut none = KNOWN.clone();
    none.values_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut).for_each(|text| *text = Value::Null);
    none
});

/// Returns all languages, of files and built in, `first` before the others.
pub(in crate::rules) fn languages(files: &[(String, Map<String, Value>)], first: &str) -> Vec<Language> {
    let built_in = |tag: &str| BUILT_IN.iter().find(|(known, _)| *known == tag).map(|(_, texts)| texts);
    let tags = BUILT_IN.iter().map(|(tag, _)| *tag).chain(files.iter().map(|(tag, _)| tag.as_str()));
    let mut tags: Vec<&str> = tags.collect();
    tags.sort_by_key(|tag| (*tag != first, *tag));
    tags.dedup();
    let language = |tag: &str| {
        let own = files.iter().find(|(known, _)| known == tag).map(|(_, texts)| texts);
        // A region's file is completed from its built-in language, such as `pt-BR` from `pt`, then from English.
        let parent = shortened(tag).find_map(built_in);
        let sources: Vec<_> = own.into_iter().chain(parent).chain(built_in(FIRST)).collect();
        compose(tag, &sources)
    };
    tags.into_iter().map(language).collect()
}

/// Returns a language with the first text of `sources` for each key. A hint that is in none of them is null.
fn compose(tag: &str, sources: &[&Map<String, Value>]) -> Language {
    let mut texts = EMPTY_TEXTS.clone();
    for (name, value) in sources.iter().rev().copied().flatten() {
        match (texts.get_mut(name), value) {
            (Some(Value::Object(texts)), Value::Object(own)) => texts.extend(own.clone()),
            _ => drop(texts.insert(name.clone(), value.clone())),
        }
    }
    let [direction, decimal, group] = ["direction", "decimal", "group"]
        .map(|name| texts.remove(name).and_then(|value| value.as_str().map(Box::<str>::from)).unwrap_or_default());
    let direction = if &*direction == "rtl" { TextDirection::Rtl } else { TextDirection::Ltr };
    Language { tag: tag.into(), direction, decimal, group, texts: texts.into() }
}
