//! Checks the ledger: entries, balances, and the merchants whose ledger was opened.

use std::collections::HashMap;
use std::fmt::Arguments;

use super::{AuditFindings, AuditedAccount};
use crate::domain::Operation;
use crate::store::rows::ledger::{LedgerRow, is_opening_of, match_operation};

/// The entries posted for one operation or opening.
pub(super) struct PostedEntries {
    pub(super) number: i64,
    entries: Vec<LedgerRow>,
}

impl PostedEntries {
    /// Groups entries, which are in the order of their positions.
    pub(super) fn all(entries: Vec<(i64, LedgerRow)>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for (number, entry) in entries {
            match all.last_mut().filter(|posted| posted.number == number) {
                Some(posted) => posted.entries.push(entry),
                None => all.push(Self { number, entries: vec![entry] }),
            }
        }
        all
    }
}

impl AuditFindings {
    /// Adds an entry to the sum of its account.
    pub(super) fn add_to_sums(&mut self, entry: &LedgerRow) {
        self.found.entries += 1;
        let account = (entry.merchant.clone(), entry.currency.clone(), entry.account);
        *self.sums.entry(account).or_default() += i128::from(entry.amount);
    }

    /// Checks entries without an operation: they must have a number below zero and be an opening.
    pub(super) fn check_without_operation(&mut self, posted: &PostedEntries) {
        let (PostedEntries { number, entries }, Some(first)) = (posted, posted.entries.first()) else { return };
        if *number >= 0 {
            return self.found.problem(format!("operation {number}: has entries but does not exist"));
        }
        let problems = [(!entries.iter().all(LedgerRow::is_opening), "has entries of another kind")];
        self.note_problems(format_args!("opening {number}"), problems);
        self.check_opening(&first.merchant, format_args!("opening {number}"), entries);
    }

    /// Checks the entries of an operation: those that its state requires, perhaps after its merchant's opening.
    pub(super) fn check_entries_of(&mut self, operation: &Operation, posted: Option<PostedEntries>) {
        let mut entries = posted.map(|posted| posted.entries).unwrap_or_default();
        let rest = entries.split_off(entries.partition_point(LedgerRow::is_opening));
        let id = operation.id;
        self.check_opening(operation.merchant.as_str(), format_args!("operation {id}"), &entries);
        if !match_operation(operation, &rest) {
            let status = operation.state.status().as_str();
            self.found.problem(format!("operation {id}: its entries are not those of a {status} operation"));
        }
    }

    /// Checks an opening. A ledger is opened once: with one operation of its merchant, or alone.
    fn check_opening(&mut self, merchant: &str, with: Arguments<'_>, entries: &[LedgerRow]) {
        if entries.is_empty() {
            return;
        }
        if !is_opening_of(entries, merchant) {
            self.found.problem(format!("{with}: the opening posted with it is invalid"));
        }
        if !self.opened.insert(merchant.into()) {
            self.found.problem(format!("merchant {merchant}: its ledger was opened more than once"));
        }
    }

    /// Checks that the balances are the sums of the entries, and that these sum to zero. Must be called after all
    /// entries were counted.
    pub(super) fn balances(&mut self, balances: impl IntoIterator<Item = (AuditedAccount, i128)>) {
        let mut totals: HashMap<(&str, &str), i128> = HashMap::new();
        for ((merchant, currency, _), sum) in &self.sums {
            *totals.entry((merchant, currency)).or_default() += sum;
        }
        for ((merchant, currency), total) in totals.into_iter().filter(|(_, total)| *total != 0) {
            self.found.problem(format!("merchant {merchant}, {currency}: the entries sum to {total} hundredths"));
        }
        for (account, balance) in balances {
            let sum = self.sums.remove(&account);
            // A transaction that locks a balance may insert its row before anything is posted.
            if sum.unwrap_or_default() != balance {
                let (merchant, currency, account) = account;
                self.found.problem(format!(
                    "merchant {merchant}, {currency}: the balance of account {account} is not the sum of its entries"
                ));
            }
        }
        for (merchant, currency, account) in std::mem::take(&mut self.sums).into_keys() {
            self.found.problem(format!("merchant {merchant}, {currency}: account {account} has no balance"));
        }
    }

    /// Checks that merchants whose ledger was opened are known: otherwise their opening balances would be posted again.
    /// Must be called after all entries were checked.
    pub(super) fn merchants(&mut self, known: impl IntoIterator<Item = Box<str>>) {
        for merchant in known {
            self.opened.remove(&merchant);
        }
        for merchant in std::mem::take(&mut self.opened) {
            self.found.problem(format!("merchant {merchant}: its ledger was opened, but the merchant is not stored"));
        }
    }
}
