//! The changes of one group, and how a changed key is told.

use ipnet::IpNet;

use super::keys::{Key, Told};
use super::networks::Networks;
use super::settings::{Settings, Value};
use super::words::{self, arrow, is};
use super::{Change, Effect, secrets};

/// Collects what changes for one of those concerned.
pub(super) struct Page {
    /// What was found so far.
    pub changes: Vec<Change>,
    /// The file that is at issue, below the rules directory.
    file: String,
    /// Whether a key waits for a restart.
    waits: fn(&str) -> bool,
}

/// A changed key.
pub(super) struct Changed<'a> {
    /// Its dotted name.
    pub path: &'a str,
    /// What it was.
    pub old: Option<&'a Value>,
    /// What it is.
    pub new: Option<&'a Value>,
}

/// What a key belongs to.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// Said before it: `key acme-live: `.
    pub said: &'a str,
    /// The dotted name above it: `api_keys.acme-live.`.
    pub above: &'a str,
}

impl Place<'_> {
    /// A file as a whole.
    pub const FILE: Place<'static> = Place { said: "", above: "" };
}

impl Page {
    /// A page of a file.
    pub fn of(file: String) -> Self {
        Self { changes: Vec::new(), file, waits: |_| false }
    }

    /// The same, where keys may wait for a restart.
    pub fn waiting(file: String, waits: fn(&str) -> bool) -> Self {
        Self { changes: Vec::new(), file, waits }
    }

    /// Turns to another file of the same group.
    pub fn turn(&mut self, file: String) {
        self.file = file;
    }

    /// Tells one change.
    pub fn tell(&mut self, effect: Effect, key: impl Into<String>, what: impl Into<String>) {
        let key = key.into();
        let at_next_start = (self.waits)(&key);
        self.changes.push(Change { effect, file: self.file.clone(), key, what: what.into(), at_next_start });
    }

    /// Tells every key that differs: by `special`, when it knows it, else as the table of keys says.
    pub fn settings(
        &mut self,
        keys: &[Key],
        place: Place<'_>,
        (old, new): (&Settings, &Settings),
        mut special: impl FnMut(&mut Self, &Changed<'_>) -> bool,
    ) {
        for (path, old, new) in old.changed(new) {
            let changed = Changed { path, old, new };
            if !special(self, &changed) {
                let told = keys.iter().find(|key| key.path == path).map_or(UNKNOWN, |key| key.told);
                self.key(place, &changed, told);
            }
        }
    }

    fn key(&mut self, place: Place<'_>, changed: &Changed<'_>, told: Told) {
        let key = format!("{}{}", place.above, changed.path);
        match (told, changed.old, changed.new) {
            (Told::Secrets(called), old, new) => {
                for (effect, what) in secrets::told(called, list_of(old), list_of(new)) {
                    self.tell(effect, key.clone(), format!("{}{what}", place.said));
                }
            }
            (Told::Addresses { new: opened, gone: closed }, old, new) => {
                let (old, new) = (networks_of(old), networks_of(new));
                let (gone, come) = (Networks::difference(old, new), Networks::difference(new, old));
                let everyone = come.everyone();
                for (networks, (effect, what), everyone) in [(gone, closed, ""), (come, opened, &everyone)] {
                    let (named, several) = networks.named();
                    if !networks.is_empty() {
                        let what = format!("{}{named} {} {what}{everyone}", place.said, is(several));
                        self.tell(effect, key.clone(), what);
                    }
                }
            }
            (told, old, new) => {
                let (effect, meaning) = verdict(told, old, new);
                let shown = |value: Option<&Value>| value.map_or_else(|| "none".to_owned(), Value::shown);
                let colon = if meaning.is_empty() { "" } else { ": " };
                let name = if place.said.is_empty() { sectioned(changed.path) } else { changed.path.to_owned() };
                let what = format!("{}{name}: {}{colon}{meaning}", place.said, arrow(&shown(old), &shown(new)));
                self.tell(effect, key, what);
            }
        }
    }
}

const UNKNOWN: Told = Told::As(Effect::Refuses, "");

/// The effect of a change, and what it means in words.
fn verdict(told: Told, old: Option<&Value>, new: Option<&Value>) -> (Effect, &'static str) {
    match told {
        Told::As(effect, meaning) => (effect, meaning),
        Told::Now(words) => {
            let now = new.and_then(Value::word).unwrap_or_default();
            let found = words.iter().find(|(word, ..)| *word == now).or(words.last());
            found.map_or((Effect::Refuses, ""), |(_, effect, meaning)| (*effect, meaning))
        }
        Told::More => compared(old, new),
        Told::Addresses { .. } | Told::Secrets(_) => (Effect::Refuses, ""),
    }
}

/// Where more allows more, and no bound allows most.
fn compared(old: Option<&Value>, new: Option<&Value>) -> (Effect, &'static str) {
    let looser = (Effect::Allows, "");
    let tighter = (Effect::TakesAway, "");
    match (old, new) {
        (Some(_), None) => (Effect::Allows, "there is no limit now"),
        (None, Some(_)) => (Effect::TakesAway, "there was no limit"),
        (Some(Value::Plain { measure: old, .. }), Some(Value::Plain { measure: new, .. })) => {
            if new > old {
                looser
            } else {
                tighter
            }
        }
        (Some(Value::Rate(old, old_burst)), Some(Value::Rate(new, burst))) => {
            if new >= old && burst >= old_burst {
                (Effect::Allows, "looser")
            } else if new <= old && burst <= old_burst {
                (Effect::TakesAway, "tighter")
            } else {
                (Effect::TakesAway, "tighter in one way, looser in the other")
            }
        }
        _ => (Effect::Refuses, ""),
    }
}

fn list_of(value: Option<&Value>) -> &[crate::rules::raw::RawSecret] {
    match value {
        Some(Value::Secrets(list)) => list,
        _ => &[],
    }
}

fn networks_of(value: Option<&Value>) -> &[IpNet] {
    match value {
        Some(Value::Addresses(list)) => list,
        _ => &[],
    }
}

/// `limits.body` as people look for it: `[limits] body`.
pub(super) fn sectioned(path: &str) -> String {
    match path.rsplit_once('.') {
        Some((section, key)) => format!("[{}] {}", words::plain(section), words::plain(key)),
        None => words::plain(path),
    }
}
