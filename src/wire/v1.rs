//! The v1 shapes: create bodies in (contract section 5), default replies and callbacks out (contract section 4).

use std::borrow::Cow;

use super::members::{not_null, parsed, present, read_members, required_parsed};
use crate::domain::{
    AccountNumber, Amount, BrowserUrl, CallbackUrl, Currency, CustomerAccountId, CustomerIp, Direction, InvalidValue,
    MERCHANT_USER_IP as USER_IP, OperationView, OrderId, RETURN_USER_URL as RETURN_URL, reserved_names,
};
use crate::error::RequestError;
use crate::json::{KnownMembers, Member, Node, Object, Value, write_string};

/// A v1 create body that is valid as far as no rule file is needed to decide.
#[derive(Debug)]
pub struct V1Create<'a> {
    /// Payin or payout.
    pub direction: Direction,
    /// `external_id`.
    pub external_id: OrderId,
    /// `amount`.
    pub amount: Amount,
    /// `currency`.
    pub currency: Currency,
    /// `shop_code`.
    pub shop_code: Option<Box<str>>,
    /// `callback_url`; whether plain http is allowed is the merchant's rule.
    pub callback_url: Option<CallbackUrl>,
    /// `merchant_user_id`.
    pub merchant_user_id: UserId,
    /// `merchant_user_ip`, of the body or of `paymentData`.
    pub merchant_user_ip: Option<CustomerIp>,
    /// `paymentData.return_user_url`.
    pub return_user_url: Option<BrowserUrl>,
    /// `card_number`, in payouts.
    pub card_number: Option<AccountNumber>,
    /// Where the body holds the customer's address.
    pub user_ip_place: UserIpPlace,
    /// The text of `merchant_user_ip` outside of `paymentData`, as JSON without escapes; empty: there is none.
    pub user_ip_text: Cow<'a, str>,
    /// The members that v1 knows, as sent.
    sent: SentMembers<'a>,
    /// The members that v1 does not know for this direction.
    unknown: Object<'a>,
}

/// The members of a create body, as sent.
#[derive(Debug, Default)]
struct SentMembers<'a> {
    external_id: Option<Value<'a>>,
    amount: Option<Value<'a>>,
    currency: Option<Value<'a>>,
    shop_code: Option<Value<'a>>,
    callback_url: Option<Value<'a>>,
    merchant_user_id: Option<Value<'a>>,
    merchant_user_ip: Option<Value<'a>>,
    card_number: Option<Value<'a>>,
    payment_data: Option<Value<'a>>,
}

impl<'a> KnownMembers<'a> for (Direction, SentMembers<'a>) {
    fn place(&mut self, name: &str) -> Option<&mut Option<Value<'a>>> {
        let (direction, sent) = self;
        Some(match name {
            "external_id" => &mut sent.external_id,
            "amount" => &mut sent.amount,
            "currency" => &mut sent.currency,
            "shop_code" => &mut sent.shop_code,
            "callback_url" => &mut sent.callback_url,
            "merchant_user_id" => &mut sent.merchant_user_id,
            USER_IP => &mut sent.merchant_user_ip,
            "card_number" if *direction == Direction::Payout => &mut sent.card_number,
            PAYMENT_DATA => &mut sent.payment_data,
            _ => return None,
        })
    }
}

/// The `merchant_user_id` of a v1 body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserId {
    /// Absent or `null`.
    Absent,
    /// An integer equals it.
    Number(CustomerAccountId),
    /// No integer equals it; the merchant's rule decides.
    NoEquivalent,
}

/// Where a body holds the customer's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserIpPlace {
    /// Nowhere.
    Nowhere,
    /// In `merchant_user_ip` alone.
    Body,
    /// In `paymentData.merchant_user_ip` alone.
    PaymentData,
    /// In both, which agree.
    Both,
}

