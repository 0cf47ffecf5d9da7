//! The columns that status replies need. Nothing else of an operation is unsealed or decoded.

use super::details::opened_account;
use super::operation::opened_payer;
use super::{CorruptRow, OrCorrupt, direction_of, status_of};
use crate::domain::{
    Amount, Currency, Direction, InvalidValue, OperationView, OrderId, Status, StatusRecord, TransactionId, UnixMillis,
};
use crate::store::StoreError;
use crate::store::vault::Vault;

/// The columns that both API versions need, as read: still sealed and not decoded.
pub(in crate::store) struct StatusColumns {
    pub(in crate::store) status: i64,
    pub(in crate::store) amount: i64,
    pub(in crate::store) currency: Result<Currency, InvalidValue>,
    /// The sealed column with the account: the details of a payout, the payer of a payin.
    pub(in crate::store) account: Option<Vec<u8>>,
}

impl StatusColumns {
    fn amount(&self) -> Result<Amount, CorruptRow> {
        let hundredths = u64::try_from(self.amount).map_err(|_| CorruptRow("amount"))?;
        Amount::from_hundredths(hundredths).or_corrupt("amount")
    }

    fn status(&self) -> Result<Status, CorruptRow> {
        status_of(self.status).ok_or(CorruptRow("status"))
    }

    /// See [`crate::domain::Operation::shown_account`].
    fn account(&self, vault: &Vault, id: TransactionId, direction: Direction) -> Result<Option<String>, CorruptRow> {
        match (direction, self.account.as_deref()) {
            (Direction::Payout, sealed) => {
                Ok(Some(opened_account(vault, id, sealed.ok_or(CorruptRow("sealed"))?)?.masked()))
            }
            (Direction::Payin, Some(sealed)) if self.status()? == Status::Success => {
                Ok(Some(opened_payer(vault, id, sealed)?.masked()))
            }
            (Direction::Payin, _) => Ok(None),
        }
    }
}

/// The columns of a v1 status, as read.
pub(in crate::store) struct V1Status {
    pub(in crate::store) columns: StatusColumns,
    pub(in crate::store) id: i64,
    pub(in crate::store) created_at: i64,
    pub(in crate::store) shop: Box<str>,
}

impl V1Status {
    /// Decodes and unseals the columns.
    ///
    /// # Errors
    /// A column contains an invalid value.
    pub(in crate::store) fn decode(
        self,
        vault: &Vault,
        direction: Direction,
        order_id: &OrderId,
    ) -> Result<OperationView, StoreError> {
        let id = self.id;
        self.decode_columns(vault, direction, order_id).map_err(|corrupt| corrupt.of_operation(id))
    }

    fn decode_columns(
        self,
        vault: &Vault,
        direction: Direction,
        order_id: &OrderId,
    ) -> Result<OperationView, CorruptRow> {
        let id = TransactionId::from_stored(self.id).ok_or(CorruptRow("transaction_id"))?;
        Ok(OperationView {
            transaction_id: id.digits().as_str().into(),
            external_id: order_id.clone(),
            direction,
            status: self.columns.status()?,
            amount: self.columns.amount()?,
            account_number: self.columns.account(vault, id, direction)?,
            currency: self.columns.currency.or_corrupt("currency")?,
            shop_code: self.shop,
            created_at: UnixMillis(self.created_at),
        })
    }
}

/// The columns of a v2 status, as read.
pub(in crate::store) struct V2Status {
    pub(in crate::store) columns: StatusColumns,
    pub(in crate::store) direction: i64,
    pub(in crate::store) order_id: Result<OrderId, InvalidValue>,
    pub(in crate::store) method: Box<str>,
}

impl V2Status {
    /// Decodes and unseals the columns.
    ///
    /// # Errors
    /// A column contains an invalid value.
    pub(in crate::store) fn decode(self, vault: &Vault, id: TransactionId) -> Result<StatusRecord, StoreError> {
        self.decode_columns(vault, id).map_err(|corrupt| corrupt.of_operation(id.to_stored()))
    }

    fn decode_columns(self, vault: &Vault, id: TransactionId) -> Result<StatusRecord, CorruptRow> {
        let direction = direction_of(self.direction).ok_or(CorruptRow("direction"))?;
        Ok(StatusRecord {
            transaction_id: id,
            status: self.columns.status()?,
            amount: self.columns.amount()?,
            account_number: self.columns.account(vault, id, direction)?,
            currency: self.columns.currency.or_corrupt("currency")?,
            order_id: self.order_id.or_corrupt("order_id")?,
            method: self.method,
        })
    }
}
