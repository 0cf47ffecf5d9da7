//! Homes: where the order of a merchant, direction and `order_id` is stored, for ever (contract section 6, "Homes and
//! modes"). One insert into the table `homes` decides between create, repeat and reservation. A home is released in one case
//! only: a remote engine has certainly refused the create (see [`cancel`](super::journal::moves::cancel)).

mod api;

pub use api::OrderHomes;

use super::sql::{Columns, CorruptRow, Sql, Transaction, params, sql};
use super::{EntryId, Reservations};
use crate::domain::{Bucket, Fingerprint, MerchantId, TransactionId, UnixMillis};

/// Where an order is stored. Each of the numbers has the form of a `transaction_id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// In this store, as an operation.
    Operation(TransactionId),
    /// With a remote engine, as an entry of the journal.
    Entry(EntryId),
    /// With the old v1 service, to which a create was forwarded. The number encodes the time of the claim.
    Claimed(TransactionId),
    /// With the old v1 service. The number encodes the time of the import.
    Imported(TransactionId),
    /// With a remote engine, to which a native create was forwarded. The number encodes the time of the claim.
    Native(TransactionId),
    /// Nowhere: it was made after the backup that this store was restored from. The number encodes the time of the adoption.
    Lost(TransactionId),
}

/// Who a new order is claimed for, before its create is forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HomeClaim {
    /// The old v1 service.
    Legacy,
    /// A remote engine, as a native order.
    Native,
}

/// Where an order is at home, for ever (contract section 6, "Homes and modes").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderHome {
    /// Here, as an operation.
    Operation,
    /// Here, as an entry of the journal.
    Entry,
    /// Here, as a native order of a remote engine.
    Native,
    /// At the old v1 service: claimed or imported.
    Legacy,
    /// Nowhere: it was made after the backup that this store was restored from.
    Lost,
}

/// The home of an order, as operators find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundHome {
    /// Here, as this operation.
    Operation(TransactionId),
    /// Here, as this entry of the journal.
    Entry(EntryId),
    /// Another one, by its name in the API, and since when.
    Other(&'static str, UnixMillis),
}

impl FoundHome {
    pub(super) fn of(home: Home) -> Self {
        match home {
            Home::Operation(id) => Self::Operation(id),
            Home::Entry(id) => Self::Entry(id),
            Home::Claimed(at) => Self::Other("legacy", at.at()),
            Home::Imported(at) => Self::Other("reserved", at.at()),
            Home::Native(at) => Self::Other("engine", at.at()),
            Home::Lost(at) => Self::Other("lost", at.at()),
        }
    }
}

impl OrderHome {
    pub(super) const fn of(home: Home) -> Self {
        match home {
            Home::Operation(_) => Self::Operation,
            Home::Entry(_) => Self::Entry,
            Home::Native(_) => Self::Native,
            Home::Claimed(_) | Home::Imported(_) => Self::Legacy,
            Home::Lost(_) => Self::Lost,
        }
    }
}

/// `homes.home` of operations. SQL statements contain the literal 0.
const OPERATION: i64 = 0;
const ENTRY: i64 = 1;
const CLAIMED: i64 = 2;
const IMPORTED: i64 = 3;
const NATIVE: i64 = 4;
const LOST: i64 = 5;

impl Home {
    /// The home of an order that is imported now.
    pub(super) fn imported(merchant: &MerchantId, at: UnixMillis) -> Self {
        Self::Imported(TransactionId::compose(at, Bucket::of(merchant), 0))
    }

    /// The home of an order that is found to be lost now.
    pub(super) fn lost(merchant: &MerchantId, at: UnixMillis) -> Self {
        Self::Lost(TransactionId::compose(at, Bucket::of(merchant), 0))
    }

    /// The home of an order that is claimed now.
    pub(super) fn claimed(claim: HomeClaim, merchant: &MerchantId, at: UnixMillis) -> Self {
        let at = TransactionId::compose(at, Bucket::of(merchant), 0);
        match claim {
            HomeClaim::Legacy => Self::Claimed(at),
            HomeClaim::Native => Self::Native(at),
        }
    }

    /// Returns the columns `home` and `ref`.
    pub(super) const fn columns(self) -> (i64, i64) {
        match self {
            Self::Operation(id) => (OPERATION, id.to_stored()),
            Self::Entry(EntryId(id)) => (ENTRY, id),
            Self::Claimed(at) => (CLAIMED, at.to_stored()),
            Self::Imported(at) => (IMPORTED, at.to_stored()),
            Self::Native(at) => (NATIVE, at.to_stored()),
            Self::Lost(at) => (LOST, at.to_stored()),
        }
    }

    /// Decodes the columns `home` and `ref`.
    ///
    /// # Errors
    /// They hold what was never written there.
    pub(super) fn of_columns(home: i64, reference: i64) -> Result<Self, CorruptRow> {
        let id = TransactionId::from_stored(reference).ok_or(CorruptRow::new("ref"))?;
        match home {
            OPERATION => Ok(Self::Operation(id)),
            ENTRY => Ok(Self::Entry(EntryId(reference))),
            CLAIMED => Ok(Self::Claimed(id)),
            IMPORTED => Ok(Self::Imported(id)),
            NATIVE => Ok(Self::Native(id)),
            LOST => Ok(Self::Lost(id)),
            _ => Err(CorruptRow::new("home")),
        }
    }
}

const CLAIM: Sql = sql!("INSERT INTO homes (order_key, home, ref) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING");

