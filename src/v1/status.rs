//! v1 status: by `external_id`, with an optional `shop_code` (contract section 4).

use bytes::Bytes;

use super::{query, reply};
use crate::auth::Caller;
use crate::domain::{Direction, OrderId};
use crate::failure::{ApiError, RequestError};
use crate::upstream::Upstream;

/// Answers a v1 status question, whose query string (without `?`) is given as sent. Parameters that v1 does not know are
/// ignored, as merchants' clients are used to adding some.
///
/// # Errors
/// A malformed parameter, or no such operation.
pub async fn status(
    upstream: &Upstream,
    caller: &Caller,
    direction: Direction,
    query: Option<&str>,
) -> Result<Bytes, ApiError> {
    let external_id = query::parameter(query, "external_id")?
        .ok_or_else(|| RequestError::member("external_id", "is required as a query parameter"))?;
    let external_id = OrderId::new(&external_id).map_err(|invalid| RequestError::invalid("external_id", &invalid))?;
    // Clients that know no shop code send an empty one: to them it is like none.
    let shop_code = query::parameter(query, "shop_code")?.filter(|code| !code.is_empty());
    let shown = upstream.v1_operation(caller, direction, &external_id).await?;
    if shop_code.is_some_and(|code| code != *shown.shop_code) {
        return Err(ApiError::NotFound);
    }
    Ok(reply::status(&caller.merchant().v1.dialect, &shown))
}
