//! What calls of a v2 service have in common: the request that they are made for, and the errors about orders that exist.

use http::HeaderValue;

use crate::auth::Caller;
use crate::error::{Conflict, RequestError};
use crate::names::Nameable;
use crate::store::OrderHome;

/// The request that a v2 service is called for.
#[derive(Debug, Clone, Copy)]
pub struct ServiceCall<'a> {
    /// The authenticated caller.
    pub caller: &'a Caller,
    /// What goes along to a remote engine.
    pub forwarded: &'a ForwardedHeaders,
}

/// The headers of a request that go along with the calls of a remote engine made for it (contract section 13).
#[derive(Debug, Clone, Default)]
pub struct ForwardedHeaders {
    /// `X-Request-Id`.
    pub request_id: Option<HeaderValue>,
    /// A valid `traceparent`, as it came.
    pub traceparent: Option<HeaderValue>,
}

/// Returns the error about an order id whose order is at home elsewhere.
#[must_use]
pub fn reserved(order_id_name: &'static str, home: OrderHome) -> Conflict {
    let reason = match home {
        OrderHome::Legacy => "is reserved: it was used with the old v1 service",
        OrderHome::Native | OrderHome::Entry => "is reserved: it was used with another v2 engine",
        OrderHome::Lost => "is reserved: its order was lost when the service was restored from a backup",
        OrderHome::Operation => "is reserved",
    };
    RequestError::member(order_id_name, reason).into()
}

/// Returns the error about an order id whose operation was made through the other API version.
#[must_use]
pub fn of_other_version(order_id_name: &'static str, made_through: &str) -> Conflict {
    let reason = format!(
        "exists already and was created through {made_through}: another API version is not a way to send it again"
    );
    RequestError::member(order_id_name, reason).into()
}

/// Returns the error about an order id that exists with other data. It names members, never values.
#[must_use]
pub fn conflict(order_id_name: &'static str, mut paths: Vec<String>) -> Conflict {
    /// A body may differ in thousands of members; the first few are enough.
    const NAMED: usize = 12;
    /// In the log fewer are.
    const LOGGED: usize = 8;
    if paths.is_empty() {
        return RequestError::member(order_id_name, "exists already and was created from other data").into();
    }
    paths.dedup();
    let rest = paths.len().saturating_sub(NAMED);
    paths.truncate(NAMED);
    let names: Vec<_> = paths.iter().map(|path| Nameable(path).shown()).collect();
    let differing = names.iter().take(LOGGED).copied().collect::<Vec<_>>().join(",");
    let names = names.join(", ");
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let reason = format!("exists already and was created from other data; differs in: {names}{more}");
    Conflict { differing: Some(differing.into()), ..RequestError::member(order_id_name, reason).into() }
}
