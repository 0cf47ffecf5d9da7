//! Finds the user of a request, by a bearer token or a session, and signs people in and out.

use std::sync::Arc;
use std::time::Instant;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use http::header::{AUTHORIZATION, COOKIE, ORIGIN};
use http::{HeaderMap, HeaderName};
use sha2::{Digest as _, Sha256};

use serde::Serialize;

use super::chrome::Chrome;
use super::failures::Failures;
use super::form::Form;
use super::guard::{RequestOrigin, only_text};
use super::reply::{self, AdminReply, Rejection};
use super::request::{AdminRequest, ConnectionEnds};
use super::routes::return_path;
use super::sessions::{Sessions, SignedIn};
use crate::clock::Random;
use crate::console::{self, ConsolePage};
use crate::domain::UnixMillis;
use crate::rules::{AdminRules, AdminUser, Role};
use crate::v1::query::parameter;

/// The user where no user signs in.
const LOCAL: &str = "local";

/// The most session cookies of one request that are tried: pages on other ports of the same host may set some.
const MOST_COOKIES: usize = 8;

/// Sessions, and the failures of addresses.
#[derive(Default)]
pub(super) struct Access {
    sessions: Sessions,
    failures: Failures,
}

/// What is known of a request before its user is.
#[derive(Clone, Copy)]
pub(super) struct AdminHead<'r> {
    pub admin: &'r AdminRules,
    pub headers: &'r HeaderMap,
    pub ends: ConnectionEnds,
    pub now: UnixMillis,
    pub monotonic: Instant,
    pub request_id: &'r str,
    pub origin: RequestOrigin,
    pub query: Option<&'r str>,
}

impl<'r> AdminHead<'r> {
    /// Returns the bearer token, if the request has exactly one.
    fn bearer(&self) -> Option<&'r str> {
        let (scheme, token) = only_text(self.headers, &AUTHORIZATION)?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token)
    }

    /// Returns the name of the session's cookie. Over TLS it cannot be set by plain HTTP or by other hosts.
    const fn cookie_name(&self) -> &'static str {
        if self.ends.is_tls { "__Host-paybridge_session" } else { "paybridge_session" }
    }

    /// Returns the session ids that the request carries.
    fn session_ids(&self) -> impl Iterator<Item = &'r str> {
        let headers = self.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = headers.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let name = self.cookie_name();
        pairs.filter(move |(known, _)| *known == name).map(|(_, id)| id).take(MOST_COOKIES)
    }

    /// Returns the cookie of a session; `None` takes it from the browser.
    fn cookie(&self, id: Option<&str>) -> String {
        // A proxy may terminate TLS: then the browser's origin is https.
        let is_https = only_text(self.headers, &ORIGIN).is_some_and(|origin| origin.starts_with("https://"));
        let secure = if self.ends.is_tls || is_https { "; Secure" } else { "" };
        let name = self.cookie_name();
        let value = id.map_or("; Max-Age=0", |id| id);
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}")
    }

    /// Reports whether a person makes the request, and neither a script that refreshes a page nor another site.
    fn is_use(&self) -> bool {
        self.origin != RequestOrigin::Foreign
            && !self.headers.contains_key(HeaderName::from_static("x-paybridge-refresh"))
    }

    /// Reports whether a browser with a session makes the request without reporting for which page.
    pub(super) fn hides_its_origin(&self) -> bool {
        self.origin == RequestOrigin::Unknown && self.session_ids().next().is_some()
    }
}

impl Access {
    /// Returns the user of the bearer token, if the request has one and users exist.
    ///
    /// # Errors
    /// The token is no user's.
    pub(super) fn by_token(&self, head: AdminHead<'_>) -> Result<Option<SignedIn>, Rejection> {
        let Some(token) = head.bearer().filter(|_| !head.admin.is_open) else { return Ok(None) };
        account(head.admin, token).map_or_else(|| Err(self.failed(head)), |user| Ok(Some(signed_in(&user, false))))
    }

    /// Returns the user of the session, or `local` where no user signs in.
    pub(super) fn by_session(&self, head: AdminHead<'_>) -> Option<SignedIn> {
        if head.admin.is_open {
            return Some(SignedIn { name: LOCAL.into(), role: Role::Operator, has_session: false });
        }
        let user = |id| self.sessions.user(id, head.monotonic, head.admin, head.is_use());
        head.session_ids().find_map(user).map(|user| signed_in(&user, true))
    }

