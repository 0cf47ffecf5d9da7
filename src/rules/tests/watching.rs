//! The watcher notices every way of saving a file.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{MERCHANT, Rules, SHOP};
use crate::clock::SystemClock;
use crate::clock::testing::eventually;
use crate::rules::{FileWatch, LiveRules, ReloadOutcome};

/// A pause between polls that is longer than any test: only notifications are left.
const NEVER: Duration = Duration::from_hours(1);

/// Watched rules, and the result of every reload.
struct Watching {
    live: Arc<LiveRules>,
    reloads: Arc<Mutex<Vec<Reload>>>,
    /// Dropped to stop watching.
    _stop: oneshot::Sender<()>,
}

/// The result of a reload: the merchant's name after it, or `None` if the rules were refused.
type Reload = Option<String>;

impl Watching {
    /// Watches as the process does.
    fn new(rules: &Rules) -> Self {
        Self::of(rules, FileWatch::default(), || {})
    }

    /// Watches by notifications alone.
    fn by_notifications(rules: &Rules) -> Self {
        let mut watch = FileWatch::default();
        watch.poll_interval = NEVER;
        Self::of(rules, watch, || {})
    }

    /// Starts watching; `meanwhile` runs after every reload, before the next is waited for.
    fn of(rules: &Rules, mut watch: FileWatch, meanwhile: impl Fn() + Send + 'static) -> Self {
        let (reader, first) = rules.loader();
        let live = Arc::new(LiveRules::new(reader, first, Arc::new(SystemClock)));
        let reloads: Arc<Mutex<Vec<Reload>>> = Arc::default();
        let (watched, noted) = (Arc::clone(&live), Arc::clone(&reloads));
        let (stop, stopped) = oneshot::channel();
        let reload_on_change = async move {
            loop {
                watch.changed(&watched).await;
                let loaded = matches!(watched.reload(), ReloadOutcome::Loaded { .. });
                noted.lock().unwrap().push(loaded.then(|| name(&watched)));
                meanwhile();
            }
        };
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = reload_on_change => {}
                    _ = stopped => {}
                }
            });
        });
        Self { live, reloads, _stop: stop }
    }

    /// Waits until a reload gives the merchant this name; returns all reloads until then.
    #[track_caller]
    fn until(&self, expected: &str) -> Vec<Reload> {
        let expected = Some(expected.to_owned());
        eventually(&format!("{expected:?}"), || self.reloads.lock().unwrap().last() == Some(&expected));
        self.reloads.lock().unwrap().clone()
    }

    /// Waits until a reload is refused.
    #[track_caller]
    fn until_refused(&self) {
        eventually("refused", || self.reloads.lock().unwrap().last() == Some(&None));
    }

    fn count(&self) -> usize {
        self.reloads.lock().unwrap().len()
    }
}

fn name(live: &LiveRules) -> String {
    live.current().merchants.get("m").map_or_else(|| "missing".to_owned(), |merchant| merchant.name.to_string())
}

fn named(name: &str) -> String {
    format!("name = \"{name}\"\n{MERCHANT}")
}

fn file(rules: &Rules) -> PathBuf {
    rules.path().join("merchants/m.toml")
}

/// Returns when another watcher has reported a change that is made now. By then, a watcher has reported every earlier
/// change that it is ever going to.
fn settle() {
    let rules = Rules::small();
    let watching = Watching::by_notifications(&rules);
    fs::write(file(&rules), named("later")).unwrap();
    watching.until("later");
}

/// If a test is delayed this long between two steps, on a busy disk, the watcher may no longer treat them as one save.
const STALL: Duration = Duration::from_millis(250);

/// Asserts that no reload found the merchant missing, unless it was missing for longer than a save takes.
#[track_caller]
fn assert_not_gone(reloads: &[Reload], absence: Duration) {
    let gone = reloads.contains(&Some("missing".into()));
    assert!(!gone || absence > STALL, "gone for {absence:?}: {reloads:?}");
}

