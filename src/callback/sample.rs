//! Sends a sample callback to a merchant's receiver: marked as a sample, sent at once and not stored.

use http::{HeaderName, HeaderValue};

use super::message::{self, CallbackMessage, MessageContext, Unsendable};
use super::send::send;
use crate::auth::Interface;
use crate::clock::{Clock, Random};
use crate::domain::{Amount, CallbackUrl, Currency, Direction, InvalidValue, OperationView, OrderId, Status};
use crate::outbound::Outbound;
use crate::rules::{CallbackStyle, Merchant, RuleSet};
use crate::store::CallbackTry;

/// The header that marks a sample, with the value `true`. Real callbacks never have it.
const SAMPLE: HeaderName = HeaderName::from_static("x-callback-sample");

/// Which sample to send.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// The merchant that receives it.
    pub merchant: &'a Merchant,
    /// The key that signs; `None`: the merchant's first key with a secret.
    pub api_key: Option<&'a str>,
    /// Through which API version: v1 is as the relay sends it, in the merchant's dialect. `None`: as the merchant's v1 rules
    /// have it.
    pub through: Option<Interface>,
    /// The address; `None`: the merchant's default address.
    pub url: Option<&'a CallbackUrl>,
}

/// A sample that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    /// Its id, which begins with `sample_`.
    pub id: String,
    /// The API version of its format.
    pub through: Interface,
    /// The address it was sent to.
    pub url: CallbackUrl,
    /// The body that was sent.
    pub body: String,
    /// The outcome.
    pub tried: CallbackTry,
}

/// Why no sample was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// The merchant has no such key.
    #[error("the merchant has no such API key")]
    NoSuchKey,
    /// Neither the request nor the rules name an address.
    #[error("the merchant has no default callback_url: pass an address")]
    NoAddress,
    /// v2 callbacks go to https addresses only.
    #[error("a v2 callback_url must be an https:// URL")]
    PlainHttp,
    /// The callback cannot be composed or signed.
    #[error(transparent)]
    Unsendable(#[from] Unsendable),
    /// An internal error.
    #[error("the sample cannot be made: {0}")]
    Defect(Box<str>),
}

impl From<InvalidValue> for SampleError {
    fn from(invalid: InvalidValue) -> Self {
        Self::Defect(invalid.reason().into())
    }
}

/// Sends a sample by the rules in force, like any callback, and returns the outcome.
///
/// # Errors
/// [`SampleError`] states why nothing was sent.
pub async fn sample(
    rules: &RuleSet,
    outbound: &Outbound,
    clock: &dyn Clock,
    random: &dyn Random,
    request: &Sample<'_>,
) -> Result<Sampled, SampleError> {
    let merchant = request.merchant;
    let api_key = match request.api_key {
        Some(key) if !merchant.api_keys.iter().any(|own| *own.key == *key) => return Err(SampleError::NoSuchKey),
        key => key.unwrap_or_default(),
    };
    let through = request.through.unwrap_or(match merchant.v1.callbacks {
        CallbackStyle::V1 => Interface::V1,
        CallbackStyle::V2 => Interface::V2,
    });
    let url = request.url.or(merchant.v1.callback_url.as_ref()).ok_or(SampleError::NoAddress)?;
    if through == Interface::V2 && url.is_plain_http() {
        return Err(SampleError::PlainHttp);
    }
    let number = random.number();
    let id = format!("sample_{number:016x}{:016x}", random.number());
    let order_id = OrderId::new(&format!("sample-{number:016x}"))?;
    let context = MessageContext { id: &id, merchant, api_key, url, now: clock.now() };
    let message = match through {
        Interface::V2 => message::compose_v2(&context, &order_id)?,
        Interface::V1 => message::compose_v1(&context, &sample_view(rules, merchant, order_id, &context)?)?,
    };
    let body = String::from_utf8_lossy(&message.body).into_owned();
    let sent = send(outbound, &rules.gateway.callbacks, mark(message), clock).await;
    Ok(Sampled { id, through, url: url.clone(), body, tried: sent.tried })
}

fn mark(mut message: CallbackMessage) -> CallbackMessage {
    message.headers.push((SAMPLE, HeaderValue::from_static("true")));
    message
}

/// Returns the sample's operation: a successful deposit of 1.00 in the merchant's default shop.
fn sample_view(
    rules: &RuleSet,
    merchant: &Merchant,
    order_id: OrderId,
    context: &MessageContext<'_>,
) -> Result<OperationView, SampleError> {
    let shop = merchant.default_shop.as_ref();
    let currency = shop.and_then(|shop| rules.shops.get(shop)).map(|shop| shop.currency);
    Ok(OperationView {
        transaction_id: "0".into(),
        external_id: order_id,
        direction: Direction::Payin,
        status: Status::Success,
        amount: Amount::from_hundredths(100)?,
        currency: currency.map_or_else(|| Currency::new("EUR"), Ok)?,
        shop_code: shop.map_or("sample", |shop| shop.as_str()).into(),
        account_number: None,
        created_at: context.now,
    })
}
