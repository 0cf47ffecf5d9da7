//! What a browser says about itself when it asks for a customer's page.

use http::{HeaderMap, header};

/// The headers that decide how a reply to a customer is written.
#[derive(Debug)]
pub(super) struct ClientHints {
    /// `Accept-Language`, empty when there is none that is text.
    pub accept_language: Box<str>,
    /// Whether errors are sent as JSON: `Accept` names it, and not HTML.
    pub wants_json: bool,
}

impl ClientHints {
    /// Reads the headers of a request.
    #[must_use]
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let text = |name| headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let accept = text(header::ACCEPT).collect::<Vec<_>>().join(",").to_ascii_lowercase();
        let wants_json = accept.contains("application/json") && !accept.contains("text/html");
        let accept_language = text(header::ACCEPT_LANGUAGE).collect::<Vec<_>>().join(",").into();
        Self { accept_language, wants_json }
    }
}
