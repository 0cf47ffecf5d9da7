//! The subjects of callbacks: operations and journal entries, and the addresses of their merchants.

use std::collections::HashMap;

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;

use crate::domain::{Fingerprint, MerchantId, OrderId};
use crate::store::backend::Subject;
use crate::store::postgres::errors::PgError;
use crate::store::postgres::journal::entry_row::{self, entry};
use crate::store::postgres::row::{self, bucket_in_number, get, key, operation, small};
use crate::store::rows::{CorruptRow, OrCorrupt, direction_of};
use crate::store::{EntryId, RelayTarget, StoreError};

/// Returns the bucket of a callback's subject, which its number contains: a `transaction_id`, or the negative number of
/// an entry.
pub(in crate::store::postgres) const fn bucket_in_key(key: i64) -> i16 {
    bucket_in_number(if key < 0 { key.wrapping_neg() } else { key })
}

/// Reads the random numbers of claimed callbacks and their subjects by their keys; leaves out those that do not exist
/// or cannot be decoded.
pub(in crate::store::postgres) async fn of_all(
    client: &impl GenericClient,
    keys: &[i64],
) -> Result<HashMap<i64, (i64, Subject)>, PgError> {
    let mut found = HashMap::with_capacity(keys.len());
    let (entries, operations): (Vec<i64>, Vec<i64>) = keys.iter().partition(|key| **key < 0);
    for found_row in read(client, OPERATIONS, &operations).await? {
        if let (Ok(row), Ok(nonce)) = (row::read(&found_row), get(&found_row, row::COLUMNS)) {
            found.insert(row.id, (nonce, Subject::Operation(Box::new(row))));
        }
    }
    for found_row in read(client, ENTRIES, &entries).await? {
        if let (Ok(row), Ok(nonce)) = (entry_row::read(&found_row), get(&found_row, entry_row::COLUMNS)) {
            found.insert(-row.id, (nonce, Subject::Entry(Box::new(row))));
        }
    }
    Ok(found)
}

pub(super) const OPERATIONS: &str = operation!(
    ", c.nonce FROM unnest($1::smallint[], $2::bigint[]) AS given (bucket, key) \
     JOIN operations o ON o.bucket = given.bucket AND o.transaction_id = given.key \
     LEFT JOIN contexts x ON x.bucket = o.bucket AND x.id = o.context \
     JOIN callbacks c ON c.bucket = given.bucket AND c.key = given.key"
);

pub(super) const ENTRIES: &str = entry!(
    ", c.nonce FROM unnest($1::smallint[], $2::bigint[]) AS given (bucket, key) \
     JOIN journal j ON j.bucket = given.bucket AND j.entry = -given.key \
     JOIN callbacks c ON c.bucket = given.bucket AND c.key = given.key"
);

async fn read(client: &impl GenericClient, sql: &str, keys: &[i64]) -> Result<Vec<Row>, PgError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let buckets: Vec<i16> = keys.iter().map(|key| bucket_in_key(*key)).collect();
    let statement = client.prepare_cached(sql).await?;
    Ok(client.query(&statement, &[&buckets, &keys]).await?)
}

/// Returns the merchant and the operation that the order of a key names, if v1 created it with the relay's address.
pub(in crate::store::postgres) async fn relay_target(
    client: &impl GenericClient,
    bucket: i16,
    order: Fingerprint,
) -> Result<Option<RelayTarget>, PgError> {
    let statement = client.prepare_cached(ADDRESSEE).await?;
    let found = client.query(&statement, &[&bucket, &key(&order)]).await?;
    found.first().map(named).transpose()
}

pub(super) const ADDRESSEE: &str = "SELECT x.merchant, x.direction, o.order_id, x.api_key, NULL::bigint \
     FROM homes h JOIN operations o ON o.bucket = h.bucket AND o.transaction_id = h.ref \
     JOIN contexts x ON x.bucket = o.bucket AND x.id = o.context \
     WHERE h.bucket = $1 AND h.order_key = $2 AND h.home = 0 AND x.origin = 2 UNION ALL \
     SELECT j.merchant, j.direction, j.order_id, j.api_key, j.entry \
     FROM homes h JOIN journal j ON j.bucket = h.bucket AND j.entry = h.ref \
     WHERE h.bucket = $1 AND h.order_key = $2 AND h.home = 1";

fn named(row: &Row) -> Result<RelayTarget, PgError> {
    let decoded = |merchant, direction, order_id, api_key, entry: Option<i64>| {
        Ok(RelayTarget {
            merchant: MerchantId::new(merchant).or_corrupt("merchant")?,
            direction: direction_of(direction).ok_or(CorruptRow("direction"))?,
            order_id: OrderId::new(order_id).or_corrupt("order_id")?,
            api_key,
            entry: entry.map(EntryId),
        })
    };
    decoded(get(row, 0)?, small(row, 1)?, get(row, 2)?, get(row, 3)?, get(row, 4)?).map_err(|CorruptRow(column)| {
        PgError::Store(StoreError::Corrupt(format!("an order's column {column} is invalid")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Bucket, TransactionId, UnixMillis};
    use crate::store::CallbackSubject;
    use crate::store::postgres::row::bucket_of;

    #[test]
    fn a_key_contains_the_bucket_of_its_subject() {
        let merchant = MerchantId::new("acme").unwrap();
        let id = TransactionId::compose(UnixMillis(1_790_000_000_000), Bucket::of(&merchant), 77);
        for subject in [CallbackSubject::Operation(id), CallbackSubject::Entry(EntryId(id.to_stored()))] {
            assert_eq!(bucket_in_key(subject.key()), bucket_of(&merchant));
        }
        assert_eq!(bucket_in_key(i64::MIN), 0);
    }
}
