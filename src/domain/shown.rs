//! Operations as replies to merchants show them.

use bytes::Bytes;

use super::{Amount, Currency, Direction, Kind, Operation, OrderId, RedirectUrl, Status, TransactionId, UnixMillis};

/// The reply to a create, of either API version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateReply {
    /// The engine's id of the operation: digits.
    pub transaction_id: Box<str>,
    /// The merchant's id of it.
    pub order_id: OrderId,
    /// The customer entry link of a deposit.
    pub redirect_url: Option<RedirectUrl>,
}

impl From<&Operation> for CreateReply {
    fn from(operation: &Operation) -> Self {
        let redirect_url = match &operation.kind {
            Kind::Deposit(deposit) => Some(deposit.redirect_url.clone()),
            Kind::Withdrawal(_) => None,
        };
        Self {
            transaction_id: operation.id.digits().as_str().into(),
            order_id: operation.order_id.clone(),
            redirect_url,
        }
    }
}

/// The body of a reply, and the operation that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The body of a 200.
    pub body: Bytes,
    /// The engine's id of the operation, for the log; `None`: the reply is about none, or about many.
    pub transaction_id: Option<Box<str>>,
}

impl From<Bytes> for Answer {
    fn from(body: Bytes) -> Self {
        Self { body, transaction_id: None }
    }
}

/// The content of a v1 status or a row of a v1 history, whichever engine holds the operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationView {
    /// The engine's id of the operation: digits.
    pub transaction_id: Box<str>,
    /// The merchant's id of it.
    pub external_id: OrderId,
    /// Payin or payout.
    pub direction: Direction,
    /// The status.
    pub status: Status,
    /// The amount.
    pub amount: Amount,
    /// The currency.
    pub currency: Currency,
    /// The code of the selected shop, even if the request named none.
    pub shop_code: Box<str>,
    /// The account as in the status record: masked if it looks like a card number.
    pub account_number: Option<String>,
    /// When it was created.
    pub created_at: UnixMillis,
}

impl From<&Operation> for OperationView {
    fn from(operation: &Operation) -> Self {
        Self {
            transaction_id: operation.id.digits().as_str().into(),
            external_id: operation.order_id.clone(),
            direction: operation.direction(),
            status: operation.state.status(),
            amount: operation.amount,
            currency: operation.currency,
            shop_code: operation.shop.as_str().into(),
            account_number: operation.shown_account(),
            created_at: operation.created_at,
        }
    }
}

/// The content of the v2 status record (promises P020 to P033).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusRecord {
    /// The merchant's id of the operation.
    pub order_id: OrderId,
    /// The service's id of it.
    pub transaction_id: TransactionId,
    /// The status.
    pub status: Status,
    /// The amount.
    pub amount: Amount,
    /// The currency.
    pub currency: Currency,
    /// See [`Operation::shown_method`].
    pub method: Box<str>,
    /// See [`Operation::shown_account`].
    pub account_number: Option<String>,
}

impl From<&Operation> for StatusRecord {
    fn from(operation: &Operation) -> Self {
        Self {
            order_id: operation.order_id.clone(),
            transaction_id: operation.id,
            status: operation.state.status(),
            amount: operation.amount,
            currency: operation.currency,
            method: operation.shown_method().into(),
            account_number: operation.shown_account(),
        }
    }
}
