//! The view of an explained v1 body.

use serde::Serialize;

use super::chrome::Tone;

/// The form of a v1 body, as it was sent, and its explanation.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ExplainView {
    /// The merchant's id.
    pub merchant: String,
    /// `payin` or `payout`.
    pub kind: String,
    /// The pasted text with card numbers masked.
    pub body: String,
    /// Whether card numbers in it are masked, so that it is no longer what was pasted.
    pub is_masked: bool,
    /// What is wrong with the form.
    pub problem: Option<String>,
    /// The field that is wrong.
    pub wrong_field: String,
    /// The explanation, after a body was sent.
    pub explanation: Option<ExplanationView>,
}

/// What a v1 body would become.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ExplanationView {
    /// Whether it would be accepted ([`Tone::Good`]), refused ([`Tone::Bad`]), or is not known ([`Tone::Warn`]).
    pub tone: Tone,
    /// The verdict as a sentence.
    pub verdict: String,
    /// The v1 member that is refused.
    pub refused_member: Option<String>,
    /// Why it is refused.
    pub reason: Option<String>,
    /// The members, those of the v2 body first.
    pub members: Vec<ExplainedItem>,
    /// Remarks, such as that a remote engine decides by rules of its own.
    pub notes: Vec<String>,
}

/// The way of one member.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ExplainedItem {
    /// The v1 member; `None`: the request names none.
    pub v1: Option<String>,
    /// The v2 member; `None`: it is in none.
    pub v2: Option<String>,
    /// Where it goes instead, such as `left out` or `v1 callback`; empty if there is a v2 member.
    pub instead: String,
    /// Its value, with card numbers masked.
    pub value: Option<String>,
    /// Where the value comes from.
    pub origin: String,
    /// The rule that was applied, or why it is left out.
    pub note: String,
}
