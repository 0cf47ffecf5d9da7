//! Audits of damaged stores.

use std::sync::Mutex;

use super::*;
use crate::clock::{SystemClock, SystemRandomness};
use crate::domain::Secret;
use crate::store::Store;
use crate::store::conformance::damage::{DAMAGES, assert_found, fill, sql_of};
use crate::store::conformance::{audited as clean, created, journaled, pending_create, withdrawal};
use crate::store::postgres::tests::server;
use crate::store::postgres::{PostgresStore, open};
use crate::store_settings::{PostgresUrl, StoreKeys};

/// A store in a database of its own; `None` where PostgreSQL is not installed.
pub(in crate::store::postgres) fn opened() -> Option<(server::Database, PostgresStore)> {
    let database = server::server()?.database();
    let store = node_of(&database);
    Some((database, store))
}

/// One more node of a database.
pub(in crate::store::postgres) fn node_of(database: &server::Database) -> PostgresStore {
    let url = PostgresUrl::parse(&database.url(), |path| path.into()).unwrap();
    let keys = StoreKeys { create_at: None, keys: vec![Secret::new(&[1; 32])] };
    open(&url, &keys, Arc::new(SystemClock), Arc::new(SystemRandomness::default()), Arc::default()).unwrap().store
}

/// Replaces the constraints that keep rows consistent by some that allow everything.
const UNCHECKED: &str = "ALTER TABLE operations DROP CONSTRAINT operations_state, \
    ADD CONSTRAINT operations_state CHECK (true); \
    ALTER TABLE tasks DROP CONSTRAINT tasks_state, ADD CONSTRAINT tasks_state CHECK (true); \
    ALTER TABLE journal DROP CONSTRAINT journal_state, ADD CONSTRAINT journal_state CHECK (true), \
    DROP CONSTRAINT journal_answer, ADD CONSTRAINT journal_answer CHECK (true); \
    ALTER TABLE callbacks DROP CONSTRAINT callbacks_outcome, ADD CONSTRAINT callbacks_outcome CHECK (true), \
    DROP CONSTRAINT callbacks_state, ADD CONSTRAINT callbacks_state CHECK (true)";

/// Returns what an audit reports after SQL that is rolled back at once.
async fn tampered(store: &PostgresStore, sql: &str) -> Audit {
    let (sql, vault) = (sql.to_owned(), Arc::clone(&store.vault));
    let audit = store.thread.run(async move |node| {
        let audit = async || {
            let mut client = Object::take(node.client().await?.into_object());
            let snapshot = client.transaction().await?;
            snapshot.batch_execute(UNCHECKED).await?;
            snapshot.batch_execute(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
            snapshot.batch_execute(SESSION).await?;
            let mut findings = AuditFindings::new(Arc::clone(&vault));
            all(&snapshot, &mut findings, Arc::new(|_| {})).await?;
            Ok(findings.found)
        };
        audit().await.map_err(PgError::reported)
    });
    audit.await.unwrap()
}

/// What is damaged in PostgreSQL alone: balances have changes.
const CHANGES: [(&str, &str); 2] = [
    (
        "INSERT INTO balance_changes SELECT 7, 1, 0, account, merchant, currency FROM entries WHERE account = 2 LIMIT 1",
        "is not the sum of its entries",
    ),
    ("DELETE FROM accounts; DELETE FROM balance_changes", "has no balance"),
];

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_finds_every_kind_of_tampering() {
    let Some((_database, store)) = opened() else { return };
    fill(&store).await;
    let audit = clean(&store).await;
    assert_eq!((audit.operations, audit.journal, audit.callbacks), (5, 6, 5));
    for (sql, stated) in DAMAGES.iter().filter(|(sql, _)| !sql.contains("accounts")).chain(&CHANGES) {
        let sql = sql_of(sql, |digits| format!("'\\x{digits}'::bytea"));
        assert_found(&tampered(&store, &sql).await, &sql, stated);
    }
    let long_ago = tampered(&store, "DELETE FROM daily_usage").await;
    assert!(long_ago.is_clean(), "the rows of old days may be gone: {long_ago:?}");
    clean(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_finds_another_structure() {
    let Some((_database, store)) = opened() else { return };
    fill(&store).await;
    for (sql, stated) in [
        ("ALTER TABLE homes DROP CONSTRAINT homes_pkey", "index homes_pkey is missing"),
        (
            "ALTER TABLE homes DROP CONSTRAINT homes_pkey; CREATE INDEX homes_pkey ON homes (order_key)",
            "index homes_pkey differs from this release",
        ),
        (
            "DROP INDEX journal_open; CREATE INDEX journal_open ON journal (entry) WHERE state = 1",
            "index journal_open differs from this release",
        ),
        ("ALTER TABLE tasks DROP CONSTRAINT tasks_state", "constraint tasks_state is missing"),
        ("DROP TABLE probe", "index probe_pkey is missing\ntable probe is missing"),
        ("ALTER TABLE entries ADD COLUMN more integer", "table entries differs from this release"),
        ("ALTER TABLE journal ALTER COLUMN order_key DROP NOT NULL", "table journal differs from this release"),
        ("CREATE UNIQUE INDEX theirs ON probe (count)", "index theirs is unknown to this release"),
        ("CREATE TABLE theirs (x integer)", ""),
    ] {
        let expected: Vec<_> = stated.lines().map(|line| format!("the schema: {line}")).collect();
        assert_eq!(tampered(&store, sql).await.problems, expected, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_of_many_slices_reports_its_progress() {
    let Some((_database, store)) = opened() else { return };
    for number in 0..600 {
        let name = ["acme", "bolt", "cosy"][number % 3];
        created(&store, withdrawal(name, &number.to_string())).await;
        journaled(&store, pending_create(name, &format!("j{number}"))).await;
    }
    let reported = Arc::new(Mutex::new(Vec::new()));
    let telling = Arc::clone(&reported);
    let audit = store.audit(Arc::new(move |progress| telling.lock().unwrap().push(progress))).await.unwrap();
    assert!(audit.is_clean(), "{audit:?}");
    assert_eq!((audit.operations, audit.entries, audit.journal), (600, 1200, 600));
    let reported = reported.lock().unwrap();
    assert!(
        reported.iter().all(|progress| progress.total == 1200) && reported.is_sorted_by_key(|progress| progress.done)
    );
    assert_eq!((reported[0].done, reported.last().unwrap().done), (0, 1200));
    assert!(reported.iter().any(|progress| progress.done == 500));
}
