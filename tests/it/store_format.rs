//! The formats of stores (contract section 15): a store that another unreleased build made is refused, and left as it is; a
//! gateway serves a store that the next release has added to, and leaves when it is locked out.

use std::process::{Command, Output};

use crate::support::gateway::on_postgres;
use crate::support::request::ACME;
use crate::support::stored::{CREATES, Create};
use crate::support::{Gateway, Rules, eventually, postgres};

/// Another hash.
fn another() -> &'static str {
    if on_postgres() {
        "UPDATE paybridge_formats SET hash = 'another'"
    } else {
        "UPDATE paybridge_formats SET hash = x'00'"
    }
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

/// What `paybridge store version` prints.
fn version(gateway: &Gateway) -> String {
    let output = gateway.store_command("version").args(["--format", "json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    stdout(&output).to_owned()
}

/// Adds what a next release might.
fn upgrade(gateway: &Gateway) {
    let (hash, column) = if on_postgres() { ("'next'", "text") } else { ("x'02'", "TEXT") };
    gateway.tamper(&format!(
        "ALTER TABLE operations ADD COLUMN region {column}; CREATE TABLE regions (region {column}); \
         INSERT INTO paybridge_formats (format, state, release, hash) VALUES (2, 0, '0.2.0', {hash})"
    ));
}

#[track_caller]
fn assert_refused(mut command: Command) {
    let output = command.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{command:?}: {error}");
    let reason = "was made by an unreleased build of Paybridge, with another schema or other fingerprints: use the build \
                  that made it, or start with a new store";
    assert!(error.contains(reason), "{command:?}: {error}");
}

#[tokio::test]
async fn a_store_of_another_unreleased_build_is_refused() {
    for change in [another(), "DELETE FROM paybridge_formats"] {
        let mut gateway = Gateway::start(&Rules::default());
        let body = Create::Payout.body("one");
        let reply = Create::Payout.create(&gateway.client(), &ACME, &body).await.json();
        gateway.kill();
        gateway.restart();
        assert_eq!(Create::Payout.create(&gateway.client(), &ACME, &body).await.json(), reply, "its own build goes on");
        gateway.kill();
        gateway.tamper(change);
        assert_refused(gateway.command());
        for command in ["check", "rekey"] {
            assert_refused(gateway.store_command(command));
        }
        if !on_postgres() {
            let mut backup = gateway.store_command("backup");
            backup.arg(gateway.root.path().join("copy.db"));
            assert_refused(backup);
            assert!(!gateway.root.path().join("copy.db").exists());
        }
    }
}

#[tokio::test]
async fn a_copy_has_the_format_of_its_own_database() {
    let Some(server) = postgres::server() else { return };
    let database = server.database();
    let mut gateway = Gateway::start_on_file(&Rules::default());
    for kind in CREATES {
        kind.create(&gateway.client(), &ACME, &kind.body(&format!("{kind:?}"))).await;
    }
    gateway.kill();
    let copy = || {
        let mut command = gateway.store_command("copy");
        command.args(["--from", "sqlite:data/paybridge.db", "--to", &database.url()]);
        command
    };
    assert!(copy().output().unwrap().status.success());
    let of_source = rusqlite::Connection::open(gateway.root.path().join("data/paybridge.db"))
        .unwrap()
        .query_row("SELECT '\\x' || lower(hex(hash)) FROM paybridge_formats", [], |row| row.get::<_, String>(0))
        .unwrap();
    let of_copy = database.sql("SELECT hash FROM paybridge_formats");
    assert_eq!(of_copy.len(), of_source.len());
    assert_ne!(of_copy, of_source, "the schemas differ");

    // Neither a source nor a target of another build is copied.
    database.sql("UPDATE paybridge_formats SET hash = 'another'");
    assert_refused(copy());
    gateway.tamper("DELETE FROM paybridge_formats");
    assert_refused(copy());
}

#[tokio::test]
async fn a_gateway_serves_what_the_next_release_added_and_leaves_when_it_is_locked_out() {
    let mut gateway = Gateway::start(&Rules::default().with("server", "drain_delay = \"3s\""));
    let release = env!("CARGO_PKG_VERSION");
    assert_eq!(version(&gateway), format!("{{\"format\":1,\"readable_from\":1,\"release\":\"{release}\"}}\n"));
    let text = gateway.store_command("version").output().unwrap();
    assert_eq!(stdout(&text), format!("format 1, given by release {release}; readable from format 1\n"));
    upgrade(&gateway);
    let create = async |gateway: &Gateway, id| {
        let body = Create::Payout.body(id);
        gateway.client().send(&Create::Payout.request(&ACME, body.to_string())).await
    };
    create(&gateway, "beside").await.expect(200);
    gateway.kill();
    gateway.restart();
    create(&gateway, "after").await.expect(200);
    assert_eq!(version(&gateway), "{\"format\":2,\"readable_from\":1,\"release\":\"0.2.0\"}\n");
    assert!(gateway.store_check().status.success(), "additions are passed over");

    gateway.tamper("UPDATE paybridge_formats SET state = 1 WHERE format = 2");
    let reason = "only releases from format 2 on can serve it, and this release has format 1";
    eventually("it notices", async || (create(&gateway, "late").await.status == 503).then_some(())).await;
    let (status, ready) = gateway.admin_get("/readyz").unwrap();
    assert!(status == 503 && ready.contains(reason), "{ready}");
    assert_eq!(gateway.wait().code(), Some(1));
    assert!(gateway.log().contains(reason), "{}", gateway.log());

    assert_eq!(version(&gateway), "{\"format\":2,\"readable_from\":2,\"release\":\"0.2.0\"}\n");
    for mut command in [gateway.command(), gateway.store_command("check"), gateway.store_command("finish-upgrade")] {
        let output = command.output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        let refusal =
            "has format 2 and can be served by releases from format 2 on, but this release has format 1: start a";
        assert!(output.status.code() == Some(1) && error.contains(refusal), "{command:?}: {error}");
    }
}

#[tokio::test]
async fn an_upgrade_that_was_interrupted_is_finished_while_a_gateway_serves() {
    let gateway = Gateway::start(&Rules::default());
    gateway.tamper("UPDATE paybridge_formats SET state = 1");
    let finish = || gateway.store_command("finish-upgrade").output().unwrap();
    let finished = finish();
    assert!(finished.status.success(), "{finished:?}");
    let done = "the upgrade to format 1 is finished: older releases cannot serve the store any more";
    assert_eq!(stdout(&finished), format!("{done}\n"));
    let progress = String::from_utf8_lossy(&finished.stderr).into_owned();
    assert!(
        progress.contains("waiting for older gateways to leave: ") && progress.contains(" of 10 s without one"),
        "{progress}"
    );
    let again = "nothing to do: the upgrade to format 1 was finished before";
    assert_eq!(stdout(&finish()), format!("{again}\n"));
    let trail = gateway.actions();
    let ends: Vec<_> = trail.iter().map(|row| row.split_once("store.finish_upgrade format 1 {} ").unwrap().1).collect();
    assert_eq!(ends, [done, again]);
    Create::Payout.create(&gateway.client(), &ACME, &Create::Payout.body("served")).await.json();
    assert!(gateway.store_check().status.success());
}
