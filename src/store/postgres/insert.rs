//! Inserts new operations, any number of them in one statement, whose parameters are their columns.

use std::collections::HashSet;

use bytes::BytesMut;
use deadpool_postgres::Object;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{Field, IsNull, Kind, ToSql, Type, to_sql_checked};

use super::errors::PgError;
use super::transaction::{Executor, PgTransaction, get};
use crate::domain::{Direction, FailureCause, Fingerprint, State, UnixDay};
use crate::store::rows::context::NewContext;
use crate::store::rows::operation::{NewRow, OPERATION_COLUMNS, new_operation_columns};
use crate::store::sql::Parameter;

/// Claims the homes of [`OperationColumns`] rows, and inserts the rows whose home was claimed into `operations`;
/// `stored` has the columns `$returned` of these.
///
/// Rows without a context are left out, and stored by a later attempt: a server that took over may lack a context that
/// was known to be stored. A taken id fails the statement, since checking each id first would cost every create a step
/// into an index. One array of rows costs a third of one array for each column.
macro_rules! stored {
    ($returned:literal) => {
        concat!(
            "WITH given AS (SELECT g.* FROM unnest($1::new_operation[]) AS g JOIN contexts x ON x.id = g.context), \
             won AS (INSERT INTO homes (ref, home, order_key) SELECT transaction_id, 0, order_key FROM given \
             ON CONFLICT (order_key) DO NOTHING RETURNING ref), \
             stored AS (INSERT INTO operations (",
            new_operation_columns!(),
            ") SELECT ",
            new_operation_columns!(),
            " FROM given WHERE (transaction_id IN (SELECT ref FROM won)) IS TRUE RETURNING ",
            $returned,
            ")"
        )
    };
}

/// Pending operations with their provider jobs, each due after a delay: one `shared` by all rows, or their `own`, for
/// which each row has to be joined again.
macro_rules! with_jobs {
    (own, $returned:literal) => {
        concat!(
            stored!($returned),
            ", jobs AS (INSERT INTO tasks (key, queued_at, due_at, attempts, kind, state, queue) \
             SELECT o.transaction_id, o.created_at, o.created_at + delays.delay, 0, 0, 0, x.shop \
             FROM unnest($2::bigint[], $3::bigint[]) AS delays (transaction_id, delay) \
             JOIN stored o USING (transaction_id) JOIN contexts x ON x.id = o.context \
             WHERE delays.delay IS NOT NULL)"
        )
    };
    (shared, $returned:literal) => {
        concat!(
            stored!($returned),
            ", jobs AS (INSERT INTO tasks (key, queued_at, due_at, attempts, kind, state, queue) \
             SELECT o.transaction_id, o.created_at, o.created_at + $2::bigint, 0, 0, 0, x.shop \
             FROM stored o JOIN contexts x ON x.id = o.context WHERE $2::bigint IS NOT NULL)"
        )
    };
}

/// Pending deposits.
macro_rules! deposits {
    ($delay:tt) => {
        concat!(with_jobs!($delay, "transaction_id, created_at, context"), " SELECT transaction_id FROM stored")
    };
}

/// Pending operations, with the holds of withdrawals.
macro_rules! with_holds {
    ($delay:tt) => {
        concat!(
            with_jobs!($delay, "transaction_id, created_at, amount, context"),
            ", sides AS (SELECT o.transaction_id, o.created_at, x.currency, x.merchant, side.account, \
             side.sign * o.amount AS change \
             FROM stored o JOIN contexts x ON x.id = o.context, \
             (VALUES (2::smallint, -1), (3::smallint, 1)) AS side (account, sign) WHERE x.direction = 1), \
             posted AS (INSERT INTO entries (transaction_id, posting, currency, account, amount, merchant, posted_at) \
             SELECT transaction_id, 2, currency, account, change, merchant, created_at FROM sides), \
             changed AS (INSERT INTO balance_changes (transaction_id, posting, currency, account, amount, merchant) \
             SELECT transaction_id, 2, currency, account, change, merchant FROM sides) \
             SELECT transaction_id FROM stored"
        )
    };
}

/// Operations without anything else.
const ALONE: &str = concat!(stored!("transaction_id"), " SELECT transaction_id FROM stored");

/// Returns the delay of an operation's provider job, in milliseconds; `None`: it has none. `ahead`: see
/// [`Offset::wrong_by`](super::node::Offset::wrong_by).
fn delay(new: &NewRow, ahead: i64) -> Option<i64> {
    let draft = new.draft();
    draft.provider_job.map(|due| due.0 - draft.operation.created_at.0 - ahead)
}

