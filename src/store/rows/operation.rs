//! Operations: from a [`Draft`] into columns, and back.

use super::kept::KeptList;
use super::{NotOurs, OrNot, direction_of, provider_of, status_of};
use crate::domain::{
    AccountNumber, Amount, BrowserUrl, CallbackUrl, Currency, CustomerAccountId, Deposit, Direction, Kind, MerchantId,
    Operation, OrderId, Outcome, RedirectUrl, ShopCode, State, Status, TransactionId, UnixMillis, Withdrawal,
};
use crate::store::vault::{Column, Unsealable, Vault};
use crate::store::{Comparison, Digest, Draft, Fields, Kept, MemberFingerprints, StoreError, Stored, V1Told};

/// A draft with all that costs time done: the writer's thread only binds and steps.
#[derive(Debug)]
pub(in crate::store) struct NewRow {
    pub(in crate::store) draft: Draft,
    pub(in crate::store) order_key: Digest,
    pub(in crate::store) kept: Option<KeptList>,
    pub(in crate::store) account: Option<Vec<u8>>,
    pub(in crate::store) payer: Option<Vec<u8>>,
    pub(in crate::store) fields: Vec<u8>,
}

impl NewRow {
    pub(in crate::store) fn new(draft: Draft, vault: &Vault, kept: Option<KeptList>) -> Self {
        let operation = &draft.operation;
        let order_key = draft.order_key.unwrap_or_else(|| {
            vault.comparer().order_key(&operation.merchant, operation.direction(), &operation.order_id)
        });
        let account = match &operation.kind {
            Kind::Withdrawal(withdrawal) => Some(sealed_account(vault, operation.id, withdrawal)),
            Kind::Deposit(_) => None,
        };
        let payer = sealed_payer(vault, operation.id, payer_of(&operation.state));
        let fields = sealed_fields(vault, operation.id, &draft.fields);
        Self { draft, order_key, kept, account, payer, fields }
    }

    pub(in crate::store) const fn order_key(&self) -> Digest {
        self.order_key
    }

    pub(in crate::store) const fn draft(&self) -> &Draft {
        &self.draft
    }
}

/// An operation's columns, as read: still sealed, not yet understood.
#[derive(Debug)]
pub(in crate::store) struct StoredRow {
    pub(in crate::store) id: i64,
    pub(in crate::store) direction: i64,
    pub(in crate::store) status: i64,
    pub(in crate::store) created_at: i64,
    pub(in crate::store) finished_at: Option<i64>,
    pub(in crate::store) amount: i64,
    pub(in crate::store) customer_account_id: Option<i64>,
    pub(in crate::store) kept: Option<i64>,
    pub(in crate::store) digest: [u8; 16],
    pub(in crate::store) currency: Box<str>,
    pub(in crate::store) merchant: Box<str>,
    pub(in crate::store) order_id: Box<str>,
    pub(in crate::store) api_key: Box<str>,
    pub(in crate::store) shop: Box<str>,
    pub(in crate::store) method: Option<Box<str>>,
    pub(in crate::store) payment_method: Option<Box<str>>,
    pub(in crate::store) callback_url: Box<str>,
    pub(in crate::store) v1_callback_url: Option<Box<str>>,
    pub(in crate::store) success_url: Option<Box<str>>,
    pub(in crate::store) pending_url: Option<Box<str>>,
    pub(in crate::store) fail_url: Option<Box<str>>,
    pub(in crate::store) redirect_url: Option<String>,
    pub(in crate::store) account: Option<Vec<u8>>,
    pub(in crate::store) payer: Option<Vec<u8>>,
    pub(in crate::store) provider: i64,
    /// 1 when it was translated from v1, and 2 more when the relay tells its merchant of the result.
    pub(in crate::store) origin: i64,
}

impl StoredRow {
    /// Understands and unseals the columns. `kept` is the list that [`StoredRow::kept`] names.
    ///
    /// # Errors
    /// A column holds what was never written there.
    pub(in crate::store) fn decode(self, vault: &Vault, kept: Kept) -> Result<Stored, StoreError> {
        let id = self.id;
        self.understand(vault, kept).map_err(|not_ours| not_ours.of_operation(id))
    }

