//! The settings of a file, with the defaults of its own JSON Schema filled in, and what a change of one comes to. That is said
//! by [`told`]; of a key that it does not know it is said to refuse.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use ipnet::IpNet;
use serde_json::Value as Json;

use super::Effect::{self, Allows, Neither, Refuses, TakesAway};
use crate::domain::Amount;
use crate::rules::compile::folded;
use crate::rules::merchant::canonical_prefix;
use crate::rules::{PostgresUrl, files, read_span};

/// How many names of a list are said, and how much of a value, in characters.
const MOST_NAMED: usize = 8;
const LONGEST: usize = 120;

/// What a change of a setting comes to.
#[derive(Clone, Copy)]
enum Told {
    /// This.
    As(Effect),
    /// The same, of a span of time, a size, a count or an amount.
    Measured(Effect),
    /// More allows more; without one, there is no bound.
    More,
    /// A value where there was none allows more; otherwise as one that refuses.
    Opens,
    /// This when it is the word now, and that otherwise.
    When(&'static str, Effect, Effect),
    /// Of a list: what a new entry does, and one that is gone.
    Entries(Effect, Effect),
}

/// Says what a change of the setting at `path` comes to, and what it means where the values do not say it.
fn told(path: &str) -> (Told, &'static str) {
    use Told::{As, Entries, Measured, More, Opens, When};
    match path {
        "name" => (As(Neither), "what customers read on payment pages"),
        "tls.generate" | "payin.browser_return" => (As(Neither), ""),
        "v1.deprecated_since" | "v1.sunset" | "v1.migration_url" => (As(Neither), "a header of v1 replies"),
        "pages.language" | "pages.name" | "pages.color" | "pages.logo" => (As(Neither), "customers' pages show it"),
        "server.shutdown_grace" | "server.drain_delay" | "callbacks.timeout" | "provider.delay" => {
            (Measured(Neither), "")
        }
        _ if path.ends_with(".first_retry") || path.ends_with(".max_retry") => (Measured(Neither), ""),
        _ if path.starts_with("balance.opening.") => {
            (Measured(Neither), "booked only for a merchant that was not seen yet")
        }
        "store.connections" | "pages.link_lifetime" | "pages.return_lifetime" | "signature.window" => (More, ""),
        _ if path.starts_with("limits.") || path.starts_with("rate_limit.") || path.ends_with("_per_day") => (More, ""),
        _ if path.ends_with(".timeout") || path.ends_with(".give_up_after") || path.ends_with(".forget_after") => {
            (More, "")
        }
        "active" => (When("true", Allows, TakesAway), "whether new operations are taken"),
        "payin" => (When("true", Allows, TakesAway), "whether deposits are enabled"),
        "payout" => (When("true", Allows, TakesAway), "whether withdrawals are enabled"),
        "balance.enforce" => (When("false", Allows, Refuses), "whether the available balance bounds withdrawals"),
        "callbacks.allow_private_addresses" => {
            (When("true", Allows, Refuses), "whether loopback and private targets are called")
        }
        "v1.allow_http_callbacks" | "requests.empty_list_is_object" => (When("true", Allows, Refuses), ""),
        "v1.unknown_fields" => (When("ignore", Allows, Refuses), ""),
        "v1.non_numeric_user_id" => (When("omit", Allows, Refuses), ""),
        "payout.account" => (When("any", Allows, Refuses), ""),
        "default_shop" => (Opens, "where requests go that name no shop"),
        "v1.return_url" => (Opens, "for deposits that name no return address"),
        "allowed_ips" | "shops" => (Entries(Allows, TakesAway), ""),
        "checks.refused_accounts" | "checks.refused_addresses" => {
            (Entries(Refuses, Allows), "operations of these are created FAILED")
        }
        "admin.hosts" => (Entries(Allows, Refuses), "by which names the admin listener may be asked"),
        "clients.trusted_proxies" => (Entries(Refuses, Refuses), "whose X-Forwarded-For is believed"),
        "server.listen" => (As(Refuses), "callers reach it there alone"),
        "server.public_url" => (As(Refuses), "new links begin with it"),
        "tls.client_ca" => (As(Refuses), "callers without a certificate that it signed are refused"),
        "store.url" => (As(Refuses), "what is in the old store is not seen"),
        "engine.url" => (As(Refuses), "a store belongs to one kind of engine"),
        "clients.proxy_protocol" => (As(Refuses), "connections of the other kind are refused"),
        "currency" => (As(Refuses), "operations in the old currency are 400"),
        "payment_method" => (As(Refuses), "`method` of a status whose request named no shop"),
        "provider.kind" => (As(Refuses), "operations that wait for the other kind go on waiting"),
        "provider.url" => (As(Refuses), "waiting operations are asked for there, too"),
        "v1.dialect" => (As(Refuses), "its v1 requests are read by the other one"),
        "v1.callback_url" => (As(Refuses), "for requests that name no address"),
        _ if path.starts_with("signature.") => (As(Refuses), "requests as they were signed so far are refused"),
        _ if path.starts_with("routes.") => (As(Refuses), "requests to the old path are 404"),
        _ if path.starts_with("statuses.") => {
            (As(Refuses), "replies, callbacks and the `status` filter use the new word")
        }
        _ if path.starts_with("replies.") => (As(Refuses), "that reply has another shape"),
        _ => (As(Refuses), ""),
    }
}

/// Whether a setting holds secrets.
fn is_secret(path: &str) -> bool {
    let name = path.rsplit('.').next().unwrap_or(path);
    name == "keys" || ["secret", "token", "password"].iter().any(|word| name.contains(word))
}

/// One value: what tells it from others, and what is said of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    same: String,
    shown: String,
}

