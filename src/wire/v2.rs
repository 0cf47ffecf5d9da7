//! The v2 shapes: create requests in, replies out (promises P103 to P175).

use super::members::{not_null, parsed, present, read_members, required, required_parsed};
use crate::domain::{
    AccountNumber, Amount, BrowserUrl, CUSTOMER_FIELDS, CallbackUrl, CreateRequest, Currency, CustomerAccountId,
    CustomerIp, Direction, InvalidValue, MERCHANT_USER_IP, OrderId, RequestFields, RequestKind, StatusRecord,
    reserved_names,
};
use crate::error::RequestError;
use crate::json::{KnownMembers, Member, Node, Object, Value, write_string};

/// The members of a create body.
#[derive(Default)]
struct CreateMembers<'a> {
    order_id: Option<Value<'a>>,
    amount: Option<Value<'a>>,
    currency: Option<Value<'a>>,
    method: Option<Value<'a>>,
    customer_account_id: Option<Value<'a>>,
    callback_url: Option<Value<'a>>,
    fields: Option<Value<'a>>,
    success_url: Option<Value<'a>>,
    pending_url: Option<Value<'a>>,
    fail_url: Option<Value<'a>>,
    account_number: Option<Value<'a>>,
    account_channel: Option<Value<'a>>,
}

impl<'a> KnownMembers<'a> for (Direction, CreateMembers<'a>) {
    fn place(&mut self, name: &str) -> Option<&mut Option<Value<'a>>> {
        let (direction, members) = self;
        Some(match (name, *direction) {
            ("order_id", _) => &mut members.order_id,
            ("amount", _) => &mut members.amount,
            ("currency", _) => &mut members.currency,
            ("method", _) => &mut members.method,
            ("customer_account_id", _) => &mut members.customer_account_id,
            ("callback_url", _) => &mut members.callback_url,
            ("fields", _) => &mut members.fields,
            ("success_url", Direction::Payin) => &mut members.success_url,
            ("pending_url", Direction::Payin) => &mut members.pending_url,
            ("fail_url", Direction::Payin) => &mut members.fail_url,
            ("account_number", Direction::Payout) => &mut members.account_number,
            ("account_channel", Direction::Payout) => &mut members.account_channel,
            _ => return None,
        })
    }
}

/// Reads a create request.
///
/// # Errors
/// The first rule of the interface that the body breaks, as far as no rule file is needed to decide.
pub fn read_create(direction: Direction, body: &[u8]) -> Result<CreateRequest<'_>, RequestError> {
    let mut known = (direction, CreateMembers::default());
    if let Some(unknown) = read_members(body, &mut known)?.0.into_iter().next() {
        return Err(RequestError::member(unknown.name.into_owned(), "is not a known field"));
    }
    let (_, members) = known;
    Ok(CreateRequest {
        order_id: required_parsed("order_id", members.order_id.as_ref(), OrderId::new)?,
        amount: read_amount(members.amount.as_ref())?,
        currency: required_parsed("currency", members.currency.as_ref(), Currency::new)?,
        method: members.method.as_ref().map(|value| parsed("method", value, read_method)).transpose()?,
        customer_account_id: read_customer_account_id(members.customer_account_id.as_ref())?,
        callback_url: required_parsed("callback_url", members.callback_url.as_ref(), CallbackUrl::new)?,
        kind: read_kind(direction, &members)?,
        fields: read_fields(direction, members.fields)?,
    })
}

fn read_amount(value: Option<&Value<'_>>) -> Result<Amount, RequestError> {
    let value = value.ok_or_else(|| required("amount"))?;
    if value.node != Node::Number {
        return Err(RequestError::member("amount", format!("must be a JSON number, not {}", value.kind())));
    }
    Amount::from_json_number(value.raw).map_err(|invalid| RequestError::invalid("amount", &invalid))
}

fn read_method(text: &str) -> Result<Box<str>, InvalidValue> {
    if text.is_empty() || text.trim() != text {
        return Err(InvalidValue::new("must be an exact shop code without surrounding spaces"));
    }
    Ok(text.into())
}