#[test]
fn vim_saves() {
    let rules = Rules::small();
    let watching = Watching::by_notifications(&rules);
    let (file, backup, swap) =
        (file(&rules), rules.path().join("merchants/m.toml~"), rules.path().join("merchants/.m.toml.swp"));
    let mut swapped = File::create(swap).unwrap();
    swapped.write_all(b"b0VIM").unwrap();
    for round in ["first", "second"] {
        let absence = Instant::now();
        fs::rename(&file, &backup).unwrap();
        fs::write(&file, named(round)).unwrap();
        let absence = absence.elapsed();
        fs::remove_file(&backup).unwrap();
        assert_not_gone(&watching.until(round), absence);
    }
}

#[test]
fn files_beside_the_rules_cause_no_reload() {
    let rules = Rules::small();
    let watching = Watching::by_notifications(&rules);
    let path = rules.path();
    let (log, old, lock) = (path.join("gateway.log"), path.join("gateway.log.1"), path.join("merchants/.#m.toml"));
    for number in 0..100 {
        fs::write(&log, number.to_string()).unwrap();
        fs::rename(&log, &old).unwrap();
        symlink("ann@host.4913:1", &lock).unwrap();
        fs::write(path.join("access.json"), number.to_string()).unwrap();
        fs::remove_file(&lock).unwrap();
    }
    settle();
    assert_eq!(watching.count(), 0);
    fs::write(file(&rules), named("saved")).unwrap();
    assert_eq!(watching.until("saved"), [Some("saved".into())]);
}

#[test]
fn sed_saves() {
    let rules = Rules::small().with("merchants/m.toml", named("before"));
    let watching = Watching::by_notifications(&rules);
    let status = Command::new("sed").args(["-i", "s/before/after/"]).arg(file(&rules)).status().unwrap();
    assert!(status.success());
    assert!(watching.until("after").iter().all(Option::is_some));
}

#[test]
fn half_a_file_that_is_wrong_leaves_the_last_good_rules() {
    let rules = Rules::small().with("merchants/m.toml", named("whole"));
    let watching = Watching::by_notifications(&rules);
    let text = named("later");
    let (half, rest) = text.split_at(text.len() / 2);
    let mut saved = File::create(file(&rules)).unwrap();
    saved.write_all(half.as_bytes()).unwrap();
    watching.until_refused();
    assert_eq!(name(&watching.live), "whole");
    saved.write_all(rest.as_bytes()).unwrap();
    let reloads = watching.until("later");
    assert_eq!(reloads.iter().flatten().collect::<Vec<_>>(), ["later"], "{reloads:?}");
}

#[test]
fn files_may_be_added_and_removed() {
    let rules = Rules::small();
    let watching = Watching::by_notifications(&rules);
    rules.put("merchants/n.toml", MERCHANT.replace("\"k\"", "\"l\""));
    eventually("a new file", || watching.live.current().merchants.len() == 2);
    fs::remove_file(rules.path().join("merchants/n.toml")).unwrap();
    eventually("a deleted file", || watching.live.current().merchants.len() == 1);
    fs::hard_link(file(&rules), rules.path().join("shops/hard.toml")).unwrap();
    watching.until_refused();
}

