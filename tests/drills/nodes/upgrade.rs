//! Two neighbouring releases on one store, under load: the next one takes the place of this one, goes back, takes it again and
//! finishes the upgrade (contract section 15). Nothing is lost or doubled, and nothing fails but with 503.
//!
//! The next release is made up: this one with the feature `next-format`. `.ci/full` builds it and names its program in
//! `PAYBRIDGE_NEXT`; without it the tests say so and pass. `PAYBRIDGE_LONG=1` goes forward and back more often.

use std::path::{Path, PathBuf};

use super::*;
use crate::support::rules::{STORE_URL, write_file};
use crate::support::tools;

/// The program of the next release.
fn next_release() -> Option<PathBuf> {
    let named = std::env::var_os("PAYBRIDGE_NEXT").filter(|name| !name.is_empty()).map(PathBuf::from);
    if named.is_none() {
        tools::say("!! PAYBRIDGE_NEXT names no next release, so that upgrades were NOT tested (`.ci/full` does)");
    }
    named
}

fn this_release() -> PathBuf {
    env!("CARGO_BIN_EXE_paybridge").into()
}

/// The releases that take each other's place, the next one last.
fn turns(next: &Path) -> Vec<PathBuf> {
    let times = if std::env::var_os("PAYBRIDGE_LONG").is_some() { 6 } else { 1 };
    let there_and_back = std::iter::repeat_n([next.to_owned(), this_release()], times).flatten();
    there_and_back.chain([next.to_owned()]).collect()
}

/// Stops a gateway as a service manager does, and starts a release in its place.
fn replace(gateway: &mut Gateway, release: &Path) {
    gateway.signal(Signal::TERM);
    assert!(gateway.wait().success(), "{}", gateway.log());
    release.clone_into(&mut gateway.program);
    gateway.restart();
}

