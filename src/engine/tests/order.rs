//! The order of guards: shape, an existing order, today's rules, the commit.

use std::collections::BTreeSet;

use super::*;

/// What is sent: the same as the first request, other data, or a body of the wrong shape.
const SAME: &str = "";
const OTHER: &str = "\"amount\":11";
const SHAPE: &str = "\"amount\":\"10\"";

/// What exists under the order when a request arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    Nothing,
    Operation,
    Reservation,
}

// keeps D020, D026, D027
#[tokio::test]
async fn guards_stand_in_the_order_of_the_contract() {
    use Stands::{Nothing, Operation, Reservation};
    for (stands, shop_is_on, sent, expected) in [
        (Nothing, true, SAME, "200"),
        (Nothing, true, SHAPE, "400 amount"),
        (Nothing, false, SAME, "400 method"),
        (Nothing, false, SHAPE, "400 amount"),
        (Operation, true, SAME, "200"),
        (Operation, true, OTHER, "409 order_id: exists"),
        (Operation, true, SHAPE, "400 amount"),
        (Operation, false, SAME, "200"),
        (Operation, false, OTHER, "409 order_id: exists"),
        (Operation, false, SHAPE, "400 amount"),
        (Reservation, true, SAME, "409 order_id: is reserved"),
        (Reservation, true, SHAPE, "400 amount"),
        (Reservation, false, SAME, "409 order_id: is reserved"),
        (Reservation, false, SHAPE, "400 amount"),
    ] {
        let world = World::new();
        let first = if stands == Operation { Some(world.deposit(SAME).await.unwrap()) } else { None };
        if stands == Reservation {
            assert_eq!(world.reserve(Direction::Payin, &["o"]).await.new, 1);
        }
        if !shop_is_on {
            world.replace("shops/card.toml", "[payin]", "active = false\n[payin]");
        }
        let answer = world.deposit(sent).await;
        let case = format!("{stands:?}, shop on {shop_is_on}, sent {sent:?}: {answer:?}");
        match (&answer, expected) {
            (Ok(reply), "200") => assert!(first.is_none_or(|first| first == *reply), "{case}"),
            (Err(error), expected) => assert!(error.starts_with(expected), "{case}"),
            (Ok(_), _) => panic!("{case}"),
        }
        if stands == Nothing && expected != "200" {
            world.edit("shops/card.toml", CARD);
            assert!(world.deposit(OTHER).await.is_ok(), "a refused create reserves nothing: {case}");
        }
    }
}

// keeps P244, D042
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_creates_make_one_operation_and_one_posting() {
    let world = Arc::new(World::new());
    let creates: Vec<_> = (0..64)
        .map(|_| {
            let world = Arc::clone(&world);
            tokio::spawn(async move { world.withdraw("").await.unwrap() })
        })
        .collect();
    let mut replies = BTreeSet::new();
    for create in creates {
        replies.insert(create.await.unwrap());
    }
    assert_eq!(replies.len(), 1, "equal data gets its reply");
    assert_eq!(world.balances().await, ["EUR -1000 1000"], "one hold");
}
