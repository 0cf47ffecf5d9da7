//! Compiles `dialects/<name>.toml` and the built-in dialect.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use http::{HeaderName, Method};
use toml::Spanned;

use super::{BUILT_IN_DIALECT, Context, FileContext, ReadFile};
use crate::domain::{Algorithm, Encoding, Recipe, Segment, TimestampFormat};
use crate::rules::dialect::template::{TemplateProblem, add_reply, environment, payload};
use crate::rules::files::FileRole;
use crate::rules::problems::{FileId, Span};
use crate::rules::raw::{BoundedDuration, Field, FieldName, Key, RouteKey, from_words, raw_table};
use crate::rules::setting::Effect::{Allows, Refuses};
use crate::rules::setting::{OnChange, SettingEntry};
use crate::rules::{Dialect, Endpoint, Replies, StatusWords};

raw_table! {
    /// `dialects/<name>.toml`: a v1 wire format, which defines how requests are signed, their routes and the format of
    /// replies. Every key may be left out; a merchant names its dialect in `[v1]`.
    struct RawDialect {
        /// How requests and callbacks are signed.
        signature: RawSignature = section
            => OnChange::always(Refuses).meaning("requests signed in the old way are refused"),
        /// Method and path of each endpoint. Two endpoints may have the same path with different methods. Dialects may
        /// share routes if they name the same three headers.
        routes: RawRoutes = section => OnChange::always(Refuses).meaning("requests to the old path get 404"),
        /// The dialect's words for the v2 statuses, three different ones.
        statuses: RawStatuses = section
            => OnChange::always(Refuses).meaning("replies, callbacks and the `status` filter use the new word"),
        /// Templates of bodies, minijinja (Jinja2). A reply without one has its default format.
        replies: RawReplies = section
            => OnChange::always(Refuses).meaning("the shape of that reply changes")
                .read_by(|text, _| SettingEntry { same: text.to_owned(), shown: "a template".to_owned() }),
        /// How requests are read.
        requests: RawRequests = section,
    }
}

raw_table! {
    /// `[signature]`.
    struct RawSignature {
        /// The header with the API key. The three headers must differ, and must not be headers with a meaning in HTTP,
        /// proxies or the gateway.
        api_key: FieldName = "X-Api-Key" where { "examples": ["X-Api-Key"] },
        /// The header with the signature alone: no scheme, no prefix.
        signature: FieldName = "X-Signature",
        /// The header with the timestamp.
        timestamp: FieldName = "X-Timestamp" where { "examples": ["X-Timestamp"] },
        /// The format of the timestamp.
        ///
        /// - `unix`: seconds since 1970
        /// - `unix-ms`: milliseconds since 1970
        /// - `rfc3339`: `2026-01-02T03:04:05Z`
        timestamp_format: TimestampFormat = "unix",
        /// The largest difference between the timestamp and the gateway's clock, earlier or later, inclusive: a span of
        /// time. A larger difference is 401.
        window: BoundedDuration = "5m" => OnChange::more(),
        /// The signed text, with the placeholders `{timestamp}`, `{method}`, `{path}`, `{query}`, `{target}`, `{body}`,
        /// `{body_sha256}` and `{api_key}`. It must contain `{body}` or `{body_sha256}`; `{{` and `}}` stand for
        /// braces.
        payload: String = "{timestamp}.{method}.{path}.{body}" where { "pattern": r"\{body(_sha256)?\}" },
        /// The MAC algorithm. Its key is the bytes of the API key's `v1_secret`.
        algorithm: Algorithm = "hmac-sha256",
        /// The encoding of the signature.
        ///
        /// - `hex`: either case is accepted
        /// - `base64`: the standard alphabet with its padding
        encoding: Encoding = "hex",
    }
}

raw_table! {
    /// `[routes]`.
    struct RawRoutes {
        /// Creates a deposit: `POST` and a path.
        payin: RouteKey = "POST /api/v1/payin",
        /// Creates a withdrawal: `POST` and a path.
        payout: RouteKey = "POST /api/v1/payout",
        /// Shows a deposit: `GET` and a path.
        payin_status: RouteKey = "GET /api/v1/payin/status",
        /// Shows a withdrawal: `GET` and a path.
        payout_status: RouteKey = "GET /api/v1/payout/status",
        /// Shows balances: `GET` and a path.
        balance: RouteKey = "GET /api/v1/balance",
        /// Lists operations: `GET` and a path.
        transactions: RouteKey = "GET /api/v1/transactions",
    }
}