fn read_customer_account_id(value: Option<&Value<'_>>) -> Result<Option<CustomerAccountId>, RequestError> {
    const NAME: &str = "customer_account_id";
    let Some(value) = not_null(value) else { return Ok(None) };
    if value.node != Node::Number {
        return Err(RequestError::member(NAME, format!("must be a JSON integer, not {}", value.kind())));
    }
    let id = CustomerAccountId::from_json_number(value.raw);
    id.map(Some).map_err(|invalid| RequestError::invalid(NAME, &invalid))
}

fn read_kind(direction: Direction, members: &CreateMembers<'_>) -> Result<RequestKind, RequestError> {
    match direction {
        Direction::Payin => {
            let success_url = required_parsed("success_url", members.success_url.as_ref(), BrowserUrl::new)?;
            // Usually all three are the same, which was checked already.
            let like_success = |text: &str| {
                if text == success_url.as_str() { Ok(success_url.clone()) } else { BrowserUrl::new(text) }
            };
            let pending_url = required_parsed("pending_url", members.pending_url.as_ref(), like_success)?;
            let fail_url = required_parsed("fail_url", members.fail_url.as_ref(), like_success)?;
            Ok(RequestKind::Deposit { success_url, pending_url, fail_url })
        }
        Direction::Payout => Ok(RequestKind::Withdrawal {
            account_number: required_parsed("account_number", members.account_number.as_ref(), AccountNumber::new)?,
            account_channel: members
                .account_channel
                .as_ref()
                .map(|value| parsed("account_channel", value, read_channel))
                .transpose()?,
        }),
    }
}

fn read_channel(text: &str) -> Result<Box<str>, InvalidValue> {
    if (1..=64).contains(&text.chars().count()) && !text.contains('\0') {
        Ok(text.into())
    } else {
        Err(InvalidValue::new("must be 1 to 64 characters without U+0000"))
    }
}

