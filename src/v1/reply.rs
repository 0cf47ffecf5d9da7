//! v1 replies: the dialect's template where it has one, else the default shape.

use bytes::Bytes;
use serde::Serialize;

use crate::domain::{Direction, Operation, RedirectUrl, UnixMillis};
use crate::engine::Created;
use crate::rules::Dialect;
use crate::wire::v1 as wire;

#[derive(Serialize)]
struct CreatedValues<'a> {
    transaction_id: String,
    external_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect_url: Option<&'a str>,
}

#[derive(Serialize)]
struct StatusValues<'a> {
    transaction_id: String,
    external_id: &'a str,
    status: &'a str,
    amount: String,
    currency: &'a str,
    shop_code: &'a str,
    account_number: Option<String>,
    #[serde(rename = "type")]
    direction: &'a str,
    created_at: String,
}

/// The body of a create's 200 reply.
pub fn created(dialect: &Dialect, direction: Direction, created: &Created) -> Bytes {
    let external_id = created.order_id.as_str();
    let redirect_url = created.redirect_url.as_ref().map(RedirectUrl::expose);
    let values = || CreatedValues { transaction_id: created.id.to_string(), external_id, redirect_url };
    rendered(dialect, direction.as_str(), values).unwrap_or_else(|| match redirect_url {
        Some(redirect_url) => wire::payin_reply(created.id, external_id, redirect_url).into(),
        None => wire::payout_reply(created.id, external_id).into(),
    })
}

/// The body of a status reply.
pub fn status(dialect: &Dialect, operation: &Operation) -> Bytes {
    let word = dialect.statuses.word(operation.state.status());
    let values = || StatusValues {
        transaction_id: operation.id.to_string(),
        external_id: operation.order_id.as_str(),
        status: word,
        amount: operation.amount.to_string(),
        currency: operation.currency.as_str(),
        shop_code: operation.shop.as_str(),
        account_number: operation.shown_account(),
        direction: operation.direction().as_str(),
        created_at: rfc3339(operation.created_at),
    };
    rendered(dialect, "status", values).unwrap_or_else(|| wire::status_reply(operation, word).into())
}

/// A point in time as v1 writes it: RFC 3339 in UTC, to the second.
fn rfc3339(at: UnixMillis) -> String {
    jiff::Timestamp::from_second(at.seconds()).map_or_else(|_| String::new(), |at| at.to_string())
}

/// The reply by the dialect's template, if it has one. What a template cannot render is told in the default shape: the
/// operation exists, and its merchant has to learn its id.
fn rendered<T: Serialize>(dialect: &Dialect, name: &str, values: impl FnOnce() -> T) -> Option<Bytes> {
    if !dialect.replies.has(name) {
        return None;
    }
    match dialect.replies.render(name, &values()) {
        Some(Ok(body)) => Some(body.into()),
        Some(Err(cause)) => {
            tracing::error!(%cause, dialect = %dialect.name, "a reply has its default shape");
            None
        }
        None => None,
    }
}
