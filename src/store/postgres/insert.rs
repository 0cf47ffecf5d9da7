//! New operations as one statement, however many there are: their columns are its parameters.

use std::collections::HashSet;

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use super::fault::Fault;
use super::row::{self, bucket_in, narrow};
use crate::domain::{CallbackUrl, Direction, Kind, ShopCode, State, UnixDay};
use crate::store::rows::kept::KeptList;
use crate::store::rows::operation::{NewRow, other_than};
use crate::store::rows::{direction_number, finished_at, provider_number, status_number};
use crate::store::{Digest, V1Told};

/// Inserts the rows that [`Columns`] gives, and more columns after them, into `operations`: those whose order is neither
/// there nor reserved. What was stored is `stored`. An id that is taken fails the statement: to look for each before would
/// cost every create a step into an index. Where nothing is reserved, nothing is looked for.
macro_rules! stored {
    ($types:literal, $names:literal) => {
        concat!(
            "WITH given AS (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], \
             $6::bigint[], $7::integer[], $8::smallint[], $9::smallint[], $10::smallint[], $11::smallint[], \
             $12::boolean[], $13::bytea[], $14::bytea[], $15::bytea[], $16::bytea[], $17::text[], $18::text[], \
             $19::text[], $20::text[], $21::text[], $22::text[], $23::text[], $24::text[], $25::text[], $26::text[], \
             $27::text[], $28::text[], $29::text[], $30::bytea[], $31::bytea[], $32::bytea[]",
            $types,
            ") AS given (transaction_id, created_at, finished_at, amount, customer_account_id, kept, counted_day, bucket, \
             direction, status, provider, relayed, order_key, digest, v1_digest, v1_members, currency, merchant, order_id, \
             api_key, shop, method, payment_method, callback_url, v1_callback_url, success_url, pending_url, fail_url, \
             redirect_url, account, payer, fields",
            $names,
            ")), stored AS (INSERT INTO operations (transaction_id, created_at, finished_at, amount, customer_account_id, \
             kept, counted_day, bucket, direction, status, provider, relayed, order_key, digest, v1_digest, v1_members, \
             currency, merchant, order_id, api_key, shop, method, payment_method, callback_url, v1_callback_url, \
             success_url, pending_url, fail_url, redirect_url, account, payer, fields) \
             SELECT transaction_id, created_at, finished_at, amount, customer_account_id, \
             kept, counted_day, bucket, direction, status, provider, relayed, order_key, digest, v1_digest, v1_members, \
             currency, merchant, order_id, api_key, shop, method, payment_method, callback_url, v1_callback_url, \
             success_url, pending_url, fail_url, redirect_url, account, payer, fields FROM given \
             WHERE (NOT (SELECT EXISTS (SELECT FROM reserved_ids)) \
             OR NOT EXISTS (SELECT FROM reserved_ids r WHERE r.bucket = given.bucket \
             AND r.order_hash = substr(given.order_key, 7))) \
             AND (NOT (SELECT EXISTS (SELECT FROM reserved_anywhere)) \
             OR NOT EXISTS (SELECT FROM reserved_anywhere a WHERE a.order_hash = substr(given.order_key, 7))) \
             ON CONFLICT (bucket, order_key) DO NOTHING \
             RETURNING transaction_id, bucket, direction, created_at, amount, currency, merchant, shop)"
        )
    };
}

/// The same of pending operations, with their provider jobs.
macro_rules! with_jobs {
    () => {
        concat!(
            stored!(", $33::bigint[]", ", due_at"),
            ", jobs AS (INSERT INTO provider_jobs (transaction_id, due_at, attempts, bucket, leased, shop) \
             SELECT transaction_id, given.due_at, 0, stored.bucket, false, stored.shop \
             FROM stored JOIN given USING (transaction_id) WHERE given.due_at IS NOT NULL)"
        )
    };
}

/// Pending deposits with their provider jobs.
const DEPOSITS: &str = concat!(with_jobs!(), " SELECT transaction_id FROM stored");

