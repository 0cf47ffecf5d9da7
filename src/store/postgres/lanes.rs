//! Lanes of merchants' histories ([`history`](super::history)): each is stored before its first operation is, and stays.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};

use deadpool_postgres::GenericClient;

use super::fault::Fault;
use super::row::{bucket_in, narrow};
use crate::domain::Operation;
use crate::store::rows::{direction_number, lane};
use crate::store::{Comparer, Draft};

/// The most lanes remembered; all are forgotten after that.
const MOST: usize = 64 * 1024;

/// The lane of a new operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lane {
    pub(super) number: i64,
    /// It is known to be stored.
    known: bool,
}

/// The lanes known to be stored.
pub(super) struct Lanes {
    comparer: Comparer,
    known: RwLock<HashSet<i64>>,
}

impl Lanes {
    pub(super) fn new(comparer: Comparer) -> Self {
        Self { comparer, known: RwLock::default() }
    }

    /// The lane of a new operation; `None`: nobody lists it.
    pub(super) fn of(&self, draft: &Draft) -> Option<Lane> {
        draft.v1.as_ref()?;
        let number = lane::number(&self.comparer, &draft.operation);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).contains(&number);
        Some(Lane { number, known })
    }

    /// Forgets all of them.
    pub(super) fn forget(&self) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Remembers a lane that was committed.
    pub(super) fn remember(&self, lane: Lane) {
        if lane.known {
            return;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(lane.number);
    }
}

/// Stores the lane of an operation, unless it is known to be there. One that no operation names does no harm.
pub(super) async fn keep(client: &impl GenericClient, lane: Lane, operation: &Operation) -> Result<(), Fault> {
    if lane.known {
        return Ok(());
    }
    let statement = client
        .prepare_cached(
            "INSERT INTO lanes (lane, bucket, direction, merchant, shop, currency) VALUES ($1, $2, $3, $4, $5, $6) \
             ON CONFLICT DO NOTHING",
        )
        .await?;
    let Operation { id, merchant, shop, currency, .. } = operation;
    let direction = narrow(direction_number(operation.direction()));
    let columns = (bucket_in(*id), merchant.as_str(), shop.as_str(), currency.as_str());
    client.execute(&statement, &[&lane.number, &columns.0, &direction, &columns.1, &columns.2, &columns.3]).await?;
    Ok(())
}
