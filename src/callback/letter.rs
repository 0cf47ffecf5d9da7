//! What is sent: composed and signed anew for each try, by the rules of that moment.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Uri};

use crate::auth::signatures::{V1Target, sign_v1_headers, sign_v2, sign_webhook};
use crate::domain::{CallbackUrl, MerchantId, OperationView, OrderId, Status, UnixMillis};
use crate::json::write_string;
use crate::remote;
use crate::rules::{Merchant, RuleSet};
use crate::store::{CallbackSender, JournalEntry, ResultChange, Stored};
use crate::v1::reply;

const SIGNATURE: HeaderName = HeaderName::from_static("x-signature");
const CALLBACK_ID: HeaderName = HeaderName::from_static("x-callback-id");
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// A callback, ready to be sent. `Debug` would show its signatures, so there is none.
pub(super) struct CallbackMessage {
    /// Where it goes.
    pub url: CallbackUrl,
    /// Beside those of every JSON request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Exactly what was signed.
    pub body: Bytes,
}

/// Why a callback cannot be sent by the rules of the moment; other rules may let it go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsendable {
    /// Nobody's rules say how to sign it.
    #[error("not sent: the rules have no such merchant")]
    NoMerchant,
    /// No key signs it.
    #[error("not sent: no key of the merchant has a {0}")]
    NoKey(&'static str),
    /// The merchant's rules took plain http back.
    #[error("not sent: the merchant's allow_http_callbacks is not set, and the address is plain http")]
    PlainHttp,
    /// A header cannot hold what it has to.
    #[error("not sent: the header {0} cannot be written")]
    Header(HeaderName),
    /// There is no result to tell.
    #[error("not sent: the operation has no result")]
    NoResult,
}

/// What is told, and to whom.
pub(super) struct Message<'a> {
    /// The name that is the same at every try.
    pub id: &'a str,
    /// Whose rules sign it.
    pub merchant: &'a Merchant,
    /// The key that the operation was made with.
    pub api_key: &'a str,
    /// Where it goes.
    pub url: &'a CallbackUrl,
    /// When this try is made.
    pub now: UnixMillis,
}

/// Composes what a claimed callback tells.
///
/// # Errors
/// Why it cannot be sent now.
pub(super) fn compose(
    rules: &RuleSet,
    id: &str,
    news: &ResultChange,
    now: UnixMillis,
) -> Result<CallbackMessage, Unsendable> {
    let about = |merchant: &MerchantId| rules.merchants.get(merchant).ok_or(Unsendable::NoMerchant);
    match news {
        ResultChange::Operation(stored) => {
            let Stored { operation, api_key, v1, .. } = &**stored;
            let merchant = about(&operation.merchant)?;
            let message = |url| Message { id, merchant, api_key, url, now };
            match v1 {
                Some(CallbackSender::Relayed(Some(url))) => in_v1(&message(url), &OperationView::from(operation)),
                Some(CallbackSender::Relayed(None)) => Err(Unsendable::NoResult),
                Some(CallbackSender::Directly) | None => in_v2(&message(&operation.callback_url), &operation.order_id),
            }
        }
        ResultChange::Entry(entry) => {
            let intent = &entry.intent;
            let merchant = about(&intent.merchant)?;
            let url = intent.callback_url.as_ref().ok_or(Unsendable::NoResult)?;
            let shown = remote::shown(JournalEntry::clone(entry)).map_err(|_| Unsendable::NoResult)?;
            in_v1(&Message { id, merchant, api_key: &intent.api_key, url, now }, &shown)
        }
    }
}

/// A callback as v2 sends it (contract section 10).
///
/// # Errors
/// Why it cannot be sent.
pub(super) fn in_v2(message: &Message<'_>, order_id: &OrderId) -> Result<CallbackMessage, Unsendable> {
    let Message { id, merchant, api_key, url, now } = message;
    let signing = merchant.signing_key(api_key, |key| key.v2_secrets.as_ref());
    let (_, secrets) = signing.ok_or(Unsendable::NoKey("v2_secret"))?;
    let secret = secrets.signing();
    let mut body = String::from("{\"order_id\":");
    write_string(&mut body, order_id.as_str());
    body.push('}');
    let timestamp = now.seconds().to_string();
    let headers = [
        (SIGNATURE, sign_v2(secret, body.as_bytes())),
        (CALLBACK_ID, (*id).to_owned()),
        (WEBHOOK_ID, (*id).to_owned()),
        (WEBHOOK_SIGNATURE, sign_webhook(secret, id, &timestamp, body.as_bytes())),
        (WEBHOOK_TIMESTAMP, timestamp),
    ];
    letter(url, headers, body.into())
}

/// A callback in the merchant's v1 dialect (contract section 10, "Relay").
///
/// # Errors
/// Why it cannot be sent.
pub(super) fn in_v1(message: &Message<'_>, shown: &OperationView) -> Result<CallbackMessage, Unsendable> {
    let Message { id, merchant, api_key, url, now } = message;
    if shown.status == Status::Pending {
        return Err(Unsendable::NoResult);
    }
    if url.is_plain_http() && !merchant.v1.allow_http_callbacks {
        return Err(Unsendable::PlainHttp);
    }
    let signing = merchant.signing_key(api_key, |key| key.v1_secrets.as_ref());
    let (key, secrets) = signing.ok_or(Unsendable::NoKey("v1_secret"))?;
    let dialect = &merchant.v1.dialect;
    let body = reply::callback(dialect, shown);
    // As the client will send it: without a fragment.
    let uri: Uri = url.as_str().parse().unwrap_or_default();
    let target = V1Target { method: Method::POST.as_str(), path: uri.path(), query: uri.query() };
    let signed = sign_v1_headers(&dialect.signature, &key.key, secrets.signing(), *now, &target, &body);
    let own = (!signed.iter().any(|(name, _)| *name == CALLBACK_ID)).then(|| (CALLBACK_ID, (*id).to_owned()));
    letter(url, signed.into_iter().chain(own), body)
}

fn letter(
    url: &CallbackUrl,
    headers: impl IntoIterator<Item = (HeaderName, String)>,
    body: Bytes,
) -> Result<CallbackMessage, Unsendable> {
    let value = |(name, text): (HeaderName, String)| match HeaderValue::try_from(text) {
        Ok(mut value) => {
            value.set_sensitive(true);
            Ok((name, value))
        }
        Err(_) => Err(Unsendable::Header(name)),
    };
    let headers = headers.into_iter().map(value).collect::<Result<_, _>>()?;
    Ok(CallbackMessage { url: url.clone(), headers, body })
}

#[cfg(test)]
#[path = "letter_tests.rs"]
mod tests;
