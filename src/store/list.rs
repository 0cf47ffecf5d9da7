//! The operators' list of operations, newest first (contract section 14). A page is read along the indexes that have its operations:
//! those that FAILED, those of a merchant, those that are PENDING, or the time. A create of a PENDING operation writes one entry of
//! an index at most: one of v1 is in its merchant's and is found by the job of its provider, which may have ended, or is in the index of
//! those without a job; one of v2 is in an index in the order of creation, and joins its merchant's when it ends.

use std::ops::RangeInclusive;
use std::time::Duration;

use tokio::time::timeout;

use super::attention::{self, AttentionCounts, CANDIDATES, LateRule};
use super::backend::{Backend, ReadKind};
use super::list_indexes::{Newest, PENDING_V1, in_context, in_operations_by_merchant, in_pending_v2};
use super::resolve::read_failure;
use super::rows::context::merchant_number;
use super::rows::operation::{STORED_COLUMNS, StoredRow, listed_as, select_operations};
use super::rows::task::TaskKind;
use super::rows::{direction_number, status_number};
use super::sql::{Columns, CorruptRow, Sql, Transaction, params, sql};
use super::vault::Vault;
use super::{StoreError, StoreFuture, Stored};
use crate::domain::{
    Direction, FailureCause, MerchantId, ProviderReason, ShopCode, State, Status, TransactionId, UnixMillis, WaitsFor,
};

/// Selects operations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationQuery {
    /// Only of this merchant.
    pub merchant: Option<MerchantId>,
    /// Only of this shop.
    pub shop: Option<ShopCode>,
    /// Only of this direction.
    pub direction: Option<Direction>,
    /// Only with this status.
    pub status: Option<Status>,
    /// Only those created through v1, or through v2.
    pub is_v1: Option<bool>,
    /// Created at or after this time.
    pub created_from: Option<UnixMillis>,
    /// Created before this time.
    pub created_to: Option<UnixMillis>,
    /// Only those older than this one.
    pub after: Option<TransactionId>,
    /// The most operations to return.
    pub limit: usize,
}

impl OperationQuery {
    /// Returns the ids that match, as they are stored: an id contains the millisecond of its operation's creation.
    pub(super) fn within(&self) -> RangeInclusive<i64> {
        let first = self.created_from.map_or(0, |at| TransactionId::first_of(at).to_stored());
        let last = self.created_to.map_or(i64::MAX, |at| TransactionId::first_of(at).to_stored().saturating_sub(1));
        first..=self.after.map_or(last, |after| last.min(after.to_stored().saturating_sub(1)))
    }

    /// Reports whether an operation matches the filters, but for its place in the list.
    #[must_use]
    pub fn matches(&self, listed: &ListedOperation) -> bool {
        let Stored { operation, v1, .. } = &listed.stored;
        self.merchant.as_ref().is_none_or(|merchant| *merchant == operation.merchant)
            && self.shop.as_ref().is_none_or(|shop| *shop == operation.shop)
            && self.direction.is_none_or(|direction| direction == operation.direction())
            && self.status.is_none_or(|status| status == operation.state.status())
            && self.is_v1.is_none_or(|wanted| wanted == v1.is_some())
            && self.within().contains(&operation.id.to_stored())
    }
}

/// An operation of the list.
#[derive(Debug, Clone)]
pub struct ListedOperation {
    /// The operation.
    pub stored: Stored,
    /// Why it FAILED, with the provider's words.
    pub failure: Option<(FailureCause, ProviderReason)>,
    /// What it waits for, if it is PENDING and as far as that is known.
    pub waits_for: Option<WaitsFor>,
    /// Whether its provider was given up, and it is PENDING.
    pub is_given_up: bool,
}

/// The operators' list.
pub trait OperationList: Send + Sync + 'static {
    /// Returns a page of the list, the newest first. What takes over two seconds fails with [`StoreError::TooLong`].
    fn operations(&self, query: OperationQuery, lapsed: Option<UnixMillis>) -> StoreFuture<'_, Vec<ListedOperation>>;

    /// Returns an operation as the list has it. `lapsed`: resolutions made until then wait no more.
    fn listed(&self, id: TransactionId, lapsed: Option<UnixMillis>) -> StoreFuture<'_, Option<ListedOperation>>;

    /// Returns the operations that need attention, the newest first, as [`OperationList::operations`] does.
    fn needing_attention(
        &self,
        query: OperationQuery,
        late: LateRule,
        lapsed: Option<UnixMillis>,
    ) -> StoreFuture<'_, Vec<ListedOperation>>;

    /// Counts the operations that need attention.
    fn attention(&self, late: LateRule) -> StoreFuture<'_, AttentionCounts>;
}

