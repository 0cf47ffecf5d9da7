//! Results that operators set by hand, and reports that contradict a result (contract section 14).
//!
//! ```text
//!                resolve                         confirm, by another operator
//! (nothing) ---------------> waits (two operators) --------------------------> took effect
//!     |                        | another resolution
//!     |  resolve (one)         '------------------> replaced
//!     '--------------------------------------------------------------------> took effect
//! ```
//!
//! A resolution takes effect in the commit of the operation's result, as a provider's report does. One that still waits
//! when the operation has its result is void.

use super::backend::{Backend, ReadKind};
use super::complete::{self, Completion, OperationState, ResultSource};
use super::jobs::{EndedJob, JobEnd, ProviderJobState};
use super::rows::operation::{cause_of, status_number, status_of};
use super::rows::task::TaskKind;
use super::sql::{Columns, CorruptRow, Sql, Transaction, params, sql};
use super::tasks;
use super::transaction::OwnStatements;
use super::{CompletionOutcome, StoreFuture};
use crate::clock::Random;
use crate::domain::{FailureCause, Outcome, ProviderReason, Status, TransactionId, UnixMillis};

/// The number of a resolution; has the form of a `transaction_id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolutionId(pub TransactionId);

impl ResolutionId {
    /// Draws the number of a resolution made at a time.
    #[must_use]
    pub fn draw(at: UnixMillis, random: &dyn Random) -> Self {
        Self(TransactionId::of_other(at, random.number()))
    }
}

impl std::fmt::Display for ResolutionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A result that an operator sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewResolution {
    /// Its number.
    pub id: ResolutionId,
    /// The operation.
    pub transaction_id: TransactionId,
    /// The result: SUCCESS or FAILED.
    pub outcome: Outcome,
    /// Why, without card numbers.
    pub reason: Box<str>,
    /// The user.
    pub user: Box<str>,
    /// When.
    pub at: UnixMillis,
    /// Whether it waits for another operator.
    pub needs_confirmation: bool,
}

/// The outcome of resolving an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResolveOutcome {
    /// The operation has the result now.
    Resolved,
    /// Nothing was changed: the resolution waits for another operator.
    Waits,
    /// The operation has its result already.
    Finished(Status),
    /// There is no such operation.
    Unknown,
}

/// The outcome of confirming a resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfirmOutcome {
    /// The operation has this result now.
    Resolved(Status),
    /// The operator made the resolution.
    SameOperator,
    /// No resolution waits, or another one.
    NotWaiting,
    /// The operation has its result already.
    Finished(Status),
    /// There is no such operation.
    Unknown,
}

/// The state of a resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResolutionState {
    /// It waits for another operator; void if the operation has its result.
    Waits,
    /// It took effect.
    TookEffect,
    /// Another resolution took its place.
    Replaced,
}

/// A stored resolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolutionRecord {
    /// Its number.
    pub id: ResolutionId,
    /// The result.
    pub status: Status,
    /// Why.
    pub reason: Box<str>,
    /// The user that made it.
    pub made_by: Box<str>,
    /// When.
    pub made_at: UnixMillis,
    /// Its state.
    pub state: ResolutionState,
    /// The user that confirmed it.
    pub confirmed_by: Option<Box<str>>,
}

/// A report that contradicts a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContradictionRecord {
    /// The status that was reported.
    pub status: Status,
    /// When it was reported first.
    pub reported_at: UnixMillis,
    /// The user that acknowledged it, and when.
    pub acknowledged: Option<(Box<str>, UnixMillis)>,
}

/// What is stored of an operation's way to its result, and after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationDetail {
    /// Why it FAILED, with the provider's words.
    pub failure: Option<(FailureCause, ProviderReason)>,
    /// The provider's job while the operation is PENDING.
    pub job: Option<ProviderJobState>,
    /// The provider's job once the operation has its result, if the provider was called.
    pub ended_job: Option<EndedJob>,
    /// When operators had the provider called anew, the last first, each with the ended job whose place a new one took. At most
    /// [`Self::MAX_QUERIES`].
    pub queries: Vec<(UnixMillis, Option<EndedJob>)>,
    /// Its resolutions, the first first.
    pub resolutions: Vec<ResolutionRecord>,
    /// The report that contradicts its result.
    pub contradiction: Option<ContradictionRecord>,
}

