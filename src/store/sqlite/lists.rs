//! Pages of the lists of v1 callers and operators.
//!
//! A page is read along one index, which covers the filters. Skipping costs about 50 ns an entry, so a late page of a
//! long list, or one with few matches, takes a while. Lists are read on blocking threads, two at once, for two seconds
//! at most.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::connection::Readers;
use super::row::{direction_number, status_number};
use crate::domain::{HistoryQuery, Page};
use crate::store::StoreError;

/// How long a list waits for a permit, and how long it may be read.
pub(super) const LONGEST: Duration = Duration::from_secs(2);

/// How many lists are read at once. Each keeps a processor busy.
const AT_ONCE: usize = 2;

/// The permits to read lists.
#[derive(Debug)]
pub(super) struct ListTurns {
    turns: Arc<Semaphore>,
    longest: Duration,
}

impl ListTurns {
    pub(super) fn new(longest: Duration) -> Self {
        Self { turns: Arc::new(Semaphore::new(AT_ONCE)), longest }
    }

    /// Reads a list once a permit is free.
    ///
    /// # Errors
    /// No permit became free, reading takes too long, or it failed.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        readers: &Arc<Readers>,
        list: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let unavailable = |why: &str| StoreError::Unavailable(why.to_owned());
        let turn = timeout(LONGEST, Arc::clone(&self.turns).acquire_owned()).await;
        let turn = turn.map_err(|_| unavailable("too many lists are read"))?;
        let turn = turn.map_err(|_| unavailable("the store is closed"))?;
        let (readers, longest) = (Arc::clone(readers), self.longest);
        let reading = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            readers.read_within(longest, list)
        });
        reading.await.unwrap_or_else(|_| Err(StoreError::Corrupt("a list came to no end".to_owned())))
    }
}

/// Reads a page of a merchant's list. The parameters of `sql` are the merchant; the first and the last position;
/// direction, shop, currency and status, each NULL for all; the limit and the offset; and `more`.
pub(super) fn page<T>(
    connection: &Connection,
    sql: &str,
    query: &HistoryQuery,
    within: &RangeInclusive<i64>,
    more: Option<i64>,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Page<T>> {
    let limit = usize::from(query.limit);
    let mut parameters: Vec<Value> = vec![
        query.merchant.as_str().to_owned().into(),
        (*within.start()).into(),
        (*within.end()).into(),
        query.direction.map(direction_number).into(),
        query.shop.as_ref().map(|shop| shop.as_str().to_owned()).into(),
        query.currency.as_ref().map(|currency| currency.as_str().to_owned()).into(),
        query.status.map(status_number).into(),
        // One more, to find out whether there is a next page.
        (i64::from(query.limit) + 1).into(),
        i64::try_from(query.skip).unwrap_or(i64::MAX).into(),
    ];
    parameters.extend(more.map(Value::from));
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params_from_iter(parameters), read)?;
    let mut items: Vec<T> = rows.collect::<Result<_, _>>()?;
    let has_more = items.len() > limit;
    items.truncate(limit);
    Ok(Page { items, has_more })
}

/// Reads in one transaction, so that everything has the state of one moment. After an error the connection must not be
/// used again.
pub(super) fn at_one_moment<T>(
    connection: &Connection,
    read: impl FnOnce() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let execute = |sql| connection.prepare_cached(sql)?.execute([]).map(drop);
    execute("BEGIN")?;
    let found = read()?;
    execute("COMMIT")?;
    Ok(found)
}
