//! Live reload: it applies completely or not at all, and keeps state.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::clock::ManualClock;
use crate::domain::ShopCode;
use crate::rules::{LiveRules, ReloadOutcome, restart};

/// A time long enough after the last change of every file, so that file stamps are trusted.
const LATER: UnixMillis = UnixMillis(4_000_000_000_000);

fn live(rules: &Rules) -> Arc<LiveRules> {
    let clock = Arc::new(ManualClock::at(UnixMillis(7)));
    let (loader, first) = rules.loader();
    Arc::new(LiveRules::new(loader, first, clock))
}

fn certificate() -> String {
    rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().cert.pem()
}

fn limited(per_second: u32) -> String {
    MERCHANT.replace("[shops.s]", &format!("rate_limit = {{ per_second = {per_second}, burst = 5 }}\n[shops.s]"))
}

#[test]
fn all_or_nothing() {
    let rules = Rules::small();
    let live = live(&rules);
    let first = live.current();
    rules.put("merchants/m.toml", "nmae = 1");
    rules.put("merchants/n.toml", MERCHANT.replace("\"k\"", "\"n\""));
    let ReloadOutcome::Refused(problems) = live.reload() else { panic!("wrong rules were loaded") };
    assert_eq!(problems.len(), 1);
    assert!(Arc::ptr_eq(&first, &live.current()), "the last good set stays in force");
    assert!(problems.to_string().contains("did you mean `name`?"));
    rules.put("merchants/m.toml", MERCHANT);
    let ReloadOutcome::Loaded { previous, version, needs_restart, .. } = live.reload() else {
        panic!("good rules were refused")
    };
    assert_eq!((previous, &version), (first.version.clone(), &live.current().version));
    assert!(needs_restart.is_empty());
    assert_eq!(live.current().loaded_at, UnixMillis(7));
    assert_eq!((first.merchants.len(), live.current().merchants.len()), (1, 2));
}

#[test]
fn schemas_are_compiled_again_when_they_or_a_list_changed() {
    let listed = r#"{"type": "object", "properties": {"a": {"x-allowed-list": "l"}}}"#;
    let rules = Rules::small()
        .with("shops/s.toml", format!("{SHOP}[payin]\nschema = \"s.json\"\n[payout]\nschema = \"s.json\"\n"))
        .with("shops/s.json", listed)
        .with("lists/l.txt", "one");
    let live = live(&rules);
    let schemas = || {
        let shop = Arc::clone(&live.current().shops[&ShopCode::new("s").unwrap()]);
        [&shop.payin, &shop.payout].map(|rules| Arc::clone(rules.schema.as_ref().unwrap()))
    };
    let changed = |name: &str, text: &str| {
        let before = schemas();
        rules.put(name, text);
        assert!(matches!(live.reload(), ReloadOutcome::Loaded { .. }), "{name}");
        let after = schemas();
        assert!(!Arc::ptr_eq(&after[0], &after[1]), "each direction has its own reserved names");
        [0, 1].map(|direction| !Arc::ptr_eq(&before[direction], &after[direction]))
    };
    assert_eq!(changed("merchants/m.toml", &format!("name = \"M\"\n{MERCHANT}")), [false; 2]);
    assert_eq!(changed("lists/l.txt", "two"), [true; 2]);
    assert_eq!(changed("shops/s.json", &format!("{listed} ")), [true; 2]);
    assert_eq!(changed("lists/m/l.txt", "three"), [true; 2]);
}

