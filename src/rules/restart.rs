//! What only a restart changes (contract section 2, end of `gateway.toml`): which keys differ from those that the process
//! runs with, and how these stay in force.

use super::{EngineRules, Gateway, Secret, Secrets, StoreKeys};

/// The keys of `gateway.toml` that differ and need a restart, in the order of the file. Defaults count as written.
pub(super) fn changed_keys(running: &Gateway, new: &Gateway) -> Vec<&'static str> {
    let (server, new_server) = (&running.server, &new.server);
    let (engine, new_engine) = (&running.engine_keys, &new.engine_keys);
    let keys = [
        ("server.listen", server.listen == new_server.listen),
        ("server.public_url", server.public_url == new_server.public_url),
        ("server.shutdown_grace", server.shutdown_grace == new_server.shutdown_grace),
        ("server.drain_delay", server.drain_delay == new_server.drain_delay),
        ("admin.listen", running.admin_listen == new.admin_listen),
        ("admin.token", exposed(running.admin_token.as_ref()).eq(exposed(new.admin_token.as_ref()))),
        ("store.url", running.store.url == new.store.url),
        ("store.keys", same_store_keys(&running.store.keys, &new.store.keys)),
        ("engine.url", running.engine.to_string() == new.engine.to_string()),
        ("engine.trust", engine.trust == new_engine.trust && same_trust(&running.engine, &new.engine)),
        ("engine.timeout", engine.timeout == new_engine.timeout),
        ("engine.callback_signature", engine.callback_signature == new_engine.callback_signature),
        ("clients.proxy_protocol", running.clients.proxy_protocol == new.clients.proxy_protocol),
        ("clients.trusted_proxies", running.clients.trusted_proxies == new.clients.trusted_proxies),
    ];
    keys.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
}

/// What only a restart changes stays as the process runs with it, so that a reload never leaves the two at odds.
pub(super) fn keep_running(new: &mut Gateway, running: &Gateway) {
    new.server = running.server.clone();
    new.admin_listen = running.admin_listen;
    new.admin_token.clone_from(&running.admin_token);
    new.store = running.store.clone();
    new.engine = running.engine.clone();
    new.engine_keys = running.engine_keys.clone();
    new.clients = running.clients.clone();
}

fn exposed(secrets: Option<&Secrets>) -> impl Iterator<Item = &[u8]> {
    secrets.into_iter().flat_map(Secrets::verifying).map(Secret::expose)
}

/// A key that the process itself made at start is no change of the rules.
fn same_store_keys(running: &StoreKeys, new: &StoreKeys) -> bool {
    let bytes = |keys: &StoreKeys| keys.keys.iter().map(|key| key.expose().to_vec()).collect::<Vec<_>>();
    running.create_at == new.create_at && (running.keys.is_empty() || bytes(running) == bytes(new))
}

/// Whether the certificates in the files that `engine.trust` names are the same; only a remote engine has them read.
fn same_trust(running: &EngineRules, new: &EngineRules) -> bool {
    match (running, new) {
        (EngineRules::Remote(running), EngineRules::Remote(new)) => running.trust == new.trust,
        _ => true,
    }
}
