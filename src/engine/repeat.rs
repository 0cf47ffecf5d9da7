//! Repeats (contract section 7, "repeat"): the one place that answers a create whose order exists.
//!
//! A create names its order. When the order exists, the operation behind it answers, independent of today's rules: the
//! same request gets its reply again, every other one is refused. It is called
//!
//! 1. for a v1 body that cannot be translated by today's rules, before it is refused ([`crate::v1`]),
//! 2. for a v2 request that today's rules refuse, before it is refused ([`Engine::create`]),
//! 3. for the operation that a commit found under the order ([`Engine::create`]).
//!
//! Where today's rules accept a request, nothing is read beforehand: the commit finds the order itself. To look for every
//! order first would cost a new one about 1.8 us on SQLite (`cargo bench --bench micro -- orders`) and a round trip on
//! PostgreSQL.

use super::{CreateError, Engine};
use crate::domain::{
    AccountNumber, Amount, BrowserUrl, CallbackUrl, CreateReply, CreateRequest, Currency, CustomerAccountId, Deposit,
    Direction, Fingerprint, FingerprintInput, FingerprintKey, Kind, MemberFingerprints, MerchantId, OrderId,
    RequestKind, SchemaFields, ShopCode, Withdrawal,
};
use crate::json::{self, Node, Object};
use crate::store::{OrderHome, OrderLookup, StoreError, Stored, V1Request};

/// What a create is compared by.
#[derive(Clone, Copy)]
pub(super) enum Compared<'r> {
    /// The keyed hash of a v1 body, not of its v2 translation: no rule can change it between two tries.
    V1Body(Fingerprint),
    /// A native v2 request.
    V2Request(&'r CreateRequest<'r>),
}

impl<'r> Compared<'r> {
    pub(super) fn of(request: &'r CreateRequest<'r>, v1: Option<&V1Request>) -> Self {
        v1.map_or(Self::V2Request(request), |v1| Self::V1Body(v1.fingerprint))
    }
}

impl Engine {
    /// Answers a v1 create from the operation that its order names; `None` when the order is new. `fingerprint` is the
    /// keyed hash of its body.
    ///
    /// # Errors
    /// The order is reserved, or was created by another body or through v2; or the store could not answer.
    pub async fn v1_repeat(
        &self,
        merchant: &MerchantId,
        direction: Direction,
        external_id: &OrderId,
        fingerprint: Fingerprint,
    ) -> Result<Option<CreateReply>, CreateError> {
        self.repeat(merchant, direction, external_id, Compared::V1Body(fingerprint)).await
    }

    /// Answers a create from the operation that its order names; `None` when the order is new.
    pub(super) async fn repeat(
        &self,
        merchant: &MerchantId,
        direction: Direction,
        order_id: &OrderId,
        sent: Compared<'_>,
    ) -> Result<Option<CreateReply>, CreateError> {
        match self.deps.store.by_order(merchant, direction, order_id).await? {
            OrderLookup::Free => Ok(None),
            OrderLookup::Reserved => Err(self.reserved(merchant, direction, order_id).await),
            OrderLookup::Operation(stored) => self.answer_from(*stored, sent).await.map(Some),
        }
    }

    /// Returns the refusal of a create whose order is at home elsewhere.
    pub(super) async fn reserved(
        &self,
        merchant: &MerchantId,
        direction: Direction,
        order_id: &OrderId,
    ) -> CreateError {
        match self.deps.store.order_home(merchant, direction, order_id).await {
            // A claim that was taken back a moment ago was the old service's.
            Ok(home) => CreateError::Reserved(home.unwrap_or(OrderHome::Legacy)),
            Err(error) => error.into(),
        }
    }

