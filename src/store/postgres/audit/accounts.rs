//! What an audit looks at in balances, once it has summed the entries.

use std::collections::HashMap;

use deadpool_postgres::Transaction;

use super::ledger::Account;
use super::{Findings, is_bucket_of};
use crate::store::postgres::fault::Fault;
use crate::store::postgres::row::{get, small};
use crate::store::rows::NotOurs;

/// A balance is its row and the changes that were not folded into it yet. A sum may be out of a balance's range: it is read
/// as text.
const BALANCES: &str = "SELECT bucket, merchant, currency, account, sum(amount)::text FROM \
    (SELECT bucket, merchant, currency, account, balance AS amount FROM accounts \
    UNION ALL SELECT bucket, merchant, currency, account, amount FROM balance_changes) AS parts \
    GROUP BY bucket, merchant, currency, account ORDER BY bucket, merchant, currency, account";

/// The running balances are the sums of the entries, and sum to zero; merchants whose ledger was opened are known.
pub(super) async fn compare(snapshot: &Transaction<'_>, findings: &mut Findings) -> Result<(), Fault> {
    totals(findings);
    for row in snapshot.query(BALANCES, &[]).await? {
        let account: Account = (get(&row, 0)?, get(&row, 1)?, get(&row, 2)?, small(&row, 3)?);
        let balance: i128 = get::<&str>(&row, 4)?.parse().map_err(|_| NotOurs("accounts.balance"))?;
        // Whoever decides by a balance makes its row, before anything is booked.
        if findings.sums.remove(&account).unwrap_or(0) != balance {
            let (_, merchant, currency, account) = account;
            findings.found.problem(format!(
                "merchant {merchant}, {currency}: the balance of account {account} is not the sum of its entries"
            ));
        }
    }
    for (_, merchant, currency, account) in std::mem::take(&mut findings.sums).into_keys() {
        findings.found.problem(format!("merchant {merchant}, {currency}: account {account} has no balance"));
    }
    merchants(snapshot, findings).await
}

fn totals(findings: &mut Findings) {
    let mut totals: HashMap<(&str, &str), i128> = HashMap::new();
    for ((_, merchant, currency, _), sum) in &findings.sums {
        *totals.entry((merchant, currency)).or_default() += sum;
    }
    for ((merchant, currency), total) in totals.into_iter().filter(|(_, total)| *total != 0) {
        findings.found.problem(format!("merchant {merchant}, {currency}: the entries sum to {total} hundredths"));
    }
}

/// A merchant that is not known would be given its opening balances again.
async fn merchants(snapshot: &Transaction<'_>, findings: &mut Findings) -> Result<(), Fault> {
    for row in snapshot.query("SELECT bucket, merchant FROM merchants", &[]).await? {
        let (bucket, merchant): (i16, &str) = (get(&row, 0)?, get(&row, 1)?);
        if is_bucket_of(bucket, merchant) {
            findings.opened.remove(merchant);
        } else {
            findings.found.problem(format!("merchant {merchant}: it is known in a bucket that is not its own"));
        }
    }
    for merchant in std::mem::take(&mut findings.opened) {
        findings.found.problem(format!("merchant {merchant}: its ledger was opened and it is not known"));
    }
    Ok(())
}
