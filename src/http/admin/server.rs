//! Admits the requests of the admin listener and answers them.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderMap, Method, Request, Uri};
use hyper::body::Incoming;
use tokio::time::timeout;

use super::access::{Access, AdminHead};
use super::context::AdminContext;
use super::form::{Form, read_body, read_form};
use super::guard::{RequestOrigin, host_of, is_own_name};
use super::refused::RouteKind;
use super::reply::{self, AdminReply, Rejection};
use super::request::{AdminRequest, ConnectionEnds};
use super::routes::{AdminEndpoint, AdminRoute, Handler, Located, Verb, locate, return_path};
use super::samples::RecentSamples;
use super::sessions::SignedIn;
use super::source::AdminSource;
use crate::clock::Random;
use crate::console;
use crate::http::listener::ConnectionState;
use crate::http::reply::REQUEST_ID;
use crate::http::request_ids::request_id_of;
use crate::rules::Role;
use crate::store::StoreError;
use crate::telemetry::access::loggable;
use crate::telemetry::{metrics, prometheus_text};

/// How long the checks behind `/readyz` may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a page waits for the store: with the probe for its banner, less than a connection may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(12);

/// The media type in `Accept` that selects [`metrics::CONTENT_TYPE`].
const OPENMETRICS: &str = "application/openmetrics-text";

/// The `OpenAPI` document of the v2 interface, as this binary serves it. It is written by hand; tests compare it with
/// the code.
pub(super) const OPENAPI: &str = include_str!("../../../docs/openapi.json");

/// Answers the requests of the admin listener.
pub(super) struct Server {
    source: Arc<dyn AdminSource>,
    random: Arc<dyn Random>,
    access: Access,
    samples: RecentSamples,
}

impl Server {
    pub(super) fn new(source: Arc<dyn AdminSource>, random: Arc<dyn Random>) -> Self {
        Self { source, random, access: Access::default(), samples: RecentSamples::default() }
    }

    /// Returns the reply to a request. The connection may not be evicted from when its handler begins.
    pub(super) async fn reply(
        &self,
        ends: ConnectionEnds,
        connection: &ConnectionState,
        request: Request<Incoming>,
    ) -> AdminReply {
        let (parts, body) = request.into_parts();
        let request_id = request_id_of(&parts.headers, &*self.random);
        let rules = self.source.rule_set();
        let host = host_of(&parts.uri, parts.version, &parts.headers);
        let admin = &rules.gateway.admin;
        let logged_id = loggable(request_id.to_str().unwrap_or_default());
        let head = AdminHead {
            admin,
            headers: &parts.headers,
            ends,
            now: self.source.now(),
            monotonic: self.source.monotonic(),
            request_id: &logged_id,
            origin: RequestOrigin::of(host.unwrap_or_default(), &parts.headers, ends, &admin.hosts),
            query: parts.uri.query(),
        };
        let located = locate(parts.uri.path());
        let kind = located.map_or_else(|| kind_of_unknown(&parts.headers), |located| located.kind);
        let mut reply = match self.admit(head, host, located, &parts.method, &parts.uri) {
            Ok((route, user)) => {
                let id = located.map_or("", |located| located.id);
                match self.answer(head, route, (id, user.clone()), body, connection).await {
                    Ok(reply) => reply,
                    Err(rejection) => self.refuse(head, kind, user, &rejection).await,
                }
            }
            Err(Refusal::SignIn(to)) => reply::see_other(&to),
            Err(Refusal::Rejected(rejection, user)) => {
                if !Verb::Get.is(&parts.method) && rejection.is_of_another_place() {
                    let route = located.map_or("none", |located| located.path);
                    log_refused(head, route, user.as_ref().map_or("none", |user| &user.name), &rejection);
                }
                self.refuse(head, kind, user, &rejection).await
            }
        };
        reply.headers_mut().insert(REQUEST_ID, request_id);
        reply
    }

