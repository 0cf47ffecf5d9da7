//! What is said of secrets: how many, which of them sign, where they are. Never one, nor a part of one.

use super::Effect;
use super::settings::{place_of, same_secret};
use super::words;
use crate::rules::raw::RawSecret;

/// What changes between two lists of secrets that are called `called`, compared as written.
pub(super) fn told(called: &str, old: &[RawSecret], new: &[RawSecret]) -> Vec<(Effect, String)> {
    let missing = |list: &[RawSecret], others: &[RawSecret]| {
        let others = |secret: &&RawSecret| !others.iter().any(|other| same_secret(secret, other));
        list.iter().filter(others).cloned().collect::<Vec<_>>()
    };
    let (gone, added) = (missing(old, new), missing(new, old));
    let first_stays = matches!((old.first(), new.first()), (Some(old), Some(new)) if same_secret(old, new));
    match (old, new) {
        (_, []) => return vec![(Effect::TakesAway, format!("the {called} is gone ({})", places(old)))],
        ([], _) => return vec![(Effect::Allows, format!("there is a {called} now ({})", places(new)))],
        _ if gone.len() == old.len() => {
            let (from, to) = (places(old), places(new));
            let places = if from == to { String::new() } else { format!(" ({from} -> {to})") };
            let what = format!("the {called} is another one{places}: the old one no longer counts");
            return vec![(Effect::Refuses, what)];
        }
        _ => {}
    }
    let mut told = Vec::new();
    if !gone.is_empty() {
        let what = format!("{} ({})", counted(gone.len(), called, false), places(&gone));
        told.push((Effect::TakesAway, what));
    }
    if !first_stays {
        let kept =
            if added.iter().any(|secret| same_secret(secret, &new[0])) { "a new one" } else { "it counted already" };
        let what = format!("another {called} stands first and signs now ({}), {kept}", places(&new[..1]));
        told.push((Effect::Refuses, what));
    }
    if !added.is_empty() && (first_stays || added.len() > 1 || !same_secret(&added[0], &new[0])) {
        let what = format!("{} ({}): a rotation", counted(added.len(), called, true), places(&added));
        told.push((Effect::Allows, what));
    }
    if told.is_empty() {
        told.push((Effect::Neither, format!("the {called}s that verify stand in another order, or one stands twice")));
    }
    told
}

fn counted(count: usize, called: &str, new: bool) -> String {
    match (count, new) {
        (1, true) => format!("a second {called} verifies now"),
        (1, false) => format!("an old {called} no longer verifies"),
        (count, true) => format!("{count} more {called}s verify now"),
        (count, false) => format!("{count} old {called}s no longer verify"),
    }
}

fn places(list: &[RawSecret]) -> String {
    let places: Vec<String> = list.iter().map(place_of).collect();
    words::listed(places.iter().map(String::as_str), "secret", false).0
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn list(texts: &[&str]) -> Vec<RawSecret> {
        let secret = |text: &&str| match text.strip_prefix("env:") {
            Some(name) => RawSecret::Environment(name.into()),
            None => RawSecret::Literal((*text).into()),
        };
        texts.iter().map(secret).collect()
    }

    #[test]
    fn secrets_are_told_and_never_shown() {
        let cases = [
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
        ];
        let mut said = String::new();
        for (old, new) in cases {
            for (effect, what) in told("v2 secret", &list(old), &list(new)) {
                let _ = writeln!(said, "{effect:?}: {what}");
            }
        }
        assert!(!said.contains("hush"), "{said}");
        insta::assert_snapshot!(said);
    }
}
