//! What changes for those who speak a dialect.

use std::collections::BTreeSet;

use super::keys::DIALECT;
use super::page::{Page, Place};
use super::read::ReadRules;
use super::words;
use super::{Effect, Group, Who};

/// One group for each dialect that is in either directory.
pub(super) fn groups(old: &ReadRules, new: &ReadRules) -> Vec<Group> {
    let names: BTreeSet<&String> = old.dialects.keys().chain(new.dialects.keys()).collect();
    names.into_iter().map(|name| group(name, old, new)).collect()
}

fn group(name: &str, old: &ReadRules, new: &ReadRules) -> Group {
    let mut page = Page::of(format!("dialects/{name}.toml"));
    match (old.dialects.get(name), new.dialects.get(name)) {
        (Some(before), Some(after)) => {
            page.settings(DIALECT, Place::FILE, (before, after), |_, _| false);
            paths(&mut page, name, old, new);
        }
        (None, Some(after)) => {
            let payin = after.word("routes.payin").unwrap_or_default();
            page.tell(Effect::Allows, "", format!("the dialect is new; its deposits are {}", words::plain(payin)));
        }
        (Some(_), None) => page.tell(Effect::TakesAway, "", "the dialect is removed: its paths are no longer served"),
        (None, None) => {}
    }
    let merchants: BTreeSet<&str> = old.speakers(name).chain(new.speakers(name)).collect();
    let merchants = merchants.into_iter().map(str::to_owned).collect();
    Group { who: Who::Dialect { name: name.into(), merchants }, changes: page.changes }
}

/// The built-in dialect has its paths only while it is written down, used or alone.
fn paths(page: &mut Page, name: &str, old: &ReadRules, new: &ReadRules) {
    let serves = |read: &ReadRules| {
        let mut endpoints = read.rules.v1_routes.values().flatten().flat_map(|route| &route.endpoints);
        endpoints.any(|(dialect, _)| **dialect == *name)
    };
    match (serves(old), serves(new)) {
        (true, false) => page.tell(Effect::TakesAway, "routes", "its paths are no longer served: nobody uses it"),
        (false, true) => page.tell(Effect::Allows, "routes", "its paths are served now"),
        _ => {}
    }
}
