//! Good bodies, to be varied.

use serde_json::{Value, json};

/// A good v1 deposit.
pub fn payin(external_id: &str) -> Value {
    json!({
        "external_id": external_id, "amount": "10.50", "currency": "EUR", "shop_code": "card-eur",
        "callback_url": "https://acme.example/cb", "merchant_user_id": "42", "merchant_user_ip": "203.0.113.9",
        "paymentData": { "return_user_url": "https://acme.example/done?x=1", "email": "ann@example.com" },
    })
}

/// A good v1 withdrawal.
pub fn payout(external_id: &str) -> Value {
    json!({
        "external_id": external_id, "amount": "7.25", "currency": "EUR", "shop_code": "card-eur",
        "callback_url": "https://acme.example/cb", "card_number": super::CARD,
    })
}

/// A good v2 deposit.
pub fn deposit(order_id: &str) -> Value {
    json!({
        "order_id": order_id, "amount": 10.5, "currency": "EUR", "method": "card-eur",
        "callback_url": "https://acme.example/cb", "success_url": "https://acme.example/ok",
        "pending_url": "https://acme.example/wait", "fail_url": "https://acme.example/no",
        "fields": { "email": "ann@example.com", "merchant_user_ip": "203.0.113.9" },
    })
}

/// A good v2 withdrawal.
pub fn withdrawal(order_id: &str) -> Value {
    json!({
        "order_id": order_id, "amount": 7.25, "currency": "EUR", "method": "card-eur",
        "callback_url": "https://acme.example/cb", "account_number": super::CARD,
    })
}

/// The body with a member set; a path with dots reaches inside; `None` takes it away.
#[track_caller]
pub fn with(mut body: Value, path: &str, value: Option<Value>) -> Value {
    let (parents, name) = path.rsplit_once('.').map_or((None, path), |(parents, name)| (Some(parents), name));
    let mut place = &mut body;
    for parent in parents.into_iter().flat_map(|parents| parents.split('.')) {
        place = place.as_object_mut().unwrap().entry(parent).or_insert_with(|| json!({}));
    }
    let place = place.as_object_mut().unwrap();
    match value {
        Some(value) => place.insert(name.to_owned(), value),
        None => place.remove(name),
    };
    body
}