/// What a setting holds: one value, or those of a list.
pub(super) type Setting = Vec<Entry>;

/// The settings of a file or of a table in it, by their dotted names.
pub(super) type Settings = BTreeMap<String, Setting>;

pub(super) fn means_the_same(path: &str, old: Option<&Setting>, new: Option<&Setting>) -> bool {
    let (Some(old), Some(new)) = (old, new) else { return old.is_none() && new.is_none() };
    // The first secret signs: their order counts.
    let same = old.iter().map(|entry| &entry.same).eq(new.iter().map(|entry| &entry.same));
    same || (!is_secret(path) && missing(old, new).is_empty() && missing(new, old).is_empty())
}

/// The entries of one list that are not in another one.
fn missing<'a>(of: &'a [Entry], from: &[Entry]) -> BTreeSet<&'a Entry> {
    of.iter().filter(|entry| !from.iter().any(|had| had.same == entry.same)).collect()
}

pub(super) fn shown<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> String {
    listed(entries.into_iter().map(|entry| entry.shown.clone()))
}

pub(super) fn sentences(path: &str, old: Option<&Setting>, new: Option<&Setting>) -> Vec<(Effect, String)> {
    if is_secret(path) {
        return vec![secrets(path, old, new)];
    }
    let (rule, meaning) = told(path);
    let meaning = if meaning.is_empty() { String::new() } else { format!(": {meaning}") };
    if let (Told::Entries(added, gone), Some(before), Some(after)) = (rule, old, new) {
        // A network that a larger one stands for now is not gone.
        let covered = |entry: &&Entry| {
            let net = network(&entry.shown);
            net.is_some_and(|net| after.iter().filter_map(|new| network(&new.shown)).any(|new| new.contains(&net)))
        };
        let (mut less, more) = (missing(before, after), missing(after, before));
        less.retain(|entry| !covered(entry));
        let none_left = if after.is_empty() { ", and none is left" } else { "" };
        let less = (!less.is_empty()).then(|| (gone, format!("{} removed{none_left}{meaning}", shown(less))));
        let more = (!more.is_empty()).then(|| (added, format!("{} added{meaning}", shown(more))));
        return less.into_iter().chain(more).collect();
    }
    let absent = if path == "shops" { "all" } else { "none" };
    let said = |setting: Option<&Setting>| setting.map_or_else(|| absent.to_owned(), |setting| or_none(shown(setting)));
    if path == "store.url" && said(old) == said(new) {
        return vec![(Neither, format!("{} as before; its user, password or parameters are others", said(new)))];
    }
    let word = |setting: Option<&Setting>| setting.and_then(|setting| Some(setting.first()?.same.clone()));
    let effect = match (rule, old, new) {
        (Told::As(effect) | Told::Measured(effect), ..) => effect,
        (Told::More | Told::Entries(..), Some(_), None) | (Told::Opens, None, Some(_)) => Allows,
        (Told::More | Told::Entries(..), None, _) => TakesAway,
        (Told::More, ..) => {
            let number = |setting| word(setting).and_then(|same| same.parse::<u128>().ok());
            if number(new) > number(old) { Allows } else { TakesAway }
        }
        (Told::When(known, then, otherwise), ..) => {
            if word(new).as_deref() == Some(known) {
                then
            } else {
                otherwise
            }
        }
        (Told::Opens | Told::Entries(..), ..) => Refuses,
    };
    vec![(effect, format!("{}{meaning}", arrow(&said(old), &said(new))))]
}

