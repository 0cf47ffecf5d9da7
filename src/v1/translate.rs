//! The translation of a v1 create body to a v2 request: a pure function of the body and the merchant's rules (contract
//! section 5). It gives the request as the engine takes it, and passes a [`Sink`] each member of its body in order: the bytes
//! that are signed ([`BodyBytes`]), or where every member came from ([`Origins`]).

use std::borrow::Cow;
use std::fmt;

use crate::domain::{
    Amount, BrowserUrl, CallbackUrl, CreateRequest, CustomerAccountId, CustomerIp, Digits, MERCHANT_USER_IP,
    RequestFields, RequestKind,
};
use crate::error::RequestError;
use crate::json::{Member, Node, Object, Value, write_string};
use crate::rules::{CallbackStyle, IdPolicy, UnknownFields, V1Rules};
use crate::wire::v1::{UserId, UserIpPlace, V1Create};
use crate::wire::v2::check_customer_fields;

const PAYMENT_DATA: &str = "paymentData";

/// The rule of most members.
const AS_IS: &str = "as is";

/// The rule of members that come from the merchant's rules.
const FILLED_IN: &str = "filled in: the request names none";

/// A translated create.
#[derive(Debug)]
pub struct Translated<'a> {
    /// What the engine takes: the same as is read from the bytes.
    pub request: CreateRequest<'a>,
    /// The merchant's own callback address, when v2 is given the relay's.
    pub relayed_to: Option<CallbackUrl>,
}

/// Why a create has no v2 request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TranslateError {
    /// A rule of the merchant refuses it. The refusal counts only if the order is new.
    Rule(RuleError),
    /// v2's shape refuses it, in v2 words, regardless of its order. The sink has the whole body.
    Shape(RequestError),
}

impl From<RuleError> for TranslateError {
    fn from(error: RuleError) -> Self {
        Self::Rule(error)
    }
}

/// A refusal by a rule of the merchant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    /// For the caller, with v1 names.
    pub error: RequestError,
    /// For the metrics.
    pub reason: &'static str,
    /// The key whose change would let the body pass: of the merchant's file or, in `requests`, of its dialect's.
    pub key: &'static str,
}

/// A value of the v2 body that is written anew.
#[derive(Debug, Clone, Copy)]
pub enum NewValue<'v> {
    /// A string.
    Text(&'v str),
    /// An integer.
    Integer(i64),
    /// An amount, as a number.
    Amount(Amount),
}

impl NewValue<'_> {
    fn write_to(self, out: &mut String) {
        match self {
            Self::Text(text) => write_string(out, text),
            Self::Integer(number) => {
                if number < 0 {
                    out.push('-');
                }
                out.push_str(Digits::of(number.unsigned_abs()).as_str());
            }
            Self::Amount(amount) => amount.as_number().write_to(out),
        }
    }
}