/// Pending operations with their provider jobs, and with the holds of withdrawals.
const PENDING: &str = concat!(
    with_jobs!(),
    ", sides AS (SELECT stored.*, side.account, side.sign * amount AS change FROM stored, \
     (VALUES (2::smallint, -1), (3::smallint, 1)) AS side (account, sign) WHERE direction = 1), \
     booked AS (INSERT INTO entries (transaction_id, amount, booked_at, bucket, posting, account, currency, merchant) \
     SELECT transaction_id, change, created_at, bucket, 2, account, currency, merchant FROM sides), \
     changed AS (INSERT INTO balance_changes (amount, bucket, account, merchant, currency) \
     SELECT change, bucket, account, merchant, currency FROM sides) \
     SELECT transaction_id FROM stored"
);

/// Operations alone.
const ALONE: &str = concat!(stored!("", ""), " SELECT transaction_id FROM stored");

/// Stores pending operations with what belongs to them; the ids of those that were stored.
pub(super) async fn pending(client: &Object, rows: &[&NewRow]) -> Result<HashSet<i64>, Fault> {
    let deposits = rows.iter().all(|row| row.draft().operation.direction() == Direction::Payin);
    let statement = client.prepare_cached(if deposits { DEPOSITS } else { PENDING }).await?;
    let columns = Columns::of(rows.iter().map(|row| (*row, &row.draft().operation.state, None)));
    let due: Vec<Option<i64>> = rows.iter().map(|row| row.draft().provider_job.map(|due| due.0)).collect();
    let mut parameters = columns.parameters();
    parameters.push(&due);
    match client.query(&statement, &parameters).await {
        Ok(stored) => stored.iter().map(|row| row::get(row, 0)).collect(),
        // Of several it is not known whose: they are tried alone.
        Err(error) if rows.len() == 1 && is_taken(&error) => Ok(HashSet::new()),
        Err(error) => Err(error.into()),
    }
}

/// Whether an id is another operation's.
fn is_taken(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::UNIQUE_VIOLATION)
}

