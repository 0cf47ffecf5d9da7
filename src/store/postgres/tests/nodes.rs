//! Nodes that start at once, are of another release, or lose their connections.

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;
use crate::clock::testing::until;
use crate::store::conformance::{audited, created, deposit, merchant, withdrawal};
use crate::store::{CreateOutcome, OrderLookup, StoreAccess};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_at_once_make_one_store() {
    let Some(place) = Place::new().map(Arc::new) else { return };
    let starts: Vec<_> = (0..10)
        .map(|_| {
            let place = Arc::clone(&place);
            tokio::task::spawn_blocking(move || place.open_node())
        })
        .collect();
    let mut nodes = Vec::new();
    for start in starts {
        nodes.push(start.await.unwrap());
    }
    let id = created(&nodes[0], deposit("acme", "one")).await;
    for node in &nodes {
        let found = node.by_order(&merchant("acme"), Direction::Payin, &OrderId::new("one").unwrap()).await.unwrap();
        assert_eq!(found.operation().map(|stored| stored.operation.id), Some(id), "all have the same keys");
    }
    assert_eq!(place.0.sql("SELECT count(*) FROM paybridge_formats"), "1");
}

#[test]
fn a_store_of_another_unreleased_build_is_refused_untouched() {
    for change in [
        "UPDATE paybridge_formats SET hash = '\\x00'",
        "DELETE FROM paybridge_formats",
        "ALTER TABLE paybridge_formats RENAME TO paybridge_schema",
    ] {
        let Some(place) = Place::new() else { return };
        drop(place.open_node());
        place.0.sql(change);
        let content = || {
            let tables = "SELECT format('SELECT %L, t FROM %I AS t', relname, relname) FROM pg_class \
                WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname \\gexec";
            place.0.sql(tables)
        };
        let before = content();
        let random = || Arc::new(SystemRandomness::default());
        for refused in [
            place.open_with(&key(1)).unwrap_err(),
            open_beside(&place.url(), &key(1), StoreAccess::Read, random(), Arc::default()).unwrap_err(),
            rewrap_keys(&place.url(), &key(1), random()).unwrap_err(),
        ] {
            assert!(matches!(refused, OpenError::OtherBuild { .. }), "{change}: {refused}");
        }
        assert_eq!(content(), before, "{change}");
    }
}

#[test]
fn a_tool_makes_no_store() {
    let Some(place) = Place::new() else { return };
    let refused =
        open_beside(&place.url(), &key(1), StoreAccess::Read, Arc::new(SystemRandomness::default()), Arc::default())
            .unwrap_err();
    assert!(matches!(refused, OpenError::Missing { .. }), "{refused}");
    assert_eq!(place.0.sql("SELECT to_regclass('paybridge_formats') IS NULL"), "t");
    drop(place.open_node());
    open_beside(&place.url(), &key(1), StoreAccess::Read, Arc::new(SystemRandomness::default()), Arc::default())
        .unwrap();
}

/// Creates a user that may read and write the existing tables, and create none.
fn humble(place: &Place) -> String {
    let user = place.0.sql("SELECT current_database() || '_user'");
    place.0.sql(&format!(
        "CREATE ROLE {user} LOGIN; REVOKE ALL ON SCHEMA public FROM public; GRANT USAGE ON SCHEMA public TO {user}; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {user}"
    ));
    user
}

/// Returns the URL of a node of that user, with further hosts.
fn humble_node(place: &Place, user: &str, more_hosts: &str) -> PostgresStore {
    let url = place.0.url();
    let (_, at) = url.split_once('@').unwrap();
    let url = PostgresUrl::parse(&format!("postgres://{user}:TOPSECRET@{more_hosts}{at}"), |path| path.into()).unwrap();
    open(&url, &key(1), Arc::new(SystemClock), Arc::new(SystemRandomness::default()), Arc::default()).unwrap().store
}

