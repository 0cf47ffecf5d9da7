//! Conversion of operations between [`NewOperation`] or [`Stored`] and columns, one of which seals the details; for
//! status replies, of only the columns that they need.

use std::sync::Arc;

use super::context::{ContextId, Contexts, OF_V1, OF_V1_RELAYED, OF_V2, decode_kept, direction_of, provider_of};
use super::{CorruptRow, OrCorrupt};
use crate::domain::{
    AccountNumber, Amount, BrowserUrl, CallbackSender, CallbackUrl, Currency, CustomerAccountId, Deposit, Direction,
    Fields, Fingerprint, InvalidValue, Kind, MemberFingerprints, MerchantId, Operation, OperationView, OrderId,
    Outcome, RedirectUrl, ShopCode, State, Status, StatusRecord, TransactionId, UnixMillis, Withdrawal,
};
use crate::store::vault::{Column, DecryptError, Vault};
use crate::store::{NewOperation, RequestFingerprint, StoreError, Stored};

/// A new operation, prepared so that the writer's thread has only to bind and execute.
#[derive(Debug)]
pub(in crate::store) struct NewRow {
    draft: NewOperation,
    order_key: Fingerprint,
    pub(in crate::store) context: ContextId,
    pub(in crate::store) sealed: Vec<u8>,
    pub(in crate::store) payer: Option<Vec<u8>>,
}

impl NewRow {
    pub(in crate::store) fn new(draft: NewOperation, vault: &Vault, contexts: &Contexts) -> Self {
        let operation = &draft.operation;
        let order_key = draft.order_key.unwrap_or_else(|| {
            vault.fingerprint_key().order_key(&operation.merchant, operation.direction(), &operation.order_id)
        });
        let context = contexts.id(&draft);
        let sealed = sealed_details(vault, &draft);
        let payer = sealed_payer(vault, operation.id, payer_of(&operation.state));
        Self { draft, order_key, context, sealed, payer }
    }

    pub(in crate::store) const fn order_key(&self) -> Fingerprint {
        self.order_key
    }

    pub(in crate::store) const fn draft(&self) -> &NewOperation {
        &self.draft
    }

    /// Returns the number of the merchant whose v1 list contains the operation.
    pub(in crate::store) fn listed(&self) -> Option<i64> {
        self.draft.v1.as_ref().map(|_| self.context.merchant())
    }

    /// Returns the merchant's address for the result; `None`: the merchant is not called back.
    pub(in crate::store) fn callback_url(&self) -> Option<&str> {
        CallbackSender::called_address(self.draft.v1.as_ref(), &self.draft.operation.callback_url)
            .map(CallbackUrl::as_str)
    }
}

/// An operation's columns as read: still sealed and not decoded.
#[derive(Debug)]
pub(in crate::store) struct StoredRow {
    pub(in crate::store) id: i64,
    pub(in crate::store) status: i64,
    pub(in crate::store) created_at: i64,
    pub(in crate::store) finished_at: Option<i64>,
    pub(in crate::store) amount: i64,
    pub(in crate::store) customer_account_id: Option<i64>,
    pub(in crate::store) fingerprint: [u8; 16],
    pub(in crate::store) order_id: Box<str>,
    pub(in crate::store) callback_url: Option<Box<str>>,
    pub(in crate::store) sealed: Vec<u8>,
    pub(in crate::store) payer: Option<Vec<u8>>,
    pub(in crate::store) context: StoredContext,
}

/// The columns of an operation's context, as read.
#[derive(Debug)]
pub(in crate::store) struct StoredContext {
    pub(in crate::store) direction: i64,
    pub(in crate::store) provider: i64,
    pub(in crate::store) origin: i64,
    pub(in crate::store) merchant: Box<str>,
    pub(in crate::store) api_key: Box<str>,
    pub(in crate::store) shop: Box<str>,
    pub(in crate::store) currency: Box<str>,
    pub(in crate::store) method: Option<Box<str>>,
    pub(in crate::store) payment_method: Option<Box<str>>,
    /// A JSON array of names; `None`: there was no schema.
    pub(in crate::store) kept: Option<Box<str>>,
}

