//! A v1 body as people may see it: card numbers are masked, however their digits are spelled.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value as Json;

use crate::domain::AccountNumber;
use crate::json::{self, Node, Object, Value};
use crate::telemetry::without_cards;
use crate::wire::v1::payment_data;

/// The members that hold an account, which is masked like a card number even if its check digit is wrong.
const ACCOUNTS: [&str; 2] = ["card_number", "account_number"];

/// The members that hold ids of the merchant's own, in v1 and in v2.
const IDS: [&str; 4] = ["external_id", "merchant_user_id", "order_id", "customer_account_id"];

/// A masked card number or account, as [`masked`](crate::domain::masked) and [`without_cards`] leave it: six digits, stars, and
/// four digits.
static MASKED: LazyLock<Regex> = LazyLock::new(|| {
    let apart = r"[\s.\x{2010}\x{2011}\x{2013}-]*";
    let parts = [r"[0-9](?:", apart, "[0-9]){5}(?:", apart, r"\*){2,9}(?:", apart, "[0-9]){4}"];
    Regex::new(&parts.concat()).expect("the pattern is compiled by a test")
});

/// Masks card numbers in a body of any shape. The rest is shown as it was sent, except for escapes that JSON does not need.
#[must_use]
pub fn masked_body(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let read = json::read(body).ok();
    let top = read.as_ref().and_then(Value::as_object);
    let members =
        top.into_iter().flat_map(|top| top.0.iter().chain(payment_data(top).into_iter().flat_map(|data| &data.0)));
    let accounts: Vec<_> = members.filter(|member| ACCOUNTS.contains(&&*member.name)).collect();
    let mut shown = String::new();
    let ids = ids(top);
    for (place, part) in between(&text, &ids).into_iter().enumerate() {
        let part = accounts.iter().fold(Cow::Borrowed(part), |part, account| {
            part.replace(account.value.raw, &masked_account(&account.value)).into()
        });
        shown += &masked_json(&part);
        shown += ids.get(place).copied().unwrap_or_default();
    }
    shown
}

/// Reports whether a body holds a masked card number, as [`masked_body`] writes it: then it is not the body that was sent.
#[must_use]
pub fn holds_mask(body: &str) -> bool {
    let read = json::read(body.as_bytes()).ok();
    between(body, &ids(read.as_ref().and_then(Value::as_object))).into_iter().any(|part| MASKED.is_match(part))
}

/// Returns the ids of the merchant's own in a v1 body, as sent and in their order. Merchants look them up, so that these are
/// shown whole.
fn ids<'a>(top: Option<&Object<'a>>) -> Vec<&'a str> {
    let members = top.into_iter().flat_map(|top| &top.0).filter(|member| IDS.contains(&&*member.name));
    members.filter(|id| matches!(id.value.node, Node::String(_) | Node::Number)).map(|id| id.value.raw).collect()
}

/// Returns the parts of a text between parts of it, one more than these.
fn between<'t>(text: &'t str, parts: &[&str]) -> Vec<&'t str> {
    let (mut between, mut at) = (Vec::new(), 0);
    for part in parts {
        let from = part.as_ptr().addr().saturating_sub(text.as_ptr().addr());
        between.push(text.get(at..from).unwrap_or_default());
        at = from + part.len();
    }
    between.push(text.get(at..).unwrap_or_default());
    between
}

/// Masks card numbers in the value of a member, as JSON text. `path`: its name, in an object after the object's name.
pub(super) fn masked_value(path: &str, raw: &str) -> String {
    let name = path.rsplit('.').next().unwrap_or_default();
    match json::read(raw.as_bytes()) {
        Ok(value) if ACCOUNTS.contains(&name) => masked_json(&masked_account(&value)),
        Ok(_) if IDS.contains(&path) => without_escapes(raw).into_owned(),
        _ => masked_json(raw),
    }
}

/// Masks card numbers in JSON text.
pub(super) fn masked_json(text: &str) -> String {
    without_cards(&without_escapes(text)).into_owned()
}

fn masked_account(value: &Value<'_>) -> String {
    match value.as_str().map(AccountNumber::new) {
        Some(Ok(account)) => Json::String(account.masked()).to_string(),
        _ => AccountNumber::new(value.raw).map_or_else(|_| value.raw.to_owned(), |account| account.masked()),
    }
}

