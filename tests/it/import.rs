//! `paybridge import-ids`: what it reserves, what it says, and what a serving gateway answers for reserved ids (contract
//! sections 7 and 12).

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use regex::Regex;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::time::Instant;

use crate::support::bodies::with;
use crate::support::request::{ACME, BETA, Key};
use crate::support::stored::{CREATES, Create};
use crate::support::{Client, Gateway, Request, Rules, eventually, text};

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    /// The one line on stdout, without its time.
    #[track_caller]
    fn summary(&self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        let time = Regex::new(r", in (\d+\.\d s|\d+ min \d+ s)(; the list is complete|)\n$").unwrap();
        assert!(time.is_match(&self.out), "{}", self.out);
        let summary = time.replace(&self.out, "$2").into_owned();
        assert!(!summary.contains('\n'), "{summary}");
        summary
    }

    #[track_caller]
    fn failed(&self) -> &str {
        assert_eq!((self.code, self.out.as_str()), (Some(1), ""), "{}", self.err);
        &self.err
    }
}

fn command(gateway: &Gateway, merchant: &str, kind: &str, file: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paybridge"));
    command
        .args(["import-ids", "--merchant", merchant, "--kind", kind, "--rules"])
        .arg(gateway.rules_dir())
        .arg(file)
        .current_dir(gateway.root.path())
        .env_remove("PAYBRIDGE_RULES")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn start(gateway: &Gateway, merchant: &str, kind: &str, file: &Path) -> Child {
    command(gateway, merchant, kind, file).spawn().unwrap()
}

fn end(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

fn import(gateway: &Gateway, merchant: &str, kind: &str, file: &Path) -> Ran {
    end(start(gateway, merchant, kind, file))
}

/// Imports what comes through a pipe.
fn pipe(gateway: &Gateway, merchant: &str, kind: &str, ids: &str) -> Ran {
    let mut child = start(gateway, merchant, kind, Path::new("-"));
    child.stdin.take().unwrap().write_all(ids.as_bytes()).unwrap();
    end(child)
}

fn file(gateway: &Gateway, name: &str, ids: impl AsRef<[u8]>) -> PathBuf {
    let path = gateway.root.path().join(name);
    std::fs::write(&path, ids).unwrap();
    path
}

/// Whether an id is reserved, without making it anything: a create that today's rules refuse is 409 for a reserved id,
/// and 400 else.
async fn is_reserved(client: &Client, key: &Key, kind: Create, id: &str) -> bool {
    let shop = if kind.is_v1() { "shop_code" } else { "method" };
    let body = with(kind.body(id), shop, Some("off-eur".into()));
    let reply = client.send(&kind.request(key, body.to_string())).await;
    match reply.status {
        409 => true,
        400 => false,
        status => panic!("{status}: {}", reply.text()),
    }
}

// keeps P175, P235, P258, D039, D050
#[tokio::test]
async fn reserved_ids_are_refused_and_nothing_else_changes() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let mine = Create::Payin.body("mine");
    let made = Create::Payin.create(&client, &ACME, &mine).await.json();
    let ids = file(&gateway, "ids.txt", "\u{feff}old-1\r\n\r\nold 2\r\nmine\r\nпривет\nold-1\n");
    let ran = import(&gateway, "acme", "payin", &ids);
    assert_eq!(ran.summary(), "acme payin: 3 new, 1 reserved before, 1 skipped (operations here), 6 lines (1 blank)");
    assert_eq!(ran.err, "line 4: skipped, since an operation here has this id\n");

    for id in ["old-1", "old 2", "привет"] {
        let refused =
            client.send(&Create::Deposit.request(&ACME, Create::Deposit.body(id).to_string())).await.expect(409);
        assert!(refused.message().contains("order_id"), "{}", refused.message());
        let refused = client.send(&Create::Payin.request(&ACME, Create::Payin.body(id).to_string())).await.expect(409);
        let stated = refused.message();
        assert!(stated.contains("external_id") && !stated.contains("order_id"), "v1 words: {stated}");
        assert!(
            is_reserved(&client, &ACME, Create::Deposit, id).await
                && is_reserved(&client, &ACME, Create::Payin, id).await
        );
    }
    client.send(&Request::v1_status(&ACME, "payin", "old-1")).await.expect(404);
    // Another spelling is another id; so are the same names of the other kind and of another merchant.
    Create::Deposit.create(&client, &ACME, &Create::Deposit.body("old-1 ")).await;
    for kind in [Create::Withdrawal, Create::Payout] {
        Create::create(kind, &client, &ACME, &kind.body(if kind.is_v1() { "old-1" } else { "old 2" })).await;
    }
    Create::Payin.create(&client, &BETA, &Create::Payin.body("old-1")).await;
    // What was skipped is what it was.
    assert_eq!(Create::Payin.create(&client, &ACME, &mine).await.json(), made);
    let status = client.send(&Request::v1_status(&ACME, "payin", "mine")).await.expect(200).json();
    assert_eq!(status["transaction_id"], made["transaction_id"]);
    client.send(&Request::status(&ACME, text(&made, "transaction_id"))).await.expect(404);

    let again = import(&gateway, "acme", "payin", &ids).summary();
    assert_eq!(again, "acme payin: 0 new, 4 reserved before, 1 skipped (operations here), 6 lines (1 blank)");
    let others = import(&gateway, "beta", "payout", &ids).summary();
    assert_eq!(others, "beta payout: 4 new, 1 reserved before, 0 skipped (operations here), 6 lines (1 blank)");

    let trail = gateway.actions();
    assert!(trail.iter().all(|row| row.starts_with("cli:") && row.contains("ids.txt") && !row.contains("old-1")));
    let rows = [
        ("acme", "payin", "3 new, 1 reserved before, 1 skipped (operations here)"),
        ("acme", "payin", "0 new, 4 reserved before, 1 skipped (operations here)"),
        ("beta", "payout", "4 new, 1 reserved before, 0 skipped (operations here)"),
    ];
    for ((merchant, kind, counts), row) in rows.into_iter().zip(&trail) {
        assert!(row.contains(&format!(" ids.import {merchant} ")), "{row}");
        assert!(row.ends_with(&format!("\"kind\":\"{kind}\",\"lines\":\"6\"}} {counts}, 6 lines (1 blank)")), "{row}");
    }
    assert_eq!(trail.len(), rows.len(), "{trail:?}");
}

#[tokio::test]
async fn ids_may_be_reserved_before_the_first_start() {
    let mut gateway = Gateway::prepare(&Rules::default());
    let ids = file(&gateway, "ids.txt", "old-1\n");
    assert!(import(&gateway, "acme", "payout", &ids).summary().starts_with("acme payout: 1 new, 0 reserved before"));
    gateway.restart();
    let client = gateway.client();
    assert!(is_reserved(&client, &ACME, Create::Payout, "old-1").await);
    gateway.kill();
    assert!(import(&gateway, "acme", "payout", &ids).summary().starts_with("acme payout: 0 new, 1 reserved before"));
}

#[test]
fn a_bad_file_reserves_nothing() {
    let gateway = Gateway::prepare(&Rules::default());
    let good = "good-1\ngood-2\n";
    let bad = format!("{good}{}\n{}", "x".repeat(256), "a\0b\n".repeat(24));
    let ids = file(&gateway, "ids.txt", bad);
    let ran = import(&gateway, "acme", "payin", Path::new("ids.txt"));
    let stated = ran.failed();
    assert_eq!(stated.lines().count(), 22, "{stated}");
    assert!(
        stated.starts_with("ids.txt:3: must be at most 255 characters\nids.txt:4: must not contain U+0000\n"),
        "{stated}"
    );
    let end = "ids.txt:22: must not contain U+0000\n... and 5 more\n\
               error: ids.txt: 25 of 27 lines cannot be ids; nothing was reserved\n";
    assert!(stated.ends_with(end), "{stated}");
    assert!(!gateway.root.path().join("data").exists(), "nothing was even opened");
    std::fs::write(&ids, [good.as_bytes(), b"\xff\xfe\n"].concat()).unwrap();
    assert!(import(&gateway, "acme", "payin", &ids).failed().contains(":3: must be UTF-8\n"));
    std::fs::write(&ids, good).unwrap();
    assert!(import(&gateway, "acme", "payin", &ids).summary().starts_with("acme payin: 2 new, 0 reserved before"));
}

#[test]
fn a_pipe_is_checked_whole_as_a_file_is() {
    let gateway = Gateway::prepare(&Rules::default());
    let ran = pipe(&gateway, "acme", "payin", "a\n\nb\n\0\nc\n");
    let stated = ran.failed();
    assert_eq!(
        stated,
        "standard input:4: must not contain U+0000\n\
         error: standard input: 1 of 5 lines cannot be ids; nothing was reserved\n"
    );
    let summary = pipe(&gateway, "acme", "payin", "a\n\nb\nc").summary();
    assert_eq!(summary, "acme payin: 3 new, 0 reserved before, 0 skipped (operations here), 4 lines (1 blank)");
    let nothing = pipe(&gateway, "acme", "payin", "").summary();
    assert_eq!(nothing, "acme payin: 0 new, 0 reserved before, 0 skipped (operations here), 0 lines");
}

#[test]
fn a_list_is_complete_until_a_later_import_adds_to_it() {
    const NOTE: &str = "note: the list of payin ids of acme was complete and counts as incomplete again, since ids were \
                        added; import the last of them with --complete\n";
    let gateway = Gateway::prepare(&Rules::default());
    let complete = |kind, file: &Path| end(command(&gateway, "acme", kind, file).arg("--complete").spawn().unwrap());
    let (first, nothing) = (file(&gateway, "ids.txt", "a\nb\n"), file(&gateway, "none.txt", ""));
    let both = file(&gateway, "more.txt", "a\nb\nc\n");
    let bad = file(&gateway, "bad.txt", "d\n\0\n");

    // What fails marks nothing: an import of new ids takes no mark away then.
    complete("payin", &bad).failed();
    let ran = import(&gateway, "acme", "payin", &file(&gateway, "early.txt", "early\n"));
    assert_eq!((ran.summary().starts_with("acme payin: 1 new"), &*ran.err), (true, ""));
    for (marked, expected) in [(&first, "2 new, 0"), (&first, "0 new, 2"), (&nothing, "0 new, 0")] {
        let ran = complete("payin", marked);
        let summary = ran.summary();
        assert!(summary.starts_with(&format!("acme payin: {expected} reserved before")), "{summary}");
        assert!(summary.ends_with("; the list is complete") && ran.err.is_empty(), "{summary}{}", ran.err);
    }
    // Nothing new, another kind and another merchant leave the mark.
    for (merchant, kind, ids) in [("acme", "payin", &first), ("acme", "payout", &both), ("beta", "payin", &both)] {
        let ran = import(&gateway, merchant, kind, ids);
        assert_eq!((ran.summary().ends_with("complete"), &*ran.err), (false, ""), "{merchant} {kind}");
    }
    let ran = import(&gateway, "acme", "payin", &both);
    assert!(ran.summary().starts_with("acme payin: 1 new, 2 reserved before"), "{}", ran.out);
    assert_eq!(ran.err, NOTE);
    let ran = import(&gateway, "acme", "payin", &file(&gateway, "ids.txt", "e\n"));
    assert_eq!((ran.summary().starts_with("acme payin: 1 new"), &*ran.err), (true, ""), "it was incomplete before");
    assert!(complete("payin", &nothing).summary().ends_with("0 lines; the list is complete"));
}

#[test]
fn what_cannot_be_started_is_reported() {
    let gateway = Gateway::prepare(&Rules::default());
    let ids = file(&gateway, "ids.txt", "a\n");
    let stated = import(&gateway, "amce", "payin", &ids);
    assert_eq!(stated.failed(), "error: there is no merchant `amce` in the rules (did you mean `acme`?)\n");
    let stated = import(&gateway, "acme", "payin", Path::new("none.txt"));
    assert!(stated.failed().starts_with("error: none.txt: No such file"), "{}", stated.err);
    let stated = import(&gateway, "acme", "payin", Path::new("rules"));
    assert!(stated.failed().contains("rules: "), "{}", stated.err);
    assert_eq!(import(&gateway, "acme", "refund", &ids).code, Some(2));
}

#[test]
fn unusual_ids_are_reserved_as_they_are_and_reported() {
    let gateway = Gateway::prepare(&Rules::default());
    let ids = file(&gateway, "ids.txt", "a\n b\nc\td\n");
    let ran = import(&gateway, "acme", "payin", &ids);
    assert!(ran.summary().starts_with("acme payin: 3 new"));
    let note =
        ": 2 ids contain control characters or have spaces at either end, the first in line 2; they are reserved";
    assert!(ran.err.contains(note), "{}", ran.err);
}

#[tokio::test]
async fn an_interrupted_import_says_how_far_it_got() {
    let pattern = Regex::new(
        r"^error: interrupted\nso far: (\d+) new, 0 reserved before, 0 skipped \(operations here\), (\d+) lines; run the command again to continue: reserved ids stay reserved\n$",
    )
    .unwrap();
    for signal in [Signal::INT, Signal::TERM] {
        let gateway = Gateway::start(&Rules::default());
        let client = gateway.client();
        let ids = (1..=200_000).fold(String::new(), |mut ids, number| {
            let _ = writeln!(ids, "o-{number}");
            ids
        });
        let ids = file(&gateway, "ids.txt", ids);
        let child = command(&gateway, "acme", "payin", &ids).arg("--complete").spawn().unwrap();
        eventually("some batches", async || is_reserved(&client, &ACME, Create::Deposit, "o-4000").await.then_some(()))
            .await;
        kill_process(Pid::from_child(&child), signal).unwrap();
        let ran = end(child);
        let reported = pattern.captures(ran.failed()).unwrap_or_else(|| panic!("{}", ran.err));
        assert_eq!(reported[1], reported[2]);
        let done: u64 = reported[1].parse().unwrap();
        assert!((4000..200_000).contains(&done) && done.is_multiple_of(1000), "{done}");
        assert!(is_reserved(&client, &ACME, Create::Deposit, &format!("o-{done}")).await);
        assert!(!is_reserved(&client, &ACME, Create::Deposit, &format!("o-{}", done + 1)).await);
        let more = import(&gateway, "acme", "payin", &file(&gateway, "more.txt", "more\n"));
        assert_eq!((more.code, &*more.err), (Some(0), ""), "the list was not marked as complete");
    }
}

/// Callers who create without a pause until they are told to stop.
struct Load {
    stop: Arc<AtomicBool>,
    created: Arc<AtomicU64>,
    callers: Vec<tokio::task::JoinHandle<Duration>>,
}

impl Load {
    fn start(gateway: &Gateway) -> Self {
        let (stop, created) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let callers = (0..4)
            .map(|caller| {
                let (client, stop, created) = (gateway.client(), stop.clone(), created.clone());
                tokio::spawn(async move {
                    let (kind, mut longest) = (CREATES[caller], Duration::ZERO);
                    let mut connection = client.connect().await;
                    while !stop.load(Ordering::Relaxed) {
                        let number = created.fetch_add(1, Ordering::Relaxed);
                        let started = Instant::now();
                        let body = kind.body(&format!("load-{caller}-{number}")).to_string();
                        connection.send(&kind.request(&ACME, body)).await.expect(200);
                        longest = longest.max(started.elapsed());
                    }
                    longest
                })
            })
            .collect();
        Self { stop, created, callers }
    }

    /// Ends it; every create was answered 200, or this panics.
    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        let mut longest = Duration::ZERO;
        for caller in self.callers {
            longest = longest.max(caller.await.unwrap());
        }
        let created = self.created.load(Ordering::Relaxed);
        let _ = writeln!(std::io::stderr(), "{created} creates beside the import, the longest in {longest:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_killed_half_way_is_run_again_beside_a_serving_gateway() {
    const LINES: u64 = 200_000;
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let ids = (1..=LINES).fold(String::new(), |mut ids, number| {
        let _ = writeln!(ids, "{number:08x}-old");
        ids
    });
    let ids = file(&gateway, "ids.txt", ids);
    let load = Load::start(&gateway);
    let mut first = start(&gateway, "acme", "payin", &ids);
    let early = format!("{:08x}-old", 20_000);
    eventually("a tenth of the ids", async || is_reserved(&client, &ACME, Create::Payin, &early).await.then_some(()))
        .await;
    first.kill().unwrap();
    assert_eq!(end(first).code, None, "killed before its end");
    let second = tokio::task::spawn_blocking({
        let second = start(&gateway, "acme", "payin", &ids);
        move || end(second)
    });
    let summary = second.await.unwrap().summary();
    load.end().await;
    let counts =
        Regex::new(r"^acme payin: (\d+) new, (\d+) reserved before, 0 skipped \(operations here\), 200000 lines$")
            .unwrap();
    let counts = counts.captures(&summary).unwrap_or_else(|| panic!("{summary}"));
    let [new, known] = [1, 2].map(|group| counts[group].parse::<u64>().unwrap());
    assert!(new + known == LINES && known >= 20_000 && new > 0, "{summary}");
    for number in [1, 20_001, 100_000, LINES] {
        assert!(is_reserved(&client, &ACME, Create::Deposit, &format!("{number:08x}-old")).await);
    }
    assert!(!is_reserved(&client, &ACME, Create::Deposit, &format!("{:08x}-old", LINES + 1)).await);
    let order = with(Create::Deposit.body("new"), "amount", Some(json!(3.5)));
    Create::Deposit.create(&client, &ACME, &order).await;
}