impl<B: Backend> OperationList for B {
    fn operations(&self, query: OperationQuery, lapsed: Option<UnixMillis>) -> StoreFuture<'_, Vec<ListedOperation>> {
        let merchant = query.merchant.as_ref().map(|id| merchant_number(self.vault().fingerprint_key(), id));
        let page = async move |tx: &B::Tx<'_>| page(tx, &query, merchant, lapsed).await;
        Box::pin(async move {
            let rows = self.read(ReadKind::Page, page).await?;
            rows.into_iter().map(|row| row.decode(self.vault())).collect()
        })
    }

    fn listed(&self, id: TransactionId, lapsed: Option<UnixMillis>) -> StoreFuture<'_, Option<ListedOperation>> {
        Box::pin(async move {
            let read = async move |tx: &B::Tx<'_>| by_ids(tx, &[id.to_stored()], lapsed).await;
            self.read(ReadKind::Lookup, read).await?.pop().map(|row| row.decode(self.vault())).transpose()
        })
    }

    fn needing_attention(
        &self,
        query: OperationQuery,
        late: LateRule,
        lapsed: Option<UnixMillis>,
    ) -> StoreFuture<'_, Vec<ListedOperation>> {
        Box::pin(within_bound(async move {
            let (mut query, mut found) = (query, Vec::new());
            let limit = query.limit;
            // Candidates that another filter refuses are replaced by the next ones, of which many may be refused, too.
            loop {
                let (slice, late) = (query.clone(), late.clone());
                let read = async move |tx: &B::Tx<'_>| {
                    let ids = attention::ids(tx, slice.within(), slice.limit, &late).await?;
                    by_ids(tx, &ids, lapsed).await
                };
                let rows = self.read(ReadKind::Page, read).await?;
                let (count, last) = (rows.len(), rows.last().map(|row| row.stored.id));
                for row in rows {
                    let listed = row.decode(self.vault())?;
                    if query.matches(&listed) && found.len() < limit {
                        found.push(listed);
                    }
                }
                query.after = last.and_then(TransactionId::from_stored);
                if found.len() >= limit || count < query.limit || query.after.is_none() {
                    return Ok(found);
                }
                query.limit = CANDIDATES;
            }
        }))
    }

    fn attention(&self, late: LateRule) -> StoreFuture<'_, AttentionCounts> {
        Box::pin(within_bound(self.read(ReadKind::Page, async move |tx| attention::count(tx, &late).await)))
    }
}

/// How long a search of several statements may take.
const MAX_SEARCH: Duration = Duration::from_secs(2);

/// Ends a search that takes longer than [`MAX_SEARCH`].
async fn within_bound<T>(search: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    timeout(MAX_SEARCH, search).await.unwrap_or(Err(StoreError::TooLong))
}

/// A row of the list, as read.
struct ListRow {
    stored: StoredRow,
    failure: Option<(FailureCause, ProviderReason)>,
    job: Option<TaskKind>,
    is_resolved: bool,
}

/// Selects the columns of [`ListRow::read`]; `lapsed` is the parameter for the time until which resolutions lapsed.
macro_rules! select_listed {
    ($lapsed:literal, $rest:expr) => {
        select_operations!(concat!(
            ", cause, cause_code, cause_text, \
             (SELECT max(kind) FROM tasks WHERE kind IN (0, 2, 3, 4) AND key = transaction_id), \
             EXISTS (SELECT 1 FROM resolutions r WHERE r.transaction_id = operations.transaction_id AND r.state = 0 \
             AND r.made_at > ",
            $lapsed,
            ") ",
            $rest
        ))
    };
}

impl ListRow {
    fn read(row: &dyn Columns) -> Result<Self, CorruptRow> {
        let job = row.get::<Option<i64>>(STORED_COLUMNS + 3)?;
        Ok(Self {
            failure: read_failure(row, STORED_COLUMNS)?,
            job: job.map(|kind| TaskKind::of_job(kind).ok_or(CorruptRow::new("kind"))).transpose()?,
            is_resolved: row.get(STORED_COLUMNS + 4)?,
            stored: StoredRow::read(row)?,
        })
    }

