//! What operators are told when a node's database or key is not there.

use std::process::{Command, Output};

use super::*;
use crate::support::bodies::deposit;

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[tokio::test]
async fn why_creates_are_refused_is_in_the_log_now_and_then() {
    let Some(server) = server() else { return };
    let database = Arc::new(server.database());
    let mut gateway = Gateway::prepare_on(&Rules::default(), Some(Arc::clone(&database)));
    gateway.spawn();
    assert!(gateway.wait_ready(), "{}", gateway.log());
    let name = database.sql("SELECT current_database()");
    database.sql(&format!("ALTER DATABASE {name} SET default_transaction_read_only = on"));
    database.sql(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE datname = current_database() AND application_name = 'paybridge'",
    );
    for number in 0..3 {
        gateway.client().send(&Request::deposit(&ACME, &deposit(&format!("order-{number}")))).await.expect(503);
    }
    eventually("three lines", async || {
        let lines = gateway.log().matches(" status=503 reason=unavailable ").count();
        (lines == 3).then_some(())
    })
    .await;
    let log = gateway.log();
    let reported: Vec<_> = log.lines().filter(|line| line.contains("a request was refused for now")).collect();
    let cause = "the database cannot be reached: the database does not allow writes";
    assert!(reported.len() == 1 && reported[0].contains("WARN") && reported[0].contains(cause), "{log}");
}

#[test]
fn a_node_that_lacks_a_key_makes_none_and_no_store() {
    let Some(server) = server() else { return };
    let database = Arc::new(server.database());
    for (name, why) in
        [("store.key", "none is created for PostgreSQL"), ("pages.key", "the default file of pages.secret")]
    {
        let gateway = Gateway::prepare_on(&Rules::default(), Some(Arc::clone(&database)));
        let key = gateway.root.path().join("secrets").join(name);
        std::fs::remove_file(&key).unwrap();
        let ran = gateway.command().output().unwrap();
        assert_eq!(ran.status.code(), Some(1));
        let stated = stderr(&ran);
        let line = stated.lines().find(|line| line.starts_with("error: ")).unwrap_or_else(|| panic!("{stated}"));
        assert!(line.contains(name) && line.contains(why) && line.contains("openssl rand -base64 32"), "{stated}");
        assert!(!key.exists() && database.sql("SELECT to_regclass('paybridge_formats') IS NULL") == "t");
    }
}

#[test]
fn a_database_that_is_away_is_reported_in_a_line() {
    let rules = tempfile::tempdir().unwrap();
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let store = format!("[store]\nurl = \"postgres://u:TOPSECRET@127.0.0.1:9/db?sslmode=disable\"\nkeys = \"{key}\"\n");
    std::fs::write(rules.path().join("gateway.toml"), store).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_paybridge"));
    let ran = command.args(["store", "check", "--rules"]).arg(rules.path()).output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    let stated = stderr(&ran);
    assert!(stated.starts_with("error: postgres://127.0.0.1:9/db: ") && stated.lines().count() == 1, "{stated}");
    assert!(!stated.contains("TOPSECRET") && ran.stdout.is_empty(), "{stated}");
}