#[test]
fn keys_that_need_a_restart_are_named_and_not_applied() {
    let rules = Rules::small();
    let live = live(&rules);
    rules.put(
        "gateway.toml",
        "[server]\npublic_url = \"https://b.example\"\n[admin]\ntoken = \"of-16-characters\"\nread_only = true\n[store]\nurl = \"sqlite:x.db\"\n\
         [clients]\nproxy_protocol = true\n[limits]\nbody = 700\n",
    );
    let ReloadOutcome::Loaded { needs_restart, .. } = live.reload() else { panic!("good rules were refused") };
    let keys = ["server.public_url", "admin.token", "store.url", "clients.proxy_protocol"];
    assert_eq!(needs_restart, keys);
    let now = live.current();
    assert_eq!(&*now.gateway.server.public_url, "https://localhost:8443");
    assert!(now.gateway.admin.token.is_none() && now.gateway.admin.read_only && !now.gateway.clients.proxy_protocol);
    assert_eq!(now.gateway.limits.body, 700, "other keys apply at once");
    rules.put("gateway.toml", "[server]\npublic_url = \"https://b.example\"\nlisten = 1");
    assert!(matches!(live.reload(), ReloadOutcome::Refused(_)));
    rules.put("gateway.toml", "[server]\npublic_url = \"https://b.example\"\nlisten = \"127.0.0.1:8443\"");
    let needs_restart = || {
        let ReloadOutcome::Loaded { needs_restart, .. } = live.reload() else { panic!("good rules were refused") };
        needs_restart
    };
    assert_eq!(needs_restart(), ["server.public_url"]);
    rules.put("gateway.toml", "# as it was");
    assert!(needs_restart().is_empty(), "the file has the values in force");
}

/// Every key that is declared to need a restart is named when it changes, and the process keeps the value that it runs
/// with.
#[test]
fn every_key_that_needs_a_restart_is_named_and_kept() {
    let mut named = BTreeSet::new();
    let secret = "admin-hush-8Yz-of-16-or-more";
    for (text, keys) in [
        (
            "[server]\nlisten = \"127.0.0.1:1\"\nshutdown_grace = \"1s\"",
            &["server.listen", "server.shutdown_grace"][..],
        ),
        ("[server]\ndrain_delay = \"1s\"", &["server.drain_delay"]),
        ("[server]\npublic_url = \"https://b.example\"", &["server.public_url"]),
        ("[admin]\nlisten = \"127.0.0.1:1\"", &["admin.listen"]),
        ("[admin]\nhosts = [\"a.example\"]", &["admin.hosts"]),
        ("[admin]\ntls = true\nplain = true", &["admin.tls", "admin.plain"]),
        (&format!("[[admin.users]]\nname = \"ada\"\nrole = \"viewer\"\ntoken = \"{secret}\""), &[]),
        (&format!("[admin]\ntoken = \"{secret}\""), &["admin.token"]),
        (&format!("[admin]\ntoken = [\"other-of-16-or-more\", \"{secret}\"]"), &["admin.token"]),
        ("[store]\nkeys = [\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\"]", &["store.keys"]),
        ("[store]\nurl = \"sqlite:x.db\"\nconnections = 7", &["store.url", "store.connections"]),
        ("[engine]\nurl = \"https://v2.example\"", &["engine.url"]),
        ("[engine]\ntrust = [\"ca.pem\"]", &["engine.trust"]),
        ("[engine]\ntimeout = \"7s\"", &["engine.timeout"]),
        ("[engine]\ncallback_signature = { header = \"X-Other\" }", &["engine.callback_signature"]),
        ("[clients]\nproxy_protocol = true", &["clients.proxy_protocol"]),
        ("[clients]\ntrusted_proxies = [\"10.0.0.0/8\"]", &["clients.trusted_proxies"]),
        (
            "[engine]\ntimeout = \"10s\"\ncallback_signature = { encoding = \"hex\" }\n[server]\ndrain_delay = \"0s\"",
            &[],
        ),
        ("[tls]\ncertificate = \"elsewhere.pem\"\n[limits]\nbody = 700\n[pages]\nlink_lifetime = \"1m\"", &[]),
    ] {
        let rules = Rules::small();
        rules.put("ca.pem", certificate());
        let live = live(&rules);
        let started = live.current();
        rules.put("gateway.toml", text);
        let outcome = live.reload();
        let ReloadOutcome::Loaded { needs_restart, .. } = &outcome else { panic!("{outcome:?}") };
        assert_eq!(needs_restart, keys, "{text}");
        assert!(!format!("{outcome:?} {live:?}").contains(secret));
        let now = live.current();
        assert!(restart::changed_keys(&started.gateway, &now.gateway).is_empty(), "{text}");
        assert_eq!(started.gateway.server, now.gateway.server, "{text}");
        named.extend(keys);
    }
    assert_eq!(named, restart::KEYS.iter().map(|(name, _)| name.as_str()).collect());
}

