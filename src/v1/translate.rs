//! The translation of a v1 create body to a v2 body: a pure function of the body and the merchant's rules (contract
//! section 5).

use std::borrow::Cow;
use std::fmt;

use crate::domain::{BrowserUrl, CallbackUrl, Direction, MERCHANT_USER_IP};
use crate::error::RequestError;
use crate::json::write_string;
use crate::rules::{CallbackStyle, IdPolicy, UnknownFields, V1Rules};
use crate::wire::v1::{UserId, UserIpPlace, V1Create};

const PAYMENT_DATA: &str = "paymentData";

/// The rule of most members.
const AS_IS: &str = "as is";

/// The rule of members that come from the merchant's rules.
const FILLED_IN: &str = "filled in: the request names none";

/// A translation: the members of the v2 body in order, each with where it came from.
#[derive(Debug)]
pub struct Translation<'a> {
    /// The members outside `fields`.
    pub members: Vec<Translated<'a>>,
    /// The members of `fields`; empty: there is no `fields`.
    pub fields: Vec<Translated<'a>>,
    /// Sent v1 members that are not in the v2 body.
    pub left_out: Vec<LeftOut<'a>>,
    /// The merchant's own callback address and where it came from, when v2 is given the relay's.
    pub relayed_to: Option<(CallbackUrl, MemberSource<'a>)>,
}

/// A sent v1 member that is not in the v2 body.
#[derive(Debug)]
pub struct LeftOut<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Why it is left out.
    pub reason: &'static str,
    /// Whether the v2 body lacks something that it stated.
    pub is_loss: bool,
}

/// A member of the v2 body.
pub struct Translated<'a> {
    /// Its name as JSON text, with quotes.
    pub raw_name: Cow<'a, str>,
    /// Its value as JSON text.
    pub raw_value: Cow<'a, str>,
    /// Where it came from.
    pub source: MemberSource<'a>,
    /// The rule that was applied to it.
    pub rule: &'static str,
}

impl fmt::Debug for Translated<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}", self.raw_name, self.source)
    }
}

/// Where a member of the v2 body came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberSource<'a> {
    /// A member of the v1 body.
    Body(&'static str),
    /// A member of `paymentData`, moved as it is.
    PaymentData(Cow<'a, str>),
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

/// Why a body cannot be translated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranslateError {
    /// For the caller, with v1 names.
    pub error: RequestError,
    /// For the metrics.
    pub reason: &'static str,
    /// The key whose change would let the body pass: of the merchant's file or, in `requests`, of its dialect's.
    pub key: &'static str,
}

/// Translates a v1 create by a merchant's rules; `relay_url` is where v2 is to send callbacks that are relayed.
///
/// # Errors
/// The merchant's first rule that refuses the body.
pub fn translate<'a>(
    create: &'a V1Create<'a>,
    rules: &'a V1Rules,
    relay_url: &str,
) -> Result<Translation<'a>, TranslateError> {
    let mut translation =
        Translation { members: Vec::with_capacity(10), fields: Vec::new(), left_out: Vec::new(), relayed_to: None };
    translation.read_empty_list(create, rules)?;
    translation.drop_unknown(create, rules)?;
    translation.add_order(create);
    translation.add_user_id(create, rules)?;
    translation.add_callback(create, rules, relay_url)?;
    translation.add_destinations(create, rules)?;
    translation.add_fields(create);
    Ok(translation)
}

impl<'a> Translation<'a> {
    /// Writes the v2 body: exactly the bytes that are signed and forwarded.
    #[must_use]
    pub fn to_body(&self) -> String {
        let mut body = String::with_capacity(768);
        body.push('{');
        write_members(&mut body, &self.members);
        if !self.fields.is_empty() {
            body.push_str(",\"fields\":{");
            write_members(&mut body, &self.fields);
            body.push('}');
        }
        body.push('}');
        body
    }

    fn leave_out(&mut self, name: impl Into<Cow<'a, str>>, reason: &'static str) {
        self.left_out.push(LeftOut { name: name.into(), reason, is_loss: false });
    }

    fn lose(&mut self, name: impl Into<Cow<'a, str>>, reason: &'static str) {
        self.left_out.push(LeftOut { name: name.into(), reason, is_loss: true });
    }

    /// Reads an empty list as an empty object, as PHP writes it, where the dialect allows it.
    fn read_empty_list(&mut self, create: &V1Create<'_>, rules: &V1Rules) -> Result<(), TranslateError> {
        if !create.payment_data_is_empty_list() {
            return Ok(());
        }
        if !rules.dialect.empty_list_is_object {
            let error = RequestError::member(PAYMENT_DATA, "must be a JSON object, not an array");
            return Err(TranslateError { error, reason: "payment_data", key: "requests.empty_list_is_object" });
        }
        self.leave_out(PAYMENT_DATA, "[] is read as {}, by the dialect's [requests] empty_list_is_object");
        Ok(())
    }

    fn drop_unknown(&mut self, create: &'a V1Create<'a>, rules: &V1Rules) -> Result<(), TranslateError> {
        for name in create.unknown_members() {
            if rules.unknown_fields == UnknownFields::Reject {
                let error = RequestError::member(name.to_owned(), "is not a known field");
                return Err(TranslateError { error, reason: "unknown_field", key: "v1.unknown_fields" });
            }
            self.lose(name, "unknown to v1: dropped, by the merchant's [v1] unknown_fields");
        }
        for name in create.null_members() {
            self.leave_out(name, "null is like absent");
        }
        Ok(())
    }

    fn add(
        &mut self,
        name: &'static str,
        raw_value: impl Into<Cow<'a, str>>,
        source: MemberSource<'a>,
        rule: &'static str,
    ) {
        self.members.push(Translated { raw_name: name.into(), raw_value: raw_value.into(), source, rule });
    }

