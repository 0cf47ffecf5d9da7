//! The console's pages: documents become complete HTML documents (contract section 13, "The console").
//!
//! Rendering is pure: it knows no store, no rules and no HTTP. A template gets the same document of a callback, a rule set or
//! a merchant as the admin API replies with, and writes times, counts and states for people with the filters of `format`.
//! Every value is escaped, every page works without scripts, and no page has an inline script or style.
//!
//! Links and forms use the paths of the contract's table. A form has the idempotency key of the page in the field `form`.
//! Filters are query parameters of the same names.

mod format;
mod plot;

use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, Error, UndefinedBehavior, context};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

pub(crate) use self::format::{address, capitalized, percent_encoded, shortened};
pub(crate) use self::plot::{Plot, PlotSeries, PlotUnit};

/// A page of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConsolePage {
    SignIn,
    Overview,
    Rules,
    Merchants,
    Merchant,
    Operations,
    Operation,
    Callbacks,
    Callback,
    ResendAll,
    Sample,
    Explain,
    Requests,
    Audit,
    /// Of any path whose request was refused.
    Error,
}

/// The template of each page, which sets `title`, the text of the heading, and `section`, the path of its entry in the
/// navigation.
const SOURCES: [(ConsolePage, &str); 15] = [
    (ConsolePage::SignIn, include_str!("templates/sign_in.html")),
    (ConsolePage::Overview, include_str!("templates/overview.html")),
    (ConsolePage::Rules, include_str!("templates/rules.html")),
    (ConsolePage::Merchants, include_str!("templates/merchants.html")),
    (ConsolePage::Merchant, include_str!("templates/merchant.html")),
    (ConsolePage::Operations, include_str!("templates/operations.html")),
    (ConsolePage::Operation, include_str!("templates/operation.html")),
    (ConsolePage::Callbacks, include_str!("templates/callbacks.html")),
    (ConsolePage::Callback, include_str!("templates/callback.html")),
    (ConsolePage::ResendAll, include_str!("templates/resend.html")),
    (ConsolePage::Sample, include_str!("templates/sample.html")),
    (ConsolePage::Explain, include_str!("templates/explain.html")),
    (ConsolePage::Requests, include_str!("templates/requests.html")),
    (ConsolePage::Audit, include_str!("templates/audit.html")),
    (ConsolePage::Error, include_str!("templates/error.html")),
];

/// What surrounds every page.
const LAYOUT: &str = "layout";

/// Renders a page as an HTML document. `chrome`: what surrounds it.
pub(crate) fn render(page: ConsolePage, view: &impl Serialize, chrome: &impl Serialize) -> String {
    // Every page is rendered by a test with all of its parts, and templates cannot fail for single values.
    try_render(page, Value::from(Serde(view)), Value::from(Serde(chrome))).unwrap_or_else(|error| {
        tracing::error!(?page, %error, "a page of the console cannot be rendered");
        "<!doctype html><title>Paybridge console</title><p>This page cannot be shown. <a href=\"/\">Overview</a>".into()
    })
}

fn try_render(page: ConsolePage, view: Value, chrome: Value) -> Result<String, Error> {
    let rendered = TEMPLATES
        .get_template(&name_of(page))?
        .render_captured(context! { view => view.clone(), chrome => chrome.clone() })?;
    let [title, section] = ["title", "section"].map(|name| rendered.state().lookup(name));
    let content = Value::from_safe_string(rendered.into_output());
    let [stylesheet, script] = &*ASSET_PATHS;
    TEMPLATES.get_template(LAYOUT)?.render(context! { view, chrome, title, section, content, stylesheet, script })
}

fn name_of(page: ConsolePage) -> String {
    format!("{page:?}")
}

/// All templates, parsed once.
static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut templates = Environment::new();
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    templates.set_syntax(syntax.expect("the delimiters are the usual ones"));
    format::add_filters(&mut templates);
    let pages = SOURCES.map(|(page, source)| (name_of(page), source));
    for (name, source) in pages.into_iter().chain([(LAYOUT.to_owned(), include_str!("templates/layout.html"))]) {
        templates.add_template_owned(name, source).expect("the templates are parsed by a test");
    }
    templates
});

const STYLESHEET: &str = include_str!("console.css");
pub(crate) const SCRIPT: &str = include_str!("console.js");

/// The paths of the stylesheet and the script. They contain hashes of the content, so that browsers may keep it.
pub(crate) static ASSET_PATHS: LazyLock<[String; 2]> = LazyLock::new(|| {
    let path = |text: &str, kind| {
        let hash = hex::encode(Sha256::digest(text));
        format!("/console/{}.{kind}", hash.get(..16).unwrap_or_default())
    };
    [path(STYLESHEET, "css"), path(SCRIPT, "js")]
});

/// Returns the content type and the bytes of a static file by its path; `None`: there is no such file.
pub(crate) fn asset(path: &str) -> Option<(&'static str, &'static [u8])> {
    let [stylesheet, script] = &*ASSET_PATHS;
    match path {
        _ if path == stylesheet => Some(("text/css; charset=utf-8", STYLESHEET.as_bytes())),
        _ if path == script => Some(("text/javascript; charset=utf-8", SCRIPT.as_bytes())),
        _ => None,
    }
}
