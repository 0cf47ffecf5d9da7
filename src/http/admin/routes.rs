//! The one table of the admin listener's routes, with the role that each needs.

use http::Method;

use self::AdminEndpoint::{Api, Asset, Health, Page, Ready, SignIn, SignInForm, SignOut};
use self::RouteKind::{Page as PageKind, Probe, Program, Static};
use self::Verb::{Get, Post};
use crate::rules::Role::{self, Operator, Viewer};

/// Who makes the requests of a route, which decides how they are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteKind {
    /// Supervisors, without a user.
    Probe,
    /// Programs: refusals are JSON.
    Program,
    /// People, in a browser: refusals are pages, and without a session it is sent to the sign-in form.
    Page,
    /// Their browser, without a user.
    Static,
}

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

/// What replies to a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AdminEndpoint {
    Health,
    Ready,
    Api(ApiCall),
    Page(ConsolePage),
    Asset,
    SignInForm,
    SignIn,
    SignOut,
}

/// A request of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApiCall {
    Metrics,
    Rules,
    Reload,
    OpenApi,
    /// Whether merchants can move to v2.
    MerchantReadiness,
    Callbacks,
    Callback,
    Resend,
    ResendFailed,
    Sample,
}

/// A page of the console, or an action on one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConsolePage {
    Overview,
    Rules,
    Merchants,
    Merchant,
    Operations,
    Operation,
    Callbacks,
    Callback,
    /// Shows how many callbacks the filter matches, before they are resent.
    ConfirmResend,
    SampleForm,
    ExplainForm,
    Audit,
    Explain,
    Reload,
    ResendOne,
    ResendMatching,
    Sample,
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
}

const fn row(
    verb: Verb,
    path: &'static str,
    role: Option<Role>,
    kind: RouteKind,
    endpoint: AdminEndpoint,
) -> AdminRoute {
    AdminRoute { verb, path, role, kind, endpoint }
}

/// A request of the API.
const fn api(verb: Verb, path: &'static str, role: Role, call: ApiCall) -> AdminRoute {
    row(verb, path, Some(role), Program, Api(call))
}

/// A page of the console.
const fn page(verb: Verb, path: &'static str, role: Role, page: ConsolePage) -> AdminRoute {
    row(verb, path, Some(role), PageKind, Page(page))
}

/// All routes. The first path that matches counts, so `{id}` comes after the names that it would match.
pub(super) const ROUTES: &[AdminRoute] = &[
    row(Get, "/healthz", None, Probe, Health),
    row(Get, "/readyz", None, Probe, Ready),
    api(Get, "/metrics", Viewer, ApiCall::Metrics),
    api(Get, "/api/rules", Viewer, ApiCall::Rules),
    api(Post, "/api/rules/reload", Operator, ApiCall::Reload),
    api(Get, "/api/openapi.json", Viewer, ApiCall::OpenApi),
    api(Get, "/api/readiness", Viewer, ApiCall::MerchantReadiness),
    api(Get, "/api/callbacks", Viewer, ApiCall::Callbacks),
    api(Post, "/api/callbacks/resend", Operator, ApiCall::ResendFailed),
    api(Post, "/api/callbacks/sample", Operator, ApiCall::Sample),
    api(Get, "/api/callbacks/{id}", Viewer, ApiCall::Callback),
    api(Post, "/api/callbacks/{id}/resend", Operator, ApiCall::Resend),
    row(Get, "/sign-in", None, PageKind, SignInForm),
    row(Post, "/sign-in", None, PageKind, SignIn),
    row(Post, "/sign-out", Some(Viewer), PageKind, SignOut),
    row(Get, "/console/{id}", None, Static, Asset),
    page(Get, "/", Viewer, ConsolePage::Overview),
    page(Get, "/rules", Viewer, ConsolePage::Rules),
    page(Post, "/rules/reload", Operator, ConsolePage::Reload),
    page(Get, "/merchants", Viewer, ConsolePage::Merchants),
    page(Get, "/merchants/{id}", Viewer, ConsolePage::Merchant),
    page(Get, "/operations", Viewer, ConsolePage::Operations),
    page(Get, "/operations/{id}", Viewer, ConsolePage::Operation),
    page(Get, "/callbacks", Viewer, ConsolePage::Callbacks),
    page(Get, "/callbacks/resend", Viewer, ConsolePage::ConfirmResend),
    page(Post, "/callbacks/resend", Operator, ConsolePage::ResendMatching),
    page(Get, "/callbacks/sample", Viewer, ConsolePage::SampleForm),
    page(Post, "/callbacks/sample", Operator, ConsolePage::Sample),
    page(Get, "/callbacks/{id}", Viewer, ConsolePage::Callback),
    page(Post, "/callbacks/{id}/resend", Operator, ConsolePage::ResendOne),
    page(Get, "/explain", Viewer, ConsolePage::ExplainForm),
    page(Post, "/explain", Viewer, ConsolePage::Explain),
    page(Get, "/audit", Viewer, ConsolePage::Audit),
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
    (located.kind == PageKind && located.needs_user && located.route(&Method::GET).is_some()).then_some(text)
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
