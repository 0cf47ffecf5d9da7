//! What status replies tell of an operation: some of its columns. Nothing else of it is read.

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;

use super::fault::PgError;
use super::row::{bucket_in, bucket_of, get, key, small};
use crate::domain::{Currency, Fingerprint, MerchantId, OrderId, TransactionId};
use crate::store::rows::operation::{StatusColumns, V1Status, V2Status};

/// The columns of an operation `o` and of its context `x` that both API versions tell of.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT o.status, o.amount, x.currency, CASE x.direction WHEN 1 THEN o.sealed ELSE o.payer END, ",
            $rest
        )
    };
}

/// The number of the first column behind those of [`StatusColumns`].
const REST: usize = 4;

fn columns(row: &Row) -> Result<StatusColumns, PgError> {
    Ok(StatusColumns {
        status: small(row, 0)?,
        amount: get(row, 1)?,
        currency: Currency::new(get(row, 2)?),
        account: get(row, 3)?,
    })
}

pub(super) const V1: &str = select!(
    "o.transaction_id, o.created_at, x.shop \
     FROM homes h JOIN operations o ON o.bucket = h.bucket AND o.transaction_id = h.ref \
     LEFT JOIN contexts x ON x.bucket = o.bucket AND x.id = o.context \
     WHERE h.bucket = $1 AND h.order_key = $2 AND h.home = 0 AND o.listed IS NOT NULL"
);

pub(super) const V2: &str = select!(
    "x.direction, o.order_id, coalesce(x.method, x.payment_method, 'unknown') \
     FROM operations o JOIN contexts x ON x.bucket = o.bucket AND x.id = o.context \
     WHERE o.bucket = $1 AND o.transaction_id = $2 AND x.merchant = $3"
);

/// What v1 tells of the operation that a v1 request made under an order.
pub(super) async fn v1(
    client: &impl GenericClient,
    merchant: &MerchantId,
    order: Fingerprint,
) -> Result<Option<V1Status>, PgError> {
    let statement = client.prepare_cached(V1).await?;
    let found = client.query_opt(&statement, &[&bucket_of(merchant), &key(&order)]).await?;
    let read = |row: &Row| {
        let (id, created_at) = (get(row, REST)?, get(row, REST + 1)?);
        Ok(V1Status { columns: columns(row)?, id, created_at, shop: get(row, REST + 2)? })
    };
    found.as_ref().map(read).transpose()
}

/// What v2 tells of an operation, if it is this merchant's.
pub(super) async fn v2(
    client: &impl GenericClient,
    merchant: &MerchantId,
    id: TransactionId,
) -> Result<Option<V2Status>, PgError> {
    let statement = client.prepare_cached(V2).await?;
    let found = client.query_opt(&statement, &[&bucket_in(id), &id.to_stored(), &merchant.as_str()]).await?;
    let read = |row: &Row| {
        let (direction, order_id) = (small(row, REST)?, OrderId::new(get(row, REST + 1)?));
        Ok(V2Status { columns: columns(row)?, direction, order_id, method: get(row, REST + 2)? })
    };
    found.as_ref().map(read).transpose()
}
