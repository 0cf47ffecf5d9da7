//! Parses what a provider states about an operation, in an answer or in a report; both have one format
//! (docs/providers.md).
//!
//! The object must name its operation. Unknown members are ignored, so that providers may add some. A known member with
//! another type, or one that does not belong to this status or direction, makes the whole object an error: a provider
//! that is wrong about one member may be wrong about the result.

use crate::domain::{
    AccountNumber, Amount, BrowserUrl, Detail, Direction, Instructions, InvalidValue, Operation, Outcome, Preparation,
    ProviderReason, names_loopback,
};
use crate::engine::Report;
use crate::error::RequestError;
use crate::json::{Node, Object, Value};
use crate::telemetry::without_cards;
use crate::wire::members::{object, parsed, present, required_parsed, string};

/// The members of a preparation, of which at most one may be present.
const PREPARATIONS: [&str; 3] = ["page", "instructions", "preparation"];
const PAYER_ACCOUNT: &str = "payer_account";

#[derive(Clone, Copy, PartialEq, Eq)]
enum StatusWord {
    Pending,
    Success,
    Failed,
}

/// Returns the value of a member for an operation.
type EchoedMember = fn(&Operation) -> String;

/// The members of a request that the provider may repeat; then they must equal the request's.
const ECHOES: [(&str, EchoedMember); 5] = [
    ("direction", |operation| operation.direction().as_str().to_owned()),
    ("merchant", |operation| operation.merchant.as_str().to_owned()),
    ("order_id", |operation| operation.order_id.as_str().to_owned()),
    ("shop", |operation| operation.shop.as_str().to_owned()),
    ("currency", |operation| operation.currency.as_str().to_owned()),
];

/// Parses a statement about an operation. It must name the operation: on a connection that several requests share, a
/// late or misplaced answer could otherwise be applied to the wrong one. Members that it repeats from the request must
/// equal it.
///
/// # Errors
/// A member is missing or wrong; the error names it.
pub(crate) fn read(object: &Object<'_>, operation: &Operation) -> Result<Report, RequestError> {
    let direction = operation.direction();
    let id = required_parsed("transaction_id", object.get("transaction_id"), |text| Ok(text.to_owned()))?;
    if id != operation.id.to_string() {
        return Err(RequestError::member("transaction_id", "must be the id of this operation"));
    }
    for (name, value) in ECHOES {
        if let Some(echo) = present(object, name)
            && string(name, echo)? != value(operation)
        {
            return Err(RequestError::member(name, "must equal the operation's"));
        }
    }
    if let Some(echo) = present(object, "amount") {
        amount(echo, operation.amount)?;
    }
    let status = required_parsed("status", object.get("status"), status_word)?;
    if let Some(name) = PREPARATIONS.into_iter().find(|name| present(object, name).is_some())
        && (status != StatusWord::Pending || direction == Direction::Payout)
    {
        return Err(RequestError::member(name, "is allowed only with a deposit that is PENDING"));
    }
    if present(object, PAYER_ACCOUNT).is_some() && (status != StatusWord::Success || direction == Direction::Payout) {
        return Err(RequestError::member(PAYER_ACCOUNT, "is allowed only with a deposit that is SUCCESS"));
    }
    match status {
        StatusWord::Failed => Ok(Report::Finished(Outcome::Failed, reason(object))),
        StatusWord::Success => {
            Ok(Report::Finished(Outcome::Success { payer: payer(object)? }, ProviderReason::default()))
        }
        StatusWord::Pending => Ok(preparation(object)?.map_or(Report::Pending, Report::Prepared)),
    }
}

/// Checks an amount by its value, as a decimal string or a number.
fn amount(echo: &Value<'_>, expected: Amount) -> Result<(), RequestError> {
    let amount = match echo.as_str() {
        Some(text) => Amount::from_decimal_string(text),
        None => Amount::from_json_number(echo.raw),
    };
    if amount == Ok(expected) { Ok(()) } else { Err(RequestError::member("amount", "must equal the operation's")) }
}

fn status_word(text: &str) -> Result<StatusWord, InvalidValue> {
    match text {
        "PENDING" => Ok(StatusWord::Pending),
        "SUCCESS" => Ok(StatusWord::Success),
        "FAILED" => Ok(StatusWord::Failed),
        _ => Err(InvalidValue::new("must be PENDING, SUCCESS or FAILED")),
    }
}

/// Returns why the provider refused. Its words decide nothing, so those of another type are ignored, and long ones are cut.
fn reason(object: &Object<'_>) -> ProviderReason {
    let words = |name, most| {
        let plain = present(object, name)?.as_str()?.replace(char::is_control, " ");
        let kept: String = without_cards(&plain).chars().take(most).collect();
        let kept = kept.trim();
        (!kept.is_empty()).then(|| kept.into())
    };
    ProviderReason { code: words("code", ProviderReason::MAX_CODE), text: words("message", ProviderReason::MAX_TEXT) }
}