/// Runs a command on the store with a release, and returns what it prints.
#[track_caller]
fn store(gateway: &mut Gateway, release: &Path, command: &str) -> String {
    let running = std::mem::replace(&mut gateway.program, release.to_owned());
    let output = gateway.store_command(command).output().unwrap();
    gateway.program = running;
    assert!(output.status.success(), "{command}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Finishes the upgrade with the next release.
#[track_caller]
fn finish(gateway: &mut Gateway, next: &Path) {
    let finished = tokio::task::block_in_place(|| store(gateway, next, "finish-upgrade"));
    assert_eq!(finished, "the upgrade to format 2 is finished: older releases cannot serve the store any more\n");
}

#[track_caller]
fn assert_version(gateway: &mut Gateway, readable_from: u32) {
    let version = store(gateway, &this_release(), "version");
    assert_eq!(version, format!("format 2, given by release next; readable from format {readable_from}\n"));
}

/// A start of this release is refused.
#[track_caller]
fn assert_locked_out(gateway: &mut Gateway) {
    gateway.program = this_release();
    let output = gateway.command().output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    let refusal = "has format 2 and can be served by releases from format 2 on, but this release has format 1";
    assert!(output.status.code() == Some(1) && error.contains(refusal), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_rolled_forward_and_back_and_the_upgrade_is_finished() {
    let (Some(server), Some(next)) = (server(), next_release()) else { return };
    let receiver = Arc::new(Receiver::good());
    let mut nodes = Nodes::start(server, &rules(&receiver));
    let (load, callers) = Load::start(nodes.clients(), &receiver, true).await;
    for release in turns(&next) {
        for gateway in &mut nodes.gateways {
            replace(gateway, &release);
            load.goes_on(20).await;
        }
        assert_version(&mut nodes.gateways[0], 1);
    }
    assert_clean(&nodes.gateways[0]);

    // Two nodes are still of this release: one works, the other is frozen until all is over.
    for gateway in &mut nodes.gateways[1..] {
        replace(gateway, &this_release());
    }
    assert_clean(&nodes.gateways[1]);
    load.goes_on(20).await;
    nodes.gateways[2].signal(Signal::STOP);
    finish(&mut nodes.gateways[0], &next);
    let left = "SELECT count(*) FROM pg_indexes WHERE indexname = 'actions_by_both'";
    assert_eq!(nodes.database.sql(left), "0", "it was narrowed");
    nodes.gateways[2].signal(Signal::CONT);
    for gateway in &mut nodes.gateways[1..] {
        let status = tokio::task::block_in_place(|| gateway.wait());
        assert_eq!(status.code(), Some(1), "{}", gateway.log());
        assert!(gateway.log().contains("only releases from format 2 on can serve it"), "{}", gateway.log());
        assert_locked_out(gateway);
        gateway.program.clone_from(&next);
        gateway.restart();
    }
    assert_version(&mut nodes.gateways[0], 2);
    load.goes_on(20).await;
    let orders = load.stop(callers).await;
    assert_all_is_there(&nodes, &receiver, &orders).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_upgraded_rolled_back_and_upgraded() {
    let Some(next) = next_release() else { return };
    let receiver = Arc::new(Receiver::good());
    let mut gateway = Gateway::start_on_file(&rules(&receiver));
    let (load, callers) = Load::start(vec![gateway.client()], &receiver, true).await;
    for release in turns(&next) {
        replace(&mut gateway, &release);
        load.goes_on(50).await;
        assert_version(&mut gateway, 1);
        assert_clean(&gateway);
    }

    // An older gateway serves when the upgrade is finished.
    replace(&mut gateway, &this_release());
    load.goes_on(20).await;
    finish(&mut gateway, &next);
    assert_eq!(gateway.wait().code(), Some(1), "{}", gateway.log());
    assert_locked_out(&mut gateway);
    gateway.program.clone_from(&next);
    gateway.restart();
    assert_version(&mut gateway, 2);
    load.goes_on(20).await;
    let orders = load.stop(callers).await;
    assert_found_once(&[gateway.client()], &orders).await;
    assert_reported(&gateway.client(), &receiver, &orders).await;
    assert_clean(&gateway);
    gateway.kill();
    let file = rusqlite::Connection::open(gateway.root.path().join("data/paybridge.db")).unwrap();
    let stored: i64 = file.query_row("SELECT count(*) FROM operations", [], |row| row.get(0)).unwrap();
    assert_eq!(stored, i64::try_from(orders.len()).unwrap(), "rows and orders");
}

/// No gateway serves a backup, so that none of the next release has upgraded it.
#[tokio::test]
async fn a_backup_of_this_release_is_adopted_by_the_next_one() {
    let (Some(server), Some(next)) = (server(), next_release()) else { return };
    for database in [None, Some(Arc::new(server.database()))] {
        let rules = Rules::default();
        let mut gateway = Gateway::start_on_file(&rules);
        let body = Create::Payin.body("kept");
        let kept = Create::Payin.create(&gateway.client(), &ACME, &body).await.json();
        let backup = gateway.root.path().join("backup.db");
        assert!(gateway.store_command("backup").arg(&backup).output().unwrap().status.success());
        gateway.kill();
        let data = gateway.root.path().join("data");
        std::fs::remove_dir_all(&data).unwrap();
        if let Some(database) = database {
            let from = format!("sqlite:{}", backup.display());
            let copied =
                gateway.store_command("copy").args(["--from", &from, "--to", &database.url()]).output().unwrap();
            assert!(copied.status.success(), "{copied:?}");
            write_file(&gateway.root.path().join(STORE_URL), &database.url());
            rules.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
            gateway.database = Some(database);
        } else {
            std::fs::create_dir(&data).unwrap();
            std::fs::copy(&backup, data.join("paybridge.db")).unwrap();
        }
        gateway.program.clone_from(&next);
        let refused = String::from_utf8(gateway.command().output().unwrap().stderr).unwrap();
        assert!(refused.contains("Run paybridge store adopt first"), "{refused}");
        let adopted = gateway.store_command("adopt").arg("--accept-loss").output().unwrap();
        assert!(adopted.status.success(), "{adopted:?}");
        assert_version(&mut gateway, 1);
        for release in [next.clone(), this_release()] {
            gateway.program = release;
            gateway.restart();
            assert_eq!(Create::Payin.create(&gateway.client(), &ACME, &body).await.json(), kept);
            gateway.kill();
        }
    }
}
