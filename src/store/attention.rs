//! The operations that need attention: what was given up, what is late, what was contradicted (contract section 14).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::list_indexes::{Newest, PENDING_V1, in_pending_v2};
use super::rows::direction_of;
use super::rows::task::TaskKind;
use super::sql::{Columns, CorruptRow, Parameter, Sql, Transaction, params, sql};
use crate::domain::{Direction, ShopCode, TransactionId, UnixMillis};

/// Why an operation needs attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AttentionReason {
    /// Its provider was given up.
    GivenUp,
    /// It is PENDING for longer than its shop expects, and does not wait for its customer.
    Late,
    /// A report contradicts its result, and was not acknowledged.
    Contradicted,
}

impl AttentionReason {
    /// All reasons.
    pub const ALL: [Self; 3] = [Self::GivenUp, Self::Late, Self::Contradicted];

    /// Returns the name in the API and in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GivenUp => "given_up",
            Self::Late => "late",
            Self::Contradicted => "contradicted",
        }
    }
}

/// How many operations need attention, by the reason; each up to [`AttentionCounts::MAX_COUNTED`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttentionCounts {
    /// The counts.
    pub counts: BTreeMap<AttentionReason, u64>,
}

impl AttentionCounts {
    /// The most operations that are counted for a reason.
    pub const MAX_COUNTED: u32 = 10_000;
}

/// The times until which operations of each shop and direction must have been created to be late.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LateRule {
    /// The latest time of each.
    pub created_until: BTreeMap<(ShopCode, Direction), UnixMillis>,
    /// The shops whose deposits are late also while they wait for the customer.
    pub customers_too: Vec<ShopCode>,
}

impl LateRule {
    fn is_late(&self, candidate: &Candidate) -> bool {
        let Candidate { id, shop, direction, waits_for_customer } = candidate;
        let key = (shop.clone(), *direction);
        let until = self.created_until.get(&key);
        until.is_some_and(|until| *id <= TransactionId::last_of(*until).to_stored())
            && (!waits_for_customer || (*direction == Direction::Payin && self.customers_too.contains(shop)))
    }
}

/// How many candidates are read at once, at first and at most: where most are passed over, each statement reads twice as many as
/// the one before.
pub(super) const CANDIDATES: usize = 500;
const MAX_CANDIDATES: usize = 8_000;

/// The ids of operations with a job of a kind. Parameters: the first and the last id, the limit, the kind.
pub(super) const JOBS: Sql =
    sql!("SELECT key FROM tasks WHERE kind = ?4 AND key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT ?3");
const COUNT_GIVEN_UP: Sql = sql!("SELECT count(*) FROM (SELECT 1 FROM tasks WHERE kind = 3 LIMIT ?1) AS found");

pub(super) const CONTRADICTED: Sql = sql!(
    "SELECT transaction_id FROM contradictions WHERE acknowledged_at IS NULL AND transaction_id BETWEEN ?1 AND ?2 \
     ORDER BY transaction_id DESC LIMIT ?3"
);
const COUNT_CONTRADICTED: Sql = sql!(
    "SELECT count(*) FROM (SELECT 1 FROM contradictions WHERE acknowledged_at IS NULL AND transaction_id >= 0 LIMIT ?1) \
     AS found"
);

/// Returns the ids of operations that need attention between two ids, the newest first.
pub(super) async fn ids<T: Transaction>(
    tx: &T,
    within: RangeInclusive<i64>,
    limit: usize,
    late: &LateRule,
) -> Result<Vec<i64>, T::Error> {
    let bounds = params![*within.start(), *within.end(), i64::try_from(limit).unwrap_or(i64::MAX)];
    let jobs: Vec<_> = bounds.iter().copied().chain([TaskKind::GivenUp.number().into()]).collect();
    let mut newest = Newest::new(limit);
    newest.add(tx.query(JOBS, &jobs, |row| row.get(0)).await?);
    newest.add(tx.query(CONTRADICTED, &bounds, |row| row.get(0)).await?);
    add_late(tx, late, within, &mut newest).await?;
    Ok(newest.ids())
}

/// Counts the operations that need attention.
pub(super) async fn count<T: Transaction>(tx: &T, late: &LateRule) -> Result<AttentionCounts, T::Error> {
    let most = i64::from(AttentionCounts::MAX_COUNTED);
    let mut counts = BTreeMap::new();
    counts.insert(AttentionReason::GivenUp, tx.query_value(COUNT_GIVEN_UP, &params![most]).await?);
    counts.insert(AttentionReason::Contradicted, tx.query_value(COUNT_CONTRADICTED, &params![most]).await?);
    let most = usize::try_from(AttentionCounts::MAX_COUNTED).unwrap_or(usize::MAX);
    let mut newest = Newest::new(most);
    add_late(tx, late, 0..=i64::MAX, &mut newest).await?;
    counts.insert(AttentionReason::Late, crate::domain::wide(newest.ids().len()));
    Ok(AttentionCounts { counts })
}