    fn decode(self, vault: &Vault) -> Result<ListedOperation, StoreError> {
        let stored = self.stored.decode(vault)?;
        let waits_for = match self.job {
            _ if stored.operation.state != State::Pending => None,
            _ if self.is_resolved => Some(WaitsFor::Confirmation),
            Some(TaskKind::ProviderJob) => Some(WaitsFor::ProviderAnswer),
            Some(TaskKind::ReportAwaited) => Some(WaitsFor::ProviderReport),
            Some(TaskKind::GivenUp) => Some(WaitsFor::Operator),
            Some(TaskKind::CustomerAwaited | TaskKind::Callback) | None => Some(WaitsFor::Customer),
        };
        let is_given_up = self.job == Some(TaskKind::GivenUp);
        Ok(ListedOperation { stored, failure: self.failure, waits_for, is_given_up })
    }
}

/// The filters of a page of ids along an index. Parameters: 1 and 2 the first and the last id; 3 to 7 status, merchant, shop,
/// direction and whether created through v1, each NULL for all; 8 the limit; 9 of the index. `$status` is the column, or its value
/// in all of the index. Contexts are few, and are looked up once.
macro_rules! page_where {
    ($condition:expr, $status:literal, $order:expr) => {
        concat!(
            "WHERE ",
            $condition,
            " AND (",
            $status,
            " = ?3 OR ?3 IS NULL) AND (context IN (SELECT id FROM contexts WHERE ",
            in_context!(),
            ")) IS TRUE ORDER BY ",
            $order,
            " LIMIT ?8"
        )
    };
}

pub(super) const ALONG_TIME: Sql = sql!(concat!(
    "SELECT transaction_id FROM operations ",
    page_where!("transaction_id BETWEEN ?1 AND ?2", "status", "transaction_id DESC")
));

/// The operations of an index. The condition and the order of PostgreSQL begin with a column before the id.
macro_rules! along_index {
    ($index:literal, $status:literal, sqlite: $sqlite:expr, postgres: $postgres:expr, by $first:literal) => {
        sql!(
            sqlite: concat!(
                "SELECT transaction_id FROM operations INDEXED BY ",
                $index,
                " ",
                page_where!($sqlite, $status, "transaction_id DESC")
            ),
            postgres: concat!(
                "SELECT transaction_id FROM operations ",
                page_where!($postgres, $status, concat!($first, " DESC, transaction_id DESC"))
            ),
        )
    };
}

pub(super) const ALONG_FAILED: Sql = along_index!(
    "operations_failed", "2",
    sqlite: "status = 2 AND transaction_id BETWEEN ?1 AND ?2",
    postgres: "status > 1 AND (status, transaction_id) >= (2, ?1) AND (status, transaction_id) <= (2, ?2)", by "status"
);

/// Those of v2 that are PENDING, of the merchant of a number, or of all.
pub(super) const ALONG_PENDING_V2: Sql = along_index!(
    "pending_v2", "0",
    sqlite: concat!(in_pending_v2!(sqlite), " AND (listed = ?9 OR ?9 IS NULL)"),
    postgres: concat!(in_pending_v2!(postgres), " AND (listed = ?9 OR ?9 IS NULL)"), by "status"
);

/// The operations of a merchant.
pub(super) const ALONG_MERCHANT: Sql = along_index!(
    "operations_by_merchant", "status",
    sqlite: concat!(in_operations_by_merchant!(), " AND listed = ?9 AND transaction_id BETWEEN ?1 AND ?2"),
    postgres: concat!(
        in_operations_by_merchant!(),
        " AND (listed, transaction_id) >= (?9, ?1) AND (listed, transaction_id) <= (?9, ?2)"
    ), by "listed"
);

/// The operations with a job of a kind. The one order of the tables that needs no sort is prescribed.
pub(super) const ALONG_JOBS: Sql = sql!(
    sqlite: concat!(
        "SELECT transaction_id FROM tasks CROSS JOIN operations ",
        page_where!("kind = ?9 AND key BETWEEN ?1 AND ?2 AND transaction_id = key", "status", "key DESC")
    ),
    postgres: concat!(
        "SELECT transaction_id FROM tasks, LATERAL (SELECT * FROM operations WHERE transaction_id = key OFFSET 0) AS found ",
        page_where!("kind = ?9 AND key BETWEEN ?1 AND ?2", "status", "key DESC")
    ),
);

