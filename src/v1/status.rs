//! v1 status: by `external_id`, with an optional `shop_code` (contract section 4).

use bytes::Bytes;

use super::{V1Frontend, query, reply};
use crate::domain::{Direction, OrderId};
use crate::error::{ApiError, RequestError};
use crate::v2::ServiceCall;

impl V1Frontend {
    /// Answers a v1 status request, whose query string (without `?`) is given as sent. Parameters that v1 does not know are
    /// ignored, as merchants' clients are used to adding some.
    ///
    /// # Errors
    /// A malformed parameter, or no such operation.
    pub async fn status(
        &self,
        call: ServiceCall<'_>,
        direction: Direction,
        query: Option<&str>,
    ) -> Result<Bytes, ApiError> {
        let external_id = query::parameter(query, "external_id")?
            .ok_or_else(|| RequestError::member("external_id", "is required as a query parameter"))?;
        let external_id =
            OrderId::new(&external_id).map_err(|invalid| RequestError::invalid("external_id", &invalid))?;
        // Clients that know no shop code send an empty one, which means none.
        let shop_code = query::parameter(query, "shop_code")?.filter(|code| !code.is_empty());
        let operation = self.service.find(call, direction, &external_id).await?;
        if shop_code.is_some_and(|code| code != *operation.shop_code) {
            return Err(ApiError::NotFound);
        }
        Ok(reply::status(&call.caller.merchant().v1.dialect, &operation))
    }
}
