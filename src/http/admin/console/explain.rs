//! What a pasted v1 body becomes.

use std::sync::Arc;

use super::context::{PageContext, PageResult, sentence, shortened};
use crate::console::{ExplainView, ExplainedItem, ExplanationView, PageView, Tone};
use crate::domain::{Direction, MerchantId};
use crate::shadow::{self, ExplainedVerdict, MemberFate};
use crate::store::StoreError;

/// The most members, characters of a name or value, and characters of the body, that are shown: a page has a bound. Every
/// text that is cut ends with `…`.
const MEMBERS: usize = 60;
const VALUE: usize = 200;
const SHOWN_BODY: usize = 8 * 1024;

/// Answers `GET /explain`: the form.
pub(super) async fn form(context: &PageContext<'_>) -> PageResult {
    let [merchant] = context.parameters(["merchant"])?;
    let view = ExplainView { merchant, kind: Direction::Payin.as_str().to_owned(), ..ExplainView::default() };
    Ok(context.page(PageView::Explain(&view)).await)
}

/// Answers `POST /explain`: the explanation under the form.
pub(super) async fn explain(context: &PageContext<'_>) -> PageResult {
    let (merchant, kind) = (context.field("merchant"), context.field("kind"));
    let rules = context.source.rule_set();
    let known = MerchantId::new(&merchant).ok().and_then(|id| rules.merchants.get(&id).map(Arc::clone));
    let direction = [Direction::Payin, Direction::Payout].into_iter().find(|one| one.as_str() == kind);
    let pasted = context.request.form.get("body").unwrap_or_default().to_owned();
    let stars = |text: &str| text.matches('*').count();
    let pasted_stars = stars(&pasted);
    let mut view = ExplainView { merchant, kind, ..ExplainView::default() };
    let altered = altered(&pasted);
    match (known, direction) {
        (Some(merchant), Some(direction)) if altered.is_none() => {
            // A long body takes a while: the thread has other work.
            let explain = move || shadow::explain(&rules, &merchant, direction, pasted.as_bytes());
            let explained = tokio::task::spawn_blocking(explain).await;
            let explained = explained.map_err(|panic| StoreError::Unavailable(panic.to_string()))?;
            view.explanation = Some(explanation(&explained));
            view.body = shortened(&explained.body, SHOWN_BODY);
        }
        (known, _) => {
            let (field, problem) = match (known, direction, altered) {
                (None, _, _) => ("merchant", sentence(&rules.no_such_merchant(&view.merchant))),
                (Some(_), Some(_), Some(problem)) => ("body", problem.to_owned()),
                (Some(_), _, _) => ("kind", "Direction: must be payin or payout".to_owned()),
            };
            (view.wrong_field, view.problem) = (field.to_owned(), Some(problem));
            // Whole, as the form is bounded: with the right field it is sent again.
            view.body = shadow::masked_body(pasted.as_bytes());
        }
    }
    view.is_masked = stars(&view.body) > pasted_stars;
    Ok(context.form_page(PageView::Explain(&view), view.problem.is_some()).await)
}

/// Returns why a text is what the page made of a body, not what was sent: then it is not judged.
fn altered(pasted: &str) -> Option<&'static str> {
    if shadow::holds_mask(pasted) {
        return Some("v1 body: the card number was masked here. Paste the body again.");
    }
    // No JSON ends with it.
    pasted.trim_end().ends_with('…').then_some("v1 body: its end was cut here. Paste the body again.")
}

fn explanation(explained: &shadow::Explanation) -> ExplanationView {
    let members = explained.members.iter().take(MEMBERS).map(member);
    let mut shown = ExplanationView { members: members.collect(), ..ExplanationView::default() };
    if explained.members.len() > MEMBERS {
        shown.notes.push(format!("Of {} members, the first {MEMBERS} are shown.", explained.members.len()));
    }
    (shown.tone, shown.verdict) = match &explained.verdict {
        ExplainedVerdict::Accepted { shop, failure: None } => {
            (Tone::Good, format!("It would be accepted, in the shop {shop}."))
        }
        ExplainedVerdict::Accepted { shop, failure: Some(cause) } => {
            (Tone::Warn, format!("It would be accepted in the shop {shop}, and be FAILED at once: {cause}."))
        }
        ExplainedVerdict::Refused(refusal) => {
            shown.refused_member = Some(refusal.member.to_string()).filter(|member| !member.is_empty());
            shown.reason = Some(refusal.reason.to_string());
            if !refusal.file.is_empty() {
                shown.notes.push(format!("The rule is {} in {}.", refusal.key, refusal.file));
            }
            (Tone::Bad, "It would be refused, with status 400.".to_owned())
        }
        ExplainedVerdict::TooLong => {
            (Tone::Bad, "It is longer than [limits] body: it would be refused, with status 413.".to_owned())
        }
        ExplainedVerdict::RemoteEngine => {
            (Tone::Warn, "It can be translated. The remote engine decides on it, by rules of its own.".to_owned())
        }
        ExplainedVerdict::NoKey => {
            (Tone::Bad, "No API key of the merchant has a v1_secret: it would be refused, with status 401.".to_owned())
        }
    };
    if matches!(explained.verdict, ExplainedVerdict::Accepted { .. }) {
        let note = "The customer's daily limit and the balance are not checked, nor whether the order exists.";
        shown.notes.push(note.to_owned());
    }
    shown
}

fn member(member: &shadow::ExplainedMember) -> ExplainedItem {
    let is_named = member.v1_name.is_some() || member.filled_from.is_some();
    let (origin, instead) = match member.fate {
        MemberFate::Forwarded => ("the body", ""),
        MemberFate::Relayed if is_named => ("the body", "v1 callback"),
        MemberFate::Relayed => ("none", "no v1 callback"),
        MemberFate::LeftOut => ("the body", "left out"),
        MemberFate::Added => ("added by the engine", ""),
        MemberFate::Dropped => ("dropped by the engine", "left out"),
    };
    ExplainedItem {
        v1: member.v1_name.as_deref().map(|name| shortened(name, VALUE)),
        v2: member.v2_name.as_deref().filter(|_| member.fate != MemberFate::Dropped).map(|name| shortened(name, VALUE)),
        instead: instead.to_owned(),
        value: member.value.as_deref().map(|value| shortened(value, VALUE)),
        origin: member.filled_from.clone().unwrap_or_else(|| origin.to_owned()),
        note: member.rule.clone(),
    }
}