#[test]
fn changed_trust_in_a_remote_engine_needs_a_restart() {
    let rules = Rules::small();
    rules.put("ca.pem", certificate());
    rules.put("gateway.toml", "[engine]\nurl = \"https://v2.example\"\ntrust = [\"ca.pem\"]");
    let live = live(&rules);
    rules.put("ca.pem", certificate());
    let ReloadOutcome::Loaded { needs_restart, .. } = live.reload() else { panic!("good rules were refused") };
    assert_eq!(needs_restart, ["engine.trust"]);
    rules.put("gateway.toml", "[engine]\nurl = \"https://v2.example:444\"\ntrust = [\"ca.pem\"]\ntimeout = \"2s\"");
    let ReloadOutcome::Loaded { needs_restart, .. } = live.reload() else { panic!("good rules were refused") };
    assert_eq!(needs_restart, ["engine.url", "engine.trust", "engine.timeout"]);
}

#[test]
fn an_emptied_file_is_refused() {
    for (name, text) in [
        ("gateway.toml", "[limits]\nbody = 700"),
        ("dialects/v1.toml", "[requests]\nempty_list_is_object = true"),
        ("pages/en.toml", "[busy]\ntitle = \"Busy\""),
    ] {
        let rules = Rules::small().with(name, text);
        let live = live(&rules);
        let version = live.current().version.clone();
        for empty in ["", " \n\t\r\n"] {
            rules.put(name, empty);
            let ReloadOutcome::Refused(problems) = live.reload() else { panic!("{name} is empty, but was loaded") };
            let place = rules.path().join(name).display().to_string();
            let shown = problems.to_string();
            assert!(shown.starts_with(&format!("{place}:1:1: the file is empty and was not")), "{shown}");
            assert_eq!(live.current().version, version);
            assert!(matches!(live.reload(), ReloadOutcome::Refused(_)), "refused the second time too");
        }
        // At start there is no previous content to compare with: the empty file is read.
        rules.load();
        rules.put(name, if name.ends_with("css") { "/* meant */" } else { "# meant" });
        assert!(matches!(live.reload(), ReloadOutcome::Loaded { .. }), "{name}");
        fs::remove_file(rules.path().join(name)).unwrap();
        let refused = matches!(live.reload(), ReloadOutcome::Refused(_));
        assert_eq!(refused, name == "gateway.toml", "a file may be removed: {name}");
    }
    let rules = Rules::small();
    let live = live(&rules);
    rules.put("dialects/d.toml", "");
    assert!(matches!(live.reload(), ReloadOutcome::Loaded { .. }), "a file that was always empty is accepted");
}

#[test]
fn a_generated_store_key_is_no_change() {
    let rules = Rules::small();
    let live = live(&rules);
    fs::create_dir(rules.0.path().join("secrets")).unwrap();
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    fs::write(rules.0.path().join("secrets/store.key"), key).unwrap();
    let ReloadOutcome::Loaded { needs_restart, .. } = live.reload() else { panic!("good rules were refused") };
    assert!(needs_restart.is_empty());
}

