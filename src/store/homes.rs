//! Where the order of a merchant, direction and `order_id` lives, for ever (contract section 6). One insert into the table
//! `homes` decides create, repeat and reservation. A home is given up in one case only: a remote engine refused the create for
//! certain (see [`cancel`](super::journal::moves::cancel)).

use super::rows::CorruptRow;
use super::rows::operation::StoredRow;
use super::transaction::Transaction;
use super::{EntryId, Reservations, V1Lookup};
use crate::domain::{Bucket, Fingerprint, MerchantId, TransactionId, UnixMillis};

/// Where an order lives. The bucket of its merchant is in each of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// Here, as an operation.
    Operation(TransactionId),
    /// At a remote engine, as an entry of the journal.
    Entry(EntryId),
    /// At the old v1 service; imported when the number says, which is made as a `transaction_id` is.
    Imported(TransactionId),
}

/// `homes.home` of operations. Statements say it themselves.
const OPERATION: i64 = 0;
const ENTRY: i64 = 1;
const IMPORTED: i64 = 3;

impl Home {
    /// At the old v1 service, imported now.
    pub(super) fn imported(merchant: &MerchantId, at: UnixMillis) -> Self {
        Self::Imported(TransactionId::compose(at, Bucket::of(merchant), 0))
    }

    /// The columns `home` and `ref`.
    pub(super) const fn columns(self) -> (i64, i64) {
        match self {
            Self::Operation(id) => (OPERATION, id.to_stored()),
            Self::Entry(EntryId(id)) => (ENTRY, id),
            Self::Imported(at) => (IMPORTED, at.to_stored()),
        }
    }

    /// Understands the columns `home` and `ref`.
    ///
    /// # Errors
    /// They hold what was never written there.
    pub(super) fn of_columns(home: i64, reference: i64) -> Result<Self, CorruptRow> {
        let id = TransactionId::from_stored(reference).ok_or(CorruptRow("ref"))?;
        match home {
            OPERATION => Ok(Self::Operation(id)),
            ENTRY => Ok(Self::Entry(EntryId(reference))),
            IMPORTED => Ok(Self::Imported(id)),
            _ => Err(CorruptRow("home")),
        }
    }
}

/// What stands under an order.
pub(super) enum OrderRow {
    Free,
    Operation(Box<StoredRow>),
    /// It lives elsewhere.
    Elsewhere,
}

impl V1Lookup {
    /// What an order is to v1 that lives there.
    pub(super) const fn of(home: Home) -> Option<Self> {
        match home {
            Home::Entry(_) => Some(Self::Entry),
            Home::Imported(_) => Some(Self::Reservation),
            Home::Operation(_) => None,
        }
    }
}

/// What a transaction does with homes.
pub(super) trait HomeRows: Transaction {
    /// Claims a home for each of some orders of one merchant; gives for each where it lives already.
    async fn claim_homes(&mut self, orders: &[Fingerprint], home: Home) -> Result<Vec<Option<Home>>, Self::Error>;

    /// Reads where an order lives.
    async fn home(&mut self, merchant: &MerchantId, order: Fingerprint) -> Result<Option<Home>, Self::Error>;
}

/// Reserves orders of a merchant for v1; those that live here are left alone.
pub(super) async fn reserve<R: HomeRows>(
    rows: &mut R,
    orders: &[Fingerprint],
    imported: Home,
) -> Result<Reservations, R::Error> {
    let mut reservations = Reservations::default();
    for met in rows.claim_homes(orders, imported).await? {
        match met {
            None => reservations.new += 1,
            Some(Home::Imported(_)) => reservations.known += 1,
            Some(Home::Operation(_) | Home::Entry(_)) => reservations.operations += 1,
        }
    }
    Ok(reservations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_its_columns() {
        let merchant = MerchantId::new("acme").unwrap();
        let Home::Imported(id) = Home::imported(&merchant, UnixMillis(1_790_000_000_000)) else { panic!("it is") };
        assert_eq!(id.bucket(), Bucket::of(&merchant));
        for home in [Home::Operation(id), Home::Entry(EntryId(id.to_stored())), Home::Imported(id)] {
            let (kind, reference) = home.columns();
            assert_eq!(Home::of_columns(kind, reference).ok(), Some(home));
        }
        assert!(Home::of_columns(2, id.to_stored()).is_err() && Home::of_columns(0, 0).is_err());
    }
}