    /// Counts and logs a wrong token.
    fn failed(&self, head: AdminHead<'_>) -> Rejection {
        let (address, request_id) = (head.ends.peer, head.request_id);
        match self.failures.count(address, head.monotonic) {
            Ok(()) => {
                tracing::warn!(%address, request_id, "a token for the admin listener was wrong");
                Rejection::Unauthorized
            }
            // An attacker must not fill the log: ten lines a minute report as much.
            Err(wait) => {
                tracing::debug!(%address, request_id, "too many wrong tokens for the admin listener");
                Rejection::TooManyFailures(wait)
            }
        }
    }

    /// Answers `GET /sign-in`: the form, or the page to return to if there is a user.
    pub(super) fn form(&self, head: AdminHead<'_>) -> AdminReply {
        let to = parameter(head.query, "to").ok().flatten();
        let to = to.as_deref().and_then(return_path).unwrap_or("/");
        if self.by_session(head).is_some() {
            return reply::see_other(to);
        }
        reply::page(sign_in_form(head, to, None))
    }

    /// Answers `POST /sign-in`: starts a session for the user of the token.
    pub(super) fn sign_in(&self, head: AdminHead<'_>, form: &Form, random: &dyn Random) -> AdminReply {
        let to = form.get("to").and_then(return_path).unwrap_or("/");
        if head.admin.is_open {
            return reply::see_other(to);
        }
        let Some(user) = account(head.admin, form.get("token").unwrap_or_default()) else {
            return self.failed(head).form(|message| sign_in_form(head, to, Some(message)));
        };
        head.session_ids().for_each(|id| self.sessions.end(id));
        let (address, request_id, role) = (head.ends.peer, head.request_id, user.role.as_str());
        tracing::info!(user = %user.name, role, %address, request_id, "signed in to the console");
        let id = self.sessions.start(user, head.monotonic, random);
        reply::with_cookie(reply::see_other(to), &head.cookie(Some(&id)))
    }

    /// Answers `POST /sign-out`: ends the session.
    pub(super) fn sign_out(&self, head: AdminHead<'_>, request: &AdminRequest<'_>) -> AdminReply {
        head.session_ids().for_each(|id| self.sessions.end(id));
        let AdminRequest { user, address, request_id, .. } = request;
        tracing::info!(user = %user.name, %address, request_id, "signed out of the console");
        reply::with_cookie(reply::see_other("/sign-in"), &head.cookie(None))
    }
}

/// The sign-in form: fields `token` and `to`.
#[derive(Debug, Default, Serialize)]
pub(super) struct SignInPage<'a> {
    /// The path to show after signing in.
    pub to: &'a str,
    /// Whether the browser requests that path at once, since it may have a session whose cookie it did not send.
    pub is_repeated: bool,
    /// Why the last attempt failed.
    pub problem: Option<&'a str>,
}

/// Returns the sign-in form. `to`: the page to return to.
fn sign_in_form(head: AdminHead<'_>, to: &str, problem: Option<&str>) -> String {
    // After a link on another site the browser sends no `SameSite=Strict` cookie, here neither. The form requests the other
    // page once more, as a page of the same site: with the cookie, if there is one.
    let is_repeated = problem.is_none() && head.origin == RequestOrigin::ForeignLink;
    let view = SignInPage { to, is_repeated, problem };
    console::render(ConsolePage::SignIn, &view, &Chrome { made_at: head.now, ..Chrome::default() })
}

fn signed_in(user: &AdminUser, has_session: bool) -> SignedIn {
    SignedIn { name: user.name.clone(), role: user.role, has_session }
}

/// Returns the user with a token. All tokens of all users are compared, by hashes of one length, so that the time reveals
/// nothing of them.
fn account(admin: &AdminRules, token: &str) -> Option<Arc<AdminUser>> {
    let sent = Sha256::digest(token);
    let equal = |known: &[u8]| verify_slices_are_equal(&Sha256::digest(known), &sent).is_ok();
    let has_it = |user: &&Arc<AdminUser>| user.token.verifying().filter(|one| equal(one.expose())).count() > 0;
    let all: Vec<_> = admin.accounts().filter(has_it).collect();
    all.first().map(|user| Arc::clone(user))
}
