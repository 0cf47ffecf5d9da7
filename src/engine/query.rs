//! Questions about operations.

use super::Engine;
use crate::domain::{
    Balance, Currency, Direction, HistoryQuery, MerchantId, Operation, OperationView, OrderId, Page, StatusRecord,
    TransactionId,
};
use crate::failure::ApiError;
use crate::rules::Merchant;

impl Engine {
    /// The status record of an operation of this merchant.
    ///
    /// # Errors
    /// [`ApiError::NotFound`] for ids that are no operation of this merchant's, whatever the reason.
    pub async fn v2_status(&self, merchant: &MerchantId, id: TransactionId) -> Result<StatusRecord, ApiError> {
        self.store.v2_status(merchant, id).await?.ok_or(ApiError::NotFound)
    }

    /// What v1 tells of the operation that a v1 request of this merchant made, by its `external_id`.
    ///
    /// # Errors
    /// [`ApiError::NotFound`] when there is none, or none of v1 origin.
    pub async fn v1_status(
        &self,
        merchant: &MerchantId,
        direction: Direction,
        external_id: &OrderId,
    ) -> Result<OperationView, ApiError> {
        self.store.v1_status(merchant, direction, external_id).await?.ok_or(ApiError::NotFound)
    }

    /// A page of the operations that v1 requests of a merchant made, newest first.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn v1_history(&self, query: HistoryQuery) -> Result<Page<Operation>, ApiError> {
        Ok(self.store.history(query).await?)
    }

    /// A merchant's balances, by currency; currencies in which nothing was ever booked are absent. To ask for them is to
    /// be seen: opening balances that no operation brought along are booked first.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn balances(&self, merchant: &Merchant) -> Result<Vec<(Currency, Balance)>, ApiError> {
        self.open_ledger(merchant).await?;
        Ok(self.store.balances(&merchant.id).await?)
    }

    /// Books what there is to open. A merchant without opening balances stays unknown: rules that open its ledger may
    /// still come.
    async fn open_ledger(&self, merchant: &Merchant) -> Result<(), ApiError> {
        let opening = self.openings.offered(&merchant.id, &merchant.balance.opening);
        if let Some(opening) = opening.filter(|opening| !opening.is_empty()) {
            self.store.open_ledger(&merchant.id, opening, self.clock.now()).await?;
            self.openings.confirmed(&merchant.id);
        }
        Ok(())
    }
}
