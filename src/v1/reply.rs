//! v1 replies to what reads operations, and the bodies of v1 callbacks: the dialect's template where it has one, else the
//! default shape.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;

use crate::domain::{Balance, Currency, Decimals, OperationView, Page};
use crate::rules::{Dialect, StatusWords};
use crate::wire::time::rfc3339;
use crate::wire::v1 as wire;
use crate::wire::v1_lists::{PagePlace, balance_reply, transactions_reply};

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
    dialect
        .rendered("status", values)
        .unwrap_or_else(|| wire::status_reply(shown, dialect.statuses.word(shown.status)).into())
}

/// Writes the body of a v1 callback (contract section 10): the result, with the dialect's word of the status. A PENDING
/// operation has none.
#[must_use]
pub fn callback(dialect: &Dialect, shown: &OperationView) -> Bytes {
    let values = || StatusValues::of(shown, &dialect.statuses);
    dialect
        .rendered("callback", values)
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
    dialect.rendered("balance", values).unwrap_or_else(|| default().into())
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
    // Boxed: a page may wait for its caller, without the room that it was written into.
    let default = || transactions_reply(page, place, |shown| statuses.word(shown.status)).into_boxed_str();
    dialect.rendered("transactions", values).unwrap_or_else(|| default().into_boxed_bytes().into())
}

#[cfg(test)]
mod tests;
