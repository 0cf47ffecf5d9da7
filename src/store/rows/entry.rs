//! Conversion of journal entries between [`PendingCreate`] or [`JournalEntry`] and columns.

use super::{CorruptRow, OrCorrupt, direction_of, status_number, status_of};
use crate::domain::{
    AccountNumber, Amount, CallbackUrl, Currency, Fingerprint, MemberFingerprints, MerchantId, OrderId, RedirectUrl,
    Status, UnixMillis,
};
use crate::store::sql::Columns;
use crate::store::vault::{Column, SealedPlace, Vault};
use crate::store::{
    EngineAnswer, EntryId, EntryProgress, JournalEntry, PendingCreate, RemoteOperation, StatusUpdate, StoreError,
};

/// The values of `journal.state`.
pub(in crate::store) const OPEN: i64 = 0;
pub(in crate::store) const IN_DOUBT: i64 = 1;
pub(in crate::store) const ANSWERED: i64 = 2;

/// An entry about to be inserted, prepared so that the writer's thread has only to bind and execute.
#[derive(Debug)]
pub(in crate::store) struct NewEntry {
    /// Its `body` is empty: it is in the sealed one.
    pub(in crate::store) create: PendingCreate,
    pub(in crate::store) order_key: Fingerprint,
    /// The sealed body, preceded by the fingerprints of v1 members.
    pub(in crate::store) body: Vec<u8>,
}

impl NewEntry {
    pub(in crate::store) fn new(mut create: PendingCreate, vault: &Vault) -> Self {
        let order_key = order_key_of(&create, vault);
        let mut plain = Vec::with_capacity(64 + create.body.len());
        create.v1_members.write_to(&mut plain);
        plain.extend_from_slice(&std::mem::take(&mut create.body));
        let body = vault.seal(Column::JournalBody, SealedPlace::Order(order_key), &plain);
        Self { create, order_key, body }
    }
}

/// An entry's columns as read: still sealed and not decoded.
pub(in crate::store) struct EntryRow {
    pub(in crate::store) id: i64,
    pub(in crate::store) direction: i64,
    pub(in crate::store) state: i64,
    pub(in crate::store) status: i64,
    pub(in crate::store) created_at: i64,
    pub(in crate::store) amount: i64,
    /// The key of its home.
    pub(in crate::store) order_key: [u8; 16],
    pub(in crate::store) fingerprint: [u8; 16],
    pub(in crate::store) currency: Box<str>,
    pub(in crate::store) merchant: Box<str>,
    pub(in crate::store) order_id: Box<str>,
    pub(in crate::store) api_key: Box<str>,
    pub(in crate::store) shop: Box<str>,
    pub(in crate::store) v1_callback_url: Option<Box<str>>,
    pub(in crate::store) transaction_id: Option<Box<str>>,
    pub(in crate::store) redirect_url: Option<String>,
    pub(in crate::store) account: Option<Vec<u8>>,
    pub(in crate::store) body: Vec<u8>,
    pub(in crate::store) doubted_at: Option<i64>,
}

/// Selects entries, in the order of [`EntryRow::read`].
macro_rules! select_entries {
    ($rest:literal) => {
        concat!(
            "SELECT entry, order_key, direction, state, doubted_at, status, created_at, amount, fingerprint, currency, \
             merchant, order_id, api_key, shop, v1_callback_url, transaction_id, redirect_url, account, body ",
            $rest
        )
    };
}
pub(in crate::store) use select_entries;

impl EntryRow {
    /// Reads the columns that [`select_entries`] selects.
    pub(in crate::store) fn read(row: &dyn Columns) -> Result<Self, CorruptRow> {
        Ok(Self {
            id: row.get(0)?,
            order_key: row.get(1)?,
            direction: row.get(2)?,
            state: row.get(3)?,
            doubted_at: row.get(4)?,
            status: row.get(5)?,
            created_at: row.get(6)?,
            amount: row.get(7)?,
            fingerprint: row.get(8)?,
            currency: row.get(9)?,
            merchant: row.get(10)?,
            order_id: row.get(11)?,
            api_key: row.get(12)?,
            shop: row.get(13)?,
            v1_callback_url: row.get(14)?,
            transaction_id: row.get(15)?,
            redirect_url: row.get(16)?,
            account: row.get(17)?,
            body: row.get(18)?,
        })
    }

    pub(in crate::store) const fn id(&self) -> EntryId {
        EntryId(self.id)
    }

    pub(in crate::store) const fn is_answered(&self) -> bool {
        self.state == ANSWERED
    }

    /// Decodes and unseals the columns.
    ///
    /// # Errors
    /// A column contains an invalid value.
    pub(in crate::store) fn decode(self, vault: &Vault) -> Result<JournalEntry, StoreError> {
        let id = self.id;
        self.decode_columns(vault).map_err(|corrupt| corrupt.of(format_args!("journal entry {id}")))
    }