/// Results by hand.
pub trait Resolutions: Send + Sync + 'static {
    /// Sets the result of a pending operation, or stores the resolution until another operator confirms it, instead of the
    /// one that waits. One commit.
    fn resolve(&self, new: NewResolution) -> StoreFuture<'_, ResolveOutcome>;

    /// Lets the resolution that waits take effect, in one commit. One that was made until `lapsed` does not wait any more.
    fn confirm(
        &self,
        id: TransactionId,
        resolution: ResolutionId,
        user: Box<str>,
        lapsed: Option<UnixMillis>,
        at: UnixMillis,
    ) -> StoreFuture<'_, ConfirmOutcome>;

    /// Keeps a report that contradicts the result, unless one is kept.
    fn keep_contradiction(&self, id: TransactionId, reported: Status, at: UnixMillis) -> StoreFuture<'_, ()>;

    /// Acknowledges the contradicting report. Returns `false` if there is none that was not acknowledged.
    fn acknowledge(&self, id: TransactionId, user: Box<str>, at: UnixMillis) -> StoreFuture<'_, bool>;

    /// Returns what is stored of an operation's way to its result; `None`: there is no such operation.
    fn operation_detail(&self, id: TransactionId) -> StoreFuture<'_, Option<OperationDetail>>;
}

impl<B: Backend> Resolutions for B {
    fn resolve(&self, new: NewResolution) -> StoreFuture<'_, ResolveOutcome> {
        let completion = Completion::new(self, new.transaction_id, new.outcome.clone(), ResultSource::Operator, new.at);
        Box::pin(async move {
            let outcome = self.transact(async move |tx| resolve(tx, &new, &completion).await).await?;
            if outcome == ResolveOutcome::Resolved {
                self.queued().notify_one();
            }
            Ok(outcome)
        })
    }

    fn confirm(
        &self,
        id: TransactionId,
        resolution: ResolutionId,
        user: Box<str>,
        lapsed: Option<UnixMillis>,
        at: UnixMillis,
    ) -> StoreFuture<'_, ConfirmOutcome> {
        // The outcome is that of the resolution, which is read in the transaction.
        let drafted = Completion::new(self, id, Outcome::Failed, ResultSource::Operator, at);
        Box::pin(async move {
            let confirm = async move |tx: &B::Tx<'_>| confirm(tx, resolution, &user, lapsed, &drafted).await;
            let outcome = self.transact(confirm).await?;
            if matches!(outcome, ConfirmOutcome::Resolved(_)) {
                self.queued().notify_one();
            }
            Ok(outcome)
        })
    }

    fn keep_contradiction(&self, id: TransactionId, reported: Status, at: UnixMillis) -> StoreFuture<'_, ()> {
        Box::pin(
            self.run_alone(async move |tx| tx.execute(KEEP, &params![id, status_number(reported), at]).await.map(drop)),
        )
    }

    fn acknowledge(&self, id: TransactionId, user: Box<str>, at: UnixMillis) -> StoreFuture<'_, bool> {
        Box::pin(self.run_alone(async move |tx| Ok(tx.execute(ACKNOWLEDGE, &params![id, &user, at]).await? > 0)))
    }

    fn operation_detail(&self, id: TransactionId) -> StoreFuture<'_, Option<OperationDetail>> {
        Box::pin(self.read(ReadKind::Page, async move |tx| detail(tx, id).await))
    }
}

const KEEP: Sql =
    sql!("INSERT INTO contradictions (transaction_id, status, reported_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING");

/// An acknowledgement that is repeated because its confirmation was lost changes the row again.
const ACKNOWLEDGE: Sql = sql!(
    "UPDATE contradictions SET acknowledged_by = ?2, acknowledged_at = ?3 WHERE transaction_id = ?1 \
     AND (acknowledged_at IS NULL OR (acknowledged_by = ?2 AND acknowledged_at = ?3))"
);

const REPLACE: Sql = sql!("UPDATE resolutions SET state = 2 WHERE transaction_id = ?1 AND state = 0");