#[tokio::test]
async fn a_user_that_may_make_no_tables_serves_those_that_are_there() {
    let Some(place) = Place::new() else { return };
    drop(place.open_node());
    let store = humble_node(&place, &humble(&place), "");
    created(&store, deposit("acme", "one")).await;
    created(&store, withdrawal("acme", "two")).await;
    store.reserve(&merchant("acme"), Direction::Payin, &[OrderId::new("three").unwrap()], UnixMillis(0)).await.unwrap();
    store.probe().await.unwrap();
    audited(&store).await;
}

#[tokio::test]
async fn a_permission_that_is_missing_is_reported_and_passes() {
    let Some(place) = Place::new() else { return };
    drop(place.open_node());
    let user = humble(&place);
    let store = humble_node(&place, &user, "");
    place.0.sql(&format!("REVOKE INSERT ON operations FROM {user}"));
    let refused = store.create(deposit("acme", "one")).await.unwrap_err().to_string();
    let reported = "the store is unavailable: the database refuses: permission denied for table operations (42501)";
    assert_eq!(refused, reported);
    place.0.sql(&format!("GRANT INSERT ON operations TO {user}"));
    created(&store, deposit("acme", "one")).await;
}

#[test]
fn keys_that_do_not_fit_are_refused_and_none_is_made() {
    let Some(place) = Place::new() else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.key");
    let missing = StoreKeys { create_at: Some(file.clone()), keys: Vec::new() };
    let refused = place.open_with(&missing).unwrap_err();
    assert!(matches!(refused, OpenError::KeyNotMade { .. }) && !file.exists(), "{refused}");
    assert!(refused.to_string().contains("openssl rand -base64 32"), "{refused}");
    assert_eq!(place.0.sql("SELECT to_regclass('paybridge_formats') IS NULL"), "t", "nothing is left half made");
    drop(place.open_node());
    let refused = place.open_with(&missing).unwrap_err();
    assert!(matches!(refused, OpenError::KeyMissing { .. }) && !file.exists(), "{refused}");
    let refused = place.open_with(&key(2)).unwrap_err();
    assert!(matches!(refused, OpenError::Keys { .. }), "{refused}");
}

#[test]
fn tables_of_something_else_are_left_alone() {
    let Some(place) = Place::new() else { return };
    place.0.sql("CREATE TABLE operations (id integer)");
    let refused = place.open_with(&key(1)).unwrap_err();
    assert!(matches!(refused, OpenError::NotEmpty { .. }), "{refused}");
    let reported =
        "is not empty and not a Paybridge store (relation \"operations\" already exists): name an empty database";
    assert!(refused.to_string().ends_with(reported), "{refused}");
    assert_eq!(place.0.sql("SELECT to_regclass('paybridge_formats') IS NULL"), "t");
}

#[test]
fn a_socket_is_used_with_any_sslmode() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let path = directory.path().display();
    let Some(server) = server::Server::start(&[&format!("unix_socket_directories={path}")]) else { return };
    let place = Place(server.database());
    let [port, name] = ["inet_server_port()", "current_database()"].map(|what| place.0.sql(&format!("SELECT {what}")));
    for mode in ["disable", "prefer", "require", "verify-full"] {
        let url = format!("postgres://paybridge@/{name}?host={path}&port={port}&sslmode={mode}");
        let url = PostgresUrl::parse(&url, |path| path.into()).unwrap();
        open(&url, &key(1), Arc::new(SystemClock), Arc::new(SystemRandomness::default()), Arc::default()).unwrap();
    }
}

#[test]
fn of_several_hosts_each_is_reported_with_its_reason() {
    let Some(place) = Place::new() else { return };
    let url = place.0.url().replacen('@', ":TOPSECRET@127.0.0.1:9,", 1).replacen("/test", "/none", 1);
    let url = PostgresUrl::parse(&url, |path| path.into()).unwrap();
    let refused = open(&url, &key(1), Arc::new(SystemClock), Arc::new(SystemRandomness::default()), Arc::default())
        .unwrap_err()
        .to_string();
    assert!(refused.contains(": 127.0.0.1:9: connection refused; "), "{refused}");
    assert!(refused.contains(" does not exist (3D000)") && !refused.contains("TOPSECRET"), "{refused}");
}

