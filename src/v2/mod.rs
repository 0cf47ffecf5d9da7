//! The v2 interface: a v2 request in, a v2 reply out. Native callers and the gateway's own translated requests reach the
//! same functions.

use bytes::Bytes;

use crate::auth::{Caller, SignedBody};
use crate::domain::Direction;
use crate::engine::Engine;
use crate::failure::Failure;

/// Answers `POST /api/v2/deposits` and `/withdrawals`: the body of the 200 reply.
///
/// # Errors
/// Why nothing was created.
pub async fn create(
    engine: &Engine,
    caller: &Caller,
    direction: Direction,
    body: &SignedBody,
) -> Result<Bytes, Failure> {
    let _ = (engine, caller, direction, body);
    Err(Failure::NotFound)
}

/// Answers `GET /api/v2/transactions/{transaction_id}`: the status record.
///
/// # Errors
/// [`Failure::NotFound`] for every id that is not an operation of this merchant.
pub async fn status(engine: &Engine, caller: &Caller, transaction_id: &str) -> Result<Bytes, Failure> {
    let _ = (engine, caller, transaction_id);
    Err(Failure::NotFound)
}
