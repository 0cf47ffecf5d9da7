//! `dialects/<name>.toml`, and the one that is always there.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, Method};
use toml::Spanned;

use super::template::{add_reply, environment, payload, unknown_of_reply};
use super::{BUILT_IN_DIALECT, Context, Here};
use crate::rules::files::{Role, RuleFile};
use crate::rules::problems::{FileId, Span};
use crate::rules::raw::{Field, RawDialect, RawReplies, RawRoutes, RawSignature, Route, Words};
use crate::rules::{Algorithm, Dialect, Encoding, Endpoint, Recipe, Replies, Segment, StatusWords, TimestampFormat};

/// Where the keys of a dialect's file are, for problems between dialects.
#[derive(Debug, Default)]
pub(super) struct DialectPlaces {
    /// The file; `None`: built in.
    pub file: Option<FileId>,
    /// Of routes that the file names.
    pub routes: HashMap<Endpoint, Span>,
    /// Of the headers of the API key, the signature and the timestamp, where the file names them.
    pub headers: [Option<Span>; 3],
}

/// All dialects, and where their keys are.
pub(super) struct Dialects {
    pub compiled: HashMap<Box<str>, Option<Arc<Dialect>>>,
    pub places: HashMap<Box<str>, DialectPlaces>,
}

/// The first part of paths that belong to the gateway itself (contract section 1).
const OWN_PATHS: &[&str] = &["/api/v2", "/pay", "/return", "/relay", "/sandbox", "/providers"];

/// Headers that HTTP itself, clients, proxies or the gateway read or write, or that replies echo: nobody can have them for
/// its own ends.
const OF_HTTP: &[&str] = &[
    "accept",
    "accept-encoding",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "range",
    "set-cookie",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "x-request-id",
];

