//! Restored backups: refused until they are adopted, and what was lost with the disk is never made anew (contract section 15).

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use regex::Regex;
use serde_json::{Value, json};

use crate::legacy::{import, old_service, operations, rules};
use crate::remote::before;
use crate::store_backup::restore;
use crate::store_copy::move_to;
use crate::support::postgres;
use crate::support::request::{ACME, BETA};
use crate::support::stored::{CREATES, Create};
use crate::support::{Gateway, Reply, Request, Rules, payin};

/// What the refusal of a backup begins with, and the time until which it knows orders.
const REFUSAL: &str = r"^error: [^\n]*: is a backup, which knows orders until (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z): repeats of later ones would be made anew\. Run paybridge store adopt first[^\n]*\n$";

const MODES: [&str; 5] = [
    "mode = \"translate\"",
    "mode = \"legacy\"",
    "mode = \"shadow\"",
    "mode = \"staged\"",
    "mode = \"staged\", percent = 100",
];

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs a command on the rules of a gateway.
fn run(gateway: &Gateway, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paybridge"));
    command.args(words).arg("--rules").arg(gateway.rules_dir()).current_dir(gateway.root.path());
    command.env_remove("PAYBRIDGE_RULES").stdin(Stdio::null()).output().unwrap()
}

/// Asserts that a command failed with one line; returns it.
#[track_caller]
fn failed(output: &Output) -> &str {
    let stated = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""), "{stated}");
    stated
}

/// Asserts that a command refused a backup; returns until when that knows orders.
#[track_caller]
fn refused(output: &Output) -> String {
    let stated = failed(output);
    Regex::new(REFUSAL).unwrap().captures(stated).unwrap_or_else(|| panic!("{stated}"))[1].to_owned()
}

#[track_caller]
fn succeeded(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn back_up(gateway: &Gateway, name: &str) -> PathBuf {
    let copy = gateway.root.path().join(name);
    succeeded(&gateway.store_command("backup").arg(&copy).output().unwrap());
    copy
}

const fn direction(kind: Create) -> &'static str {
    match kind {
        Create::Payin | Create::Deposit => "payin",
        Create::Payout | Create::Withdrawal => "payout",
    }
}

/// Returns the lines of a list of these orders of acme.
fn lines_of(lost: &HashMap<String, (Create, Value)>) -> String {
    lost.iter().fold(String::new(), |mut lines, (id, (kind, _))| {
        let _ = writeln!(lines, "acme,{},{id}", direction(*kind));
        lines
    })
}

/// Writes a list of lost ids; returns its path.
fn list(gateway: &Gateway, lines: &str) -> String {
    let file = gateway.root.path().join("lost.csv");
    std::fs::write(&file, format!("merchant,direction,order_id\n{lines}")).unwrap();
    file.to_str().unwrap().to_owned()
}

fn adopt(gateway: &Gateway, words: &[&str]) -> Output {
    gateway.store_command("adopt").args(words).output().unwrap()
}

/// Creates an order of each kind, of ids that begin with `name`; returns the replies by id.
async fn create_each(gateway: &Gateway, name: &str) -> HashMap<String, (Create, Value)> {
    let mut made = HashMap::new();
    for kind in CREATES {
        let id = format!("{name}-{kind:?}");
        let reply = kind.create(&gateway.client(), &ACME, &kind.body(&id)).await.json();
        made.insert(id, (kind, reply));
    }
    made
}

