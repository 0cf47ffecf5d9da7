//! A store that another unreleased build made is refused, and left as it is (contract section 15).

use std::process::Command;

use crate::support::gateway::on_postgres;
use crate::support::request::ACME;
use crate::support::stored::{CREATES, Create};
use crate::support::{Gateway, Rules, postgres};

/// Another hash.
fn another() -> &'static str {
    if on_postgres() { "UPDATE format SET hash = 'another'" } else { "UPDATE format SET hash = x'00'" }
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
    for change in [another(), "DELETE FROM format", "DROP TABLE format"] {
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
        .query_row("SELECT '\\x' || lower(hex(hash)) FROM format", [], |row| row.get::<_, String>(0))
        .unwrap();
    let of_copy = database.sql("SELECT hash FROM format");
    assert_eq!(of_copy.len(), of_source.len());
    assert_ne!(of_copy, of_source, "the schemas differ");

    // Neither a source nor a target of another build is copied.
    database.sql("UPDATE format SET hash = 'another'");
    assert_refused(copy());
    gateway.tamper("DELETE FROM format");
    assert_refused(copy());
}