async fn page<T: Transaction>(
    tx: &T,
    query: &OperationQuery,
    merchant: Option<i64>,
    lapsed: Option<UnixMillis>,
) -> Result<Vec<ListRow>, T::Error> {
    let within = query.within();
    let filters = params![
        *within.start(),
        *within.end(),
        query.status.map(status_number),
        query.merchant.as_ref().map(MerchantId::as_str),
        query.shop.as_ref().map(ShopCode::as_str),
        query.direction.map(direction_number),
        query.is_v1.map(i64::from),
        i64::try_from(query.limit).unwrap_or(i64::MAX),
    ];
    let read = |row: &dyn Columns| row.get::<i64>(0);
    let mut newest = Newest::new(query.limit);
    match (query.status, merchant) {
        (Some(Status::Failed), _) => newest.add(tx.query(ALONG_FAILED, &filters, read).await?),
        (None | Some(Status::Success), None) => newest.add(tx.query(ALONG_TIME, &filters, read).await?),
        _ => {
            let [_, last, status, of, shop, direction, is_v1, limit] = filters;
            for (sql, number) in indexes(tx, query, merchant, &within).await? {
                let first = newest.first(*within.start()).into();
                let parameters = [first, last, status, of, shop, direction, is_v1, limit, number.into()];
                newest.add(tx.query(sql, &parameters, read).await?);
            }
        }
    }
    by_ids(tx, &newest.ids(), lapsed).await
}

/// Returns the statements by which all PENDING operations, or a merchant's, are found, each with the number in its index. Some are
/// found by two: those of v2 with a job, and those that had a job only after an operator had their provider called.
async fn indexes<T: Transaction>(
    tx: &T,
    query: &OperationQuery,
    merchant: Option<i64>,
    within: &RangeInclusive<i64>,
) -> Result<Vec<(Sql, Option<i64>)>, T::Error> {
    let (of_v1, mut of_v2) = (query.is_v1 != Some(false), query.is_v1 != Some(true));
    let (pending, ended) = (query.status != Some(Status::Success), query.status != Some(Status::Pending));
    let jobs = TaskKind::JOBS.map(|kind| (ALONG_JOBS, Some(kind.number())));
    let mut found = Vec::new();
    if let (Some(number), Some(merchant)) = (merchant, &query.merchant) {
        of_v2 = of_v2 && tx.query_value::<bool>(HAS_V2, &params![merchant]).await?;
        let of_merchant = |is_v1| (ALONG_MERCHANT, Some(listed_as(number, is_v1)));
        if of_v1 && !ended && has_many(tx, number, within).await? {
            found.extend(jobs);
        } else if of_v1 {
            found.push(of_merchant(true));
        }
        if of_v2 && ended {
            found.push(of_merchant(false));
        }
    } else if of_v1 {
        found.extend(jobs);
    }
    if of_v1 && pending {
        found.push((PENDING_V1, merchant));
    }
    // Last, since it passes over those of other merchants, down to the oldest that a page has room for.
    if of_v2 && pending {
        found.push((ALONG_PENDING_V2, merchant.map(|number| listed_as(number, false))));
    }
    Ok(found)
}

/// Reports whether a merchant has ever had operations of v2.
const HAS_V2: Sql = sql!("SELECT EXISTS (SELECT 1 FROM contexts WHERE merchant = ?1 AND origin = 0)");

/// A merchant with fewer operations of v1 than this has few: its index is read faster than the jobs of all merchants.
const FEW: i64 = 20_000;

const COUNT_OF_MERCHANT: Sql = sql!(
    "SELECT count(*) FROM (SELECT 1 FROM operations", indexed by "operations_by_merchant",
    concat!(
        "WHERE ",
        in_operations_by_merchant!(),
        " AND listed = ?1 AND transaction_id BETWEEN ?2 AND ?3 LIMIT ?4) AS found"
    ),
);

/// Reports whether a merchant has many operations of v1 between two ids.
async fn has_many<T: Transaction>(tx: &T, merchant: i64, within: &RangeInclusive<i64>) -> Result<bool, T::Error> {
    let parameters = params![listed_as(merchant, true), *within.start(), *within.end(), FEW];
    Ok(tx.query_value::<i64>(COUNT_OF_MERCHANT, &parameters).await? >= FEW)
}

pub(super) const LISTED: Sql =
    sql!(select_listed!("?2", "FROM operations LEFT JOIN contexts ON id = context WHERE transaction_id = ?1"));

/// Reads operations by their ids.
async fn by_ids<T: Transaction>(tx: &T, ids: &[i64], lapsed: Option<UnixMillis>) -> Result<Vec<ListRow>, T::Error> {
    let sets: Vec<_> = ids.iter().map(|id| params![*id, lapsed.unwrap_or(UnixMillis(i64::MIN))]).collect();
    Ok(tx.query_each(LISTED, &sets, ListRow::read).await?.into_iter().flatten().collect())
}
