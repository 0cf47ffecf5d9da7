//! The view of the overview.

use serde::Serialize;

use super::chrome::{PageLink, Tone};
use super::plot::Plot;
use crate::domain::UnixMillis;

/// The overview: what needs attention, and the figures of the last hour.
#[derive(Debug, Clone, Default, Serialize)]
pub struct OverviewView {
    /// What needs attention, the most urgent first.
    pub attention: Vec<AttentionItem>,
    /// How often requests were refused in the last hour, by reason, the most frequent first.
    pub refusals: Vec<RefusalItem>,
    /// The plots, in the order in which they are shown.
    #[serde(skip)]
    pub plots: Vec<Plot>,
}

/// How often requests were refused for a reason.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RefusalItem {
    /// The reason.
    pub reason: String,
    /// How often.
    pub count: u64,
}

/// Something that needs attention.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AttentionItem {
    /// How urgent it is.
    pub tone: Tone,
    /// What it is, in a few words.
    pub title: String,
    /// What it means and what helps.
    pub detail: String,
    /// When it began, if known.
    pub since: Option<UnixMillis>,
    /// The page to go to.
    pub link: PageLink,
}