/// A pending operation that may be late.
struct Candidate {
    id: i64,
    shop: ShopCode,
    direction: Direction,
    waits_for_customer: bool,
}

/// The operations with a job of a kind. Parameters: the first and the last id, the limit, the kind. The one order of the tables
/// that needs no sort is prescribed.
pub(super) const PENDING_WITH_JOB: Sql = sql!(
    sqlite: "SELECT key, shop, direction FROM tasks CROSS JOIN operations CROSS JOIN contexts WHERE kind = ?4 \
        AND key BETWEEN ?1 AND ?2 AND transaction_id = key AND id = context ORDER BY key DESC LIMIT ?3",
    postgres: "SELECT key, shop, direction FROM tasks, \
        LATERAL (SELECT context FROM operations WHERE transaction_id = key OFFSET 0) AS found, \
        LATERAL (SELECT shop, direction FROM contexts WHERE id = context OFFSET 0) AS its \
        WHERE kind = ?4 AND key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT ?3",
);

/// The pending operations of v2 that were made without a job. Parameters: the first and the last id, the limit, 0.
pub(super) const PENDING_V2: Sql = sql!(
    sqlite: concat!(
        "SELECT transaction_id, shop, direction FROM operations INDEXED BY pending_v2 CROSS JOIN contexts WHERE ",
        in_pending_v2!(sqlite),
        " AND has_job = ?4 AND id = context ORDER BY transaction_id DESC LIMIT ?3"
    ),
    postgres: concat!(
        "SELECT transaction_id, shop, direction FROM operations, \
         LATERAL (SELECT shop, direction FROM contexts WHERE id = context OFFSET 0) AS its WHERE ",
        in_pending_v2!(postgres),
        " AND has_job = ?4 ORDER BY status DESC, transaction_id DESC LIMIT ?3"
    ),
);

/// Adds the ids of late operations.
async fn add_late<T: Transaction>(
    tx: &T,
    late: &LateRule,
    within: RangeInclusive<i64>,
    newest: &mut Newest,
) -> Result<(), T::Error> {
    let Some(until) = late.created_until.values().max() else { return Ok(()) };
    let end = TransactionId::last_of(*until).to_stored().min(*within.end());
    // Deposits that wait for their customers may be many, and are passed over where none of them is late.
    let passed_over = late.customers_too.is_empty().then_some(TaskKind::CustomerAwaited);
    let kinds = TaskKind::JOBS.into_iter().filter(|kind| Some(*kind) != passed_over);
    let mut sources: Vec<_> =
        kinds.map(|kind| (PENDING_WITH_JOB, Some(kind.number()), kind == TaskKind::CustomerAwaited)).collect();
    if passed_over.is_none() {
        sources.extend([(PENDING_V2, Some(0), true), (PENDING_V1, None, true)]);
    }
    let all = Parameter::Integer(None);
    for (sql, number, waits_for_customer) in sources {
        let (mut last, mut count) = (end, CANDIDATES);
        while newest.first(*within.start()) <= last {
            let (from, to) = (newest.first(*within.start()).into(), last.into());
            let slice = i64::try_from(count).unwrap_or(i64::MAX).into();
            let parameters = match number {
                Some(number) => vec![from, to, slice, Parameter::from(number)],
                None => vec![from, to, all, all, all, all, all, slice, all],
            };
            let read = |row: &dyn Columns| Candidate::read(row, waits_for_customer);
            let candidates: Vec<Candidate> = tx.query(sql, &parameters, read).await?;
            newest.add(candidates.iter().filter(|candidate| late.is_late(candidate)).map(|candidate| candidate.id));
            match candidates.last() {
                Some(candidate) if candidates.len() == count => last = candidate.id - 1,
                _ => break,
            }
            count = MAX_CANDIDATES.min(2 * count);
        }
    }
    Ok(())
}

impl Candidate {
    fn read(row: &dyn Columns, waits_for_customer: bool) -> Result<Self, CorruptRow> {
        Ok(Self {
            id: row.get(0)?,
            shop: ShopCode::new(&row.get::<Box<str>>(1)?).map_err(|_| CorruptRow::new("shop"))?,
            direction: direction_of(row.get(2)?).ok_or(CorruptRow::new("direction"))?,
            waits_for_customer,
        })
    }
}