    fn understand(self, vault: &Vault, kept: Kept) -> Result<Stored, NotOurs> {
        let id = TransactionId::from_stored(self.id).ok_or(NotOurs("transaction_id"))?;
        let operation = Operation {
            id,
            merchant: MerchantId::new(&self.merchant).or_not("merchant")?,
            order_id: OrderId::new(&self.order_id).or_not("order_id")?,
            amount: u64::try_from(self.amount)
                .map_err(|_| NotOurs("amount"))
                .and_then(|hundredths| Amount::from_hundredths(hundredths).or_not("amount"))?,
            currency: Currency::new(&self.currency).or_not("currency")?,
            method: self.method.as_deref().map(ShopCode::new).transpose().or_not("method")?,
            shop: ShopCode::new(&self.shop).or_not("shop")?,
            payment_method: self.payment_method.clone(),
            customer_account_id: self.customer_account_id.map(CustomerAccountId),
            callback_url: CallbackUrl::new_allowing_http(&self.callback_url).or_not("callback_url")?,
            kind: self.kind(vault, id)?,
            provider: provider_of(self.provider).ok_or(NotOurs("provider"))?,
            state: self.state(vault, id)?,
            created_at: UnixMillis(self.created_at),
        };
        let v1 = self.v1()?;
        let comparison = Comparison { digest: Digest(self.digest), kept };
        Ok(Stored { operation, api_key: self.api_key, comparison, v1 })
    }

    fn v1(&self) -> Result<Option<V1Told>, NotOurs> {
        let url = self.v1_callback_url.as_deref().map(CallbackUrl::new_allowing_http).transpose();
        match (self.origin, url.or_not("v1_callback_url")?) {
            (OF_V2, None) => Ok(None),
            (OF_V1, None) => Ok(Some(V1Told::Directly)),
            (OF_V1_RELAYED, url) => Ok(Some(V1Told::Relayed(url))),
            _ => Err(NotOurs("origin")),
        }
    }

    fn kind(&self, vault: &Vault, id: TransactionId) -> Result<Kind, NotOurs> {
        match direction_of(self.direction).ok_or(NotOurs("direction"))? {
            Direction::Payin => self.deposit().map(Kind::Deposit),
            Direction::Payout => {
                let sealed = self.account.as_deref().ok_or(NotOurs("account"))?;
                opened_account(vault, id, sealed).map(Kind::Withdrawal)
            }
        }
    }

    fn deposit(&self) -> Result<Deposit, NotOurs> {
        let success_url = self.success_url.as_deref().ok_or(NotOurs("success_url"))?;
        let success_url = BrowserUrl::new(success_url).or_not("success_url")?;
        let or_the_same = |url: &Option<Box<str>>| match url {
            Some(url) => BrowserUrl::new(url).or_not("pending_url, fail_url"),
            None => Ok(success_url.clone()),
        };
        Ok(Deposit {
            pending_url: or_the_same(&self.pending_url)?,
            fail_url: or_the_same(&self.fail_url)?,
            redirect_url: self.redirect_url.clone().map(RedirectUrl::new).ok_or(NotOurs("redirect_url"))?,
            success_url,
        })
    }

    fn state(&self, vault: &Vault, id: TransactionId) -> Result<State, NotOurs> {
        let status = status_of(self.status).ok_or(NotOurs("status"))?;
        let outcome = match status {
            Status::Pending => return Ok(State::Pending),
            Status::Success => {
                let payer = self.payer.as_deref().map(|sealed| opened_payer(vault, id, sealed)).transpose()?;
                Outcome::Success { payer }
            }
            Status::Failed => Outcome::Failed,
        };
        let at = self.finished_at.map(UnixMillis).ok_or(NotOurs("finished_at"))?;
        Ok(State::Finished { outcome, at })
    }
}

/// What [`StoredRow::origin`] may be: made through v2; translated from v1, and the engine tells its merchant of the result;
/// translated from v1, and the relay does.
const OF_V2: i64 = 0;
const OF_V1: i64 = 1;
const OF_V1_RELAYED: i64 = 3;