/// Claims the home of an order. Returns `false` if it has one already.
pub(super) async fn claim<T: Transaction>(tx: &T, order: Fingerprint, home: Home) -> Result<bool, T::Error> {
    let (kind, reference) = home.columns();
    Ok(tx.execute(CLAIM, &params![&order, kind, reference]).await? == 1)
}

/// Claims the homes of orders, one after the other, unless they have one; returns the home of each. `None`: it was released
/// meanwhile.
pub(super) async fn claim_each<T: Transaction>(
    tx: &T,
    claims: &[(Fingerprint, Home)],
) -> Result<Vec<Option<Home>>, T::Error> {
    let columns = claims.iter().map(|(order, home)| {
        let (kind, reference) = home.columns();
        params![order, kind, reference]
    });
    let sets: Vec<_> = columns.collect();
    let claimed = tx.execute_each(CLAIM, &sets).await?;
    let taken = claims.iter().zip(&claimed).filter(|(_, claimed)| **claimed == 0).map(|((order, _), _)| *order);
    let mut found = homes_of(tx, &taken.collect::<Vec<_>>()).await?.into_iter();
    let mut home = |((_, home), claimed): (&(Fingerprint, Home), u64)| {
        if claimed == 1 { Ok(Some(*home)) } else { Ok(found.next().flatten().transpose()?) }
    };
    claims.iter().zip(claimed).map(&mut home).collect()
}

/// Releases the home of an order.
pub(super) async fn release<T: Transaction>(tx: &T, order: Fingerprint) -> Result<(), T::Error> {
    tx.execute(sql!("DELETE FROM homes WHERE order_key = ?1"), &params![&order]).await.map(drop)
}

pub(super) const HOME: Sql = sql!("SELECT home, ref FROM homes WHERE order_key = ?1");

/// Reads the home of an order.
pub(super) async fn home_of<T: Transaction>(tx: &T, order: Fingerprint) -> Result<Option<Home>, T::Error> {
    tx.query_opt(HOME, &params![&order], |row| Home::of_columns(row.get(0)?, row.get(1)?)).await
}

/// Reads the homes of orders. A home that cannot be decoded is an error in its place.
pub(super) async fn homes_of<T: Transaction>(
    tx: &T,
    orders: &[Fingerprint],
) -> Result<Vec<Option<Result<Home, CorruptRow>>>, T::Error> {
    let sets: Vec<_> = orders.iter().map(|order| params![order]).collect();
    let read = |row: &dyn Columns| Ok(row.get(0).and_then(|home| Home::of_columns(home, row.get(1)?)));
    Ok(tx.query_each(HOME, &sets, read).await?.into_iter().map(|found| found.into_iter().next()).collect())
}

/// How often homes are claimed that are released meanwhile.
const CLAIM_ATTEMPTS: usize = 4;

/// Claims homes of orders. Returns for each order its existing home, if any, which is kept. They are claimed in the order of
/// their keys, so that two transactions wait for each other in one direction only.
async fn claim_all<T: Transaction>(tx: &T, claims: &[(Fingerprint, Home)]) -> Result<Vec<Option<Home>>, T::Error> {
    let mut existing = vec![None; claims.len()];
    let mut open: Vec<usize> = (0..claims.len()).collect();
    open.sort_by_key(|place| claims.get(*place).map(|(order, _)| order.0));
    for _ in 0..CLAIM_ATTEMPTS {
        let columns = open.iter().filter_map(|place| claims.get(*place)).map(|(order, home)| {
            let (kind, reference) = home.columns();
            params![order, kind, reference]
        });
        let sets: Vec<_> = columns.collect();
        let claimed = tx.execute_each(CLAIM, &sets).await?;
        let taken: Vec<usize> =
            open.iter().zip(claimed).filter(|(_, claimed)| *claimed == 0).map(|(place, _)| *place).collect();
        let keys: Vec<Fingerprint> =
            taken.iter().filter_map(|place| claims.get(*place)).map(|(order, _)| *order).collect();
        let found = homes_of(tx, &keys).await?;
        open.clear();
        for (place, found) in taken.into_iter().zip(found) {
            match (existing.get_mut(place), found.transpose()?) {
                (Some(existing), Some(home)) => *existing = Some(home),
                // It was released since.
                _ => open.push(place),
            }
        }
        if open.is_empty() {
            return Ok(existing);
        }
    }
    Err(CorruptRow::new("homes").into())
}

/// Reserves orders: with homes outside of this store. Orders that have another home are left unchanged.
pub(super) async fn reserve<T: Transaction>(tx: &T, claims: &[(Fingerprint, Home)]) -> Result<Reservations, T::Error> {
    let mut reservations = Reservations::default();
    for existing in claim_all(tx, claims).await? {
        match existing {
            None => reservations.new += 1,
            Some(Home::Claimed(_) | Home::Imported(_) | Home::Lost(_)) => reservations.known += 1,
            Some(Home::Operation(_) | Home::Entry(_) | Home::Native(_)) => reservations.operations += 1,
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
        let entry = Home::Entry(EntryId(id.to_stored()));
        let homes =
            [Home::Operation(id), entry, Home::Claimed(id), Home::Imported(id), Home::Native(id), Home::Lost(id)];
        for home in homes {
            let (kind, reference) = home.columns();
            assert_eq!(Home::of_columns(kind, reference).ok(), Some(home));
        }
        assert!(Home::of_columns(6, id.to_stored()).is_err() && Home::of_columns(0, 0).is_err());
    }
}
