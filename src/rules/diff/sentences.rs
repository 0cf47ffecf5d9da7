//! Sentences that describe the change of a setting, with its effect, as the key's declaration states it.

use std::collections::BTreeSet;

use crate::rules::raw::network;
use crate::rules::setting::Effect::{self, Allows, Neither, Refuses, TakesAway};
use crate::rules::setting::{EffectRule, Setting, SettingEntry};

/// The most names that a sentence lists.
const MOST_NAMED: usize = 8;

/// Reports whether a setting means the same in both.
pub(super) fn is_equivalent(old: Option<&Setting>, new: Option<&Setting>) -> bool {
    let (Some(old), Some(new)) = (old, new) else { return old.is_none() && new.is_none() };
    // The order of secrets matters: the first one signs.
    let is_ordered = matches!(new.on_change.rule, EffectRule::Secret { .. });
    let (old, new) = (&old.entries, &new.entries);
    let same = old.iter().map(|entry| &entry.same).eq(new.iter().map(|entry| &entry.same));
    same || (!is_ordered && missing(old, new).is_empty() && missing(new, old).is_empty())
}

/// Returns the entries of one list that another one does not have.
fn missing<'a>(of: &'a [SettingEntry], from: &[SettingEntry]) -> BTreeSet<&'a SettingEntry> {
    of.iter().filter(|entry| !from.iter().any(|had| had.same == entry.same)).collect()
}

/// Returns the values as a list in words.
pub(super) fn shown<'a>(entries: impl IntoIterator<Item = &'a SettingEntry>) -> String {
    listed(entries.into_iter().map(|entry| entry.shown.clone()))
}

/// Describes the change of a setting.
pub(super) fn sentences(old: Option<&Setting>, new: Option<&Setting>) -> Vec<(Effect, String)> {
    let Some(on_change) = new.or(old).map(|setting| setting.on_change) else { return Vec::new() };
    if let EffectRule::Secret { first, last } = on_change.rule {
        return vec![secrets(first, last, old, new)];
    }
    let because = if on_change.meaning.is_empty() { String::new() } else { format!(": {}", on_change.meaning) };
    if let (EffectRule::Entries(added, gone), Some(before), Some(after)) = (on_change.rule, old, new) {
        return entries((added, gone), &before.entries, &after.entries, &because);
    }
    let shown_or_absent = |setting: Option<&Setting>| {
        setting.map_or_else(|| on_change.absent.to_owned(), |setting| or_none(shown(&setting.entries)))
    };
    let (before, after) = (shown_or_absent(old), shown_or_absent(new));
    match on_change.unseen {
        Some(unseen) if before == after => vec![(Neither, format!("{after} {unseen}"))],
        _ => vec![(effect(on_change.rule, old, new), format!("{}{because}", arrow(&before, &after)))],
    }
}

/// Returns the effect of a change.
fn effect(rule: EffectRule, old: Option<&Setting>, new: Option<&Setting>) -> Effect {
    let word = |setting: Option<&Setting>| setting.and_then(|setting| Some(setting.entries.first()?.same.clone()));
    let number = |setting| word(setting).and_then(|same| same.parse::<u128>().ok());
    match (rule, old, new) {
        (EffectRule::Always(effect), ..) => effect,
        (EffectRule::More | EffectRule::Entries(..), Some(_), None) | (EffectRule::Opens, None, Some(_)) => Allows,
        (EffectRule::More | EffectRule::Entries(..), None, _) => TakesAway,
        (EffectRule::More, ..) if number(new) > number(old) => Allows,
        (EffectRule::More, ..) => TakesAway,
        (EffectRule::When(known, then, _), ..) if word(new).as_deref() == Some(known) => then,
        (EffectRule::When(_, _, otherwise), ..) => otherwise,
        (EffectRule::Opens | EffectRule::Entries(..) | EffectRule::Secret { .. } | EffectRule::Name, ..) => Refuses,
    }
}

/// Describes the entries of a list that were removed and added.
fn entries(
    (added, gone): (Effect, Effect),
    before: &[SettingEntry],
    after: &[SettingEntry],
    because: &str,
) -> Vec<(Effect, String)> {
    // A removed network that a remaining larger one contains is not gone.
    let covered = |entry: &&SettingEntry| {
        let net = network(&entry.shown);
        net.is_some_and(|net| after.iter().filter_map(|new| network(&new.shown)).any(|new| new.contains(&net)))
    };
    let (mut less, more) = (missing(before, after), missing(after, before));
    less.retain(|entry| !covered(entry));
    let none_left = if after.is_empty() { ", and none is left" } else { "" };
    let less = (!less.is_empty()).then(|| (gone, format!("{} removed{none_left}{because}", shown(less))));
    let more = (!more.is_empty()).then(|| (added, format!("{} added{because}", shown(more))));
    less.into_iter().chain(more).collect()
}

