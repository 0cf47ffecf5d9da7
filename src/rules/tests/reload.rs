//! Live reload: it applies completely or not at all, and keeps state.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::*;
use crate::clock::ManualClock;
use crate::clock::testing::eventually;
use crate::domain::ShopCode;
use crate::rules::{LiveRules, ReloadOutcome, Watched, Watcher};

/// A time long enough after the last change of every file, so that file stamps are trusted.
const LATER: UnixMillis = UnixMillis(4_000_000_000_000);

fn live(rules: &Rules) -> Arc<LiveRules> {
    let clock = Arc::new(ManualClock::at(UnixMillis(7)));
    let (loader, first) = rules.loader();
    Arc::new(LiveRules::new(loader, first, clock))
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
    assert!(live.last_error().unwrap().to_string().contains("did you mean `name`?"));
    rules.put("merchants/m.toml", MERCHANT);
    let ReloadOutcome::Loaded { previous, version, needs_restart, .. } = live.reload() else {
        panic!("good rules were refused")
    };
    assert_eq!((previous, &version), (first.version.clone(), &live.current().version));
    assert!(needs_restart.is_empty() && live.last_error().is_none());
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
        [&shop.payin, &shop.payout].map(|side| Arc::clone(side.schema.as_ref().unwrap()))
    };
    let changed = |name: &str, text: &str| {
        let before = schemas();
        rules.put(name, text);
        assert!(matches!(live.reload(), ReloadOutcome::Loaded { .. }), "{name}");
        let after = schemas();
        assert!(!Arc::ptr_eq(&after[0], &after[1]), "each direction has its own reserved names");
        [0, 1].map(|side| !Arc::ptr_eq(&before[side], &after[side]))
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
    assert_eq!((&needs_restart[..], &live.needs_restart()[..]), (&keys[..], &keys[..]));
    let now = live.current();
    assert_eq!(&*now.gateway.server.public_url, "https://localhost:8443");
    assert!(now.gateway.admin.token.is_none() && now.gateway.admin.read_only && !now.gateway.clients.proxy_protocol);
    assert_eq!(now.gateway.limits.body, 700, "other keys apply at once");
    rules.put("gateway.toml", "[server]\npublic_url = \"https://b.example\"\nlisten = 1");
    assert!(matches!(live.reload(), ReloadOutcome::Refused(_)));
    assert_eq!(live.needs_restart()[..], keys, "the keys stay while the rules are refused");
    rules.put("gateway.toml", "[server]\npublic_url = \"https://b.example\"\nlisten = \"127.0.0.1:8443\"");
    live.reload();
    assert_eq!(live.needs_restart()[..], ["server.public_url"]);
    rules.put("gateway.toml", "# as it was");
    live.reload();
    assert!(live.needs_restart().is_empty(), "the file has the values in force");
}

#[test]
fn every_key_that_needs_a_restart_has_its_name() {
    let secret = "admin-hush-8Yz-of-16-or-more";
    for (text, keys) in [
        (
            "[server]\nlisten = \"127.0.0.1:1\"\nshutdown_grace = \"1s\"",
            &["server.listen", "server.shutdown_grace"][..],
        ),
        ("[server]\ndrain_delay = \"1s\"", &["server.drain_delay"]),
        ("[admin]\nlisten = \"127.0.0.1:1\"", &["admin.listen"]),
        ("[admin]\nhosts = [\"a.example\"]", &["admin.hosts"]),
        ("[admin]\ntls = true\nplain = true", &["admin.tls", "admin.plain"]),
        (&format!("[[admin.users]]\nname = \"ada\"\nrole = \"viewer\"\ntoken = \"{secret}\""), &[]),
        (&format!("[admin]\ntoken = \"{secret}\""), &["admin.token"]),
        (&format!("[admin]\ntoken = [\"other-of-16-or-more\", \"{secret}\"]"), &["admin.token"]),
        ("[store]\nkeys = [\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\"]", &["store.keys"]),
        ("[engine]\nurl = \"https://v2.example\"", &["engine.url"]),
        ("[engine]\ntimeout = \"7s\"", &["engine.timeout"]),
        ("[engine]\ncallback_signature = { header = \"X-Other\" }", &["engine.callback_signature"]),
        ("[clients]\ntrusted_proxies = [\"10.0.0.0/8\"]", &["clients.trusted_proxies"]),
        (
            "[engine]\ntimeout = \"10s\"\ncallback_signature = { encoding = \"hex\" }\n[server]\ndrain_delay = \"0s\"",
            &[],
        ),
        ("[tls]\ncertificate = \"elsewhere.pem\"\n[limits]\nbody = 700\n[pages]\nlink_lifetime = \"1m\"", &[]),
    ] {
        let rules = Rules::small();
        let live = live(&rules);
        rules.put("gateway.toml", text);
        let outcome = live.reload();
        let ReloadOutcome::Loaded { needs_restart, .. } = &outcome else { panic!("{outcome:?}") };
        assert_eq!(needs_restart, keys, "{text}");
        assert!(!format!("{outcome:?} {live:?}").contains(secret));
    }
}

