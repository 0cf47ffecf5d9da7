//! What changes on lists of allowed values.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::page::Page;
use super::read::ReadRules;
use super::words::{is, listed};
use super::{Effect, Group, Who};
use crate::domain::Direction;
use crate::rules::schema::ALLOWED_LIST;

type Values = BTreeSet<String>;

/// The common lists that several sides of shops use; one that a single side uses is told there, and what nobody uses
/// changes nothing.
pub(super) fn groups(old: &ReadRules, new: &ReadRules) -> Vec<Group> {
    let names = common_names(old, new);
    let mut groups = Vec::new();
    for name in names {
        let (before, after) = (common(old, name), common(new, name));
        let shops: Vec<(String, &'static str)> = users(old, new, name);
        if before == after || shops.len() < 2 {
            continue;
        }
        let mut page = Page::of(format!("lists/{name}.txt"));
        values(&mut page, "", name, (before, after));
        let shops: BTreeSet<String> = shops.into_iter().map(|(code, _)| code).collect();
        let who = Who::List { name: name.into(), shops: shops.into_iter().collect() };
        groups.push(Group { who, changes: page.changes });
    }
    groups
}

/// The changes of lists that one side of one shop alone uses.
pub(super) fn of_side(
    page: &mut Page,
    code: &str,
    direction: Direction,
    said: &str,
    (old, new): (&ReadRules, &ReadRules),
) {
    for name in common_names(old, new) {
        let (before, after) = (common(old, name), common(new, name));
        if before != after
            && let [(only, side)] = users(old, new, name).as_slice()
            && only == code
            && *side == direction.as_str()
        {
            page.turn(format!("lists/{name}.txt"));
            values(page, &format!("{said}: list `{name}`: "), name, (before, after));
        }
    }
}

/// A merchant's own lists, which stand in the place of common ones.
pub(super) fn own(page: &mut Page, merchant: &str, old: &ReadRules, new: &ReadRules) {
    let theirs = |read: &ReadRules, name: &str| read.lists.get(&(Some(merchant.to_owned()), name.to_owned())).cloned();
    let of = |read: &ReadRules| {
        let names = read.lists.keys().filter(|(owner, _)| owner.as_deref() == Some(merchant));
        names.map(|(_, name)| name.clone()).collect::<BTreeSet<String>>()
    };
    for name in of(old).union(&of(new)) {
        let (before, after) = (theirs(old, name), theirs(new, name));
        if before == after || users(old, new, name).is_empty() {
            continue;
        }
        page.turn(format!("lists/{merchant}/{name}.txt"));
        match (&before, &after) {
            (None, _) => page.tell(Effect::Neither, name, format!("list `{name}` is its own now, not the common one")),
            (_, None) => page.tell(Effect::Neither, name, format!("list `{name}` is the common one now, not its own")),
            _ => {}
        }
        let before = before.as_ref().or(common(old, name));
        let after = after.as_ref().or(common(new, name));
        values(page, &format!("its list `{name}`: "), name, (before, after));
    }
}

fn common<'a>(read: &'a ReadRules, name: &str) -> Option<&'a Values> {
    read.lists.get(&(None, name.to_owned()))
}

fn common_names<'a>(old: &'a ReadRules, new: &'a ReadRules) -> BTreeSet<&'a str> {
    let both = old.lists.keys().chain(new.lists.keys());
    both.filter(|(owner, _)| owner.is_none()).map(|(_, name)| name.as_str()).collect()
}

fn values(page: &mut Page, said: &str, key: &str, (old, new): (Option<&Values>, Option<&Values>)) {
    let none = Values::new();
    let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
    let list = |one: &Values, other: &Values| {
        let (named, count) = listed(one.difference(other).map(String::as_str), "value", true);
        (named, count)
    };
    let (gone, count) = list(old, new);
    if count > 0 {
        page.tell(Effect::Refuses, key, format!("{said}{gone} {} no longer allowed", is(count > 1)));
    }
    let (added, count) = list(new, old);
    if count > 0 {
        page.tell(Effect::Allows, key, format!("{said}{added} {} allowed now", is(count > 1)));
    }
}

/// The sides of shops whose schemas name a list, in either directory.
fn users(old: &ReadRules, new: &ReadRules, list: &str) -> Vec<(String, &'static str)> {
    let sides = |read: &ReadRules| read.list_users.get(list).cloned().unwrap_or_default();
    let users: BTreeSet<_> = sides(old).into_iter().chain(sides(new)).collect();
    users.into_iter().collect()
}

/// The lists that a schema names.
pub(super) fn named(schema: &Json, lists: &mut BTreeSet<String>) {
    match schema {
        Json::Object(members) => {
            for (key, value) in members {
                match value {
                    Json::String(name) if key == ALLOWED_LIST => {
                        lists.insert(name.clone());
                    }
                    value => named(value, lists),
                }
            }
        }
        Json::Array(elements) => elements.iter().for_each(|element| named(element, lists)),
        _ => {}
    }
}