/// Asserts that no request of a lost order does anything but being refused.
async fn assert_lost(gateway: &Gateway, lost: &HashMap<String, (Create, Value)>, mode: &str) {
    let client = gateway.client();
    let conflict = async |request: &Request, member: &str| {
        let reply: Reply = client.send(request).await.expect(409);
        let stated = format!("{member}: is reserved: its order was lost when the service was restored from a backup");
        assert_eq!(reply.message(), stated, "{mode}: {}", request.target);
    };
    for (id, (kind, reply)) in lost {
        let direction = direction(*kind);
        let (v1, v2) =
            if direction == "payin" { (Create::Payin, Create::Deposit) } else { (Create::Payout, Create::Withdrawal) };
        conflict(&v1.request(&ACME, v1.body(id).to_string()), "external_id").await;
        conflict(&v2.request(&ACME, v2.body(id).to_string()), "order_id").await;
        client.send(&Request::v1_status(&ACME, direction, id)).await.expect(404);
        if !kind.is_v1() {
            client.send(&kind.status(&ACME, id, reply)).await.expect(404);
        }
    }
}

#[tokio::test]
async fn what_was_lost_with_the_disk_is_never_made_anew() {
    let old = old_service();
    let mut gateway = Gateway::start_on_file(&rules(&old, "", MODES[0]));
    let kept = create_each(&gateway, "kept").await;
    let copy = back_up(&gateway, "copy.db");
    let lost = create_each(&gateway, "lost").await;
    gateway.reload_with(&rules(&old, "", MODES[1]));
    gateway.client().send(&Request::payin(&ACME, &payin("forwarded"))).await.expect(200);
    gateway.kill();
    restore(&gateway, &copy);

    // Nothing serves or changes it, and it can be read.
    let until = refused(&gateway.command().output().unwrap());
    let ids = gateway.root.path().join("ids.txt");
    std::fs::write(&ids, "old\n").unwrap();
    let ids = ids.to_str().unwrap();
    for words in [
        &["import-ids", "--merchant", "acme", "--kind", "payin", ids][..],
        &["import-ids", "--merchant", "acme", "--kind", "payin", "--complete", ids],
        &["store", "rekey"],
        &["callbacks", "resend", "--failed"],
        &["operations", "ask", "1"],
        &["operations", "acknowledge", "1"],
    ] {
        assert_eq!(refused(&run(&gateway, words)), until, "{words:?}");
    }
    for words in [&["operations", "list"][..], &["callbacks", "list"]] {
        succeeded(&run(&gateway, words));
    }
    let checked = run(&gateway, &["store", "check"]);
    let line = format!("a backup, which knows orders until {until} and was not adopted\n");
    assert!(succeeded(&checked).ends_with(&line), "{}", text(&checked.stdout));
    let actions = gateway.actions();
    let exported = run(&gateway, &["export", "operations", "--from", "2026-01-01", "--to", "2100-01-01"]);
    assert_eq!(succeeded(&exported).lines().count(), 5, "{}", text(&exported.stdout));
    assert!(text(&exported.stderr).contains("note: the store is a backup that was not adopted"), "{exported:?}");
    assert_eq!(gateway.actions(), actions, "nothing changes it");
    assert_eq!(operations(&gateway), 4);
    // A copy of a backup knows no more than the backup.
    back_up(&gateway, "again.db");
    restore_again(&gateway, "again.db");
    assert_eq!(refused(&gateway.command().output().unwrap()), until);

    let more = "acme,payin,forwarded\nbeta,payin,\"with, comma\"\nacme,payin,kept-Payin\n";
    let file = list(&gateway, &(more.to_owned() + &lines_of(&lost)));
    let adopted = adopt(&gateway, &["--ids", &file]);
    let line = format!(
        r"^6 lost, 1 skipped, since they have a home; adopted the backup, which knows orders until {until}, in \d+\.\d s\n$"
    );
    assert!(Regex::new(&line).unwrap().is_match(succeeded(&adopted)), "{}", text(&adopted.stdout));
    let trail = gateway.actions();
    let row = format!(
        " store.adopt store {{\"file\":\"{file}\",\"ids\":\"7\",\"known_until\":\"{until}\"}} 6 lost, 1 skipped, since"
    );
    assert!(trail.last().unwrap().contains(&row), "{trail:?}");

    let forwarded = old.count();
    gateway.restart();
    for (id, (kind, reply)) in &kept {
        assert_eq!(&kind.create(&gateway.client(), &ACME, &kind.body(id)).await.json(), reply, "{id} is known");
    }
    import(&gateway, "payin", "", &["--complete"]);
    import(&gateway, "payout", "", &["--complete"]);
    for mode in MODES {
        gateway.reload_with(&rules(&old, "", mode));
        assert_lost(&gateway, &lost, mode).await;
        gateway.client().send(&Request::payin(&ACME, &payin("forwarded"))).await.expect(409);
        // Whatever else a body has, in a mode that would forward it.
        let body = json!({ "external_id": "lost-Payin", "anything": [] });
        let status = gateway.client().send(&Request::payin(&ACME, &body)).await.status;
        assert!([400, 409].contains(&status), "{mode}: {status}");
    }
    gateway.reload_with(&Rules::default());
    assert_lost(&gateway, &lost, "without an old service").await;
    gateway.client().send(&Request::payin(&BETA, &payin("with, comma"))).await.expect(409);
    assert_eq!(old.count(), forwarded, "the old service saw nothing of them");
    let found = gateway.admin_get("/api/operations?order_id=lost-Payin").unwrap();
    let found: Value = serde_json::from_str(&found.1).unwrap();
    let elsewhere = &found["elsewhere"];
    assert_eq!((&elsewhere[0]["home"], elsewhere.as_array().unwrap().len()), (&json!("lost"), 1), "{found}");
    assert!(failed(&adopt(&gateway, &["--ids", &file])).contains("another process serves this store"));
    assert_eq!(operations(&gateway), 4, "nothing was made anew");
}

