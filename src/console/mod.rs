//! The console's pages: views with plain values become complete HTML documents (contract section 13, "The console").
//!
//! Rendering is pure: it knows no store, no rules and no HTTP. Every value is escaped, every page works without scripts,
//! and no page has an inline script or style.
//!
//! Links and forms use the paths of the contract's table. The forms post to `/sign-in`, `/sign-out`, `/rules/reload`,
//! `/callbacks/{id}/resend`, `/callbacks/resend`, `/callbacks/sample` and `/explain`, with [`Chrome::form_key`] in the
//! field `form`; the fields of a form are named like the members of its view. Filters are query parameters of the same
//! names.

mod audit;
mod callbacks;
mod chrome;
mod error;
mod explain;
mod format;
mod merchants;
mod operations;
mod overview;
mod plot;
mod rules;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

pub use self::audit::{AuditItem, AuditSearch, AuditView};
pub use self::callbacks::{
    AttemptItem, CallbackItem, CallbackSearch, CallbackView, CallbacksView, ResendAllView, SampleResult, SampleView,
};
pub use self::chrome::{Chrome, MerchantChoice, PageLink, PageMessage, SignInView, SignedInUser, Tone};
pub use self::error::{ConsoleError, ErrorView};
pub use self::explain::{ExplainView, ExplainedItem, ExplanationView};
pub use self::format::address;
pub use self::merchants::{KeyItem, MerchantItem, MerchantSearch, MerchantView, MerchantsView, ShopItem, VersionShare};
pub use self::operations::{Fact, OperationItem, OperationPageView, OperationSearch, OperationsView, TimelineEntry};
pub use self::overview::{AttentionItem, OverviewView, RefusalItem};
pub use self::plot::{Plot, PlotSeries, PlotUnit};
pub use self::rules::{RuleProblemItem, RulesView};

