//! The pages of the console.

use super::page;
use super::reply::{self, AdminReply, Rejection};
use super::request::AdminRequest;
use super::routes::{ConsolePage, RouteKind};
use super::source::AdminSource;
use crate::pages::Text;

/// Answers a request for a page, or for an action on one.
pub(super) fn answer(page: ConsolePage, source: &dyn AdminSource, request: &AdminRequest<'_>) -> AdminReply {
    let (user, version) = (Text(&request.user.name), source.rules().version);
    let pasted = request.form.get("body").map_or(0, str::len);
    tracing::debug!(?page, address = %request.address, pasted, "a page that is not built yet");
    reply::page(page::document(
        "Not built yet",
        "",
        &format!("<p>{page:?}, for {user}, under rules {}.</p>\n", Text(&version)),
    ))
}

/// Answers a request for a static file.
pub(super) fn asset(_name: &str) -> AdminReply {
    Rejection::NotFound.reply(RouteKind::Static)
}

/// Returns the sign-in form. `to`: the page to return to. `again`: the browser requests it at once, since it may have a
/// session that it did not send.
pub(super) fn sign_in_form(to: &str, problem: Option<&str>, again: bool) -> String {
    let to = Text(to);
    let head = if again { format!("<meta http-equiv=\"refresh\" content=\"0; url={to}\">\n") } else { String::new() };
    let problem = problem.map_or_else(String::new, |why| format!("<p role=\"alert\">Refused: {}.</p>\n", Text(why)));
    let main = format!(
        "{problem}<form method=\"post\" action=\"/sign-in\">\n<input type=\"hidden\" name=\"to\" value=\"{to}\">\n\
         <p><label for=\"token\">Token</label>\n\
         <input id=\"token\" name=\"token\" type=\"password\" autocomplete=\"current-password\" required></p>\n\
         <p><button>Sign in</button></p>\n</form>\n<p><a href=\"{to}\">Already signed in? Continue</a></p>\n"
    );
    page::document("Sign in", &head, &main)
}
