//! The gateway's front: what legacy merchants speak.

use bytes::Bytes;

use crate::auth::{Caller, SignedBody};
use crate::domain::Direction;
use crate::failure::Failure;
use crate::upstream::Upstream;

/// Answers a v1 create: the body of the 200 reply in the caller's dialect. Complaints are in v1 words.
///
/// # Errors
/// Why nothing was created.
pub async fn create(
    upstream: &Upstream,
    caller: &Caller,
    direction: Direction,
    body: &SignedBody,
) -> Result<Bytes, Failure> {
    let _ = (upstream, caller, direction, body);
    Err(Failure::NotFound)
}

/// Answers a v1 status question, whose query string (without `?`) is given as sent.
///
/// # Errors
/// An unknown or malformed parameter, or no such operation.
pub async fn status(
    upstream: &Upstream,
    caller: &Caller,
    direction: Direction,
    query: Option<&str>,
) -> Result<Bytes, Failure> {
    let _ = (upstream, caller, direction, query);
    Err(Failure::NotFound)
}
