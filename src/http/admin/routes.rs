//! The one table of the admin listener's routes, with the role that each needs and the handler that replies.

use http::Method;

use self::AdminEndpoint::{Asset, Handled, Health, Metrics, OpenApi, Ready, SignIn, SignInForm, SignOut};
use self::Verb::{Get, Post};
use super::console::{audit, callbacks, explain, merchants, operations, overview, requests, rules};
use super::context::{AdminContext, HandlerResult};
use super::refused::RouteKind::{self, Page, Probe, Program, Static};
use super::reply;
use super::source::Pending;
use super::{api, operations_api};
use crate::rules::Role::{self, Operator, Viewer};

/// The method of a route; `GET` includes `HEAD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    Post,
}

impl Verb {
    /// Reports whether a request has this method.
    pub(super) fn is(self, method: &Method) -> bool {
        match self {
            Self::Get => matches!(*method, Method::GET | Method::HEAD),
            Self::Post => *method == Method::POST,
        }
    }

    /// Returns the methods as `Allow` names them.
    const fn allowed(self) -> &'static str {
        match self {
            Self::Get => "GET, HEAD",
            Self::Post => "POST",
        }
    }
}

/// Makes the reply to an admitted request of a user.
pub(super) type Handler = for<'a> fn(&'a AdminContext<'a>) -> Pending<'a, HandlerResult>;

/// What replies to a route.
#[derive(Debug, Clone, Copy)]
pub(super) enum AdminEndpoint {
    Health,
    Ready,
    Metrics,
    OpenApi,
    Handled(Handler),
    Asset,
    SignInForm,
    SignIn,
    SignOut,
}

/// A route: who may make which request, and what replies.
#[derive(Debug)]
pub(super) struct AdminRoute {
    pub verb: Verb,
    /// The path; `{id}` stands for one segment that is not empty.
    pub path: &'static str,
    /// The role that the user needs; `None`: no user is needed.
    pub role: Option<Role>,
    pub kind: RouteKind,
    pub endpoint: AdminEndpoint,
    /// Whether the body is a JSON object.
    pub takes_json: bool,
}

const fn row(
    verb: Verb,
    path: &'static str,
    role: Option<Role>,
    kind: RouteKind,
    endpoint: AdminEndpoint,
) -> AdminRoute {
    AdminRoute { verb, path, role, kind, endpoint, takes_json: false }
}

/// A request of the API.
const fn api(verb: Verb, path: &'static str, role: Role, handler: Handler) -> AdminRoute {
    row(verb, path, Some(role), Program, Handled(handler))
}

/// An action of the API whose body is a JSON object.
const fn json(path: &'static str, handler: Handler) -> AdminRoute {
    AdminRoute { takes_json: true, ..api(Post, path, Operator, handler) }
}

/// A page of the console, or an action on one.
const fn page(verb: Verb, path: &'static str, role: Role, handler: Handler) -> AdminRoute {
    row(verb, path, Some(role), Page, Handled(handler))
}

