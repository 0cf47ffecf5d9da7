//! Claims of homes, which share round trips and a commit, as creates do: while a batch is stored, the next one fills.

use std::rc::Rc;

use tokio::task::JoinSet;

use super::errors::closed;
use super::node::PgNode;
use super::queue::{NewClaim, Waiting, answer};
use crate::domain::Fingerprint;
use crate::store::StoreError;
use crate::store::homes::{self, Home};

type WaitingClaim = Waiting<NewClaim, Home>;

/// Stores batches for as long as the thread runs.
pub(super) async fn send_batches(node: Rc<PgNode>) {
    loop {
        let mut batch = node.queues.claims.next_batch(0).await;
        // Two batches wait for each other in one direction only.
        batch.sort_by_key(|waiting| waiting.command.order.0);
        match store(&node, &batch).await {
            Ok(homes) => answer(batch.into_iter().zip(homes)),
            Err(_) if batch.len() > 1 => send_alone(&node, batch).await,
            Err(error) => answer(batch.into_iter().map(|waiting| (waiting, Err(error.clone())))),
        }
    }
}

/// Stores the claims of a failed batch one by one, so that one of them cannot prevent the others.
async fn send_alone(node: &Rc<PgNode>, batch: Vec<WaitingClaim>) {
    let mut alone = JoinSet::new();
    for waiting in batch {
        let node = Rc::clone(node);
        alone.spawn_local(async move {
            let outcome = store(&node, std::slice::from_ref(&waiting)).await;
            let home = outcome.and_then(|homes| homes.into_iter().next().unwrap_or_else(|| Err(closed())));
            answer([(waiting, home)]);
        });
    }
    // The one that panicked is answered by its own end; the others continue.
    while alone.join_next().await.is_some() {}
}

/// Claims homes together; returns each order's home. A claim whose confirmation was lost finds its own home.
async fn store(node: &PgNode, batch: &[WaitingClaim]) -> Result<Vec<Result<Home, StoreError>>, StoreError> {
    let claims: Vec<(Fingerprint, Home)> =
        batch.iter().map(|waiting| (waiting.command.order, waiting.command.home)).collect();
    node.transact(async |tx| {
        let homes = homes::claim_each(tx, &claims).await?;
        Ok(homes.into_iter().map(|home| home.ok_or_else(order_is_busy)).collect())
    })
    .await
}

/// The order's entry was just cancelled.
fn order_is_busy() -> StoreError {
    StoreError::Unavailable("another request is releasing the order".to_owned())
}
