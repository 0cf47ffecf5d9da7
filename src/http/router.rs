//! From path and method to route: one table, and the paths of the dialects.

use http::Method;

use crate::domain::Direction;
use crate::error::AdmissionError;
use crate::legacy::is_forwarded;
use crate::pages::LinkKind;
use crate::rules::{Dialect, Endpoint, Merchant, RuleSet, V1Route};

/// The name in logs and metrics of requests without a route.
pub const NO_ROUTE: &str = "none";

/// The table: paths of the gateway's own, with the methods each is served with. `HEAD` is served for customers' pages
/// alone, since link previews send it. `OPTIONS` is served nowhere: all other paths are called by programs that sign their
/// requests, and by no browser.
const TABLE: &[Row] = &[
    Row {
        path: Path::Exactly("/api/v2/deposits"),
        served: &[(Method::POST, v2(MerchantRoute::V2Create(Direction::Payin)))],
    },
    Row {
        path: Path::Exactly("/api/v2/withdrawals"),
        served: &[(Method::POST, v2(MerchantRoute::V2Create(Direction::Payout)))],
    },
    Row { path: Path::SegmentBelow("/api/v2/transactions/"), served: &[(Method::GET, v2(MerchantRoute::V2Status))] },
    Row { path: Path::SegmentBetween("/providers/", "/events"), served: &[(Method::POST, Route::ProviderEvents)] },
    Row { path: Path::SegmentBelow("/relay/"), served: &[(Method::POST, Route::Relay)] },
    Row {
        path: Path::Below("/pay/"),
        served: &[(Method::GET, shows(LinkKind::Entry)), (Method::HEAD, shows(LinkKind::Entry))],
    },
    Row {
        path: Path::Below("/return/"),
        // Banks send the customer's browser back with POST, too.
        served: &[
            (Method::GET, shows(LinkKind::Return)),
            (Method::HEAD, shows(LinkKind::Return)),
            (Method::POST, shows(LinkKind::Return)),
        ],
    },
    Row {
        path: Path::Below("/sandbox/"),
        served: &[
            (Method::GET, shows(LinkKind::Sandbox)),
            (Method::HEAD, shows(LinkKind::Sandbox)),
            (Method::POST, Route::Page { kind: LinkKind::Sandbox, decides: true }),
        ],
    },
];

const fn v2(route: MerchantRoute) -> Route {
    Route::Merchant(route)
}

const fn shows(kind: LinkKind) -> Route {
    Route::Page { kind, decides: false }
}

struct Row {
    path: Path,
    served: &'static [(Method, Route)],
}

enum Path {
    /// This path and no other.
    Exactly(&'static str),
    /// One segment, the empty one included, after this prefix.
    SegmentBelow(&'static str),
    /// One segment, the empty one included, between these two.
    SegmentBetween(&'static str, &'static str),
    /// Anything after this prefix: an altered link is a link that was altered, not another path.
    Below(&'static str),
}

/// What a request is for, from here to its handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// For a merchant, by its API key.
    Merchant(MerchantRoute),
    /// `POST /providers/{shop}/events`.
    ProviderEvents,
    /// `POST /relay/{token}`.
    Relay,
    /// A link of a customer's page.
    Page {
        /// Which kind of link.
        kind: LinkKind,
        /// Whether the page's form is sent.
        decides: bool,
    },
}

/// What a merchant's request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MerchantRoute {
    /// `POST /api/v2/deposits` and `/withdrawals`.
    V2Create(Direction),
    /// `GET /api/v2/transactions/{transaction_id}`.
    V2Status,
    /// An endpoint of the merchant's dialect.
    V1(Endpoint),
    /// A path below `[legacy] paths`.
    Legacy,
}

impl MerchantRoute {
    /// Reports whether the caller names an order: in a create, or in a status request of v1.
    #[must_use]
    pub const fn names_order(self) -> bool {
        matches!(
            self,
            Self::V2Create(_)
                | Self::V1(Endpoint::Payin | Endpoint::Payout | Endpoint::PayinStatus | Endpoint::PayoutStatus)
        )
    }
}

impl Route {
    /// Returns the name in logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Merchant(MerchantRoute::V2Create(Direction::Payin)) => "v2_deposits",
            Self::Merchant(MerchantRoute::V2Create(Direction::Payout)) => "v2_withdrawals",
            Self::Merchant(MerchantRoute::V2Status) => "v2_transactions",
            Self::Merchant(MerchantRoute::V1(endpoint)) => endpoint.as_str(),
            Self::Merchant(MerchantRoute::Legacy) => "legacy",
            Self::ProviderEvents => "provider_events",
            Self::Relay => "relay",
            Self::Page { kind, .. } => kind.segment(),
        }
    }
}

/// The match of a path and method.
#[derive(Debug, Clone, Copy)]
pub enum RouteMatch<'a> {
    /// A row of the table, and the variable segment of the path as sent.
    Own(Route, &'a str),
    /// A path of v1: which endpoint it is depends on the caller's dialect.
    V1(&'a V1Route),
    /// A path below `[legacy] paths`, with a dialect that has the header names of all.
    Legacy(&'a Dialect),
}

impl RouteMatch<'_> {
    /// Returns the route for a merchant; `None` when its dialect does not have this path, or no merchant has.
    #[must_use]
    pub fn for_merchant(self, merchant: &Merchant) -> Option<MerchantRoute> {
        match self {
            Self::Own(Route::Merchant(route), _) => Some(route),
            Self::Own(Route::ProviderEvents | Route::Relay | Route::Page { .. }, _) => None,
            Self::Legacy(_) => Some(MerchantRoute::Legacy),
            Self::V1(V1Route { endpoints, .. }) => {
                let dialect = &merchant.v1.dialect.name;
                let found = endpoints.iter().find(|(name, _)| name == dialect);
                found.map(|(_, endpoint)| MerchantRoute::V1(*endpoint))
            }
        }
    }

    /// Returns the name in logs and metrics; of a v1 path, that of the first dialect that has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Own(route, _) => route.name(),
            Self::V1(route) => route.endpoints.first().map_or(NO_ROUTE, |(_, endpoint)| endpoint.as_str()),
            Self::Legacy(_) => Route::Merchant(MerchantRoute::Legacy).name(),
        }
    }

    /// Reports whether it is a path of v1.
    #[must_use]
    pub const fn is_v1(self) -> bool {
        matches!(self, Self::V1(_) | Self::Legacy(_))
    }
}

