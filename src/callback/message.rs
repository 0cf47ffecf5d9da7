//! Composes and signs callbacks, anew for each attempt, by the rules in force then.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Uri};

use crate::auth::signatures::{V1Target, sign_v1_headers, sign_v2, sign_webhook};
use crate::domain::{CallbackSender, CallbackUrl, MerchantId, OperationView, OrderId, Status, UnixMillis};
use crate::json::write_string;
use crate::remote;
use crate::rules::{Merchant, RuleSet};
use crate::store::{JournalEntry, ResultChange, Stored};
use crate::v1::reply;

const SIGNATURE: HeaderName = HeaderName::from_static("x-signature");
const CALLBACK_ID: HeaderName = HeaderName::from_static("x-callback-id");
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// A callback, ready to be sent. It has no `Debug`, which would show its signatures.
pub(super) struct CallbackMessage {
    /// The address of the receiver.
    pub url: CallbackUrl,
    /// Headers in addition to those of every JSON request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The names of the dialect's headers, as it spells them.
    pub spelled: Vec<Box<str>>,
    /// The body, exactly as signed.
    pub body: Bytes,
}

/// Why a callback cannot be sent by the rules in force; after a reload it may be possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsendable {
    /// The rules do not have the merchant.
    #[error("not sent: the rules have no such merchant")]
    NoMerchant,
    /// No key of the merchant has a secret of the required kind.
    #[error("not sent: no key of the merchant has a {0}")]
    NoKey(&'static str),
    /// The merchant's rules no longer allow plain http.
    #[error("not sent: the merchant's allow_http_callbacks is not set, and the address is plain http")]
    PlainHttp,
    /// The header's value contains characters that headers cannot hold.
    #[error("not sent: the header {0} cannot be written")]
    Header(HeaderName),
    /// The operation has no result yet, or its callback no address.
    #[error("not sent: the operation has no result")]
    NoResult,
}

impl Unsendable {
    /// Returns why alone, for a callback that may have been sent before.
    pub(super) fn reason(&self) -> String {
        let text = self.to_string();
        text.strip_prefix("not sent: ").unwrap_or(&text).to_owned()
    }
}

/// What all callback formats need of a callback.
pub(super) struct MessageContext<'a> {
    /// The callback's id, the same at every attempt.
    pub id: &'a str,
    /// The merchant, whose rules determine the signature.
    pub merchant: &'a Merchant,
    /// The API key that created the operation.
    pub api_key: &'a str,
    /// The address of the receiver.
    pub url: &'a CallbackUrl,
    /// The time of this attempt.
    pub now: UnixMillis,
}

/// Composes a claimed callback.
///
/// # Errors
/// [`Unsendable`] states why it cannot be sent now.
pub(super) fn compose(
    rules: &RuleSet,
    id: &str,
    change: &ResultChange,
    now: UnixMillis,
) -> Result<CallbackMessage, Unsendable> {
    let find_merchant = |merchant: &MerchantId| rules.merchants.get(merchant).ok_or(Unsendable::NoMerchant);
    match change {
        ResultChange::Operation(stored) => {
            let Stored { operation, api_key, v1, .. } = &**stored;
            let merchant = find_merchant(&operation.merchant)?;
            let context = |url| MessageContext { id, merchant, api_key, url, now };
            match v1 {
                Some(CallbackSender::Relayed(Some(url))) => compose_v1(&context(url), &OperationView::from(operation)),
                Some(CallbackSender::Relayed(None)) => Err(Unsendable::NoResult),
                Some(CallbackSender::Directly) | None => {
                    compose_v2(&context(&operation.callback_url), &operation.order_id)
                }
            }
        }
        ResultChange::Entry(entry) => {
            let create = &entry.create;
            let merchant = find_merchant(&create.merchant)?;
            let url = create.callback_url.as_ref().ok_or(Unsendable::NoResult)?;
            let view = remote::shown(JournalEntry::clone(entry)).map_err(|_| Unsendable::NoResult)?;
            compose_v1(&MessageContext { id, merchant, api_key: &create.api_key, url, now }, &view)
        }
    }
}

/// Composes a callback in the format of v2 (contract section 10).
///
/// # Errors
/// [`Unsendable`] states why it cannot be sent.
pub(super) fn compose_v2(context: &MessageContext<'_>, order_id: &OrderId) -> Result<CallbackMessage, Unsendable> {
    let MessageContext { id, merchant, api_key, url, now } = context;
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
    build(url, headers, &[], body.into())
}

/// Composes a callback in the merchant's v1 dialect (contract section 10, "Relay").
///
/// # Errors
/// [`Unsendable`] states why it cannot be sent.
pub(super) fn compose_v1(context: &MessageContext<'_>, view: &OperationView) -> Result<CallbackMessage, Unsendable> {
    let MessageContext { id, merchant, api_key, url, now } = context;
    if view.status == Status::Pending {
        return Err(Unsendable::NoResult);
    }
    if url.is_plain_http() && !merchant.v1.allow_http_callbacks {
        return Err(Unsendable::PlainHttp);
    }
    let signing = merchant.signing_key(api_key, |key| key.v1_secrets.as_ref());
    let (key, secrets) = signing.ok_or(Unsendable::NoKey("v1_secret"))?;
    let dialect = &merchant.v1.dialect;
    let body = reply::callback(dialect, view);
    // `Uri` drops a fragment, as the HTTP client does, so that the sent target is signed.
    let uri: Uri = url.as_str().parse().unwrap_or_default();
    let target = V1Target { method: Method::POST.as_str(), path: uri.path(), query: uri.query() };
    let signed = sign_v1_headers(&dialect.signature, &key.key, secrets.signing(), *now, &target, &body);
    let id_header = (!signed.iter().any(|(name, _)| *name == CALLBACK_ID)).then(|| (CALLBACK_ID, (*id).to_owned()));
    build(url, signed.into_iter().chain(id_header), &dialect.header_names, body)
}

fn build(
    url: &CallbackUrl,
    headers: impl IntoIterator<Item = (HeaderName, String)>,
    spelled: &[Box<str>],
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
    Ok(CallbackMessage { url: url.clone(), headers, spelled: spelled.to_vec(), body })
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