/// Takes the members of a v2 body in order: those outside of `fields`, then those inside.
pub trait Sink<'a> {
    /// Takes a member outside of `fields`.
    fn member(&mut self, name: &'static str, value: NewValue<'_>, source: MemberSource<'a>, rule: &'static str);

    /// Takes a member of `fields`.
    fn field(&mut self, member: &Member<'a>, source: MemberSource<'a>, rule: &'static str);

    /// Takes a sent v1 member that is not in the v2 body; `is_loss`: the v2 body lacks something that it stated.
    fn left_out(&mut self, _name: &'a str, _reason: &'static str, _is_loss: bool) {}

    /// Takes the merchant's own callback address, when v2 is given the relay's.
    fn relayed_to(&mut self, _url: &CallbackUrl, _source: MemberSource<'a>) {}
}

/// Writes the v2 body: exactly the bytes that are signed and forwarded.
pub struct BodyBytes {
    text: String,
    has_fields: bool,
}

impl Default for BodyBytes {
    fn default() -> Self {
        let mut text = String::with_capacity(768);
        text.push('{');
        Self { text, has_fields: false }
    }
}

impl BodyBytes {
    /// Ends the body.
    #[must_use]
    pub fn into_text(mut self) -> String {
        self.text.push_str(if self.has_fields { "}}" } else { "}" });
        self.text
    }
}

impl<'a> Sink<'a> for BodyBytes {
    fn member(&mut self, name: &'static str, value: NewValue<'_>, _: MemberSource<'a>, _: &'static str) {
        self.text.push_str(if self.text.len() > 1 { ",\"" } else { "\"" });
        self.text.push_str(name);
        self.text.push_str("\":");
        value.write_to(&mut self.text);
    }

    fn field(&mut self, member: &Member<'a>, _: MemberSource<'a>, _: &'static str) {
        self.text.push_str(if self.has_fields { "," } else { ",\"fields\":{" });
        self.has_fields = true;
        self.text.push_str(member.raw_name);
        self.text.push(':');
        self.text.push_str(member.value.raw);
    }
}

/// Where the members of a v2 body came from.
#[derive(Debug, Default)]
pub struct Origins<'a> {
    /// The members outside `fields`.
    pub members: Vec<OriginOf<'a>>,
    /// The members of `fields`; empty: there is no `fields`.
    pub fields: Vec<OriginOf<'a>>,
    /// Sent v1 members that are not in the v2 body.
    pub left_out: Vec<LeftOut<'a>>,
    /// The merchant's own callback address and where it came from, when v2 is given the relay's.
    pub relayed_to: Option<(CallbackUrl, MemberSource<'a>)>,
}

/// A sent v1 member that is not in the v2 body.
#[derive(Debug)]
pub struct LeftOut<'a> {
    /// Its name.
    pub name: &'a str,
    /// Why it is left out.
    pub reason: &'static str,
    /// Whether the v2 body lacks something that it stated.
    pub is_loss: bool,
}

/// A member of the v2 body.
pub struct OriginOf<'a> {
    /// Its name as the body spells it.
    pub name: &'a str,
    /// Its value as JSON text.
    pub raw_value: Cow<'a, str>,
    /// Where it came from.
    pub source: MemberSource<'a>,
    /// The rule that was applied to it.
    pub rule: &'static str,
}

impl fmt::Debug for OriginOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}", self.name, self.source)
    }
}

impl<'a> Sink<'a> for Origins<'a> {
    fn member(&mut self, name: &'static str, value: NewValue<'_>, source: MemberSource<'a>, rule: &'static str) {
        let mut raw_value = String::new();
        value.write_to(&mut raw_value);
        self.members.push(OriginOf { name, raw_value: raw_value.into(), source, rule });
    }

    fn field(&mut self, member: &Member<'a>, source: MemberSource<'a>, rule: &'static str) {
        let name = member.raw_name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
        let name = name.unwrap_or(member.raw_name);
        self.fields.push(OriginOf { name, raw_value: member.value.raw.into(), source, rule });
    }

    fn left_out(&mut self, name: &'a str, reason: &'static str, is_loss: bool) {
        self.left_out.push(LeftOut { name, reason, is_loss });
    }

    fn relayed_to(&mut self, url: &CallbackUrl, source: MemberSource<'a>) {
        self.relayed_to = Some((url.clone(), source));
    }
}

/// Where a member of the v2 body came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberSource<'a> {
    /// A member of the v1 body.
    Body(&'static str),
    /// A member of `paymentData`, moved as it is.
    PaymentData(&'a str),
    /// A key of the merchant's `[v1]` rules.
    MerchantRule(&'static str),
    /// This gateway's relay.
    Relay,
}

impl fmt::Display for MemberSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body(name) => write!(f, "{name}"),
            Self::PaymentData(name) => write!(f, "paymentData.{name}"),
            Self::MerchantRule(key) => write!(f, "the merchant's [v1] {key}"),
            Self::Relay => f.write_str("this gateway's relay address"),
        }
    }
}

