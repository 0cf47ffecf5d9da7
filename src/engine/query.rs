//! Questions about operations.

use super::{Created, Engine};
use crate::domain::{Direction, MerchantId, Operation, OrderId, TransactionId};
use crate::failure::Failure;
use crate::store::{Digest, Standing, Stored};

impl Engine {
    /// An operation of this merchant.
    ///
    /// # Errors
    /// [`Failure::NotFound`] for ids that are no operation of this merchant's, whatever the reason.
    pub async fn operation(&self, merchant: &MerchantId, id: TransactionId) -> Result<Operation, Failure> {
        let stored = self.store.by_id(id).await?;
        stored
            .map(|stored| stored.operation)
            .filter(|operation| operation.merchant == *merchant)
            .ok_or(Failure::NotFound)
    }

    /// The operation that a v1 request of this merchant made, by its `external_id`.
    ///
    /// # Errors
    /// [`Failure::NotFound`] when there is none, or none of v1 origin.
    pub async fn v1_operation(
        &self,
        merchant: &MerchantId,
        direction: Direction,
        external_id: &OrderId,
    ) -> Result<Stored, Failure> {
        match self.store.by_order(merchant, direction, external_id).await? {
            Standing::Operation(stored) if stored.v1.is_some() => Ok(*stored),
            Standing::Operation(_) | Standing::Reserved | Standing::Free => Err(Failure::NotFound),
        }
    }

    /// What stands under the `external_id` of a v1 create whose body hashes to `digest`.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn v1_repeat(
        &self,
        merchant: &MerchantId,
        direction: Direction,
        external_id: &OrderId,
        digest: Digest,
    ) -> Result<V1Repeat, Failure> {
        match self.store.by_order(merchant, direction, external_id).await? {
            Standing::Free => Ok(V1Repeat::New),
            Standing::Reserved => Ok(V1Repeat::Reserved),
            Standing::Operation(stored) => match &stored.v1 {
                Some(v1) if v1.digest == digest => Ok(V1Repeat::Same(Created::of(&stored.operation))),
                _ => Ok(V1Repeat::Other),
            },
        }
    }
}

/// What stands under the `external_id` of a v1 create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum V1Repeat {
    /// Nothing.
    New,
    /// What the same body made.
    Same(Created),
    /// What another body made.
    Other,
    /// An operation of the old v1 service.
    Reserved,
}
