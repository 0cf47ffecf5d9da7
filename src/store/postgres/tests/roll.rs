//! The list of nodes.

use std::time::Duration;

use super::*;
use crate::store::{Announcement, Nodes as _, Roll};

fn announced(name: &str, rules_version: &str) -> Announcement {
    Announcement {
        name: name.into(),
        running: Duration::from_secs(90),
        release: "0.1.0".into(),
        rules_version: rules_version.into(),
        rules_age: Duration::from_secs(30),
        rules_error: None,
    }
}

async fn listed(store: &PostgresStore) -> Roll {
    store.nodes().await.unwrap().unwrap()
}

#[tokio::test]
async fn nodes_come_and_go() {
    let Some(place) = Place::new() else { return };
    let (one, other) = (place.open_node(), place.open_node());
    let empty = listed(&one).await;
    assert!(empty.nodes.is_empty() && empty.now.0 > 1_700_000_000_000, "{empty:?}");
    one.announce(announced("b", "1")).await.unwrap();
    other.announce(announced("a", "1")).await.unwrap();
    let roll = listed(&one).await;
    assert_eq!(roll.nodes.iter().map(|node| &*node.name).collect::<Vec<_>>(), ["a", "b"]);
    let first = roll.nodes[0].clone();
    assert_eq!((first.seen_at.0 - first.started_at.0, first.seen_at.0 - first.rules_loaded_at.0), (90_000, 30_000));
    assert!(roll.is_of_one_mind() && roll.now >= first.seen_at);

    let refused = Announcement { rules_error: Some("gateway.toml:1:1: é".into()), ..announced("a", "2") };
    other.announce(refused).await.unwrap();
    let roll = listed(&one).await;
    assert_eq!((&*roll.nodes[0].rules_version, roll.nodes[0].started_at), ("2", first.started_at));
    assert_eq!(roll.nodes[0].rules_error.as_deref(), Some("gateway.toml:1:1: é"));
    assert!(roll.nodes.len() == 2 && !roll.is_of_one_mind());

    other.leave("a").await.unwrap();
    other.leave("a").await.unwrap();
    assert_eq!(listed(&one).await.nodes.len(), 1);
}

#[tokio::test]
async fn nodes_that_are_not_seen_are_gone_and_then_forgotten() {
    let Some(place) = Place::new() else { return };
    let store = place.open_node();
    for name in ["dead", "lost", "new"] {
        store.announce(announced(name, "1")).await.unwrap();
    }
    let ago = |name: &str, seconds: u32| {
        let seen = format!("(extract(epoch FROM now()) * 1000)::bigint - {seconds}000");
        place.0.sql(&format!("UPDATE nodes SET seen_at = {seen} WHERE name = '{name}'"));
    };
    ago("lost", 90);
    ago("dead", 3601);
    let roll = listed(&store).await;
    assert_eq!(roll.present().map(|node| &*node.name).collect::<Vec<_>>(), ["new"]);
    assert_eq!(roll.nodes.len(), 3);
    store.announce(announced("new", "1")).await.unwrap();
    let names: Vec<_> = listed(&store).await.nodes.into_iter().map(|node| node.name).collect();
    assert_eq!(names, ["lost".into(), "new".into()] as [Box<str>; 2]);
    store.announce(announced("lost", "1")).await.unwrap();
    assert_eq!(listed(&store).await.present().count(), 2, "it was away, and is back");
}
