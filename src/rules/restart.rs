//! The settings that only a restart changes (contract section 2, end of `gateway.toml`): finds those that differ from
//! the running ones, and keeps the running values in force.

use std::sync::LazyLock;

use super::GatewayRules;
use super::compile::RawGateway;
use super::raw::FromToml;
use super::setting::{DeclaredKey, RestartValue};

/// The dotted names and the values of the keys that are declared to need a restart, in the order of their declaration.
pub(super) static KEYS: LazyLock<Vec<(String, RestartValue)>> = LazyLock::new(|| {
    let mut found = Vec::new();
    add_declared("", RawGateway::keys(), &mut found);
    found
});

fn add_declared(above: &str, keys: Vec<DeclaredKey>, found: &mut Vec<(String, RestartValue)>) {
    for key in keys {
        let name = format!("{above}{}", key.name);
        add_declared(&format!("{name}."), (key.keys)(), found);
        found.extend(key.on_change.and_then(|on_change| on_change.restart).map(|value| (name, value)));
    }
}

/// Returns the keys of `gateway.toml` that differ and need a restart. A default equals the same value written out.
pub(super) fn changed_keys(running: &GatewayRules, new: &GatewayRules) -> Vec<&'static str> {
    KEYS.iter().filter(|(_, value)| !(value.is_same)(running, new)).map(|(name, _)| name.as_str()).collect()
}

/// Copies the settings that only a restart changes from the running rules, so that the rules in force always match the
/// process.
///
/// A console that needs a user is never opened by a `token` that takes effect only at the next start: `was_open` reports
/// whether it needed none until now.
pub(super) fn keep_running(new: &mut GatewayRules, running: &GatewayRules, was_open: bool) {
    let may_be_open = was_open || new.admin.token.is_none();
    for (_, value) in KEYS.iter() {
        (value.keep)(new, running);
    }
    // What follows from several keys, or from one.
    new.server.is_public = running.server.is_public;
    new.admin.is_local = running.admin.is_local;
    new.admin.is_open = may_be_open && new.admin.needs_no_user();
}
