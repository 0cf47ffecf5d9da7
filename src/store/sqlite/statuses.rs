//! What status replies tell of an operation: some of its columns. Nothing else of it is read, unsealed or understood.

mod remembered;

pub(super) use remembered::Remembered;
use rusqlite::{Connection, OptionalExtension, Row};

use super::row::{NotOurs, OrNot, direction_of, opened_account, opened_payer, status_of};
use crate::domain::{
    Amount, Currency, Direction, Invalid, Made, MerchantId, OrderId, Record, RedirectUrl, Shown, Status, TransactionId,
    UnixMillis,
};
use crate::store::vault::Vault;
use crate::store::{Digest, StoreError};

/// The columns that both API versions tell of. A payout has an account and a payin may have a payer: never both.
macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT status, amount, currency, coalesce(account, payer), ", $rest)
    };
}

/// What both API versions tell of, as read: still sealed, not yet understood.
struct Told {
    status: i64,
    amount: i64,
    currency: Result<Currency, Invalid>,
    account: Option<Vec<u8>>,
}

/// The number of the first column behind those of [`Told`].
const REST: usize = 4;

impl Told {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let currency = Currency::new(row.get_ref(2)?.as_str()?);
        Ok(Self { status: row.get(0)?, amount: row.get(1)?, currency, account: row.get(3)? })
    }

    fn amount(&self) -> Result<Amount, NotOurs> {
        let hundredths = u64::try_from(self.amount).map_err(|_| NotOurs("amount"))?;
        Amount::from_hundredths(hundredths).or_not("amount")
    }

    fn status(&self) -> Result<Status, NotOurs> {
        status_of(self.status).ok_or(NotOurs("status"))
    }

    /// See [`crate::domain::Operation::shown_account`].
    fn account(&self, vault: &Vault, id: TransactionId, direction: Direction) -> Result<Option<String>, NotOurs> {
        match (direction, self.account.as_deref()) {
            (Direction::Payout, sealed) => {
                let withdrawal = opened_account(vault, id, sealed.ok_or(NotOurs("account"))?)?;
                Ok(Some(withdrawal.account_number.masked()))
            }
            (Direction::Payin, Some(sealed)) if self.status()? == Status::Success => {
                Ok(Some(opened_payer(vault, id, sealed)?.masked()))
            }
            (Direction::Payin, _) => Ok(None),
        }
    }
}

/// What a v1 create was told, as read.
pub(super) struct V1Made {
    id: i64,
    direction: i64,
    order_id: Box<str>,
    redirect_url: Option<String>,
}

impl V1Made {
    /// That of the create which made the operation under an order, if its body's hash is `digest`.
    pub(super) fn of_order(connection: &Connection, key: Digest, digest: Digest) -> rusqlite::Result<Option<Self>> {
        let mut statement = connection.prepare_cached(
            "SELECT transaction_id, direction, order_id, redirect_url FROM operations \
             WHERE sorted_key = ?1 AND v1_digest = ?2",
        )?;
        let read = |row: &Row<'_>| {
            let (id, direction) = (row.get(0)?, row.get(1)?);
            Ok(Self { id, direction, order_id: row.get(2)?, redirect_url: row.get(3)? })
        };
        statement.query_row((key.0, digest.0), read).optional()
    }

    /// Understands what was read.
    ///
    /// # Errors
    /// A column holds what was never written there.
    pub(super) fn understand(self) -> Result<Made, StoreError> {
        let Self { id, direction, order_id, redirect_url } = self;
        let made = || {
            if direction_of(direction) == Some(Direction::Payin) && redirect_url.is_none() {
                return Err(NotOurs("redirect_url"));
            }
            let id = TransactionId::from_stored(id).ok_or(NotOurs("transaction_id"))?;
            let external_id = OrderId::new(&order_id).or_not("order_id")?;
            let transaction_id = id.digits().as_str().into();
            Ok(Made { transaction_id, external_id, redirect_url: redirect_url.map(RedirectUrl::new) })
        };
        made().map_err(|not_ours: NotOurs| not_ours.of_operation(id))
    }
}

