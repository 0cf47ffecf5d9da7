//! The subjects of callbacks: operations and journal entries, and the addresses of their merchants.

use std::collections::HashMap;

use crate::domain::{Fingerprint, MerchantId, OrderId};
use crate::store::journal::entries;
use crate::store::rows::entry::EntryRow;
use crate::store::rows::operation::StoredRow;
use crate::store::rows::{CorruptRow, OrCorrupt, direction_of};
use crate::store::sql::{Columns, Sql, Transaction, params, sql};
use crate::store::{EntryId, RelayTarget, lookups};

/// The subject of a callback, as read and still encrypted.
pub(in crate::store) enum Subject {
    Operation(Box<StoredRow>),
    Entry(Box<EntryRow>),
}

const NONCE: Sql = sql!("SELECT nonce FROM callbacks WHERE key = ?1");

/// Reads the nonces and subjects of callbacks by their keys; leaves out those that are missing or cannot be read.
pub(in crate::store) async fn of_all<T: Transaction>(
    tx: &T,
    keys: &[i64],
) -> Result<HashMap<i64, (i64, Subject)>, T::Error> {
    let sets: Vec<_> = keys.iter().map(|key| params![*key]).collect();
    let nonces = tx.query_each(NONCE, &sets, |row| row.get::<i64>(0)).await?;
    let nonces = keys.iter().zip(nonces).filter_map(|(key, found)| Some((*key, *found.first()?)));
    let nonces: HashMap<i64, i64> = nonces.collect();
    let (entry_keys, operations): (Vec<i64>, Vec<i64>) = keys.iter().partition(|key| **key < 0);
    let numbers: Vec<i64> = entry_keys.iter().map(|key| key.wrapping_neg()).collect();
    let operations = lookups::operations(tx, &operations).await?.into_iter();
    let operations = operations.map(|(id, row)| (id, Subject::Operation(Box::new(row))));
    let entries = entries::by_numbers(tx, &numbers).await?.into_iter();
    let entries = entries.map(|row| (row.id.wrapping_neg(), Subject::Entry(Box::new(row))));
    let with_nonce = |(key, subject)| Some((key, (*nonces.get(&key)?, subject)));
    Ok(operations.chain(entries).filter_map(with_nonce).collect())
}

/// The merchant and the operation or entry of an order, if v1 created it with the relay's address.
pub(in crate::store) const RELAY_TARGET: Sql = sql!(
    "SELECT x.merchant, x.direction, o.order_id, x.api_key, CAST(NULL AS bigint) \
     FROM homes h JOIN operations o ON o.transaction_id = h.ref JOIN contexts x ON x.id = o.context \
     WHERE h.order_key = ?1 AND h.home = 0 AND x.origin = 2 UNION ALL \
     SELECT j.merchant, j.direction, j.order_id, j.api_key, j.entry FROM homes h JOIN journal j ON j.entry = h.ref \
     WHERE h.order_key = ?1 AND h.home = 1"
);

/// Reads the target of an order, if it was created through v1 with the relay's address.
pub(in crate::store) async fn relay_target<T: Transaction>(
    tx: &T,
    order: Fingerprint,
) -> Result<Option<RelayTarget>, T::Error> {
    let read = |row: &dyn Columns| {
        Ok(RelayTarget {
            merchant: MerchantId::new(&row.get::<Box<str>>(0)?).or_corrupt("merchant")?,
            direction: direction_of(row.get(1)?).ok_or(CorruptRow::new("direction"))?,
            order_id: OrderId::new(&row.get::<Box<str>>(2)?).or_corrupt("order_id")?,
            api_key: row.get(3)?,
            entry: row.get::<Option<i64>>(4)?.map(EntryId),
        })
    };
    tx.query_opt(RELAY_TARGET, &params![&order], read).await
}