    /// Decides whether a request may reach its handler. Returns the route and, if it needs one, the user.
    fn admit(
        &self,
        head: AdminHead<'_>,
        host: Option<&str>,
        located: Option<Located<'_>>,
        method: &Method,
        uri: &Uri,
    ) -> Result<(&'static AdminRoute, Option<SignedIn>), Refusal> {
        let host = host.ok_or(Rejection::NoHost)?;
        let kind = located.map_or_else(|| kind_of_unknown(head.headers), |located| located.kind);
        let needs_user = located.is_none_or(|located| located.needs_user);
        // The replies to probes hold nothing that a web page could use, and probes come by other addresses than this
        // listener's: of a published port, or of a load balancer.
        let may_name_any = kind == RouteKind::Probe || is_own_name(host, head.ends.local, &head.admin.hosts);
        // No web page knows a token, so a request with one may name any host.
        let by_token = if needs_user || !may_name_any { self.access.by_token(head) } else { Ok(None) };
        if !may_name_any && !matches!(by_token, Ok(Some(_)) | Err(Rejection::TooManyFailures(_))) {
            return Err(Rejection::ForeignHost.into());
        }
        let user = match &by_token {
            Ok(by_token) if needs_user => by_token.clone().or_else(|| self.access.by_session(head)),
            Ok(_) | Err(_) => None,
        };
        let refused = |rejection| Refusal::Rejected(rejection, user.clone());
        let is_look = Verb::Get.is(method);
        match head.origin {
            RequestOrigin::Foreign => return Err(refused(Rejection::ForeignOrigin)),
            RequestOrigin::ForeignLink if !is_look || kind != RouteKind::Page => {
                return Err(refused(Rejection::ForeignOrigin));
            }
            RequestOrigin::Unknown | RequestOrigin::Own | RequestOrigin::ForeignLink => {}
        }
        by_token?;
        if !is_look && head.hides_its_origin() {
            return Err(refused(Rejection::UnknownOrigin));
        }
        if needs_user && user.is_none() {
            return Err(if kind == RouteKind::Page {
                sign_in_first(is_look, uri)
            } else {
                Rejection::Unauthorized.into()
            });
        }
        let located = located.ok_or_else(|| refused(Rejection::NotFound))?;
        let route = located.route(method).ok_or_else(|| refused(Rejection::Method(located.allow())))?;
        if let Some(user) = &user {
            check_role(head, route, user).map_err(refused)?;
        }
        Ok((route, user))
    }

    /// Answers a request that does not reach its handler; a user gets a page with the navigation.
    async fn refuse(
        &self,
        head: AdminHead<'_>,
        kind: RouteKind,
        user: Option<SignedIn>,
        rejection: &Rejection,
    ) -> AdminReply {
        let Some(user) = user.filter(|_| kind == RouteKind::Page) else { return rejection.reply(kind) };
        let (address, request_id) = (head.ends.peer, head.request_id);
        let request =
            AdminRequest { user, address, request_id, id: "", query: None, form: Form::default(), body: Bytes::new() };
        let (error, detail) = rejection.page();
        rejection.reply_with(self.context(&request).error_page(error, detail).await)
    }