/// Puts a copy of the backup in its place.
fn restore_again(gateway: &Gateway, name: &str) {
    std::fs::remove_dir_all(gateway.root.path().join("data-of-before")).unwrap();
    restore(gateway, &gateway.root.path().join(name));
}

#[tokio::test]
async fn before_a_remote_engine_nothing_of_a_lost_order_reaches_it() {
    let engine = Gateway::start(&Rules::default());
    let (port, ca) = (engine.public.port(), engine.root.path().join("certs/ca.pem"));
    let old = old_service();
    let with_old = |mode: &str| {
        let (url, old_ca) = (old.url(""), old.ca());
        let legacy = format!("url = \"{url}\"\ntrust = [\"{}\"]\n", old_ca.display());
        let named = "name = \"Acme Ltd\"\n";
        before(port, &ca, "").with("legacy", &legacy).edit(
            "merchants/acme.toml",
            named,
            &format!("{named}v1 = {{ {mode} }}\n"),
        )
    };
    let mut gateway = Gateway::start_on_file(&before(port, &ca, ""));
    let kept = gateway.client().send(&Request::payin(&ACME, &payin("kept"))).await.expect(200).json();
    let copy = back_up(&gateway, "copy.db");
    let lost = create_each(&gateway, "lost").await;
    gateway.kill();
    restore(&gateway, &copy);
    let lost: HashMap<_, _> = lost.into_iter().filter(|(_, (kind, _))| kind.is_v1()).collect();
    let adopted = adopt(&gateway, &["--ids", &list(&gateway, &lines_of(&lost))]);
    assert!(succeeded(&adopted).starts_with("2 lost, 0 skipped"), "{}", text(&adopted.stdout));
    gateway.restart();
    assert_eq!(gateway.client().send(&Request::payin(&ACME, &payin("kept"))).await.expect(200).json(), kept);
    let at_engine = operations(&engine);
    assert_lost(&gateway, &lost, "without an old service").await;
    for mode in MODES {
        gateway.reload_with(&with_old(mode));
        assert_lost(&gateway, &lost, mode).await;
    }
    assert_eq!((operations(&engine), old.count()), (at_engine, 0));
}

