//! Questions about operations.

use super::{Created, Engine};
use crate::domain::{
    Balance, BrowserUrl, Currency, Direction, HistoryQuery, Kind, Made, MerchantId, Operation, OrderId, Page, Record,
    Shown, TransactionId,
};
use crate::failure::Failure;
use crate::rules::Merchant;
use crate::store::{Digest, Fields, Kept, Standing, StoreError, Stored, V1Part};

impl Engine {
    /// The status record of an operation of this merchant.
    ///
    /// # Errors
    /// [`Failure::NotFound`] for ids that are no operation of this merchant's, whatever the reason.
    pub async fn v2_status(&self, merchant: &MerchantId, id: TransactionId) -> Result<Record, Failure> {
        self.store.v2_status(merchant, id).await?.ok_or(Failure::NotFound)
    }

    /// What v1 tells of the operation that a v1 request of this merchant made, by its `external_id`.
    ///
    /// # Errors
    /// [`Failure::NotFound`] when there is none, or none of v1 origin.
    pub async fn v1_status(
        &self,
        merchant: &MerchantId,
        direction: Direction,
        external_id: &OrderId,
    ) -> Result<Shown, Failure> {
        self.store.v1_status(merchant, direction, external_id).await?.ok_or(Failure::NotFound)
    }

    /// A page of the operations that v1 requests of a merchant made, newest first.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn v1_history(&self, query: HistoryQuery) -> Result<Page<Operation>, Failure> {
        Ok(self.store.history(query).await?)
    }

    /// A merchant's balances, by currency; currencies in which nothing was ever booked are absent. To ask for them is to
    /// be seen: opening balances that no operation brought along are booked first.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn balances(&self, merchant: &Merchant) -> Result<Vec<(Currency, Balance)>, Failure> {
        self.open_ledger(merchant).await?;
        Ok(self.store.balances(&merchant.id).await?)
    }

    /// Books what there is to open. A merchant without opening balances stays unknown: rules that open its ledger may
    /// still come.
    async fn open_ledger(&self, merchant: &Merchant) -> Result<(), Failure> {
        let opening = self.openings.offered(&merchant.id, &merchant.balance.opening);
        if let Some(opening) = opening.filter(|opening| !opening.is_empty()) {
            self.store.open_ledger(&merchant.id, opening, self.clock.now()).await?;
            self.openings.stood(&merchant.id);
        }
        Ok(())
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
                Some(v1) if v1.digest == digest => Ok(V1Repeat::Same(Created::of(&stored.operation).into())),
                _ => Ok(V1Repeat::Other(Box::new(self.earlier(&stored).await?))),
            },
        }
    }

    /// What a v1 body, or a v2 request, that names a stored operation is told apart by.
    pub(super) async fn earlier(&self, stored: &Stored) -> Result<Earlier, StoreError> {
        let v1 = stored.v1.clone();
        let fields = if v1.is_some() { self.store.fields(stored.operation.id).await? } else { None };
        let return_url = match &stored.operation.kind {
            Kind::Deposit(deposit) => Some(deposit.success_url.clone()),
            Kind::Withdrawal(_) => None,
        };
        let kept = stored.comparison.kept.clone();
        Ok(Earlier { v1, payment_data: fields.map(|fields| PaymentData { fields, kept, return_url }) })
    }
}

/// What stands under an order that is named with other data, or through the other API version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    /// What is kept of the v1 request that it was made from; `None`: it was made through v2.
    pub v1: Option<V1Part>,
    /// What became of that request's `paymentData`, where it is known.
    pub payment_data: Option<PaymentData>,
}

/// What became of the `paymentData` of a v1 request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentData {
    /// The `fields` as stored.
    pub fields: Fields,
    /// Which members the shop's schema of then kept.
    pub kept: Kept,
    /// A deposit's browser destination.
    pub return_url: Option<BrowserUrl>,
}

/// What stands under the `external_id` of a v1 create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum V1Repeat {
    /// Nothing.
    New,
    /// What the same body made.
    Same(Made),
    /// What another body made, or a v2 request.
    Other(Box<Earlier>),
    /// An operation of the old v1 service.
    Reserved,
}