/// What v1 tells of an operation, as read.
pub(super) struct V1Status {
    told: Told,
    id: i64,
    created_at: i64,
    shop: Box<str>,
}

impl V1Status {
    /// That of the operation which a v1 request made under an order.
    pub(super) fn of_order(connection: &Connection, key: Digest) -> rusqlite::Result<Option<Self>> {
        let mut statement = connection.prepare_cached(select!(
            "transaction_id, created_at, shop FROM operations WHERE sorted_key = ?1 AND v1_digest IS NOT NULL"
        ))?;
        statement.query_row([key.0], Self::read).optional()
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            told: Told::read(row)?,
            id: row.get(REST)?,
            created_at: row.get(REST + 1)?,
            shop: row.get(REST + 2)?,
        })
    }

    /// Understands and unseals what was read of the order.
    ///
    /// # Errors
    /// A column holds what was never written there.
    pub(super) fn understand(
        self,
        vault: &Vault,
        direction: Direction,
        order_id: &OrderId,
    ) -> Result<Shown, StoreError> {
        let id = self.id;
        self.shown(vault, direction, order_id).map_err(|not_ours| not_ours.of_operation(id))
    }

    fn shown(self, vault: &Vault, direction: Direction, order_id: &OrderId) -> Result<Shown, NotOurs> {
        let id = TransactionId::from_stored(self.id).ok_or(NotOurs("transaction_id"))?;
        Ok(Shown {
            transaction_id: id.digits().as_str().into(),
            external_id: order_id.clone(),
            direction,
            status: self.told.status()?,
            amount: self.told.amount()?,
            account_number: self.told.account(vault, id, direction)?,
            currency: self.told.currency.or_not("currency")?,
            shop_code: self.shop,
            created_at: UnixMillis(self.created_at),
        })
    }
}

/// What v2 tells of an operation, as read.
pub(super) struct V2Status {
    told: Told,
    direction: i64,
    order_id: Result<OrderId, Invalid>,
    method: Box<str>,
}

impl V2Status {
    /// That of an operation, if it is this merchant's.
    pub(super) fn of_id(
        connection: &Connection,
        merchant: &MerchantId,
        id: TransactionId,
    ) -> rusqlite::Result<Option<Self>> {
        let mut statement = connection.prepare_cached(select!(
            "merchant, direction, order_id, coalesce(method, payment_method, 'unknown') \
             FROM operations WHERE transaction_id = ?1"
        ))?;
        let found = statement.query_row([id.to_stored()], |row| {
            let is_its_own = row.get_ref(REST)?.as_str()? == merchant.as_str();
            is_its_own.then(|| Self::read(row)).transpose()
        });
        found.optional().map(Option::flatten)
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            told: Told::read(row)?,
            direction: row.get(REST + 1)?,
            order_id: OrderId::new(row.get_ref(REST + 2)?.as_str()?),
            method: row.get(REST + 3)?,
        })
    }

    /// Understands and unseals what was read of the operation.
    ///
    /// # Errors
    /// A column holds what was never written there.
    pub(super) fn understand(self, vault: &Vault, id: TransactionId) -> Result<Record, StoreError> {
        self.record(vault, id).map_err(|not_ours| not_ours.of_operation(id.to_stored()))
    }

    fn record(self, vault: &Vault, id: TransactionId) -> Result<Record, NotOurs> {
        let direction = direction_of(self.direction).ok_or(NotOurs("direction"))?;
        Ok(Record {
            transaction_id: id,
            status: self.told.status()?,
            amount: self.told.amount()?,
            account_number: self.told.account(vault, id, direction)?,
            currency: self.told.currency.or_not("currency")?,
            order_id: self.order_id.or_not("order_id")?,
            method: self.method,
        })
    }
}
