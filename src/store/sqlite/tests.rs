//! The conformance suite over SQLite, and what only a file can show: keys, modes, sealing, failing disks.

use std::fs;
use std::future::Future;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use tempfile::TempDir;

use super::connection::StoreFile;
use super::failures::Faults;
use super::opening::open_source;
use super::*;
use crate::clock::SystemRandomness;
use crate::domain::{
    AccountNumber, Detail, Direction, Fields, Instructions, Outcome, Page, Preparation, Secret, UnixMillis,
};
use crate::store::conformance::{
    CARD, NOW, PAYER, TestBackend, conformance, created, deposit, merchant, order, stored, withdrawal,
};
use crate::store::rows::context::merchant_number;
use crate::store::sql::Sql;
use crate::store::{
    Claim, CompletionOutcome, Holds, InsertOutcome, JobEnd, NewOperation, OpenError, Opened, OrderLookup, ResultSource,
    SchemaFields, Store, StoreError, Stored,
};
use crate::store::{OrderHomes as _, OrderLookups as _, ProviderJobs as _};
use crate::store_settings::StoreKeys;

mod beside;
mod formats;
mod history;
mod journal;
mod lists;
mod log;
mod outbox;
mod plans;
mod tampered;
mod trail;

/// A store in a temporary directory.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("data/paybridge.db")
    }

    fn key_file(&self) -> PathBuf {
        self.0.path().join("secrets/store.key")
    }

    fn open_with(&self, keys: &StoreKeys) -> Result<SqliteStore, OpenError> {
        open(&self.path(), keys, Arc::new(SystemRandomness::default()), Arc::default()).map(|opened| opened.store)
    }

    fn open_made(&self) -> Result<SqliteStore, OpenError> {
        self.open_with(&StoreKeys { create_at: Some(self.key_file()), keys: Vec::new() })
    }

    /// Opens the store with injectable disk failures.
    fn open_faulty(&self) -> (SqliteStore, Arc<Faults>) {
        let source = StoreFile::new(&self.path());
        let faults = Arc::clone(&source.faults);
        let random = Arc::new(SystemRandomness::default());
        (open_source(source, &named(&[1]), random, Arc::default()).unwrap().store, faults)
    }

    /// Returns all bytes of the store's files.
    fn bytes(&self) -> Vec<u8> {
        let files = fs::read_dir(self.path().parent().unwrap()).unwrap();
        files.flat_map(|file| fs::read(file.unwrap().path()).unwrap()).collect()
    }
}

impl TestBackend for Place {
    fn open(&self) -> Pin<Box<dyn Future<Output = Arc<dyn Store>> + Send + '_>> {
        Box::pin(async { Arc::new(self.open_made().unwrap()) as Arc<dyn Store> })
    }
}

fn named(bytes: &[u8]) -> StoreKeys {
    StoreKeys { create_at: None, keys: bytes.iter().map(|byte| Secret::new(&[*byte; 32])).collect() }
}

fn contains(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle.as_bytes())
}

/// Returns the query plan, one step a line.
fn plan(connection: &rusqlite::Connection, sql: Sql) -> String {
    plan_of(connection, sql.sqlite)
}

fn plan_of(connection: &rusqlite::Connection, text: &str) -> String {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {text}")).unwrap();
    for number in 1..=statement.parameter_count() {
        statement.raw_bind_parameter(number, 1).unwrap();
    }
    let mut rows = statement.raw_query();
    let mut plan = String::new();
    while let Some(row) = rows.next().unwrap() {
        plan.push_str(&row.get::<_, String>(3).unwrap());
        plan.push('\n');
    }
    plan
}

conformance!(Place::new());

#[test]
fn files_are_made_for_their_owner_only() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    let permissions = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(permissions(&place.key_file()), 0o600);
    assert_eq!(permissions(place.key_file().parent().unwrap()), 0o700);
    assert_eq!(permissions(&place.path()), 0o600);
    assert_eq!(permissions(&place.path().with_extension("db-wal")), 0o600);
    drop(store);
    assert!(!place.path().with_extension("db-wal").exists(), "closing leaves one file");
}

