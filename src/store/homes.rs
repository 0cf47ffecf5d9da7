//! The home of an order (merchant, direction and `order_id`): where it is stored, for ever (contract section 6). One
//! insert into the table `homes` decides between create, repeat and reservation. A home is released in one case only: a
//! remote engine has certainly refused the create (see [`cancel`](super::journal::moves::cancel)).

use super::rows::operation::StoredRow;
use super::rows::{CorruptRow, Transaction};
use super::{EntryId, Reservations, V1Lookup};
use crate::domain::{Bucket, Fingerprint, MerchantId, TransactionId, UnixMillis};

/// Where an order is stored. Each of the numbers contains the bucket of the merchant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// In this store, as an operation.
    Operation(TransactionId),
    /// With a remote engine, as an entry of the journal.
    Entry(EntryId),
    /// With the old v1 service. The number encodes the time of the import, in the form of a `transaction_id`.
    Imported(TransactionId),
}

/// `homes.home` of operations. SQL statements contain the literal 0.
const OPERATION: i64 = 0;
const ENTRY: i64 = 1;
const IMPORTED: i64 = 3;

impl Home {
    /// The home of an order that is imported now.
    pub(super) fn imported(merchant: &MerchantId, at: UnixMillis) -> Self {
        Self::Imported(TransactionId::compose(at, Bucket::of(merchant), 0))
    }

    /// Returns the columns `home` and `ref`.
    pub(super) const fn columns(self) -> (i64, i64) {
        match self {
            Self::Operation(id) => (OPERATION, id.to_stored()),
            Self::Entry(EntryId(id)) => (ENTRY, id),
            Self::Imported(at) => (IMPORTED, at.to_stored()),
        }
    }

    /// Decodes the columns `home` and `ref`.
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

/// What is stored under an order.
pub(super) enum OrderRow {
    Free,
    Operation(Box<StoredRow>),
    /// Its home is an entry or a reservation.
    Elsewhere,
}

impl V1Lookup {
    /// Returns how an order with this home is known to v1.
    pub(super) const fn of(home: Home) -> Option<Self> {
        match home {
            Home::Entry(_) => Some(Self::Entry),
            Home::Imported(_) => Some(Self::Reservation),
            Home::Operation(_) => None,
        }
    }
}

/// The row operations on homes.
pub(super) trait HomeRows: Transaction {
    /// Claims a home for each of several orders of one merchant. Returns for each order its existing home, if any,
    /// which is kept.
    async fn claim_homes(&mut self, orders: &[Fingerprint], home: Home) -> Result<Vec<Option<Home>>, Self::Error>;

    /// Reads the home of an order.
    async fn home(&mut self, merchant: &MerchantId, order: Fingerprint) -> Result<Option<Home>, Self::Error>;
}

/// Reserves orders of a merchant for v1. Orders that have an operation or an entry are left unchanged.
pub(super) async fn reserve<R: HomeRows>(
    rows: &mut R,
    orders: &[Fingerprint],
    imported: Home,
) -> Result<Reservations, R::Error> {
    let mut reservations = Reservations::default();
    for existing in rows.claim_homes(orders, imported).await? {
        match existing {
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
    fn homes_round_trip() {
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
