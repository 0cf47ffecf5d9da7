//! Operations as rows: from a [`Draft`] into `operations`, and back.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::kept::{self, KeptList};
use crate::domain::{
    AccountNumber, Amount, BrowserUrl, CallbackUrl, Currency, CustomerAccountId, Deposit, Direction, Invalid, Kind,
    MerchantId, Operation, OrderId, Outcome, ProviderKind, RedirectUrl, ShopCode, State, Status, TransactionId,
    UnixDay, UnixMillis, Withdrawal,
};
use crate::store::vault::{Column, Unsealable, Vault};
use crate::store::{Comparison, Digest, Draft, Fields, Kept, StoreError, Stored, V1Members, V1Part, V1Told};

/// A draft with all that costs time done: the writer's thread only binds and steps.
#[derive(Debug)]
pub(super) struct NewRow {
    draft: Draft,
    order_key: Digest,
    kept: Option<KeptList>,
    account: Option<Vec<u8>>,
    payer: Option<Vec<u8>>,
    fields: Vec<u8>,
}

impl NewRow {
    pub(super) fn new(draft: Draft, vault: &Vault, kept: Option<KeptList>) -> Self {
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

    pub(super) const fn order_key(&self) -> Digest {
        self.order_key
    }

    pub(super) const fn draft(&self) -> &Draft {
        &self.draft
    }

    /// Inserts the operation in `state`, which counts for its customer on `counted_day`; `false` when its id or its order
    /// exists.
    pub(super) fn insert(
        &self,
        connection: &Connection,
        state: &State,
        counted_day: Option<UnixDay>,
    ) -> rusqlite::Result<bool> {
        let Draft { operation, api_key, comparison, v1, .. } = &self.draft;
        let deposit = match &operation.kind {
            Kind::Deposit(deposit) => Some(deposit),
            Kind::Withdrawal(_) => None,
        };
        let inserted = connection.prepare_cached(INSERT)?.execute(params![
            operation.id.to_stored(),
            self.order_key.0,
            direction_number(operation.direction()),
            status_number(state.status()),
            operation.created_at.0,
            finished_at(state),
            operation.amount.hundredths().cast_signed(),
            operation.customer_account_id.map(|id| id.0),
            self.kept.as_ref().map(|list| list.id),
            comparison.digest.0,
            v1.as_ref().map(|v1| v1.digest.0),
            operation.currency.as_str(),
            operation.merchant.as_str(),
            operation.order_id.as_str(),
            api_key,
            operation.shop.as_str(),
            operation.method.as_ref().map(ShopCode::as_str),
            operation.payment_method,
            operation.callback_url.as_str(),
            v1.as_ref().and_then(|v1| v1.told.relayed_to()).map(CallbackUrl::as_str),
            deposit.map(|deposit| deposit.success_url.as_str()),
            deposit.and_then(|deposit| other_than(&deposit.success_url, &deposit.pending_url)),
            deposit.and_then(|deposit| other_than(&deposit.success_url, &deposit.fail_url)),
            deposit.map(|deposit| deposit.redirect_url.expose()),
            self.account,
            self.payer,
            self.fields,
            counted_day.map(|day| day.0),
            provider_number(operation.provider),
            v1.as_ref().and_then(|v1| v1.members).map(|members| members.0),
            v1.as_ref().is_some_and(|v1| matches!(v1.told, V1Told::Relayed(_))),
        ])?;
        if inserted == 0 {
            return Ok(false);
        }
        if let Some(list) = &self.kept {
            kept::store(connection, list)?;
        }
        Ok(true)
    }
}

const INSERT: &str = "INSERT INTO operations (transaction_id, sorted_key, direction, status, created_at, finished_at, \
    amount, customer_account_id, kept, digest, v1_digest, currency, merchant, order_id, api_key, shop, method, \
    payment_method, callback_url, v1_callback_url, success_url, pending_url, fail_url, redirect_url, account, payer, \
    fields, counted_day, provider, v1_members, relayed, from_v1) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, \
    ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?11 IS NOT NULL) ON CONFLICT DO NOTHING";

/// All but the fields. The order is [`StoredRow::read`]'s.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT operations.transaction_id, direction, status, created_at, finished_at, amount, \
             customer_account_id, kept, digest, v1_digest, currency, merchant, order_id, api_key, shop, method, \
             payment_method, callback_url, v1_callback_url, success_url, pending_url, fail_url, redirect_url, \
             account, payer, operations.provider, v1_members, relayed FROM operations ",
            $rest
        )
    };
}

