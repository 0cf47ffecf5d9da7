//! The ledger entries that belong to an operation or an opening, as audits check them.

use super::posting::{account_number, of_creation, of_result, posting_number, signed};
use crate::domain::{Direction, Operation, Posting, Status};

/// A row of the ledger. The order of the fields is the order of its key.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::store) struct LedgerRow {
    pub(in crate::store) posting: i64,
    pub(in crate::store) currency: Box<str>,
    pub(in crate::store) account: i64,
    pub(in crate::store) amount: i64,
    pub(in crate::store) merchant: Box<str>,
}

impl LedgerRow {
    pub(in crate::store) const fn is_opening(&self) -> bool {
        self.posting == posting_number(Posting::Opened)
    }
}

/// Reports whether entries, in order, open this merchant's ledger: two entries per currency, which sum to zero.
pub(in crate::store) fn is_opening_of(entries: &[LedgerRow], merchant: &str) -> bool {
    let (from, to) = Posting::Opened.from_to();
    entries.chunks(2).all(|pair| match pair {
        [debit, credit] => {
            (debit.account, credit.account) == (account_number(from), account_number(to))
                && debit.currency == credit.currency
                && credit.amount > 0
                && debit.amount == -credit.amount
                && [debit, credit].iter().all(|entry| *entry.merchant == *merchant)
        }
        _ => false,
    })
}

/// Reports whether entries, in order, are exactly those that the state of their operation requires.
pub(in crate::store) fn match_operation(operation: &Operation, entries: &[LedgerRow]) -> bool {
    let (direction, status) = (operation.direction(), operation.state.status());
    let mut required = entries_of(operation, of_creation(direction, status));
    if required.is_empty() && !entries.is_empty() && direction == Direction::Payout {
        // The operation failed after it had been pending.
        required = entries_of(operation, of_creation(direction, Status::Pending));
        required.extend(entries_of(operation, of_result(direction, status)));
        required.sort_unstable();
    }
    required == entries
}

fn entries_of(operation: &Operation, postings: &[Posting]) -> Vec<LedgerRow> {
    let amount = signed(operation.amount);
    let mut entries: Vec<_> = postings
        .iter()
        .flat_map(|posting| {
            let (from, to) = posting.from_to();
            [(from, -amount), (to, amount)].map(|(account, amount)| LedgerRow {
                posting: posting_number(*posting),
                currency: operation.currency.as_str().into(),
                account: account_number(account),
                amount,
                merchant: operation.merchant.as_str().into(),
            })
        })
        .collect();
    entries.sort_unstable();
    entries
}