    fn context<'a>(&'a self, request: &'a AdminRequest<'a>) -> AdminContext<'a> {
        AdminContext { source: &self.source, samples: &self.samples, request }
    }

    /// Answers a request that was admitted; `id`: the part of the path that has this name in the table.
    async fn answer(
        &self,
        head: AdminHead<'_>,
        route: &'static AdminRoute,
        (id, user): (&str, Option<SignedIn>),
        body: Incoming,
        connection: &ConnectionState,
    ) -> Result<AdminReply, Rejection> {
        let has_form = route.verb == Verb::Post && route.kind == RouteKind::Page;
        let (form, body) = if route.takes_json {
            (Form::default(), read_body(body).await?)
        } else if has_form {
            (read_form(head.headers, body, user.is_some()).await?, Bytes::new())
        } else {
            (Form::default(), Bytes::new())
        };
        if !connection.authenticate() {
            // It was evicted a moment ago and ends here: nothing is done whose reply could not be sent.
            return pending().await;
        }
        let (address, request_id, query) = (head.ends.peer, head.request_id, head.query);
        let request = |user, form| AdminRequest { user, address, request_id, id, query, form, body };
        Ok(match (route.endpoint, user) {
            (AdminEndpoint::Health, _) => reply::text_line("ok\n"),
            (AdminEndpoint::Ready, _) => self.readiness().await,
            (AdminEndpoint::Asset, _) => reply::asset(&format!("/console/{id}")),
            (AdminEndpoint::SignInForm, _) => self.access.form(head),
            (AdminEndpoint::SignIn, _) => self.access.sign_in(head, &form, &*self.random),
            (AdminEndpoint::SignOut, Some(user)) => self.access.sign_out(head, &request(user, form)),
            (AdminEndpoint::Metrics, Some(_)) => self.metrics(head.headers),
            (AdminEndpoint::OpenApi, Some(_)) => reply::ok("application/json", OPENAPI),
            (AdminEndpoint::Handled(handler), Some(user)) => {
                handled(handler, route.kind, &self.context(&request(user, form))).await
            }
            (_, None) => return Err(Rejection::Unauthorized),
        })
    }

    async fn readiness(&self) -> AdminReply {
        let ready = timeout(CHECK_TIMEOUT, self.source.ready()).await;
        match ready.unwrap_or_else(|_| Err("the readiness checks did not finish in time".to_owned())) {
            Ok(()) => reply::text_line("ready\n"),
            Err(reason) => reply::unavailable(&reason),
        }
    }

    /// Returns the metrics in the format that `Accept` selects, by default in the one that every scraper reads. Scrapers
    /// that support `OpenMetrics` prefer it.
    fn metrics(&self, headers: &HeaderMap) -> AdminReply {
        let text = self.source.metrics();
        if accepts(headers, OPENMETRICS) {
            reply::ok(metrics::CONTENT_TYPE, text)
        } else {
            reply::ok(prometheus_text::CONTENT_TYPE, prometheus_text::from_open_metrics(&text))
        }
    }
}

/// Runs a handler. Its refusal is a page for a person, and JSON for a program.
async fn handled(handler: Handler, kind: RouteKind, context: &AdminContext<'_>) -> AdminReply {
    if kind != RouteKind::Page {
        return handler(context).await.unwrap_or_else(|refused| reply::refused(&refused));
    }
    let too_slow = || Err(StoreError::Unavailable("it did not answer in time".to_owned()).into());
    match timeout(PAGE_TIMEOUT, handler(context)).await.unwrap_or_else(|_| too_slow()) {
        Ok(reply) => reply,
        Err(refused) => context.refused_page(refused).await,
    }
}

/// Why a request does not reach its handler.
enum Refusal {
    /// It is rejected; the user, if it has one.
    Rejected(Rejection, Option<SignedIn>),
    /// The browser is sent to the sign-in form, at this path.
    SignIn(String),
}

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection, None)
    }
}

/// Returns the kind of a request for a path that no route has: a browser's, of a person who mistyped it, accepts pages.
fn kind_of_unknown(headers: &HeaderMap) -> RouteKind {
    if accepts(headers, "text/html") { RouteKind::Page } else { RouteKind::Program }
}

/// Sends a browser to the sign-in form, which returns to the page that it requested.
fn sign_in_first(is_look: bool, uri: &Uri) -> Refusal {
    let page = uri.path_and_query().map_or("", |page| page.as_str());
    let to = return_path(page).filter(|page| is_look && *page != "/").unwrap_or_default();
    // In a query, slashes need no encoding.
    Refusal::SignIn(console::address("/sign-in", &[("to", to)]).replace("%2F", "/"))
}

/// Refuses and logs what the user may not do.
fn check_role(head: AdminHead<'_>, route: &AdminRoute, user: &SignedIn) -> Result<(), Rejection> {
    let refused = match route.role {
        Some(role) if user.role < role => Rejection::Role(role),
        Some(Role::Operator) if head.admin.read_only => Rejection::ReadOnly,
        Some(_) | None => return Ok(()),
    };
    log_refused(head, route.path, &user.name, &refused);
    Err(refused)
}

fn log_refused(head: AdminHead<'_>, route: &str, user: &str, refused: &Rejection) {
    let (address, request_id) = (head.ends.peer, head.request_id);
    tracing::warn!(user, %address, request_id, route, refused = refused.as_str(), "refused an action");
}

/// Reports whether `Accept` names a media type, with any weight.
fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges = values.flat_map(|value| value.split(','));
    ranges.filter_map(|range| range.split(';').next()).any(|name| name.trim().eq_ignore_ascii_case(media_type))
}
