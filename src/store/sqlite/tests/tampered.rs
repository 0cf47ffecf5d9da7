//! Audits of damaged files.

use super::*;
use crate::store::conformance::audited;
use crate::store::conformance::damage::{DAMAGES, assert_found, fill, sql_of};
use crate::store::{AuditProgress, StoreAccess};

/// What is damaged in SQLite alone: balances are rows.
const BALANCES: [(&str, &str); 2] = [
    ("UPDATE accounts SET balance = balance + 1 WHERE account = 2", "is not the sum of its entries"),
    ("DELETE FROM accounts WHERE account = 0", "has no balance"),
];

/// Copies a store that is closed.
fn copied(from: &Place) -> Place {
    let to = Place::new();
    for file in [Place::path, Place::key_file] {
        fs::create_dir_all(file(&to).parent().unwrap()).unwrap();
        fs::copy(file(from), file(&to)).unwrap();
    }
    to
}

#[tokio::test]
async fn an_audit_finds_every_kind_of_tampering() {
    let filled = Place::new();
    let store = filled.open_made().unwrap();
    fill(&store).await;
    audited(&store).await;
    store.close().await.unwrap();
    for (sql, stated) in DAMAGES.iter().chain(&BALANCES) {
        let place = copied(&filled);
        let keys = StoreKeys { create_at: Some(place.key_file()), keys: Vec::new() };
        // A process that serves would end the leases.
        let store =
            open_beside(&place.path(), &keys, StoreAccess::Read, Arc::new(SystemRandomness::default()), Arc::default())
                .unwrap();
        let connection = rusqlite::Connection::open(place.path()).unwrap();
        connection.pragma_update(None, "foreign_keys", false).unwrap();
        connection.pragma_update(None, "ignore_check_constraints", true).unwrap();
        let sql = sql_of(sql, |digits| format!("x'{digits}'"));
        connection.execute_batch(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!(connection.total_changes() > 0, "{sql}");
        assert_found(&store.audit(Arc::new(|_: AuditProgress| {})).await.unwrap(), &sql, stated);
    }
}

#[tokio::test]
async fn problems_are_reported_up_to_a_bound() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    for number in 0..150 {
        created(&store, withdrawal("acme", &number.to_string())).await;
    }
    rusqlite::Connection::open(place.path()).unwrap().execute("UPDATE operations SET sealed = x'01'", []).unwrap();
    let audit = store.audit(Arc::new(|_: AuditProgress| {})).await.unwrap();
    assert_eq!((audit.problems.len(), audit.problem_count), (100, 150));
}

#[tokio::test]
async fn the_usage_of_old_days_may_be_gone() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    fill(&store).await;
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    assert_eq!(connection.execute("DELETE FROM daily_usage", []).unwrap(), 1);
    audited(&store).await;
}

#[tokio::test]
async fn an_audit_finds_another_structure() {
    for (sql, stated) in [
        ("ALTER TABLE homes ADD COLUMN more INTEGER", "table homes differs from this release"),
        ("DROP INDEX operations_by_merchant", "index operations_by_merchant is missing"),
        ("DROP INDEX journal_open", "index journal_open is missing"),
        (
            "DROP INDEX operations_by_merchant; CREATE INDEX operations_by_merchant ON operations (listed)",
            "index operations_by_merchant differs from this release",
        ),
        ("DROP TABLE probe_room", "table probe_room is missing"),
        ("ALTER TABLE entries ADD COLUMN more INTEGER", "table entries differs from this release"),
        ("CREATE TABLE theirs (x)", "table theirs is unknown to this release"),
        (
            "CREATE TRIGGER theirs AFTER INSERT ON entries BEGIN DELETE FROM accounts; END",
            "trigger theirs is unknown to this release",
        ),
    ] {
        let place = Place::new();
        let store = place.open_made().unwrap();
        fill(&store).await;
        audited(&store).await;
        rusqlite::Connection::open(place.path()).unwrap().execute_batch(sql).unwrap();
        let audit = store.audit(Arc::new(|_: AuditProgress| {})).await.unwrap();
        assert_eq!(audit.problems, [format!("the schema: {stated}")], "{sql}");
    }
}

/// Overwrites a page of the table's own, which is its root.
fn damage(place: &Place, table: &str) {
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    let bytes: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0)).unwrap();
    let page: u32 =
        connection.query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [table], |row| row.get(0)).unwrap();
    drop(connection);
    let mut file = fs::read(place.path()).unwrap();
    file[((page - 1) * bytes) as usize..(page * bytes) as usize].fill(0x5a);
    fs::write(place.path(), file).unwrap();
}

#[tokio::test]
async fn a_damaged_file_is_reported_with_advice() {
    // Index pages are read by the check of pages alone; the rows of entries by what follows it.
    for part in ["tasks_by_due", "entries"] {
        let place = Place::new();
        let store = place.open_made().unwrap();
        for number in 0..120 {
            created(&store, withdrawal("acme", &number.to_string())).await;
        }
        drop(store);
        damage(&place, part);
        let store = place.open_made().unwrap();
        let audit = store.audit(Arc::new(|_: AuditProgress| {})).await.unwrap();
        let first = &audit.problems[0];
        let path = place.path().canonicalize().unwrap();
        assert!(first.starts_with(path.to_str().unwrap()) && first.ends_with("restore a backup"), "{part}: {first}");
        assert!(audit.problems[1].starts_with("the file: "), "{part}: {audit:?}");
        assert!(audit.problems.iter().all(|problem| !problem.contains('\n')), "{audit:?}");
    }
}