/// Stores an operation in a state, which counts for its customer on a day, without anything else; `false` when its order,
/// its id or a reservation is there.
pub(super) async fn alone(
    transaction: &Transaction<'_>,
    new: &NewRow,
    state: &State,
    counted_day: Option<UnixDay>,
) -> Result<bool, Fault> {
    let statement = transaction.prepare_cached(ALONE).await?;
    let columns = Columns::of(std::iter::once((new, state, counted_day)));
    match transaction.query_opt(&statement, &columns.parameters()).await {
        Ok(stored) => Ok(stored.is_some()),
        Err(error) if is_taken(&error) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Stores a list of names, unless it is known to be there. A list that no operation names does no harm.
pub(super) async fn keep_list(client: &impl GenericClient, list: &KeptList) -> Result<(), Fault> {
    let Some(names) = &list.unstored else { return Ok(()) };
    let statement = client.prepare_cached("INSERT INTO kept_names VALUES ($1, $2) ON CONFLICT DO NOTHING").await?;
    client.execute(&statement, &[&list.id, names]).await?;
    Ok(())
}

/// The columns of new operations, in the order of the parameters.
#[derive(Default)]
struct Columns<'a> {
    id: Vec<i64>,
    created_at: Vec<i64>,
    finished_at: Vec<Option<i64>>,
    amount: Vec<i64>,
    customer_account_id: Vec<Option<i64>>,
    kept: Vec<Option<i64>>,
    counted_day: Vec<Option<i32>>,
    bucket: Vec<i16>,
    direction: Vec<i16>,
    status: Vec<i16>,
    provider: Vec<i16>,
    relayed: Vec<bool>,
    order_key: Vec<&'a [u8]>,
    digest: Vec<&'a [u8]>,
    v1_digest: Vec<Option<&'a [u8]>>,
    v1_members: Vec<Option<&'a [u8]>>,
    currency: Vec<&'a str>,
    merchant: Vec<&'a str>,
    order_id: Vec<&'a str>,
    api_key: Vec<&'a str>,
    shop: Vec<&'a str>,
    method: Vec<Option<&'a str>>,
    payment_method: Vec<Option<&'a str>>,
    callback_url: Vec<&'a str>,
    v1_callback_url: Vec<Option<&'a str>>,
    success_url: Vec<Option<&'a str>>,
    pending_url: Vec<Option<&'a str>>,
    fail_url: Vec<Option<&'a str>>,
    redirect_url: Vec<Option<&'a str>>,
    account: Vec<Option<&'a [u8]>>,
    payer: Vec<Option<&'a [u8]>>,
    fields: Vec<&'a [u8]>,
}

impl<'a> Columns<'a> {
    fn of(rows: impl Iterator<Item = (&'a NewRow, &'a State, Option<UnixDay>)>) -> Self {
        let mut columns = Self::default();
        for (row, state, counted_day) in rows {
            columns.numbers(row, state, counted_day);
            columns.hashes(row);
            columns.texts(row);
        }
        columns
    }

    fn numbers(&mut self, row: &'a NewRow, state: &State, counted_day: Option<UnixDay>) {
        let operation = &row.draft().operation;
        self.id.push(operation.id.to_stored());
        self.created_at.push(operation.created_at.0);
        self.finished_at.push(finished_at(state));
        self.amount.push(operation.amount.hundredths().cast_signed());
        self.customer_account_id.push(operation.customer_account_id.map(|id| id.0));
        self.kept.push(row.kept.as_ref().map(|list| list.id));
        self.counted_day.push(counted_day.map(|day| day.0));
        self.bucket.push(bucket_in(operation.id));
        self.direction.push(narrow(direction_number(operation.direction())));
        self.status.push(narrow(status_number(state.status())));
        self.provider.push(narrow(provider_number(operation.provider)));
        let told = row.draft().v1.as_ref().map(|v1| &v1.told);
        self.relayed.push(matches!(told, Some(V1Told::Relayed(_))));
    }

    fn hashes(&mut self, row: &'a NewRow) {
        let (draft, v1) = (row.draft(), row.draft().v1.as_ref());
        let Digest(order_key) = &row.order_key;
        self.order_key.push(order_key);
        self.digest.push(&draft.comparison.digest.0);
        self.v1_digest.push(v1.map(|v1| &v1.digest.0[..]));
        self.v1_members.push(v1.and_then(|v1| v1.members.as_ref()).map(|members| &members.0[..]));
        self.account.push(row.account.as_deref());
        self.payer.push(row.payer.as_deref());
        self.fields.push(&row.fields);
    }

    fn texts(&mut self, row: &'a NewRow) {
        let draft = row.draft();
        let operation = &draft.operation;
        self.currency.push(operation.currency.as_str());
        self.merchant.push(operation.merchant.as_str());
        self.order_id.push(operation.order_id.as_str());
        self.api_key.push(&draft.api_key);
        self.shop.push(operation.shop.as_str());
        self.method.push(operation.method.as_ref().map(ShopCode::as_str));
        self.payment_method.push(operation.payment_method.as_deref());
        self.callback_url.push(operation.callback_url.as_str());
        let relayed_to = draft.v1.as_ref().and_then(|v1| v1.told.relayed_to());
        self.v1_callback_url.push(relayed_to.map(CallbackUrl::as_str));
        let deposit = match &operation.kind {
            Kind::Deposit(deposit) => Some(deposit),
            Kind::Withdrawal(_) => None,
        };
        self.success_url.push(deposit.map(|deposit| deposit.success_url.as_str()));
        self.pending_url.push(deposit.and_then(|deposit| other_than(&deposit.success_url, &deposit.pending_url)));
        self.fail_url.push(deposit.and_then(|deposit| other_than(&deposit.success_url, &deposit.fail_url)));
        self.redirect_url.push(deposit.map(|deposit| deposit.redirect_url.expose()));
    }

    fn parameters(&self) -> Vec<&(dyn ToSql + Sync)> {
        vec![
            &self.id,
            &self.created_at,
            &self.finished_at,
            &self.amount,
            &self.customer_account_id,
            &self.kept,
            &self.counted_day,
            &self.bucket,
            &self.direction,
            &self.status,
            &self.provider,
            &self.relayed,
            &self.order_key,
            &self.digest,
            &self.v1_digest,
            &self.v1_members,
            &self.currency,
            &self.merchant,
            &self.order_id,
            &self.api_key,
            &self.shop,
            &self.method,
            &self.payment_method,
            &self.callback_url,
            &self.v1_callback_url,
            &self.success_url,
            &self.pending_url,
            &self.fail_url,
            &self.redirect_url,
            &self.account,
            &self.payer,
            &self.fields,
        ]
    }
}
