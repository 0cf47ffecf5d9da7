//! What a pasted v1 body becomes.

use std::sync::Arc;

use serde::Serialize;

use crate::console::{ConsolePage, shortened};
use crate::domain::Direction;
use crate::http::admin::context::{AdminContext, HandlerResult, sentence};
use crate::shadow::{self, Explanation};
use crate::store::StoreError;

/// The most characters of an explained body that are shown: a page has a bound.
const MAX_BODY_CHARS: usize = 8 * 1024;

/// The form of a v1 body, as it was sent, and its explanation.
#[derive(Debug, Default, Serialize)]
pub(super) struct ExplainPage {
    pub merchant: String,
    pub kind: String,
    /// The pasted text with card numbers masked.
    pub body: String,
    /// Whether card numbers in it are masked, so that it is no longer what was pasted.
    pub is_masked: bool,
    pub problem: Option<String>,
    /// The field that is wrong.
    pub wrong_field: &'static str,
    pub explanation: Option<Explanation>,
}

/// Answers `GET /explain`: the form.
pub(in crate::http::admin) async fn form(context: &AdminContext<'_>) -> HandlerResult {
    let [merchant] = context.parameters(["merchant"])?;
    let view = ExplainPage { merchant, kind: Direction::Payin.as_str().to_owned(), ..ExplainPage::default() };
    context.page(ConsolePage::Explain, &view).await
}

/// Answers `POST /explain`: the explanation under the form.
pub(in crate::http::admin) async fn explain(context: &AdminContext<'_>) -> HandlerResult {
    let (merchant, kind) = (context.field("merchant"), context.field("kind"));
    let rules = context.source.rule_set();
    let known = rules.merchants.get(&*merchant).map(Arc::clone);
    let direction = Direction::parse(&kind).ok();
    let pasted = context.request.form.get("body").unwrap_or_default().to_owned();
    let stars = |text: &str| text.matches('*').count();
    let pasted_stars = stars(&pasted);
    let mut view = ExplainPage { merchant, kind, ..ExplainPage::default() };
    let altered = altered(&pasted);
    match (known, direction) {
        (Some(merchant), Some(direction)) if altered.is_none() => {
            // A long body takes a while: the thread has other work.
            let explain = move || shadow::explain(&rules, &merchant, direction, pasted.as_bytes());
            let explained = tokio::task::spawn_blocking(explain).await;
            let explained = explained.map_err(|panic| StoreError::Unavailable(panic.to_string()))?;
            view.body = shortened(&explained.body, MAX_BODY_CHARS);
            view.explanation = Some(explained);
        }
        (known, _) => {
            let (field, problem) = match (known, direction, altered) {
                (None, _, _) => ("merchant", sentence(&rules.no_such_merchant(&view.merchant))),
                (Some(_), Some(_), Some(problem)) => ("body", problem.to_owned()),
                (Some(_), _, _) => ("kind", "Direction: must be payin or payout".to_owned()),
            };
            (view.wrong_field, view.problem) = (field, Some(problem));
            // Whole, as the form is bounded: with the right field it is sent again.
            view.body = shadow::masked_body(pasted.as_bytes());
        }
    }
    view.is_masked = stars(&view.body) > pasted_stars;
    context.form_page(ConsolePage::Explain, &view, view.problem.is_some()).await
}

/// Returns why a text is what the page made of a body, not what was sent: then it is not judged.
fn altered(pasted: &str) -> Option<&'static str> {
    if shadow::holds_mask(pasted) {
        return Some("v1 body: the card number was masked here. Paste the body again.");
    }
    // No JSON ends with it.
    pasted.trim_end().ends_with('…').then_some("v1 body: its end was cut here. Paste the body again.")
}
