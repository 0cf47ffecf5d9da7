//! What a start refuses, and what a rule set tells.

use super::scripted::{Scripted, created};
use super::support::request::ACME;
use super::support::{Gateway, Request, Rules, bodies};
use super::{before, before_scripted, id_of, payin, send};

/// Starts it again with these rules, which its store does not belong to.
fn refuses(mut gateway: Gateway, rules: &Rules, words: &str) {
    gateway.kill();
    rules.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
    gateway.spawn();
    assert_eq!(gateway.wait().code(), Some(1), "{}", gateway.log());
    let log = gateway.log();
    let told: Vec<_> = log.lines().filter(|line| line.contains(words)).collect();
    let [line] = told[..] else { panic!("not one line with {words} in {log}") };
    assert!(line.contains("engine.url") && line.contains("store.url"), "{line}");
}

#[tokio::test]
async fn a_store_belongs_to_one_kind_of_engine() {
    let engine = Scripted::start(|_, _| created("7")).await;
    let remote = before(engine.address.port(), &engine.ca(), "");
    let journaled = before_scripted(&engine, "");
    id_of(&payin(&journaled, &bodies::payin("in-1")).await);
    refuses(journaled, &Rules::default(), "the store holds what passed through to a remote engine");

    let embedded = Gateway::start(&Rules::default());
    send(&embedded, &Request::deposit(&ACME, &bodies::deposit("n-1"))).await.expect(200);
    refuses(embedded, &remote, "the store holds operations of the embedded engine");
}

#[tokio::test]
async fn another_engine_takes_a_restart() {
    let engine = Scripted::start(|_, _| created("7")).await;
    let gateway = before_scripted(&engine, "");
    let rules = before(engine.address.port(), &engine.ca(), "timeout = \"1s\"");
    rules.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
    super::support::eventually("a reload says so", async || {
        let log = gateway.log();
        log.lines().any(|line| line.contains("take effect at the next start") && line.contains("engine")).then_some(())
    })
    .await;
    id_of(&payin(&gateway, &bodies::payin("in-1")).await);
}
