//! Questions about operations.

use super::{Created, Engine};
use crate::domain::{
    AccountNumber, Amount, Balance, BrowserUrl, CallbackUrl, CreateReply, Currency, CustomerAccountId, Direction,
    Fingerprint, HistoryQuery, Kind, MemberFingerprints, MerchantId, Operation, OperationView, OrderId, Page,
    StatusRecord, TransactionId,
};
use crate::failure::ApiError;
use crate::rules::Merchant;
use crate::store::{OrderLookup, SchemaFields, StoreError, Stored};
use crate::wire::v1::Held;

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

    /// What stands under the `external_id` of a v1 create whose body hashes to `fingerprint`.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn v1_repeat(
        &self,
        merchant: &MerchantId,
        direction: Direction,
        external_id: &OrderId,
        fingerprint: Fingerprint,
    ) -> Result<V1Repeat, ApiError> {
        match self.store.by_order(merchant, direction, external_id).await? {
            OrderLookup::Free => Ok(V1Repeat::New),
            OrderLookup::Reserved => Ok(V1Repeat::Reserved),
            OrderLookup::Operation(stored) => match &stored.v1 {
                Some(_) if stored.comparison.fingerprint == fingerprint => {
                    Ok(V1Repeat::Same(Created::of(&stored.operation).into()))
                }
                _ => Ok(V1Repeat::Other(Box::new(self.earlier(*stored).await?))),
            },
        }
    }

    /// What a request that names a stored operation is told apart by.
    pub(super) async fn earlier(&self, stored: Stored) -> Result<ConflictDetail, StoreError> {
        let Stored { operation, comparison, v1: Some(reported), .. } = stored else { return Ok(ConflictDetail::OfV2) };
        let fields = self.store.fields(operation.id).await?.unwrap_or_default();
        let (return_url, card_number) = match operation.kind {
            Kind::Deposit(deposit) => (Some(deposit.success_url), None),
            Kind::Withdrawal(withdrawal) => (None, Some(withdrawal.account_number)),
        };
        Ok(ConflictDetail::OfV1(EarlierRequest {
            amount: operation.amount,
            currency: operation.currency,
            shop_code: operation.method.map(|shop| shop.as_str().into()),
            callback_url: reported.relayed_to().cloned(),
            user_id: operation.customer_account_id,
            card_number,
            return_url,
            fields: fields.sent,
            kept: comparison.kept,
            members: fields.v1_members,
        }))
    }
}

/// What stands under an order that is named with other data, or through the other API version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConflictDetail {
    /// An operation that was made through v2.
    OfV2,
    /// An operation that was made from a v1 request.
    OfV1(EarlierRequest),
}

/// What is known of an earlier v1 request by what it became.
#[derive(Clone, PartialEq, Eq)]
pub struct EarlierRequest {
    /// The amount.
    pub amount: Amount,
    /// The currency.
    pub currency: Currency,
    /// `method`.
    pub shop_code: Option<Box<str>>,
    /// The address of its merchant that the relay calls.
    pub callback_url: Option<CallbackUrl>,
    /// `customer_account_id`.
    pub user_id: Option<CustomerAccountId>,
    /// `account_number`.
    pub card_number: Option<AccountNumber>,
    /// A deposit's browser destination.
    pub return_url: Option<BrowserUrl>,
    /// The JSON text of `fields`.
    pub fields: Box<str>,
    /// Which members of `fields` the schema of then kept.
    pub kept: SchemaFields,
    /// What else the v1 body said.
    pub members: MemberFingerprints,
}

impl EarlierRequest {
    /// Returns it as v1 bodies are compared with it.
    #[must_use]
    pub fn held(&self) -> Held<'_> {
        Held {
            amount: self.amount,
            currency: self.currency.as_str(),
            shop_code: self.shop_code.as_deref(),
            callback_url: self.callback_url.as_ref(),
            user_id: self.user_id,
            card_number: self.card_number.as_ref().map(AccountNumber::expose),
            return_url: self.return_url.as_ref(),
            fields: &self.fields,
            kept: &self.kept,
            members: &self.members,
        }
    }
}

/// Shows nothing: it holds customer data.
impl std::fmt::Debug for EarlierRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EarlierRequest(..)")
    }
}

/// What stands under the `external_id` of a v1 create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum V1Repeat {
    /// Nothing.
    New,
    /// What the same body made.
    Same(CreateReply),
    /// What another body made, or a v2 request.
    Other(Box<ConflictDetail>),
    /// An operation of the old v1 service.
    Reserved,
}