/// The v1 members, in the order of explained translations and of conflicts.
pub const MEMBERS: [&str; 9] = [
    "external_id",
    "amount",
    "currency",
    "shop_code",
    "callback_url",
    "merchant_user_id",
    "merchant_user_ip",
    "card_number",
    "paymentData",
];

/// Members that may be `null`, which equals absent.
pub const OPTIONAL: [&str; 4] = ["shop_code", "callback_url", "merchant_user_id", USER_IP];

/// The member whose members become `fields`.
pub const PAYMENT_DATA: &str = "paymentData";

/// Reads a v1 create body.
///
/// # Errors
/// The first rule that the body breaks, as far as no rule file is needed to decide.
pub fn read_create(direction: Direction, body: &[u8]) -> Result<V1Create<'_>, RequestError> {
    let mut known = (direction, SentMembers::default());
    let unknown = read_members(body, &mut known)?;
    let (_, sent) = known;
    let nothing = Object::default();
    let payment_data = read_payment_data(direction, sent.payment_data.as_ref())?.unwrap_or(&nothing);
    let callback_url = not_null(sent.callback_url.as_ref());
    let external_id = required_parsed("external_id", sent.external_id.as_ref(), OrderId::new)?;
    let amount = required_parsed("amount", sent.amount.as_ref(), Amount::from_decimal_string)?;
    let currency = required_parsed("currency", sent.currency.as_ref(), Currency::new)?;
    let shop_code = not_null(sent.shop_code.as_ref());
    let shop_code = shop_code.map(|value| parsed("shop_code", value, read_shop_code)).transpose()?;
    let callback_url =
        callback_url.map(|value| parsed("callback_url", value, CallbackUrl::new_allowing_http)).transpose()?;
    let (merchant_user_ip, user_ip_place) = read_user_ip(sent.merchant_user_ip.as_ref(), payment_data)?;
    Ok(V1Create {
        direction,
        external_id,
        amount,
        currency,
        shop_code,
        callback_url,
        merchant_user_id: read_user_id(sent.merchant_user_id.as_ref()),
        merchant_user_ip,
        return_user_url: read_return_url(direction, payment_data)?,
        card_number: read_card_number(direction, sent.card_number.as_ref())?,
        user_ip_place,
        user_ip_text: user_ip_text(sent.merchant_user_ip.as_ref()),
        sent,
        unknown,
    })
}

fn read_shop_code(text: &str) -> Result<Box<str>, InvalidValue> {
    if text.is_empty() || text.trim() != text {
        return Err(InvalidValue::new("must be an exact shop code without surrounding spaces"));
    }
    Ok(text.into())
}

/// Checks the names in `paymentData`; returns it, where it is an object.
fn read_payment_data<'v, 'a>(
    direction: Direction,
    value: Option<&'v Value<'a>>,
) -> Result<Option<&'v Object<'a>>, RequestError> {
    let Some(value) = value else { return Ok(None) };
    let fields = match &value.node {
        Node::Object(fields) => fields,
        // PHP's empty array may be an object: the translation applies the dialect's rule.
        Node::Array(items) if items.is_empty() => return Ok(None),
        Node::Null | Node::Bool(_) | Node::Number | Node::String(_) | Node::Array(_) => {
            return Err(RequestError::member(PAYMENT_DATA, format!("must be a JSON object, not {}", value.kind())));
        }
    };
    let reserved = reserved_names(direction);
    let taken = fields.0.iter().find(|member| {
        let moved = direction == Direction::Payin && member.name == RETURN_URL;
        reserved.contains(&member.name.as_ref()) && !moved
    });
    match taken {
        Some(member) => Err(RequestError::member(
            format!("{PAYMENT_DATA}.{}", member.name),
            "is a reserved name and cannot appear inside paymentData",
        )),
        None => Ok(Some(fields)),
    }
}