/// Says of secrets how many there are, where, and which of them sign. Never one, nor a part of one.
fn secrets(path: &str, old: Option<&Setting>, new: Option<&Setting>) -> (Effect, String) {
    let (before, after) = (old.map_or(&[][..], Vec::as_slice), new.map_or(&[][..], Vec::as_slice));
    let gone = missing(before, after).len();
    let (effect, meaning) = match (path, before.is_empty(), after.is_empty()) {
        ("admin.token", true, _) => (Refuses, "the admin listener asks for a token now"),
        ("admin.token", _, true) => (Allows, "the admin listener asks for no token any more"),
        ("pages.secret", true, _) => (Refuses, "links that pages.key beside the store's key signed no longer verify"),
        ("pages.secret", _, true) => {
            (Refuses, "pages.key beside the store's key signs: earlier links no longer verify")
        }
        ("v1_secret", true, _) => (Allows, "the key can call v1 now"),
        ("v1_secret", _, true) => (TakesAway, "the key can no longer call v1: 401"),
        (_, true, _) => (Allows, ""),
        (_, _, true) => (TakesAway, ""),
        _ if gone == before.len() => (Refuses, "the old one no longer counts"),
        _ if before[0].same != after[0].same => (Refuses, "another one signs"),
        _ if gone > 0 => (TakesAway, "an old one no longer verifies"),
        _ if !missing(after, before).is_empty() => (Allows, "one more verifies (a rotation)"),
        _ => (Neither, "the same ones in another order"),
    };
    let colon = if meaning.is_empty() { "" } else { ": " };
    (effect, format!("{}{colon}{meaning}", arrow(&or_none(shown(before)), &or_none(shown(after)))))
}

pub(super) fn word<'a>(settings: &'a Settings, path: &str) -> Option<&'a str> {
    settings.get(path)?.first().map(|entry| entry.same.as_str())
}

/// Reads the settings of a table, and fills in the defaults of its JSON Schema.
pub(super) fn settings(table: &toml::Table, schema: &Json, folder: &Path) -> Settings {
    let mut settings = Settings::new();
    for (name, value) in table {
        put(&mut settings, name.clone(), value, folder);
    }
    defaults(&mut settings, "", schema, folder);
    let rates: Vec<String> = settings.keys().filter_map(|path| Some(path.strip_suffix("per_second")?.into())).collect();
    for rate in rates {
        let per_second = settings[&format!("{rate}per_second")].clone();
        settings.entry(format!("{rate}burst")).or_insert(per_second);
    }
    settings
}