/// Translates a v1 create by a merchant's rules; `relay_url` is where v2 is to send callbacks that are relayed.
///
/// # Errors
/// The merchant's first rule that refuses the body, or what v2's shape refuses beyond v1's.
pub fn translate<'a>(
    create: &'a V1Create<'a>,
    rules: &'a V1Rules,
    relay_url: &CallbackUrl,
    sink: &mut impl Sink<'a>,
) -> Result<Translated<'a>, TranslateError> {
    let mut translation = Translation { create, rules, sink };
    translation.refuse_or_leave_out()?;
    translation.add_order();
    let customer_account_id = translation.add_user_id()?;
    let (callback_url, relayed_to) = translation.add_callback(relay_url)?;
    let kind = translation.add_kind()?;
    let fields = translation.add_fields();
    check_customer_fields(&fields).map_err(TranslateError::Shape)?;
    let request = CreateRequest {
        order_id: create.external_id.clone(),
        amount: create.amount,
        currency: create.currency,
        method: create.shop_code.clone(),
        customer_account_id,
        callback_url,
        kind,
        fields: RequestFields::new(fields, create.merchant_user_ip.clone()),
    };
    Ok(Translated { request, relayed_to })
}

/// A translation on its way.
struct Translation<'a, 's, S> {
    create: &'a V1Create<'a>,
    rules: &'a V1Rules,
    sink: &'s mut S,
}

impl<'a, S: Sink<'a>> Translation<'a, '_, S> {
    /// Reads an empty list as an empty object, as PHP writes it, where the dialect allows it; leaves out what v1 does not know,
    /// where the merchant's rules allow it, and what is `null`.
    fn refuse_or_leave_out(&mut self) -> Result<(), TranslateError> {
        if self.create.payment_data_is_empty_list() {
            if !self.rules.dialect.empty_list_is_object {
                let error = RequestError::member(PAYMENT_DATA, "must be a JSON object, not an array");
                return Err(RuleError { error, reason: "payment_data", key: "requests.empty_list_is_object" }.into());
            }
            let reason = "[] is read as {}, by the dialect's [requests] empty_list_is_object";
            self.sink.left_out(PAYMENT_DATA, reason, false);
        }
        for Member { name, .. } in &self.create.unknown().0 {
            if self.rules.unknown_fields == UnknownFields::Reject {
                let error = RequestError::member(name.clone().into_owned(), "is not a known field");
                return Err(RuleError { error, reason: "unknown_field", key: "v1.unknown_fields" }.into());
            }
            self.sink.left_out(name, "unknown to v1: dropped, by the merchant's [v1] unknown_fields", true);
        }
        for name in self.create.null_members() {
            self.sink.left_out(name, "null is like absent", false);
        }
        Ok(())
    }

    fn add_order(&mut self) {
        let Self { create, sink, .. } = self;
        let mut add = |name, value, of, rule| sink.member(name, value, MemberSource::Body(of), rule);
        add("order_id", NewValue::Text(create.external_id.as_str()), "external_id", AS_IS);
        add("amount", NewValue::Amount(create.amount), "amount", "decimal string -> JSON number, by value");
        add("currency", NewValue::Text(create.currency_text()), "currency", AS_IS);
        if let Some(shop_code) = &create.shop_code {
            add("method", NewValue::Text(shop_code), "shop_code", AS_IS);
        }
        if let Some(card_number) = &create.card_number {
            add("account_number", NewValue::Text(card_number.expose()), "card_number", AS_IS);
        }
    }

    fn add_user_id(&mut self) -> Result<Option<CustomerAccountId>, TranslateError> {
        const NAME: &str = "merchant_user_id";
        match (self.create.merchant_user_id, self.rules.non_numeric_user_id) {
            (UserId::Absent, _) => Ok(None),
            (UserId::Number(id), _) => {
                let (value, source) = (NewValue::Integer(id.0), MemberSource::Body(NAME));
                self.sink.member("customer_account_id", value, source, "digits -> JSON integer");
                Ok(Some(id))
            }
            (UserId::NoEquivalent, IdPolicy::Omit) => {
                let reason = "no integer equals it: omitted, by the merchant's [v1] non_numeric_user_id";
                self.sink.left_out(NAME, reason, true);
                Ok(None)
            }
            (UserId::NoEquivalent, IdPolicy::Reject) => {
                let why = "must be digits without a leading zero, within a signed 64-bit integer";
                let error = RequestError::member(NAME, why);
                Err(RuleError { error, reason: "user_id", key: "v1.non_numeric_user_id" }.into())
            }
        }
    }

