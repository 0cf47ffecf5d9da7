//! Reading an engine's responses: the members that they must have (promises P020 to P039 and P165). Others are
//! ignored, and errors hold no value of a response.

use crate::domain::{AccountNumber, Amount, Currency, Direction, RedirectUrl, Status};
use crate::json::{Node, Object};
use crate::store::{EngineAnswer, JournalEntry, StatusUpdate};
use crate::wire::members::{present, read_object};

/// The longest `transaction_id`, in digits.
const LONGEST_ID: usize = 64;

/// Reports whether a text is a transaction id of v2: digits, not too many.
pub(super) fn is_transaction_id(text: &str) -> bool {
    (1..=LONGEST_ID).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads the body of a create's 200.
///
/// # Errors
/// What is missing or wrong, for the log.
pub(super) fn created(direction: Direction, body: &[u8]) -> Result<EngineAnswer, String> {
    let reply = object(body)?;
    let transaction_id = string(&reply, "transaction_id")?;
    if !is_transaction_id(transaction_id) {
        return Err(wrong("transaction_id"));
    }
    let redirect_url = match direction {
        Direction::Payin => {
            let link = string(&reply, "redirect_url")?;
            if !is_link(link) {
                return Err(wrong("redirect_url"));
            }
            Some(RedirectUrl::new(link.to_owned()))
        }
        Direction::Payout => None,
    };
    Ok(EngineAnswer { transaction_id: transaction_id.into(), redirect_url })
}

/// Reports whether a text is an absolute URL for a browser, of any length, since it is the engine's own.
fn is_link(text: &str) -> bool {
    let rest = ["https://", "http://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    host.is_some_and(|host| !host.is_empty() && !host.contains('@')) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Reads the status record of an entry's operation.
///
/// # Errors
/// What is missing, wrong or of another operation, for the log.
pub(super) fn record(entry: &JournalEntry, transaction_id: &str, body: &[u8]) -> Result<StatusUpdate, String> {
    let record = object(body)?;
    if string(&record, "transaction_id")? != transaction_id {
        return Err(wrong("transaction_id"));
    }
    if string(&record, "order_id")? != entry.create.order_id.as_str() {
        return Err(wrong("order_id"));
    }
    let amount = record.get("amount").filter(|value| value.node == Node::Number);
    if amount.and_then(|value| Amount::from_json_number(value.raw).ok()) != Some(entry.create.amount) {
        return Err(wrong("amount"));
    }
    if Currency::new(string(&record, "currency")?).ok() != Some(entry.create.currency) {
        return Err(wrong("currency"));
    }
    let status = match string(&record, "status")? {
        "PENDING" => Status::Pending,
        "SUCCESS" => Status::Success,
        "FAILED" => Status::Failed,
        _ => return Err(wrong("status")),
    };
    let method = string(&record, "method")?;
    if !(1..=128).contains(&method.chars().count()) || method.chars().any(char::is_control) {
        return Err(wrong("method"));
    }
    let account = present(&record, "account_number").map(|_| account(&record)).transpose()?;
    Ok(StatusUpdate { status, shop: method.into(), account })
}

fn account(record: &Object<'_>) -> Result<AccountNumber, String> {
    let account = AccountNumber::new(string(record, "account_number")?).map_err(|_| wrong("account_number"))?;
    AccountNumber::new(&account.masked()).map_err(|_| wrong("account_number"))
}

fn object(body: &[u8]) -> Result<Object<'_>, String> {
    // An error names at most a member of the body, which the engine chose.
    read_object(body).map_err(|_| "it is no valid JSON object".to_owned())
}

fn string<'v>(object: &'v Object<'_>, name: &str) -> Result<&'v str, String> {
    match object.get(name).map(|value| &value.node) {
        Some(Node::String(text)) => Ok(text),
        Some(_) => Err(format!("its {name} is no string")),
        None => Err(format!("it has no {name}")),
    }
}

fn wrong(name: &str) -> String {
    format!("its {name} is not what v2 promises")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::tests::entry;

    #[test]
    fn a_create_is_believed_when_it_has_what_v2_promises() {
        let long = "1".repeat(65);
        for (direction, body, ok) in [
            (Direction::Payout, r#"{"transaction_id":"7"}"#, true),
            (Direction::Payout, r#"{"transaction_id":"007","more":[1]}"#, true),
            (Direction::Payin, r#"{"transaction_id":"7","redirect_url":"https://p.example/pay/7?a=b"}"#, true),
            (Direction::Payin, r#"{"transaction_id":"7"}"#, false),
            (Direction::Payin, r#"{"transaction_id":"7","redirect_url":"/pay/7"}"#, false),
            (Direction::Payin, r#"{"transaction_id":"7","redirect_url":"javascript:alert(1)"}"#, false),
            (Direction::Payin, r#"{"transaction_id":"7","redirect_url":"https://"}"#, false),
            (Direction::Payin, r#"{"transaction_id":"7","redirect_url":"https://a@p.example/"}"#, false),
            (Direction::Payin, r#"{"transaction_id":"7","redirect_url":"https://p.example/a b"}"#, false),
            (
                Direction::Payin,
                &format!(r#"{{"transaction_id":"7","redirect_url":"https://p.example/{}"}}"#, "x".repeat(9000)),
                true,
            ),
            (Direction::Payin, r#"{"transaction_id":"7","redirect_url":null}"#, false),
            (Direction::Payout, r#"{"transaction_id":7}"#, false),
            (Direction::Payout, r#"{"transaction_id":""}"#, false),
            (Direction::Payout, r#"{"transaction_id":"7a"}"#, false),
            (Direction::Payout, &format!(r#"{{"transaction_id":"{long}"}}"#), false),
            (Direction::Payout, r#"{"transaction_id":"7","transaction_id":"8"}"#, false),
            (Direction::Payout, r#"["7"]"#, false),
            (Direction::Payout, "", false),
            (Direction::Payout, "<html>", false),
        ] {
            let read = created(direction, body.as_bytes());
            assert_eq!(read.is_ok(), ok, "{body}: {read:?}");
        }
    }

    #[test]
    fn a_record_is_the_entrys_own() {
        let good = r#"{"order_id":"o1","transaction_id":"7","status":"SUCCESS","amount":10.5,"currency":"EUR","method":"card"}"#;
        let read = |body: &str| record(&entry("o1"), "7", body.as_bytes());
        let expected = StatusUpdate { status: Status::Success, shop: "card".into(), account: None };
        assert_eq!(read(good), Ok(expected));
        assert!(read(&good.replace("10.5", "1050e-2")).is_ok(), "by value");
        for (from, to) in [
            ("o1", "o2"),
            ("\"7\"", "\"8\""),
            ("\"7\"", "7"),
            ("SUCCESS", "DONE"),
            ("10.5", "10.51"),
            ("10.5", "\"10.50\""),
            ("EUR", "USD"),
            ("\"card\"", "\"\""),
            ("\"card\"", "null"),
            ("\"card\"", "\"card\",\"account_number\":7"),
            ("\"card\"", "\"card\",\"status\":\"SUCCESS\""),
        ] {
            assert!(read(&good.replace(from, to)).is_err(), "{from} {to}");
        }
        let with_account = good.replace("\"card\"", "\"card\",\"account_number\":\"4111111111111111\"");
        let account = read(&with_account).unwrap().account.unwrap();
        assert_eq!(account.expose(), "411111******1111", "what an engine forgot to mask");
        let null = good.replace("\"card\"", "\"card\",\"account_number\":null");
        assert_eq!(read(&null).unwrap().account, None);
    }
}