fn put(settings: &mut Settings, path: String, value: &toml::Value, folder: &Path) {
    let spelled = |value: &toml::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value {
        toml::Value::Table(inner) => {
            for (name, value) in inner {
                put(settings, format!("{path}.{name}"), value, folder);
            }
        }
        toml::Value::Array(elements) => {
            let texts: Vec<String> = elements.iter().map(spelled).collect();
            let networks: Option<Vec<IpNet>> = texts.iter().map(|text| network(text)).collect();
            // The fewest that hold the same addresses, so that another spelling is no change.
            let texts = match networks.filter(|_| ADDRESSES.contains(&path.as_str())) {
                Some(list) => IpNet::aggregate(&list).iter().map(network_text).collect(),
                None => texts,
            };
            let entries = texts.iter().map(|text| entry(&path, text, folder)).collect();
            settings.insert(path, entries);
        }
        one => {
            let entries = vec![entry(&path, &spelled(one), folder)];
            settings.insert(path, entries);
        }
    }
}

/// Fills in what a file leaves out.
fn defaults(settings: &mut Settings, prefix: &str, schema: &Json, folder: &Path) {
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{prefix}{name}");
        let below = format!("{path}.");
        let is_said = settings.keys().any(|known| *known == path || known.starts_with(&below));
        // TOML has no null: a key without a default stays away.
        if let Ok(default) = toml::Value::try_from(&schema["default"])
            && !is_said
        {
            put(settings, path, &default, folder);
        }
        defaults(settings, &below, schema, folder);
    }
}

/// Fills in what a file leaves to something else.
pub(super) fn fill(settings: &mut Settings, path: &str, text: &str) {
    settings.entry(path.into()).or_insert_with(|| vec![entry(path, text, Path::new(""))]);
}

/// A network, or an address alone.
fn network(text: &str) -> Option<IpNet> {
    let net = text.parse::<IpNet>().ok().or_else(|| Some(text.parse::<IpAddr>().ok()?.into()));
    net.map(canonical_prefix)
}

fn network_text(net: &IpNet) -> String {
    if net.prefix_len() == net.max_prefix_len() { net.addr().to_string() } else { net.to_string() }
}

/// Lists of networks.
const ADDRESSES: [&str; 3] = ["allowed_ips", "checks.refused_addresses", "clients.trusted_proxies"];

/// Reads one value of the setting at `path`: another spelling of the same value is no change.
fn entry(path: &str, text: &str, folder: &Path) -> Entry {
    let mut shown = if text.contains("://") { url(text) } else { plain(text) };
    let same = match path {
        "store.url" => match PostgresUrl::parse(text, |roots| folded(Path::new(roots))) {
            Ok(url) => {
                shown = plain(&url.to_string());
                let config = url.config();
                format!("{config:?} {:?} {:?} {:?}", config.get_password(), url.tls(), url.roots())
            }
            Err(_) => folded_text(text),
        },
        "server.public_url" | "engine.url" => text.trim_end_matches('/').to_owned(),
        "server.listen" | "admin.listen" => {
            text.parse::<SocketAddr>().map_or_else(|_| text.into(), |at| at.to_string())
        }
        "signature.api_key"
        | "signature.signature"
        | "signature.timestamp"
        | "engine.callback_signature.header"
        | "admin.hosts"
        | "currency"
        | "pages.language" => text.to_ascii_lowercase(),
        "payin.schema" | "payout.schema" => text.strip_prefix("./").unwrap_or(text).to_owned(),
        "tls.certificate" | "tls.key" => folded_text(text),
        // Certificates that are trusted are told apart by what is in their files.
        _ if path == "tls.client_ca" || path.ends_with("trust") => {
            let content = files::read_bounded(&folder.join(text), files::LARGEST_FILE).ok();
            format!("{} {:?}", folded_text(text), content.map(|bytes| files::content_hash(&bytes)))
        }
        _ if is_secret(path) => {
            if !text.starts_with("env:") && !text.starts_with("file:") {
                "a literal secret".clone_into(&mut shown);
            }
            text.to_owned()
        }
        _ if path.ends_with("amount_per_day") || path.starts_with("balance.opening.") => {
            Amount::from_decimal_string(text).map_or_else(|_| text.into(), |amount| amount.hundredths().to_string())
        }
        _ if matches!(told(path).0, Told::More | Told::Measured(_)) => measured(text),
        _ => text.to_owned(),
    };
    if path.starts_with("replies.") {
        "a template".clone_into(&mut shown);
    }
    Entry { same, shown }
}