raw_table! {
    /// `[statuses]`.
    struct RawStatuses {
        /// The dialect's word for the v2 status `PENDING`, 1 to 64 bytes: shown in replies and callbacks, and accepted
        /// by the `status` filter of `transactions`. The three words must differ.
        pending "PENDING": String = "PENDING" where { "minLength": 1, "maxLength": 64 },
        /// The dialect's word for the v2 status `SUCCESS`, 1 to 64 bytes: shown in replies and callbacks, and accepted
        /// by the `status` filter of `transactions`. The three words must differ.
        success "SUCCESS": String = "SUCCESS" where { "minLength": 1, "maxLength": 64 },
        /// The dialect's word for the v2 status `FAILED`, 1 to 64 bytes: shown in replies and callbacks, and accepted
        /// by the `status` filter of `transactions`. The three words must differ.
        failed "FAILED": String = "FAILED" where { "minLength": 1, "maxLength": 64 },
    }
}

raw_table! {
    /// `[replies]`: minijinja templates; a reply without one has its default shape.
    struct RawReplies {
        /// Reply 200 to the create of a deposit.
        ///
        /// Values: `transaction_id`, `external_id`, `redirect_url`. They are written as JSON, without quotes around
        /// them.
        payin: String where {
            "examples": ["{\"id\": {{ transaction_id }}, \"order\": {{ external_id }}, \"go_to\": {{ redirect_url }}}"],
        },
        /// Reply 200 to the create of a withdrawal.
        ///
        /// Values: `transaction_id`, `external_id`. They are written as JSON, without quotes around them.
        payout: String where { "examples": ["{\"id\": {{ transaction_id }}, \"order\": {{ external_id }}}"] },
        /// Reply 200 to the status of a deposit or a withdrawal.
        ///
        /// Values: `transaction_id`, `external_id`, `status`, `amount`, `currency`, `shop_code`, `account_number` (may
        /// be `null`), `type`, `created_at`. They are written as JSON, without quotes around them.
        status: String where { "examples": ["{\"id\": {{ transaction_id }}, \"state\": {{ status }}}"] },
        /// Reply 200 to the balance.
        ///
        /// Values: `balances`, a list of `currency`, `available`, `held`. They are written as JSON, without quotes
        /// around them.
        balance: String where { "examples": ["{\"balances\": {{ balances }}}"] },
        /// Reply 200 to the list of operations.
        ///
        /// Values: `transactions`, a list of objects with the values of `status`, newest first; `page`, `per_page`,
        /// `has_more`. They are written as JSON, without quotes around them.
        transactions: String where { "examples": ["{\"more\": {{ has_more }}, \"result\": {{ transactions }}}"] },
        /// Reply to an authenticated caller with any error.
        ///
        /// Values: `code` (the HTTP status), `message`. They are written as JSON, without quotes around them.
        error: String where { "examples": ["{\"ok\": false, \"code\": {{ code }}, \"text\": {{ message }}}"] },
        /// Body of callbacks to the merchant.
        ///
        /// Values: those of `status`. They are written as JSON, without quotes around them.
        callback: String where { "examples": ["{\"order\": {{ external_id }}, \"state\": {{ status }}}"] },
    }
}

raw_table! {
    /// `[requests]`.
    struct RawRequests {
        /// `true`: an empty list as `paymentData` (`[]`, as PHP writes an empty array) is read as `{}`. `false`: it is
        /// 400.
        empty_list_is_object: bool = false => OnChange::when("true", Allows, Refuses),
    }
}

from_words! {
    TimestampFormat {
        "unix" => TimestampFormat::Unix,
        "unix-ms" => TimestampFormat::UnixMillis,
        "rfc3339" => TimestampFormat::Rfc3339,
    }
    Algorithm {
        "hmac-sha256" => Algorithm::HmacSha256,
        "hmac-sha512" => Algorithm::HmacSha512,
    }
    Encoding {
        "hex" => Encoding::Hex,
        "base64" => Encoding::Base64,
    }
}

impl RawSignature {
    /// Returns the headers of the API key, the signature and the timestamp.
    const fn headers(&self) -> [&Key<FieldName>; 3] {
        [&self.api_key, &self.signature, &self.timestamp]
    }
}

/// All dialects.
pub(super) struct Dialects {
    pub compiled: HashMap<Box<str>, Option<Arc<Dialect>>>,
    /// By dialect that has a file: the file, and where it names the headers of the API key, the signature and the
    /// timestamp.
    pub headers: HashMap<Box<str>, (FileId, [Option<Span>; 3])>,
}

/// The first part of paths that belong to the gateway itself (contract section 1).
const GATEWAY_PATHS: &[&str] = &["/api/v2", "/pay", "/return", "/relay", "/sandbox", "/providers"];

