//! What an audit looks at in the ledger.

use std::fmt::Arguments;

use tokio_postgres::Row;

use super::{Findings, Place, is_bucket_of};
use crate::domain::Operation;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::row::{bucket_in_number, get, small};
use crate::store::rows::booked::{Entry, are_an_opening, booked_as_demanded};

/// An account: bucket, merchant, currency, number.
pub(super) type Account = (i16, Box<str>, Box<str>, i64);

/// In the order of the key; [`read`] takes what this selects.
pub(super) const BETWEEN: &str = "SELECT bucket, transaction_id, posting, currency, account, amount, merchant \
    FROM entries WHERE (bucket, transaction_id) > ($1, $2) AND (bucket, transaction_id) <= ($3, $4) \
    ORDER BY bucket, transaction_id, posting, currency, account";

fn read(row: &Row) -> Result<Entry, Fault> {
    Ok(Entry {
        posting: small(row, 2)?,
        currency: get(row, 3)?,
        account: small(row, 4)?,
        amount: get(row, 5)?,
        merchant: get(row, 6)?,
    })
}

/// What was booked on one occasion.
pub(super) struct Booked {
    pub(super) place: Place,
    entries: Vec<Entry>,
}

impl Booked {
    /// All that rows in the order of [`BETWEEN`] tell of.
    pub(super) fn read_all(rows: &[Row]) -> Result<Vec<Self>, Fault> {
        let mut all: Vec<Self> = Vec::new();
        for row in rows {
            let (place, entry) = ((get(row, 0)?, get(row, 1)?), read(row)?);
            match all.last_mut().filter(|booked| booked.place == place) {
                Some(booked) => booked.entries.push(entry),
                None => all.push(Self { place, entries: vec![entry] }),
            }
        }
        Ok(all)
    }
}

impl Findings {
    /// Adds to the sums of accounts.
    pub(super) fn count(&mut self, booked: &Booked) {
        let (bucket, _) = booked.place;
        for entry in &booked.entries {
            self.found.entries += 1;
            let account = (bucket, entry.merchant.clone(), entry.currency.clone(), entry.account);
            *self.sums.entry(account).or_default() += i128::from(entry.amount);
        }
    }

    /// What was booked without an operation has a number below zero and is an opening.
    pub(super) fn booked_alone(&mut self, booked: &Booked) {
        let (Booked { place: (bucket, of), entries }, Some(first)) = (booked, booked.entries.first()) else { return };
        if *of >= 0 {
            return self.found.problem(format!("operation {of}: has entries but does not exist"));
        }
        if !entries.iter().all(Entry::is_opening) {
            self.found.problem(format!("opening {of}: has entries of another kind"));
        }
        if *bucket != bucket_in_number(*of) || !is_bucket_of(*bucket, &first.merchant) {
            self.found.problem(format!("opening {of}: its bucket is not the one of its merchant"));
        }
        self.opening(&first.merchant, format_args!("opening {of}"), entries);
    }

    /// What was booked with an operation: what its state demands, and maybe its merchant's opening.
    pub(super) fn booked_with(&mut self, operation: &Operation, booked: Option<Booked>) {
        let mut entries = booked.map(|booked| booked.entries).unwrap_or_default();
        let rest = entries.split_off(entries.partition_point(Entry::is_opening));
        let id = operation.id;
        self.opening(operation.merchant.as_str(), format_args!("operation {id}"), &entries);
        if !booked_as_demanded(operation, &rest) {
            let status = operation.state.status().as_str();
            self.found.problem(format!("operation {id}: its entries are not those of a {status} operation"));
        }
    }

    /// A ledger is opened once: with any one operation of its merchant, or alone.
    fn opening(&mut self, merchant: &str, with: Arguments<'_>, entries: &[Entry]) {
        if entries.is_empty() {
            return;
        }
        if !are_an_opening(entries, merchant) {
            self.found.problem(format!("{with}: the opening booked with it is not one"));
        }
        if !self.opened.insert(merchant.into()) {
            self.found.problem(format!("merchant {merchant}: its ledger was opened more than once"));
        }
    }
}