#[test]
fn a_list_with_an_invalid_line_adopts_nothing() {
    let mut gateway = Gateway::start_on_file(&Rules::default());
    let copy = back_up(&gateway, "copy.db");
    gateway.kill();
    restore(&gateway, &copy);
    let lines = "acme,payin,good\namce,payin,a\n\nacme,refund,b\nacme,payout,\"two\nlines\"\nacme,payout, padded\nacme,payout,\nacme,payin\n";
    let file = list(&gateway, lines);
    let stated = format!(
        "note: {file}: 1 ids contain control characters or have spaces at either end, the first in line 8; they are reserved \
         unchanged\n\
         {file}:3: `merchant`: there is no merchant `amce` in the rules (did you mean `acme`?)\n\
         {file}:5: `direction` must be payin or payout\n\
         {file}:6: `order_id` must not have a line break: a quotation mark may not be closed\n\
         {file}:9: `order_id` must not be empty\n\
         {file}:10: has 2 fields instead of 3\n\
         error: {file}: 5 of 7 lines cannot be ids; nothing was reserved\n"
    );
    assert_eq!(failed(&adopt(&gateway, &["--ids", &file])), stated);
    std::fs::write(Path::new(&file), "acme,payin,good\n").unwrap();
    let stated = format!("error: {file}: line 1: must be the head merchant,direction,order_id\n");
    assert_eq!(failed(&adopt(&gateway, &["--ids", &file])), stated);
    refused(&gateway.command().output().unwrap());

    // One of the two.
    for words in [&[][..], &["--accept-loss", "--ids", &file]] {
        assert_eq!(adopt(&gateway, words).status.code(), Some(2), "{words:?}");
    }
    let accepted = adopt(&gateway, &["--accept-loss"]);
    assert!(succeeded(&accepted).starts_with("adopted the backup, which knows orders until "), "{accepted:?}");
    assert!(failed(&adopt(&gateway, &["--accept-loss"])).contains("is not marked as a backup"));
    let again = adopt(&gateway, &["--ids", &list(&gateway, "acme,payin,good\nacme,payin,good\n")]);
    assert!(succeeded(&again).starts_with("1 lost, 1 skipped, since they have a home, in "), "{again:?}");
    gateway.restart();
}

#[tokio::test]
async fn a_copy_of_a_backup_in_a_database_is_adopted_there() {
    let Some(server) = postgres::server() else { return };
    let mut gateway = Gateway::start_on_file(&Rules::default());
    let kept = create_each(&gateway, "kept").await;
    let copy = back_up(&gateway, "copy.db");
    let lost = create_each(&gateway, "lost").await;
    gateway.kill();
    let database = Arc::new(server.database());
    let mut copying = gateway.store_command("copy");
    copying.arg("--from").arg(format!("sqlite:{}", copy.display())).args(["--to", &database.url()]);
    succeeded(&copying.output().unwrap());
    move_to(&mut gateway, &Rules::default(), &database);
    refused(&gateway.command().output().unwrap());
    refused(&run(&gateway, &["store", "rekey"]));
    assert_eq!(operations(&gateway), 4);
    let adopted = adopt(&gateway, &["--ids", &list(&gateway, &lines_of(&lost))]);
    assert!(succeeded(&adopted).starts_with("4 lost, 0 skipped"), "{}", text(&adopted.stdout));
    gateway.restart();
    for (id, (kind, reply)) in &kept {
        assert_eq!(&kind.create(&gateway.client(), &ACME, &kind.body(id)).await.json(), reply, "{id} is known");
    }
    assert_lost(&gateway, &lost, "in a database").await;
    assert_eq!(operations(&gateway), 4, "nothing was made anew");

    // PostgreSQL's own tools leave no mark: the same list serves, also beside a gateway.
    let more = list(&gateway, "acme,payin,later\n");
    assert!(failed(&adopt(&gateway, &["--accept-loss"])).contains("is not marked as a backup"));
    assert!(
        succeeded(&adopt(&gateway, &["--ids", &more])).starts_with("1 lost, 0 skipped, since they have a home, in ")
    );
    gateway.client().send(&Request::payin(&ACME, &payin("later"))).await.expect(409);
}
