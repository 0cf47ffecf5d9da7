//! What a start refuses, and what a rule set tells.

use super::scripted::{Scripted, created};
use super::{before, before_scripted, id_of, payin, send};
use crate::support::request::ACME;
use crate::support::{Gateway, Request, Rules, bodies};

/// Starts it again with these rules, which its store does not belong to.
fn refuses(mut gateway: Gateway, rules: &Rules, words: &str) {
    gateway.kill();
    rules.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
    gateway.spawn();
    assert_eq!(gateway.wait().code(), Some(1), "{}", gateway.log());
    let log = gateway.log();
    let reported: Vec<_> = log.lines().filter(|line| line.contains(words)).collect();
    let [line] = reported[..] else { panic!("not one line with {words} in {log}") };
    assert!(line.contains("engine.url") && line.contains("store.url"), "{line}");
}

#[tokio::test]
async fn a_store_belongs_to_one_kind_of_engine() {
    let engine = Scripted::start(|_, _| created("7")).await;
    let remote = before(engine.address.port(), &engine.ca(), "");
    let journaled = before_scripted(&engine, "");
    id_of(&payin(&journaled, &bodies::payin("in-1")).await);
    refuses(journaled, &Rules::default(), "the store holds operations of a remote engine");

    let embedded = Gateway::start(&Rules::default());
    send(&embedded, &Request::deposit(&ACME, &bodies::deposit("n-1"))).await.expect(200);
    refuses(embedded, &remote, "the store holds operations of the embedded engine");
}

#[tokio::test]
async fn reserved_orders_are_refused_to_both_versions() {
    let engine = Scripted::start(|_, _| created("7")).await;
    let gateway = before_scripted(&engine, "");
    let ids = gateway.root.path().join("ids.txt");
    std::fs::write(&ids, "old\n").unwrap();
    let mut import = std::process::Command::new(env!("CARGO_BIN_EXE_paybridge"));
    import.args(["import-ids", "--merchant", "acme", "--kind", "payin", "--rules"]).arg(gateway.rules_dir()).arg(&ids);
    assert!(import.output().unwrap().status.success());
    for request in [Request::payin(&ACME, &bodies::payin("old")), Request::deposit(&ACME, &bodies::deposit("old"))] {
        let refused = send(&gateway, &request).await.expect(409);
        assert!(refused.message().contains("is reserved"), "{}", refused.message());
    }
    assert_eq!(engine.count(), 0, "nothing was asked");
    id_of(&payin(&gateway, &bodies::payin("v1")).await);
    let native = send(&gateway, &Request::deposit(&ACME, &bodies::deposit("v1"))).await.expect(409);
    assert!(native.message().contains("created through v1"), "{}", native.message());
    assert_eq!(engine.count(), 1);
}

#[tokio::test]
async fn a_drain_does_not_wait_for_connections_that_are_kept() {
    let engine = Scripted::start(|_, _| created("7")).await;
    let mut gateway = before_scripted(&engine, "");
    id_of(&payin(&gateway, &bodies::payin("in-1")).await);
    gateway.signal(rustix::process::Signal::TERM);
    assert_eq!(gateway.wait().code(), Some(0));
    assert!(!gateway.log().contains("cut off"), "{}", gateway.log());
}

#[tokio::test]
async fn another_engine_takes_a_restart() {
    let engine = Scripted::start(|_, _| created("7")).await;
    let gateway = before_scripted(&engine, "");
    let rules = before(engine.address.port(), &engine.ca(), "timeout = \"1s\"");
    rules.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
    crate::support::eventually("a reload says so", async || {
        let log = gateway.log();
        log.lines().any(|line| line.contains("take effect at the next start") && line.contains("engine")).then_some(())
    })
    .await;
    id_of(&payin(&gateway, &bodies::payin("in-1")).await);
}