impl StoredRow {
    /// Decodes and unseals the columns.
    ///
    /// # Errors
    /// A column contains an invalid value.
    pub(in crate::store) fn decode(self, vault: &Vault) -> Result<Stored, StoreError> {
        let id = self.id;
        self.decode_columns(vault).map_err(|corrupt| corrupt.of_operation(id))
    }

    fn decode_columns(self, vault: &Vault) -> Result<Stored, CorruptRow> {
        let id = TransactionId::from_stored(self.id).ok_or(CorruptRow("transaction_id"))?;
        let state = self.state(vault, id)?;
        let context = self.context;
        let direction = direction_of(context.direction).ok_or(CorruptRow("direction"))?;
        let (relay, kind) = Details::open(vault, id, &self.sealed)?.decode(direction)?;
        let url = self.callback_url.as_deref().map(CallbackUrl::new_allowing_http).transpose();
        let (callback_url, v1) = match (context.origin, relay, url.or_corrupt("callback_url")?) {
            (OF_V2, None, Some(url)) => (url, None),
            (OF_V1, None, Some(url)) => (url, Some(CallbackSender::Directly)),
            (OF_V1_RELAYED, Some(relay), url) => (relay, Some(CallbackSender::Relayed(url))),
            (OF_V2 | OF_V1, None, None) => return Err(CorruptRow("callback_url")),
            _ => return Err(CorruptRow("origin")),
        };
        let operation = Operation {
            id,
            merchant: MerchantId::new(&context.merchant).or_corrupt("merchant")?,
            order_id: OrderId::new(&self.order_id).or_corrupt("order_id")?,
            amount: u64::try_from(self.amount)
                .map_err(|_| CorruptRow("amount"))
                .and_then(|hundredths| Amount::from_hundredths(hundredths).or_corrupt("amount"))?,
            currency: Currency::new(&context.currency).or_corrupt("currency")?,
            method: context.method.as_deref().map(ShopCode::new).transpose().or_corrupt("method")?,
            shop: ShopCode::new(&context.shop).or_corrupt("shop")?,
            payment_method: context.payment_method.map(Arc::from),
            customer_account_id: self.customer_account_id.map(CustomerAccountId),
            callback_url,
            kind,
            provider: provider_of(context.provider).ok_or(CorruptRow("provider"))?,
            state,
            created_at: UnixMillis(self.created_at),
        };
        let kept = decode_kept(context.kept.as_deref()).ok_or(CorruptRow("kept"))?;
        Ok(Stored {
            operation,
            api_key: context.api_key,
            comparison: RequestFingerprint { fingerprint: Fingerprint(self.fingerprint), kept },
            v1,
        })
    }

    fn state(&self, vault: &Vault, id: TransactionId) -> Result<State, CorruptRow> {
        let status = status_of(self.status).ok_or(CorruptRow("status"))?;
        let outcome = match status {
            Status::Pending => return Ok(State::Pending),
            Status::Success => {
                let payer = self.payer.as_deref().map(|sealed| opened_payer(vault, id, sealed)).transpose()?;
                Outcome::Success { payer }
            }
            Status::Failed => Outcome::Failed,
        };
        let at = self.finished_at.map(UnixMillis).ok_or(CorruptRow("finished_at"))?;
        Ok(State::Finished { outcome, at })
    }
}

/// Seals the payer of a deposit.
pub(in crate::store) fn sealed_payer(
    vault: &Vault,
    id: TransactionId,
    payer: Option<&AccountNumber>,
) -> Option<Vec<u8>> {
    payer.map(|payer| vault.seal(Column::Payer, id, payer.expose().as_bytes()))
}

/// Returns the payer of a state.
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
) -> Result<AccountNumber, CorruptRow> {
    let plain = vault.open(Column::Payer, id, sealed).ok().and_then(|plain| String::from_utf8(plain).ok());
    AccountNumber::new(&plain.ok_or(CorruptRow("payer"))?).or_corrupt("payer")
}

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

pub(in crate::store) const fn finished_at(state: &State) -> Option<i64> {
    match state {
        State::Pending => None,
        State::Finished { at, .. } => Some(at.0),
    }
}

