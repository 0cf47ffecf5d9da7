//! The settings that only a restart changes (contract section 2, end of `gateway.toml`): finds those that differ from
//! the running ones, and keeps the running values in force.

use super::{AdminRules, EngineRules, GatewayRules};
use crate::domain::Secret;
use crate::store_settings::StoreKeys;

/// Reports whether a key has the same value in two sets.
type Same = fn(&GatewayRules, &GatewayRules) -> bool;

/// The keys that need a restart, in the order of the file.
const KEYS: [(&str, Same); 18] = [
    ("server.listen", |running, new| running.server.listen == new.server.listen),
    ("server.public_url", |running, new| running.server.public_url == new.server.public_url),
    ("server.shutdown_grace", |running, new| running.server.shutdown_grace == new.server.shutdown_grace),
    ("server.drain_delay", |running, new| running.server.drain_delay == new.server.drain_delay),
    ("admin.listen", |running, new| running.admin.listen == new.admin.listen),
    ("admin.tls", |running, new| running.admin.tls == new.admin.tls),
    ("admin.plain", |running, new| running.admin.plain == new.admin.plain),
    ("admin.hosts", |running, new| running.admin.hosts == new.admin.hosts),
    ("admin.token", |running, new| tokens(&running.admin).eq(tokens(&new.admin))),
    ("store.url", |running, new| running.store.url == new.store.url),
    ("store.connections", |running, new| running.store.connections == new.store.connections),
    ("store.keys", |running, new| same_store_keys(&running.store.keys, &new.store.keys)),
    ("engine.url", |running, new| running.engine.to_string() == new.engine.to_string()),
    ("engine.trust", |running, new| {
        running.engine_trust == new.engine_trust && same_trust(&running.engine, &new.engine)
    }),
    ("engine.timeout", |running, new| running.engine_timeout == new.engine_timeout),
    ("engine.callback_signature", |running, new| running.callback_signature == new.callback_signature),
    ("clients.proxy_protocol", |running, new| running.clients.proxy_protocol == new.clients.proxy_protocol),
    ("clients.trusted_proxies", |running, new| running.clients.trusted_proxies == new.clients.trusted_proxies),
];

/// Returns the keys of `gateway.toml` that differ and need a restart. A default equals the same value written out.
pub(super) fn changed_keys(running: &GatewayRules, new: &GatewayRules) -> Vec<&'static str> {
    KEYS.iter().filter(|(_, same)| !same(running, new)).map(|(name, _)| *name).collect()
}

/// The keys and tables that take effect at once although the rest of their section needs a restart.
const LIVE: [&str; 2] = ["admin.read_only", "admin.users"];

/// Reports whether a key or table of `gateway.toml` is in a section that needs a restart: whole sections do, but for
/// [`LIVE`].
pub(super) fn waits(key: &str) -> bool {
    !LIVE.iter().any(|live| key.starts_with(live)) && KEYS.iter().any(|(known, _)| section(known) == section(key))
}

fn section(key: &str) -> &str {
    key.split('.').next().unwrap_or_default()
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

fn tokens(admin: &AdminRules) -> impl Iterator<Item = &[u8]> {
    admin.token.iter().flat_map(|user| user.token.verifying()).map(Secret::expose)
}

/// Reports whether the store keys are the same. A key that the process itself created at start is no change.
fn same_store_keys(running: &StoreKeys, new: &StoreKeys) -> bool {
    let bytes = |keys: &StoreKeys| keys.keys.iter().map(|key| key.expose().to_vec()).collect::<Vec<_>>();
    running.create_at == new.create_at && (running.keys.is_empty() || bytes(running) == bytes(new))
}

/// Reports whether the certificates in the files of `engine.trust` are the same. They are read only for a remote
/// engine.
fn same_trust(running: &EngineRules, new: &EngineRules) -> bool {
    match (running, new) {
        (EngineRules::Remote(running), EngineRules::Remote(new)) => running.trust == new.trust,
        _ => true,
    }
}
