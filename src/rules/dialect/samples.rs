//! Sample values for reply templates: the members of real replies and callbacks, with every kind of value. A template
//! is rendered with all of them when it is loaded, so that it does not fail on the first real operation.

use serde_json::{Value, json};

use crate::rules::StatusWords;

/// Text that has to be escaped: quotes, backslashes, control characters, JavaScript line ends, HTML markup, and
/// characters outside the basic plane.
const ODD_TEXT: &str = "\"a\\b\"/'\u{1}\t\r\n\u{7f}\u{2028}</script>{{ é 付款 😀";

/// The longest `external_id` or account, in characters.
const LONGEST_TEXT: usize = 255;

/// The longest error message, which names very many members, in characters.
const LONGEST_MESSAGE: usize = 4096;

/// The longest link, in characters.
const LONGEST_LINK: usize = 2048;

/// The largest page of a history.
const LARGEST_PAGE: usize = 200;

/// The status codes of errors.
const ERROR_CODES: [u16; 15] = [400, 401, 403, 404, 405, 408, 409, 413, 415, 429, 500, 501, 502, 503, 504];

/// Returns samples of all values with which a reply is rendered, with the dialect's `words`.
pub(crate) fn samples(reply: &str, words: &StatusWords) -> Vec<Value> {
    match reply {
        "payin" => created().map(with_link).into(),
        "payout" => created().into(),
        "balance" => balances(),
        "transactions" => pages(words),
        "error" => errors(),
        // A callback reports a result, so its status is never PENDING.
        "callback" => operations(&[&words.success, &words.failed]),
        _ => operations(&[&words.pending, &words.success, &words.failed]),
    }
}

fn created() -> [Value; 3] {
    let odd = odd(LONGEST_TEXT);
    // The last id is the longest that a remote engine may return; it does not fit a signed 64-bit integer.
    [("7", "order-1"), ("1234567890123456789", &odd), ("9999999999999999999", "0012")]
        .map(|(transaction_id, external_id)| json!({ "transaction_id": transaction_id, "external_id": external_id }))
}

/// Returns `length` characters, most of which have to be escaped.
fn odd(length: usize) -> String {
    ODD_TEXT.chars().cycle().take(length).collect()
}

fn with_link(created: Value) -> Value {
    let link = "https://pay.example/pay/7?expires=1767225600&signature=0a1b";
    with(created, json!({ "redirect_url": format!("{link:a<LONGEST_LINK$}") }))
}

/// An object with the members of another one.
fn with(mut object: Value, more: Value) -> Value {
    if let (Value::Object(members), Value::Object(more)) = (&mut object, more) {
        members.extend(more);
    }
    object
}

/// Returns operations of both directions in each of these states, with and without an account.
fn operations(statuses: &[&str]) -> Vec<Value> {
    let amounts = ["10.50", "0.01", "9999999999999.99"];
    let accounts = [json!(null), json!("411111******1111"), json!(odd(LONGEST_TEXT))];
    let mut operations = Vec::new();
    for (number, (created, amount)) in created().into_iter().zip(amounts).enumerate() {
        for (status, account) in statuses.iter().cycle().skip(number).zip(&accounts) {
            for direction in ["payin", "payout"] {
                let operation = json!({
                    "status": status,
                    "amount": amount,
                    "currency": "EUR",
                    "shop_code": "card-eur",
                    "account_number": account,
                    "type": direction,
                    "created_at": "2026-01-02T03:04:05.678Z",
                });
                operations.push(with(created.clone(), operation));
            }
        }
    }
    operations
}

fn pages(words: &StatusWords) -> Vec<Value> {
    let operations = operations(&[&words.pending, &words.success, &words.failed]);
    let of = |length: usize| -> Vec<_> { operations.iter().cycle().take(length).cloned().collect() };
    [(0, 1, false), (1, 1, false), (2, 3, true), (LARGEST_PAGE, 1, true)]
        .map(|(length, page, has_more)| {
            let per_page = length.max(1);
            json!({ "transactions": of(length), "page": page, "per_page": per_page, "has_more": has_more })
        })
        .into()
}

fn balances() -> Vec<Value> {
    let one = |currency, available, held| json!({ "currency": currency, "available": available, "held": held });
    let (eur, usd) = (one("EUR", "120.00", "10.00"), one("USD", "-92233720368547758.08", "92233720368547758.07"));
    [vec![], vec![eur.clone()], vec![eur, usd]].map(|balances| json!({ "balances": balances })).into()
}

fn errors() -> Vec<Value> {
    let plain = ERROR_CODES.iter().map(|code| json!({ "code": code, "message": "amount: is required" }));
    plain.chain([json!({ "code": 400, "message": odd(LONGEST_MESSAGE) })]).collect()
}
