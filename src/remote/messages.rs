//! Error messages of an engine, with v1's names of members in place of v2's.

use crate::domain::is_deceptive;
use crate::error::RequestError;
use crate::json::Node;
use crate::names::Nameable;
use crate::telemetry::without_cards;
use crate::wire::members::{object, read_object};
use crate::wire::v1::v1_name;

/// The longest message that is passed on, in characters.
const MAX_MESSAGE_CHARS: usize = 300;

/// This many hexadecimal digits in a row could be a signature.
const SIGNATURE_DIGITS: usize = 32;

/// Reads an engine's error body: the member that its message begins with, by its v2 name, and the rest with v1 names. A body
/// without a message that may be shown gives a general one.
pub(super) fn error(body: &[u8]) -> RequestError {
    let Some(message) = message(body) else { return RequestError::body("the payment engine refused the request") };
    match message.split_once(": ") {
        Some((path, reason)) if !path.is_empty() && path.chars().all(|c| is_name(c) || matches!(c, '[' | ']')) => {
            RequestError::member(path.to_owned(), in_v1_words(reason))
        }
        _ => RequestError::body(in_v1_words(&message)),
    }
}

/// Returns the member that an engine's message begins with, by its v2 name; of a conflict all that differ, by commas.
pub(super) fn member(body: &[u8]) -> Option<Box<str>> {
    differing(&message(body)?).or_else(|| Some(Nameable(error(body).path()?).shown().into()))
}

/// Reads the members that differ from the message of a conflict: the first eight, by commas.
pub(super) fn differing(message: &str) -> Option<Box<str>> {
    let (_, names) = message.split_once("differs in: ")?;
    let names = names.split(", ").filter_map(|name| name.split(' ').next()).map(|name| Nameable(name).shown());
    Some(names.take(8).collect::<Vec<_>>().join(",").into())
}

/// Returns the message of an error body `{"error":{"code":...,"message":"..."}}`, if it may be shown.
fn message(body: &[u8]) -> Option<String> {
    let body = read_object(body).ok()?;
    let error = object("error", body.get("error")?).ok()?;
    let Node::String(text) = &error.get("message")?.node else { return None };
    let text = text.trim();
    let is_fit = !text.is_empty()
        && text.chars().count() <= MAX_MESSAGE_CHARS
        && !text.chars().any(|c| c.is_control() || is_deceptive(c))
        && !text.split(|c: char| !c.is_ascii_hexdigit()).any(|digits| digits.len() >= SIGNATURE_DIGITS);
    is_fit.then(|| without_cards(text).into_owned())
}

const fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}

/// Replaces every v2 name that is a whole word by v1's.
fn in_v1_words(text: &str) -> String {
    let renamed = text.split_inclusive(|c| !is_name(c)).map(|piece| {
        let name = piece.trim_end_matches(|c| !is_name(c) || matches!(c, '.' | '-'));
        v1_name(name, false) + &piece[name.len()..]
    });
    let renamed: String = renamed.collect();
    // In a list, three members of v2 are one of v1's.
    let mut parts: Vec<_> = renamed.split(", ").collect();
    parts.dedup_by(|next, last| last.split(' ').next_back() == Some(*next));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(message: &str) -> String {
        let body = serde_json::json!({ "error": { "code": 400, "message": message } }).to_string();
        error(body.as_bytes()).renamed(|path| v1_name(path, false)).to_string()
    }

    #[test]
    fn engines_are_reported_in_v1_words() {
        for (original, shown) in [
            ("fields.bank_code: is required", "paymentData.bank_code: is required"),
            ("method: the shop is not active", "shop_code: the shop is not active"),
            ("amount: must be greater than 0", "amount: must be greater than 0"),
            (
                "order_id: exists already; differs in: fields.a, method, success_url",
                "external_id: exists already; differs in: paymentData.a, shop_code, paymentData.return_user_url",
            ),
            (
                "order_id: exists already; differs in: success_url, pending_url, fail_url, fields.a",
                "external_id: exists already; differs in: paymentData.return_user_url, paymentData.a",
            ),
            ("the order_id is taken.", "the external_id is taken."),
            ("Missing order_id.", "Missing external_id."),
            ("give \"method\" and 'fields'", "give \"shop_code\" and 'paymentData'"),
            ("customer_account_id, account_number", "merchant_user_id, card_number"),
            ("my_order_id, order_id_ and order_ids stay", "my_order_id, order_id_ and order_ids stay"),
            ("see https://a.example/fields.x", "see https://a.example/paymentData.x"),
            ("account 4111111111111111 is closed", "account 411111******1111 is closed"),
            ("account 4111-1111 1111-1111 is closed", "account 4111-11** ****-1111 is closed"),
        ] {
            assert_eq!(translated(original), shown);
        }
    }

    #[test]
    fn members_at_fault_are_read_for_the_log() {
        for (message, expected) in [
            ("amount: must be positive", Some("amount")),
            (
                "order_id: exists already and was created from other data; differs in: amount, fields.a",
                Some("amount,fields.a"),
            ),
            ("order_id: exists; differs in: a, b, c, d, e, f, g, h, i and 3 more", Some("a,b,c,d,e,f,g,h")),
            ("the order is taken", None),
        ] {
            let body = serde_json::json!({ "error": { "code": 409, "message": message } }).to_string();
            assert_eq!(member(body.as_bytes()).as_deref(), expected, "{message}");
        }
        assert_eq!(member(b"no JSON"), None);
    }

    #[test]
    fn what_must_not_be_shown_is_not() {
        let long = "x ".repeat(151);
        for original in [
            "",
            "  ",
            "two\nlines",
            "a\u{202e}b",
            "not 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            &long,
        ] {
            assert_eq!(translated(original), "the payment engine refused the request", "{original}");
        }
        for body in
            ["", "null", "<html>", "{}", r#"{"error":"no"}"#, r#"{"error":{"code":400}}"#, r#"{"error":{"message":1}}"#]
        {
            assert_eq!(error(body.as_bytes()).to_string(), "the payment engine refused the request", "{body}");
        }
    }
}
