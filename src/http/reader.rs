//! Who reads the answer to a request for a customer's page.

use http::{HeaderMap, header};

/// Who reads the answer: a person with a browser, unless it says that it is a program.
#[derive(Debug)]
pub struct Reader {
    /// What the browser sent, empty where it sent nothing that is text; how much of it counts is for who reads it.
    pub accept_language: Box<str>,
    /// Whether errors are wanted as JSON: `Accept` names it, and HTML not.
    pub wants_json: bool,
}

impl Reader {
    /// As the headers tell.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let text = |name| headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let accept = text(header::ACCEPT).collect::<Vec<_>>().join(",").to_ascii_lowercase();
        let wants_json = accept.contains("application/json") && !accept.contains("text/html");
        let accept_language = text(header::ACCEPT_LANGUAGE).collect::<Vec<_>>().join(",").into();
        Self { accept_language, wants_json }
    }
}