#[test]
fn changed_trust_in_a_remote_engine_needs_a_restart() {
    let rules = Rules::small();
    let certificate = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().cert.pem();
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
            live.reload();
            assert!(live.last_error().is_some(), "refused the second time too");
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
    assert!(!live.stale());
    let changes: [(&str, &dyn Fn()); 3] = [
        ("a wrong file", &|| rules.put("merchants/m.toml", "nmae = 1")),
        ("a new name", &|| rules.put("lists/l.txt", "a")),
        ("a name less", &|| fs::remove_file(rules.path().join("lists/l.txt")).unwrap()),
    ];
    for (what, change) in changes {
        change();
        assert!(live.stale(), "{what}");
        live.reload();
        assert!(!live.stale(), "read, {what}");
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
    assert!(!loader.is_stale(LATER));
    let before = loader.external_hash();
    fs::write(rules.0.path().join("two.key"), "another").unwrap();
    assert!(loader.is_stale(LATER));
    let second = loader.load(LATER, Some(&first)).unwrap();
    assert_eq!(secret(&second).signing().expose(), b"another");
    assert_eq!(first.version, second.version, "the version does not depend on secrets");
    assert_ne!(loader.external_hash(), before);
    fs::remove_file(rules.0.path().join("two.key")).unwrap();
    assert!(loader.is_stale(LATER));
    assert!(loader.load(LATER, Some(&second)).unwrap_err().to_string().contains("does not exist"));
    assert!(loader.external_files().contains(&rules.0.path().join("two.key")), "the missing file is watched");
}

fn watched(rules: &Rules) -> (Arc<LiveRules>, Arc<AtomicUsize>, Watcher) {
    let live = live(rules);
    let reloads = Arc::new(AtomicUsize::new(0));
    let (reloaded, counted) = (Arc::clone(&live), Arc::clone(&reloads));
    let on_change = Box::new(move || {
        reloaded.reload();
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let path = rules.path();
    // Never stale: the file system's notifications must be enough here.
    let (paths, stale) = (Box::new(move || vec![path.clone()]), Box::new(|| false));
    let watcher = Watcher::start(Watched { paths, stale, on_change }).unwrap();
    (live, reloads, watcher)
}

fn names(live: &LiveRules) -> String {
    live.current().merchants["m"].name.to_string()
}

#[test]
fn saves_of_every_kind_are_noticed() {
    let rules = Rules::small();
    let (live, _, _watcher) = watched(&rules);
    let path = rules.path();
    let named = |name: &str| format!("name = \"{name}\"\n{MERCHANT}");
    fs::write(path.join("merchants/m.toml"), named("written")).unwrap();
    eventually("written", || names(&live) == "written");
    fs::write(path.join("merchants/.m.new"), named("renamed")).unwrap();
    fs::rename(path.join("merchants/.m.new"), path.join("merchants/m.toml")).unwrap();
    eventually("renamed", || names(&live) == "renamed");
    fs::create_dir(path.join("dialects")).unwrap();
    fs::write(path.join("dialects/d.toml"), "").unwrap();
    eventually("a new directory", || live.current().dialects.len() == 2);
    fs::write(path.join("dialects/d.toml"), "[requests]\nempty_list_is_object = true").unwrap();
    eventually("a file in it", || live.current().dialects["d"].empty_list_is_object);
    fs::remove_file(path.join("dialects/d.toml")).unwrap();
    eventually("removed", || live.current().dialects.len() == 1);
}

#[cfg(unix)]
#[test]
fn replaced_links_are_noticed() {
    use std::os::unix::fs::symlink;
    let rules = Rules::small();
    let path = rules.path();
    let generation = |number: u32| {
        let directory = path.join(format!("..{number}/merchants"));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("m.toml"), format!("name = \"{number}\"\n{MERCHANT}")).unwrap();
    };
    generation(1);
    symlink("..1", path.join("..data")).unwrap();
    fs::remove_dir_all(path.join("merchants")).unwrap();
    symlink("..data/merchants", path.join("merchants")).unwrap();
    let (live, _, _watcher) = watched(&rules);
    assert_eq!(names(&live), "1");
    for number in 2..4 {
        generation(number);
        symlink(format!("..{number}"), path.join("..data_tmp")).unwrap();
        fs::rename(path.join("..data_tmp"), path.join("..data")).unwrap();
        fs::remove_dir_all(path.join(format!("..{}", number - 1))).unwrap();
        eventually("the next generation", || names(&live) == number.to_string());
    }
}

#[test]
fn a_replaced_directory_is_watched_again() {
    let rules = Rules::small();
    let (live, _, _watcher) = watched(&rules);
    let path = rules.path();
    let next = rules.0.path().join("next");
    for round in 0..2 {
        fs::create_dir_all(next.join("shops")).unwrap();
        fs::create_dir_all(next.join("merchants")).unwrap();
        fs::write(next.join("gateway.toml"), "").unwrap();
        fs::write(next.join("shops/s.toml"), SHOP).unwrap();
        fs::write(next.join("merchants/m.toml"), format!("name = \"next {round}\"\n{MERCHANT}")).unwrap();
        fs::rename(&path, rules.0.path().join(format!("old {round}"))).unwrap();
        fs::rename(&next, &path).unwrap();
        eventually("exchanged", || names(&live) == format!("next {round}"));
    }
    eventually("a save in the new directory", || {
        fs::write(path.join("merchants/m.toml"), format!("name = \"saved\"\n{MERCHANT}")).unwrap();
        names(&live) == "saved"
    });
}

#[test]
fn reading_is_no_change() {
    let rules = Rules::small();
    let (live, reloads, _watcher) = watched(&rules);
    rules.put("merchants/m.toml", format!("name = \"one\"\n{MERCHANT}"));
    eventually("the save is noticed", || names(&live) == "one");
    // If reading triggered a reload, there would be endless reloads; after the save of another file there are few.
    rules.put("lists/l.txt", "a");
    let version = live.current().version.clone();
    eventually("the second save is noticed", || live.current().version != version);
    assert!(reloads.load(Ordering::SeqCst) <= 6, "{}", reloads.load(Ordering::SeqCst));
}

/// Watches a file; the second value is its content when a change was last noticed.
fn watched_file(path: std::path::PathBuf) -> (Watcher, Arc<Mutex<String>>) {
    let held = Arc::new(Mutex::new(String::new()));
    let (noticed, watched) = (Arc::clone(&held), path.clone());
    let on_change = Box::new(move || *noticed.lock().unwrap() = fs::read_to_string(&watched).unwrap_or_default());
    let (paths, stale) = (Box::new(move || vec![path.clone()]), Box::new(|| false));
    (Watcher::start(Watched { paths, stale, on_change }).unwrap(), held)
}

#[cfg(unix)]
#[test]
fn every_replacement_of_a_watched_file_is_noticed() {
    use std::os::unix::fs::symlink;
    let directory = tempfile::tempdir().unwrap();
    let certs = directory.path().join("certs");
    let generation = |number: u32, text: &str| {
        fs::create_dir_all(certs.join(format!("..{number}"))).unwrap();
        fs::write(certs.join(format!("..{number}/tls.crt")), text).unwrap();
    };
    generation(1, "one");
    symlink("..1", certs.join("..data")).unwrap();
    symlink("..data/tls.crt", certs.join("tls.crt")).unwrap();
    let (_watcher, held) = watched_file(certs.join("tls.crt"));
    let noticed = |text: &str| eventually(text, || *held.lock().unwrap() == text);
    generation(2, "another generation");
    symlink("..2", certs.join("..data_tmp")).unwrap();
    fs::rename(certs.join("..data_tmp"), certs.join("..data")).unwrap();
    noticed("another generation");
    fs::write(certs.join("..2/tls.crt"), "the target in place").unwrap();
    noticed("the target in place");
    fs::remove_dir_all(&certs).unwrap();
    fs::create_dir(&certs).unwrap();
    fs::write(certs.join("tls.crt"), "a new directory").unwrap();
    noticed("a new directory");
    fs::write(certs.join("tls.crt"), "the file in place").unwrap();
    noticed("the file in place");
    fs::write(certs.join("new"), "renamed").unwrap();
    fs::rename(certs.join("new"), certs.join("tls.crt")).unwrap();
    noticed("renamed");
}

#[test]
fn the_watched_paths_are_updated() {
    let directory = tempfile::tempdir().unwrap();
    let first = directory.path().join("first");
    let second = directory.path().join("deep/second");
    fs::create_dir(directory.path().join("deep")).unwrap();
    let (paths, changes) = (Arc::new(Mutex::new(vec![first])), Arc::new(AtomicUsize::new(0)));
    let (read, counted) = (Arc::clone(&paths), Arc::clone(&changes));
    let watcher = Watcher::start(Watched {
        paths: Box::new(move || read.lock().unwrap().clone()),
        stale: Box::new(|| false),
        on_change: Box::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        }),
    })
    .unwrap();
    *paths.lock().unwrap() = vec![second.clone()];
    watcher.refresh();
    eventually("the second file's change", || {
        fs::write(&second, "x").unwrap();
        changes.load(Ordering::SeqCst) > 0
    });
}