/// An operation's columns, as read: still sealed, not yet understood.
#[derive(Debug)]
pub(super) struct StoredRow {
    id: i64,
    direction: i64,
    status: i64,
    created_at: i64,
    finished_at: Option<i64>,
    amount: i64,
    customer_account_id: Option<i64>,
    pub(super) kept: Option<i64>,
    digest: [u8; 16],
    v1_digest: Option<[u8; 16]>,
    currency: Box<str>,
    merchant: Box<str>,
    order_id: Box<str>,
    api_key: Box<str>,
    shop: Box<str>,
    method: Option<Box<str>>,
    payment_method: Option<Box<str>>,
    callback_url: Box<str>,
    v1_callback_url: Option<Box<str>>,
    success_url: Option<Box<str>>,
    pending_url: Option<Box<str>>,
    fail_url: Option<Box<str>>,
    redirect_url: Option<String>,
    account: Option<Vec<u8>>,
    payer: Option<Vec<u8>>,
    provider: i64,
    v1_members: Option<[u8; 40]>,
    relayed: i64,
}

impl StoredRow {
    pub(super) fn by_id(connection: &Connection, id: TransactionId) -> rusqlite::Result<Option<Self>> {
        let mut statement = connection.prepare_cached(Self::BY_ID)?;
        statement.query_row([id.to_stored()], Self::read).optional()
    }

    pub(super) fn by_order(connection: &Connection, key: Digest) -> rusqlite::Result<Option<Self>> {
        let mut statement = connection.prepare_cached(select!("WHERE sorted_key = ?1"))?;
        statement.query_row([key.0], Self::read).optional()
    }

    /// One operation; the parameter is its id.
    pub(super) const BY_ID: &str = select!("WHERE transaction_id = ?1");