/// Finds the route of a request. Paths are compared as sent: nothing is decoded, and a trailing slash is another path.
///
/// # Errors
/// [`AdmissionError::UnknownPath`], or [`AdmissionError::WrongMethod`] with all methods that the path has.
pub fn find<'a>(rules: &'a RuleSet, method: &Method, path: &'a str) -> Result<RouteMatch<'a>, AdmissionError> {
    if let Some((row, segment)) = TABLE.iter().find_map(|row| row.path.segment(path).map(|segment| (row, segment))) {
        return match row.served.iter().find(|(served, _)| served == method) {
            Some((_, route)) => Ok(RouteMatch::Own(*route, segment)),
            None => Err(wrong_method(row.served.iter().map(|(method, _)| method))),
        };
    }
    let Some(routes) = rules.v1_routes.get(path) else { return forwarded(rules, method, path) };
    match routes.iter().find(|route| route.method == *method) {
        Some(route) => Ok(RouteMatch::V1(route)),
        None => Err(wrong_method(routes.iter().map(|route| &route.method))),
    }
}

/// The methods of forwarded paths.
const FORWARDED: [Method; 7] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

/// Finds the route of a path below `[legacy] paths`. No path of a dialect is there: the rules refuse such prefixes.
fn forwarded<'a>(rules: &'a RuleSet, method: &Method, path: &str) -> Result<RouteMatch<'a>, AdmissionError> {
    if !rules.gateway.legacy.as_ref().is_some_and(|legacy| is_forwarded(&legacy.paths, path)) {
        return Err(AdmissionError::UnknownPath);
    }
    if !FORWARDED.contains(method) {
        return Err(wrong_method(FORWARDED.iter()));
    }
    rules.legacy_dialect.as_deref().map(RouteMatch::Legacy).ok_or(AdmissionError::UnknownPath)
}

/// Reports whether a path is one of customers' pages, so that errors are shown to a person.
#[must_use]
pub fn is_of_pages(path: &str) -> bool {
    let mut rows = TABLE.iter().filter(|row| matches!(row.served, [(_, Route::Page { .. }), ..]));
    rows.any(|row| row.path.segment(path).is_some())
}

/// Returns the name of a path's first route, for requests with a method that it is not served with.
#[must_use]
pub fn name_of_path(rules: &RuleSet, path: &str) -> &'static str {
    let own = TABLE.iter().filter(|row| row.path.segment(path).is_some()).flat_map(|row| row.served);
    let of_dialects = rules.v1_routes.get(path).into_iter().flatten();
    let method = own.map(|(method, _)| method).chain(of_dialects.map(|route| &route.method)).next();
    method.and_then(|method| find(rules, method, path).ok()).map_or(NO_ROUTE, RouteMatch::name)
}

impl Path {
    /// Returns the variable segment of a path that matches; empty where there is none.
    fn segment<'a>(&self, path: &'a str) -> Option<&'a str> {
        match self {
            Self::Exactly(text) => (path == *text).then_some(""),
            Self::SegmentBelow(prefix) => Self::path_below(prefix, path).filter(|segment| !segment.contains('/')),
            Self::SegmentBetween(prefix, suffix) => {
                let segment = Self::path_below(prefix, path)?.strip_suffix(suffix)?;
                (!segment.contains('/')).then_some(segment)
            }
            Self::Below(prefix) => Self::path_below(prefix, path),
        }
    }

    /// Returns the rest after a prefix. Most paths differ from most prefixes in the third byte already.
    fn path_below<'a>(prefix: &str, path: &'a str) -> Option<&'a str> {
        let third = |text: &str| text.as_bytes().get(2).copied();
        if third(prefix) == third(path) { path.strip_prefix(prefix) } else { None }
    }
}

fn wrong_method<'a>(methods: impl Iterator<Item = &'a Method>) -> AdmissionError {
    let mut names: Vec<&str> = methods.map(Method::as_str).collect();
    names.sort_unstable();
    names.dedup();
    AdmissionError::WrongMethod { allow: names.join(", ") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn the_document_of_the_interface_has_the_paths_and_methods_of_the_table() {
        let document: Value = serde_json::from_str(include_str!("../../docs/openapi.json")).unwrap();
        let paths = document["paths"].as_object().unwrap();
        let documented: BTreeSet<(String, String)> = paths
            .iter()
            .flat_map(|(path, item)| {
                let methods = item.as_object().unwrap().keys();
                methods.map(move |method| (path.split('{').next().unwrap().to_owned(), method.to_uppercase()))
            })
            .collect();
        let served: BTreeSet<(String, String)> = TABLE
            .iter()
            .flat_map(|row| {
                let (Path::Exactly(path)
                | Path::SegmentBelow(path)
                | Path::SegmentBetween(path, _)
                | Path::Below(path)) = row.path;
                row.served.iter().map(move |(method, _)| (path.to_owned(), method.to_string()))
            })
            .filter(|(path, _)| path.starts_with("/api/v2/"))
            .collect();
        assert_eq!(documented, served);
    }
}