/// Returns `paymentData`, where it is an object.
#[must_use]
pub fn payment_data<'v, 'a>(body: &'v Object<'a>) -> Option<&'v Object<'a>> {
    match body.get(PAYMENT_DATA).map(|value| &value.node) {
        Some(Node::Object(fields)) => Some(fields),
        _ => None,
    }
}

/// Reads `merchant_user_id`: anything but the text of an integer, of any type, has no equivalent (contract section 5).
fn read_user_id(value: Option<&Value<'_>>) -> UserId {
    let Some(value) = not_null(value) else { return UserId::Absent };
    let text = match &value.node {
        Node::String(text) => text.as_ref(),
        Node::Number => value.raw,
        Node::Null | Node::Bool(_) | Node::Array(_) | Node::Object(_) => return UserId::NoEquivalent,
    };
    CustomerAccountId::from_v1_text(text).map_or(UserId::NoEquivalent, UserId::Number)
}

/// Reads the customer's address, which may be in the body, in `paymentData`, or in both if they agree.
fn read_user_ip(
    outer: Option<&Value<'_>>,
    payment_data: &Object<'_>,
) -> Result<(Option<CustomerIp>, UserIpPlace), RequestError> {
    let read = |path, value: &Value<'_>| parsed(path, value, CustomerIp::new);
    let outer = not_null(outer).map(|value| read(USER_IP, value)).transpose()?;
    let inner = present(payment_data, USER_IP);
    let inner = inner.map(|value| read("paymentData.merchant_user_ip", value)).transpose()?;
    match (outer, inner) {
        (Some(outer), Some(inner)) if outer != inner => {
            Err(RequestError::member(USER_IP, "must be the same as paymentData.merchant_user_ip"))
        }
        (Some(address), Some(_)) => Ok((Some(address), UserIpPlace::Both)),
        (Some(address), None) => Ok((Some(address), UserIpPlace::Body)),
        (None, Some(address)) => Ok((Some(address), UserIpPlace::PaymentData)),
        (None, None) => Ok((None, UserIpPlace::Nowhere)),
    }
}

fn user_ip_text<'a>(value: Option<&Value<'a>>) -> Cow<'a, str> {
    match value {
        Some(Value { raw, node: Node::String(Cow::Borrowed(_)) }) => Cow::Borrowed(raw),
        Some(Value { node: Node::String(text), .. }) => Cow::Owned(format!("\"{text}\"")),
        _ => Cow::Borrowed(""),
    }
}

fn read_return_url(direction: Direction, payment_data: &Object<'_>) -> Result<Option<BrowserUrl>, RequestError> {
    if direction == Direction::Payout {
        return Ok(None);
    }
    let value = payment_data.get(RETURN_URL);
    value.map(|value| parsed("paymentData.return_user_url", value, BrowserUrl::new)).transpose()
}

fn read_card_number(direction: Direction, value: Option<&Value<'_>>) -> Result<Option<AccountNumber>, RequestError> {
    if direction == Direction::Payin {
        return Ok(None);
    }
    required_parsed("card_number", value, AccountNumber::new).map(Some)
}

impl<'a> V1Create<'a> {
    /// Returns `currency` as sent, in any case.
    #[must_use]
    pub fn currency_text(&self) -> &str {
        self.sent.currency.as_ref().and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns a member that v1 knows, as sent.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Value<'a>> {
        let sent = &self.sent;
        let value = match name {
            "external_id" => &sent.external_id,
            "amount" => &sent.amount,
            "currency" => &sent.currency,
            "shop_code" => &sent.shop_code,
            "callback_url" => &sent.callback_url,
            "merchant_user_id" => &sent.merchant_user_id,
            USER_IP => &sent.merchant_user_ip,
            "card_number" => &sent.card_number,
            PAYMENT_DATA => &sent.payment_data,
            _ => &None,
        };
        value.as_ref()
    }