    /// Operations after an id, in order; the second parameter is how many.
    pub(super) const SLICE: &str = select!("WHERE transaction_id > ?1 ORDER BY transaction_id LIMIT ?2");

    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            direction: row.get(1)?,
            status: row.get(2)?,
            created_at: row.get(3)?,
            finished_at: row.get(4)?,
            amount: row.get(5)?,
            customer_account_id: row.get(6)?,
            kept: row.get(7)?,
            digest: row.get(8)?,
            v1_digest: row.get(9)?,
            currency: row.get(10)?,
            merchant: row.get(11)?,
            order_id: row.get(12)?,
            api_key: row.get(13)?,
            shop: row.get(14)?,
            method: row.get(15)?,
            payment_method: row.get(16)?,
            callback_url: row.get(17)?,
            v1_callback_url: row.get(18)?,
            success_url: row.get(19)?,
            pending_url: row.get(20)?,
            fail_url: row.get(21)?,
            redirect_url: row.get(22)?,
            account: row.get(23)?,
            payer: row.get(24)?,
            provider: row.get(25)?,
            v1_members: row.get(26)?,
            relayed: row.get(27)?,
        })
    }

    /// Understands and unseals the columns. `kept` is the list that [`StoredRow::kept`] names.
    ///
    /// # Errors
    /// A column holds what was never written there.
    pub(super) fn decode(self, vault: &Vault, kept: Kept) -> Result<Stored, StoreError> {
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
        let v1 = match self.v1_digest {
            None => None,
            Some(digest) => {
                Some(V1Part { digest: Digest(digest), members: self.v1_members.map(V1Members), told: self.told()? })
            }
        };
        let comparison = Comparison { digest: Digest(self.digest), kept };
        Ok(Stored { operation, api_key: self.api_key, comparison, v1 })
    }

    fn told(&self) -> Result<V1Told, NotOurs> {
        let url = self.v1_callback_url.as_deref().map(CallbackUrl::new_allowing_http).transpose();
        match (self.relayed, url.or_not("v1_callback_url")?) {
            (0, None) => Ok(V1Told::Directly),
            (1, url) => Ok(V1Told::Relayed(url)),
            _ => Err(NotOurs("relayed")),
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

/// The column that holds what was never written there.
pub(super) struct NotOurs(pub(super) &'static str);

impl NotOurs {
    /// What is said of a column of an operation.
    pub(super) fn of_operation(self, id: i64) -> StoreError {
        let Self(column) = self;
        StoreError::Corrupt(format!("operation {id}: the column {column} is not ours"))
    }
}

impl From<(Unsealable, &'static str)> for NotOurs {
    fn from((Unsealable, column): (Unsealable, &'static str)) -> Self {
        Self(column)
    }
}

pub(super) trait OrNot<T> {
    fn or_not(self, column: &'static str) -> Result<T, NotOurs>;
}

impl<T> OrNot<T> for Result<T, Invalid> {
    fn or_not(self, column: &'static str) -> Result<T, NotOurs> {
        self.map_err(|_| NotOurs(column))
    }
}

/// Reads the sealed `fields` of an operation.
pub(super) fn fields_of(connection: &Connection, id: TransactionId) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .prepare_cached("SELECT fields FROM operations WHERE transaction_id = ?1")?
        .query_row([id.to_stored()], |row| row.get(0))
        .optional()
}

/// Seals the payer of a deposit.
pub(super) fn sealed_payer(vault: &Vault, id: TransactionId, payer: Option<&AccountNumber>) -> Option<Vec<u8>> {
    payer.map(|payer| vault.seal(Column::Payer, id, payer.expose().as_bytes()))
}

/// The payer that a state names.
pub(super) const fn payer_of(state: &State) -> Option<&AccountNumber> {
    match state {
        State::Finished { outcome: Outcome::Success { payer }, .. } => payer.as_ref(),
        State::Pending | State::Finished { .. } => None,
    }
}

/// Unseals the payer of a deposit.
pub(super) fn opened_payer(vault: &Vault, id: TransactionId, sealed: &[u8]) -> Result<AccountNumber, NotOurs> {
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
pub(super) fn opened_account(vault: &Vault, id: TransactionId, sealed: &[u8]) -> Result<Withdrawal, NotOurs> {
    let plain = opened_text(vault, Column::Account, id, sealed).ok_or(NotOurs("account"))?;
    let (account, channel) = match plain.split_once('\0') {
        Some((account, channel)) => (account, Some(channel.into())),
        None => (plain.as_str(), None),
    };
    let account_number = AccountNumber::new(account).or_not("account")?;
    Ok(Withdrawal { account_number, account_channel: channel })
}

/// The length of what was sent (four bytes), what was sent, the defaults.
fn sealed_fields(vault: &Vault, id: TransactionId, fields: &Fields) -> Vec<u8> {
    // A request body is far below 4 GiB.
    let sent_bytes = u32::try_from(fields.sent.len()).unwrap_or(u32::MAX);
    let mut plain = Vec::with_capacity(4 + fields.sent.len() + fields.defaults.len());
    plain.extend_from_slice(&sent_bytes.to_le_bytes());
    plain.extend_from_slice(fields.sent.as_bytes());
    plain.extend_from_slice(fields.defaults.as_bytes());
    vault.seal(Column::Fields, id, &plain)
}

/// Unseals what [`fields_of`] read.
///
/// # Errors
/// They were never written there.
pub(super) fn opened_fields(vault: &Vault, id: TransactionId, sealed: &[u8]) -> Result<Fields, StoreError> {
    let corrupt = || StoreError::Corrupt(format!("operation {id}: the column fields is not ours"));
    let plain = vault.open(Column::Fields, id, sealed).map_err(|Unsealable| corrupt())?;
    let (sent_bytes, texts) = plain.split_first_chunk::<4>().ok_or_else(corrupt)?;
    let texts = std::str::from_utf8(texts).map_err(|_| corrupt())?;
    let sent_bytes = usize::try_from(u32::from_le_bytes(*sent_bytes)).map_err(|_| corrupt())?;
    let (sent, defaults) = texts.split_at_checked(sent_bytes).ok_or_else(corrupt)?;
    Ok(Fields { sent: sent.into(), defaults: defaults.into() })
}

fn opened_text(vault: &Vault, column: Column, id: TransactionId, sealed: &[u8]) -> Option<String> {
    vault.open(column, id, sealed).ok().and_then(|plain| String::from_utf8(plain).ok())
}

/// `url`, unless it is the same as `success`.
fn other_than<'a>(success: &BrowserUrl, url: &'a BrowserUrl) -> Option<&'a str> {
    (url != success).then_some(url.as_str())
}

pub(super) const fn finished_at(state: &State) -> Option<i64> {
    match state {
        State::Pending => None,
        State::Finished { at, .. } => Some(at.0),
    }
}

pub(super) const fn direction_number(direction: Direction) -> i64 {
    match direction {
        Direction::Payin => 0,
        Direction::Payout => 1,
    }
}

pub(super) const fn direction_of(number: i64) -> Option<Direction> {
    match number {
        0 => Some(Direction::Payin),
        1 => Some(Direction::Payout),
        _ => None,
    }
}

pub(super) const fn status_number(status: Status) -> i64 {
    match status {
        Status::Pending => 0,
        Status::Success => 1,
        Status::Failed => 2,
    }
}

pub(super) const fn status_of(number: i64) -> Option<Status> {
    match number {
        0 => Some(Status::Pending),
        1 => Some(Status::Success),
        2 => Some(Status::Failed),
        _ => None,
    }
}

const fn provider_number(provider: ProviderKind) -> i64 {
    match provider {
        ProviderKind::Sandbox => 0,
        ProviderKind::Http => 1,
    }
}

const fn provider_of(number: i64) -> Option<ProviderKind> {
    match number {
        0 => Some(ProviderKind::Sandbox),
        1 => Some(ProviderKind::Http),
        _ => None,
    }
}