/// Writes the escapes of printable ASCII characters as these characters, since an escape could hide a digit. The text stays
/// the same JSON.
fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        shown.push_str(before);
        rest = if let Some((character, after)) = escaped_ascii(escape) {
            shown.push(character);
            after
        } else {
            // The backslash and the character behind it, which may be another backslash.
            let length = escape.chars().next().map_or(0, char::len_utf8);
            let (kept, after) = escape.split_at(length);
            shown.push('\\');
            shown.push_str(kept);
            after
        };
    }
    shown.push_str(rest);
    shown.into()
}

/// Reads an escape behind its backslash: the character, if it needs no escape, and the text after it.
fn escaped_ascii(escape: &str) -> Option<(char, &str)> {
    if let Some(after) = escape.strip_prefix('/') {
        return Some(('/', after));
    }
    let (digits, after) = escape.strip_prefix('u')?.split_at_checked(4)?;
    let digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(digits)?;
    let character = char::from(u8::from_str_radix(digits, 16).ok()?);
    let is_plain = matches!(character, ' '..='~') && !matches!(character, '"' | '\\');
    is_plain.then_some((character, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn card_numbers_are_masked_in_any_spelling() {
        for (body, shown) in [
            (r#"{"x":"4111 1111 1111 1111"}"#, r#"{"x":"4111 11** **** 1111"}"#),
            (r#"{"x":4111111111111111}"#, r#"{"x":411111******1111}"#),
            (
                r#"{"4111111111111111":[{"y":"a4111111111111111b"}]}"#,
                r#"{"411111******1111":[{"y":"a411111******1111b"}]}"#,
            ),
            (r#"{"x":"\u0034111\u0031111111\u00311111"}"#, r#"{"x":"411111******1111"}"#),
            (r#"{"x":"\\u0034111"}"#, r#"{"x":"\\u0034111"}"#),
            (r#"{"x":"https:\/\/a.example\/4111111111111111"}"#, r#"{"x":"https://a.example/411111******1111"}"#),
            // No card number by its check digit.
            (r#"{ "card_number" : "4111111111111112" }"#, r#"{ "card_number" : "411111******1112" }"#),
            (r#"{"card_number":4111111111111112}"#, r#"{"card_number":411111******1112}"#),
            (r#"{"card_number":"41111111\u2011 11111112"}"#, "{\"card_number\":\"411111**\u{2011} ****1112\"}"),
            (
                r#"{"paymentData":{"account_number":"123456789012"}}"#,
                r#"{"paymentData":{"account_number":"123456**9012"}}"#,
            ),
            (r#"{"card_number":"wallet-7"}"#, r#"{"card_number":"wallet-7"}"#),
            (r#"{"external_id":"4111111111111111"}"#, r#"{"external_id":"4111111111111111"}"#),
            (
                r#"{"merchant_user_id":"4111111111111111","x":"5500005555555559"}"#,
                r#"{"merchant_user_id":"4111111111111111","x":"550000******5559"}"#,
            ),
            (r#"{"merchant_user_id":4111111111111111}"#, r#"{"merchant_user_id":4111111111111111}"#),
            // No JSON.
            (r#"{"x":"4111111111111111","#, r#"{"x":"411111******1111","#),
            ("\\", "\\"),
            ("\\u00", "\\u00"),
            ("\\u+034\\ud83d\\n\\\"", "\\u+034\\ud83d\\n\\\""),
        ] {
            assert_eq!(masked_body(body.as_bytes()), shown);
        }
        assert_eq!(masked_body(b"4111111111111111\xff"), "411111******1111\u{fffd}");
    }

    #[test]
    fn what_masking_makes_is_known_again() {
        for (body, is_masked) in [
            (r#"{"x":"4111 1111 1111 1111"}"#, true),
            (r#"{"x":4111111111111111}"#, true),
            (r#"{"card_number":"41111111\u2011 11111112"}"#, true),
            (r#"{"paymentData":{"account_number":"123456789012"}}"#, true),
            (r#"{"x":"4111111111111111","#, true),
            (r#"{"card_number":"wallet-7","amount":"12.50"}"#, false),
            (r#"{"external_id":"4111111111111111"}"#, false),
        ] {
            assert!(!holds_mask(body), "{body}");
            assert_eq!(holds_mask(&masked_body(body.as_bytes())), is_masked, "{body}");
        }
        // No id is masked here: a merchant has this one.
        assert!(!holds_mask(r#"{"external_id":"411111******1111"}"#));
        assert!(!holds_mask(r#"{"x":"123456*7890 and 12345**6789"}"#));
    }
}