impl Context<'_> {
    pub(super) fn dialects(&mut self) -> Dialects {
        let mut dialects = Dialects { compiled: HashMap::new(), places: HashMap::new() };
        for (role, file) in self.files {
            let Role::Dialect(name) = role else { continue };
            let (dialect, places) = self.dialect_file(name, file);
            dialects.places.insert(name.as_str().into(), places);
            dialects.compiled.insert(name.as_str().into(), dialect);
        }
        if !dialects.compiled.contains_key(BUILT_IN_DIALECT) {
            dialects.places.insert(BUILT_IN_DIALECT.into(), DialectPlaces::default());
            dialects.compiled.insert(BUILT_IN_DIALECT.into(), Some(Arc::new(built_in())));
        }
        dialects
    }

    fn dialect_file(&mut self, name: &str, file: &RuleFile) -> (Option<Arc<Dialect>>, DialectPlaces) {
        let mut places = DialectPlaces::default();
        let dialect = self.read::<RawDialect>(file).and_then(|(here, raw)| {
            places.file = Some(here.file);
            self.dialect(here, name, &raw, &mut places).map(Arc::new)
        });
        (dialect, places)
    }

    fn dialect(&mut self, here: Here<'_>, name: &str, raw: &RawDialect, places: &mut DialectPlaces) -> Option<Dialect> {
        let default = RawSignature::default();
        let signature = raw.signature.get().unwrap_or(&default);
        places.headers =
            [&signature.api_key, &signature.signature, &signature.timestamp].map(|key| key.given().map(Spanned::span));
        let signature = self.recipe(here, signature);
        let routes = self.own_routes(here, raw.routes.get().unwrap_or(&RawRoutes::default()), places);
        let statuses = self.statuses(here, raw.statuses.get().unwrap_or(&Words::default()));
        let replies = self.replies(here, raw.replies.get().unwrap_or(&RawReplies::default()), &statuses);
        let requests = raw.requests.get();
        Some(Dialect {
            name: name.into(),
            signature: signature?,
            routes,
            statuses,
            replies,
            empty_list_is_object: requests.is_some_and(|requests| requests.empty_list_is_object.or(false)),
        })
    }

    fn recipe(&mut self, here: Here<'_>, raw: &RawSignature) -> Option<Recipe> {
        let default = default_recipe();
        // One run shows every problem: a default stands in for what is wrong, so that the rest is looked at too.
        let given = raw.payload.given().and_then(|text| self.signing_payload(here, "signature.payload", text));
        let payload = given.unwrap_or(default.payload.clone());
        let window = self.positive(here, "signature.window", &raw.window, default.window);
        let [api_key, signature, timestamp] = self.headers(here, raw, &default)?;
        Some(Recipe {
            api_key,
            signature,
            timestamp,
            timestamp_format: raw.timestamp_format.or(default.timestamp_format),
            window,
            payload,
            algorithm: raw.algorithm.or(default.algorithm),
            encoding: raw.encoding.or(default.encoding),
        })
    }

    /// The headers of the API key, the signature and the timestamp: three different ones, free for this use.
    fn headers(&mut self, here: Here<'_>, raw: &RawSignature, default: &Recipe) -> Option<[HeaderName; 3]> {
        let fields = [&raw.api_key, &raw.signature, &raw.timestamp];
        let defaults = [&default.api_key, &default.signature, &default.timestamp];
        let free = fields.map(|field| self.free_header(here, field));
        // A key that is wrong does not mean its default, which may be what another one names.
        let named: [Option<HeaderName>; 3] = std::array::from_fn(|at| match fields[at] {
            Field::Absent => Some(defaults[at].clone()),
            Field::Wrong => None,
            Field::Given(name) => Some(name.get_ref().clone()),
        });
        let same = |at: usize| (0..at).find(|earlier| named[at].is_some() && named[*earlier] == named[at]);
        if let Some((earlier, at)) = (1..3).find_map(|at| Some((same(at)?, at))) {
            let span = fields[at].given().or_else(|| fields[earlier].given()).map_or(0..0, Spanned::span);
            self.problem(here, span, "`api_key`, `signature` and `timestamp` must be three different headers");
            return None;
        }
        let [api_key, signature, timestamp] = named;
        if free == [true; 3] { Some([api_key?, signature?, timestamp?]) } else { None }
    }

    /// Whether a header may be had for the operator's ends; otherwise the problem is noted.
    pub(super) fn free_header(&mut self, here: Here<'_>, field: &Field<HeaderName>) -> bool {
        let Some(given) = field.given().filter(|given| OF_HTTP.contains(&given.get_ref().as_str())) else {
            return true;
        };
        let message = format!("`{}` has a meaning of its own in HTTP and cannot be used here", given.get_ref());
        self.problem(here, given.span(), message);
        false
    }

    /// The signing payload that a key holds; `None` when something is wrong with it, which is noted.
    pub(super) fn signing_payload(
        &mut self,
        here: Here<'_>,
        key: &str,
        text: &Spanned<String>,
    ) -> Option<Vec<Segment>> {
        let problems = match payload(text.get_ref()) {
            Ok(segments) => return Some(segments),
            Err(problems) => problems,
        };
        for problem in problems {
            let span = self.place_in_template(here, text, problem.at.as_ref());
            self.findings.add_with(here.file, span, format!("`{key}` {}", problem.reason), problem.suggestion);
        }
        None
    }

    fn own_routes(
        &mut self,
        here: Here<'_>,
        raw: &RawRoutes,
        places: &mut DialectPlaces,
    ) -> Vec<(Endpoint, Method, Box<str>)> {
        let given = [
            (Endpoint::Payin, &raw.payin),
            (Endpoint::Payout, &raw.payout),
            (Endpoint::PayinStatus, &raw.payin_status),
            (Endpoint::PayoutStatus, &raw.payout_status),
            (Endpoint::Balance, &raw.balance),
            (Endpoint::Transactions, &raw.transactions),
        ];
        let mut routes: Vec<(Endpoint, Method, Box<str>)> = Vec::new();
        for (endpoint, field) in given {
            // Its default is not what the file means, and may be in another dialect's way.
            if matches!(field, Field::Wrong) {
                continue;
            }
            let default = default_route(endpoint);
            if let Some(route) = field.given() {
                places.routes.insert(endpoint, route.span());
                self.check_route(here, endpoint, route, &default.method);
            }
            let route = field.or(default);
            if let Some((other, ..)) =
                routes.iter().find(|(_, method, path)| (method, path) == (&route.method, &route.path))
            {
                let span = field.given().map(Spanned::span).or_else(|| places.routes.get(other).cloned());
                let message = format!("`routes.{}` is the same as `routes.{}`", endpoint.as_str(), other.as_str());
                self.problem(here, span.unwrap_or(0..0), message);
            }
            routes.push((endpoint, route.method, route.path));
        }
        routes
    }

    fn check_route(&mut self, here: Here<'_>, endpoint: Endpoint, route: &Spanned<Route>, method: &Method) {
        let name = endpoint.as_str();
        if route.get_ref().method != *method {
            self.problem(here, route.span(), format!("`routes.{name}` must be a {method} route"));
        }
        let path = &*route.get_ref().path;
        let within =
            |own: &&&str| path.strip_prefix(**own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if let Some(own) = OWN_PATHS.iter().find(within) {
            self.problem(here, route.span(), format!("`routes.{name}`: {own} belongs to the gateway itself"));
        }
    }

    fn statuses(&mut self, here: Here<'_>, raw: &Words) -> StatusWords {
        let given = [&raw.pending, &raw.success, &raw.failed];
        let defaults = ["PENDING", "SUCCESS", "FAILED"];
        let mut words: Vec<Box<str>> = Vec::new();
        for (field, default) in given.into_iter().zip(defaults) {
            let span = field.as_ref().map_or(0..0, Spanned::span);
            let word = field.as_ref().map_or(default, |word| word.get_ref().as_str());
            if word.is_empty() || word.len() > 64 || word.chars().any(char::is_control) {
                self.problem(here, span.clone(), format!("`statuses.{default}` must be 1 to 64 bytes of text"));
            }
            if words.iter().any(|other| **other == *word) {
                let message = "the words in `[statuses]` must differ: the `status` filter is read by them";
                self.problem(here, span, message);
            }
            words.push(word.into());
        }
        let [pending, success, failed] = <[Box<str>; 3]>::try_from(words).unwrap_or_default();
        StatusWords { pending, success, failed }
    }

    fn replies(&mut self, here: Here<'_>, raw: &RawReplies, words: &StatusWords) -> Replies {
        let mut environment = environment();
        let given: [(&'static str, &Field<String>); 7] = [
            ("payin", &raw.payin),
            ("payout", &raw.payout),
            ("status", &raw.status),
            ("balance", &raw.balance),
            ("transactions", &raw.transactions),
            ("error", &raw.error),
            ("callback", &raw.callback),
        ];
        for (name, field) in given {
            let Some(source) = field.given() else { continue };
            if let Err(problem) = add_reply(&mut environment, name, source.get_ref(), words) {
                let span = self.place_in_template(here, source, problem.at.as_ref());
                let message = format!("`replies.{name}` {}", problem.reason);
                self.findings.add_with(here.file, span, message, problem.suggestion);
            }
            for problem in unknown_of_reply(&environment, name, words) {
                let span = self.place_in_template(here, source, problem.at.as_ref());
                self.findings.warn(here.file, span, format!("`replies.{name}` {}", problem.reason), problem.suggestion);
            }
        }
        Replies::new(environment)
    }

    /// Where a template's problem is in the rule file: its place in the template, where the file has the text as it is.
    fn place_in_template(&self, here: Here<'_>, source: &Spanned<String>, at: Option<&Span>) -> Span {
        let text = self.findings.text(here.file);
        let written = text.get(source.span()).unwrap_or_default();
        match (at, written.find(source.get_ref().as_str())) {
            (Some(at), Some(start)) if !source.get_ref().is_empty() && at.end <= source.get_ref().len() => {
                let start = source.span().start + start;
                start + at.start..start + at.end
            }
            _ => source.span(),
        }
    }
}

/// The `v1` dialect as the contract has it.
fn built_in() -> Dialect {
    let endpoints = [
        Endpoint::Payin,
        Endpoint::Payout,
        Endpoint::PayinStatus,
        Endpoint::PayoutStatus,
        Endpoint::Balance,
        Endpoint::Transactions,
    ];
    let route = |endpoint| {
        let route = default_route(endpoint);
        (endpoint, route.method, route.path)
    };
    Dialect {
        name: BUILT_IN_DIALECT.into(),
        signature: default_recipe(),
        routes: endpoints.map(route).into(),
        statuses: StatusWords { pending: "PENDING".into(), success: "SUCCESS".into(), failed: "FAILED".into() },
        replies: Replies::new(environment()),
        empty_list_is_object: false,
    }
}

fn default_recipe() -> Recipe {
    let dot = || Segment::Literal(".".into());
    Recipe {
        api_key: HeaderName::from_static("x-api-key"),
        signature: HeaderName::from_static("x-signature"),
        timestamp: HeaderName::from_static("x-timestamp"),
        timestamp_format: TimestampFormat::Unix,
        window: Duration::from_mins(5),
        payload: vec![Segment::Timestamp, dot(), Segment::Method, dot(), Segment::Path, dot(), Segment::Body],
        algorithm: Algorithm::HmacSha256,
        encoding: Encoding::Hex,
    }
}

fn default_route(endpoint: Endpoint) -> Route {
    let (method, path) = match endpoint {
        Endpoint::Payin => (Method::POST, "/api/v1/payin"),
        Endpoint::Payout => (Method::POST, "/api/v1/payout"),
        Endpoint::PayinStatus => (Method::GET, "/api/v1/payin/status"),
        Endpoint::PayoutStatus => (Method::GET, "/api/v1/payout/status"),
        Endpoint::Balance => (Method::GET, "/api/v1/balance"),
        Endpoint::Transactions => (Method::GET, "/api/v1/transactions"),
    };
    Route { method, path: path.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What rules/README.md lists is what is refused.
    #[test]
    fn the_documented_headers_of_http_are_those() {
        let words = include_str!("../../../rules/README.md").split_whitespace().collect::<Vec<_>>();
        let documented = words.join(" ");
        let (_, list) = documented.split_once("gateway itself give a meaning: ").unwrap();
        let (list, _) = list.split_once(". A request that sends").unwrap();
        let listed: Vec<_> = list.split(',').map(|name| name.trim().trim_matches('`').to_lowercase()).collect();
        assert_eq!(listed, OF_HTTP);
    }
}