/// Returns the state of a status and a time. Leaves out the payer, which is sealed.
pub(in crate::store) const fn bare_state(status: Status, finished_at: Option<i64>) -> State {
    let outcome = match status {
        Status::Pending => return State::Pending,
        Status::Success => Outcome::Success { payer: None },
        Status::Failed => Outcome::Failed,
    };
    let at = match finished_at {
        Some(at) => UnixMillis(at),
        None => UnixMillis(0),
    };
    State::Finished { outcome, at }
}

pub(in crate::store) const fn status_number(status: Status) -> i64 {
    match status {
        Status::Pending => 0,
        Status::Success => 1,
        Status::Failed => 2,
    }
}

pub(in crate::store) const fn status_of(number: i64) -> Option<Status> {
    match number {
        0 => Some(Status::Pending),
        1 => Some(Status::Success),
        2 => Some(Status::Failed),
        _ => None,
    }
}

/// The error for a column with an invalid value.
const CORRUPT: CorruptRow = CorruptRow("sealed");

/// Encodes and seals the details of a new operation: what no query searches.
///
/// ```text
/// sent, defaults     the texts of `fields`
/// members            the fingerprints of v1 members
/// relay              the relay's address for the engine's callbacks, if the relay calls the merchant
/// account, channel   of a withdrawal
/// success, pending, fail, redirect   of a deposit; pending and fail only where they differ from success
/// ```
///
/// A text is stored as its length plus one in LEB128, and its bytes. Zero means absent.
fn sealed_details(vault: &Vault, draft: &NewOperation) -> Vec<u8> {
    let (operation, fields) = (&draft.operation, &draft.fields);
    let mut plain = Vec::with_capacity(256 + fields.sent.len() + fields.defaults.len());
    put(&mut plain, Some(&fields.sent));
    put(&mut plain, Some(&fields.defaults));
    fields.v1_members.write_to(&mut plain);
    let relay = matches!(draft.v1, Some(CallbackSender::Relayed(_))).then(|| operation.callback_url.as_str());
    put(&mut plain, relay);
    match &operation.kind {
        Kind::Withdrawal(withdrawal) => {
            put(&mut plain, Some(withdrawal.account_number.expose()));
            put(&mut plain, withdrawal.account_channel.as_deref());
        }
        Kind::Deposit(deposit) => {
            let unless_success = |url: &BrowserUrl| (*url != deposit.success_url).then(|| url.as_str().to_owned());
            put(&mut plain, Some(deposit.success_url.as_str()));
            put(&mut plain, unless_success(&deposit.pending_url).as_deref());
            put(&mut plain, unless_success(&deposit.fail_url).as_deref());
            put(&mut plain, Some(deposit.redirect_url.expose()));
        }
    }
    vault.seal(Column::Details, operation.id, &plain)
}

/// The opened details.
struct Details {
    plain: Vec<u8>,
    /// The offset behind `fields` and the v1 members.
    rest: usize,
}

impl Details {
    /// Opens the column of an operation.
    pub(super) fn open(vault: &Vault, id: TransactionId, sealed: &[u8]) -> Result<Self, CorruptRow> {
        let plain = vault.open(Column::Details, id, sealed).map_err(|DecryptError| CORRUPT)?;
        let mut texts = Texts(&plain);
        texts.take()?;
        texts.take()?;
        texts.members()?;
        let rest = plain.len() - texts.0.len();
        Ok(Self { plain, rest })
    }

    fn fields(&self) -> Result<Fields, CorruptRow> {
        let mut texts = Texts(&self.plain);
        let sent = texts.take()?.ok_or(CORRUPT)?.to_owned().into();
        let defaults = texts.take()?.ok_or(CORRUPT)?.to_owned().into();
        Ok(Fields { sent, defaults, v1_members: texts.members()? })
    }

    /// Decodes the relay's address and the data of the direction.
    pub(super) fn decode(&self, direction: Direction) -> Result<(Option<CallbackUrl>, Kind), CorruptRow> {
        let mut texts = Texts(self.plain.get(self.rest..).unwrap_or_default());
        let relay = texts.take()?.map(CallbackUrl::new_allowing_http).transpose().or_corrupt("sealed")?;
        let kind = match direction {
            Direction::Payout => Kind::Withdrawal(texts.withdrawal()?),
            Direction::Payin => Kind::Deposit(texts.deposit()?),
        };
        if texts.0.is_empty() { Ok((relay, kind)) } else { Err(CORRUPT) }
    }
}