fn payer(object: &Object<'_>) -> Result<Option<AccountNumber>, RequestError> {
    present(object, PAYER_ACCOUNT).map(|value| parsed(PAYER_ACCOUNT, value, AccountNumber::new)).transpose()
}

fn preparation(object: &Object<'_>) -> Result<Option<Preparation>, RequestError> {
    let mut given = PREPARATIONS.into_iter().filter_map(|name| present(object, name).map(|value| (name, value)));
    let Some((name, value)) = given.next() else { return Ok(None) };
    if let Some((other, _)) = given.next() {
        return Err(RequestError::member(other, format!("cannot be combined with {name}")));
    }
    match name {
        "page" => page(value).map(Preparation::Page),
        "instructions" => instructions(value).map(Preparation::Instructions),
        _ => parsed("preparation", value, stopped),
    }
    .map(Some)
}

fn page(value: &Value<'_>) -> Result<BrowserUrl, RequestError> {
    let page = object("page", value)?;
    let url = present(page, "url").ok_or_else(|| RequestError::member("page.url", "is required"))?;
    parsed("page.url", url, |text| {
        let url = BrowserUrl::new(text)?;
        // Customers enter card numbers on that page. A page on the customer's own machine is for demonstrations.
        if url.is_plain_http() && !names_loopback(text) {
            return Err(InvalidValue::new("must be an https:// URL"));
        }
        Ok(url)
    })
}

fn stopped(text: &str) -> Result<Preparation, InvalidValue> {
    if text == "stopped" { Ok(Preparation::Stopped) } else { Err(InvalidValue::new("must be stopped")) }
}

fn instructions(value: &Value<'_>) -> Result<Instructions, RequestError> {
    let given = object("instructions", value)?;
    let text = present(given, "text").map(|value| string("instructions.text", value)).transpose()?;
    let details = match present(given, "details") {
        None => Vec::new(),
        Some(Value { node: Node::Array(items), .. }) => details(items)?,
        Some(other) => {
            return Err(RequestError::member(
                "instructions.details",
                format!("must be an array, not {}", other.kind()),
            ));
        }
    };
    Instructions::new(text.map(Into::into), details).map_err(|invalid| RequestError::invalid("instructions", &invalid))
}

