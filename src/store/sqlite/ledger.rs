//! The double-entry ledger: entries, and the running balances that are kept with them.

use rusqlite::{Connection, OptionalExtension};

use crate::domain::{Amount, Balance, Bucket, Currency, LedgerAccount, MerchantId, Posting, TransactionId, UnixMillis};
pub(super) use crate::store::rows::posting::{
    Booking, Occasion, account_number, of_creation, of_result, posting_number, signed,
};

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
/// The occasion has this posting already, or a balance would be out of range: the caller's command is at fault, and
/// nothing of it is stored.
pub(super) fn book(connection: &Connection, posting: Posting, booking: Booking<'_>) -> rusqlite::Result<()> {
    let Booking { occasion, merchant, currency, amount, at } = booking;
    let (from, to) = posting.from_to();
    for (account, amount) in [(from, -amount), (to, amount)] {
        connection
            .prepare_cached(
                "INSERT INTO entries (transaction_id, posting, currency, account, amount, merchant, booked_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute((
                occasion.to_stored(),
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

/// Remembers a merchant and books its opening balances: it must not be known yet.
pub(super) fn open(
    connection: &Connection,
    occasion: Occasion,
    merchant: &MerchantId,
    opening: &[(Currency, Amount)],
    at: UnixMillis,
) -> rusqlite::Result<()> {
    let merchant = merchant.as_str();
    connection.prepare_cached("INSERT INTO merchants (merchant) VALUES (?1)")?.execute([merchant])?;
    for (currency, amount) in opening {
        let booking = Booking { occasion, merchant, currency: currency.as_str(), amount: signed(*amount), at };
        book(connection, Posting::Opened, booking)?;
    }
    Ok(())
}

/// Opens a ledger without an operation, unless the merchant is known. `random` draws the id.
pub(super) fn open_alone(
    connection: &Connection,
    merchant: &MerchantId,
    opening: &[(Currency, Amount)],
    at: UnixMillis,
    random: u64,
) -> rusqlite::Result<()> {
    if knows(connection, merchant)? {
        return Ok(());
    }
    // Merchants of the same bucket that are opened in the same millisecond may draw the same id: the next one is free.
    let mut steps = 0;
    let occasion = loop {
        let id = TransactionId::compose(at, Bucket::of(merchant), random.wrapping_add(steps));
        let occasion = Occasion::Opening(id);
        if steps == OPENING_IDS || !has_entries(connection, occasion)? {
            break occasion;
        }
        steps += 1;
    };
    open(connection, occasion, merchant, opening, at)
}

/// How many ids a bucket has in a millisecond.
const OPENING_IDS: u64 = 1 << 12;

fn has_entries(connection: &Connection, occasion: Occasion) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM entries WHERE transaction_id = ?1)")?
        .query_row([occasion.to_stored()], |row| row.get(0))
}

/// Whether a merchant was seen: its opening balances were booked, or never will be.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::schema::MIGRATIONS;

    #[test]
    fn openings_that_draw_the_same_id_do_not_meet() {
        let connection = Connection::open_in_memory().unwrap();
        for migration in MIGRATIONS {
            connection.execute_batch(migration).unwrap();
        }
        let first = MerchantId::new("m0").unwrap();
        let same_bucket = (1..).map(|number| MerchantId::new(&format!("m{number}")).unwrap());
        let second = same_bucket.into_iter().find(|other| Bucket::of(other) == Bucket::of(&first)).unwrap();
        let opening = [(Currency::new("EUR").unwrap(), Amount::from_hundredths(700).unwrap())];
        let at = UnixMillis(1_790_000_000_000);
        for merchant in [&first, &second, &first] {
            open_alone(&connection, merchant, &opening, at, 0xfff).unwrap();
            assert!(knows(&connection, merchant).unwrap());
        }
        for merchant in [&first, &second] {
            let booked = balances(&connection, merchant.as_str()).unwrap();
            assert_eq!(booked, [("EUR".to_owned(), Balance { available: 700, held: 0 })]);
        }
        let ids: Vec<i64> = connection
            .prepare("SELECT DISTINCT transaction_id FROM entries")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let bucket = i64::from(Bucket::of(&first).number());
        assert_eq!(ids.len(), 2);
        assert!(ids.iter().all(|id| *id < 0 && (id >> 12) & 1023 == bucket), "{ids:?} in bucket {bucket}");
    }
}
