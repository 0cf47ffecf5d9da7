//! Neighbouring releases on one file: the next one adds to it, this one serves it, and is locked out in the end.

use std::fs::File;
use std::time::Duration;

use super::*;
use crate::store::conformance::audited;
use crate::store::format::{FORMAT, FormatSteps};
use crate::store::{StoreAccess, Upgrade as _, UpgradeWait, finish_upgrade};

const NEXT: FormatSteps = FormatSteps {
    adds: "ALTER TABLE operations ADD COLUMN later INTEGER NOT NULL DEFAULT 7; \
           CREATE TABLE later (a INTEGER) STRICT; CREATE INDEX operations_later ON operations (later)",
    narrows: "",
};

/// Takes steps after those of this release.
fn add(place: &Place, later: &[FormatSteps]) -> rusqlite::Result<()> {
    let steps = [schema::FORMATS, later].concat();
    let mut connection = rusqlite::Connection::open(place.path()).unwrap();
    let transaction = connection.transaction().unwrap();
    let formats = schema::read_formats(&transaction, &place.path()).unwrap();
    schema::add(&transaction, &steps, formats.count())?;
    transaction.commit()
}

fn change(place: &Place, sql: &str) {
    rusqlite::Connection::open(place.path()).unwrap().execute_batch(sql).unwrap();
}

fn beside(place: &Place) -> Result<SqliteStore, OpenError> {
    open_beside(
        &place.path(),
        &made_keys(place),
        StoreAccess::Read,
        Arc::new(SystemRandomness::default()),
        Arc::default(),
    )
}

fn made_keys(place: &Place) -> StoreKeys {
    StoreKeys { create_at: Some(place.key_file()), keys: Vec::new() }
}

fn copy(place: &Place) -> Option<OpenError> {
    copying::take(&place.path(), &made_keys(place), Arc::new(SystemRandomness::default())).err()
}

#[tokio::test]
async fn what_the_next_release_adds_is_passed_over() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    let id = created(&store, deposit("acme", "one")).await;
    let found = store.by_id(id).await.unwrap();
    drop(store);
    add(&place, &[NEXT, FormatSteps { adds: "no SQL", narrows: "" }]).unwrap_err();
    assert_eq!(read_format(&place.path()).unwrap().format, FORMAT, "all or nothing");
    for _ in 0..2 {
        add(&place, &[NEXT]).unwrap();
    }
    let stated = read_format(&place.path()).unwrap();
    assert_eq!((stated.format, stated.readable_from), (FORMAT + 1, FORMAT));
    let store = place.open_made().unwrap();
    assert_eq!(store.by_id(id).await.unwrap(), found);
    created(&store, withdrawal("acme", "two")).await;
    drop(store);
    let store = place.open_made().unwrap();
    assert!(audited(&store).await.is_clean(), "{:?}", audited(&store).await);
    drop(store);
    let refused = copy(&place).unwrap();
    assert!(matches!(refused, OpenError::NotCopied { .. }), "{refused}");
    let to = place.0.path().join("copy.db");
    let begun =
        backup::begin(&place.path(), &made_keys(&place), &to, NOW, Arc::new(SystemRandomness::default())).unwrap();
    let copied = begun.copy(&|_, _| {}, &|| true).unwrap().check(&|_| {}, &|| true).unwrap();
    assert!(copied.publish().unwrap().is_clean());
    let later: i64 = rusqlite::Connection::open(&to)
        .unwrap()
        .query_row("SELECT sum(later) FROM operations", [], |row| row.get(0))
        .unwrap();
    assert_eq!(later, 14, "a backup takes additions along");
}

#[tokio::test]
async fn a_tool_that_was_open_writes_nothing_once_it_is_locked_out() {
    let place = Place::new();
    drop(place.open_made().unwrap());
    add(&place, &[NEXT]).unwrap();
    let (gateway, tool) = (place.open_made().unwrap(), beside(&place).unwrap());
    created(&tool, deposit("acme", "one")).await;
    assert_eq!(gateway.oldest_format().await.unwrap(), FORMAT);
    change(&place, "UPDATE paybridge_formats SET state = 1 WHERE format > 1");
    let refused = tool.create(deposit("acme", "two")).await.unwrap_err().to_string();
    assert!(refused.contains("has finished its upgrade of the store"), "{refused}");
    assert_eq!(gateway.oldest_format().await.unwrap(), FORMAT + 1, "a gateway reads it, and leaves");
    drop(gateway);
    for refused in [place.open_made().err().unwrap(), beside(&place).err().unwrap(), copy(&place).unwrap()] {
        let OpenError::LockedOut { format, readable_from, own, .. } = refused else { panic!("{refused}") };
        assert_eq!((format, readable_from, own), (FORMAT + 1, FORMAT + 1, FORMAT));
    }
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_is_finished_when_no_older_gateway_is_left() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    let finish = |span| finish_upgrade(&store, Duration::from_secs(span), |_| {});
    assert!(!finish(10).await.unwrap(), "a new store has nothing to narrow");
    drop(store);

    // As if the format before were 0, and a gateway of it ran.
    change(&place, "UPDATE paybridge_formats SET state = 0");
    let lock = place.path().with_extension("db.lock");
    fs::write(&lock, "format 0\n").unwrap();
    let gateway = File::open(&lock).unwrap();
    gateway.lock().unwrap();
    let store = beside(&place).unwrap();
    let mut waits = Vec::new();
    let finished = finish_upgrade(&store, Duration::from_secs(10), |wait| {
        waits.push(wait);
        if waits.len() == 3 {
            gateway.unlock().unwrap();
        }
    });
    assert!(finished.await.unwrap());
    let used = waits.iter().filter(|wait| **wait == UpgradeWait::Used).count();
    assert_eq!(used, 3);
    assert!(matches!(waits.last(), Some(UpgradeWait::Untouched(time)) if time.as_secs() == 10), "{waits:?}");
    assert!(!finish_upgrade(&store, Duration::ZERO, |_| {}).await.unwrap(), "it is finished");
    assert_eq!(fs::read_to_string(&lock).unwrap(), "", "what a killed gateway left is cleared");
    assert!(audited(&store).await.is_clean());
    let gateway = place.open_made().unwrap();
    assert_eq!(fs::read_to_string(&lock).unwrap(), format!("format {FORMAT}\n"));
    gateway.close().await.unwrap();
    assert_eq!(fs::read_to_string(&lock).unwrap(), "");
}
