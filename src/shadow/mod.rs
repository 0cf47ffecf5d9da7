//! What v2 would do with the v1 creates of merchants whose v1 service is still the old one (contract section 6): each is
//! checked without anything being created, counted under the rules in force, and reported. One body can be explained.

mod counter;
mod explain;
mod masking;
mod queue;
mod readiness;
mod sample;
#[cfg(test)]
mod tests;
mod verdict;

pub use counter::{CheckedCreate, Counter, LegacyOutcome};
pub use explain::{
    DryRun, ExplainedMember, ExplainedVerdict, Explanation, MemberFate, dry_run, explain, explained_members,
};
pub use masking::{holds_mask, masked_body};
pub use queue::{ForwardedCreate, ShadowChecks};
pub use readiness::{
    Finding, MerchantChecks, MerchantReadiness, Minimums, Readiness, ReadinessRow, ReadinessVerdict, RulePlace,
    read_readiness, readiness, reported_merchants,
};
pub use sample::sample;
pub use verdict::{CreateVerdict, Loss, Refusal, verdict};