#[cfg(unix)]
#[test]
fn links_out_of_the_rules_are_followed() {
    use std::os::unix::fs::symlink;
    let rules = Rules::small();
    let shared = rules.0.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::write(shared.join("m.toml"), MERCHANT).unwrap();
    fs::remove_file(rules.path().join("merchants/m.toml")).unwrap();
    symlink("../../shared/m.toml", rules.path().join("merchants/m.toml")).unwrap();
    let (live, _, _watcher) = watched(&rules);
    for name in ["in place", "again"] {
        fs::write(shared.join("m.toml"), format!("name = \"{name}\"\n{MERCHANT}")).unwrap();
        eventually(name, || names(&live) == name);
    }
}

#[cfg(unix)]
#[test]
fn a_recreated_linked_directory_is_watched_again() {
    use std::os::unix::fs::symlink;
    let rules = Rules::small();
    let real = rules.0.path().join("generations/1");
    fs::create_dir(rules.0.path().join("generations")).unwrap();
    fs::rename(rules.path(), &real).unwrap();
    symlink("generations/1", rules.path()).unwrap();
    let (live, _, _watcher) = watched(&rules);
    let fill = |name: &str| {
        for (file, text) in [
            ("gateway.toml", String::new()),
            ("shops/s.toml", SHOP.to_owned()),
            ("merchants/m.toml", format!("name = \"{name}\"\n{MERCHANT}")),
        ] {
            rules.put(file, text);
        }
    };
    fs::remove_dir_all(&real).unwrap();
    fs::create_dir(&real).unwrap();
    fill("anew");
    eventually("recreated", || names(&live) == "anew");
    fill("saved");
    eventually("a save in it", || names(&live) == "saved");
    fs::create_dir(rules.0.path().join("generations/2")).unwrap();
    fs::remove_file(rules.path()).unwrap();
    symlink("generations/2", rules.path()).unwrap();
    fill("elsewhere");
    eventually("the link leads elsewhere", || names(&live) == "elsewhere");
    fill("saved there");
    eventually("a save there", || names(&live) == "saved there");
}