    /// Answers a create from the operation that has its order: the operation's reply to the same request, else a refusal.
    pub(super) async fn answer_from(&self, stored: Stored, sent: Compared<'_>) -> Result<CreateReply, CreateError> {
        let fingerprint = match (sent, &stored.v1) {
            (Compared::V1Body(fingerprint), Some(_)) => fingerprint,
            (Compared::V2Request(request), None) => {
                fingerprint(self.deps.store.fingerprint_key(), request, &stored.comparison.kept)
            }
            // Switching the API version is not a way to retry (promise P246), even with the same data.
            (Compared::V1Body(_), None) | (Compared::V2Request(_), Some(_)) => {
                return Err(CreateError::OtherVersion(Some(stored.operation.id.digits().as_str().into())));
            }
        };
        if fingerprint == stored.comparison.fingerprint {
            return Ok(CreateReply::from(&stored.operation));
        }
        match sent {
            Compared::V1Body(_) => Err(CreateError::OtherBody(Box::new(self.earlier_request(stored).await?))),
            Compared::V2Request(request) => {
                let fields = self.deps.store.fields(stored.operation.id).await?;
                let sent_fields = fields.as_ref().map_or("{}", |fields| &fields.sent);
                let paths = differences(request, &stored, sent_fields);
                Err(CreateError::OtherData { transaction_id: stored.operation.id.digits().as_str().into(), paths })
            }
        }
    }

    /// Returns the v1 request that created an operation, as far as the operation holds it.
    async fn earlier_request(&self, stored: Stored) -> Result<EarlierRequest, StoreError> {
        let Stored { operation, comparison, v1, .. } = stored;
        let fields = self.deps.store.fields(operation.id).await?.unwrap_or_default();
        let (return_url, card_number) = match operation.kind {
            Kind::Deposit(deposit) => (Some(deposit.success_url), None),
            Kind::Withdrawal(withdrawal) => (None, Some(withdrawal.account_number)),
        };
        Ok(EarlierRequest {
            transaction_id: operation.id.digits().as_str().into(),
            amount: operation.amount,
            currency: operation.currency,
            shop_code: operation.method.map(|shop| shop.as_str().into()),
            callback_url: v1.and_then(|sender| sender.relayed_to().cloned()),
            user_id: operation.customer_account_id,
            card_number,
            return_url,
            fields: fields.sent.into(),
            kept: comparison.kept,
            members: fields.v1_members,
        })
    }
}

/// The v1 request that created an operation, as far as the operation holds it. A later body is compared with it to name the
/// members that differ.
#[derive(Clone, PartialEq, Eq)]
pub struct EarlierRequest {
    /// The engine's id of the operation.
    pub transaction_id: Box<str>,
    /// The amount.
    pub amount: Amount,
    /// The currency.
    pub currency: Currency,
    /// `method`.
    pub shop_code: Option<Box<str>>,
    /// The merchant's address that the relay calls.
    pub callback_url: Option<CallbackUrl>,
    /// `customer_account_id`.
    pub user_id: Option<CustomerAccountId>,
    /// `account_number`.
    pub card_number: Option<AccountNumber>,
    /// A deposit's browser destination.
    pub return_url: Option<BrowserUrl>,
    /// The JSON text of `fields`.
    pub fields: Box<str>,
    /// The members of `fields` that the schema in force at creation kept.
    pub kept: SchemaFields,
    /// Hashes of the members that the operation does not hold as they were sent.
    pub members: MemberFingerprints,
}

/// Shows nothing: it holds customer data.
impl std::fmt::Debug for EarlierRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EarlierRequest(..)")
    }
}

/// Returns the keyed hash of a v2 request, reduced to the `fields` that `kept` keeps.
pub(super) fn fingerprint(
    fingerprint_key: &FingerprintKey,
    request: &CreateRequest<'_>,
    kept: &SchemaFields,
) -> Fingerprint {
    let mut parts = FingerprintInput::of("v2 create");
    parts.part(request.kind.direction().as_str().as_bytes());
    parts.part(&request.amount.hundredths().to_le_bytes());
    parts.part(request.currency.as_str().as_bytes());
    parts.optional(request.method.as_deref().map(str::as_bytes));
    parts.optional(request.customer_account_id.map(|id| id.0.to_le_bytes()).as_ref().map(|bytes| &bytes[..]));
    parts.part(request.callback_url.as_str().as_bytes());
    match &request.kind {
        RequestKind::Deposit { success_url, pending_url, fail_url } => {
            for url in [success_url, pending_url, fail_url] {
                parts.part(url.as_str().as_bytes());
            }
        }
        RequestKind::Withdrawal { account_number, account_channel } => {
            parts.part(account_number.expose().as_bytes());
            parts.optional(account_channel.as_deref().map(str::as_bytes));
        }
    }
    request.fields.hash(&mut parts, kept);
    fingerprint_key.fingerprint(&parts)
}

