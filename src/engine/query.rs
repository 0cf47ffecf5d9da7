//! Queries: statuses, histories and balances.

use super::Engine;
use crate::domain::{
    Balance, Currency, Direction, HistoryQuery, MerchantId, Operation, OperationView, OrderId, Page, StatusRecord,
    TransactionId,
};
use crate::error::ApiError;
use crate::rules::Merchant;

impl Engine {
    /// Reads the status record of an operation that this merchant created through v2.
    ///
    /// # Errors
    /// [`ApiError::NotFound`] for every other id.
    pub async fn v2_status(&self, merchant: &MerchantId, id: TransactionId) -> Result<StatusRecord, ApiError> {
        self.deps.store.v2_status(merchant, id).await?.ok_or(ApiError::NotFound)
    }

    /// Reads the operation that a v1 request of this merchant created, by its `external_id`.
    ///
    /// # Errors
    /// [`ApiError::NotFound`] when there is none, or none of v1 origin.
    pub async fn v1_status(
        &self,
        merchant: &MerchantId,
        direction: Direction,
        external_id: &OrderId,
    ) -> Result<OperationView, ApiError> {
        self.deps.store.v1_status(merchant, direction, external_id).await?.ok_or(ApiError::NotFound)
    }

    /// Lists a page of the operations that v1 requests of a merchant created, newest first.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn v1_history(&self, query: HistoryQuery) -> Result<Page<Operation>, ApiError> {
        Ok(self.deps.store.history(query).await?)
    }

    /// Reads a merchant's balances, by currency; currencies without any entry are absent. Opening balances that no operation
    /// has posted are posted first.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn balances(&self, merchant: &Merchant) -> Result<Vec<(Currency, Balance)>, ApiError> {
        self.open_ledger(merchant).await?;
        Ok(self.deps.store.balances(&merchant.id).await?)
    }

    /// Posts the opening balances. A merchant without any is not noted as done: a later change of its rules may add some.
    async fn open_ledger(&self, merchant: &Merchant) -> Result<(), ApiError> {
        let opening = self.openings.offered(&merchant.id, &merchant.balance.opening);
        if let Some(opening) = opening.filter(|opening| !opening.is_empty()) {
            self.deps.store.open_ledger(&merchant.id, opening, self.deps.clock.now()).await?;
            self.openings.confirmed(&merchant.id);
        }
        Ok(())
    }
}
