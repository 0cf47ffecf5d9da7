//! v1 replies: the dialect's template where it has one, else the default shape.

use bytes::Bytes;
use serde::Serialize;

use crate::domain::{Direction, Made, RedirectUrl, Shown, UnixMillis};
use crate::rules::Dialect;
use crate::wire::v1 as wire;

#[derive(Serialize)]
struct CreatedValues<'a> {
    transaction_id: &'a str,
    external_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect_url: Option<&'a str>,
}

#[derive(Serialize)]
struct StatusValues<'a> {
    transaction_id: &'a str,
    external_id: &'a str,
    status: &'a str,
    amount: String,
    currency: &'a str,
    shop_code: &'a str,
    account_number: Option<&'a str>,
    #[serde(rename = "type")]
    direction: &'a str,
    created_at: String,
}

/// The body of a create's 200 reply.
pub fn created(dialect: &Dialect, direction: Direction, made: &Made) -> Bytes {
    let external_id = made.external_id.as_str();
    let redirect_url = made.redirect_url.as_ref().map(RedirectUrl::expose);
    let values = || CreatedValues { transaction_id: &made.transaction_id, external_id, redirect_url };
    rendered(dialect, direction.as_str(), values).unwrap_or_else(|| match redirect_url {
        Some(redirect_url) => wire::payin_reply(&made.transaction_id, external_id, redirect_url).into(),
        None => wire::payout_reply(&made.transaction_id, external_id).into(),
    })
}

/// The body of a status reply.
pub fn status(dialect: &Dialect, shown: &Shown) -> Bytes {
    let word = dialect.statuses.word(shown.status);
    let values = || StatusValues {
        transaction_id: &shown.transaction_id,
        external_id: shown.external_id.as_str(),
        status: word,
        amount: shown.amount.to_string(),
        currency: shown.currency.as_str(),
        shop_code: &shown.shop_code,
        account_number: shown.account_number.as_deref(),
        direction: shown.direction.as_str(),
        created_at: rfc3339(shown.created_at),
    };
    rendered(dialect, "status", values).unwrap_or_else(|| wire::status_reply(shown, word).into())
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
