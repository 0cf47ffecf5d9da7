//! Admission of a v2 engine's callbacks: `POST /relay/{token}` (contract sections 3 and 10).

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http_body::Body;

use super::exchange::RequestContext;
use super::{Admitted, Core, whole_body};
use crate::callback::relay;
use crate::failure::{AdmissionError, ApiError};
use crate::http::admission;

impl Core {
    /// The same steps as for a merchant: the key is the order that the path names, and the address may be any. Whoever
    /// guesses addresses or signatures is held up.
    pub(super) async fn admit_relayed<B>(
        &self,
        exchange: &mut RequestContext,
        head: &Parts,
        body: B,
        token: &str,
        address: IpAddr,
    ) -> Result<Admitted, ApiError>
    where
        B: Body<Data = Bytes>,
    {
        let rules = Arc::clone(&exchange.rules);
        let limits = &rules.gateway.limits;
        let recipe = &self.callback_signature;
        let headers = admission::CallbackHeaders::of(recipe, &head.headers)?;
        let addressee = relay::addressee(&*self.wiring.store, token).await?;
        let addressee = addressee.ok_or_else(|| self.counted(AdmissionError::UnknownPath, address, &rules))?;
        exchange.merchant = rules.merchants.get(&addressee.merchant).cloned();

        exchange.stage_begins();
        let body = whole_body(exchange, body, limits).await?;

        let body = headers
            .prove(recipe, relay::secrets(&rules, &addressee), head, body)
            .map_err(|refusal| self.held_up(refusal, address, &rules))?;
        exchange.authenticated()?;
        admission::no_query_on_post(head)?;
        Ok(Admitted::Relayed(addressee, body))
    }
}