/// Returns the paths of the members in which a v2 request differs from an operation that was created through v2; never
/// their values. `sent_fields` is the JSON text of the stored `fields`.
fn differences(request: &CreateRequest<'_>, stored: &Stored, sent_fields: &str) -> Vec<String> {
    let operation = &stored.operation;
    let mut paths = Vec::new();
    let mut note = |same: bool, path: &str| {
        if !same {
            paths.push(path.to_owned());
        }
    };
    note(request.amount == operation.amount, "amount");
    note(request.currency == operation.currency, "currency");
    note(request.method.as_deref() == operation.method.as_ref().map(ShopCode::as_str), "method");
    note(request.customer_account_id == operation.customer_account_id, "customer_account_id");
    note(request.callback_url == operation.callback_url, "callback_url");
    match (&request.kind, &operation.kind) {
        (RequestKind::Deposit { success_url, pending_url, fail_url }, Kind::Deposit(deposit)) => {
            let Deposit { success_url: success, pending_url: pending, fail_url: fail, .. } = deposit;
            note(success_url == success, "success_url");
            note(pending_url == pending, "pending_url");
            note(fail_url == fail, "fail_url");
        }
        (RequestKind::Withdrawal { account_number, account_channel }, Kind::Withdrawal(withdrawal)) => {
            let Withdrawal { account_number: account, account_channel: channel } = withdrawal;
            note(account_number == account, "account_number");
            note(account_channel == channel, "account_channel");
        }
        // The two directions have separate order ids, so that a request is only compared with its own kind.
        _ => {}
    }
    paths.extend(request.fields.differences(&stored.comparison.kept, &stored_object(sent_fields)));
    paths
}

fn stored_object(text: &str) -> Object<'_> {
    match json::read(text.as_bytes()) {
        Ok(json::Value { node: Node::Object(object), .. }) => object,
        _ => Object::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::PINNED_FINGERPRINTS;
    use crate::wire::v2::read_create;

    // A store of a build with other values is refused.
    #[test]
    fn hashes_stay_what_they_are() {
        let common = r#""order_id":"o1","amount":10.50,"currency":"EUR","callback_url":"https://a.example/cb""#;
        let deposit = r#""success_url":"https://a.example/s","pending_url":"https://a.example/p","fail_url":
            "https://a.example/f","method":"card","customer_account_id":-7"#;
        let withdrawal = r#""account_number":"4111111111111111","account_channel":"x""#;
        let fields =
            r#""fields":{"b":[1.50,{"a":-0}],"merchant_user_ip":null,"a":"\u00e9","dropped":1,"n":1200,"t":true}"#;
        let fingerprint_key = FingerprintKey::new(&[3; 32]);
        let kept = SchemaFields::Names(["a", "b", "merchant_user_ip", "n", "t"].map(Box::from).into());
        let [of_deposit, of_withdrawal] = PINNED_FINGERPRINTS.v2;
        for (direction, own, kept, expected) in [
            (Direction::Payin, deposit, &kept, of_deposit),
            (Direction::Payout, withdrawal, &SchemaFields::Everything, of_withdrawal),
        ] {
            let body = format!("{{{common},{own},{fields}}}");
            let request = read_create(direction, body.as_bytes()).unwrap();
            assert_eq!(u128::from_be_bytes(fingerprint(&fingerprint_key, &request, kept).0), expected);
        }
    }
}
