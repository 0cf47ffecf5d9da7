//! The double-entry ledger: entries, and the running balances that are kept with them.

use rusqlite::{Connection, OptionalExtension};

use crate::domain::{Balance, LedgerAccount, MerchantId, Posting};
use crate::store::rows::ledger::{LedgerEntry, account_number, posting_number};

/// A balance would leave the range of a signed 64-bit number.
#[derive(Debug, thiserror::Error)]
#[error("an account's balance would be out of range, so nothing was booked")]
struct OutOfRange;

/// The balance of `balance` after `amount` was added.
///
/// # Errors
/// It is out of range.
fn sum(balance: i64, amount: i64) -> rusqlite::Result<i64> {
    balance.checked_add(amount).ok_or_else(|| rusqlite::Error::ToSqlConversionFailure(Box::new(OutOfRange)))
}

/// Books a posting.
///
/// # Errors
/// The occasion has this posting already, or a balance would be out of range: the caller's command is at fault, and
/// nothing of it is stored.
pub(super) fn book(connection: &Connection, posting: Posting, booking: LedgerEntry<'_>) -> rusqlite::Result<()> {
    let LedgerEntry { source, merchant, currency, amount, at } = booking;
    let (from, to) = posting.from_to();
    for (account, amount) in [(from, -amount), (to, amount)] {
        connection
            .prepare_cached(
                "INSERT INTO entries (transaction_id, posting, currency, account, amount, merchant, booked_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute((
                source.to_stored(),
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
    use crate::domain::{Amount, Bucket, Currency, UnixMillis};
    use crate::store::create::open_alone;
    use crate::store::sqlite::schema::MIGRATIONS;
    use crate::store::sqlite::transaction::{SqliteRows, at_once};

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
            at_once(open_alone(&mut SqliteRows(&connection), merchant, &opening, at, 0xfff)).unwrap();
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