/// A page with its view.
#[derive(Debug, Clone, Copy)]
pub enum PageView<'a> {
    /// The sign-in form.
    SignIn(&'a SignInView),
    /// `/`
    Overview(&'a OverviewView),
    /// `/rules`
    Rules(&'a RulesView),
    /// `/merchants`
    Merchants(&'a MerchantsView),
    /// `/merchants/{id}`
    Merchant(&'a MerchantView),
    /// `/operations`
    Operations(&'a OperationsView),
    /// `/operations/{transaction_id}`
    Operation(&'a OperationPageView),
    /// `/callbacks`
    Callbacks(&'a CallbacksView),
    /// `/callbacks/{id}`
    Callback(&'a CallbackView),
    /// `/callbacks/resend`: the count of what a filter matches, before it is resent.
    ResendAll(&'a ResendAllView),
    /// `/callbacks/sample`: the form, and the outcome after a sample was sent.
    Sample(&'a SampleView),
    /// `/explain`
    Explain(&'a ExplainView),
    /// `/audit`
    Audit(&'a AuditView),
    /// Any path whose request was refused.
    Error(&'a ErrorView),
}

impl PageView<'_> {
    /// Reports whether the page has a field for a merchant, which offers [`Chrome::merchants`].
    #[must_use]
    pub const fn has_merchant_field(&self) -> bool {
        let is_wrong = matches!(self, Self::ResendAll(view) if view.problem.is_some());
        is_wrong || matches!(self, Self::Callbacks(_) | Self::Operations(_) | Self::Sample(_) | Self::Explain(_))
    }
}

/// Renders a page as an HTML document.
#[must_use]
pub fn render(page: PageView<'_>, chrome: &Chrome) -> String {
    use PageView as P;
    match page {
        P::SignIn(view) => document("sign_in.html", "", "Sign in", view, chrome),
        P::Overview(view) => {
            let plots =
                view.plots.iter().enumerate().map(|(number, plot)| Value::from_safe_string(plot.figure(number)));
            Document { plots: plots.collect(), ..Document::new("/", "Overview", view, chrome) }.render("overview.html")
        }
        P::Rules(view) => document("rules.html", "/rules", "Rules", view, chrome),
        P::Merchants(view) => document("merchants.html", "/merchants", "Merchants", view, chrome),
        P::Merchant(view) => document("merchant.html", "/merchants", &view.id, view, chrome),
        P::Operations(view) => document("operations.html", "/operations", "Operations", view, chrome),
        P::Operation(view) => {
            let title = format!("Operation {}", view.operation.transaction_id);
            document("operation.html", "/operations", &title, view, chrome)
        }
        P::Callbacks(view) => document("callbacks.html", "/callbacks", "Callbacks", view, chrome),
        P::Callback(view) => {
            document("callback.html", "/callbacks", &format!("Callback {}", view.callback.id), view, chrome)
        }
        P::ResendAll(view) => document("resend.html", "/callbacks", "Resend callbacks", view, chrome),
        P::Sample(view) => document("sample.html", "/callbacks", "Send a sample", view, chrome),
        P::Explain(view) => document("explain.html", "/explain", "Explain", view, chrome),
        P::Audit(view) => document("audit.html", "/audit", "Audit", view, chrome),
        P::Error(view) => document("error.html", "", view.error.title(), &view.shown(), chrome),
    }
}

fn document(template: &str, section: &str, title: &str, view: &impl Serialize, chrome: &Chrome) -> String {
    Document::new(section, title, view, chrome).render(template)
}

/// The values of a template.
#[derive(Serialize)]
struct Document<'a, V> {
    view: &'a V,
    chrome: &'a Chrome,
    /// The text of the page's heading.
    title: &'a str,
    /// The path of its entry in the navigation; empty: none.
    section: &'a str,
    /// The time the page is made, in milliseconds, which ages are counted from.
    now: i64,
    /// Whether forms that change something are shown.
    can_act: bool,
    /// The plots, drawn.
    plots: Vec<Value>,
    /// The page's own part, while the layout around it is rendered.
    content: Value,
    stylesheet: Cow<'a, str>,
    script: Cow<'a, str>,
}

impl<'a, V: Serialize> Document<'a, V> {
    fn new(section: &'a str, title: &'a str, view: &'a V, chrome: &'a Chrome) -> Self {
        let (now, can_act) = (chrome.made_at.0, chrome.can_act());
        let [stylesheet, script] = &*ASSET_PATHS;
        let (stylesheet, script) = (stylesheet.into(), script.into());
        Self { view, chrome, title, section, now, can_act, plots: Vec::new(), content: ().into(), stylesheet, script }
    }

    fn render(mut self, template: &str) -> String {
        let part = |name: &str, document: &Self| TEMPLATES.get_template(name)?.render(Serde(document));
        let whole = part(template, &self).and_then(|content| {
            self.content = Value::from_safe_string(content);
            part("layout.html", &self)
        });
        // Every page is rendered by a test with all of its parts, and templates cannot fail for single values.
        whole.unwrap_or_else(|error| {
            tracing::error!(template, %error, "a page of the console cannot be rendered");
            "<!doctype html><title>Paybridge console</title><p>This page cannot be shown. <a href=\"/\">Overview</a>"
                .into()
        })
    }
}

/// All templates, parsed once.
static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut templates = Environment::new();
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    templates.set_syntax(syntax.expect("the delimiters are the usual ones"));
    format::add_filters(&mut templates);
    for (name, source) in SOURCES {
        templates.add_template(name, source).expect("the templates are parsed by a test");
    }
    templates
});

const SOURCES: [(&str, &str); 15] = [
    ("layout.html", include_str!("templates/layout.html")),
    ("sign_in.html", include_str!("templates/sign_in.html")),
    ("overview.html", include_str!("templates/overview.html")),
    ("rules.html", include_str!("templates/rules.html")),
    ("merchants.html", include_str!("templates/merchants.html")),
    ("merchant.html", include_str!("templates/merchant.html")),
    ("operations.html", include_str!("templates/operations.html")),
    ("operation.html", include_str!("templates/operation.html")),
    ("callbacks.html", include_str!("templates/callbacks.html")),
    ("callback.html", include_str!("templates/callback.html")),
    ("resend.html", include_str!("templates/resend.html")),
    ("sample.html", include_str!("templates/sample.html")),
    ("explain.html", include_str!("templates/explain.html")),
    ("audit.html", include_str!("templates/audit.html")),
    ("error.html", include_str!("templates/error.html")),
];

const STYLESHEET: &str = include_str!("console.css");
const SCRIPT: &str = include_str!("console.js");

/// The paths of the stylesheet and the script. They contain hashes of the content, so that browsers may keep it.
static ASSET_PATHS: LazyLock<[String; 2]> = LazyLock::new(|| {
    let path = |text: &str, kind| {
        let hash = hex::encode(Sha256::digest(text));
        format!("/console/{}.{kind}", hash.get(..16).unwrap_or_default())
    };
    [path(STYLESHEET, "css"), path(SCRIPT, "js")]
});

/// Returns the content type and the bytes of a static file by its path; `None`: there is no such file.
#[must_use]
pub fn asset(path: &str) -> Option<(&'static str, &'static [u8])> {
    let [stylesheet, script] = &*ASSET_PATHS;
    match path {
        _ if path == stylesheet => Some(("text/css; charset=utf-8", STYLESHEET.as_bytes())),
        _ if path == script => Some(("text/javascript; charset=utf-8", SCRIPT.as_bytes())),
        _ => None,
    }
}