#[test]
fn a_new_store_needs_a_key_or_a_place_for_one() {
    let place = Place::new();
    assert!(matches!(place.open_with(&named(&[])), Err(OpenError::NoKey { .. })));
    assert!(place.open_with(&named(&[1])).is_ok(), "a refused start leaves nothing in the way");
}

#[tokio::test]
async fn keys_rotate_and_wrong_keys_are_refused() {
    let place = Place::new();
    let store = place.open_with(&named(&[1])).unwrap();
    let draft = withdrawal("acme", "1");
    let expected = stored(&draft);
    let id = created(&store, draft).await;
    drop(store);
    let error = place.open_with(&named(&[2])).unwrap_err();
    assert!(matches!(error, OpenError::Keys { source: crate::store::VaultError::WrongKey, .. }), "{error}");
    let store = place.open_with(&named(&[2, 1])).unwrap();
    assert_eq!(store.by_id(id).await.unwrap(), Some(expected));
}

#[test]
fn foreign_files_are_refused_untouched() {
    let place = Place::new();
    fs::create_dir_all(place.path().parent().unwrap()).unwrap();
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    connection.execute_batch("CREATE TABLE theirs (x)").unwrap();
    drop(connection);
    let before = fs::read(place.path()).unwrap();
    assert!(matches!(place.open_with(&named(&[1])), Err(OpenError::Foreign { .. })));
    assert_eq!(fs::read(place.path()).unwrap(), before);

    fs::write(place.path(), "no database at all, but long enough to be opened as one".repeat(20)).unwrap();
    let error = place.open_with(&named(&[1])).unwrap_err().to_string();
    assert!(error.contains("paybridge.db") && !error.contains('\n'), "{error}");
}

#[tokio::test]
async fn nothing_sealed_is_found_in_any_file() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    for number in 0..50 {
        let mut draft = withdrawal("acme", &format!("w{number}"));
        draft.fields = Fields {
            sent: format!(r#"{{"holder":"Ada Lovelace","card":"{CARD}"}}"#).into(),
            defaults: r#"{"bank":"secret-default"}"#.into(),
            ..Fields::default()
        };
        created(&store, draft).await;
        let id = created(&store, deposit("acme", &format!("d{number}"))).await;
        let prepared = created(&store, deposit("acme", &format!("p{number}"))).await;
        let detail = Detail { label: "Account to pay to".into(), value: "DE89370400440532013000".into() };
        let instructions = Instructions::new(Some("Pay to Grace Hopper".into()), vec![detail]).unwrap();
        assert!(
            store
                .prepare(prepared, Preparation::Instructions(instructions), JobEnd::CustomerAwaited, NOW)
                .await
                .unwrap()
        );
        let payer = Some(AccountNumber::new(PAYER).unwrap());
        store.complete(id, Outcome::Success { payer }, ResultSource::PROVIDER, NOW).await.unwrap();
    }
    let assert_sealed = || {
        let bytes = place.bytes();
        let prepared = ["DE89370400440532013000", "Account to pay to", "Grace Hopper"];
        for secret in [CARD, PAYER, "Ada Lovelace", "holder", "secret-default"].into_iter().chain(prepared) {
            assert!(!contains(&bytes, secret), "{secret} is readable");
        }
        assert!(contains(&bytes, "w49"), "the search finds what is there");
    };
    assert!(place.path().with_extension("db-wal").exists());
    assert_sealed();
    drop(store);
    assert_sealed();
}

#[tokio::test]
async fn a_tampered_row_is_corrupt_and_names_no_value() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    let first = created(&store, withdrawal("acme", "1")).await;
    let second = created(&store, withdrawal("acme", "2")).await;
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    connection
        .execute(
            "UPDATE operations SET sealed = (SELECT sealed FROM operations WHERE transaction_id = ?1) \
             WHERE transaction_id = ?2",
            (first.to_stored(), second.to_stored()),
        )
        .unwrap();
    let error = store.by_id(second).await.unwrap_err();
    assert!(matches!(&error, StoreError::Corrupt(text) if text.contains("sealed")), "{error}");
    assert!(matches!(store.fields(second).await, Err(StoreError::Corrupt(_))));
    assert!(store.by_id(first).await.is_ok());
}

