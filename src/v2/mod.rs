//! The v2 interface: a v2 request in, a v2 reply out. Native callers and the gateway's own translated requests reach the
//! same functions.

use bytes::Bytes;

use crate::auth::{Caller, SignedBody};
use crate::domain::{Direction, TransactionId};
use crate::engine::{CreateError, Created, Engine};
use crate::failure::{ApiError, Nameable, RequestError};
use crate::store::V1Request;
use crate::wire::v2 as wire;

/// Answers `POST /api/v2/deposits` and `/withdrawals`: the body of the 200 reply.
///
/// # Errors
/// Why nothing was created.
pub async fn create(
    engine: &Engine,
    caller: &Caller,
    direction: Direction,
    body: &SignedBody,
) -> Result<Bytes, ApiError> {
    let created = create_operation(engine, caller, direction, body, None).await.map_err(failure)?;
    Ok(match &created.redirect_url {
        Some(redirect_url) => wire::deposit_reply(created.id, redirect_url.expose()),
        None => wire::withdrawal_reply(created.id),
    }
    .into())
}

/// Creates an operation from a signed v2 body. `v1` comes with bodies that the gateway translated.
///
/// # Errors
/// Why nothing was created.
pub async fn create_operation(
    engine: &Engine,
    caller: &Caller,
    direction: Direction,
    body: &SignedBody,
    v1: Option<V1Request>,
) -> Result<Created, CreateError> {
    let request = wire::read_create(direction, body.bytes())?;
    engine.create(caller, &request, v1).await
}

/// Answers `GET /api/v2/transactions/{transaction_id}`: the status record.
///
/// # Errors
/// [`ApiError::NotFound`] for every id that is not an operation of this merchant: unknown, foreign, malformed.
pub async fn status(engine: &Engine, caller: &Caller, transaction_id: &str) -> Result<Bytes, ApiError> {
    let id = TransactionId::parse(transaction_id).map_err(|_| ApiError::NotFound)?;
    let record = engine.v2_status(&caller.merchant().id, id).await?;
    Ok(wire::status_reply(&record).into())
}

fn failure(refused: CreateError) -> ApiError {
    match refused {
        CreateError::Invalid(complaint) => ApiError::Invalid(complaint),
        CreateError::Differs(paths) => ApiError::Conflict(conflict("order_id", paths)),
        CreateError::Earlier(_) => ApiError::Conflict(of_other_version("order_id", "v1")),
        CreateError::Reserved => ApiError::Conflict(reserved("order_id")),
        CreateError::Failed(failure) => failure,
    }
}

/// The complaint about an order id that names an operation of the old v1 service.
#[must_use]
pub fn reserved(order_id_name: &'static str) -> RequestError {
    RequestError::member(order_id_name, "is reserved: it names an operation that was made through v1")
}

/// The complaint about an order id whose operation was made through the other API version.
#[must_use]
pub fn of_other_version(order_id_name: &'static str, made_through: &str) -> RequestError {
    let reason = format!(
        "exists already and was created through {made_through}: another API version is not a way to send it again"
    );
    RequestError::member(order_id_name, reason)
}

/// The complaint about an order id that exists with other data. It names members, never values.
#[must_use]
pub fn conflict(order_id_name: &'static str, mut paths: Vec<String>) -> RequestError {
    /// A body may differ in thousands of members; the first few say enough.
    const NAMED: usize = 12;
    if paths.is_empty() {
        return RequestError::member(order_id_name, "exists already and was created from other data");
    }
    paths.dedup();
    let rest = paths.len().saturating_sub(NAMED);
    paths.truncate(NAMED);
    let names = paths.iter().map(|path| Nameable(path).to_string()).collect::<Vec<_>>().join(", ");
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    RequestError::member(
        order_id_name,
        format!("exists already and was created from other data; differs in: {names}{more}"),
    )
}
