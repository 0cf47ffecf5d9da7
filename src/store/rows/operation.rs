//! The columns of operations, and their conversion from [`NewOperation`] and to [`Stored`]; for status replies, of only the
//! columns that they need.

use std::sync::Arc;

use super::context::{ContextId, Contexts, OF_V1, OF_V1_RELAYED, OF_V2, decode_kept, direction_of, provider_of};
use super::details::{Details, opened_account, sealed_details};
use super::{CorruptRow, OrCorrupt};
use crate::domain::{
    AccountNumber, Amount, CallbackSender, CallbackUrl, Currency, CustomerAccountId, Direction, FailureCause,
    Fingerprint, InvalidValue, MerchantId, Operation, OperationView, OrderId, Outcome, ShopCode, State, Status,
    StatusRecord, TransactionId, UnixDay, UnixMillis,
};
use crate::store::sql::{Columns, Parameter, params};
use crate::store::vault::{Column, Vault};
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

    /// Returns the value of `operations.listed`.
    pub(in crate::store) fn listed(&self) -> i64 {
        listed_as(self.context.merchant(), self.draft.v1.is_some())
    }

    /// Returns the merchant's address for the result; `None`: the merchant is not called back.
    pub(in crate::store) fn callback_url(&self) -> Option<&str> {
        CallbackSender::called_address(self.draft.v1.as_ref(), &self.draft.operation.callback_url)
            .map(CallbackUrl::as_str)
    }
}

/// Returns the value of `operations.listed` of a merchant's operations: those that were created through v1, or the others.
pub(in crate::store) const fn listed_as(merchant: i64, through_v1: bool) -> i64 {
    if through_v1 { merchant } else { !merchant }
}

/// The columns of an operation, in the order of [`StoredRow::read`].
macro_rules! operation_columns {
    () => {
        "transaction_id, context, listed, status, created_at, finished_at, amount, customer_account_id, counted_day, \
         order_id, fingerprint, callback_url, sealed, payer"
    };
}
pub(in crate::store) use operation_columns;

/// The columns of a new operation, in the order of [`NewRow::columns`].
macro_rules! new_operation_columns {
    () => {
        concat!($crate::store::rows::operation::operation_columns!(), ", cause, has_job")
    };
}
pub(in crate::store) use new_operation_columns;

/// Selects the columns of operations and of their contexts, in the order of [`StoredRow::read`].
macro_rules! select_operations {
    ($rest:expr) => {
        concat!(
            "SELECT ",
            $crate::store::rows::operation::operation_columns!(),
            ", direction, provider, origin, merchant, api_key, shop, currency, method, payment_method, kept ",
            $rest
        )
    };
}
pub(in crate::store) use select_operations;

/// The number of columns that [`NewRow::columns`] returns.
pub(in crate::store) const OPERATION_COLUMNS: usize = 16;

/// The number of columns that [`StoredRow::read`] reads.
pub(in crate::store) const STORED_COLUMNS: usize = 24;