const INSERT: Sql = sql!(
    "INSERT INTO resolutions (id, transaction_id, status, reason, made_by, made_at, state) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
);

/// The values of `resolutions.state`. SQL statements contain the literals.
const WAITS: i64 = 0;
const TOOK_EFFECT: i64 = 1;
const REPLACED: i64 = 2;

async fn resolve<T: OwnStatements>(
    tx: &T,
    new: &NewResolution,
    completion: &Completion,
) -> Result<ResolveOutcome, T::Error> {
    let Some(OperationState { status, .. }) = complete::unfinished(tx, new.transaction_id).await? else {
        return Ok(ResolveOutcome::Unknown);
    };
    let ResolutionId(id) = new.id;
    let own = records(tx, new.transaction_id).await?.into_iter().find(|record| record.id == new.id);
    match own.map(|record| record.state) {
        // An earlier attempt of this transaction was committed, but its confirmation was lost.
        Some(ResolutionState::TookEffect) => return Ok(ResolveOutcome::Resolved),
        Some(ResolutionState::Waits) if status == Status::Pending => return Ok(ResolveOutcome::Waits),
        _ if status != Status::Pending => return Ok(ResolveOutcome::Finished(status)),
        _ => {}
    }
    tx.execute(REPLACE, &params![new.transaction_id]).await?;
    let wanted = status_number(new.outcome.status());
    let state = if new.needs_confirmation { WAITS } else { TOOK_EFFECT };
    let columns = params![id, new.transaction_id, wanted, &new.reason, &new.user, tx.due(new.at), state];
    tx.execute(INSERT, &columns).await?;
    if new.needs_confirmation {
        return Ok(ResolveOutcome::Waits);
    }
    finish(tx, completion).await?;
    Ok(ResolveOutcome::Resolved)
}

const CONFIRM: Sql = sql!("UPDATE resolutions SET state = 1, confirmed_by = ?2 WHERE id = ?1");

async fn confirm<T: OwnStatements>(
    tx: &T,
    resolution: ResolutionId,
    user: &str,
    lapsed: Option<UnixMillis>,
    drafted: &Completion,
) -> Result<ConfirmOutcome, T::Error> {
    let Some(OperationState { status, finished_at, .. }) = complete::unfinished(tx, drafted.id).await? else {
        return Ok(ConfirmOutcome::Unknown);
    };
    let records = records(tx, drafted.id).await?;
    let found = records.iter().find(|record| record.id == resolution);
    if status != Status::Pending {
        // An earlier attempt of this transaction, at the same time, was committed, but its confirmation was lost.
        let is_repeated = finished_at == Some(drafted.at.0);
        let own = found.filter(|found| is_repeated && found.confirmed_by.as_deref() == Some(user));
        return Ok(own.map_or(ConfirmOutcome::Finished(status), |own| ConfirmOutcome::Resolved(own.status)));
    }
    let lapsed = lapsed.map(|lapsed| tx.due(lapsed));
    let waits = |found: &&ResolutionRecord| {
        found.state == ResolutionState::Waits && lapsed.is_none_or(|lapsed| found.made_at > lapsed)
    };
    let Some(found) = found.filter(waits) else { return Ok(ConfirmOutcome::NotWaiting) };
    if *found.made_by == *user {
        return Ok(ConfirmOutcome::SameOperator);
    }
    let ResolutionId(id) = resolution;
    tx.execute(CONFIRM, &params![id, user]).await?;
    let outcome = match found.status {
        Status::Success => Outcome::Success { payer: None },
        Status::Pending | Status::Failed => Outcome::Failed,
    };
    finish(tx, &Completion { outcome, source: ResultSource::Operator, payer: None, ..*drafted }).await?;
    Ok(ConfirmOutcome::Resolved(found.status))
}

/// Completes an operation that this transaction found pending and has locked.
async fn finish<T: OwnStatements>(tx: &T, completion: &Completion) -> Result<(), T::Error> {
    match complete::complete(tx, completion).await? {
        CompletionOutcome::Completed => Ok(()),
        CompletionOutcome::AlreadyCompleted | CompletionOutcome::Contradicts(_) | CompletionOutcome::Unknown => {
            Err(CorruptRow::new("status").into())
        }
    }
}

