//! Claims of homes, which share a statement and so a commit, as creates do: while a batch is stored, the next one fills.

use std::collections::HashSet;
use std::rc::Rc;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::errors::{PgError, closed};
use super::node::PgNode;
use super::permits::{LIMIT, MOST, WaitingClaim};
use super::row::{self, bucket_in_number, get, key, narrow};
use crate::domain::Fingerprint;
use crate::store::StoreError;
use crate::store::create::Home;

/// Claims the home of an order, unless it has one; returns its home.
///
/// # Errors
/// The database does not respond, or another create of the order is being stored.
pub(super) async fn claim(node: &Rc<PgNode>, order: Fingerprint, home: Home) -> Result<Home, StoreError> {
    let (reply, outcome) = oneshot::channel();
    node.claims.waiting.borrow_mut().push(WaitingClaim { order, home, reply });
    if !node.claims.is_sending.replace(true) {
        tokio::task::spawn_local(send_batches(Rc::clone(node)));
    }
    match timeout(LIMIT, outcome).await {
        Ok(outcome) => outcome.unwrap_or_else(|_| Err(closed())),
        Err(_) => Err(PgError::Silence.reported()),
    }
}

/// Stores batches until nothing waits.
async fn send_batches(node: Rc<PgNode>) {
    loop {
        // Callers that are ready to run go first: their claims fill this batch.
        tokio::task::yield_now().await;
        let mut batch: Vec<WaitingClaim> = {
            let mut waiting = node.claims.waiting.borrow_mut();
            // A caller that waited too long got an error.
            waiting.retain(|claim| !claim.reply.is_closed());
            let count = waiting.len().min(MOST);
            waiting.drain(..count).collect()
        };
        if batch.is_empty() {
            node.claims.is_sending.set(false);
            return;
        }
        // Two batches wait for each other in one direction only.
        batch.sort_by_key(|claim| claim.order.0);
        match store(&node, &batch).await {
            Ok(homes) => batch.into_iter().zip(homes).for_each(|(claim, home)| claim.answer(home)),
            Err(_) if batch.len() > 1 => send_alone(&node, batch).await,
            Err(error) => batch.into_iter().for_each(|claim| claim.answer(Err(error.clone()))),
        }
    }
}

/// Stores the claims of a failed batch one by one, so that one of them cannot prevent the others.
async fn send_alone(node: &Rc<PgNode>, batch: Vec<WaitingClaim>) {
    let alone = batch.into_iter().map(|claim| {
        let node = Rc::clone(node);
        tokio::task::spawn_local(async move {
            let outcome = store(&node, std::slice::from_ref(&claim)).await;
            claim.answer(outcome.and_then(|homes| homes.into_iter().next().unwrap_or_else(|| Err(closed()))));
        })
    });
    for claim in alone.collect::<Vec<_>>() {
        let _ = claim.await;
    }
}

/// Claims homes in one statement; returns each order's home. A claim whose confirmation was lost finds its own home.
async fn store(node: &PgNode, batch: &[WaitingClaim]) -> Result<Vec<Result<Home, StoreError>>, StoreError> {
    let columns = batch.iter().map(|claim| claim.home.columns());
    let (kinds, references): (Vec<i16>, Vec<i64>) = columns.map(|(kind, reference)| (narrow(kind), reference)).unzip();
    let buckets: Vec<i16> = references.iter().map(|reference| bucket_in_number(*reference)).collect();
    let orders: Vec<Fingerprint> = batch.iter().map(|claim| claim.order).collect();
    let keys: Vec<&[u8]> = orders.iter().map(key).collect();
    node.with_client(async |client| {
        let statement = client.prepare_cached(CLAIM).await?;
        let mut claimed = HashSet::with_capacity(batch.len());
        for row in client.query(&statement, &[&buckets, &kinds, &references, &keys]).await? {
            claimed.insert(get::<Vec<u8>>(&row, 0)?);
        }
        if claimed.len() == batch.len() {
            return Ok(batch.iter().map(|claim| Ok(claim.home)).collect());
        }
        // A new statement sees the homes of faster transactions, unless they were released since.
        let found = row::homes_of(client, &buckets, &orders).await?;
        Ok(found.into_iter().map(|home| home.ok_or_else(order_is_busy)).collect())
    })
    .await
}

/// The order's entry was just cancelled.
fn order_is_busy() -> StoreError {
    StoreError::Unavailable("another request is releasing the order".to_owned())
}

const CLAIM: &str = "INSERT INTO homes (bucket, home, ref, order_key) \
    SELECT bucket, home, ref, order_key \
    FROM unnest($1::smallint[], $2::smallint[], $3::bigint[], $4::bytea[]) AS given (bucket, home, ref, order_key) \
    ORDER BY order_key ON CONFLICT DO NOTHING RETURNING order_key";