/// A span of time in milliseconds, a size in bytes, or a count.
fn measured(text: &str) -> String {
    let size = |unit: &str, bytes: u128| Some(text.strip_suffix(unit)?.parse::<u128>().ok()? * bytes);
    let span = read_span(text).map(|span| span.as_millis());
    let measure = span.or_else(|| size("KiB", 1 << 10)).or_else(|| size("MiB", 1 << 20)).or_else(|| size("B", 1));
    measure.map_or_else(|| text.to_owned(), |measure| measure.to_string())
}

fn folded_text(text: &str) -> String {
    let scheme = if text.starts_with("sqlite:") { "sqlite:" } else { "" };
    format!("{scheme}{}", folded(Path::new(&text[scheme.len()..])).display())
}

/// "a, b and c", or "a, b and 31 more".
pub(super) fn listed(names: impl IntoIterator<Item = String>) -> String {
    let mut names = names.into_iter();
    let mut said: Vec<String> = names.by_ref().take(MOST_NAMED).collect();
    match names.count() {
        0 => {}
        more => said.push(format!("{more} more")),
    }
    match said.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} and {last}", first.join(", ")),
    }
}

pub(super) fn or_none(shown: String) -> String {
    if shown.is_empty() { "none".to_owned() } else { shown }
}

/// "old -> new"; what looks the same and is not is called another one.
fn arrow(old: &str, new: &str) -> String {
    if old == new { format!("{new} is another one now") } else { format!("{old} -> {new}") }
}

/// A text of the operator's, control characters escaped, the overlong cut.
pub(super) fn plain(text: &str) -> String {
    // Quotes and backslashes are harmless, and patterns are full of them.
    let escaped = |c: char| if "\"'\\".contains(c) { c.to_string() } else { c.escape_debug().collect() };
    let mut shown: String = text.chars().take(LONGEST).map(escaped).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push_str("...");
    }
    shown
}

/// A URL without what may be a secret: what stands before its host, and its query.
fn url(text: &str) -> String {
    let (before, query) = match text.find(['?', '#']) {
        // Whether what is before it is a host or the start of a password is not for guessing.
        Some(at) if text[at..].contains('@') => (text.split_once("://").map_or("", |(scheme, _)| scheme), "://***"),
        Some(at) => (&text[..at], "?***"),
        None => (text, ""),
    };
    match before.split_once("://").map(|(scheme, rest)| (scheme, rest.rsplit_once('@'))) {
        Some((scheme, Some((_, host)))) => plain(&format!("{scheme}://***@{host}")) + query,
        _ => plain(before) + query,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_bounded() {
        let said = |count: usize| listed((0..count).map(|name| name.to_string()));
        assert_eq!([said(0), said(1), said(3)], ["", "0", "0, 1 and 2"]);
        assert_eq!(said(10), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
    }

    #[test]
    fn urls_are_shown_without_credentials() {
        for (text, shown) in [
            ("https://a.example/x", "https://a.example/x"),
            ("https://u:p@a.example/x", "https://***@a.example/x"),
            ("https://a.example/x?token=abc#d", "https://a.example/x?***"),
            ("https://a.example/x#abc", "https://a.example/x?***"),
            ("https://u:p?w@a.example/x", "https://***"),
            ("https://a/\u{7}", "https://a/\\u{7}"),
        ] {
            assert_eq!(url(text), shown);
        }
    }

    #[test]
    fn secrets_are_told_and_never_shown() {
        use std::fmt::Write as _;
        let list = |texts: &[&str]| {
            let entries: Setting = texts.iter().map(|text| entry("v2_secret", text, Path::new(""))).collect();
            (!entries.is_empty()).then_some(entries)
        };
        let mut said = String::new();
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
            let (effect, what) = secrets("v2_secret", list(old).as_ref(), list(new).as_ref());
            let _ = writeln!(said, "{effect:?}: {what}");
        }
        assert!(!said.contains("hush"), "{said}");
        insta::assert_snapshot!(said);
    }
}
