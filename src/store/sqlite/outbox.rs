//! What merchants must be told: queued in the commit of the result (contract section 10).

use rusqlite::Connection;

use crate::clock::Random;
use crate::domain::{TransactionId, UnixMillis};
use crate::store::{V1Part, V1Told};

/// Names a callback, the same at every try.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallbackId([u8; 16]);

impl CallbackId {
    pub(super) fn draw(random: &dyn Random) -> Self {
        let mut bytes = [0; 16];
        random.fill(&mut bytes);
        Self(bytes)
    }
}

/// Whether someone is to be told of an operation: what the relay tells has nobody without an address.
pub(super) const fn tells(v1: Option<&V1Part>) -> bool {
    match v1 {
        Some(V1Part { told: V1Told::Relayed(url), .. }) => url.is_some(),
        Some(V1Part { told: V1Told::Directly, .. }) | None => true,
    }
}

/// Queues the callback of a terminal result.
pub(super) fn queue(
    connection: &Connection,
    id: TransactionId,
    callback: CallbackId,
    due: UnixMillis,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO callbacks (transaction_id, callback_id, due_at, attempts) VALUES (?1, ?2, ?3, 0)")?
        .execute((id.to_stored(), callback.0, due.0))
        .map(drop)
}