/// Fills a directory with rules.
fn fill(directory: &Path, name: &str) {
    for (file, text) in [("gateway.toml", ""), ("shops/s.toml", SHOP), ("merchants/m.toml", &named(name))] {
        let path = directory.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn directories_are_replaced() {
    let rules = Rules::small();
    let watching = Watching::by_notifications(&rules);
    let (path, aside) = (rules.path(), rules.0.path().join("aside"));
    fs::create_dir(&aside).unwrap();
    fs::write(aside.join("m.toml"), named("renamed")).unwrap();
    let absence = Instant::now();
    fs::rename(path.join("merchants"), rules.0.path().join("old")).unwrap();
    fs::rename(&aside, path.join("merchants")).unwrap();
    let absence = absence.elapsed();
    assert_not_gone(&watching.until("renamed"), absence);
    fs::write(file(&rules), named("saved in it")).unwrap();
    let before = watching.until("saved in it").len();
    let absence = Instant::now();
    fs::remove_dir_all(&path).unwrap();
    fill(&path, "recreated");
    let absence = absence.elapsed();
    assert_not_gone(&watching.until("recreated")[before..], absence);
    fs::write(file(&rules), named("saved there")).unwrap();
    watching.until("saved there");
}

#[test]
fn generations_are_swapped() {
    let rules = Rules::small();
    rules.put("gateway.toml", "[tls]\ncertificate = \"../certs/tls.crt\"");
    let (path, certs) = (rules.path(), rules.0.path().join("certs"));
    let generation = |directory: &Path, number: u32, name: &str, text: &str| {
        let next = directory.join(format!("..{number}"));
        fs::create_dir_all(&next).unwrap();
        fs::write(next.join(name), text).unwrap();
        symlink(format!("..{number}"), directory.join("..data_tmp")).unwrap();
        fs::rename(directory.join("..data_tmp"), directory.join("..data")).unwrap();
        if number > 1 {
            fs::remove_dir_all(directory.join(format!("..{}", number - 1))).unwrap();
        }
    };
    generation(&path, 1, "m.toml", &named("1"));
    generation(&certs, 1, "tls.crt", "1");
    fs::remove_file(file(&rules)).unwrap();
    symlink("../..data/m.toml", file(&rules)).unwrap();
    symlink("..data/tls.crt", certs.join("tls.crt")).unwrap();
    let watching = Watching::by_notifications(&rules);
    for number in 2..5 {
        generation(&path, number, "m.toml", &named(&number.to_string()));
        let before = watching.until(&number.to_string()).len();
        generation(&certs, number, "tls.crt", &number.to_string());
        eventually("the certificate", || watching.count() > before);
    }
}

#[test]
fn a_file_that_is_replaced_repeatedly_is_read_meanwhile() {
    let rules = Rules::small();
    let watching = Watching::by_notifications(&rules);
    let next = rules.path().join("merchants/.next");
    let (began, mut saves) = (Instant::now(), 0);
    eventually("reloads while it is replaced", || {
        saves += 1;
        fs::write(&next, named(&saves.to_string())).unwrap();
        fs::rename(&next, file(&rules)).unwrap();
        watching.count() >= 3
    });
    let reloads = watching.until(&saves.to_string()).len();
    assert!(reloads <= most_reloads(began), "{reloads} reloads of {saves} saves");
}

#[test]
fn a_change_during_a_reload_leads_to_another() {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let rules = Rules::small();
    let inside = Arc::clone(&gate);
    let watching = Watching::of(&rules, FileWatch::default(), move || {
        let open = inside.0.lock().unwrap();
        drop(inside.1.wait_while(open, |open| !*open).unwrap());
    });
    fs::write(file(&rules), named("first")).unwrap();
    watching.until("first");
    fs::write(file(&rules), named("second")).unwrap();
    fs::write(rules.path().join("merchants/.n"), MERCHANT.replace("\"k\"", "\"l\"")).unwrap();
    fs::rename(rules.path().join("merchants/.n"), rules.path().join("merchants/n.toml")).unwrap();
    settle();
    assert_eq!(watching.count(), 1, "one at a time");
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    eventually("both", || name(&watching.live) == "second" && watching.live.current().merchants.len() == 2);
}

/// Returns how many reloads changes may have caused since then: two a second, and some at the end.
fn most_reloads(began: Instant) -> usize {
    10 + 2 * usize::try_from(began.elapsed().as_secs()).unwrap()
}

#[test]
fn many_changes_cause_few_reloads() {
    let rules = Rules::small();
    let watching = Watching::new(&rules);
    let began = Instant::now();
    for number in 0..5000 {
        rules.put(&format!("lists/l{number}.txt"), "a\n");
    }
    for number in 0..4000 {
        fs::remove_file(rules.path().join(format!("lists/l{number}.txt"))).unwrap();
    }
    fs::write(file(&rules), named("after the storm")).unwrap();
    eventually("all of it is read", || watching.live.current().version == rules.load().version);
    assert!(watching.count() <= most_reloads(began), "{} reloads of 9001 changes", watching.count());
}

#[test]
fn changes_without_notifications_are_found() {
    let rules = Rules::small();
    let outside = rules.0.path().join("outside.toml");
    fs::hard_link(file(&rules), &outside).unwrap();
    let watching = Watching::new(&rules);
    for round in ["written by its other name", "written there again"] {
        fs::write(&outside, named(round)).unwrap();
        watching.until(round);
    }
    fs::write(&outside, "nmae = 1").unwrap();
    watching.until_refused();
    let before = watching.count();
    fs::write(&outside, named("right again")).unwrap();
    let reloads = watching.until("right again");
    assert_eq!(reloads.len(), before + 1, "a wrong file causes one reload, not one for every poll");
}

#[test]
fn saves_of_every_kind_are_noticed() {
    let rules = Rules::small();
    let watching = Watching::new(&rules);
    let live = Arc::clone(&watching.live);
    let path = rules.path();
    fs::write(path.join("merchants/m.toml"), named("written")).unwrap();
    eventually("written", || name(&live) == "written");
    fs::write(path.join("merchants/.m.new"), named("renamed")).unwrap();
    fs::rename(path.join("merchants/.m.new"), path.join("merchants/m.toml")).unwrap();
    eventually("renamed", || name(&live) == "renamed");
    fs::create_dir(path.join("dialects")).unwrap();
    fs::write(path.join("dialects/d.toml"), "").unwrap();
    eventually("a new directory", || live.current().dialects.len() == 2);
    fs::write(path.join("dialects/d.toml"), "[requests]\nempty_list_is_object = true").unwrap();
    eventually("a file in it", || live.current().dialects["d"].empty_list_is_object);
    fs::remove_file(path.join("dialects/d.toml")).unwrap();
    eventually("removed", || live.current().dialects.len() == 1);
}

#[test]
fn a_recreated_linked_directory_is_watched_again() {
    let rules = Rules::small();
    let real = rules.0.path().join("generations/1");
    fs::create_dir(rules.0.path().join("generations")).unwrap();
    fs::rename(rules.path(), &real).unwrap();
    symlink("generations/1", rules.path()).unwrap();
    let watching = Watching::new(&rules);
    let live = Arc::clone(&watching.live);
    let fill = |name: &str| {
        for (file, text) in
            [("gateway.toml", String::new()), ("shops/s.toml", SHOP.to_owned()), ("merchants/m.toml", named(name))]
        {
            rules.put(file, text);
        }
    };
    fs::remove_dir_all(&real).unwrap();
    fs::create_dir(&real).unwrap();
    fill("anew");
    eventually("recreated", || name(&live) == "anew");
    fill("saved");
    eventually("a save in it", || name(&live) == "saved");
    fs::create_dir(rules.0.path().join("generations/2")).unwrap();
    fs::remove_file(rules.path()).unwrap();
    symlink("generations/2", rules.path()).unwrap();
    fill("elsewhere");
    eventually("the link leads elsewhere", || name(&live) == "elsewhere");
    fill("saved there");
    eventually("a save there", || name(&live) == "saved there");
}

/// The secret in force of the merchant whose secret is in a file.
fn secret(live: &LiveRules) -> String {
    let rules = live.current();
    let secrets = rules.api_key("k").unwrap().api_key().v2_secrets.clone().unwrap();
    String::from_utf8(secrets.signing().expose().to_vec()).unwrap()
}

#[test]
fn every_replacement_of_a_file_outside_the_rules_is_noticed() {
    let root = Rules::small();
    let certs = root.0.path().join("certs");
    let generation = |number: u32, text: &str| {
        fs::create_dir_all(certs.join(format!("..{number}"))).unwrap();
        fs::write(certs.join(format!("..{number}/v2.key")), text).unwrap();
    };
    generation(1, "one");
    symlink("..1", certs.join("..data")).unwrap();
    symlink("..data/v2.key", certs.join("v2.key")).unwrap();
    let rules = root.with("merchants/m.toml", MERCHANT.replace("\"two\"", "\"file:../../certs/v2.key\""));
    let watching = Watching::new(&rules);
    let noticed = |text: &str| eventually(text, || secret(&watching.live) == text);
    noticed("one");
    generation(2, "another generation");
    symlink("..2", certs.join("..data_tmp")).unwrap();
    fs::rename(certs.join("..data_tmp"), certs.join("..data")).unwrap();
    noticed("another generation");
    fs::write(certs.join("..2/v2.key"), "the target in place").unwrap();
    noticed("the target in place");
    fs::remove_dir_all(&certs).unwrap();
    fs::create_dir(&certs).unwrap();
    fs::write(certs.join("v2.key"), "a new directory").unwrap();
    noticed("a new directory");
    fs::write(certs.join("v2.key"), "the file in place").unwrap();
    noticed("the file in place");
    fs::write(certs.join("new"), "renamed").unwrap();
    fs::rename(certs.join("new"), certs.join("v2.key")).unwrap();
    noticed("renamed");
}

#[test]
fn a_file_that_the_rules_name_anew_is_watched() {
    let rules = Rules::small();
    let watching = Watching::by_notifications(&rules);
    let deep = rules.0.path().join("deep");
    fs::create_dir(&deep).unwrap();
    fs::write(deep.join("v2.key"), "first").unwrap();
    rules.put("merchants/m.toml", MERCHANT.replace("\"two\"", "\"file:../../deep/v2.key\""));
    eventually("it is read", || secret(&watching.live) == "first");
    fs::write(deep.join("v2.key"), "second").unwrap();
    eventually("it is read again", || secret(&watching.live) == "second");
}

#[test]
fn a_change_of_the_mode_alone_is_noticed() {
    let rules = Rules::small();
    let watching = Watching::by_notifications(&rules);
    for (number, mode) in [0o600, 0o640].into_iter().enumerate() {
        fs::set_permissions(file(&rules), fs::Permissions::from_mode(mode)).unwrap();
        eventually("a reload", || watching.count() > number);
    }
}

/// Set in the part of a test that runs in its own namespaces, where it may change mounts and limits.
const INSIDE: &str = "PAYBRIDGE_TEST_NAMESPACE";

/// Runs `inside` in a new process with its own namespaces, by running the test there again.
fn run_in_namespaces(test: &str, inside: fn()) {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let able = Command::new("unshare").args(["-rm", "true"]).stderr(Stdio::null()).status();
    if !able.is_ok_and(|status| status.success()) {
        let required = std::env::var_os("PAYBRIDGE_REQUIRE_TOOLS").is_some_and(|value| value == "1");
        assert!(!required, "{test}: namespaces are not available");
        eprintln!("SKIPPED: {test}: namespaces are not available");
        return;
    }
    let this = std::env::current_exe().unwrap();
    let mut unshare = Command::new("unshare");
    unshare.arg("-rm").arg(this).args(["--exact", &format!("rules::tests::watching::{test}"), "--nocapture"]);
    assert!(unshare.env(INSIDE, "1").status().unwrap().success());
}

#[test]
fn polling_works_without_inotify() {
    run_in_namespaces("polling_works_without_inotify", || {
        fs::write("/proc/sys/user/max_inotify_instances", "0").unwrap();
        let rules = Rules::small();
        let watching = Watching::new(&rules);
        for round in ["found", "and again"] {
            fs::write(file(&rules), named(round)).unwrap();
            watching.until(round);
        }
    });
}