#[test]
fn rate_limiters_keep_their_usage() {
    let rules = Rules::small().with("merchants/m.toml", limited(5));
    let live = live(&rules);
    let limiter =
        |rules: &RuleSet| Arc::clone(&rules.api_key("k").unwrap().api_key().rate_limit.as_ref().unwrap().limiter);
    let first = limiter(&live.current());
    rules.put("merchants/m.toml", limited(5).replace("\"one\"", "\"other\""));
    assert!(matches!(live.reload(), ReloadOutcome::Loaded { .. }));
    assert!(Arc::ptr_eq(&first, &limiter(&live.current())), "the quota did not change");
    rules.put("merchants/m.toml", limited(6));
    assert!(matches!(live.reload(), ReloadOutcome::Loaded { .. }));
    assert!(!Arc::ptr_eq(&first, &limiter(&live.current())), "another quota resets the usage");
}

#[test]
fn merchants_keep_their_counted_traffic() {
    let rules = Rules::small();
    let live = live(&rules);
    let counted =
        |rules: &RuleSet| rules.merchants.values().map(|merchant| merchant.traffic.view().v2).collect::<Vec<_>>();
    live.current().merchants.values().for_each(|merchant| merchant.traffic.v2_request());
    rules.put("merchants/m.toml", MERCHANT.replace("\"one\"", "\"other\""));
    assert!(matches!(live.reload(), ReloadOutcome::Loaded { .. }));
    assert_eq!(counted(&live.current()), [1]);
}

#[test]
fn changed_files_make_the_rules_stale() {
    let rules = Rules::small();
    let live = live(&rules);
    assert!(live.changes().is_none());
    let changes: [(&str, &dyn Fn()); 3] = [
        ("a wrong file", &|| rules.put("merchants/m.toml", "nmae = 1")),
        ("a new name", &|| rules.put("lists/l.txt", "a")),
        ("a name less", &|| fs::remove_file(rules.path().join("lists/l.txt")).unwrap()),
    ];
    for (what, change) in changes {
        change();
        assert!(live.changes().is_some(), "{what}");
        live.reload();
        assert!(live.changes().is_none(), "read, {what}");
    }
}

#[test]
fn external_files_are_read_again() {
    let rules = Rules::small().with("merchants/m.toml", MERCHANT.replace("\"two\"", "\"file:../../two.key\""));
    fs::write(rules.0.path().join("two.key"), "old").unwrap();
    let mut loader = Loader::new(&rules.path(), LoadOptions::default());
    let first = loader.load(LATER, None).unwrap();
    let secret = |rules: &RuleSet| rules.api_key("k").unwrap().api_key().v2_secrets.clone().unwrap();
    assert_eq!(secret(&first).signing().expose(), b"old");
    assert!(loader.changes(LATER).is_none());
    let before = loader.external_hash();
    fs::write(rules.0.path().join("two.key"), "another").unwrap();
    assert!(loader.changes(LATER).is_some());
    let second = loader.load(LATER, Some(&first)).unwrap();
    assert_eq!(secret(&second).signing().expose(), b"another");
    assert_eq!(first.version, second.version, "the version does not depend on secrets");
    assert_ne!(loader.external_hash(), before);
    fs::remove_file(rules.0.path().join("two.key")).unwrap();
    assert!(loader.changes(LATER).is_some());
    assert!(loader.load(LATER, Some(&second)).unwrap_err().to_string().contains("does not exist"));
    assert!(loader.external_files().contains(&rules.0.path().join("two.key")), "the missing file is watched");
}

/// A case found by the fuzzer: a cached merchant did not report that its shop could not be read, a newly compiled one
/// did.
#[test]
fn an_unreadable_shop_is_reported_alike_anew_and_after_a_reload() {
    let rules = Rules::small();
    let live = live(&rules);
    let before = live.current();
    for bytes in [&b"currency = \"\x8b\""[..], b"\xff", b"currency = ", b""] {
        rules.put("shops/s.toml", bytes);
        let anew = load(&rules.path(), LATER, Some(&before), LoadOptions::default()).unwrap_err();
        let ReloadOutcome::Refused(problems) = live.reload() else { panic!("{bytes:?} is accepted") };
        assert_eq!(problems.to_string(), anew.to_string(), "{bytes:?}");
    }
}
