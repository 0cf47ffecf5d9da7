//! What an engine says of a request, in the words of the v1 body that the request was translated from.

use std::borrow::Cow;

use crate::failure::Complaint;
use crate::wire::json::Node;
use crate::wire::members::{object, read_object};
use crate::wire::v1::v1_name;

/// The longest sentence that is passed on, in characters.
const LONGEST: usize = 300;

/// So many digits in a row, whatever stands between them, could be a card number; so many hexadecimal ones a signature.
const CARD_DIGITS: usize = 12;
const SIGNATURE_DIGITS: usize = 32;

/// The complaint of an engine's error body: the member that its sentence begins with in v2 words, as for the engine's own
/// complaints, and the rest in v1 words. A body that says nothing fit to be shown gives a plain sentence.
pub fn complaint(body: &[u8]) -> Complaint {
    let Some(message) = message(body) else { return Complaint::body("the payment engine refused the request") };
    match message.split_once(": ") {
        Some((path, reason)) if is_path(path) => Complaint::member(path.to_owned(), told_once(&in_v1_words(reason))),
        _ => Complaint::body(told_once(&in_v1_words(&message))),
    }
}

/// The sentence of an error body `{"error":{"code":...,"message":"..."}}`, if it is fit to be shown.
fn message(body: &[u8]) -> Option<String> {
    let body = read_object(body).ok()?;
    let error = object("error", body.get("error")?).ok()?;
    match &error.get("message")?.node {
        Node::String(text) if is_fit(text) => Some(text.trim().to_owned()),
        _ => None,
    }
}

/// Nothing that could be a card number, a signature, a log's line break or a page of text.
fn is_fit(text: &str) -> bool {
    let plain = |c: char| !c.is_control() && (c.is_ascii() || c.is_alphanumeric() || "–—‘’“”…".contains(c));
    let between = |c: char| c == ' ' || c.is_ascii_punctuation();
    !text.trim().is_empty()
        && text.chars().count() <= LONGEST
        && text.chars().all(plain)
        && longest_run(text, char::is_numeric, between) < CARD_DIGITS
        && longest_run(text, |c| c.is_ascii_hexdigit(), |_| false) < SIGNATURE_DIGITS
}

/// How many of the wanted characters follow each other at most, those that are skipped not counted.
fn longest_run(text: &str, wanted: impl Fn(char) -> bool, skipped: impl Fn(char) -> bool) -> usize {
    let (mut run, mut longest) = (0, 0);
    for c in text.chars() {
        if wanted(c) {
            run += 1;
            longest = longest.max(run);
        } else if !skipped(c) {
            run = 0;
        }
    }
    longest
}

fn is_path(text: &str) -> bool {
    (1..=128).contains(&text.len()) && text.chars().all(|c| is_word(c) || c == '[' || c == ']')
}

const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}

/// The text with v2's names of members renamed. `method` and `fields` are English too: alone they are names only in quotes.
fn in_v1_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 32);
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|c| !is_word(c)).unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        out.push_str(before);
        let quote = before.chars().next_back().filter(|c| "\"'`".contains(*c));
        let quoted = quote.is_some() && quote == after.chars().next();
        out.push_str(&renamed(word, quoted));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A list without the names that follow themselves: three members of v2 are one of v1's.
fn told_once(text: &str) -> String {
    let mut parts: Vec<&str> = text.split(", ").collect();
    parts.dedup_by(|next, last| last.ends_with(&format!(" {next}")) || last == next);
    parts.join(", ")
}

fn renamed(word: &str, quoted: bool) -> Cow<'_, str> {
    let name = word.trim_end_matches(['.', '-']);
    if matches!(name, "method" | "fields") && !quoted {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("{}{}", v1_name(name, false), &word[name.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(message: &str) -> String {
        let body = serde_json::json!({ "error": { "code": 400, "message": message } }).to_string();
        complaint(body.as_bytes()).renamed(|path| v1_name(path, false)).to_string()
    }

    #[test]
    fn engines_are_told_in_v1_words() {
        for (said, shown) in [
            ("fields.bank_code: is required", "paymentData.bank_code: is required"),
            ("method: the shop is not active", "shop_code: the shop is not active"),
            ("amount: must be greater than 0", "amount: must be greater than 0"),
            (
                "order_id: exists already; differs in: fields.a, method, success_url",
                "external_id: exists already; differs in: paymentData.a, method, paymentData.return_user_url",
            ),
            (
                "order_id: exists already; differs in: success_url, pending_url, fail_url, fields.a",
                "external_id: exists already; differs in: paymentData.return_user_url, paymentData.a",
            ),
            ("the order_id is taken.", "the external_id is taken."),
            ("Missing order_id.", "Missing external_id."),
            (
                "use another method for \"method\" and 'fields'",
                "use another method for \"shop_code\" and 'paymentData'",
            ),
            ("customer_account_id, account_number", "merchant_user_id, card_number"),
            ("my_order_id and order_ids stay", "my_order_id and order_ids stay"),
            ("see https://a.example/fields.x", "see https://a.example/paymentData.x"),
            ("Größe «nein»", "the payment engine refused the request"),
        ] {
            assert_eq!(told(said), shown);
        }
    }

    #[test]
    fn what_must_not_be_shown_is_not() {
        let long = "x ".repeat(151);
        for said in [
            "",
            "  ",
            "account 4111111111111111 is closed",
            "account 4111-1111 1111.1111 is closed",
            "two\nlines",
            "a\u{202e}b",
            "not 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            &long,
        ] {
            assert_eq!(told(said), "the payment engine refused the request", "{said}");
        }
        for body in
            ["", "null", "<html>", "{}", r#"{"error":"no"}"#, r#"{"error":{"code":400}}"#, r#"{"error":{"message":1}}"#]
        {
            assert_eq!(complaint(body.as_bytes()).to_string(), "the payment engine refused the request", "{body}");
        }
    }
}