    fn add_order(&mut self, create: &'a V1Create<'a>) {
        self.add("\"order_id\"", quoted(create.external_id.as_str()), MemberSource::Body("external_id"), AS_IS);
        let amount = create.amount.as_number().to_string();
        self.add("\"amount\"", amount, MemberSource::Body("amount"), "decimal string -> JSON number, by value");
        self.add("\"currency\"", quoted(&create.currency), MemberSource::Body("currency"), AS_IS);
        if let Some(shop_code) = &create.shop_code {
            self.add("\"method\"", quoted(shop_code), MemberSource::Body("shop_code"), AS_IS);
        }
        if let Some(card_number) = &create.card_number {
            self.add("\"account_number\"", quoted(card_number.expose()), MemberSource::Body("card_number"), AS_IS);
        }
    }

    fn add_user_id(&mut self, create: &V1Create<'_>, rules: &V1Rules) -> Result<(), TranslateError> {
        const NAME: &str = "merchant_user_id";
        match (create.merchant_user_id, rules.non_numeric_user_id) {
            (UserId::Absent, _) => {}
            (UserId::Number(id), _) => {
                self.add("\"customer_account_id\"", id.to_string(), MemberSource::Body(NAME), "digits -> JSON integer");
            }
            (UserId::NoEquivalent, IdPolicy::Omit) => {
                self.lose(NAME, "no integer equals it: omitted, by the merchant's [v1] non_numeric_user_id");
            }
            (UserId::NoEquivalent, IdPolicy::Reject) => {
                let reason = "must be digits without a leading zero, within a signed 64-bit integer";
                let error = RequestError::member(NAME, reason);
                return Err(TranslateError { error, reason: "user_id", key: "v1.non_numeric_user_id" });
            }
        }
        Ok(())
    }

    /// Adds the address of callbacks: the relay's, which stores the merchant's address, or the merchant's own.
    fn add_callback(
        &mut self,
        create: &'a V1Create<'a>,
        rules: &'a V1Rules,
        relay_url: &str,
    ) -> Result<(), TranslateError> {
        const NAME: &str = "callback_url";
        let refuse = |why, key| TranslateError { error: RequestError::member(NAME, why), reason: "callback_url", key };
        let (url, source, rule) = match (&create.callback_url, &rules.callback_url) {
            (Some(named), _) => (Some(named), MemberSource::Body(NAME), AS_IS),
            (None, default) => (default.as_ref(), MemberSource::MerchantRule(NAME), FILLED_IN),
        };
        match rules.callbacks {
            CallbackStyle::V1 => {
                let named_http = create.callback_url.as_ref().is_some_and(CallbackUrl::is_plain_http);
                if named_http && !rules.allow_http_callbacks {
                    return Err(refuse("must be an https:// URL", "v1.allow_http_callbacks"));
                }
                self.relayed_to = url.cloned().map(|url| (url, source));
                let rule = "since the merchant's [v1] callbacks = \"v1\"";
                self.add("\"callback_url\"", quoted(relay_url), MemberSource::Relay, rule);
            }
            CallbackStyle::V2 => {
                let url = url.ok_or_else(|| refuse("is required: the merchant has no default", "v1.callback_url"))?;
                if url.is_plain_http() {
                    return Err(refuse("must be an https:// URL", "v1.callbacks"));
                }
                self.add("\"callback_url\"", quoted(url.as_str()), source, rule);
            }
        }
        Ok(())
    }

    /// Adds the customer's browser destinations: one return address for all three results.
    fn add_destinations(&mut self, create: &'a V1Create<'a>, rules: &'a V1Rules) -> Result<(), TranslateError> {
        if create.direction == Direction::Payout {
            return Ok(());
        }
        let named = create.return_user_url.as_ref();
        let named =
            named.map(|url| (url, MemberSource::PaymentData("return_user_url".into()), "as is, for all three results"));
        let default = rules.return_url.as_ref().map(|url| (url, MemberSource::MerchantRule("return_url"), FILLED_IN));
        let (url, source, rule): (&BrowserUrl, _, _) = named.or(default).ok_or_else(|| TranslateError {
            error: RequestError::member("paymentData.return_user_url", "is required: the merchant has no default"),
            reason: "return_user_url",
            key: "v1.return_url",
        })?;
        for name in ["\"success_url\"", "\"pending_url\"", "\"fail_url\""] {
            self.add(name, quoted(url.as_str()), source.clone(), rule);
        }
        Ok(())
    }

    fn add_fields(&mut self, create: &'a V1Create<'a>) {
        for member in create.moved_members() {
            self.fields.push(Translated {
                raw_name: member.raw_name.into(),
                raw_value: member.value.raw.into(),
                source: MemberSource::PaymentData(Cow::Borrowed(&member.name)),
                rule: "moved byte for byte",
            });
        }
        match create.user_ip_place() {
            UserIpPlace::Body(address) => self.fields.push(Translated {
                raw_name: "\"merchant_user_ip\"".into(),
                raw_value: quoted(address.as_str()).into(),
                source: MemberSource::Body(MERCHANT_USER_IP),
                rule: "as is, into fields",
            }),
            UserIpPlace::Both => {
                self.leave_out(MERCHANT_USER_IP, "the same as paymentData.merchant_user_ip, and forwarded once");
            }
            UserIpPlace::PaymentData | UserIpPlace::Nowhere => {}
        }
    }
}

fn write_members(body: &mut String, members: &[Translated<'_>]) {
    for (index, member) in members.iter().enumerate() {
        if index > 0 {
            body.push(',');
        }
        body.push_str(&member.raw_name);
        body.push(':');
        body.push_str(&member.raw_value);
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    out
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