    /// Returns `paymentData`, where it is an object.
    #[must_use]
    pub fn payment_data(&self) -> Option<&Object<'a>> {
        self.sent.payment_data.as_ref().and_then(Value::as_object)
    }

    /// Returns the top-level members that v1 does not know for this direction.
    #[must_use]
    pub const fn unknown(&self) -> &Object<'a> {
        &self.unknown
    }

    /// Returns the members that are left out because they are `null`.
    pub fn null_members(&self) -> impl Iterator<Item = &'static str> {
        let is_null = |value: Option<&Value<'_>>| value.is_some_and(|value| value.node == Node::Null);
        let outside = OPTIONAL.into_iter().filter(move |name| is_null(self.member(name)));
        let inside = self.user_ip_place == UserIpPlace::Body
            && is_null(self.payment_data().and_then(|fields| fields.get(USER_IP)));
        outside.chain(inside.then_some("paymentData.merchant_user_ip"))
    }

    /// Returns the members of `paymentData` that move to `fields` unchanged: all but the return address, which has members of
    /// its own in v2, and a `null` address of the customer beside one outside.
    pub fn moved_members(&self) -> impl Iterator<Item = &Member<'a>> {
        let direction = self.direction;
        let outside = self.user_ip_place == UserIpPlace::Body;
        let members = self.payment_data().into_iter().flat_map(|fields| &fields.0);
        members
            .filter(move |member| !(outside && member.name == USER_IP))
            .filter(move |member| direction == Direction::Payout || member.name != RETURN_URL)
    }

    /// Reports whether `paymentData` is an empty list, as PHP writes an empty object.
    #[must_use]
    pub fn payment_data_is_empty_list(&self) -> bool {
        matches!(self.sent.payment_data, Some(Value { node: Node::Array(_), .. }))
    }

    /// Returns the name of a v2 member in this body, for errors of the engine.
    #[must_use]
    pub fn v1_name(&self, path: &str) -> Cow<'static, str> {
        v1_name(path, self.user_ip_place == UserIpPlace::PaymentData)
    }
}

/// Returns the v1 name of a v2 member. The customer's address has two places in v1.
#[must_use]
pub fn v1_name(path: &str, user_ip_in_payment_data: bool) -> Cow<'static, str> {
    match path {
        "order_id" => "external_id".into(),
        "method" => "shop_code".into(),
        "customer_account_id" => "merchant_user_id".into(),
        "account_number" => "card_number".into(),
        "success_url" | "pending_url" | "fail_url" => "paymentData.return_user_url".into(),
        "fields" => PAYMENT_DATA.into(),
        "fields.merchant_user_ip" if !user_ip_in_payment_data => USER_IP.into(),
        other => match other.strip_prefix("fields.") {
            Some(rest) => format!("{PAYMENT_DATA}.{rest}").into(),
            None => other.to_owned().into(),
        },
    }
}

/// Writes the default body of a payin's 200 reply.
#[must_use]
pub fn payin_reply(transaction_id: &str, external_id: &str, redirect_url: &str) -> String {
    let mut body = create_reply(transaction_id, external_id, redirect_url.len());
    body.push_str(",\"redirect_url\":");
    write_string(&mut body, redirect_url);
    body.push('}');
    body
}

/// Writes the default body of a payout's 200 reply.
#[must_use]
pub fn payout_reply(transaction_id: &str, external_id: &str) -> String {
    let mut body = create_reply(transaction_id, external_id, 0);
    body.push('}');
    body
}

/// Begins a reply, with capacity for `room` more bytes.
fn create_reply(transaction_id: &str, external_id: &str, room: usize) -> String {
    /// The names, the quotes and the braces.
    const AROUND: usize = 64;
    let mut body = String::with_capacity(AROUND + transaction_id.len() + external_id.len() + room);
    push_names(&mut body, transaction_id, external_id);
    body
}

fn push_names(body: &mut String, transaction_id: &str, external_id: &str) {
    body.push_str("{\"transaction_id\":\"");
    body.push_str(transaction_id);
    body.push_str("\",\"external_id\":");
    write_string(body, external_id);
}

