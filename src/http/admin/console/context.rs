//! What every page has in common: its request, what surrounds it, and how it is refused.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::build_info::BUILD;
use crate::console::{
    self, Chrome, ConsoleError, ErrorView, MerchantChoice, PageLink, PageMessage, PageView, SignedInUser, Tone,
};
use crate::domain::MerchantId;
use crate::error::RequestError;
use crate::http::admin::reply::{self, AdminReply};
use crate::http::admin::request::AdminRequest;
use crate::http::admin::source::AdminSource;
use crate::rules::{Merchant, Role};
use crate::store::{ActionRecord, FormKey, StoreError};
use crate::v1::query::parameter;

/// How many rows a list shows.
pub(super) const ROWS: usize = 50;

/// How many merchants a field offers: a page has a bound.
const CHOICES: usize = 5000;

/// How long a page waits for the store's probe before its banner reports that the store does not respond.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a page or an action is refused.
pub(super) enum PageError {
    /// A parameter or a field is wrong.
    Invalid(RequestError),
    /// There is no such page or thing.
    NotFound,
    /// There is no such merchant, in a sentence.
    NoMerchant(String),
    /// The action cannot be done now.
    Conflict(&'static str),
    /// The store does not respond.
    Store(StoreError),
}

impl From<RequestError> for PageError {
    fn from(error: RequestError) -> Self {
        Self::Invalid(error)
    }
}

impl From<StoreError> for PageError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What a handler returns: a reply, or why there is none.
pub(super) type PageResult = Result<AdminReply, PageError>;

/// A request for a page, with what its handler needs.
pub(super) struct PageContext<'a> {
    pub source: &'a Arc<dyn AdminSource>,
    pub request: &'a AdminRequest<'a>,
}

