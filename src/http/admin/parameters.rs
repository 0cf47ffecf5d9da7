//! Reads the parameters that the API and the console's pages have in common.

use serde::Serialize;

use super::form::cleaned;
use super::source::{AdminSource, SampleRequest};
use crate::auth::Interface;
use crate::callback::listing::{DEFAULT_STATES, Moment, SpanEnd, pasted_order_id, read_cursor, read_states};
use crate::callback::resend::{PendingOfReceiver, RECEIVER, read_receiver};
use crate::domain::{CallbackUrl, MerchantId, OrderId, UnixMillis};
use crate::error::RequestError;
use crate::store::{CallbackQuery, StoreError};
use crate::v1::query::parameters;
use crate::wire::members::read_parameter;

/// What a merchant's id is expected to be.
const MERCHANT: &str = "must be the id of a merchant";

/// What an order id of a page is expected to be.
pub(super) const ORDER_ID: &str = "must be 1 to 255 characters";

/// Returns the parameters of a program's request, without white space around them: they may have been pasted. Empty: not given.
///
/// # Errors
/// A parameter is unknown, repeated, empty, or not percent-encoded UTF-8.
pub(super) fn given<const N: usize>(
    query: Option<&str>,
    names: [&'static str; N],
) -> Result<[String; N], RequestError> {
    let mut values = names.map(|name| (name, String::new()));
    for ((name, value), sent) in values.iter_mut().zip(parameters(query, names)?) {
        let sent = sent.unwrap_or_default();
        // White space alone was given all the same, and is read as no value of any parameter.
        let trimmed = Some(cleaned(name, &sent)).filter(|text| !text.is_empty());
        trimmed.unwrap_or(&sent).clone_into(value);
    }
    Ok(values.map(|(_, value)| value))
}

/// Reads a time of a filter; empty: any.
pub(super) fn moment(end: SpanEnd, text: &str, now: UnixMillis) -> Result<Option<UnixMillis>, RequestError> {
    named_moment(end.as_str(), end, text, now)
}

/// Reads a time of a filter by the name of its member; empty: any.
pub(super) fn named_moment(
    name: &'static str,
    end: SpanEnd,
    text: &str,
    now: UnixMillis,
) -> Result<Option<UnixMillis>, RequestError> {
    let moment = read_parameter(name, text, Moment::EXPECTED, |text| Moment::parse(text, end))?;
    Ok(moment.map(|moment| moment.before(now)))
}

/// Reads the id of a merchant; empty: any.
pub(super) fn merchant(text: &str) -> Result<Option<MerchantId>, RequestError> {
    read_parameter("merchant", text, MERCHANT, |text| MerchantId::new(text).ok())
}

/// Reads an order id of a page; empty: any.
pub(super) fn order_id(text: &str) -> Result<Option<OrderId>, RequestError> {
    read_parameter("order_id", text, ORDER_ID, |text| OrderId::new(text).ok())
}

/// The filter of callbacks, as it was sent; empty: any.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct CallbackFilter {
    /// A state, or several separated by commas; empty: those not delivered.
    pub state: String,
    pub merchant: String,
    pub order_id: String,
    /// Queued at or after this time; an age such as `2h` is a time, too.
    pub since: String,
    /// Queued before this time.
    pub until: String,
}

/// How errors of a filter are worded: for a program, or for the page that a person sees.
pub(super) struct FilterWords {
    pub states: &'static str,
    pub order_without_merchant: &'static str,
    pub after: &'static str,
}

impl CallbackFilter {
    pub(super) const NAMES: [&'static str; 5] = ["state", "merchant", "order_id", "since", "until"];

    /// Makes the filter of the values of [`CallbackFilter::NAMES`].
    pub(super) fn of([state, merchant, order_id, since, until]: [String; 5]) -> Self {
        Self { state, merchant, order_id, since, until }
    }

    /// Reads the filter. `after`: the end of the slice before, or empty.
    ///
    /// # Errors
    /// A member is malformed.
    pub(super) fn query(
        &self,
        words: &FilterWords,
        after: &str,
        limit: usize,
        now: UnixMillis,
    ) -> Result<CallbackQuery, RequestError> {
        if !self.order_id.is_empty() && self.merchant.is_empty() {
            return Err(RequestError::member("order_id", words.order_without_merchant));
        }
        let order_id = (!self.order_id.is_empty()).then(|| OrderId::new(&self.order_id)).transpose();
        Ok(CallbackQuery {
            states: read_parameter("state", &self.state, words.states, read_states)?
                .unwrap_or_else(|| DEFAULT_STATES.into()),
            merchant: merchant(&self.merchant)?,
            order_id: order_id.map_err(|invalid| RequestError::invalid("order_id", &invalid))?,
            since: moment(SpanEnd::Since, &self.since, now)?,
            until: moment(SpanEnd::Until, &self.until, now)?,
            after: read_parameter("after", after, words.after, read_cursor)?,
            limit,
        })
    }

    /// Trims the order id, since pasting brings white space along. It stays as it is if the merchant has callbacks of the
    /// untrimmed id.
    pub(super) async fn trim(&mut self, source: &dyn AdminSource) -> Result<(), StoreError> {
        if let (Ok(merchant), Ok(exact)) = (MerchantId::new(&self.merchant), OrderId::new(&self.order_id)) {
            let order_id = pasted_order_id(source.store(), &merchant, exact).await?;
            order_id.as_str().clone_into(&mut self.order_id);
        }
        Ok(())
    }
}

/// Reads whose pending callbacks are to be sent.
///
/// # Errors
/// A parameter is malformed, or there is no receiver.
pub(super) fn pending_of(receiver: &str, merchant_id: &str) -> Result<PendingOfReceiver, RequestError> {
    let receiver = read_receiver(receiver).ok_or_else(|| RequestError::member("receiver", RECEIVER))?;
    Ok(PendingOfReceiver { receiver, merchant: merchant(merchant_id)? })
}

/// Reads the request of a sample.
///
/// # Errors
/// A parameter is malformed.
pub(super) fn sample_request(
    merchant_id: &str,
    api_key: &str,
    kind: &str,
    url: &str,
) -> Result<SampleRequest, RequestError> {
    let through = |text: &str| Interface::ALL.into_iter().find(|through| through.as_str() == text);
    let url = (!url.is_empty()).then(|| CallbackUrl::new_allowing_http(url)).transpose();
    Ok(SampleRequest {
        merchant: merchant(merchant_id)?.ok_or_else(|| RequestError::member("merchant", MERCHANT))?,
        api_key: Some(api_key.to_owned()).filter(|key| !key.is_empty()),
        through: read_parameter("kind", kind, "must be `v1` or `v2`", through)?,
        url: url.map_err(|invalid| RequestError::invalid("url", &invalid))?,
    })
}