fn read_fields(direction: Direction, value: Option<Value<'_>>) -> Result<RequestFields<'_>, RequestError> {
    let fields = match value {
        None => Object::default(),
        Some(Value { node: Node::Object(fields), .. }) => fields,
        Some(other) => {
            return Err(RequestError::member("fields", format!("must be a JSON object, not {}", other.kind())));
        }
    };
    let customer_ip = check_fields(direction, &fields)?;
    Ok(RequestFields::new(fields, customer_ip))
}

/// Applies the rules for `fields` that need no schema; returns the customer's address.
fn check_fields(direction: Direction, fields: &Object<'_>) -> Result<Option<CustomerIp>, RequestError> {
    for member in &fields.0 {
        if reserved_names(direction).contains(&member.name.as_ref()) {
            let path = format!("fields.{}", member.name);
            return Err(RequestError::member(path, "is reserved and cannot appear inside fields"));
        }
        check_customer_field(member)?;
    }
    let Some(value) = present(fields, MERCHANT_USER_IP) else { return Ok(None) };
    parsed("fields.merchant_user_ip", value, CustomerIp::new).map(Some)
}

/// Checks the customer's details in `fields`: each is a string, or empty.
///
/// # Errors
/// The first one of another type.
pub fn check_customer_fields(fields: &Object<'_>) -> Result<(), RequestError> {
    fields.0.iter().try_for_each(check_customer_field)
}

fn check_customer_field(Member { name, value, .. }: &Member<'_>) -> Result<(), RequestError> {
    match &value.node {
        Node::Null | Node::String(_) => Ok(()),
        Node::Bool(_) | Node::Number | Node::Array(_) | Node::Object(_)
            if !CUSTOMER_FIELDS.contains(&name.as_ref()) =>
        {
            Ok(())
        }
        Node::Bool(_) | Node::Number | Node::Array(_) | Node::Object(_) => {
            Err(RequestError::member(format!("fields.{name}"), format!("must be a string, not {}", value.kind())))
        }
    }
}

/// Writes the body of a create's 200 reply; `transaction_id` is digits, and a deposit has a `redirect_url`.
#[must_use]
pub fn create_reply(transaction_id: &str, redirect_url: Option<&str>) -> String {
    let mut body = String::with_capacity(redirect_url.map_or(0, str::len) + 64);
    body.push_str("{\"transaction_id\":\"");
    body.push_str(transaction_id);
    body.push('"');
    if let Some(redirect_url) = redirect_url {
        body.push_str(",\"redirect_url\":");
        write_string(&mut body, redirect_url);
    }
    body.push('}');
    body
}

/// Writes the status record (promises P020 to P033).
#[must_use]
pub fn status_reply(record: &StatusRecord) -> String {
    let mut body = String::with_capacity(256);
    body.push_str("{\"order_id\":");
    write_string(&mut body, record.order_id.as_str());
    body.push_str(",\"transaction_id\":\"");
    body.push_str(record.transaction_id.digits().as_str());
    body.push_str("\",\"status\":\"");
    body.push_str(record.status.as_str());
    body.push_str("\",\"amount\":");
    record.amount.as_number().write_to(&mut body);
    body.push_str(",\"currency\":\"");
    body.push_str(record.currency.as_str());
    body.push_str("\",\"method\":");
    write_string(&mut body, &record.method);
    if let Some(account) = &record.account_number {
        body.push_str(",\"account_number\":");
        write_string(&mut body, account);
    }
    body.push('}');
    body
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::domain::SchemaFields;

    const DEPOSIT_BODY: &str = r#"{"order_id":"o1","amount":10.5,"currency":"EUR","callback_url":"https://a.example/cb",
        "success_url":"https://a.example/s","pending_url":"https://a.example/p","fail_url":"https://a.example/f"}"#;

    fn with(member: &str) -> String {
        format!("{},{member}}}", DEPOSIT_BODY.trim_end_matches('}'))
    }

    #[test]
    fn a_deposit_is_read() {
        let body = with(r#""method":"card-eur","customer_account_id":0,"fields":{"merchant_user_ip":"::1","x":1.50}"#);
        let request = read_create(Direction::Payin, body.as_bytes()).unwrap();
        assert_eq!(request.amount.hundredths(), 1050);
        assert_eq!(request.method.as_deref(), Some("card-eur"));
        assert_eq!(request.customer_account_id, Some(CustomerAccountId(0)));
        assert_eq!(request.fields.customer_ip.as_ref().map(CustomerIp::as_str), Some("::1"));
        assert_eq!(request.fields.reduced(&SchemaFields::Everything).text(), r#"{"merchant_user_ip":"::1","x":1.50}"#);
    }

    #[test]
    fn the_document_of_the_interface_has_the_members_that_are_read() {
        let document: serde_json::Value = serde_json::from_str(include_str!("../../docs/openapi.json")).unwrap();
        let schema = |name: &str| document["components"]["schemas"][name].clone();
        let keys = |value: &serde_json::Value| -> BTreeSet<String> {
            value["properties"].as_object().unwrap().keys().cloned().collect()
        };
        let words = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        let kinds = [(Direction::Payin, "Deposit"), (Direction::Payout, "Withdrawal")];
        let named: BTreeSet<_> = kinds.iter().flat_map(|(_, kind)| keys(&schema(&format!("{kind}Request")))).collect();
        assert_eq!(named.len(), 12, "as many as there are places");
        for (direction, kind) in kinds {
            let mut known = (direction, CreateMembers::default());
            let read: BTreeSet<_> = named.iter().filter(|name| known.place(name).is_some()).cloned().collect();
            assert_eq!(keys(&schema(&format!("{kind}Request"))), read, "{kind}");
            let fields = schema(&format!("{kind}Fields"));
            assert_eq!(keys(&fields), words(&[&CUSTOMER_FIELDS[..], &[MERCHANT_USER_IP]].concat()), "{kind}");
            let reserved: BTreeSet<String> =
                serde_json::from_value(fields["propertyNames"]["not"]["enum"].clone()).unwrap();
            assert_eq!(reserved, words(reserved_names(direction)), "{kind}");
        }
    }
}
