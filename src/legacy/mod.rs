//! The old v1 service, to which requests are forwarded as they are (contract section 6, "Homes and modes").

mod headers;
mod paths;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Extensions, HeaderMap, HeaderValue, Method, Request, Response, Uri};

use crate::deps::Deps;
use crate::domain::{FingerprintInput, MerchantId};
use crate::error::LegacyError;
use crate::outbound::{Outbound, OutboundError, RequestPlaces};
use crate::rules::LegacyRules;
use crate::telemetry::{Metrics, Stopwatch};
use crate::v2::ForwardedHeaders;
pub use paths::is_forwarded;

/// The most requests that are forwarded at once.
const IN_FLIGHT: usize = 2048;

/// The head of a request that may be forwarded, as it came.
#[derive(Clone)]
pub struct RequestHead {
    /// Its method.
    pub method: Method,
    /// Its path and query, as sent.
    pub target: Box<str>,
    /// Its headers.
    pub headers: HeaderMap,
    /// What the listener noted: the room for replies of the connection, over HTTP/1 the case of the headers' names.
    pub extensions: Extensions,
    /// The address of the caller.
    pub address: IpAddr,
}

/// Forwards requests to the old v1 service.
pub struct Legacy {
    outbound: Arc<Outbound>,
    metrics: Arc<Metrics>,
    /// Bounds the requests in flight, which outlive their callers.
    places: RequestPlaces,
    /// The `Via` entry of all gateways on one store, without the protocol.
    pseudonym: Box<str>,
}

impl Legacy {
    /// Creates a client of the old service. The name in `Via` is made from the store's fingerprint key: all nodes of a
    /// gateway have the same one.
    #[must_use]
    pub fn new(deps: &Deps) -> Self {
        let hash = deps.store.fingerprint_key().fingerprint(&FingerprintInput::of("via"));
        let pseudonym = format!("paybridge-{}", &hex::encode(hash.0)[..16]).into();
        let (outbound, metrics) = (Arc::clone(&deps.outbound), Arc::clone(&deps.metrics));
        Self { outbound, metrics, places: RequestPlaces::new(IN_FLIGHT), pseudonym }
    }

    /// Sends a request of a merchant once, and returns the reply of any status: redirects are not followed. It is sent
    /// again only when none of its bytes had left.
    ///
    /// # Errors
    /// There is no whole reply; there is no place, and nothing was sent; or the request was forwarded by this gateway before.
    pub async fn forward(
        &self,
        merchant: &MerchantId,
        rules: &LegacyRules,
        head: &RequestHead,
        forwarded: &ForwardedHeaders,
        body: Bytes,
    ) -> Result<Response<Bytes>, LegacyError> {
        if headers::is_via(&head.headers, &self.pseudonym) {
            return Err(LegacyError::Loop);
        }
        let Some(_place) = self.places.take(merchant) else { return Err(LegacyError::Busy) };
        let request = self.request(rules, head, forwarded, body)?;
        let watch = Stopwatch::start();
        let reply = self.outbound.forward(request, &rules.trust, rules.timeout, rules.reply_limit).await;
        self.metrics.homes().legacy_request(outcome(&reply), watch.elapsed());
        let mut reply = reply.map_err(|error| failure(&error))?;
        if reply.status().is_informational() {
            return Err(LegacyError::BadReply { cause: "it switches protocols".to_owned() });
        }
        let is_without_body = head.method == Method::HEAD || reply.status().as_u16() == 304;
        headers::remove_from_reply(reply.headers_mut(), is_without_body);
        Ok(reply)
    }

    fn request(
        &self,
        rules: &LegacyRules,
        head: &RequestHead,
        forwarded: &ForwardedHeaders,
        body: Bytes,
    ) -> Result<Request<Bytes>, LegacyError> {
        let uri: Result<Uri, _> = format!("{}{}", rules.url, head.target).parse();
        let uri = uri.map_err(|error| LegacyError::Unreachable { cause: format!("its address: {error}") })?;
        let mut request = Request::new(body);
        *request.method_mut() = head.method.clone();
        *request.uri_mut() = uri;
        *request.extensions_mut() = head.extensions.clone();
        let via = HeaderValue::try_from(format!("1.1 {}", self.pseudonym)).ok();
        *request.headers_mut() =
            headers::of_request(&head.headers, head.address, &rules.client_address_headers, forwarded, via);
        Ok(request)
    }
}

fn failure(error: &OutboundError) -> LegacyError {
    match error {
        OutboundError::Timeout => LegacyError::Timeout,
        OutboundError::TooLong | OutboundError::Malformed => LegacyError::BadReply { cause: error.to_string() },
        OutboundError::Unreachable(_)
        | OutboundError::NotConnected(_)
        | OutboundError::Unusable(_)
        | OutboundError::Forbidden(_)
        | OutboundError::Crowded => LegacyError::Unreachable { cause: error.to_string() },
    }
}

/// Returns the name of an outcome in metrics.
fn outcome(reply: &Result<Response<Bytes>, OutboundError>) -> &'static str {
    match reply {
        Ok(reply) => match reply.status().as_u16() {
            200..300 => "success",
            300..400 => "redirect",
            400..500 => "client_error",
            500..600 => "server_error",
            _ => "unexpected",
        },
        Err(error) => error.outcome(),
    }
}
