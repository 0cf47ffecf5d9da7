//! A create request as both API versions become one.

use super::{
    AccountNumber, Amount, BrowserUrl, CallbackUrl, Currency, CustomerAccountId, Direction, OrderId, RequestFields,
};

/// A create request that keeps every rule of the interface which needs no rule file.
#[derive(Debug, PartialEq)]
pub struct CreateRequest<'a> {
    /// The idempotency key.
    pub order_id: OrderId,
    /// How much.
    pub amount: Amount,
    /// Of what.
    pub currency: Currency,
    /// The shop code as sent.
    pub method: Option<Box<str>>,
    /// The merchant's number for its customer.
    pub customer_account_id: Option<CustomerAccountId>,
    /// The address that receives the result's callback.
    pub callback_url: CallbackUrl,
    /// What depends on the direction.
    pub kind: RequestKind,
    /// Shop-defined data.
    pub fields: RequestFields<'a>,
}

/// The part of a create request that depends on its direction.
#[derive(Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// A deposit.
    Deposit {
        /// Browser destination for SUCCESS.
        success_url: BrowserUrl,
        /// Browser destination for PENDING.
        pending_url: BrowserUrl,
        /// Browser destination for FAILED.
        fail_url: BrowserUrl,
    },
    /// A withdrawal.
    Withdrawal {
        /// The recipient.
        account_number: AccountNumber,
        /// 1 to 64 characters.
        account_channel: Option<Box<str>>,
    },
}

impl RequestKind {
    /// The direction of this kind.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        match self {
            Self::Deposit { .. } => Direction::Payin,
            Self::Withdrawal { .. } => Direction::Payout,
        }
    }
}
