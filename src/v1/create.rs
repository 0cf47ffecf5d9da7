//! v1 creates: read, translate, create, reply in the dialect; and what makes two v1 bodies the same request.
//!
//! One keyed hash decides whether two bodies are the same (contract section 2, "Live reload"). Only if they differ are the
//! differing members found: from the operation that the first body created, and from short hashes of the few members that
//! it does not store as they were sent.

use bytes::Bytes;
use serde::Serialize;

use super::V1Frontend;
use super::translate::{BodyBytes, RuleError, TranslateError, Translated, translate};
use crate::auth::SignedBody;
use crate::domain::{
    AccountNumber, Answer, CallbackSender, CallbackUrl, CreateReply, CreateRequest, CustomerIp, Direction, Fingerprint,
    FingerprintInput, FingerprintKey, MERCHANT_USER_IP as USER_IP, MemberFingerprint, MemberFingerprints,
    RETURN_USER_URL as RETURN_URL, RedirectUrl, SchemaFields, canonical, dropped_members,
};
use crate::engine::{CreateError, EarlierRequest};
use crate::error::{ApiError, Conflict, RequestError};
use crate::json::{self, Member, Node, Object, Value};
use crate::rules::{CallbackStyle, Dialect};
use crate::store::V1Request;
use crate::telemetry::{Stage, Stopwatch};
use crate::v2::{ServiceCall, conflict, of_other_version, reserved};
use crate::wire::members::not_null;
use crate::wire::v1::{self as wire, MEMBERS, PAYMENT_DATA, UserId, UserIpPlace, V1Create, read_create};

impl V1Frontend {
    /// Answers a v1 create: the body of the 200 reply in the caller's dialect. Errors name members in v1 words.
    ///
    /// # Errors
    /// Why nothing was created.
    pub async fn create(
        &self,
        call: ServiceCall<'_>,
        direction: Direction,
        body: &SignedBody,
    ) -> Result<Answer, ApiError> {
        let create = read_create(direction, body.bytes()).map_err(|error| self.refused(error, "shape"))?;
        let fingerprint = create.fingerprint(&self.fingerprint_key);
        let created = match self.translate(call, &create, fingerprint) {
            Ok((request, body, v1)) => self.service.create_from_v1(call, request, body, v1).await,
            Err(TranslateError::Shape(error)) => Err(CreateError::Invalid(error)),
            Err(TranslateError::Rule(RuleError { error, reason, .. })) => {
                let repeat = self.service.repeat(call, direction, &create.external_id, fingerprint).await;
                let Some(repeat) = repeat.transpose() else {
                    return Err(self.refused(error, reason));
                };
                repeat
            }
        };
        let created = created.map_err(|refusal| self.in_v1_words(refusal, &create))?;
        let body = created_reply(&call.caller.merchant().v1.dialect, direction, &created);
        Ok(Answer { body, transaction_id: Some(created.transaction_id) })
    }

    /// Counts a body that has no v2 equivalent, by reason.
    fn refused(&self, error: RequestError, reason: &'static str) -> ApiError {
        self.metrics.translation_refused(reason);
        ApiError::Untranslatable { error, reason }
    }

    /// Translates a create by the merchant's rules: the v2 request, the bytes that are signed for it, and what is stored of the
    /// v1 body.
    fn translate<'a>(
        &self,
        call: ServiceCall<'a>,
        create: &'a V1Create<'a>,
        fingerprint: Fingerprint,
    ) -> Result<(CreateRequest<'a>, Bytes, V1Request), TranslateError> {
        let watch = Stopwatch::start();
        let merchant = call.caller.merchant();
        let order = self.fingerprint_key.order_key(&merchant.id, create.direction, &create.external_id);
        let public_url = &call.caller.rules().gateway.server.public_url;
        let relay_url = CallbackUrl::of_relay(public_url, &merchant.id, create.direction, order);
        let mut body = BodyBytes::default();
        let Translated { request, relayed_to } = translate(create, &merchant.v1, &relay_url, &mut body)?;
        self.metrics.stage(Stage::Translate, watch.elapsed());
        let members = create.not_held(&self.fingerprint_key, relayed_to.as_ref());
        let sender = match merchant.v1.callbacks {
            CallbackStyle::V1 => CallbackSender::Relayed(relayed_to),
            CallbackStyle::V2 => CallbackSender::Directly,
        };
        Ok((request, body.into_text().into(), V1Request { fingerprint, members, sender, order }))
    }

    /// Words a refusal with the names of the v1 body.
    fn in_v1_words(&self, refusal: CreateError, create: &V1Create<'_>) -> ApiError {
        const ORDER: &str = "external_id";
        let named = |paths: Vec<String>| paths.iter().map(|path| create.v1_name(path).into_owned()).collect();
        match refusal {
            CreateError::Invalid(error) => ApiError::Invalid(error.renamed(|path| create.v1_name(path))),
            CreateError::OtherData { transaction_id, paths } => {
                ApiError::Conflict(conflict(ORDER, named(paths)).with(transaction_id))
            }
            CreateError::OtherBody(earlier) => {
                let differing = create.differing(&self.fingerprint_key, &earlier);
                ApiError::Conflict(conflict(ORDER, differing).with(earlier.transaction_id))
            }
            CreateError::OtherVersion(transaction_id) => {
                ApiError::Conflict(Conflict { transaction_id, ..of_other_version(ORDER, "v2") })
            }
            CreateError::Reserved(home) => ApiError::Conflict(reserved(ORDER, home)),
            CreateError::Failed(error) => error,
        }
    }
}

