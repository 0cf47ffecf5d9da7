//! What every page has in common: its request, what surrounds it, and how it is refused.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::samples::RecentSamples;
use crate::build_info::BUILD;
use crate::console::{
    self, CallbackSearch, Chrome, ConsoleError, ErrorView, MerchantChoice, PageLink, PageMessage, PageView,
    SignedInUser, Tone,
};
use crate::domain::MerchantId;
use crate::error::RequestError;
use crate::http::admin::form::cleaned;
use crate::http::admin::reply::{self, AdminReply};
use crate::http::admin::request::AdminRequest;
use crate::http::admin::source::AdminSource;
use crate::rules::{Merchant, Role};
use crate::store::{ActionId, ActionQuery, ActionRecord, CallbackId, FormKey, StoreError};
use crate::v1::query::parameter;
use crate::wire::time::rfc3339;

/// How many rows a list shows.
pub(super) const ROWS: usize = 50;

/// The parameter of the action that led to a page: the number of its row in the audit trail.
const RESULT: &str = "result";

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
pub(in crate::http::admin) struct PageContext<'a> {
    pub source: &'a Arc<dyn AdminSource>,
    pub samples: &'a RecentSamples,
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
            cleaned(name, &parameter(self.request.query, name)?.unwrap_or_default()).clone_into(value);
        }
        Ok(values)
    }

    /// Returns a field of the form; empty: not given.
    pub(super) fn field(&self, name: &str) -> String {
        cleaned(name, self.request.form.get(name).unwrap_or_default()).to_owned()
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
        let document = console::render(page, &self.chrome(page).await);
        if has_problem { reply::refused_page(ConsoleError::BadRequest, document) } else { reply::page(document) }
    }

    pub(super) async fn refused(&self, error: PageError) -> AdminReply {
        let (error, detail) = match error {
            PageError::Invalid(error) => (ConsoleError::BadRequest, Some(error.to_string())),
            PageError::NotFound => (ConsoleError::NotFound, None),
            PageError::NoMerchant(reason) => (ConsoleError::NotFound, Some(reason)),
            PageError::Store(error) => (ConsoleError::Unavailable, Some(error.to_string())),
        };
        reply::refused_page(error, self.error_page(error, detail).await)
    }

    /// Renders the page of an error.
    pub(super) async fn error_page(&self, error: ConsoleError, detail: Option<String>) -> String {
        let view = ErrorView { error, detail, request_id: self.request.request_id.to_owned() };
        let page = PageView::Error(&view);
        console::render(page, &self.chrome(page).await)
    }

    async fn chrome(&self, page: PageView<'_>) -> Chrome {
        let user = &self.request.user;
        let rules = self.source.rules();
        let (banners, notice) = tokio::join!(self.banners(rules.error.is_some()), self.notice(page));
        Chrome {
            user: Some(SignedInUser {
                name: user.name.to_string(),
                role: user.role.as_str().to_owned(),
                may_act: user.role == Role::Operator,
                has_session: user.has_session,
            }),
            is_read_only: self.source.rule_set().gateway.admin.read_only,
            banners,
            notice,
            made_at: self.source.now(),
            node: self.source.node(),
            rules_version: rules.version,
            build: BUILD.clone(),
            form_key: FormKey::draw(self.source.random()).to_string(),
            merchants: if page.has_merchant_field() { self.choices() } else { Vec::new() },
        }
    }

    /// Returns the number of the action that led to this page.
    pub(super) fn result_id(&self) -> Option<ActionId> {
        let [result] = self.parameters([RESULT]).ok()?;
        result.parse().ok().map(ActionId)
    }

    /// Returns the outcome of the action that led to this page. It is read from the audit trail, so that every node shows
    /// it, also after a restart.
    async fn notice(&self, page: PageView<'_>) -> Option<PageMessage> {
        let [result] = self.parameters([RESULT]).ok()?;
        if result.is_empty() {
            return None;
        }
        let row = match self.result_id() {
            Some(id) => timeout(PROBE_TIMEOUT, self.action(id)).await.ok().and_then(Result::ok).flatten(),
            None => None,
        };
        let row = row.filter(|row| self.is_about(page, row));
        let (tone, text) = match &row {
            Some(ActionRecord { end: Some(end), user, .. }) => {
                let tone = if end.is_failure() { Tone::Bad } else { Tone::Good };
                let ended = rfc3339(end.at);
                let ended = ended.get(..19).unwrap_or_default().replace('T', " ");
                (tone, format!("{} ({user}, {ended} UTC).", capitalized(&end.outcome)))
            }
            Some(_) => {
                (Tone::Warn, "The action has not ended: it takes long, or its process stopped. Look again.".to_owned())
            }
            None => (Tone::Warn, "The outcome of the action cannot be shown here.".to_owned()),
        };
        let action = row.map_or_else(String::new, |row| row.action.into());
        let href = console::address("/audit", &[("action", &action)]);
        Some(PageMessage { tone, text, link: Some(PageLink { href, text: "Audit trail".to_owned() }) })
    }

    /// Reports whether a page is the one to which an action leads: an address can have any number.
    fn is_about(&self, page: PageView<'_>, row: &ActionRecord) -> bool {
        let (kind, target) = (&*row.action, &*row.target);
        match page {
            PageView::Rules(_) => kind == ActionRecord::RELOAD,
            PageView::Callbacks(view) => kind == ActionRecord::RESEND_FAILED && has_filter(row, &view.filter),
            // The page of a callback that does not exist is an error.
            PageView::Callback(_) | PageView::Error(_) => {
                let id = CallbackId::parse(self.request.id).map(|id| id.to_string());
                kind == ActionRecord::RESEND_CALLBACK && id.as_deref() == Some(target)
            }
            PageView::Sample(view) => kind == ActionRecord::SAMPLE && target == view.merchant,
            PageView::SignIn(_)
            | PageView::Overview(_)
            | PageView::Merchants(_)
            | PageView::Merchant(_)
            | PageView::Operations(_)
            | PageView::Operation(_)
            | PageView::ResendAll(_)
            | PageView::Explain(_)
            | PageView::Audit(_) => false,
        }
    }

    /// Returns an action.
    async fn action(&self, id: ActionId) -> Result<Option<ActionRecord>, StoreError> {
        // The first of the list at or below the number.
        let after = Some(ActionId(id.0.saturating_add(1)));
        let query = ActionQuery { after, limit: 1, ..ActionQuery::default() };
        Ok(self.source.store().actions(query).await?.pop().filter(|row| row.id == id))
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

/// Writes what is wrong with a field of a form, by its label, for people do not see its name.
pub(super) fn labelled(error: &RequestError, labels: &[(&str, &str)]) -> String {
    let text = error.to_string();
    let label = labels.iter().find(|(name, _)| error.path() == Some(name));
    let reason = label.and_then(|(name, label)| Some((label, text.strip_prefix(name)?)));
    reason.map_or_else(|| text.clone(), |(label, reason)| format!("{label}{reason}"))
}

/// Reports whether an action had the merchant and the order of a filter, whose times it had as they were then.
fn has_filter(row: &ActionRecord, filter: &CallbackSearch) -> bool {
    let parameters: serde_json::Value = serde_json::from_str(&row.parameters).unwrap_or_default();
    let given = |name: &str| parameters.get(name).and_then(serde_json::Value::as_str).unwrap_or_default().trim();
    let is_same = |name: &str, shown: &str| given(name) == shown.trim();
    is_same("merchant", &filter.merchant) && is_same("order_id", &filter.order_id)
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

/// Sends the browser to the page that shows the outcome of an action: to reload it repeats nothing. `members`: of its query.
pub(super) fn see_result(path: &str, members: &[(&str, &str)], id: Option<ActionId>) -> AdminReply {
    let Some(ActionId(id)) = id else { return reply::see_other("/audit") };
    reply::see_other(&console::address(path, &[members, &[(RESULT, &*id.to_string())]].concat()))
}

fn capitalized(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}