/// Seals the payer of a deposit.
pub(in crate::store) fn sealed_payer(
    vault: &Vault,
    id: TransactionId,
    payer: Option<&AccountNumber>,
) -> Option<Vec<u8>> {
    payer.map(|payer| vault.seal(Column::Payer, id, payer.expose().as_bytes()))
}

/// The payer that a state names.
pub(in crate::store) const fn payer_of(state: &State) -> Option<&AccountNumber> {
    match state {
        State::Finished { outcome: Outcome::Success { payer }, .. } => payer.as_ref(),
        State::Pending | State::Finished { .. } => None,
    }
}

/// Unseals the payer of a deposit.
pub(in crate::store) fn opened_payer(
    vault: &Vault,
    id: TransactionId,
    sealed: &[u8],
) -> Result<AccountNumber, NotOurs> {
    let plain = opened_text(vault, Column::Payer, id, sealed).ok_or(NotOurs("payer"))?;
    AccountNumber::new(&plain).or_not("payer")
}

/// The account number, and after a U+0000 (which it cannot hold) the channel.
fn sealed_account(vault: &Vault, id: TransactionId, withdrawal: &Withdrawal) -> Vec<u8> {
    let account = withdrawal.account_number.expose();
    match &withdrawal.account_channel {
        None => vault.seal(Column::Account, id, account.as_bytes()),
        Some(channel) => vault.seal(Column::Account, id, format!("{account}\0{channel}").as_bytes()),
    }
}

/// Unseals the recipient of a withdrawal.
pub(in crate::store) fn opened_account(vault: &Vault, id: TransactionId, sealed: &[u8]) -> Result<Withdrawal, NotOurs> {
    let plain = opened_text(vault, Column::Account, id, sealed).ok_or(NotOurs("account"))?;
    let (account, channel) = match plain.split_once('\0') {
        Some((account, channel)) => (account, Some(channel.into())),
        None => (plain.as_str(), None),
    };
    let account_number = AccountNumber::new(account).or_not("account")?;
    Ok(Withdrawal { account_number, account_channel: channel })
}

/// The fingerprints of v1 members, the length of what was sent (four bytes), what was sent, the defaults.
fn sealed_fields(vault: &Vault, id: TransactionId, fields: &Fields) -> Vec<u8> {
    // A request body is far below 4 GiB.
    let sent_bytes = u32::try_from(fields.sent.len()).unwrap_or(u32::MAX);
    let mut plain = Vec::with_capacity(64 + fields.sent.len() + fields.defaults.len());
    fields.v1_members.write_to(&mut plain);
    plain.extend_from_slice(&sent_bytes.to_le_bytes());
    plain.extend_from_slice(fields.sent.as_bytes());
    plain.extend_from_slice(fields.defaults.as_bytes());
    vault.seal(Column::Fields, id, &plain)
}

/// Unseals what was read of the `fields`.
///
/// # Errors
/// They were never written there.
pub(in crate::store) fn opened_fields(vault: &Vault, id: TransactionId, sealed: &[u8]) -> Result<Fields, StoreError> {
    let corrupt = || StoreError::Corrupt(format!("operation {id}: the column fields is not ours"));
    let plain = vault.open(Column::Fields, id, sealed).map_err(|Unsealable| corrupt())?;
    let (v1_members, rest) = MemberFingerprints::read_from(&plain).ok_or_else(corrupt)?;
    let (sent_bytes, texts) = rest.split_first_chunk::<4>().ok_or_else(corrupt)?;
    let texts = std::str::from_utf8(texts).map_err(|_| corrupt())?;
    let sent_bytes = usize::try_from(u32::from_le_bytes(*sent_bytes)).map_err(|_| corrupt())?;
    let (sent, defaults) = texts.split_at_checked(sent_bytes).ok_or_else(corrupt)?;
    Ok(Fields { sent: sent.into(), defaults: defaults.into(), v1_members })
}

fn opened_text(vault: &Vault, column: Column, id: TransactionId, sealed: &[u8]) -> Option<String> {
    vault.open(column, id, sealed).ok().and_then(|plain| String::from_utf8(plain).ok())
}

/// `url`, unless it is the same as `success`.
pub(in crate::store) fn other_than<'a>(success: &BrowserUrl, url: &'a BrowserUrl) -> Option<&'a str> {
    (url != success).then_some(url.as_str())
}