/// Stores pending operations with everything that belongs to them; returns the ids of the stored ones.
pub(super) async fn insert_pending(client: &Object, rows: &[&NewRow], ahead: i64) -> Result<HashSet<i64>, PgError> {
    let are_deposits = rows.iter().all(|new| new.draft().operation.direction() == Direction::Payin);
    let delays: Vec<Option<i64>> = rows.iter().map(|new| delay(new, ahead)).collect();
    let shared = delays.iter().all(|delay| Some(delay) == delays.first());
    let statement = match (are_deposits, shared) {
        (true, true) => deposits!(shared),
        (true, false) => deposits!(own),
        (false, true) => with_holds!(shared),
        (false, false) => with_holds!(own),
    };
    let statement = client.prepare_cached(statement).await?;
    let given: Vec<OperationColumns<'_>> =
        rows.iter().map(|new| OperationColumns::new(new, &new.draft().operation.state, None, None)).collect();
    let stored = if shared {
        client.query(&statement, &[&given, &delays.first().copied().flatten()]).await
    } else {
        let ids: Vec<i64> = rows.iter().map(|new| new.draft().operation.id.to_stored()).collect();
        client.query(&statement, &[&given, &ids, &delays]).await
    };
    match stored {
        Ok(stored) => stored.iter().map(|row| get(row, 0)).collect(),
        // It is unknown which of several ids is taken: they are retried one by one.
        Err(error) if rows.len() == 1 && is_taken(&error) => Ok(HashSet::new()),
        Err(error) => Err(error.into()),
    }
}

/// Reports whether an id is another operation's.
fn is_taken(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::UNIQUE_VIOLATION)
}

/// Stores an operation in a state, counted for its customer on a day, without anything else. Returns `false` if its
/// order has a home or its id is taken.
pub(super) async fn insert_operation(
    executor: Executor<'_>,
    new: &NewRow,
    state: &State,
    failure: Option<FailureCause>,
    counted_day: Option<UnixDay>,
) -> Result<bool, PgError> {
    let given = [OperationColumns::new(new, state, failure, counted_day)];
    match executor.query(&executor.prepare(ALONE).await?, &[&given.as_slice()]).await {
        Ok(stored) => Ok(!stored.is_empty()),
        Err(PgError::Database(error)) if is_taken(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Stores the context of a new operation, unless it is known to be stored.
pub(super) async fn insert_context(tx: &PgTransaction<'_>, new: &NewRow) -> Result<(), PgError> {
    if new.context.is_known() {
        return Ok(());
    }
    NewContext::of(new.draft()).insert(tx, &new.context).await
}

/// The columns of a value of the type `new_operation`.
const COLUMNS: usize = 1 + OPERATION_COLUMNS;

/// The key of a new operation's order, and its columns.
#[derive(Debug)]
pub(super) struct OperationColumns<'a>(Fingerprint, [Parameter<'a>; OPERATION_COLUMNS]);

impl<'a> OperationColumns<'a> {
    /// Returns the columns of a new operation in a state, counted for its customer on a day.
    pub(super) fn new(
        new: &'a NewRow,
        state: &State,
        failure: Option<FailureCause>,
        counted_day: Option<UnixDay>,
    ) -> Self {
        Self(new.order_key(), new.columns(state, failure, counted_day))
    }

    /// Writes each column as its type, its length (-1: NULL) and its bytes.
    fn write_columns(&self, fields: &[Field], out: &mut BytesMut) -> Result<(), Failed> {
        let Self(order_key, columns) = self;
        let order_key = Parameter::from(order_key);
        for (field, value) in fields.iter().zip(std::iter::once(&order_key).chain(columns)) {
            out.extend_from_slice(&field.type_().oid().to_be_bytes());
            let place = out.len();
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            if let IsNull::No = value.to_sql(field.type_(), out)? {
                let length = i32::try_from(out.len() - place - 4)?;
                #[expect(clippy::indexing_slicing, reason = "the four bytes were just written")]
                out[place..place + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
        Ok(())
    }
}

type Failed = Box<dyn std::error::Error + Sync + Send>;

/// In the format of PostgreSQL's `record_send`: the number of columns, and for each its type, its length (-1: NULL) and
/// its bytes.
impl ToSql for OperationColumns<'_> {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Failed> {
        let fields = fields_of(of).ok_or("not a type of as many columns")?;
        out.extend_from_slice(&u32::try_from(COLUMNS)?.to_be_bytes());
        self.write_columns(fields, out)?;
        Ok(IsNull::No)
    }

    fn accepts(of: &Type) -> bool {
        fields_of(of).is_some()
    }

    to_sql_checked!();
}

fn fields_of(of: &Type) -> Option<&[Field]> {
    if let Kind::Composite(fields) = of.kind()
        && fields.len() == COLUMNS
    {
        return Some(fields);
    }
    None
}
