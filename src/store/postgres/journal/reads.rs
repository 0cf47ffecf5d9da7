//! Entries as they stand.

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;

use super::entry_row::{self, entry};
use crate::store::postgres::fault::Fault;
use crate::store::postgres::row::{bucket_in_number, get, key};
use crate::store::rows::entry::EntryRow;
use crate::store::{Digest, EntryId, StoreError};

pub(super) async fn by_id(client: &impl GenericClient, id: EntryId) -> Result<Option<EntryRow>, Fault> {
    let statement = client.prepare_cached(entry_row::BY_ID).await?;
    let found = client.query_opt(&statement, &[&bucket_in_number(id.0), &id.0]).await?;
    found.as_ref().map(entry_row::read).transpose()
}

pub(super) async fn by_order(
    client: &impl GenericClient,
    bucket: i16,
    order: Digest,
) -> Result<Option<EntryRow>, Fault> {
    let statement = client.prepare_cached(entry_row::BY_ORDER).await?;
    let found = client.query_opt(&statement, &[&bucket, &key(&order)]).await?;
    found.as_ref().map(entry_row::read).transpose()
}

/// Open entries after a number, oldest first, each with its number; some cannot be read.
pub(super) async fn open_after(
    client: &impl GenericClient,
    after: i64,
    limit: usize,
) -> Result<Vec<(i64, Result<EntryRow, StoreError>)>, Fault> {
    let statement = client.prepare_cached(OPEN_AFTER).await?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = client.query(&statement, &[&after, &limit]).await?;
    let read = |row: &Row| Ok((get(row, 0)?, entry_row::read(row).map_err(Fault::told)));
    rows.iter().map(read).collect()
}

/// The partial index `journal_open` holds these alone, of all buckets.
pub(in crate::store::postgres) const OPEN_AFTER: &str =
    entry!("FROM journal j WHERE j.state = 0 AND j.entry > $1 ORDER BY j.entry LIMIT $2");