const RECORDS: Sql = sql!(
    "SELECT id, status, reason, made_by, made_at, state, confirmed_by FROM resolutions WHERE transaction_id = ?1 \
     ORDER BY id"
);

async fn records<T: Transaction>(tx: &T, id: TransactionId) -> Result<Vec<ResolutionRecord>, T::Error> {
    tx.query(RECORDS, &params![id], |row| {
        Ok(ResolutionRecord {
            id: ResolutionId(TransactionId::from_stored(row.get(0)?).ok_or(CorruptRow::new("id"))?),
            status: status_of(row.get(1)?).ok_or(CorruptRow::new("status"))?,
            reason: row.get(2)?,
            made_by: row.get(3)?,
            made_at: row.get(4)?,
            state: match row.get(5)? {
                WAITS => ResolutionState::Waits,
                TOOK_EFFECT => ResolutionState::TookEffect,
                REPLACED => ResolutionState::Replaced,
                _ => return Err(CorruptRow::new("state")),
            },
            confirmed_by: row.get(6)?,
        })
    })
    .await
}

const CONTRADICTION: Sql =
    sql!("SELECT status, reported_at, acknowledged_by, acknowledged_at FROM contradictions WHERE transaction_id = ?1");

const DETAIL: Sql = sql!(
    "SELECT cause, cause_code, cause_text, job_attempts, job_ended_at, job_kind, job_failure FROM operations \
     WHERE transaction_id = ?1"
);

const QUERIES: Sql = sql!(
    "SELECT queried_at, job_attempts, job_ended_at, job_kind, job_failure FROM provider_queries \
     WHERE transaction_id = ?1 ORDER BY queried_at DESC LIMIT ?2"
);

async fn detail<T: Transaction>(tx: &T, id: TransactionId) -> Result<Option<OperationDetail>, T::Error> {
    let Some(mut detail) = tx.query_opt(DETAIL, &params![id], OperationDetail::read).await? else { return Ok(None) };
    detail.job = tasks::job(tx, id).await?.map(ProviderJobState::of);
    let queries = params![id, OperationDetail::MAX_QUERIES];
    detail.queries = tx.query(QUERIES, &queries, |row| Ok((row.get(0)?, read_ended_job(row, 1)?))).await?;
    detail.resolutions = records(tx, id).await?;
    detail.contradiction = tx
        .query_opt(CONTRADICTION, &params![id], |row| {
            Ok(ContradictionRecord {
                status: status_of(row.get(0)?).ok_or(CorruptRow::new("status"))?,
                reported_at: row.get(1)?,
                acknowledged: row.get::<Option<Box<str>>>(2)?.zip(row.get(3)?),
            })
        })
        .await?;
    Ok(Some(detail))
}

impl OperationDetail {
    /// How often operators had the provider called anew, as far as it is read.
    pub const MAX_QUERIES: i64 = 100;

    fn read(row: &dyn Columns) -> Result<Self, CorruptRow> {
        Ok(Self { failure: read_failure(row, 0)?, ended_job: read_ended_job(row, 3)?, ..Self::default() })
    }
}

/// Reads `job_attempts`, `job_ended_at`, `job_kind` and `job_failure` from a column on.
fn read_ended_job(row: &dyn Columns, first: usize) -> Result<Option<EndedJob>, CorruptRow> {
    let Some(attempts) = row.get(first)? else { return Ok(None) };
    let kind = TaskKind::of_job(row.get(first + 2)?).ok_or(CorruptRow::new("job_kind"))?;
    Ok(Some(EndedJob { attempts, at: row.get(first + 1)?, end: JobEnd::of(kind), failure: row.get(first + 3)? }))
}

/// Reads `cause`, `cause_code` and `cause_text` from a column on.
pub(super) fn read_failure(
    row: &dyn Columns,
    first: usize,
) -> Result<Option<(FailureCause, ProviderReason)>, CorruptRow> {
    let Some(cause) = row.get::<Option<i64>>(first)? else { return Ok(None) };
    let cause = cause_of(cause).ok_or(CorruptRow::new("cause"))?;
    Ok(Some((cause, ProviderReason { code: row.get(first + 1)?, text: row.get(first + 2)? })))
}