/// The name in conflicts of all top-level members that v1 does not know: their names are not stored.
const UNKNOWN: &str = "unknown fields";

/// The members that a fingerprint has as values: all but the amount, which has many spellings, and `paymentData`.
const COMPARED: [&str; 7] =
    ["external_id", "currency", "shop_code", "callback_url", "merchant_user_id", "merchant_user_ip", "card_number"];

/// The members by their number in stored fingerprints. Numbers never change.
const NUMBERED: [&str; 12] = [
    "external_id",
    "amount",
    "currency",
    "shop_code",
    "callback_url",
    "merchant_user_id",
    "merchant_user_ip",
    "card_number",
    "paymentData",
    UNKNOWN,
    "paymentData.return_user_url",
    "paymentData.merchant_user_ip",
];

impl V1Create<'_> {
    /// Returns the keyed hash of the body's content: of decoded values, regardless of the order of keys and the spelling of the
    /// amount. `null` equals absent where the contract allows `null`, and so does `paymentData` without members, PHP's empty
    /// list included: all of these become the same v2 body.
    #[must_use]
    pub fn fingerprint(&self, fingerprint_key: &FingerprintKey) -> Fingerprint {
        let mut parts = FingerprintInput::of("v1 create");
        parts.part(self.direction.as_str().as_bytes());
        parts.part(&self.amount.hundredths().to_le_bytes());
        for name in COMPARED {
            canonical::hash_optional(&mut parts, not_null(self.member(name)));
        }
        // A `null` address equals an absent one.
        let counts = |member: &Member<'_>| member.name != USER_IP || member.value.node != Node::Null;
        match self.payment_data() {
            Some(fields) if fields.0.iter().any(counts) => canonical::hash_members(&mut parts, fields, counts),
            _ => canonical::hash_optional(&mut parts, None),
        }
        canonical::hash_members(&mut parts, self.unknown(), |_| true);
        fingerprint_key.fingerprint(&parts)
    }

    /// Returns fingerprints of the members that neither the v2 request nor `relayed_to`, the merchant's address that the relay
    /// calls, holds as they were sent.
    #[must_use]
    pub fn not_held(&self, fingerprint_key: &FingerprintKey, relayed_to: Option<&CallbackUrl>) -> MemberFingerprints {
        let inner_ip = matches!(self.user_ip_place, UserIpPlace::PaymentData | UserIpPlace::Both);
        let user_id = not_null(self.member("merchant_user_id"));
        let differs = [
            ("currency", self.currency_text() != self.currency.as_str()),
            ("callback_url", self.callback_url.as_ref() != relayed_to),
            (
                "merchant_user_id",
                user_id.is_some_and(|value| !matches!(value.node, Node::String(_)))
                    || self.merchant_user_id == UserId::NoEquivalent,
            ),
            (USER_IP, inner_ip),
            (UNKNOWN, !self.unknown().0.is_empty()),
            ("paymentData.return_user_url", self.direction == Direction::Payin && self.return_user_url.is_none()),
            ("paymentData.merchant_user_ip", inner_ip),
        ];
        let mut members = MemberFingerprints::default();
        for (name, _) in differs.into_iter().filter(|(_, differs)| *differs) {
            members.add(number(name), self.short(fingerprint_key, name, &SchemaFields::Everything));
        }
        members
    }

    /// Returns the short hash of a member; for `paymentData`, of its members that a schema did not keep.
    fn short(&self, fingerprint_key: &FingerprintKey, name: &str, kept: &SchemaFields) -> MemberFingerprint {
        let mut parts = FingerprintInput::of("v1 member");
        parts.part(name.as_bytes());
        let mut value = |value: Option<&Value<'_>>| canonical::hash_optional(&mut parts, not_null(value));
        match name.strip_prefix("paymentData.") {
            Some(inner) => value(self.payment_data().and_then(|fields| fields.get(inner))),
            None if name == UNKNOWN => canonical::hash_members(&mut parts, self.unknown(), |_| true),
            None if name == PAYMENT_DATA => {
                let nothing = Object::default();
                let fields = self.payment_data().unwrap_or(&nothing);
                return dropped_members(fingerprint_key, self.direction, fields, kept).unwrap_or_default();
            }
            None => value(self.member(name)),
        }
        fingerprint_key.short(&parts)
    }

    /// Reports whether a member equals what the operation holds of an earlier body.
    fn is_held(
        &self,
        fingerprint_key: &FingerprintKey,
        name: &str,
        held: &EarlierRequest,
        fields: &Object<'_>,
    ) -> bool {
        let text = |value: Option<&Value<'_>>| value.and_then(Value::as_str).map(str::to_owned);
        match name {
            "amount" => self.amount == held.amount,
            "currency" => self.currency_text() == held.currency.as_str(),
            "shop_code" => self.shop_code == held.shop_code,
            "callback_url" => self.callback_url == held.callback_url,
            "merchant_user_id" => match (not_null(self.member(name)), held.user_id) {
                (None, None) => true,
                (sent @ Some(_), Some(id)) => text(sent).is_some_and(|text| text == id.to_string()),
                _ => false,
            },
            USER_IP => self.outer_user_ip() == text(fields.get(USER_IP)),
            "card_number" => {
                self.card_number.as_ref().map(AccountNumber::expose)
                    == held.card_number.as_ref().map(AccountNumber::expose)
            }
            PAYMENT_DATA => self.short(fingerprint_key, PAYMENT_DATA, &held.kept) == MemberFingerprint::default(),
            UNKNOWN => self.unknown().0.is_empty(),
            "paymentData.return_user_url" => {
                self.direction == Direction::Payout || self.return_user_url == held.return_url
            }
            "paymentData.merchant_user_ip" => {
                !matches!(self.user_ip_place, UserIpPlace::PaymentData | UserIpPlace::Both)
            }
            _ => true,
        }
    }

    /// Returns the customer's address outside of `paymentData`.
    fn outer_user_ip(&self) -> Option<String> {
        let outside = matches!(self.user_ip_place, UserIpPlace::Body | UserIpPlace::Both);
        self.merchant_user_ip.as_ref().filter(|_| outside).map(|address| CustomerIp::as_str(address).to_owned())
    }

    /// Returns the members in which this body differs from an earlier one, in the order of [`MEMBERS`]. Those of
    /// `paymentData` are named one by one, except those that a schema dropped.
    #[must_use]
    pub fn differing(&self, fingerprint_key: &FingerprintKey, held: &EarlierRequest) -> Vec<String> {
        let fields = stored_object(&held.fields);
        let differs = |name: &&str| match held.members.get(number(name)) {
            Some(earlier) => self.short(fingerprint_key, name, &held.kept) != earlier,
            None => !self.is_held(fingerprint_key, name, held, &fields),
        };
        let nothing = Object::default();
        let own = self.payment_data().unwrap_or(&nothing);
        let moved = canonical::differing_names(own, &fields, |member| {
            held.kept.keeps(&member.name) && member.name != USER_IP && !self.is_destination(&member.name)
        });
        let mut inner: Vec<String> = moved.into_iter().map(|name| format!("{PAYMENT_DATA}.{name}")).collect();
        let places = ["paymentData.merchant_user_ip", "paymentData.return_user_url"];
        inner.extend(places.into_iter().filter(|name| differs(name)).map(str::to_owned));
        if inner.is_empty() && differs(&PAYMENT_DATA) {
            inner.push(PAYMENT_DATA.to_owned());
        }
        let outer = MEMBERS.into_iter().filter(|name| *name != PAYMENT_DATA).filter(differs).map(str::to_owned);
        let unknown = Some(UNKNOWN).filter(differs).map(str::to_owned);
        outer.chain(inner).chain(unknown).collect()
    }

    /// Reports whether a member of `paymentData` is the return address, which does not move to `fields`.
    fn is_destination(&self, name: &str) -> bool {
        self.direction == Direction::Payin && name == RETURN_URL
    }
}

