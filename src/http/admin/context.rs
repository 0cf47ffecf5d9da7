//! What all handlers have in common: the request; for pages what surrounds them, and how they are refused.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::timeout;

use super::chrome::{ActionNotice, Chrome};
use super::form::cleaned;
use super::refused::Refused;
use super::reply::{self, AdminReply, ConsoleError, ErrorPage};
use super::request::AdminRequest;
use super::samples::RecentSamples;
use super::source::AdminSource;
use crate::build_info::BUILD;
use crate::console::{self, ConsolePage};
use crate::error::RequestError;
use crate::operations::ActionRefusal;
use crate::store::{ActionId, ActionQuery, ActionRecord, CallbackId, IdempotencyKey, StoreError};
use crate::v1::query::parameter;

/// How many rows a list shows.
pub(super) const ROWS: usize = 50;

/// The parameter of the action that led to a page: the id of its row in the audit trail.
const RESULT: &str = "result";

/// How many merchants a field offers: a page has a bound.
const CHOICES: usize = 5000;

/// How long a page waits for the store's probe before its banner reports that the store does not respond.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// What a handler returns.
pub(super) type HandlerResult = Result<AdminReply, Refused>;

/// A request with what its handler needs.
pub(super) struct AdminContext<'a> {
    pub source: &'a Arc<dyn AdminSource>,
    pub samples: &'a RecentSamples,
    pub request: &'a AdminRequest<'a>,
}

impl AdminContext<'_> {
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
        (!id.is_empty() && !rules.merchants.contains_key(id)).then(|| rules.no_such_merchant(id))
    }

    /// Renders a page.
    pub(super) async fn page(&self, page: ConsolePage, view: &impl Serialize) -> HandlerResult {
        self.form_page(page, view, false).await
    }

    /// Renders a page with a form; `has_problem`: what was sent with it is wrong, as the page shows.
    pub(super) async fn form_page(&self, page: ConsolePage, view: &impl Serialize, has_problem: bool) -> HandlerResult {
        let has_field = matches!(
            page,
            ConsolePage::Callbacks
                | ConsolePage::Operations
                | ConsolePage::Requests
                | ConsolePage::Sample
                | ConsolePage::Explain
        ) || page == ConsolePage::ResendAll && has_problem;
        let document = console::render(page, view, &self.chrome(page, has_field).await);
        Ok(if has_problem { reply::page_with_problem(document) } else { reply::page(document) })
    }

    /// Replies with the page of a request that a handler refuses.
    pub(super) async fn refused_page(&self, refused: Refused) -> AdminReply {
        let (error, detail) = match &refused {
            Refused::Invalid(error) => (ConsoleError::BadRequest, Some(error.to_string())),
            Refused::NotFound(reason) => (ConsoleError::NotFound, reason.as_deref().map(sentence)),
            Refused::Action(ActionRefusal::Unknown) => (ConsoleError::NotFound, None),
            Refused::Action(refusal) => (ConsoleError::NotDone, Some(sentence(refusal.reason()))),
            Refused::Unavailable(reason) => (ConsoleError::Unavailable, Some(reason.clone())),
        };
        reply::refused_page(&refused, self.error_page(error, detail).await)
    }

    /// Renders the page of an error.
    pub(super) async fn error_page(&self, error: ConsoleError, detail: Option<String>) -> String {
        let view = ErrorPage { error, detail, request_id: self.request.request_id };
        console::render(ConsolePage::Error, &view, &self.chrome(ConsolePage::Error, false).await)
    }

    /// Returns what surrounds a page. `offers_merchants`: the page has a field for one.
    async fn chrome(&self, page: ConsolePage, offers_merchants: bool) -> Chrome<'_> {
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
            idempotency_key: IdempotencyKey::draw(self.source.random()).to_string(),
            merchants: if offers_merchants { self.choices() } else { Vec::new() },
        }
    }

    /// Returns the id of the action that led to this page.
    pub(super) fn result_id(&self) -> Option<ActionId> {
        let [result] = self.parameters([RESULT]).ok()?;
        result.parse().ok().map(ActionId)
    }

    /// Returns the outcome of the action that led to this page. It is read from the audit trail, so that every node shows
    /// it, also after a restart.
    async fn notice(&self, page: ConsolePage) -> Option<ActionNotice> {
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
    fn is_about(&self, page: ConsolePage, row: &ActionRecord) -> bool {
        let Ok([merchant, order_id]) = self.parameters(["merchant", "order_id"]) else { return false };
        match (page, &*row.action) {
            (ConsolePage::Rules, ActionRecord::RELOAD) => true,
            // Its times were those of then.
            (ConsolePage::Callbacks, ActionRecord::RESEND_FAILED | ActionRecord::RESEND_PENDING) => {
                let parameters: serde_json::Value = serde_json::from_str(&row.parameters).unwrap_or_default();
                let had = |name: &str| parameters.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
                had("merchant").trim() == merchant && had("order_id").trim() == order_id.trim()
            }
            // The page of a callback that does not exist is an error.
            (ConsolePage::Callback | ConsolePage::Error, ActionRecord::RESEND_CALLBACK) => {
                CallbackId::parse(self.request.id).is_some_and(|id| id.to_string() == *row.target)
            }
            (
                ConsolePage::Operation,
                ActionRecord::ASK | ActionRecord::RESOLVE | ActionRecord::CONFIRM | ActionRecord::ACKNOWLEDGE,
            ) => *row.target == *self.request.id,
            (ConsolePage::Sample, ActionRecord::SAMPLE) => *row.target == *merchant,
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

/// Writes what is wrong with a field of a form, by its label, for people do not see its name. `labels`: of fields whose label is
/// not their name.
pub(super) fn labelled(error: &RequestError, labels: &[(&str, &str)]) -> String {
    let (text, name) = (error.to_string(), error.path().unwrap_or_default());
    let label = labels.iter().find(|(known, _)| *known == name).map(|(_, label)| (*label).to_owned());
    let label = label.unwrap_or_else(|| console::capitalized(&name.replace('_', " ")));
    text.strip_prefix(name).map(|reason| format!("{label}{reason}")).unwrap_or(text)
}

/// Returns a sentence of a reason that begins in lower case.
pub(super) fn sentence(reason: &str) -> String {
    format!("{}.", console::capitalized(reason))
}

/// Sends the browser to the page that shows the outcome of an action: to reload it repeats nothing. `members`: of its query.
pub(super) fn see_result(path: &str, members: &[(&str, &str)], id: Option<ActionId>) -> AdminReply {
    let Some(ActionId(id)) = id else { return reply::see_other("/audit") };
    reply::see_other(&console::address(path, &[members, &[(RESULT, &*id.to_string())]].concat()))
}
