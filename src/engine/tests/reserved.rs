//! Order ids of the old v1 service.

use super::*;
use crate::store::{HomeClaim, OrderHome};

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
