//! Operations as rows of SQLite: see [`rows`](crate::store::rows) for what they mean.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::kept;
use crate::domain::{CallbackUrl, Kind, ShopCode, State, TransactionId, UnixDay};
pub(super) use crate::store::rows::operation::{NewRow, StoredRow, opened_fields, other_than, sealed_payer};
pub(super) use crate::store::rows::{direction_number, direction_of, finished_at, provider_number, status_number};
use crate::store::{Draft, V1Told};

impl NewRow {
    /// Inserts the operation in `state`, which counts for its customer on `counted_day`; `false` when its id exists.
    pub(in crate::store::sqlite) fn insert(
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
            direction_number(operation.direction()),
            status_number(state.status()),
            operation.created_at.0,
            finished_at(state),
            operation.amount.hundredths().cast_signed(),
            operation.customer_account_id.map(|id| id.0),
            self.kept.as_ref().map(|list| list.id),
            comparison.digest.0,
            operation.currency.as_str(),
            operation.merchant.as_str(),
            operation.order_id.as_str(),
            api_key,
            operation.shop.as_str(),
            operation.method.as_ref().map(ShopCode::as_str),
            operation.payment_method,
            operation.callback_url.as_str(),
            v1.as_ref().and_then(V1Told::relayed_to).map(CallbackUrl::as_str),
            deposit.map(|deposit| deposit.success_url.as_str()),
            deposit.and_then(|deposit| other_than(&deposit.success_url, &deposit.pending_url)),
            deposit.and_then(|deposit| other_than(&deposit.success_url, &deposit.fail_url)),
            deposit.map(|deposit| deposit.redirect_url.expose()),
            self.account,
            self.payer,
            self.fields,
            counted_day.map(|day| day.0),
            provider_number(operation.provider),
            v1.is_some(),
            matches!(v1, Some(V1Told::Relayed(_))),
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

const INSERT: &str = "INSERT INTO operations (transaction_id, direction, status, created_at, finished_at, \
    amount, customer_account_id, kept, digest, currency, merchant, order_id, api_key, shop, method, \
    payment_method, callback_url, v1_callback_url, success_url, pending_url, fail_url, redirect_url, account, payer, \
    fields, counted_day, provider, from_v1, relayed) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, \
    ?24, ?25, ?26, ?27, ?28, ?29) ON CONFLICT DO NOTHING";

/// All but the fields. The order is [`StoredRow::read`]'s.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT operations.transaction_id, direction, status, created_at, finished_at, amount, \
             customer_account_id, kept, digest, currency, merchant, order_id, api_key, shop, method, \
             payment_method, callback_url, v1_callback_url, success_url, pending_url, fail_url, redirect_url, \
             account, payer, operations.provider, from_v1 + 2 * relayed FROM operations ",
            $rest
        )
    };
}

impl StoredRow {
    pub(in crate::store::sqlite) fn by_id(
        connection: &Connection,
        id: TransactionId,
    ) -> rusqlite::Result<Option<Self>> {
        let mut statement = connection.prepare_cached(Self::BY_ID)?;
        statement.query_row([id.to_stored()], Self::read).optional()
    }

    /// One operation; the parameter is its id.
    pub(in crate::store::sqlite) const BY_ID: &str = select!("WHERE transaction_id = ?1");

    /// Operations after an id, in order; the second parameter is how many.
    pub(in crate::store::sqlite) const SLICE: &str =
        select!("WHERE transaction_id > ?1 ORDER BY transaction_id LIMIT ?2");

    /// A page of a merchant's v1 list: see [`super::lists::page`].
    pub(in crate::store::sqlite) const V1_PAGE: &str = select!(
        "INDEXED BY operations_by_v1 WHERE from_v1 = 1 AND merchant = ?1 AND transaction_id BETWEEN ?2 AND ?3 \
         AND (?4 IS NULL OR direction = ?4) AND (?5 IS NULL OR shop = ?5) AND (?6 IS NULL OR currency = ?6) \
         AND (?7 IS NULL OR status = ?7) ORDER BY transaction_id DESC LIMIT ?8 OFFSET ?9"
    );

    pub(in crate::store::sqlite) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
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
            currency: row.get(9)?,
            merchant: row.get(10)?,
            order_id: row.get(11)?,
            api_key: row.get(12)?,
            shop: row.get(13)?,
            method: row.get(14)?,
            payment_method: row.get(15)?,
            callback_url: row.get(16)?,
            v1_callback_url: row.get(17)?,
            success_url: row.get(18)?,
            pending_url: row.get(19)?,
            fail_url: row.get(20)?,
            redirect_url: row.get(21)?,
            account: row.get(22)?,
            payer: row.get(23)?,
            provider: row.get(24)?,
            origin: row.get(25)?,
        })
    }
}

/// Reads the sealed `fields` of an operation.
pub(super) fn fields_of(connection: &Connection, id: TransactionId) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .prepare_cached("SELECT fields FROM operations WHERE transaction_id = ?1")?
        .query_row([id.to_stored()], |row| row.get(0))
        .optional()
}
