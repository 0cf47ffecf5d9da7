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

// keeps D040
#[tokio::test]
async fn a_refused_create_reserves_nothing() {
    let world = World::new();
    for (refused, why) in [
        ("\"amount\":0", "400 amount"),
        ("\"currency\":\"USD\"", "400 currency"),
        ("\"method\":\"unknown\"", "400 method"),
        ("\"fields\":{\"level\":\"high\"}", "400 fields.level"),
        ("\"fields\":{\"bank_code\":\"b3\"}", "400 fields.bank_code"),
        ("\"fields\":{\"email\":1}", "400 fields.email"),
        ("\"surprise\":1", "400 surprise"),
    ] {
        let error = world.deposit(refused).await.unwrap_err();
        assert!(error.starts_with(why), "{error}");
        let standing = world.store().by_order(&acme(), Direction::Payin, &OrderId::new("o").unwrap()).await.unwrap();
        assert_eq!(standing, crate::store::OrderLookup::Free, "{refused}");
    }
    assert!(world.deposit("\"amount\":12").await.is_ok(), "corrected, the same order_id is new");
}

// keeps P239, P240, P241
#[tokio::test]
async fn the_scope_is_merchant_and_direction_across_shops() {
    let world = World::new();
    let first = world.deposit("").await.unwrap();
    let paid_out = world.withdraw("").await.unwrap();
    assert!(first.contains("redirect_url") && !paid_out.contains("redirect_url"));
    assert_ne!(id(&first), id(&paid_out));
    assert_eq!(world.withdraw("").await, Ok(paid_out));
    let of_other = world.create_with("o", Direction::Payin, &deposit("\"amount\":11")).await.unwrap();
    assert_ne!(id(&of_other), id(&first), "another merchant's order_id is its own");
    // Neither another shop nor another version is a way to retry.
    assert_eq!(world.deposit("\"method\":\"spare\"").await, differs_in("method"));
    let through_v1 = world.v1(Direction::Payin, r#"{"external_id":"o","amount":"10","currency":"EUR"}"#).await;
    assert!(through_v1.unwrap_err().starts_with("409 external_id: exists already and was created through v2"));
}

#[tokio::test]
async fn accounts_follow_the_shops_rule() {
    let world = World::new();
    for (account, expected) in [
        ("41111111111", Some("400 account_number: must be 12 to 19 digits")),
        ("+41111111111111", Some("400 account_number: must be 12 to 19 digits")),
        ("411111111111", None),
    ] {
        let answer = world.withdraw(&format!("\"account_number\":\"{account}\"")).await;
        assert_eq!(answer.as_ref().err().map(String::as_str), expected, "{account}");
    }
    assert_eq!(world.withdraw("").await, differs_in("account_number"));
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
