//! What changes for the customers who see pages.

use std::collections::{BTreeMap, BTreeSet};

use super::page::Page;
use super::read::ReadRules;
use super::words::{self, listed};
use super::{Effect, Group, Who};
use crate::rules::{Language, Pages};

/// The group of all pages.
pub(super) fn group(old: &ReadRules, new: &ReadRules) -> Group {
    let (before, after) = (&*old.rules.pages, &*new.rules.pages);
    let mut page = Page::of(String::new());
    let (spoken, speaks) = (by_tag(before), by_tag(after));
    for tag in spoken.keys().chain(speaks.keys()).copied().collect::<BTreeSet<_>>() {
        page.turn(format!("pages/{tag}.toml"));
        match (spoken.get(tag), speaks.get(tag)) {
            (Some(one), Some(other)) => texts(&mut page, one, other),
            (None, Some(_)) => {
                let instead = &before.language(tag).tag;
                let what = format!("language {tag} is new: customers who ask for it read it, and no longer {instead}");
                page.tell(Effect::Allows, "", what);
            }
            (Some(_), None) => {
                let instead = &after.language(tag).tag;
                let what = format!("language {tag} is gone: customers who ask for it read {instead}");
                page.tell(Effect::TakesAway, "", what);
            }
            (None, None) => {}
        }
    }
    Group { who: Who::Pages, changes: page.changes }
}

fn by_tag(pages: &Pages) -> BTreeMap<&str, &Language> {
    pages.languages().iter().map(|language| (&*language.tag, language)).collect()
}

/// Which texts of a language are others now.
fn texts(page: &mut Page, old: &Language, new: &Language) {
    let (before, after) = (all(old), all(new));
    let changed: Vec<&str> =
        after.iter().filter(|(key, text)| before.get(*key) != Some(text)).map(|(key, _)| key.as_str()).collect();
    let key = match changed.as_slice() {
        [] => return,
        [key] => *key,
        _ => "",
    };
    let (named, count) = listed(changed.iter().copied(), "text", false);
    let what = format!(
        "language {}: {named} {} now",
        words::plain(&new.tag),
        if count == 1 { "is another" } else { "are others" }
    );
    page.tell(Effect::Neither, key.to_owned(), what);
}

/// Everything that a language says, by key.
fn all(language: &Language) -> BTreeMap<String, String> {
    let direction = format!("{:?}", language.direction);
    let mut all = BTreeMap::from([
        ("direction".to_owned(), direction),
        ("decimal".to_owned(), language.decimal.to_string()),
        ("group".to_owned(), language.group.to_string()),
    ]);
    for (table, texts) in language.texts.as_object().into_iter().flatten() {
        for (key, text) in texts.as_object().into_iter().flatten() {
            all.insert(format!("{table}.{key}"), text.as_str().map_or_else(String::new, str::to_owned));
        }
    }
    all
}
