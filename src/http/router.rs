//! Which path and method is what: one table, and the dialects' own paths.

use http::Method;

use crate::domain::Direction;
use crate::failure::AdmissionError;
use crate::pages::LinkKind;
use crate::rules::{RuleSet, V1Route};

/// The name of requests that found no route, in logs and metrics.
pub const NO_ROUTE: &str = "none";

/// The table: paths of the gateway's own, with the methods each is served with. `HEAD` is served for customers' pages alone,
/// where link previews ask with it, and `OPTIONS` nowhere: the rest is read by programs that sign their requests, and no
/// browser of another origin has business with any of it.
const TABLE: &[Row] = &[
    Row { path: Path::Exactly("/api/v2/deposits"), served: &[(Method::POST, Served::Deposits)] },
    Row { path: Path::Exactly("/api/v2/withdrawals"), served: &[(Method::POST, Served::Withdrawals)] },
    Row { path: Path::SegmentBelow("/api/v2/transactions/"), served: &[(Method::GET, Served::Transaction)] },
    Row { path: Path::SegmentBetween("/providers/", "/events"), served: &[(Method::POST, Served::ProviderEvents)] },
    Row { path: Path::SegmentBelow("/relay/"), served: &[(Method::POST, Served::Relay)] },
    Row { path: Path::Below("/pay/"), served: &[LOOK_AT_ENTRY, (Method::HEAD, LOOK_AT_ENTRY.1)] },
    Row { path: Path::Below("/return/"), served: &[LOOK_AT_RETURN, (Method::HEAD, LOOK_AT_RETURN.1)] },
    Row {
        path: Path::Below("/sandbox/"),
        served: &[
            LOOK_AT_SANDBOX,
            (Method::HEAD, LOOK_AT_SANDBOX.1),
            (Method::POST, Served::Page { kind: LinkKind::Sandbox, decides: true }),
        ],
    },
];

const LOOK_AT_ENTRY: (Method, Served) = (Method::GET, Served::Page { kind: LinkKind::Entry, decides: false });
const LOOK_AT_RETURN: (Method, Served) = (Method::GET, Served::Page { kind: LinkKind::Return, decides: false });
const LOOK_AT_SANDBOX: (Method, Served) = (Method::GET, Served::Page { kind: LinkKind::Sandbox, decides: false });

struct Row {
    path: Path,
    served: &'static [(Method, Served)],
}

enum Path {
    /// This path and no other.
    Exactly(&'static str),
    /// One segment, the empty one included, after this prefix.
    SegmentBelow(&'static str),
    /// One segment, the empty one included, between these two.
    SegmentBetween(&'static str, &'static str),
    /// Whatever follows this prefix: an altered link is a link that was altered, not another path.
    Below(&'static str),
}

#[derive(Clone, Copy)]
enum Served {
    Deposits,
    Withdrawals,
    Transaction,
    ProviderEvents,
    Relay,
    Page { kind: LinkKind, decides: bool },
}

/// What a request asks for.
#[derive(Debug, Clone, Copy)]
pub enum Route<'a> {
    /// `POST /api/v2/deposits` and `/withdrawals`.
    V2Create(Direction),
    /// `GET /api/v2/transactions/{transaction_id}`: the segment as sent.
    V2Status(&'a str),
    /// `POST /providers/{shop}/events`: the segment as sent.
    ProviderEvents(&'a str),
    /// `POST /relay/{token}`: the segment as sent.
    Relay(&'a str),
    /// A link of a customer's page.
    Page {
        /// Which kind of link.
        kind: LinkKind,
        /// Whether the page's form is sent.
        decides: bool,
    },
    /// A path of v1. Which endpoint it is depends on the caller's dialect.
    V1(&'a V1Route),
}

impl Route<'_> {
    /// Its name in logs and metrics; of a v1 path, what it is in the first dialect that has it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::V2Create(Direction::Payin) => "v2_deposits",
            Self::V2Create(Direction::Payout) => "v2_withdrawals",
            Self::V2Status(_) => "v2_transactions",
            Self::ProviderEvents(_) => "provider_events",
            Self::Relay(_) => "relay",
            Self::Page { kind, .. } => kind.segment(),
            Self::V1(route) => route.endpoints.first().map_or(NO_ROUTE, |(_, endpoint)| endpoint.as_str()),
        }
    }
}

/// Finds the route of a request. Paths are compared as sent: nothing is decoded, and a trailing slash is another path.
///
/// # Errors
/// [`AdmissionError::UnknownPath`], or [`AdmissionError::WrongMethod`] with all methods that the path has.
pub fn find<'a>(rules: &'a RuleSet, method: &Method, path: &'a str) -> Result<Route<'a>, AdmissionError> {
    if let Some((row, segment)) = TABLE.iter().find_map(|row| row.path.segment(path).map(|segment| (row, segment))) {
        let served = row.served.iter().find(|(served, _)| served == method);
        return match served {
            Some((_, Served::Deposits)) => Ok(Route::V2Create(Direction::Payin)),
            Some((_, Served::Withdrawals)) => Ok(Route::V2Create(Direction::Payout)),
            Some((_, Served::Transaction)) => Ok(Route::V2Status(segment)),
            Some((_, Served::ProviderEvents)) => Ok(Route::ProviderEvents(segment)),
            Some((_, Served::Relay)) => Ok(Route::Relay(segment)),
            Some((_, Served::Page { kind, decides })) => Ok(Route::Page { kind: *kind, decides: *decides }),
            None => Err(wrong_method(row.served.iter().map(|(method, _)| method))),
        };
    }
    let routes = rules.v1_routes.get(path).ok_or(AdmissionError::UnknownPath)?;
    match routes.iter().find(|route| route.method == *method) {
        Some(route) => Ok(Route::V1(route)),
        None => Err(wrong_method(routes.iter().map(|route| &route.method))),
    }
}

/// Whether a path is one of customers' pages, so that whatever goes wrong with a request for it is told to a person.
#[must_use]
pub fn is_of_pages(path: &str) -> bool {
    let mut rows = TABLE.iter().filter(|row| matches!(row.served, [(_, Served::Page { .. }), ..]));
    rows.any(|row| row.path.segment(path).is_some())
}

/// The name of a path's first route, for requests whose method it is not served with.
#[must_use]
pub fn name_of_path(rules: &RuleSet, path: &str) -> &'static str {
    let own = TABLE.iter().filter(|row| row.path.segment(path).is_some()).flat_map(|row| row.served);
    let of_dialects = rules.v1_routes.get(path).into_iter().flatten();
    let method = own.map(|(method, _)| method).chain(of_dialects.map(|route| &route.method)).next();
    method.and_then(|method| find(rules, method, path).ok()).map_or(NO_ROUTE, |route| route.name())
}

impl Path {
    /// The variable segment of a path that matches; the empty text where there is none.
    fn segment<'a>(&self, path: &'a str) -> Option<&'a str> {
        match self {
            Self::Exactly(text) => (path == *text).then_some(""),
            Self::SegmentBelow(prefix) => Self::behind(prefix, path).filter(|segment| !segment.contains('/')),
            Self::SegmentBetween(prefix, suffix) => {
                let segment = Self::behind(prefix, path)?.strip_suffix(suffix)?;
                (!segment.contains('/')).then_some(segment)
            }
            Self::Below(prefix) => Self::behind(prefix, path),
        }
    }

    /// What follows the prefix. Most paths differ from most prefixes in the third byte already.
    fn behind<'a>(prefix: &str, path: &'a str) -> Option<&'a str> {
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
        let document: Value = serde_json::from_str(include_str!("../../api/openapi.json")).unwrap();
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
