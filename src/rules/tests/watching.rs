//! The watcher notices every way of saving a file, and no partly written file is loaded.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::{MERCHANT, Rules, SHOP};
use crate::clock::ManualClock;
use crate::clock::testing::eventually;
use crate::domain::UnixMillis;
use crate::rules::{LiveRules, ReloadOutcome, Watched, Watcher};

/// How changes are found: by notifications only, or also by polling.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detection {
    Notifications,
    WithPolling,
}

/// Watched rules, and the result of every reload.
struct Watching {
    live: Arc<LiveRules>,
    reloads: Arc<Mutex<Vec<Reload>>>,
    /// How often the watcher has checked whether the rules are stale.
    polls: Arc<AtomicUsize>,
    /// How often the watcher has read the paths, and listed their directories.
    follows: Arc<AtomicUsize>,
    _watcher: Watcher,
}

/// The result of a reload: the merchant's name after it, or `None` if the rules were refused.
type Reload = Option<String>;

impl Watching {
    fn new(rules: &Rules, detection: Detection) -> Self {
        Self::of(rules, detection, || {})
    }

    /// Starts a watcher; `meanwhile` runs in every reload, after the files were read.
    fn of(rules: &Rules, detection: Detection, meanwhile: impl Fn() + Send + 'static) -> Self {
        let clock = Arc::new(ManualClock::at(UnixMillis(7)));
        let (reader, first) = rules.loader();
        let live = Arc::new(LiveRules::new(reader, first, clock));
        let reloads: Arc<Mutex<Vec<Reload>>> = Arc::default();
        let polls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&polls);
        let follows = Arc::new(AtomicUsize::new(0));
        let followed = Arc::clone(&follows);
        let (path, polled) = (rules.path(), Arc::clone(&live));
        let (reloaded, noted) = (Arc::clone(&live), Arc::clone(&reloads));
        let watcher = Watcher::start(Watched {
            paths: Box::new(move || {
                followed.fetch_add(1, Ordering::SeqCst);
                vec![path.clone()]
            }),
            stale: Box::new(move || {
                let stale = detection == Detection::WithPolling && polled.stale();
                counted.fetch_add(1, Ordering::SeqCst);
                stale
            }),
            on_change: Box::new(move || {
                let loaded = matches!(reloaded.reload(), ReloadOutcome::Loaded { .. });
                noted.lock().unwrap().push(loaded.then(|| name(&reloaded)));
                meanwhile();
            }),
        });
        Self { live, reloads, polls, follows, _watcher: watcher.unwrap() }
    }

    /// Waits until a reload gives the merchant this name; returns all reloads until then.
    #[track_caller]
    fn until(&self, expected: &str) -> Vec<Reload> {
        let expected = Some(expected.to_owned());
        eventually(&format!("{expected:?}"), || self.reloads.lock().unwrap().last() == Some(&expected));
        self.reloads.lock().unwrap().clone()
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
/// change that it is ever going to: it waits longest for a file that vanished.
fn settle() {
    let directory = tempfile::tempdir().unwrap();
    let (path, reported) = (directory.path().join("later.toml"), Arc::new(AtomicBool::new(false)));
    fs::write(&path, "").unwrap();
    let (watched, noted) = (path.clone(), Arc::clone(&reported));
    let _watcher = Watcher::start(Watched {
        paths: Box::new(move || vec![watched.clone()]),
        stale: Box::new(|| false),
        on_change: Box::new(move || noted.store(true, Ordering::SeqCst)),
    })
    .unwrap();
    fs::remove_file(&path).unwrap();
    eventually("a later change", || reported.load(Ordering::SeqCst));
}

/// If a test is delayed this long between two steps, on a busy disk, the watcher may no longer treat them as one save.
const STALL: Duration = Duration::from_millis(300);

/// Asserts that no reload found the merchant missing, unless it was missing for longer than a save takes.
#[track_caller]
fn assert_not_gone(reloads: &[Reload], absence: Duration) {
    let gone = reloads.contains(&Some("missing".into()));
    assert!(!gone || absence > STALL, "gone for {absence:?}: {reloads:?}");
}

#[test]
fn vim_saves() {
    let rules = Rules::small();
    let watching = Watching::new(&rules, Detection::Notifications);
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
fn temporary_files_of_editors_are_ignored() {
    let rules = Rules::small();
    let watching = Watching::new(&rules, Detection::Notifications);
    let merchants = rules.path().join("merchants");
    let mut swap = File::create(merchants.join(".m.toml.swp")).unwrap();
    fs::write(merchants.join("4913"), "").unwrap();
    fs::write(merchants.join("m.toml~"), "").unwrap();
    swap.write_all(b"b0VIM").unwrap();
    fs::remove_file(merchants.join("m.toml~")).unwrap();
    settle();
    assert_eq!(watching.count(), 0);
    fs::write(file(&rules), named("saved")).unwrap();
    assert_eq!(watching.until("saved"), [Some("saved".into())]);
}

#[test]
fn files_beside_the_rules_cause_no_listing() {
    let rules = Rules::small();
    let watching = Watching::new(&rules, Detection::Notifications);
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
    fs::write(file(&rules), named("saved")).unwrap();
    assert_eq!(watching.until("saved"), [Some("saved".into())]);
    assert_eq!(watching.follows.load(Ordering::SeqCst), 1, "the first listing");
}

#[test]
fn sed_saves() {
    let rules = Rules::small().with("merchants/m.toml", named("before"));
    let watching = Watching::new(&rules, Detection::Notifications);
    let status = Command::new("sed").args(["-i", "s/before/after/"]).arg(file(&rules)).status().unwrap();
    assert!(status.success());
    assert!(watching.until("after").iter().all(Option::is_some));
}

#[test]
fn half_a_file_is_never_served() {
    let rules = Rules::small().with("merchants/m.toml", named("whole"));
    let watching = Watching::new(&rules, Detection::Notifications);
    let text = named("later");
    // The first half is a valid merchant, without keys.
    let (half, rest) = text.split_at(text.find("[[api_keys]]").unwrap());
    for (round, truncate) in [true, false].into_iter().enumerate() {
        let absence = Instant::now();
        if !truncate {
            fs::remove_file(file(&rules)).unwrap();
        }
        let mut saved = File::create(file(&rules)).unwrap();
        let absence = absence.elapsed();
        saved.write_all(half.replace("later", &format!("later {round}")).as_bytes()).unwrap();
        settle();
        saved.write_all(rest.as_bytes()).unwrap();
        drop(saved);
        let reloads = watching.until(&format!("later {round}"));
        assert_not_gone(&reloads, absence);
        assert!(reloads.len() == round + 1 || absence > STALL, "one save is one reload: {reloads:?}");
        assert_eq!(watching.live.current().api_keys.len(), 1, "with its key");
    }
}

#[test]
fn half_a_new_file_is_never_served() {
    let rules = Rules::small();
    let watching = Watching::new(&rules, Detection::Notifications);
    let mut saved = File::create(rules.path().join("merchants/n.toml")).unwrap();
    saved.write_all(b"name = \"new\"\n").unwrap();
    settle();
    assert_eq!(watching.count(), 0, "the file is not complete");
    saved.write_all(MERCHANT.replace("\"k\"", "\"l\"").as_bytes()).unwrap();
    drop(saved);
    eventually("the new merchant", || watching.live.current().api_keys.len() == 2);
}

#[test]
fn a_file_that_is_never_closed_is_read_in_the_end() {
    let rules = Rules::small().with("merchants/m.toml", named("whole"));
    let watching = Watching::new(&rules, Detection::WithPolling);
    let mut open = File::create(file(&rules)).unwrap();
    open.write_all(named("open").as_bytes()).unwrap();
    watching.until("open");
    rules.put("lists/l.txt", "a");
    let version = watching.live.current().version.clone();
    eventually("another save is not delayed", || watching.live.current().version != version);
}

#[test]
fn files_may_be_added_and_removed() {
    let rules = Rules::small();
    let watching = Watching::new(&rules, Detection::Notifications);
    rules.put("merchants/n.toml", MERCHANT.replace("\"k\"", "\"l\""));
    eventually("a new file", || watching.live.current().merchants.len() == 2);
    fs::remove_file(rules.path().join("merchants/n.toml")).unwrap();
    eventually("a deleted file", || watching.live.current().merchants.len() == 1);
    fs::hard_link(file(&rules), rules.path().join("shops/hard.toml")).unwrap();
    eventually("a hard link, which is never closed", || watching.live.last_error().is_some());
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
    let watching = Watching::new(&rules, Detection::Notifications);
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
    let (path, certs) = (rules.path(), rules.0.path().join("certs"));
    let generation = |number: u32| {
        fs::create_dir_all(path.join(format!("..{number}"))).unwrap();
        fs::write(path.join(format!("..{number}/m.toml")), named(&number.to_string())).unwrap();
        fs::create_dir_all(certs.join(format!("..{number}"))).unwrap();
        fs::write(certs.join(format!("..{number}/tls.crt")), number.to_string()).unwrap();
        for directory in [&path, &certs] {
            symlink(format!("..{number}"), directory.join("..data_tmp")).unwrap();
            fs::rename(directory.join("..data_tmp"), directory.join("..data")).unwrap();
            if number > 1 {
                fs::remove_dir_all(directory.join(format!("..{}", number - 1))).unwrap();
            }
        }
    };
    generation(1);
    fs::remove_file(file(&rules)).unwrap();
    symlink("../..data/m.toml", file(&rules)).unwrap();
    symlink("..data/tls.crt", certs.join("tls.crt")).unwrap();
    let watching = Watching::new(&rules, Detection::Notifications);
    let (certificate, served) = (certs.join("tls.crt"), Arc::new(Mutex::new(String::new())));
    let (read, noted) = (certificate.clone(), Arc::clone(&served));
    let _certificates = Watcher::start(Watched {
        paths: Box::new(move || vec![certificate.clone()]),
        stale: Box::new(|| false),
        on_change: Box::new(move || *noted.lock().unwrap() = fs::read_to_string(&read).unwrap_or_default()),
    });
    for number in 2..5 {
        generation(number);
        watching.until(&number.to_string());
        eventually("the certificate", || *served.lock().unwrap() == number.to_string());
    }
}

#[test]
fn a_file_that_is_replaced_repeatedly_is_read_meanwhile() {
    let rules = Rules::small();
    let watching = Watching::new(&rules, Detection::Notifications);
    let next = rules.path().join("merchants/.next");
    let began = Instant::now();
    let mut saves = 0;
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
    let watching = Watching::of(&rules, Detection::Notifications, move || {
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
    let watching = Watching::new(&rules, Detection::WithPolling);
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
    let watching = Watching::new(&rules, Detection::WithPolling);
    for round in ["written by its other name", "written there again"] {
        fs::write(&outside, named(round)).unwrap();
        watching.until(round);
    }
    fs::write(&outside, "nmae = 1").unwrap();
    eventually("refused", || watching.live.last_error().is_some());
    let polls = || watching.polls.load(Ordering::SeqCst);
    let next_poll = || {
        let now = polls();
        eventually("a poll", || polls() > now);
    };
    next_poll();
    let count = watching.count();
    next_poll();
    next_poll();
    assert_eq!(watching.count(), count, "a wrong file causes one reload, not one for every poll");
}

#[test]
fn polling_causes_no_reload_and_staleness_limited_reloads() {
    let directory = tempfile::tempdir().unwrap();
    let (polls, reloads) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let always = Arc::new(AtomicBool::new(false));
    let (polled, is_stale, counted) = (Arc::clone(&polls), Arc::clone(&always), Arc::clone(&reloads));
    let path = directory.path().to_owned();
    let _watcher = Watcher::start(Watched {
        paths: Box::new(move || vec![path.clone()]),
        stale: Box::new(move || {
            polled.fetch_add(1, Ordering::SeqCst);
            is_stale.load(Ordering::SeqCst)
        }),
        on_change: Box::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        }),
    })
    .unwrap();
    eventually("polls", || polls.load(Ordering::SeqCst) > 3);
    assert_eq!(reloads.load(Ordering::SeqCst), 0);
    always.store(true, Ordering::SeqCst);
    eventually("found", || reloads.load(Ordering::SeqCst) > 2);
    assert!(reloads.load(Ordering::SeqCst) < polls.load(Ordering::SeqCst), "no reload without a poll");
}

#[test]
fn a_panic_in_a_reload_does_not_stop_the_watcher() {
    let rules = Rules::small();
    let path = rules.path();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let _watcher = Watcher::start(Watched {
        paths: Box::new(move || vec![path.clone()]),
        stale: Box::new(|| false),
        on_change: Box::new(move || assert!(counted.fetch_add(1, Ordering::SeqCst) > 0, "the first one")),
    })
    .unwrap();
    for call in 1..3 {
        fs::write(file(&rules), named(&call.to_string())).unwrap();
        eventually("called", || calls.load(Ordering::SeqCst) >= call);
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
fn a_bind_mounted_file_is_found() {
    run_in_namespaces("a_bind_mounted_file_is_found", || {
        let rules = Rules::small();
        let outside = rules.0.path().join("outside.toml");
        fs::write(&outside, named("mounted")).unwrap();
        let mounted = Command::new("mount").arg("--bind").args([&outside, &file(&rules)]).status().unwrap();
        assert!(mounted.success());
        let watching = Watching::new(&rules, Detection::WithPolling);
        assert_eq!(name(&watching.live), "mounted");
        for round in ["written outside", "and again"] {
            fs::write(&outside, named(round)).unwrap();
            watching.until(round);
        }
    });
}

#[test]
fn polling_works_without_inotify() {
    run_in_namespaces("polling_works_without_inotify", || {
        fs::write("/proc/sys/user/max_inotify_instances", "0").unwrap();
        let rules = Rules::small();
        let watching = Watching::new(&rules, Detection::WithPolling);
        for round in ["found", "and again"] {
            fs::write(file(&rules), named(round)).unwrap();
            watching.until(round);
        }
    });
}