fn number(name: &str) -> u8 {
    let place = NUMBERED.iter().position(|numbered| *numbered == name).unwrap_or(NUMBERED.len());
    u8::try_from(place).unwrap_or(u8::MAX)
}

fn stored_object(text: &str) -> Object<'_> {
    match json::read(text.as_bytes()) {
        Ok(Value { node: Node::Object(object), .. }) => object,
        _ => Object::default(),
    }
}

#[derive(Serialize)]
struct CreatedValues<'a> {
    transaction_id: &'a str,
    external_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect_url: Option<&'a str>,
}

/// Writes the body of a create's 200 reply.
pub(super) fn created_reply(dialect: &Dialect, direction: Direction, made: &CreateReply) -> Bytes {
    let external_id = made.order_id.as_str();
    let redirect_url = made.redirect_url.as_ref().map(RedirectUrl::expose);
    let values = || CreatedValues { transaction_id: &made.transaction_id, external_id, redirect_url };
    dialect.rendered(direction.as_str(), values).unwrap_or_else(|| match redirect_url {
        Some(redirect_url) => wire::payin_reply(&made.transaction_id, external_id, redirect_url).into(),
        None => wire::payout_reply(&made.transaction_id, external_id).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Amount, BrowserUrl, Currency, CustomerAccountId, FingerprintKey, PINNED_FINGERPRINTS};
    use crate::wire::v1::read_create;

    const BODY: &str = r#"{"external_id":"o1","amount":"10.50","currency":"EUR","shop_code":null,"extra":[1.50,{"a":-0}],
        "callback_url":"https://a.example/cb","merchant_user_id":"42","paymentData":{"merchant_user_ip":"::1",
        "return_user_url":"https://a.example/r","level":3,"ratio":0.250e3,"none":null,"yes":true}}"#;

    // A store of a build with other values is refused.
    #[test]
    fn hashes_stay_what_they_are() {
        let fingerprint_key = FingerprintKey::new(&[3; 32]);
        let create = read_create(Direction::Payin, BODY.as_bytes()).unwrap();
        assert_eq!(u128::from_be_bytes(create.fingerprint(&fingerprint_key).0), PINNED_FINGERPRINTS.v1);
        let callback_url = CallbackUrl::new("https://a.example/cb").unwrap();
        let members = create.not_held(&fingerprint_key, Some(&callback_url));
        let stored = NUMBERED.map(|name| members.get(number(name)).map(u32::from_be_bytes));
        // The address, which is in its other place, and what v1 does not know.
        let [unknown, nowhere, inside] = PINNED_FINGERPRINTS.v1_members.map(Some);
        assert_eq!(stored, [None, None, None, None, None, None, nowhere, None, None, unknown, None, inside]);
    }

    #[test]
    fn what_differs_is_reported() {
        let fingerprint_key = FingerprintKey::new(&[3; 32]);
        let first = read_create(Direction::Payin, BODY.as_bytes()).unwrap();
        let callback_url = CallbackUrl::new("https://a.example/cb").unwrap();
        let return_url = BrowserUrl::new("https://a.example/r").unwrap();
        let held = EarlierRequest {
            transaction_id: "7".into(),
            amount: Amount::from_hundredths(1050).unwrap(),
            currency: Currency::new("EUR").unwrap(),
            shop_code: None,
            members: first.not_held(&fingerprint_key, Some(&callback_url)),
            callback_url: Some(callback_url),
            user_id: Some(CustomerAccountId(42)),
            card_number: None,
            return_url: Some(return_url),
            fields: r#"{"merchant_user_ip":"::1","level":3,"ratio":0.250e3,"none":null,"yes":true}"#.into(),
            kept: SchemaFields::Everything,
        };
        assert_eq!(first.differing(&fingerprint_key, &held), [""; 0]);
        for (from, to, names) in [
            ("10.50", "10.51", &["amount"][..]),
            ("\"42\"", "42", &["merchant_user_id"]),
            ("level\":3", "level\":4", &["paymentData.level"]),
            ("::1", "::2", &["paymentData.merchant_user_ip"]),
            ("[1.50,", "[2,", &["unknown fields"]),
            ("a.example/r", "a.example/s", &["paymentData.return_user_url"]),
        ] {
            let body = BODY.replace(from, to);
            let other = read_create(Direction::Payin, body.as_bytes()).unwrap();
            assert_eq!(other.differing(&fingerprint_key, &held), names, "{from} -> {to}");
            assert_ne!(other.fingerprint(&fingerprint_key), first.fingerprint(&fingerprint_key));
        }
    }
}
