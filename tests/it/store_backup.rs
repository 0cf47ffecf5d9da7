//! `paybridge store backup`: a copy of a SQLite store that is served meanwhile (contract section 12).

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use regex::Regex;
use serde_json::Value;

use crate::support::gateway::files_below;
use crate::support::postgres;
use crate::support::request::ACME;
use crate::support::stored::{CREATES, Create};
use crate::support::{CARD, Gateway, Request, Rules, eventually, text};

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

fn backup(gateway: &Gateway, to: &Path) -> Ran {
    let output = gateway.store_command("backup").arg(to).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// How many operations the copy holds.
#[track_caller]
fn operations(ran: &Ran) -> usize {
    // What takes over a second reports its progress on stderr.
    assert_eq!(ran.code, Some(0), "{} {}", ran.out, ran.err);
    assert!(!ran.err.contains("error"), "{}", ran.err);
    let line = Regex::new(r"copy\.db: a copy of the store with (\d+) operations?, in \d+\.\d s\n$").unwrap();
    let counted = line.captures(&ran.out).unwrap_or_else(|| panic!("{}", ran.out));
    counted[1].parse().unwrap()
}

/// A directory for copies, which holds nothing.
fn shelf(gateway: &Gateway) -> PathBuf {
    let shelf = gateway.root.path().join("backups");
    std::fs::create_dir(&shelf).unwrap();
    shelf
}

/// Puts a copy where the store was, as an operator would.
pub fn restore(gateway: &Gateway, copy: &Path) {
    let data = gateway.root.path().join("data");
    std::fs::rename(&data, gateway.root.path().join("data-of-before")).unwrap();
    std::fs::create_dir(&data).unwrap();
    std::fs::copy(copy, data.join("paybridge.db")).unwrap();
}

type Creates = Arc<Mutex<Vec<(Create, String, Value)>>>;

/// Creates without a pause, and remembers what was answered.
fn keep_creating(gateway: &Gateway, reported: &Creates) -> tokio::task::JoinHandle<()> {
    let (client, reported) = (gateway.client(), Arc::clone(reported));
    tokio::spawn(async move {
        for (number, kind) in CREATES.into_iter().cycle().enumerate() {
            let id = format!("order-{number}");
            let reply = kind.create(&client, &ACME, &kind.body(&id)).await.json();
            reported.lock().unwrap().push((kind, id, reply));
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_starts_on_a_backup_that_was_made_while_creates_ran() {
    let mut gateway = Gateway::start_on_file(&Rules::default());
    let copy = shelf(&gateway).join("copy.db");
    let reported = Creates::default();
    let creating = keep_creating(&gateway, &reported);
    let answered = || reported.lock().unwrap().len();
    eventually("some creates", async || (answered() >= 40).then_some(())).await;
    let before = answered();
    let ran = tokio::task::block_in_place(|| backup(&gateway, &copy));
    let during = answered();
    eventually("it goes on", async || (answered() > during + 10).then_some(())).await;
    creating.abort();
    let _ = creating.await;
    let count = operations(&ran);
    assert!(count >= before, "{count} of {before}");
    assert!(during > before, "creates went on meanwhile");
    let left = std::fs::read_dir(copy.parent().unwrap()).unwrap().count();
    assert_eq!(left, 1, "nothing is left beside it");
    assert_eq!(std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    let card = regex::bytes::Regex::new(CARD).unwrap();
    assert!(files_below(copy.parent().unwrap()).iter().all(|(_, bytes)| !card.is_match(bytes)));

    gateway.kill();
    restore(&gateway, &copy);
    assert_eq!(gateway.store_check().status.code(), Some(0));
    assert!(gateway.store_command("adopt").arg("--accept-loss").output().unwrap().status.success());
    gateway.restart();
    let client = gateway.client();
    let reported = std::mem::take(&mut *reported.lock().unwrap());
    for (kind, id, reply) in &reported[..before] {
        assert_eq!(&kind.create(&client, &ACME, &kind.body(id)).await.json(), reply, "{id} is known");
        client.send(&kind.status(&ACME, id, reply)).await.expect(200);
    }
    let connection = rusqlite::Connection::open(gateway.root.path().join("data/paybridge.db")).unwrap();
    let stored: i64 = connection.query_row("SELECT count(*) FROM operations", [], |row| row.get(0)).unwrap();
    assert_eq!(usize::try_from(stored), Ok(count), "the repeats made nothing");
    eventually("what was pending goes on", async || {
        let paid = reported[..before].iter().find(|(kind, ..)| *kind == Create::Withdrawal).unwrap();
        let status = client.send(&Request::status(&ACME, text(&paid.2, "transaction_id"))).await.expect(200).json();
        (status["status"] == "SUCCESS").then_some(())
    })
    .await;
}

#[tokio::test]
async fn nothing_is_overwritten() {
    let mut gateway = Gateway::start_on_file(&Rules::default());
    Create::Payin.create(&gateway.client(), &ACME, &Create::Payin.body("one")).await;
    let shelf = shelf(&gateway);
    let copy = shelf.join("copy.db");
    std::fs::write(&copy, "another's").unwrap();
    let link = shelf.join("link.db");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    let data = gateway.root.path().join("data");
    gateway.kill();
    let before = files_below(gateway.root.path());
    for (to, stated) in [
        (copy.clone(), "exists already"),
        (link, "exists already"),
        (data.join("paybridge.db"), "exists already"),
        (data.join("paybridge.db-journal"), "name another file"),
        (shelf.join("none/copy.db"), "cannot create"),
    ] {
        let ran = backup(&gateway, &to);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (Some(1), "", 1), "{}", ran.err);
        assert!(ran.err.starts_with("error: ") && ran.err.contains(stated), "{}", ran.err);
    }
    // What the gateway left in its log is moved by whoever closes the store last.
    let others = |files: Vec<(PathBuf, Vec<u8>)>| -> Vec<_> {
        files.into_iter().filter(|(path, _)| !path.starts_with(&data)).collect()
    };
    assert_eq!(others(files_below(gateway.root.path())), others(before));
    std::fs::remove_file(&copy).unwrap();
    assert_eq!(operations(&backup(&gateway, &copy)), 1);
}

#[tokio::test]
async fn a_store_with_problems_is_copied_all_the_same() {
    let mut gateway = Gateway::start_on_file(&Rules::default());
    Create::Payout.create(&gateway.client(), &ACME, &Create::Payout.body("one")).await;
    gateway.kill();
    gateway.tamper("UPDATE entries SET amount = amount + 1 WHERE amount > 0");
    let copy = shelf(&gateway).join("copy.db");
    let ran = backup(&gateway, &copy);
    assert_eq!(ran.code, Some(1));
    let (first, problems) = ran.out.split_once('\n').unwrap();
    assert!(first.contains("a copy of the store with 1 operation, in "), "{first}");
    assert!(problems.contains("acme"), "{problems}");
    assert_eq!(ran.err, "error: the copy is complete, but the store has problems\n");
    assert!(copy.exists());
}

#[test]
fn another_key_copies_nothing() {
    let mut gateway = Gateway::start_on_file(&Rules::default());
    gateway.kill();
    std::fs::write(gateway.root.path().join("secrets/store.key"), "QSBrZXkgdGhhdCBubyBzdG9yZSB3YXMgbWFkZSB3aXQ=")
        .unwrap();
    let shelf = shelf(&gateway);
    let ran = backup(&gateway, &shelf.join("copy.db"));
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert!(ran.err.contains("no key of store.keys opens this store"), "{}", ran.err);
    assert_eq!(std::fs::read_dir(shelf).unwrap().count(), 0);
}

#[test]
fn postgres_is_copied_with_its_own_tools() {
    let Some(server) = postgres::server() else { return };
    let gateway = Gateway::prepare_on(&Rules::default(), Some(Arc::new(server.database())));
    let shelf = shelf(&gateway);
    let ran = backup(&gateway, &shelf.join("copy.db"));
    assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (Some(1), "", 1), "{}", ran.err);
    assert!(ran.err.contains("pg_dump") && ran.err.contains("pg_basebackup"), "{}", ran.err);
    assert_eq!(std::fs::read_dir(shelf).unwrap().count(), 0);
}

/// A URL would be the name of a file.
#[tokio::test]
async fn a_copy_is_named_by_its_path() {
    let gateway = Gateway::start(&Rules::default());
    for to in ["sqlite:copy.db", "file:copy.db?mode=rwc"] {
        let ran = backup(&gateway, Path::new(to));
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{}", ran.err);
        assert!(ran.err.contains("is the path of the copy, and no URL"), "{}", ran.err);
        assert!(!gateway.root.path().join(to).exists());
    }
}