/// Headers that a dialect cannot use: those that HTTP, clients, proxies or the gateway read or write, or that replies
/// echo.
pub(super) const RESERVED_HEADERS: &str = "accept accept-encoding cache-control connection content-encoding content-length content-type cookie \
    expect forwarded host http2-settings keep-alive proxy-connection range set-cookie te traceparent \
    tracestate trailer transfer-encoding upgrade user-agent via x-forwarded-for x-forwarded-host \
    x-forwarded-proto x-real-ip x-request-id";

impl Context<'_> {
    pub(super) fn dialects(&mut self) -> Dialects {
        let mut dialects = Dialects { compiled: HashMap::new(), headers: HashMap::new() };
        for (role, file) in self.files {
            let FileRole::Dialect(name) = role else { continue };
            let dialect = self.read::<RawDialect>(file).and_then(|ReadFile { context, raw, document }| {
                self.hash_dialect(name, &document);
                dialects.headers.insert(name.as_str().into(), (context.file, raw.signature.headers().map(Key::place)));
                self.dialect(context, name, &raw).map(Arc::new)
            });
            dialects.compiled.insert(name.as_str().into(), dialect);
        }
        if !dialects.compiled.contains_key(BUILT_IN_DIALECT) {
            // Compiled as if from an empty file.
            let path = Path::new("dialects/v1.toml");
            let context = FileContext { file: self.diagnostics.file(path, ""), path };
            let built_in = self.dialect(context, BUILT_IN_DIALECT, &RawDialect::default());
            dialects.compiled.insert(BUILT_IN_DIALECT.into(), built_in.map(Arc::new));
        }
        dialects
    }

    fn dialect(&mut self, context: FileContext<'_>, name: &str, raw: &RawDialect) -> Option<Dialect> {
        let signature = self.recipe(context, &raw.signature);
        let routes = self.dialect_routes(context, &raw.routes);
        let statuses = self.statuses(context, &raw.statuses);
        let replies = self.replies(context, &raw.replies, &statuses);
        Some(Dialect {
            name: name.into(),
            signature: signature?,
            header_names: raw.signature.headers().map(|key| key.spelled.clone()),
            routes,
            statuses,
            replies,
            empty_list_is_object: *raw.requests.empty_list_is_object,
        })
    }

    fn recipe(&mut self, context: FileContext<'_>, raw: &RawSignature) -> Option<Recipe> {
        let payload = self.signing_payload(context, "signature.payload", &raw.payload);
        // Checked before either is returned, so that one run shows the problems of both.
        let headers = self.headers(context, raw);
        let [api_key, signature, timestamp] = headers?;
        Some(Recipe {
            api_key,
            signature,
            timestamp,
            timestamp_format: *raw.timestamp_format,
            window: raw.window.0,
            payload: payload.unwrap_or_default(),
            algorithm: *raw.algorithm,
            encoding: *raw.encoding,
        })
    }

    /// Returns the headers of the API key, the signature and the timestamp, if they are three different usable ones.
    fn headers(&mut self, context: FileContext<'_>, raw: &RawSignature) -> Option<[HeaderName; 3]> {
        let keys = raw.headers();
        let usable = keys.map(|key| self.check_header(context, key));
        // A wrong key does not fall back to its default here: another key may name that header.
        let named = keys.map(|key| (!key.is_wrong).then(|| HeaderName::clone(key)));
        let headers = || keys.iter().zip(&named);
        let repeated = headers().enumerate().find_map(|(at, (key, name))| {
            let (earlier, _) = headers().take(at).find(|(_, earlier)| name.is_some() && *earlier == name)?;
            Some((earlier, key))
        });
        if let Some((earlier, key)) = repeated {
            let span = key.place().or(earlier.place()).unwrap_or_default();
            self.problem(context, span, "`api_key`, `signature` and `timestamp` must be three different headers");
            return None;
        }
        let [api_key, signature, timestamp] = named;
        if usable == [true; 3] { Some([api_key?, signature?, timestamp?]) } else { None }
    }

    /// Reports whether a dialect can use a header; otherwise notes the problem.
    pub(super) fn check_header(&mut self, context: FileContext<'_>, key: &Key<FieldName>) -> bool {
        let reserved = RESERVED_HEADERS.split(' ').any(|name| name == key.as_str());
        if reserved {
            let message = format!("`{}` has a meaning of its own in HTTP and cannot be used here", key.as_str());
            self.problem(context, key.spanned().span(), message);
        }
        !reserved
    }

    /// Parses the signing payload of a key; notes its problems and returns `None` when it is wrong.
    pub(super) fn signing_payload(
        &mut self,
        context: FileContext<'_>,
        key: &str,
        text: &Key<String>,
    ) -> Option<Vec<Segment>> {
        let note = |problem: TemplateProblem| self.template_problem(context, key, &text.spanned(), problem);
        payload(text).map_err(|problems| problems.into_iter().for_each(note)).ok()
    }

    fn dialect_routes(&mut self, context: FileContext<'_>, raw: &RawRoutes) -> Vec<(Endpoint, Method, Box<str>)> {
        let given = [
            (Endpoint::Payin, &raw.payin),
            (Endpoint::Payout, &raw.payout),
            (Endpoint::PayinStatus, &raw.payin_status),
            (Endpoint::PayoutStatus, &raw.payout_status),
            (Endpoint::Balance, &raw.balance),
            (Endpoint::Transactions, &raw.transactions),
        ];
        let mut routes: Vec<(Endpoint, Method, Box<str>)> = Vec::new();
        for (endpoint, key) in given {
            // A wrong key does not fall back to its default, which may conflict with another dialect.
            if key.is_wrong {
                continue;
            }
            if let Some(at) = key.place() {
                self.check_route(context, endpoint, key, at);
            }
            let route = RouteKey::clone(key);
            let same = |other: &&(Endpoint, &Key<RouteKey>)| !other.1.is_wrong && **other.1 == route;
            if let Some((other, earlier)) = given.iter().take_while(|other| other.0 != endpoint).find(same) {
                let message = format!("`routes.{}` is the same as `routes.{}`", endpoint.as_str(), other.as_str());
                self.problem(context, key.place().or(earlier.place()).unwrap_or_default(), message);
            }
            routes.push((endpoint, route.method, route.path));
        }
        routes
    }

    fn check_route(&mut self, context: FileContext<'_>, endpoint: Endpoint, route: &RouteKey, at: Span) {
        let name = endpoint.as_str();
        let creates = matches!(endpoint, Endpoint::Payin | Endpoint::Payout);
        let method = if creates { Method::POST } else { Method::GET };
        if route.method != method {
            self.problem(context, at.clone(), format!("`routes.{name}` must be a {method} route"));
        }
        let path = &*route.path;
        let within = |reserved: &&&str| {
            path.strip_prefix(**reserved).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if let Some(reserved) = GATEWAY_PATHS.iter().find(within) {
            self.problem(context, at, format!("`routes.{name}`: {reserved} belongs to the gateway itself"));
        }
    }

    fn statuses(&mut self, context: FileContext<'_>, raw: &RawStatuses) -> StatusWords {
        let mut words: Vec<Box<str>> = Vec::new();
        for (status, key) in [("PENDING", &raw.pending), ("SUCCESS", &raw.success), ("FAILED", &raw.failed)] {
            let (span, word) = (key.place().unwrap_or_default(), key.as_str());
            if word.is_empty() || word.len() > 64 || word.chars().any(char::is_control) {
                self.problem(context, span.clone(), format!("`statuses.{status}` must be 1 to 64 bytes of text"));
            }
            if words.iter().any(|other| **other == *word) {
                let message = "the words in `[statuses]` must differ: the `status` filter uses them";
                self.problem(context, span, message);
            }
            words.push(word.into());
        }
        let [pending, success, failed] = <[Box<str>; 3]>::try_from(words).unwrap_or_default();
        StatusWords { pending, success, failed }
    }

    fn replies(&mut self, context: FileContext<'_>, raw: &RawReplies, words: &StatusWords) -> Replies {
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
                self.template_problem(context, &format!("replies.{name}"), source, problem);
            }
        }
        Replies::new(environment)
    }

    /// Notes a problem at its place in the template, if the file contains the text without escapes; else at the whole
    /// value.
    fn template_problem(
        &mut self,
        context: FileContext<'_>,
        key: &str,
        source: &Spanned<impl AsRef<str>>,
        problem: TemplateProblem,
    ) {
        let text = self.diagnostics.text(context.file);
        let written = text.get(source.span()).unwrap_or_default();
        let parsed = source.get_ref().as_ref();
        let span = match (&problem.at, written.find(parsed)) {
            (Some(at), Some(start)) if !parsed.is_empty() && at.end <= parsed.len() => {
                let start = source.span().start + start;
                start + at.start..start + at.end
            }
            _ => source.span(),
        };
        self.diagnostics.add_with(context.file, span, format!("`{key}` {}", problem.reason), problem.suggestion);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that docs/dialects.md lists exactly the refused headers.
    #[test]
    fn the_reserved_headers_are_documented() {
        let words = include_str!("../../../docs/dialects.md").split_whitespace().collect::<Vec<_>>();
        let documented = words.join(" ");
        let (_, list) = documented.split_once("gateway itself give a meaning: ").unwrap();
        let (list, _) = list.split_once(". A request that sends").unwrap();
        let listed: Vec<_> = list.split(',').map(|name| name.trim().trim_matches('`').to_lowercase()).collect();
        assert_eq!(listed, RESERVED_HEADERS.split(' ').collect::<Vec<_>>());
    }
}