/// All routes. The first path that matches counts, so `{id}` comes after the names that it would match.
pub(super) const ROUTES: &[AdminRoute] = &[
    row(Get, "/healthz", None, Probe, Health),
    row(Get, "/readyz", None, Probe, Ready),
    row(Get, "/metrics", Some(Viewer), Program, Metrics),
    row(Get, "/api/openapi.json", Some(Viewer), Program, OpenApi),
    api(Get, "/api/rules", Viewer, |context| Box::pin(async move { Ok(reply::document(&context.source.rules())) })),
    api(Post, "/api/rules/reload", Operator, |context| Box::pin(api::reload(context))),
    api(Get, "/api/readiness", Viewer, |context| Box::pin(api::readiness(context))),
    api(Get, "/api/requests", Viewer, |context| Box::pin(async move { api::requests(context) })),
    api(Get, "/api/operations", Viewer, |context| Box::pin(operations_api::list(context))),
    api(Get, "/api/operations/{id}", Viewer, |context| Box::pin(operations_api::show(context))),
    api(Post, "/api/operations/{id}/ask", Operator, |context| Box::pin(operations_api::ask(context))),
    json("/api/operations/{id}/resolve", |context| Box::pin(operations_api::resolve(context))),
    json("/api/operations/{id}/confirm", |context| Box::pin(operations_api::confirm(context))),
    api(Post, "/api/operations/{id}/acknowledge", Operator, |context| Box::pin(operations_api::acknowledge(context))),
    api(Get, "/api/callbacks", Viewer, |context| Box::pin(api::callbacks(context))),
    api(Post, "/api/callbacks/resend", Operator, |context| Box::pin(api::resend_matching(context))),
    api(Post, "/api/callbacks/sample", Operator, |context| Box::pin(api::sample(context))),
    api(Get, "/api/callbacks/{id}", Viewer, |context| Box::pin(api::callback(context))),
    api(Post, "/api/callbacks/{id}/resend", Operator, |context| Box::pin(api::resend(context))),
    row(Get, "/sign-in", None, Page, SignInForm),
    row(Post, "/sign-in", None, Page, SignIn),
    row(Post, "/sign-out", Some(Viewer), Page, SignOut),
    row(Get, "/console/{id}", None, Static, Asset),
    page(Get, "/", Viewer, |context| Box::pin(overview::show(context))),
    page(Get, "/rules", Viewer, |context| Box::pin(rules::show(context))),
    page(Post, "/rules/reload", Operator, |context| Box::pin(rules::reload(context))),
    page(Get, "/merchants", Viewer, |context| Box::pin(merchants::list(context))),
    page(Get, "/merchants/{id}", Viewer, |context| Box::pin(merchants::show(context))),
    page(Get, "/operations", Viewer, |context| Box::pin(operations::list(context))),
    page(Get, "/search", Viewer, |context| Box::pin(operations::search(context))),
    page(Get, "/operations/{id}", Viewer, |context| Box::pin(operations::show(context))),
    page(Post, "/operations/{id}/ask", Operator, |context| Box::pin(operations::ask(context))),
    page(Post, "/operations/{id}/resolve", Operator, |context| Box::pin(operations::resolve(context))),
    page(Post, "/operations/{id}/confirm", Operator, |context| Box::pin(operations::confirm(context))),
    page(Post, "/operations/{id}/acknowledge", Operator, |context| Box::pin(operations::acknowledge(context))),
    page(Get, "/callbacks", Viewer, |context| Box::pin(callbacks::list(context))),
    page(Get, "/callbacks/resend", Viewer, |context| Box::pin(callbacks::confirm(context))),
    page(Post, "/callbacks/resend", Operator, |context| Box::pin(callbacks::resend_matching(context))),
    page(Get, "/callbacks/sample", Viewer, |context| Box::pin(callbacks::sample_form(context))),
    page(Post, "/callbacks/sample", Operator, |context| Box::pin(callbacks::sample(context))),
    page(Get, "/callbacks/{id}", Viewer, |context| Box::pin(callbacks::show(context))),
    page(Post, "/callbacks/{id}/resend", Operator, |context| Box::pin(callbacks::resend_one(context))),
    page(Get, "/requests", Viewer, |context| Box::pin(requests::list(context))),
    page(Get, "/explain", Viewer, |context| Box::pin(explain::form(context))),
    page(Post, "/explain", Viewer, |context| Box::pin(explain::explain(context))),
    page(Get, "/audit", Viewer, |context| Box::pin(audit::list(context))),
];

/// The routes of one path: of a kind, and all with or all without a user.
#[derive(Debug, Clone, Copy)]
pub(super) struct Located<'p> {
    /// As in the table.
    pub path: &'static str,
    pub kind: RouteKind,
    pub needs_user: bool,
    /// The segment that `{id}` stands for, as sent; else empty.
    pub id: &'p str,
}

