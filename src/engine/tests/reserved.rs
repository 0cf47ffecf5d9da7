//! Order ids of the old v1 service.

use super::*;
use crate::store::{HomeClaim, OrderHome};

const RESERVED: &str = "409 order_id: is reserved: it was used with the old v1 service";

// keeps P235, P242, P258, D039
#[tokio::test]
async fn a_reserved_id_is_refused_for_every_request() {
    let world = World::new();
    assert_eq!(world.reserve(Direction::Payin, &["o", "p"]).await, Reservations { new: 2, ..Reservations::default() });
    for sent in ["", "\"amount\":11", "\"method\":\"spare\"", "\"order_id\":\"\\u006f\"", "\"order_id\":\"p\""] {
        assert_eq!(world.deposit(sent).await, Err(RESERVED.to_owned()), "{sent}");
    }
    // Today's rules would refuse it too, and the shape comes first.
    assert_eq!(world.deposit("\"currency\":\"USD\"").await, Err(RESERVED.to_owned()));
    assert_eq!(world.deposit("\"method\":\"unknown\"").await, Err(RESERVED.to_owned()));
    assert!(world.deposit("\"amount\":\"10\"").await.unwrap_err().starts_with("400 amount"));
    // It is reserved for one merchant and one direction.
    assert!(world.withdraw("").await.is_ok());
    assert!(world.create_with("o", Direction::Payin, &deposit("")).await.is_ok());
    // A reservation is no operation.
    assert!(world.deposit("\"order_id\":\"O\"").await.is_ok(), "text is compared as it is");
}

#[tokio::test]
async fn a_refusal_says_where_the_order_is_at_home() {
    const NATIVE: &str = "is reserved: it was used with another v2 engine";
    let world = World::new();
    let order = OrderId::new("o").unwrap();
    for direction in [Direction::Payin, Direction::Payout] {
        let claimed = world.store().claim(&acme(), direction, &order, HomeClaim::Native, UnixMillis(0)).await;
        assert_eq!(claimed.unwrap(), OrderHome::Native);
    }
    for sent in ["", "\"currency\":\"USD\""] {
        assert_eq!(world.deposit(sent).await, Err(format!("409 order_id: {NATIVE}")), "{sent}");
    }
    let body = r#"{"external_id":"o","amount":"10","currency":"EUR","card_number":"4111111111111111"}"#;
    assert_eq!(world.v1(Direction::Payout, body).await, Err(format!("409 external_id: {NATIVE}")));
}

// keeps D050
#[tokio::test]
async fn a_reservation_leaves_operations_alone() {
    let world = World::new();
    let first = world.deposit("").await.unwrap();
    let expected = Reservations { new: 1, known: 0, operations: 1 };
    assert_eq!(world.reserve(Direction::Payin, &["o", "p"]).await, expected);
    assert_eq!(world.deposit("").await, Ok(first), "repeated as before");
    assert_eq!(world.deposit("\"amount\":11").await, differs_in("amount"));
    assert_eq!(world.reserve(Direction::Payin, &["p"]).await, Reservations { known: 1, ..Reservations::default() });
}

#[tokio::test]
async fn v1_is_reported_in_its_own_words() {
    const TOLD: &str = "409 external_id: is reserved: it was used with the old v1 service";
    let world = World::new();
    world.reserve(Direction::Payin, &["o"]).await;
    world.reserve(Direction::Payout, &["o"]).await;
    for (direction, body) in [
        (Direction::Payin, r#"{"external_id":"o","amount":"10","currency":"EUR"}"#),
        // The engine's rules refuse it, then the merchant's.
        (Direction::Payin, r#"{"external_id":"o","amount":"10","currency":"USD","shop_code":"none"}"#),
        (Direction::Payin, r#"{"external_id":"o","amount":"10","currency":"EUR","unknown":1}"#),
        (Direction::Payin, r#"{"external_id":"o","amount":"10","currency":"EUR","merchant_user_id":"anna"}"#),
        (Direction::Payout, r#"{"external_id":"o","amount":"10","currency":"EUR","card_number":"4111111111111111"}"#),
        (Direction::Payout, r#"{"external_id":"o","amount":"10","currency":"EUR","card_number":"1"}"#),
    ] {
        assert_eq!(world.v1(direction, body).await, Err(TOLD.to_owned()), "{body}");
        let new = world.v1(direction, &body.replace("\"o\"", "\"new\"")).await;
        assert_ne!(new, Err(TOLD.to_owned()), "{body}");
    }
    let shape = world.v1(Direction::Payin, r#"{"external_id":"o","amount":10,"currency":"EUR"}"#).await;
    assert!(shape.unwrap_err().starts_with("400 amount"));
    // A reservation is no operation of this service: neither the status of v1 nor that of v2 (by another id) finds it.
    let caller = world.caller();
    let status = world.frontend().status(call(&caller), Direction::Payin, Some("external_id=o")).await;
    assert!(matches!(status, Err(ApiError::NotFound)), "{status:?}");
    let status = world.service().status(call(&caller), "o", HeaderValue::from_static("")).await;
    assert!(matches!(status, Err(ApiError::NotFound)), "{status:?}");
}
