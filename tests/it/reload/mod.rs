//! Live reload from outside, over real TLS sockets: what a reload tells, what traffic sees of it, and what it never sees.

mod access;
mod certificates;
mod drill;
mod edits;
mod outcome;
mod traffic;

use serde_json::Value;

use crate::support::{self, Gateway, Rules};

/// What a reload or a look at the rules is answered with.
#[track_caller]
fn rules(gateway: &Gateway) -> Value {
    let (status, body) = gateway.admin_get("/api/rules").expect("an answer");
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// Asks the admin listener for a reload: status and body.
#[track_caller]
fn reload(gateway: &Gateway) -> (u16, Value) {
    let (status, body) = gateway.try_reload();
    (status, serde_json::from_str(&body).unwrap())
}

/// The same where the rules are good, to the version in force.
#[track_caller]
fn reload_good(gateway: &Gateway) -> String {
    let (status, body) = reload(gateway);
    assert_eq!(status, 200, "{body}");
    support::text(&body, "version").to_owned()
}

/// The value of a series of the metrics.
#[track_caller]
fn metric(gateway: &Gateway, series: &str) -> String {
    let (_, page) = gateway.admin_get("/metrics").expect("an answer");
    let value = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {series} in {page}")).to_owned()
}

/// The same of one that counts.
#[track_caller]
fn count(gateway: &Gateway, series: &str) -> usize {
    metric(gateway, series).trim_end_matches(".0").parse().unwrap()
}

/// Writes the whole directory anew.
fn write(gateway: &Gateway, rules: &Rules) {
    rules.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
}

/// Saves one file of the rules.
fn save(gateway: &Gateway, path: &str, text: &str) {
    support::rules::write_file(&gateway.rules_dir().join(path), text);
}