/// Writes the default body of a status reply, with the dialect's word of the status.
#[must_use]
pub fn status_reply(shown: &OperationView, status_word: &str) -> String {
    let mut body = String::with_capacity(256);
    push_status(&mut body, shown, status_word);
    body.push('}');
    body
}

/// Writes the default body of a callback, with the dialect's word of the status.
#[must_use]
pub fn callback_body(shown: &OperationView, status_word: &str) -> String {
    let mut body = String::from("{\"external_id\":");
    write_string(&mut body, shown.external_id.as_str());
    body.push_str(",\"transaction_id\":");
    write_string(&mut body, &shown.transaction_id);
    push_result(&mut body, shown, status_word);
    body.push('}');
    body
}

/// Appends the status, the amount and the shop.
fn push_result(body: &mut String, shown: &OperationView, status_word: &str) {
    body.push_str(",\"status\":");
    write_string(body, status_word);
    body.push_str(",\"amount\":\"");
    shown.amount.write_to(body);
    body.push_str("\",\"currency\":\"");
    body.push_str(shown.currency.as_str());
    body.push_str("\",\"shop_code\":");
    write_string(body, &shown.shop_code);
}

/// Appends a status body without its closing brace.
pub(super) fn push_status(body: &mut String, shown: &OperationView, status_word: &str) {
    push_names(body, &shown.transaction_id, shown.external_id.as_str());
    push_result(body, shown, status_word);
    if let Some(account) = &shown.account_number {
        body.push_str(",\"account_number\":");
        write_string(body, account);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::FingerprintKey;

    const PAYIN: &str = r#"{"external_id":"o1","amount":"10.50","currency":"EUR","shop_code":"card-eur",
        "callback_url":"https://a.example/cb","merchant_user_id":"42","merchant_user_ip":"203.0.113.7",
        "paymentData":{"return_user_url":"https://a.example/r","mobile_number":"0712","n":1.50}}"#;

    fn replaced(name: &str, value: Option<&str>) -> String {
        let mut object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(PAYIN).unwrap();
        match value {
            Some(value) => object.insert(name.into(), serde_json::from_str(value).unwrap()),
            None => object.remove(name),
        };
        serde_json::to_string(&object).unwrap()
    }

    #[test]
    fn a_payin_is_read() {
        let create = read_create(Direction::Payin, PAYIN.as_bytes()).unwrap();
        assert_eq!(create.amount.hundredths(), 1050);
        assert_eq!(create.merchant_user_id, UserId::Number(CustomerAccountId(42)));
        assert_eq!(create.return_user_url.as_ref().map(BrowserUrl::as_str), Some("https://a.example/r"));
        let moved: Vec<_> = create.moved_members().map(|member| (member.raw_name, member.value.raw)).collect();
        assert_eq!(moved, [("\"mobile_number\"", "\"0712\""), ("\"n\"", "1.50")]);
        assert_eq!(create.unknown().0.len(), 0);
    }

    #[test]
    fn payment_data_without_members_is_like_none_to_comparisons() {
        let fingerprint_key = FingerprintKey::new(&[3; 32]);
        let values = [Some("[]"), Some("{}"), None, Some(r#"{"merchant_user_ip":null}"#)];
        let [list, object, absent, null] = values.map(|value| replaced("paymentData", value));
        let read = |body: &str| {
            let create = read_create(Direction::Payin, body.as_bytes()).unwrap();
            (create.payment_data_is_empty_list(), create.fingerprint(&fingerprint_key))
        };
        assert!(read(&list).0);
        for other in [&object, &absent, &null] {
            assert_eq!(read(&list).1, read(other).1, "{other}");
        }
        assert_ne!(read(&list).1, read(&replaced("paymentData", Some(r#"{"a":null}"#))).1);
    }
}