fn details(items: &[Value<'_>]) -> Result<Vec<Detail>, RequestError> {
    // One detail over the limit is enough for the rejection.
    items.iter().take(Instructions::MAX_DETAILS + 1).map(detail).collect()
}

fn detail(item: &Value<'_>) -> Result<Detail, RequestError> {
    const PATH: &str = "instructions.details";
    let item = object(PATH, item)?;
    let text = |name: &str| {
        let path = format!("{PATH}.{name}");
        let value = present(item, name).ok_or_else(|| RequestError::member(path.clone(), "is required"))?;
        string(path, value).map(Box::from)
    };
    Ok(Detail { label: text("label")?, value: text("value")? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::write_string;
    use crate::provider::testing::{deposit, withdrawal};
    use crate::wire::members::read_object;

    fn operation_of(direction: Direction) -> Operation {
        match direction {
            Direction::Payin => deposit(),
            Direction::Payout => withdrawal(),
        }
    }

    fn read_exactly(text: &str, direction: Direction) -> Result<Report, String> {
        let object = read_object(text.as_bytes()).map_err(|error| error.to_string())?;
        read(&object, &operation_of(direction)).map_err(|error| error.to_string())
    }

    /// Parses the text after adding the operation's id to it.
    fn object(text: &str, direction: Direction) -> Result<Report, String> {
        let comma = if text == "{}" { "" } else { "," };
        read_exactly(&text.replacen('{', &format!("{{\"transaction_id\":\"4711\"{comma}"), 1), direction)
    }

    #[test]
    fn a_report_names_its_operation_and_repeats_the_request_correctly() {
        for text in [
            r#"{"transaction_id":"4711","status":"FAILED"}"#,
            r#"{"transaction_id":"4711","amount":"10.50","currency":"EUR","direction":"payin","merchant":"acme",
                "order_id":"o-\"1\"","shop":"card-eur","status":"FAILED"}"#,
            r#"{"transaction_id":"4711","amount":10.5,"status":"FAILED"}"#,
            r#"{"transaction_id":"4711","amount":"010.5","currency":null,"status":"FAILED"}"#,
        ] {
            assert_eq!(read_exactly(text, Direction::Payin), Ok(Report::from(Outcome::Failed)), "{text}");
        }
        for (text, member) in [
            (r#"{"status":"FAILED"}"#, "transaction_id"),
            (r#"{"transaction_id":"4712","status":"FAILED"}"#, "transaction_id"),
            (r#"{"transaction_id":"04711","status":"FAILED"}"#, "transaction_id"),
            (r#"{"transaction_id":4711,"status":"FAILED"}"#, "transaction_id"),
            (r#"{"transaction_id":"4711","amount":"1.00","status":"SUCCESS"}"#, "amount"),
            (r#"{"transaction_id":"4711","amount":1,"status":"SUCCESS"}"#, "amount"),
            (r#"{"transaction_id":"4711","amount":true,"status":"SUCCESS"}"#, "amount"),
            (r#"{"transaction_id":"4711","amount":"ten","status":"SUCCESS"}"#, "amount"),
            (r#"{"transaction_id":"4711","currency":"KES","status":"SUCCESS"}"#, "currency"),
            (r#"{"transaction_id":"4711","currency":1,"status":"SUCCESS"}"#, "currency"),
            (r#"{"transaction_id":"4711","direction":"payout","status":"SUCCESS"}"#, "direction"),
            (r#"{"transaction_id":"4711","merchant":"beta","status":"SUCCESS"}"#, "merchant"),
            (r#"{"transaction_id":"4711","order_id":"o","status":"SUCCESS"}"#, "order_id"),
            (r#"{"transaction_id":"4711","shop":"card-usd","status":"SUCCESS"}"#, "shop"),
        ] {
            let error = read_exactly(text, Direction::Payin).unwrap_err();
            assert!(error.starts_with(&format!("{member}: ")), "{text}: {error}");
        }
    }

    fn page_of(url: &str) -> Report {
        Report::Prepared(Preparation::Page(BrowserUrl::new(url).unwrap()))
    }

    #[test]
    fn all_reports_of_a_deposit() {
        let detail = Detail { label: "IBAN".into(), value: "DE44".into() };
        let shown = Instructions::new(Some("Pay\nnow".into()), vec![detail]).unwrap();
        let payer = AccountNumber::new("4111111111111111").ok();
        for (text, report) in [
            (r#"{"status":"PENDING"}"#, Report::Pending),
            (r#"{"status":"PENDING","page":null,"eta":[1,{"x":2}]}"#, Report::Pending),
            (r#"{"status":"PENDING","page":{"url":"https://p.example/x?y=1"}}"#, page_of("https://p.example/x?y=1")),
            (r#"{"page":{"url":"http://127.0.0.1:9/x","ttl":5},"status":"PENDING"}"#, page_of("http://127.0.0.1:9/x")),
            (
                r#"{"status":"PENDING","instructions":{"text":"Pay\nnow","details":[{"label":"IBAN","value":"DE44"}]}}"#,
                Report::Prepared(Preparation::Instructions(shown)),
            ),
            (r#"{"status":"PENDING","preparation":"stopped"}"#, Report::Prepared(Preparation::Stopped)),
            (r#"{"status":"SUCCESS"}"#, Report::from(Outcome::Success { payer: None })),
            (r#"{"status":"SUCCESS","payer_account":"4111111111111111"}"#, Report::from(Outcome::Success { payer })),
            (r#"{"status":"FAILED","reason":"no funds"}"#, Report::from(Outcome::Failed)),
        ] {
            assert_eq!(object(text, Direction::Payin), Ok(report), "{text}");
        }
    }

    #[test]
    fn all_reports_of_a_withdrawal() {
        for (text, report) in [
            (r#"{"status":"PENDING"}"#, Report::Pending),
            (r#"{"status":"SUCCESS"}"#, Report::from(Outcome::Success { payer: None })),
            (r#"{"status":"FAILED"}"#, Report::from(Outcome::Failed)),
        ] {
            assert_eq!(object(text, Direction::Payout), Ok(report), "{text}");
        }
    }

    #[test]
    fn errors_name_their_member_and_are_no_result() {
        for (text, member) in [
            ("{}", "status"),
            (r#"{"status":null}"#, "status"),
            (r#"{"status":"success"}"#, "status"),
            (r#"{"status":"DONE"}"#, "status"),
            (r#"{"status":true}"#, "status"),
            (r#"{"status":"SUCCESS","payer_account":4111}"#, "payer_account"),
            (r#"{"status":"SUCCESS","payer_account":""}"#, "payer_account"),
            (r#"{"status":"FAILED","payer_account":"4111111111111111"}"#, "payer_account"),
            (r#"{"status":"FAILED","page":{"url":"https://p.example"}}"#, "page"),
            (r#"{"status":"SUCCESS","preparation":"stopped"}"#, "preparation"),
            (r#"{"status":"PENDING","page":"https://p.example"}"#, "page"),
            (r#"{"status":"PENDING","page":{}}"#, "page.url"),
            (r#"{"status":"PENDING","page":{"url":"http://p.example"}}"#, "page.url"),
            (r#"{"status":"PENDING","page":{"url":"javascript:alert(1)"}}"#, "page.url"),
            (r#"{"status":"PENDING","page":{"url":"https://u:p@p.example"}}"#, "page.url"),
            (r#"{"status":"PENDING","preparation":"paused"}"#, "preparation"),
            (r#"{"status":"PENDING","preparation":{}}"#, "preparation"),
            (r#"{"status":"PENDING","instructions":{}}"#, "instructions"),
            (r#"{"status":"PENDING","instructions":[]}"#, "instructions"),
            (r#"{"status":"PENDING","instructions":{"text":1}}"#, "instructions.text"),
            (r#"{"status":"PENDING","instructions":{"details":{}}}"#, "instructions.details"),
            (r#"{"status":"PENDING","instructions":{"details":[1]}}"#, "instructions.details"),
            (r#"{"status":"PENDING","instructions":{"details":[{"label":"a"}]}}"#, "instructions.details.value"),
            (r#"{"status":"PENDING","instructions":{"details":[{"label":"","value":"x"}]}}"#, "instructions"),
            (r#"{"status":"PENDING","instructions":{"text":"x"},"page":{"url":"https://p.example"}}"#, "instructions"),
        ] {
            let error = object(text, Direction::Payin).unwrap_err();
            assert!(error.starts_with(&format!("{member}: ")), "{text}: {error}");
        }
        for (text, member) in [
            (r#"{"status":"SUCCESS","payer_account":"4111111111111111"}"#, "payer_account"),
            (r#"{"status":"PENDING","page":{"url":"https://p.example"}}"#, "page"),
            (r#"{"status":"PENDING","instructions":{"text":"x"}}"#, "instructions"),
            (r#"{"status":"PENDING","preparation":"stopped"}"#, "preparation"),
        ] {
            let error = object(text, Direction::Payout).unwrap_err();
            assert!(error.starts_with(&format!("{member}: ")), "{text}: {error}");
        }
    }

    fn written(text: Option<&str>, details: &[(String, String)]) -> String {
        let mut body = r#"{"status":"PENDING","instructions":{"#.to_owned();
        if let Some(text) = text {
            body.push_str("\"text\":");
            write_string(&mut body, text);
            body.push(',');
        }
        body.push_str("\"details\":[");
        for (at, (label, value)) in details.iter().enumerate() {
            body.push_str(if at > 0 { ",{\"label\":" } else { "{\"label\":" });
            write_string(&mut body, label);
            body.push_str(",\"value\":");
            write_string(&mut body, value);
            body.push('}');
        }
        body + "]}}"
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(object) = read_object(&bytes) {
                let _ = read(&object, &deposit());
            }
        }

        #[test]
        fn only_success_and_failed_are_results(
            status in "SUCCESS|FAILED|PENDING|[A-Za-z]{0,8}",
            name in "page|instructions|preparation|payer_account|x",
            value in r#"null|true|1|"[a-z]{0,6}"|\{\}|\[\]|\{"url":"https://a\.example"\}|\{"text":"[a-z]{0,3}"\}"#,
        ) {
            let text = format!(r#"{{"status":"{status}","{name}":{value}}}"#);
            for direction in [Direction::Payin, Direction::Payout] {
                if let Ok(Report::Finished(outcome, _)) = object(&text, direction) {
                    prop_assert_eq!(matches!(outcome, Outcome::Failed), status == "FAILED");
                    prop_assert!(["SUCCESS", "FAILED"].contains(&status.as_str()));
                }
            }
        }

        #[test]
        fn instructions_arrive_as_they_were_sent(
            text in proptest::option::of("[^\\p{Cc}\\p{Cf}\\u{2028}\\u{2029}\\u{2060}-\\u{206f}]{1,40}"),
            details in prop::collection::vec(("[^\\p{Cc}\\p{Cf}\\u{2028}\\u{2029}\\u{2060}-\\u{206f}]{1,20}", "[a-zA-Z0-9 é]{1,20}"), 1..5),
        ) {
            let Ok(Report::Prepared(Preparation::Instructions(read))) =
                object(&written(text.as_deref(), &details), Direction::Payin) else { panic!("instructions") };
            prop_assert_eq!(read.text(), text.as_deref());
            let shown: Vec<_> = read.details().iter().map(|d| (d.label.to_string(), d.value.to_string())).collect();
            prop_assert_eq!(shown, details);
        }
    }
}