impl Located<'_> {
    fn routes(self) -> impl Iterator<Item = &'static AdminRoute> {
        ROUTES.iter().filter(move |route| route.path == self.path)
    }

    /// Returns the route of a method.
    pub(super) fn route(self, method: &Method) -> Option<&'static AdminRoute> {
        self.routes().find(|route| route.verb.is(method))
    }

    /// Returns the methods of the path, for `Allow`.
    pub(super) fn allow(self) -> String {
        self.routes().map(|route| route.verb.allowed()).collect::<Vec<_>>().join(", ")
    }
}

/// Finds the routes of a path.
pub(super) fn locate(path: &str) -> Option<Located<'_>> {
    let found = |route: &'static AdminRoute| {
        let id = matched(route.path, path)?;
        Some(Located { path: route.path, kind: route.kind, needs_user: route.role.is_some(), id })
    };
    ROUTES.iter().find_map(found)
}

/// Returns what `{id}` stands for if a path matches, or nothing where the route has no `{id}`.
fn matched<'p>(route: &str, path: &'p str) -> Option<&'p str> {
    let Some((before, after)) = route.split_once("{id}") else { return (route == path).then_some("") };
    let id = path.strip_prefix(before)?.strip_suffix(after)?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

/// Returns the path and query of a page to return to after the sign-in, if it is one of the console that a browser can
/// open: never another address.
pub(super) fn return_path(text: &str) -> Option<&str> {
    const MAX_PATH_BYTES: usize = 2048;
    let is_plain = text.len() <= MAX_PATH_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic());
    let located = locate(text.split('?').next().unwrap_or_default()).filter(|_| is_plain)?;
    (located.kind == Page && located.needs_user && located.route(&Method::GET).is_some()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_finds_its_own_routes() {
        for route in ROUTES {
            let path = route.path.replace("{id}", "x");
            let located = locate(&path).unwrap();
            assert_eq!(located.path, route.path, "a route above takes its requests");
            assert!(located.routes().all(|other| other.kind == route.kind), "{}", route.path);
            assert!(located.routes().all(|other| other.role.is_some() == located.needs_user), "{}", route.path);
            assert_eq!(located.id, if route.path.contains('{') { "x" } else { "" });
            let same = ROUTES.iter().filter(|other| other.path == route.path && other.verb == route.verb);
            assert_eq!(same.count(), 1, "{}", route.path);
        }
        assert_eq!(locate("/callbacks/resend").unwrap().allow(), "GET, HEAD, POST");
        for path in ["", "/x", "//", "/rules/", "/merchants/", "/merchants/a/b", "/callbacks//resend", "/RULES"] {
            assert!(locate(path).is_none(), "{path}");
        }
    }

    #[test]
    fn viewers_look_and_only_operators_change_anything() {
        for route in ROUTES {
            let is_action = route.verb == Post && !["/sign-in", "/sign-out", "/explain"].contains(&route.path);
            assert_eq!(route.role == Some(Operator), is_action, "{route:?}");
        }
    }

    #[test]
    fn only_pages_of_the_console_are_returned_to() {
        for good in ["/", "/rules", "/callbacks?state=failed&merchant=a%2Fb", "/operations/12", "/explain?"] {
            assert_eq!(return_path(good), Some(good));
        }
        for bad in [
            "",
            "//evil.example",
            "//evil.example/rules",
            "/\\evil.example",
            "https://evil.example/",
            "/sign-in",
            "/sign-out",
            "/rules/reload",
            "/api/rules",
            "/healthz",
            "/console/x.css",
            "/merchants/a b",
            "/rules?x=\n",
            "/rules?x=\u{e9}",
            &format!("/rules?x={}", "a".repeat(2048)),
        ] {
            assert_eq!(return_path(bad), None, "{bad:?}");
        }
    }
}
