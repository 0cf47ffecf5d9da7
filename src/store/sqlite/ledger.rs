//! The double-entry ledger: entries, and the running balances that are kept with them.

use rusqlite::{Connection, OptionalExtension};

use crate::domain::{
    Amount, Balance, Currency, Direction, LedgerAccount, MerchantId, Posting, Status, TransactionId, UnixMillis,
};

/// Whose money moves, for which operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Booking<'a> {
    pub(super) id: TransactionId,
    pub(super) merchant: &'a str,
    pub(super) currency: &'a str,
    /// In hundredths, above zero.
    pub(super) amount: i64,
    pub(super) at: UnixMillis,
}

/// A balance would leave the range of a signed 64-bit number.
#[derive(Debug, thiserror::Error)]
#[error("an account's balance would be out of range, so nothing was booked")]
struct OutOfRange;

/// The balance of `balance` after `amount` was added.
///
/// # Errors
/// It is out of range.
pub(super) fn sum(balance: i64, amount: i64) -> rusqlite::Result<i64> {
    balance.checked_add(amount).ok_or_else(|| rusqlite::Error::ToSqlConversionFailure(Box::new(OutOfRange)))
}

/// Books a posting.
///
/// # Errors
/// The operation has this posting already, or a balance would be out of range: the caller's command is at fault, and
/// nothing of it is stored.
pub(super) fn book(connection: &Connection, posting: Posting, booking: Booking<'_>) -> rusqlite::Result<()> {
    let Booking { id, merchant, currency, amount, at } = booking;
    let (from, to) = posting.from_to();
    for (account, amount) in [(from, -amount), (to, amount)] {
        connection
            .prepare_cached(
                "INSERT INTO entries (transaction_id, posting, currency, account, amount, merchant, booked_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute((
                id.to_stored(),
                posting_number(posting),
                currency,
                account_number(account),
                amount,
                merchant,
                at.0,
            ))?;
        let balance = sum(balance(connection, merchant, currency, account)?, amount)?;
        connection
            .prepare_cached(
                "INSERT INTO accounts (merchant, currency, account, balance) VALUES (?1, ?2, ?3, ?4) \
                 ON CONFLICT DO UPDATE SET balance = excluded.balance",
            )?
            .execute((merchant, currency, account_number(account), balance))?;
    }
    Ok(())
}

/// Remembers a merchant and books its opening balances, in the commit of its first operation.
pub(super) fn open(
    connection: &Connection,
    id: TransactionId,
    merchant: &MerchantId,
    opening: &[(Currency, Amount)],
    at: UnixMillis,
) -> rusqlite::Result<()> {
    let merchant = merchant.as_str();
    connection.prepare_cached("INSERT INTO merchants (merchant) VALUES (?1)")?.execute([merchant])?;
    for (currency, amount) in opening {
        let booking = Booking { id, merchant, currency: currency.as_str(), amount: signed(*amount), at };
        book(connection, Posting::Opened, booking)?;
    }
    Ok(())
}

/// Whether a merchant has operations, so that its opening balances were booked, or never will be.
pub(super) fn knows(connection: &Connection, merchant: &MerchantId) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM merchants WHERE merchant = ?1)")?
        .query_row([merchant.as_str()], |row| row.get(0))
}

/// The balance of an account; zero when nothing was booked.
pub(super) fn balance(
    connection: &Connection,
    merchant: &str,
    currency: &str,
    account: LedgerAccount,
) -> rusqlite::Result<i64> {
    let balance = connection
        .prepare_cached("SELECT balance FROM accounts WHERE merchant = ?1 AND currency = ?2 AND account = ?3")?
        .query_row((merchant, currency, account_number(account)), |row| row.get(0))
        .optional()?;
    Ok(balance.unwrap_or(0))
}

/// What a merchant has in each currency, sorted.
pub(super) fn balances(connection: &Connection, merchant: &str) -> rusqlite::Result<Vec<(String, Balance)>> {
    let mut statement = connection.prepare_cached(
        "SELECT currency, sum(balance) FILTER (WHERE account = ?2), sum(balance) FILTER (WHERE account = ?3) \
         FROM accounts WHERE merchant = ?1 GROUP BY currency ORDER BY currency",
    )?;
    let accounts = (merchant, account_number(LedgerAccount::Available), account_number(LedgerAccount::Held));
    statement
        .query_map(accounts, |row| {
            let (available, held): (Option<i64>, Option<i64>) = (row.get(1)?, row.get(2)?);
            Ok((row.get(0)?, Balance { available: available.unwrap_or(0), held: held.unwrap_or(0) }))
        })?
        .collect()
}

/// What the creation of an operation in this state books.
pub(super) const fn of_creation(direction: Direction, status: Status) -> &'static [Posting] {
    match (direction, status) {
        (Direction::Payin, Status::Success) => &[Posting::Credited],
        (Direction::Payout, Status::Pending) => &[Posting::Held],
        (Direction::Payout, Status::Success) => &[Posting::Held, Posting::Taken],
        (Direction::Payin, Status::Pending | Status::Failed) | (Direction::Payout, Status::Failed) => &[],
    }
}

/// What the result of a pending operation books.
pub(super) const fn of_result(direction: Direction, status: Status) -> &'static [Posting] {
    match (direction, status) {
        (Direction::Payin, Status::Success) => &[Posting::Credited],
        (Direction::Payout, Status::Success) => &[Posting::Taken],
        (Direction::Payout, Status::Failed) => &[Posting::Released],
        (_, Status::Pending) | (Direction::Payin, Status::Failed) => &[],
    }
}

/// An amount, which always fits.
pub(super) const fn signed(amount: Amount) -> i64 {
    amount.hundredths().cast_signed()
}

pub(super) const fn posting_number(posting: Posting) -> i64 {
    match posting {
        Posting::Opened => 0,
        Posting::Credited => 1,
        Posting::Held => 2,
        Posting::Taken => 3,
        Posting::Released => 4,
    }
}

pub(super) const fn account_number(account: LedgerAccount) -> i64 {
    match account {
        LedgerAccount::Outside => 0,
        LedgerAccount::Opening => 1,
        LedgerAccount::Available => 2,
        LedgerAccount::Held => 3,
    }
}
