//! v1 replies, and the bodies of v1 callbacks: the dialect's template where it has one, else the default shape.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;

use crate::domain::{Balance, CreateReply, Currency, Decimals, Direction, OperationView, Page, RedirectUrl};
use crate::rules::{Dialect, StatusWords};
use crate::wire::time::rfc3339;
use crate::wire::v1 as wire;
use crate::wire::v1_lists::{PagePlace, balance_reply, transactions_reply};

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

/// Writes the body of a create's 200 reply.
#[must_use]
pub fn created(dialect: &Dialect, direction: Direction, made: &CreateReply) -> Bytes {
    let external_id = made.order_id.as_str();
    let redirect_url = made.redirect_url.as_ref().map(RedirectUrl::expose);
    let values = || CreatedValues { transaction_id: &made.transaction_id, external_id, redirect_url };
    rendered(dialect, direction.as_str(), values).unwrap_or_else(|| match redirect_url {
        Some(redirect_url) => wire::payin_reply(&made.transaction_id, external_id, redirect_url).into(),
        None => wire::payout_reply(&made.transaction_id, external_id).into(),
    })
}

impl<'a> StatusValues<'a> {
    fn of(shown: &'a OperationView, statuses: &'a StatusWords) -> Self {
        Self {
            transaction_id: &shown.transaction_id,
            external_id: shown.external_id.as_str(),
            status: statuses.word(shown.status),
            amount: shown.amount.to_string(),
            currency: shown.currency.as_str(),
            shop_code: &shown.shop_code,
            account_number: shown.account_number.as_deref(),
            direction: shown.direction.as_str(),
            created_at: rfc3339(shown.created_at),
        }
    }
}

/// Writes the body of a status reply.
pub(super) fn status(dialect: &Dialect, shown: &OperationView) -> Bytes {
    let values = || StatusValues::of(shown, &dialect.statuses);
    rendered(dialect, "status", values)
        .unwrap_or_else(|| wire::status_reply(shown, dialect.statuses.word(shown.status)).into())
}

/// Writes the body of a v1 callback (contract section 10): the result, with the dialect's word of the status. A PENDING
/// operation has none.
#[must_use]
pub fn callback(dialect: &Dialect, shown: &OperationView) -> Bytes {
    let values = || StatusValues::of(shown, &dialect.statuses);
    rendered(dialect, "callback", values)
        .unwrap_or_else(|| wire::callback_body(shown, dialect.statuses.word(shown.status)).into())
}

#[derive(Serialize)]
struct BalancesValues<'a> {
    balances: Vec<BalanceValues<'a>>,
}

#[derive(Serialize)]
struct BalanceValues<'a> {
    currency: &'a str,
    available: String,
    held: String,
}

/// Writes the body of a balance reply.
pub(super) fn balance(dialect: &Dialect, balances: &BTreeMap<Currency, Balance>) -> Bytes {
    let values = || BalancesValues {
        balances: balances
            .iter()
            .map(|(currency, balance)| BalanceValues {
                currency: currency.as_str(),
                available: Decimals(balance.available).to_string(),
                held: Decimals(balance.held).to_string(),
            })
            .collect(),
    };
    let default = || balance_reply(balances.iter().map(|(currency, balance)| (*currency, *balance)));
    rendered(dialect, "balance", values).unwrap_or_else(|| default().into())
}

#[derive(Serialize)]
struct TransactionsValues<'a> {
    transactions: Vec<StatusValues<'a>>,
    page: u64,
    per_page: u16,
    has_more: bool,
}

/// Writes the body of a history reply.
pub(super) fn transactions(dialect: &Dialect, page: &Page<OperationView>, place: PagePlace) -> Bytes {
    let statuses = &dialect.statuses;
    let values = || TransactionsValues {
        transactions: page.items.iter().map(|shown| StatusValues::of(shown, statuses)).collect(),
        page: place.page,
        per_page: place.per_page,
        has_more: page.has_more,
    };
    let default = || transactions_reply(page, place, |shown| statuses.word(shown.status));
    rendered(dialect, "transactions", values).unwrap_or_else(|| default().into())
}

/// Renders the dialect's template of a reply, if it has one. When the template fails, the default shape is used: the operation
/// exists, and the merchant has to learn of it.
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

#[cfg(test)]
mod tests;