#[test]
fn what_a_session_cannot_be_set_to_is_reported() {
    let Some(place) = Place::new() else { return };
    let url = format!("{}&options=-cno_such=1", place.0.url());
    let url = PostgresUrl::parse(&url, |path| path.into()).unwrap();
    let refused = open(&url, &key(1), Arc::new(SystemClock), Arc::new(SystemRandomness::default()), Arc::default())
        .unwrap_err()
        .to_string();
    assert!(refused.contains("unrecognized configuration parameter \"no_such\" (42704)"), "{refused}");
}

#[tokio::test]
async fn what_keeps_a_running_node_from_its_hosts_is_reported_in_words() {
    let Some(place) = Place::new() else { return };
    drop(place.open_node());
    let user = humble(&place);
    let store = humble_node(&place, &user, "127.0.0.1:9,");
    store.probe().await.unwrap();
    place.0.sql(&format!("ALTER ROLE {user} NOLOGIN"));
    place.0.sql(&format!("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '{user}'"));
    let refused = store.probe().await.unwrap_err().to_string();
    let unreachable = "the store is unavailable: the database cannot be reached: 127.0.0.1:9: connection \
        refused; 127.0.0.1:";
    assert!(refused.starts_with(unreachable), "{refused}");
    assert!(refused.ends_with(": the database does not let this user in (28000)"), "{refused}");
    assert!(!refused.contains("TOPSECRET"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_creates_that_drew_the_same_id_one_is_stored() {
    let Some(place) = Place::new() else { return };
    let store = Arc::new(place.open_node());
    let id = deposit("acme", "any").operation.id;
    let creates: Vec<_> = (0..20)
        .map(|number| {
            let mut draft = NewOperation { opening: None, ..deposit("acme", &format!("order-{number}")) };
            draft.operation.id = id;
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.create(draft).await.unwrap() })
        })
        .collect();
    let mut stored = 0;
    for create in creates {
        match create.await.unwrap() {
            InsertOutcome::Created(_) => stored += 1,
            other => assert!(matches!(other, InsertOutcome::IdTaken), "{other:?}"),
        }
    }
    assert_eq!((stored, &*place.0.sql("SELECT count(*) FROM operations")), (1, "1"));
}

/// The result of a load of creates.
#[derive(Default)]
struct Load {
    acknowledged: std::sync::Mutex<Vec<(OrderId, TransactionId)>>,
    refused: AtomicUsize,
    stop: AtomicBool,
}

/// Creates until it is stopped: deposits that share statements, and withdrawals with decisions.
async fn create_on(store: Arc<PostgresStore>, load: Arc<Load>, caller: usize) {
    for number in 0.. {
        if load.stop.load(Ordering::Relaxed) {
            return;
        }
        let text = format!("{caller}-{number}");
        let make = || match caller % 2 {
            0 => NewOperation { opening: None, ..deposit("acme", &text) },
            _ => NewOperation { enforce_balance: true, opening: None, ..withdrawal("acme", &text) },
        };
        let draft = make();
        let (order, id) = (draft.operation.order_id.clone(), draft.operation.id);
        match store.create(draft).await {
            Ok(InsertOutcome::Created(outcome)) => {
                assert_eq!(
                    outcome == CreateOutcome::AsDrafted,
                    caller.is_multiple_of(2),
                    "there is nothing to withdraw"
                );
                load.acknowledged.lock().unwrap().push((order, id));
            }
            Ok(other) => panic!("{text}: {other:?}"),
            Err(StoreError::Unavailable(_)) => {
                load.refused.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => panic!("{text}: {error}"),
        }
    }
}

/// Checks that everything acknowledged is stored under its acknowledged id, and every order once.
async fn assert_kept(store: &PostgresStore, place: &server::Database, load: &Load) {
    let acknowledged = load.acknowledged.lock().unwrap().clone();
    assert!(acknowledged.len() > 50, "{} were acknowledged", acknowledged.len());
    for (order, id) in &acknowledged {
        let caller: usize = order.as_str().split('-').next().unwrap().parse().unwrap();
        let direction = if caller.is_multiple_of(2) { Direction::Payin } else { Direction::Payout };
        let found = store.by_order(&merchant("acme"), direction, order).await.unwrap();
        let OrderLookup::Operation(stored) = found else { panic!("{order:?} is lost") };
        assert_eq!(stored.operation.id, *id, "{order:?}");
    }
    let ids: HashSet<_> = acknowledged.iter().map(|(_, id)| id).collect();
    assert_eq!(ids.len(), acknowledged.len());
    let doubled = "SELECT count(*) FROM (SELECT 1 FROM operations o JOIN contexts x ON x.id = o.context \
         GROUP BY x.direction, o.order_id HAVING count(*) > 1) AS d";
    assert_eq!(place.sql(doubled), "0");
    audited(store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_lose_and_double_nothing() {
    let Some(place) = Place::new() else { return };
    let store = Arc::new(place.open_node());
    let load = Arc::new(Load::default());
    let callers: Vec<_> =
        (0..16).map(|caller| tokio::spawn(create_on(Arc::clone(&store), Arc::clone(&load), caller))).collect();
    let answered = || load.acknowledged.lock().unwrap().len();
    for round in 0..20 {
        until("creates go on", || answered() > 10 * round).await;
        place.0.sql(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE datname = current_database() AND application_name = 'paybridge'",
        );
    }
    until("creates go on", || answered() > 250).await;
    load.stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    assert_kept(&store, &place.0, &load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_crashes_and_comes_back_is_found_again() {
    let Some(mut server) = server::Server::start(&["fsync=on"]) else { return };
    let place = Place(server.database());
    let store = Arc::new(place.open_node());
    let load = Arc::new(Load::default());
    let callers: Vec<_> =
        (0..8).map(|caller| tokio::spawn(create_on(Arc::clone(&store), Arc::clone(&load), caller))).collect();
    let answered = || load.acknowledged.lock().unwrap().len();
    until("creates begin", || answered() > 60).await;
    server.kill();
    until("creates are refused", || load.refused.load(Ordering::Relaxed) > 0).await;
    assert!(matches!(store.probe().await, Err(StoreError::Unavailable(_))));
    let before = answered();
    server.start_again();
    until("creates go on without a new start", || answered() > before + 60).await;
    load.stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    assert_kept(&store, &place.0, &load).await;
}

/// A server that takes over may lack the last commits of the one before, and with them a context that is known to be stored.
#[tokio::test]
async fn a_context_that_is_lost_is_stored_again_before_anything_names_it() {
    let Some(place) = Place::new() else { return };
    let store = place.open_node();
    let next = |order: &str| NewOperation { opening: None, ..withdrawal("acme", order) };
    created(&store, withdrawal("acme", "first")).await;
    created(&store, next("second")).await;
    place.0.sql(
        "DELETE FROM operations; DELETE FROM homes; DELETE FROM entries; DELETE FROM balance_changes; \
         DELETE FROM accounts; DELETE FROM contexts",
    );
    let lost = store.create(next("third")).await.unwrap();
    assert!(matches!(lost, InsertOutcome::IdTaken), "{lost:?}");
    assert_eq!(place.0.sql("SELECT count(*) FROM homes"), "0", "nothing is left of it");
    let third = created(&store, next("third")).await;
    assert!(store.by_id(third).await.unwrap().is_some());
    assert_eq!(place.0.sql("SELECT count(*) FROM entries"), "2", "it is held");
}
