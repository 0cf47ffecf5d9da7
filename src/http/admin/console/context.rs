//! What the handlers of all pages have in common: the request, what surrounds its page, and how it is refused.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::timeout;

use super::samples::RecentSamples;
use crate::build_info::BUILD;
use crate::console::{self, PageTemplate};
use crate::domain::MerchantId;
use crate::error::RequestError;
use crate::http::admin::chrome::{ActionNotice, Chrome};
use crate::http::admin::form::cleaned;
use crate::http::admin::reply::{self, AdminReply, ConsoleError, ErrorPage};
use crate::http::admin::request::AdminRequest;
use crate::http::admin::source::AdminSource;
use crate::store::{ActionId, ActionQuery, ActionRecord, CallbackId, FormKey, StoreError};
use crate::v1::query::parameter;

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
    pub(super) async fn page(&self, page: PageTemplate, view: &impl Serialize) -> PageResult {
        self.form_page(page, view, false).await
    }

    /// Renders a page with a form; `has_problem`: what was sent with it is wrong, as the page shows.
    pub(super) async fn form_page(&self, page: PageTemplate, view: &impl Serialize, has_problem: bool) -> PageResult {
        let has_field = matches!(
            page,
            PageTemplate::Callbacks | PageTemplate::Operations | PageTemplate::Sample | PageTemplate::Explain
        ) || page == PageTemplate::ResendAll && has_problem;
        let document = console::render(page, view, &self.chrome(page, has_field).await);
        Ok(if has_problem { reply::refused_page(ConsoleError::BadRequest, document) } else { reply::page(document) })
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
        let view = ErrorPage { error, detail, request_id: self.request.request_id };
        console::render(PageTemplate::Error, &view, &self.chrome(PageTemplate::Error, false).await)
    }

    /// Returns what surrounds a page. `offers_merchants`: the page has a field for one.
    async fn chrome(&self, page: PageTemplate, offers_merchants: bool) -> Chrome<'_> {
        let info = self.source.rules();
        let (ready, notice) = tokio::join!(timeout(PROBE_TIMEOUT, self.source.ready()), self.notice(page));
        Chrome {
            user: Some(&self.request.user),
            is_read_only: self.source.rule_set().gateway.admin.read_only,
            not_ready: ready.unwrap_or_else(|_| Err("the store does not respond".to_owned())).err(),
            are_rules_refused: info.error.is_some(),
            notice,
            made_at: self.source.now(),
            node: self.source.node(),
            rules_version: info.version,
            build: &BUILD,
            form_key: FormKey::draw(self.source.random()).to_string(),
            merchants: if offers_merchants { self.choices() } else { Vec::new() },
        }
    }

    /// Returns the number of the action that led to this page.
    pub(super) fn result_id(&self) -> Option<ActionId> {
        let [result] = self.parameters([RESULT]).ok()?;
        result.parse().ok().map(ActionId)
    }

    /// Returns the outcome of the action that led to this page. It is read from the audit trail, so that every node shows
    /// it, also after a restart.
    async fn notice(&self, page: PageTemplate) -> Option<ActionNotice> {
        let [result] = self.parameters([RESULT]).ok()?;
        if result.is_empty() {
            return None;
        }
        let row = match self.result_id() {
            Some(id) => timeout(PROBE_TIMEOUT, self.action(id)).await.ok().and_then(Result::ok).flatten(),
            None => None,
        };
        Some(ActionNotice { action: row.filter(|row| self.is_about(page, row)) })
    }

    /// Reports whether a page is the one to which an action leads: an address can have any number.
    fn is_about(&self, page: PageTemplate, row: &ActionRecord) -> bool {
        let Ok([merchant, order_id]) = self.parameters(["merchant", "order_id"]) else { return false };
        match (page, &*row.action) {
            (PageTemplate::Rules, ActionRecord::RELOAD) => true,
            // Its times were those of then.
            (PageTemplate::Callbacks, ActionRecord::RESEND_FAILED) => {
                let parameters: serde_json::Value = serde_json::from_str(&row.parameters).unwrap_or_default();
                let had = |name: &str| parameters.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
                had("merchant").trim() == merchant && had("order_id").trim() == order_id.trim()
            }
            // The page of a callback that does not exist is an error.
            (PageTemplate::Callback | PageTemplate::Error, ActionRecord::RESEND_CALLBACK) => {
                CallbackId::parse(self.request.id).is_some_and(|id| id.to_string() == *row.target)
            }
            (PageTemplate::Sample, ActionRecord::SAMPLE) => *row.target == *merchant,
            _ => false,
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
    fn choices(&self) -> Vec<(String, String)> {
        let rules = self.source.rule_set();
        let mut merchants: Vec<_> = rules.merchants.values().collect();
        merchants.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        merchants.iter().take(CHOICES).map(|one| (one.id.to_string(), one.name.to_string())).collect()
    }
}

/// Writes what is wrong with a field of a form, by its label, for people do not see its name.
pub(super) fn labelled(error: &RequestError, labels: &[(&str, &str)]) -> String {
    let text = error.to_string();
    let label = labels.iter().find(|(name, _)| error.path() == Some(name));
    let reason = label.and_then(|(name, label)| Some((label, text.strip_prefix(name)?)));
    reason.map_or_else(|| text.clone(), |(label, reason)| format!("{label}{reason}"))
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

/// Sends the browser to the page that shows the outcome of an action: to reload it repeats nothing. `members`: of its query.
pub(super) fn see_result(path: &str, members: &[(&str, &str)], id: Option<ActionId>) -> AdminReply {
    let Some(ActionId(id)) = id else { return reply::see_other("/audit") };
    reply::see_other(&console::address(path, &[members, &[(RESULT, &*id.to_string())]].concat()))
}
