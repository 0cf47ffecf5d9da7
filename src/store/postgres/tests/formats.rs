//! Neighbouring releases on one database: the next one adds to it, this one serves it, and is locked out in the end.

use std::sync::mpsc::channel;
use std::time::Duration;

use tokio_postgres::NoTls;

use super::*;
use crate::clock::testing::until;
use crate::store::conformance::{audited, created, deposit, withdrawal};
use crate::store::format::{FORMAT, FormatSteps};
use crate::store::{StoreFormat, Upgrade as _, UpgradeWait, finish_upgrade};

const NEXT: FormatSteps = FormatSteps {
    adds: "ALTER TABLE operations ADD COLUMN later integer NOT NULL DEFAULT 7; \
           CREATE TABLE later (a integer); CREATE INDEX operations_later ON operations (later)",
    narrows: "",
};

/// Takes steps after those of this release.
fn add(place: &Place, store: &PostgresStore, later: &[FormatSteps]) -> Result<(), OpenError> {
    add_within(schema::MAX_STEP_TIME, place, store, later)
}

fn add_within(
    patience: Duration,
    place: &Place,
    store: &PostgresStore,
    later: &[FormatSteps],
) -> Result<(), OpenError> {
    let (url, steps) = (place.url(), [schema::FORMATS, later].concat());
    opening::on_thread(&store.thread, &place.url(), async move |node| {
        let path = std::path::Path::new("here");
        let add = async |transaction: &deadpool_postgres::Transaction<'_>| {
            let formats = schema::read_formats(transaction, path).await?;
            schema::add(transaction, &steps, path, formats.count(), patience).await
        };
        schema::exclusively(&node, &url, add).await
    })
}

fn stated(place: &Place) -> StoreFormat {
    read_format(&place.url(), &(Arc::new(SystemRandomness::default()) as Arc<dyn Random>)).unwrap()
}

#[tokio::test]
async fn what_the_next_release_adds_is_passed_over() {
    let Some(place) = Place::new() else { return };
    let store = place.open_node();
    let id = created(&store, deposit("acme", "one")).await;
    add(&place, &store, &[NEXT, FormatSteps { adds: "no SQL", narrows: "" }]).unwrap_err();
    assert_eq!(stated(&place).format, FORMAT, "all or nothing");
    for _ in 0..2 {
        add(&place, &store, &[NEXT]).unwrap();
    }
    let StoreFormat { format, readable_from, .. } = stated(&place);
    assert_eq!((format, readable_from), (FORMAT + 1, FORMAT));
    for (node, order) in [(store, "two"), (place.open_node(), "three")] {
        assert!(node.by_id(id).await.unwrap().is_some());
        created(&node, withdrawal("acme", order)).await;
        assert!(audited(&node).await.is_clean(), "{:?}", audited(&node).await);
    }
    assert_eq!(place.0.sql("SELECT sum(later) FROM operations"), "21");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_go_on_while_a_start_waits_to_add_to_a_table() {
    const WAITS: &str = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock' \
                         AND relation = 'operations'::regclass";
    let Some(place) = Place::new() else { return };
    let place = Arc::new(place);
    let store = place.open_node();
    let (reader, connection) = tokio_postgres::connect(&place.0.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    // As pg_dump does.
    reader.batch_execute("BEGIN; LOCK TABLE operations IN ACCESS SHARE MODE").await.unwrap();
    let given_up = add_within(Duration::ZERO, &place, &store, &[NEXT]).unwrap_err().to_string();
    assert!(given_up.contains("such as that of pg_dump: start again when it has ended"), "{given_up}");
    assert_eq!(stated(&place).format, FORMAT, "nothing was added");
    let (starting, there) = (place.open_node(), Arc::clone(&place));
    let added = tokio::task::spawn_blocking(move || add(&there, &starting, &[NEXT]));
    until("it waits", || place.0.sql(WAITS) == "t").await;
    created(&store, deposit("acme", "meanwhile")).await;
    assert!(!added.is_finished());
    reader.batch_execute("COMMIT").await.unwrap();
    added.await.unwrap().unwrap();
    assert_eq!(stated(&place).format, FORMAT + 1);
    assert!(audited(&store).await.is_clean());
}

/// A node that was frozen or cut off while it was locked out has had its connections ended.
#[tokio::test]
async fn a_node_that_is_locked_out_gets_no_other_connection() {
    let Some(place) = Place::new() else { return };
    let store = place.open_node();
    add(&place, &store, &[NEXT]).unwrap();
    created(&store, deposit("acme", "one")).await;
    place.0.sql("UPDATE paybridge_formats SET state = 1 WHERE format > 1");
    place.0.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
         AND pid <> pg_backend_pid()",
    );
    let refused = store.create(deposit("acme", "two")).await.unwrap_err().to_string();
    assert!(refused.contains("has finished its upgrade of the store"), "{refused}");
    assert_eq!(place.0.sql("SELECT count(*) FROM operations"), "1");
    assert_eq!(store.oldest_format().await.unwrap(), FORMAT + 1, "it knows, and leaves");
    let refused = place.open_with(&key(1)).unwrap_err();
    let OpenError::LockedOut { format, readable_from, own, .. } = refused else { panic!("{refused}") };
    assert_eq!((format, readable_from, own), (FORMAT + 1, FORMAT + 1, FORMAT));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_is_finished_when_no_older_node_is_left() {
    const SPAN: Duration = Duration::from_secs(2);
    let Some(place) = Place::new() else { return };
    let store = place.open_node();
    assert!(!finish_upgrade(&store, SPAN, |_| {}).await.unwrap(), "a new store has nothing to narrow");
    store.close().await.unwrap();

    // As if the format before were 0, and a node of it ran. Another one is started again and again, and refused.
    place.0.sql("UPDATE paybridge_formats SET state = 0");
    let url = place.0.url();
    let older_session = async move || {
        let (older, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        older.batch_execute(&format!("SELECT pg_advisory_lock_shared({}, 0)", presence::LOCK)).await.unwrap();
        older
    };
    let older = older_session().await;
    let store = place.open_node();
    let restarts = tokio::spawn(async move {
        loop {
            drop(older_session().await);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    });
    let (waits, waited) = channel();
    let finishing = tokio::spawn(async move {
        let finished = finish_upgrade(&store, SPAN, |wait| waits.send(wait).unwrap()).await;
        (store, finished)
    });
    // It works while it is awaited.
    let mut count = 0;
    while count < 6 {
        older.batch_execute("SELECT 1").await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        count += waited.try_iter().inspect(|wait| assert_eq!(*wait, UpgradeWait::Used)).count();
    }
    // Then it is frozen: its connection is ended.
    let (store, finished) = finishing.await.unwrap();
    assert!(finished.unwrap());
    restarts.abort();
    until("its connection is ended", || older.is_closed()).await;
    assert!(!finish_upgrade(&store, SPAN, |_| {}).await.unwrap(), "it is finished");
    assert!(audited(&store).await.is_clean());
    assert_eq!(stated(&place).readable_from, FORMAT);
}