/// Unseals the `fields` of an operation.
///
/// # Errors
/// The column contains an invalid value.
pub(in crate::store) fn opened_fields(vault: &Vault, id: TransactionId, sealed: &[u8]) -> Result<Fields, StoreError> {
    let fields = Details::open(vault, id, sealed).and_then(|details| details.fields());
    fields.map_err(|corrupt| corrupt.of_operation(id.to_stored()))
}

/// Unseals the recipient of a withdrawal.
fn opened_account(vault: &Vault, id: TransactionId, sealed: &[u8]) -> Result<AccountNumber, CorruptRow> {
    match Details::open(vault, id, sealed)?.decode(Direction::Payout)? {
        (_, Kind::Withdrawal(withdrawal)) => Ok(withdrawal.account_number),
        (_, Kind::Deposit(_)) => Err(CORRUPT),
    }
}

fn put(plain: &mut Vec<u8>, text: Option<&str>) {
    let mut number = text.map_or(0, |text| text.len() + 1);
    while number >= 0x80 {
        plain.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    plain.push(number.to_le_bytes()[0]);
    plain.extend_from_slice(text.unwrap_or_default().as_bytes());
}

/// Reads the texts in order; holds the remaining bytes.
struct Texts<'a>(&'a [u8]);

impl<'a> Texts<'a> {
    fn take(&mut self) -> Result<Option<&'a str>, CorruptRow> {
        let mut number = 0_usize;
        // Four groups of seven bits: no text is longer than 256 MiB.
        for shift in [0, 7, 14, 21] {
            let (byte, rest) = self.0.split_first().ok_or(CORRUPT)?;
            self.0 = rest;
            number |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return self.text(number);
            }
        }
        Err(CORRUPT)
    }

    fn text(&mut self, number: usize) -> Result<Option<&'a str>, CorruptRow> {
        let Some(length) = number.checked_sub(1) else { return Ok(None) };
        let (text, rest) = self.0.split_at_checked(length).ok_or(CORRUPT)?;
        self.0 = rest;
        std::str::from_utf8(text).map(Some).map_err(|_| CORRUPT)
    }

    fn members(&mut self) -> Result<MemberFingerprints, CorruptRow> {
        let (members, rest) = MemberFingerprints::read_from(self.0).ok_or(CORRUPT)?;
        self.0 = rest;
        Ok(members)
    }

    fn withdrawal(&mut self) -> Result<Withdrawal, CorruptRow> {
        let account_number = AccountNumber::new(self.take()?.ok_or(CORRUPT)?).or_corrupt("sealed")?;
        Ok(Withdrawal { account_number, account_channel: self.take()?.map(Into::into) })
    }

    fn deposit(&mut self) -> Result<Deposit, CorruptRow> {
        let url = |text: &str| BrowserUrl::new(text).or_corrupt("sealed");
        let success_url = url(self.take()?.ok_or(CORRUPT)?)?;
        let pending_url = self.take()?.map_or_else(|| Ok(success_url.clone()), url)?;
        let fail_url = self.take()?.map_or_else(|| Ok(success_url.clone()), url)?;
        let redirect_url = self.take()?.map(|url| RedirectUrl::new(url.to_owned())).ok_or(CORRUPT)?;
        Ok(Deposit { success_url, pending_url, fail_url, redirect_url })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_round_trip_and_invalid_bytes_are_rejected() {
        for text in
            [None, Some(""), Some("a"), Some(&*"b".repeat(126)), Some(&*"c".repeat(127)), Some(&*"é".repeat(40_000))]
        {
            let mut plain = Vec::new();
            put(&mut plain, text);
            put(&mut plain, Some("next"));
            let mut texts = Texts(&plain);
            assert_eq!((texts.take().ok().unwrap(), texts.take().ok().unwrap()), (text, Some("next")));
            assert!(texts.0.is_empty());
        }
        for wrong in [&[] as &[u8], &[0x80], &[3, b'a'], &[2, 0xff], &[0x80, 0x80, 0x80, 0x80, 0]] {
            assert!(Texts(wrong).take().is_err(), "{wrong:?}");
        }
    }
}
