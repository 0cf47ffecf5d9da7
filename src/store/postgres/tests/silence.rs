//! Servers that accept connections and do not respond: frozen machines, and routers that lost the connection.

use std::net::TcpListener;
use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::store::conformance::{created, deposit, withdrawal};

/// No caller may wait longer.
const MAX_OPEN_TIME: Duration = Duration::from_secs(10);

fn opened(url: &str) -> PostgresStore {
    let url = PostgresUrl::parse(url, |path| path.into()).unwrap();
    open(&url, &key(1), Arc::new(SystemClock), Arc::new(SystemRandomness::default()), Arc::default()).unwrap().store
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_host_does_not_keep_from_the_one_behind_it() {
    let Some(place) = Place::new() else { return };
    // The system accepts the connections, and nothing ever reads from them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = place.0.url().replace('@', &format!("@{},", silent.local_addr().unwrap()));
    let began = Instant::now();
    let store = Arc::new(opened(&url));
    created(&*store, deposit("acme", "one")).await;
    assert!(began.elapsed() < Duration::from_secs(4), "it took {:?}", began.elapsed());
    let began = Instant::now();
    let creates = (0..8).map(|number| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { created(&*store, withdrawal("acme", &number.to_string())).await })
    });
    for create in creates.collect::<Vec<_>>() {
        create.await.unwrap();
    }
    assert!(began.elapsed() < Duration::from_secs(2), "the good one first: it took {:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_server_does_not_block_requests() {
    let Some(server) = server::Server::start(&[]) else { return };
    let database = server.database();
    let store = Arc::new(opened(&database.url()));
    created(&*store, deposit("acme", "before")).await;
    server.freeze();
    // More than two statements have: the rest waits.
    let waiting: Vec<_> = (0..300)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let began = Instant::now();
                let created =
                    store.create(NewOperation { opening: None, ..deposit("acme", &number.to_string()) }).await;
                (created, began.elapsed())
            })
        })
        .collect();
    for create in waiting {
        let (outcome, took) = create.await.unwrap();
        assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
        assert!(took < MAX_OPEN_TIME, "it took {took:?}");
    }
    server.thaw();
    created(&*store, deposit("acme", "after")).await;
}