impl NewRow {
    /// Returns the columns of the operation in a state, counted for its customer on a day. `failure`: why it is FAILED.
    pub(in crate::store) fn columns(
        &self,
        state: &State,
        failure: Option<FailureCause>,
        counted_day: Option<UnixDay>,
    ) -> [Parameter<'_>; OPERATION_COLUMNS] {
        let NewOperation { operation, comparison, provider_job, .. } = &self.draft;
        params![
            operation.id,
            self.context.number(),
            self.listed(),
            status_number(state.status()),
            operation.created_at,
            finished_at(state),
            operation.amount.hundredths().cast_signed(),
            operation.customer_account_id.map(|id| id.0),
            counted_day.map(|day| i64::from(day.0)),
            operation.order_id.as_str(),
            &comparison.fingerprint,
            self.callback_url(),
            &self.sealed,
            &self.payer,
            failure.map(cause_number),
            i64::from(provider_job.is_some()),
        ]
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
    /// Reads the columns that [`select_operations`] selects.
    pub(in crate::store) fn read(row: &dyn Columns) -> Result<Self, CorruptRow> {
        Ok(Self {
            id: row.get(0)?,
            status: row.get(3)?,
            created_at: row.get(4)?,
            finished_at: row.get(5)?,
            amount: row.get(6)?,
            customer_account_id: row.get(7)?,
            order_id: row.get(9)?,
            fingerprint: row.get(10)?,
            callback_url: row.get(11)?,
            sealed: row.get(12)?,
            payer: row.get(13)?,
            context: StoredContext {
                direction: row.get(14)?,
                provider: row.get(15)?,
                origin: row.get(16)?,
                merchant: row.get(17)?,
                api_key: row.get(18)?,
                shop: row.get(19)?,
                currency: row.get(20)?,
                method: row.get(21)?,
                payment_method: row.get(22)?,
                kept: row.get(23)?,
            },
        })
    }

    /// Decodes and unseals the columns.
    ///
    /// # Errors
    /// A column contains an invalid value.
    pub(in crate::store) fn decode(self, vault: &Vault) -> Result<Stored, StoreError> {
        let id = self.id;
        self.decode_columns(vault).map_err(|corrupt| corrupt.of(format_args!("operation {id}")))
    }

    fn decode_columns(self, vault: &Vault) -> Result<Stored, CorruptRow> {
        let id = TransactionId::from_stored(self.id).ok_or(CorruptRow::new("transaction_id"))?;
        let state = self.state(vault, id)?;
        let context = self.context;
        let direction = direction_of(context.direction).ok_or(CorruptRow::new("direction"))?;
        let (relay, kind) = Details::open(vault, id, &self.sealed)?.decode(direction)?;
        let url = self.callback_url.as_deref().map(CallbackUrl::new_allowing_http).transpose();
        let (callback_url, v1) = match (context.origin, relay, url.or_corrupt("callback_url")?) {
            (OF_V2, None, Some(url)) => (url, None),
            (OF_V1, None, Some(url)) => (url, Some(CallbackSender::Directly)),
            (OF_V1_RELAYED, Some(relay), url) => (relay, Some(CallbackSender::Relayed(url))),
            (OF_V2 | OF_V1, None, None) => return Err(CorruptRow::new("callback_url")),
            _ => return Err(CorruptRow::new("origin")),
        };
        let operation = Operation {
            id,
            merchant: MerchantId::new(&context.merchant).or_corrupt("merchant")?,
            order_id: OrderId::new(&self.order_id).or_corrupt("order_id")?,
            amount: u64::try_from(self.amount)
                .map_err(|_| CorruptRow::new("amount"))
                .and_then(|hundredths| Amount::from_hundredths(hundredths).or_corrupt("amount"))?,
            currency: Currency::new(&context.currency).or_corrupt("currency")?,
            method: context.method.as_deref().map(ShopCode::new).transpose().or_corrupt("method")?,
            shop: ShopCode::new(&context.shop).or_corrupt("shop")?,
            payment_method: context.payment_method.map(Arc::from),
            customer_account_id: self.customer_account_id.map(CustomerAccountId),
            callback_url,
            kind,
            provider: provider_of(context.provider).ok_or(CorruptRow::new("provider"))?,
            state,
            created_at: UnixMillis(self.created_at),
        };
        let kept = decode_kept(context.kept.as_deref()).ok_or(CorruptRow::new("kept"))?;
        Ok(Stored {
            operation,
            api_key: context.api_key,
            comparison: RequestFingerprint { fingerprint: Fingerprint(self.fingerprint), kept },
            v1,
        })
    }

    fn state(&self, vault: &Vault, id: TransactionId) -> Result<State, CorruptRow> {
        let status = status_of(self.status).ok_or(CorruptRow::new("status"))?;
        let outcome = match status {
            Status::Pending => return Ok(State::Pending),
            Status::Success => {
                let payer = self.payer.as_deref().map(|sealed| opened_payer(vault, id, sealed)).transpose()?;
                Outcome::Success { payer }
            }
            Status::Failed => Outcome::Failed,
        };
        let at = self.finished_at.map(UnixMillis).ok_or(CorruptRow::new("finished_at"))?;
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
    AccountNumber::new(&plain.ok_or(CorruptRow::new("payer"))?).or_corrupt("payer")
}

/// The columns that both API versions need, as read: still sealed and not decoded.
pub(in crate::store) struct StatusColumns {
    pub(in crate::store) status: i64,
    pub(in crate::store) amount: i64,
    pub(in crate::store) currency: Result<Currency, InvalidValue>,
    /// The sealed column with the account: the details of a payout, the payer of a payin.
    pub(in crate::store) account: Option<Vec<u8>>,
}

/// Selects the columns that both API versions reply with, in the order of [`StatusColumns::read`]; more follow.
macro_rules! select_status {
    ($rest:literal) => {
        concat!("SELECT status, amount, currency, CASE direction WHEN 1 THEN sealed ELSE payer END, ", $rest)
    };
}
pub(in crate::store) use select_status;

impl StatusColumns {
    /// The number of columns.
    const COUNT: usize = 4;

    fn read(row: &dyn Columns) -> Result<Self, CorruptRow> {
        let currency = Currency::new(row.text(2)?.unwrap_or_default());
        Ok(Self { status: row.get(0)?, amount: row.get(1)?, currency, account: row.get(3)? })
    }

    fn amount(&self) -> Result<Amount, CorruptRow> {
        let hundredths = u64::try_from(self.amount).map_err(|_| CorruptRow::new("amount"))?;
        Amount::from_hundredths(hundredths).or_corrupt("amount")
    }

    fn status(&self) -> Result<Status, CorruptRow> {
        status_of(self.status).ok_or(CorruptRow::new("status"))
    }

    /// See [`crate::domain::Operation::shown_account`].
    fn account(&self, vault: &Vault, id: TransactionId, direction: Direction) -> Result<Option<String>, CorruptRow> {
        match (direction, self.account.as_deref()) {
            (Direction::Payout, sealed) => {
                Ok(Some(opened_account(vault, id, sealed.ok_or(CorruptRow::new("sealed"))?)?.masked()))
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
    /// Reads the status columns, and the id, the time of creation and the shop.
    pub(in crate::store) fn read(row: &dyn Columns) -> Result<Self, CorruptRow> {
        const REST: usize = StatusColumns::COUNT;
        let (id, created_at, shop) = (row.get(REST)?, row.get(REST + 1)?, row.get(REST + 2)?);
        Ok(Self { columns: StatusColumns::read(row)?, id, created_at, shop })
    }

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
        self.decode_columns(vault, direction, order_id).map_err(|corrupt| corrupt.of(format_args!("operation {id}")))
    }

    fn decode_columns(
        self,
        vault: &Vault,
        direction: Direction,
        order_id: &OrderId,
    ) -> Result<OperationView, CorruptRow> {
        let id = TransactionId::from_stored(self.id).ok_or(CorruptRow::new("transaction_id"))?;
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
    /// Reads the status columns, and the direction, the order's id and the method.
    pub(in crate::store) fn read(row: &dyn Columns) -> Result<Self, CorruptRow> {
        const REST: usize = StatusColumns::COUNT;
        let order_id = OrderId::new(row.text(REST + 1)?.unwrap_or_default());
        let (direction, method) = (row.get(REST)?, row.get(REST + 2)?);
        Ok(Self { columns: StatusColumns::read(row)?, direction, order_id, method })
    }

    /// Decodes and unseals the columns.
    ///
    /// # Errors
    /// A column contains an invalid value.
    pub(in crate::store) fn decode(self, vault: &Vault, id: TransactionId) -> Result<StatusRecord, StoreError> {
        self.decode_columns(vault, id).map_err(|corrupt| corrupt.of(format_args!("operation {id}")))
    }

    fn decode_columns(self, vault: &Vault, id: TransactionId) -> Result<StatusRecord, CorruptRow> {
        let direction = direction_of(self.direction).ok_or(CorruptRow::new("direction"))?;
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

pub(in crate::store) const fn cause_number(cause: FailureCause) -> i64 {
    match cause {
        FailureCause::Provider => 0,
        FailureCause::RefusedAddress => 1,
        FailureCause::RefusedAccount => 2,
        FailureCause::DailyLimit => 3,
        FailureCause::Balance => 4,
        FailureCause::Operator => 5,
    }
}

pub(in crate::store) fn cause_of(number: i64) -> Option<FailureCause> {
    FailureCause::ALL.into_iter().find(|cause| cause_number(*cause) == number)
}

pub(in crate::store) const fn status_of(number: i64) -> Option<Status> {
    match number {
        0 => Some(Status::Pending),
        1 => Some(Status::Success),
        2 => Some(Status::Failed),
        _ => None,
    }
}
