//! What changes for whom between two rule directories, in words, without a secret.
//!
//! The files are compared as they are written, key by key, with defaults filled in, and not as they were compiled: what a
//! secret refers to is not looked up, and paths are relative to directories that differ. Keys that the tables in [`keys`]
//! do not know are told as the text that they hold, so that nothing is passed over in silence.

mod dialect;
mod keys;
mod lists;
mod merchant;
mod networks;
mod page;
mod pages;
mod read;
mod schema;
mod schema_plain;
mod secrets;
mod settings;
mod shop;
mod words;

use self::page::{Changed, Page, Place};
pub use self::read::ReadRules;
use self::settings::Value;
use super::restart;

/// What a change does to those that it concerns. The most dangerous first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It refuses, or changes, what worked before.
    Refuses,
    /// It takes away.
    TakesAway,
    /// It allows more.
    Allows,
    /// None of these.
    Neither,
}

/// Whom changes concern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// One merchant.
    Merchant {
        /// Its id.
        id: String,
        /// For people.
        name: String,
    },
    /// Those who may use a shop.
    Shop {
        /// Its code.
        code: String,
        /// The merchants that may use it, before or after, sorted.
        merchants: Vec<String>,
    },
    /// Those whose shops use a list.
    List {
        /// Its name.
        name: String,
        /// The shops whose schemas name it, sorted.
        shops: Vec<String>,
    },
    /// Those who speak a dialect.
    Dialect {
        /// Its name.
        name: String,
        /// The merchants that speak it, before or after, sorted.
        merchants: Vec<String>,
    },
    /// Customers who see pages.
    Pages,
    /// Everybody.
    Gateway,
}

/// One change, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What it does.
    pub effect: Effect,
    /// The file that says it, below the rules directory.
    pub file: String,
    /// The key in it, with the tables above; of schemas and lists, the key that names them.
    pub key: String,
    /// The change in a sentence.
    pub what: String,
    /// Whether it waits for the next start of the process.
    pub at_next_start: bool,
}

/// What changes for one of those concerned; never empty, the most dangerous first.
#[derive(Debug, Clone)]
pub struct Group {
    /// Whom it concerns.
    pub who: Who,
    /// What changes.
    pub changes: Vec<Change>,
}

/// What changes from one directory to another: nothing, when both mean the same. Groups with the most dangerous changes
/// come first.
#[must_use]
pub fn diff(old: &ReadRules, new: &ReadRules) -> Vec<Group> {
    let mut groups = merchant::groups(old, new);
    groups.extend(shop::groups(old, new));
    groups.extend(lists::groups(old, new));
    groups.extend(dialect::groups(old, new));
    groups.push(pages::group(old, new));
    groups.push(gateway(old, new));
    groups.retain(|group| !group.changes.is_empty());
    for group in &mut groups {
        group.changes.sort_by_key(|change| change.effect);
    }
    groups.sort_by(|one, other| {
        let worst = |group: &Group| group.changes.first().map(|change| change.effect);
        (worst(one), &one.who).cmp(&(worst(other), &other.who))
    });
    groups
}

fn gateway(old: &ReadRules, new: &ReadRules) -> Group {
    let mut page = Page::waiting("gateway.toml".into(), restart::waits);
    page.settings(keys::GATEWAY, Place::FILE, (&old.gateway, &new.gateway), gateway_key);
    for (key, same) in [
        ("engine.trust", old.engine_trust() == new.engine_trust()),
        ("callbacks.trust", old.callback_trust() == new.callback_trust()),
        ("tls.client_ca", old.client_ca() == new.client_ca()),
    ] {
        let told = page.changes.iter().any(|change| change.key == key);
        if !same && !told {
            page.tell(Effect::Refuses, key, format!("{}: the certificates in it are others", page::sectioned(key)));
        }
    }
    Group { who: Who::Gateway, changes: page.changes }
}

/// What a secret that is there now, or no longer, comes to.
fn gateway_key(page: &mut Page, changed: &Changed<'_>) -> bool {
    if let ("store.url", Some(Value::Database(old)), Some(Value::Database(new))) =
        (changed.path, changed.old, changed.new)
        && old.to_string() == new.to_string()
    {
        let database = words::plain(&new.to_string());
        let what = format!("[store] url: {database} as before; its user, password or parameters are others");
        page.tell(Effect::Neither, changed.path, what);
        return true;
    }
    let (effect, what) = match (changed.path, changed.old.is_some(), changed.new.is_some()) {
        ("admin.token", false, _) => (Effect::Refuses, "[admin] token: the admin listener asks for a token now"),
        ("admin.token", _, false) => (Effect::Allows, "[admin] token: the admin listener asks for no token any more"),
        ("pages.secret", false, _) => {
            let what = "[pages] secret: it signs links now, in place of pages.key beside the store's key: links that were \
                        made so far no longer verify";
            (Effect::Refuses, what)
        }
        ("pages.secret", _, false) => {
            let what = "[pages] secret is gone: pages.key beside the store's key signs links: links that were made so \
                        far no longer verify";
            (Effect::Refuses, what)
        }
        _ => return false,
    };
    page.tell(effect, changed.path, what);
    true
}