    fn decode_columns(mut self, vault: &Vault) -> Result<JournalEntry, CorruptRow> {
        let mut create = self.create()?;
        let progress = match self.state {
            OPEN => EntryProgress::Open,
            IN_DOUBT => {
                EntryProgress::InDoubt { since: self.doubted_at.map(UnixMillis).ok_or(CorruptRow::new("doubted_at"))? }
            }
            ANSWERED => EntryProgress::Answered(self.remote_operation(vault)?),
            _ => return Err(CorruptRow::new("state")),
        };
        if !self.is_answered() {
            self.check_unanswered()?;
        }
        let place = SealedPlace::Order(order_key_of(&create, vault));
        let plain = vault.open(Column::JournalBody, place, &self.body).map_err(|_| CorruptRow::new("body"))?;
        let (v1_members, body) = MemberFingerprints::read_from(&plain).ok_or(CorruptRow::new("body"))?;
        (create.v1_members, create.body) = (v1_members, body.into());
        Ok(JournalEntry { id: self.id(), create, progress })
    }

    fn check_unanswered(&self) -> Result<(), CorruptRow> {
        let columns = [
            (self.status != status_number(Status::Pending), "status"),
            (self.transaction_id.is_some(), "transaction_id"),
            (self.redirect_url.is_some(), "redirect_url"),
            (self.account.is_some(), "account"),
        ];
        columns.into_iter().find(|(there, _)| *there).map_or(Ok(()), |(_, column)| Err(CorruptRow::new(column)))
    }

    /// Decodes the recorded create, without the body.
    fn create(&self) -> Result<PendingCreate, CorruptRow> {
        Ok(PendingCreate {
            merchant: MerchantId::new(&self.merchant).or_corrupt("merchant")?,
            direction: direction_of(self.direction).ok_or(CorruptRow::new("direction"))?,
            order_id: OrderId::new(&self.order_id).or_corrupt("order_id")?,
            api_key: self.api_key.clone(),
            amount: u64::try_from(self.amount)
                .map_err(|_| CorruptRow::new("amount"))
                .and_then(|hundredths| Amount::from_hundredths(hundredths).or_corrupt("amount"))?,
            currency: Currency::new(&self.currency).or_corrupt("currency")?,
            shop: Some(self.shop.clone()).filter(|shop| !shop.is_empty()),
            fingerprint: Fingerprint(self.fingerprint),
            v1_members: MemberFingerprints::default(),
            callback_url: self
                .v1_callback_url
                .as_deref()
                .map(CallbackUrl::new_allowing_http)
                .transpose()
                .or_corrupt("v1_callback_url")?,
            body: Box::default(),
            created_at: UnixMillis(self.created_at),
        })
    }

    fn remote_operation(&mut self, vault: &Vault) -> Result<RemoteOperation, CorruptRow> {
        let account = self.account.as_deref().map(|sealed| opened_account(vault, self.id(), sealed)).transpose()?;
        Ok(RemoteOperation {
            answer: EngineAnswer {
                transaction_id: self.transaction_id.take().ok_or(CorruptRow::new("transaction_id"))?,
                redirect_url: self.redirect_url.take().map(RedirectUrl::new),
            },
            status: status_of(self.status).ok_or(CorruptRow::new("status"))?,
            account,
        })
    }
}

fn order_key_of(create: &PendingCreate, vault: &Vault) -> Fingerprint {
    vault.fingerprint_key().order_key(&create.merchant, create.direction, &create.order_id)
}

/// Reports whether an update changes anything of an entry.
pub(in crate::store) fn changes_entry(entry: &JournalEntry, update: &StatusUpdate) -> bool {
    let EntryProgress::Answered(known) = &entry.progress else { return false };
    let is_new_account = update.account.is_some() && update.account != known.account;
    (entry.create.shop.is_none() && !update.shop.is_empty())
        || (known.status == Status::Pending && (update.status != Status::Pending || is_new_account))
}

/// Seals the account that the engine reported for an entry.
pub(in crate::store) fn sealed_account(vault: &Vault, id: EntryId, account: &AccountNumber) -> Vec<u8> {
    vault.seal(Column::JournalAccount, SealedPlace::Entry(id), account.expose().as_bytes())
}

fn opened_account(vault: &Vault, id: EntryId, sealed: &[u8]) -> Result<AccountNumber, CorruptRow> {
    let plain =
        vault.open(Column::JournalAccount, SealedPlace::Entry(id), sealed).map_err(|_| CorruptRow::new("account"))?;
    let text = String::from_utf8(plain).map_err(|_| CorruptRow::new("account"))?;
    AccountNumber::new(&text).or_corrupt("account")
}