    /// Adds the address of callbacks: the relay's, which stores the merchant's address, or the merchant's own. Returns it, and
    /// the address that the relay calls.
    fn add_callback(&mut self, relay_url: &CallbackUrl) -> Result<(CallbackUrl, Option<CallbackUrl>), TranslateError> {
        const NAME: &str = "callback_url";
        let refuse = |why, key| RuleError { error: RequestError::member(NAME, why), reason: "callback_url", key };
        let named = self.create.callback_url.as_ref();
        let (url, source, rule) = match named {
            Some(named) => (Some(named), MemberSource::Body(NAME), AS_IS),
            None => (self.rules.callback_url.as_ref(), MemberSource::MerchantRule(NAME), FILLED_IN),
        };
        match self.rules.callbacks {
            CallbackStyle::V1 => {
                if named.is_some_and(CallbackUrl::is_plain_http) && !self.rules.allow_http_callbacks {
                    return Err(refuse("must be an https:// URL", "v1.allow_http_callbacks").into());
                }
                if let Some(url) = url {
                    self.sink.relayed_to(url, source);
                }
                let rule = "since the merchant's [v1] callbacks = \"v1\"";
                self.sink.member(NAME, NewValue::Text(relay_url.as_str()), MemberSource::Relay, rule);
                Ok((relay_url.clone(), url.cloned()))
            }
            CallbackStyle::V2 => {
                let url = url.ok_or_else(|| refuse("is required: the merchant has no default", "v1.callback_url"))?;
                if url.is_plain_http() {
                    return Err(refuse("must be an https:// URL", "v1.callbacks").into());
                }
                self.sink.member(NAME, NewValue::Text(url.as_str()), source, rule);
                Ok((url.clone(), None))
            }
        }
    }

    /// Adds what depends on the direction. A deposit has one browser destination for all three results.
    fn add_kind(&mut self) -> Result<RequestKind, TranslateError> {
        if let Some(account_number) = &self.create.card_number {
            return Ok(RequestKind::Withdrawal { account_number: account_number.clone(), account_channel: None });
        }
        let named = self.create.return_user_url.as_ref();
        let named =
            named.map(|url| (url, MemberSource::PaymentData("return_user_url"), "as is, for all three results"));
        let default = self.rules.return_url.as_ref();
        let default = default.map(|url| (url, MemberSource::MerchantRule("return_url"), FILLED_IN));
        let (url, source, rule): (&BrowserUrl, _, _) = named.or(default).ok_or_else(|| {
            let why = "is required: the merchant has no default";
            let error = RequestError::member("paymentData.return_user_url", why);
            RuleError { error, reason: "return_user_url", key: "v1.return_url" }
        })?;
        for name in ["success_url", "pending_url", "fail_url"] {
            self.sink.member(name, NewValue::Text(url.as_str()), source, rule);
        }
        Ok(RequestKind::Deposit { success_url: url.clone(), pending_url: url.clone(), fail_url: url.clone() })
    }

    /// Adds the members of `paymentData`, and the customer's address where it is outside.
    fn add_fields(&mut self) -> Object<'a> {
        let mut fields = Object::default();
        for member in self.create.moved_members() {
            self.sink.field(member, MemberSource::PaymentData(&member.name), "moved byte for byte");
            fields.0.push(member.clone());
        }
        match self.create.user_ip_place {
            UserIpPlace::Body => {
                let address = self.create.merchant_user_ip.as_ref().map_or("", CustomerIp::as_str);
                let value = Value { raw: &self.create.user_ip_text, node: Node::String(Cow::Borrowed(address)) };
                let name = Cow::Borrowed(MERCHANT_USER_IP);
                let member = Member { name, raw_name: "\"merchant_user_ip\"", value };
                self.sink.field(&member, MemberSource::Body(MERCHANT_USER_IP), "as is, into fields");
                fields.0.push(member);
            }
            UserIpPlace::Both => {
                let reason = "the same as paymentData.merchant_user_ip, and forwarded once";
                self.sink.left_out(MERCHANT_USER_IP, reason, false);
            }
            UserIpPlace::PaymentData | UserIpPlace::Nowhere => {}
        }
        fields
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
