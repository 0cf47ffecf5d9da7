//! The settings that only a restart changes (contract section 2, end of `gateway.toml`): finds those that differ from
//! the running ones, and keeps the running values in force.

use std::sync::LazyLock;

use super::GatewayRules;
use super::compile::RawGateway;
use super::raw::FromToml;
use super::setting::DeclaredKey;

/// A key's dotted name, and whether it has the same value in two sets of rules.
type RestartKey = (String, fn(&GatewayRules, &GatewayRules) -> bool);

/// The keys that are declared to need a restart, in the order of their declaration.
static KEYS: LazyLock<Vec<RestartKey>> = LazyLock::new(|| {
    let mut found = Vec::new();
    add_declared("", RawGateway::keys(), &mut found);
    found
});

fn add_declared(above: &str, keys: Vec<DeclaredKey>, found: &mut Vec<RestartKey>) {
    for key in keys {
        let name = format!("{above}{}", key.name);
        add_declared(&format!("{name}."), (key.keys)(), found);
        found.extend(key.on_change.and_then(|on_change| on_change.restart).map(|same| (name, same)));
    }
}

/// Returns the keys of `gateway.toml` that differ and need a restart. A default equals the same value written out.
pub(super) fn changed_keys(running: &GatewayRules, new: &GatewayRules) -> Vec<&'static str> {
    KEYS.iter().filter(|(_, same)| !same(running, new)).map(|(name, _)| name.as_str()).collect()
}

/// Copies the settings that only a restart changes from the running rules, so that the rules in force always match the
/// process. `was_open`: whether the console needed no user until now.
pub(super) fn keep_running(new: &mut GatewayRules, running: &GatewayRules, was_open: bool) {
    new.server = running.server.clone();
    new.admin = new.admin.live(&running.admin, was_open);
    new.store = running.store.clone();
    new.engine = running.engine.clone();
    new.engine_trust.clone_from(&running.engine_trust);
    new.engine_timeout = running.engine_timeout;
    new.callback_signature.clone_from(&running.callback_signature);
    new.clients = running.clients.clone();
}
