//! The postings of operations with their stored numbers, and the ledger entries that audits require of an operation.

use crate::domain::{Direction, LedgerAccount, Operation, Posting, Status, TransactionId, UnixMillis};

/// The operation or opening that ledger entries belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum PostingSource {
    /// An operation. An opening may be posted with the first operation of its merchant.
    Operation(TransactionId),
    /// An opening without an operation. The id is composed like an operation's, with the same bucket in it, and stored
    /// below zero, so that it never equals one.
    Opening(TransactionId),
}

impl PostingSource {
    pub(in crate::store) const fn to_stored(self) -> i64 {
        match self {
            Self::Operation(id) => id.to_stored(),
            Self::Opening(id) => id.to_stored() | i64::MIN,
        }
    }
}

/// The common columns of the entries posted for one operation or opening.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct LedgerEntry<'a> {
    pub(in crate::store) source: PostingSource,
    pub(in crate::store) merchant: &'a str,
    pub(in crate::store) currency: &'a str,
    /// In hundredths, above zero.
    pub(in crate::store) amount: i64,
    pub(in crate::store) at: UnixMillis,
}

pub(in crate::store) const fn posting_number(posting: Posting) -> i64 {
    match posting {
        Posting::Opened => 0,
        Posting::Credited => 1,
        Posting::Held => 2,
        Posting::Taken => 3,
        Posting::Released => 4,
    }
}

/// Returns the posting with this number; `None` if there is none.
pub(in crate::store) fn posting_of(number: i64) -> Option<Posting> {
    Posting::ALL.into_iter().find(|posting| posting_number(*posting) == number)
}

/// Returns the account with this number; `None` if there is none.
pub(in crate::store) fn account_of(number: i64) -> Option<LedgerAccount> {
    LedgerAccount::ALL.into_iter().find(|account| account_number(*account) == number)
}

pub(in crate::store) const fn account_number(account: LedgerAccount) -> i64 {
    match account {
        LedgerAccount::Outside => 0,
        LedgerAccount::Opening => 1,
        LedgerAccount::Available => 2,
        LedgerAccount::Held => 3,
    }
}

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
    let mut required = entries_of(operation, Posting::of_creation(direction, status));
    if required.is_empty() && !entries.is_empty() && direction == Direction::Payout {
        // The operation failed after it had been pending.
        required = entries_of(operation, Posting::of_creation(direction, Status::Pending));
        required.extend(entries_of(operation, Posting::of_result(direction, status)));
        required.sort_unstable();
    }
    required == entries
}

fn entries_of(operation: &Operation, postings: &[Posting]) -> Vec<LedgerRow> {
    let amount = operation.amount.signed();
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