/// Describes a change of secrets: how many there are, where they are kept and which one signs. Never shows a secret or
/// a part of one.
fn secrets(
    first: (Effect, &'static str),
    last: (Effect, &'static str),
    old: Option<&Setting>,
    new: Option<&Setting>,
) -> (Effect, String) {
    let entries = |setting: Option<&'_ Setting>| setting.map_or_else(Vec::new, |setting| setting.entries.clone());
    let (before, after) = (entries(old), entries(new));
    let gone = missing(&before, &after).len();
    let (effect, meaning) = if before.is_empty() {
        first
    } else if after.is_empty() {
        last
    } else if gone == before.len() {
        (Refuses, "the old secret no longer verifies")
    } else if before.first().map(|entry| &entry.same) != after.first().map(|entry| &entry.same) {
        (Refuses, "another secret signs")
    } else if gone > 0 {
        (TakesAway, "an old secret no longer verifies")
    } else if !missing(&after, &before).is_empty() {
        (Allows, "one more verifies (a rotation)")
    } else {
        (Neither, "the same secrets in another order")
    };
    let colon = if meaning.is_empty() { "" } else { ": " };
    (effect, format!("{}{colon}{meaning}", arrow(&or_none(shown(&before)), &or_none(shown(&after)))))
}

/// "a, b and c", or "a, b and 31 more".
pub(super) fn listed(names: impl IntoIterator<Item = String>) -> String {
    let mut names = names.into_iter();
    let mut shown: Vec<String> = names.by_ref().take(MOST_NAMED).collect();
    match names.count() {
        0 => {}
        more => shown.push(format!("{more} more")),
    }
    match shown.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} and {last}", first.join(", ")),
    }
}

/// Names the absence of names.
pub(super) fn or_none(shown: String) -> String {
    if shown.is_empty() { "none".to_owned() } else { shown }
}

/// Returns "old -> new", or "new changed" when both are shown alike.
fn arrow(old: &str, new: &str) -> String {
    if old == new { format!("{new} changed") } else { format!("{old} -> {new}") }
}

/// Returns the items of both iterators, sorted and without duplicates.
pub(super) fn union<'a, T: Ord + 'a>(
    old: impl Iterator<Item = &'a T>,
    new: impl Iterator<Item = &'a T>,
) -> impl Iterator<Item = &'a T> {
    old.chain(new).collect::<BTreeSet<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::raw::{FromToml, RawSecrets};
    use crate::rules::setting::OnChange;

    #[test]
    fn lists_are_bounded() {
        let list = |count: usize| listed((0..count).map(|name| name.to_string()));
        assert_eq!([list(0), list(1), list(3)], ["", "0", "0, 1 and 2"]);
        assert_eq!(list(10), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
    }

    #[test]
    fn secrets_are_reported_and_never_shown() {
        use std::fmt::Write as _;
        let list = |texts: &[&str]| {
            let entries = texts.iter().map(|text| RawSecrets::entry(text)).collect();
            (!texts.is_empty()).then_some(Setting { entries, on_change: OnChange::secret() })
        };
        let mut report = String::new();
        for (old, new) in [
            (&["hush-a"][..], &["hush-b"][..]),
            (&["env:A"], &["env:B"]),
            (&["env:A"], &["env:A", "hush-b"]),
            (&["env:A"], &["env:B", "env:A"]),
            (&["env:A", "env:B"], &["env:B", "env:A"]),
            (&["env:A", "env:B"], &["env:B"]),
            (&["env:A", "env:B"], &["env:A"]),
            (&["env:A"], &["env:A", "env:B", "env:C"]),
            (&["env:A", "env:B"], &["env:A", "env:C"]),
            (&["env:A", "env:B", "env:C"], &["env:A", "env:C", "env:B"]),
            (&[], &["hush-a"]),
            (&["hush-a"], &[]),
        ] {
            for (effect, what) in sentences(list(old).as_ref(), list(new).as_ref()) {
                let _ = writeln!(report, "{effect:?}: {what}");
            }
        }
        assert!(!report.contains("hush"), "{report}");
        insta::assert_snapshot!(report);
    }
}