/// Creates until the disk is full; returns the acknowledged and the refused orders.
async fn create_until_refused(store: &SqliteStore) -> (Vec<Stored>, Stored) {
    let mut acknowledged = Vec::new();
    for number in 0..100_000 {
        let draft = deposit("acme", &format!("full {number}"));
        let expected = stored(&draft);
        match store.create(draft).await {
            Ok(_) => acknowledged.push(expected),
            Err(StoreError::Unavailable(_)) => return (acknowledged, expected),
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the disk never filled");
}

/// Retries until the store accepts operations again.
async fn recovered(store: &SqliteStore) {
    for number in 0..1_000_000 {
        match store.create(deposit("acme", &format!("recovered {number}"))).await {
            Ok(_) => return,
            Err(StoreError::Unavailable(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the store did not recover");
}

#[tokio::test]
async fn a_full_disk_refuses_and_recovers() {
    let place = Place::new();
    let (store, faults) = place.open_faulty();
    faults.disk_full(true);
    let (acknowledged, refused) = create_until_refused(&store).await;
    assert_eq!(store.by_id(refused.operation.id).await.unwrap(), None);
    for expected in &acknowledged {
        assert_eq!(store.by_id(expected.operation.id).await.unwrap().as_ref(), Some(expected), "reads go on");
    }
    // A single page still fits; that must not count as a working store.
    for number in 0..5 {
        assert!(matches!(store.probe().await, Err(StoreError::Unavailable(_))));
        let draft = deposit("acme", &format!("still full {number}"));
        assert!(matches!(store.create(draft).await, Err(StoreError::Unavailable(_))));
    }
    faults.disk_full(false);
    recovered(&store).await;
    drop(store);
    let store = place.open_with(&named(&[1])).unwrap();
    for expected in &acknowledged {
        assert_eq!(store.by_id(expected.operation.id).await.unwrap().as_ref(), Some(expected));
    }
    assert_eq!(store.by_id(refused.operation.id).await.unwrap(), None);
}

#[tokio::test]
async fn nothing_is_acknowledged_between_a_failed_fsync_and_a_commit_that_works() {
    let place = Place::new();
    let (store, faults) = place.open_faulty();
    let before = created(&store, deposit("acme", "before")).await;
    faults.failing_commits(true);
    for number in 0..20 {
        let draft = deposit("acme", &format!("failing {number}"));
        assert!(matches!(store.create(draft).await, Err(StoreError::Unavailable(_))));
        assert!(matches!(store.probe().await, Err(StoreError::Unavailable(_))));
    }
    assert!(store.by_id(before).await.unwrap().is_some(), "reads go on");
    assert_eq!(
        store.by_order(&merchant("acme"), Direction::Payin, &order("failing 0")).await.unwrap(),
        OrderLookup::Free
    );
    faults.failing_commits(false);
    recovered(&store).await;
    store.probe().await.unwrap();
    created(&store, deposit("acme", "failing 0")).await;
}

/// Renames every file of the store, as `from` to `to`, within its directory.
fn rename_all(place: &Place, from: &str, to: &str) {
    for ending in ["db", "db-wal", "db-shm", "db.lock"] {
        let file = |name: &str| place.path().with_file_name(format!("{name}.{ending}"));
        fs::rename(file(from), file(to)).unwrap();
    }
}

#[tokio::test]
async fn nothing_is_acknowledged_while_the_files_are_not_in_their_place() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    let before = created(&store, deposit("acme", "before")).await;
    let assert_refused = async |name: &str| {
        for number in 0..3 {
            let draft = deposit("acme", &format!("{name} {number}"));
            assert!(matches!(store.create(draft).await, Err(StoreError::Unavailable(_))), "{name}");
            assert!(matches!(store.probe().await, Err(StoreError::Unavailable(_))), "{name}");
        }
    };
    rename_all(&place, "paybridge", "away");
    assert_refused("removed").await;
    let other = place.open_made().unwrap();
    created(&other, deposit("acme", "in the other store")).await;
    assert_refused("replaced").await;
    drop(other);
    rename_all(&place, "away", "paybridge");
    recovered(&store).await;
    store.probe().await.unwrap();
    assert!(store.by_id(before).await.unwrap().is_some());
    let other_order = store.by_order(&merchant("acme"), Direction::Payin, &order("in the other store")).await;
    assert_eq!(other_order.unwrap(), OrderLookup::Free, "nothing of the other store is read");

    fs::remove_file(place.path().with_extension("db-wal")).unwrap();
    assert_refused("no log").await;
}

/// `cargo test --lib two_looks -- --ignored --nocapture`: what checking the files adds to a commit.
#[test]
#[ignore = "a measurement"]
fn two_looks_at_the_files() {
    const LOOKS: u32 = 100_000;
    let place = Place::new();
    let _store = place.open_made().unwrap();
    let source = StoreFile::new(&place.path());
    source.pin().unwrap();
    let started = tokio::time::Instant::now();
    for _ in 0..LOOKS {
        source.in_place().unwrap();
    }
    let _ = writeln!(std::io::stderr(), "a look at both files: {:?}", started.elapsed() / LOOKS);
}

#[tokio::test]
async fn a_store_reports_whether_it_holds_operations() {
    let place = Place::new();
    let opened = || {
        let keys = StoreKeys { create_at: Some(place.key_file()), keys: Vec::new() };
        open(&place.path(), &keys, Arc::new(SystemRandomness::default()), Arc::default()).unwrap()
    };
    let nothing = Holds { operations: false, journal: false };
    assert_eq!(opened().holds, nothing);
    let again = opened();
    assert_eq!(again.holds, nothing);
    created(&again.store, deposit("acme", "1")).await;
    drop(again);
    assert_eq!(opened().holds, Holds { operations: true, journal: false });
}

#[tokio::test]
async fn another_process_that_writes_for_long_makes_it_busy_not_broken() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    let other = rusqlite::Connection::open(place.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = store.create(deposit("acme", "busy")).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    other.execute_batch("COMMIT").unwrap();
    created(&store, deposit("acme", "busy")).await;
}

#[tokio::test]
async fn a_command_at_fault_does_not_stop_its_batch() {
    let place = Place::new();
    let store = Arc::new(place.open_made().unwrap());
    let mut tasks = Vec::new();
    for number in 0..100 {
        let (good, bad) = (Arc::clone(&store), Arc::clone(&store));
        let draft = deposit("acme", &number.to_string());
        let id = draft.operation.id;
        tasks.push(tokio::spawn(async move { good.create(draft).await.map(|_| Some(id)) }));
        tasks.push(tokio::spawn(async move {
            let refused = bad
                .writer
                .submit(move |connection| {
                    connection.execute("INSERT INTO preparations VALUES (9, x'00')", [])?;
                    connection.execute("INSERT INTO probe VALUES (2, 0)", [])
                })
                .await;
            assert!(matches!(refused, Err(StoreError::Corrupt(_))), "{refused:?}");
            Ok(None)
        }));
    }
    for task in tasks {
        if let Some(id) = task.await.unwrap().unwrap() {
            assert!(store.by_id(id).await.unwrap().is_some());
        }
    }
    assert_eq!(store.provider_queues().await.unwrap(), [], "nothing of the refused is stored");
}

#[tokio::test]
async fn what_operations_have_in_common_is_stored_once() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    for number in 0..20 {
        let mut draft = deposit(["acme", "bolt"][number % 2], &number.to_string());
        draft.comparison.kept = SchemaFields::Names(["a".into(), "b".into()].into());
        created(&store, draft).await;
    }
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    let contexts: i64 = connection.query_row("SELECT count(*) FROM contexts", [], |row| row.get(0)).unwrap();
    assert_eq!(contexts, 2);
}