impl PageContext<'_> {
    /// Returns the parameters of a filter; empty: not given. Browsers send the empty fields of a form, too. Others are
    /// ignored.
    ///
    /// # Errors
    /// A parameter is given twice, or is not percent-encoded UTF-8.
    pub(super) fn parameters<const N: usize>(&self, names: [&'static str; N]) -> Result<[String; N], RequestError> {
        let mut values = [const { String::new() }; N];
        for (value, name) in values.iter_mut().zip(names) {
            *value = cleaned(name, &parameter(self.request.query, name)?.unwrap_or_default());
        }
        Ok(values)
    }

    /// Returns a field of the form; empty: not given.
    pub(super) fn field(&self, name: &str) -> String {
        cleaned(name, self.request.form.get(name).unwrap_or_default())
    }

    /// Returns why an id names no merchant of the rules, as a part of a sentence; `None`: it names one, or is empty.
    pub(super) fn unknown_merchant(&self, id: &str) -> Option<String> {
        let rules = self.source.rule_set();
        let is_known = id.is_empty() || MerchantId::new(id).is_ok_and(|id| rules.merchants.contains_key(&id));
        (!is_known).then(|| rules.no_such_merchant(id))
    }

    /// Renders a page.
    pub(super) async fn page(&self, page: PageView<'_>) -> AdminReply {
        self.form_page(page, false).await
    }

    /// Renders a page with a form; `has_problem`: what was sent with it is wrong, as the page shows.
    pub(super) async fn form_page(&self, page: PageView<'_>, has_problem: bool) -> AdminReply {
        let document = console::render(page, &self.chrome(page, None).await);
        if has_problem { reply::refused_page(ConsoleError::BadRequest, document) } else { reply::page(document) }
    }

    /// Renders a page with the outcome of the action that led to it.
    pub(super) async fn page_after(&self, page: PageView<'_>, notice: PageMessage) -> AdminReply {
        reply::page(console::render(page, &self.chrome(page, Some(notice)).await))
    }

    pub(super) async fn refused(&self, error: PageError) -> AdminReply {
        let (error, detail) = match error {
            PageError::Invalid(error) => (ConsoleError::BadRequest, Some(error.to_string())),
            PageError::NotFound => (ConsoleError::NotFound, None),
            PageError::NoMerchant(reason) => (ConsoleError::NotFound, Some(reason)),
            PageError::Conflict(reason) => (ConsoleError::Conflict, Some(reason.to_owned())),
            PageError::Store(error) => (ConsoleError::Unavailable, Some(error.to_string())),
        };
        let view = ErrorView { error, detail, request_id: self.request.request_id.to_owned() };
        let page = PageView::Error(&view);
        reply::refused_page(error, console::render(page, &self.chrome(page, None).await))
    }

    async fn chrome(&self, page: PageView<'_>, notice: Option<PageMessage>) -> Chrome {
        let user = &self.request.user;
        let rules = self.source.rules();
        Chrome {
            user: Some(SignedInUser {
                name: user.name.to_string(),
                role: user.role.as_str().to_owned(),
                may_act: user.role == Role::Operator,
                has_session: user.has_session,
            }),
            is_read_only: self.source.rule_set().gateway.admin.read_only,
            banners: self.banners(rules.error.is_some()).await,
            notice,
            made_at: self.source.now(),
            node: self.source.node(),
            rules_version: rules.version,
            build: BUILD.clone(),
            form_key: FormKey::draw(self.source.random()).to_string(),
            merchants: if page.has_merchant_field() { self.choices() } else { Vec::new() },
        }
    }

    /// Returns the merchants of the rules by id, the first [`CHOICES`] of them.
    fn choices(&self) -> Vec<MerchantChoice> {
        let rules = self.source.rule_set();
        let mut merchants: Vec<_> = rules.merchants.values().collect();
        merchants.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        let choice =
            |merchant: &Arc<Merchant>| MerchantChoice { id: merchant.id.to_string(), name: merchant.name.to_string() };
        merchants.into_iter().take(CHOICES).map(choice).collect()
    }

    /// Returns what is broken now, for the top of the page.
    async fn banners(&self, rules_refused: bool) -> Vec<PageMessage> {
        let mut banners = Vec::new();
        let ready = timeout(PROBE_TIMEOUT, self.source.ready()).await;
        if let Err(reason) = ready.unwrap_or_else(|_| Err("the store does not respond".to_owned())) {
            let text = format!("New requests are not accepted here: {reason}.");
            banners.push(PageMessage { tone: Tone::Bad, text, link: None });
        }
        if rules_refused {
            let text = "The files on disk are refused; the last good rules and certificate stay in force.".to_owned();
            let link = Some(PageLink { href: "/rules".to_owned(), text: "See why".to_owned() });
            banners.push(PageMessage { tone: Tone::Bad, text, link });
        }
        banners
    }
}

/// Returns a parameter as it is used: order ids may begin and end with spaces.
fn cleaned(name: &str, text: &str) -> String {
    if name == "order_id" { text.to_owned() } else { text.trim().to_owned() }
}

/// Returns a sentence of a reason that begins in lower case.
pub(super) fn sentence(reason: &str) -> String {
    let mut characters = reason.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    format!("{}{}.", first.map(String::from).unwrap_or_default(), characters.as_str())
}

/// Returns the note of a page whose filter names an unknown merchant: one that was removed may have rows in the store.
pub(super) fn unknown_note(reason: &str, has_rows: bool) -> String {
    format!("{}{}", sentence(reason), if has_rows { " What is stored of it is listed." } else { "" })
}

/// Returns the beginning of a text that others choose: a page has a bound.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Describes what came of a form that was sent before.
pub(super) fn repeated(row: &ActionRecord) -> (Tone, String) {
    match &row.end {
        Some(end) => (Tone::Plain, format!("This form was sent before, and acted once: {}.", end.outcome)),
        None => (Tone::Warn, "This form was sent before, and its action has not ended yet.".to_owned()),
    }
}
