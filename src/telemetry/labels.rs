//! The labels of metrics, and the buckets of histograms. The values of labels are words fixed in the code, numbers of HTTP, or names from the rules.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use crate::slots::{OTHER, Slots};

/// From 100 microseconds (a durable create over loopback takes a few hundred) to 10 seconds (the longest time-out).
pub(super) const REQUEST_SECONDS: [f64; 15] =
    [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// From a microsecond (a signature takes less) to 10 seconds (a body's deadline).
pub(super) const STAGE_SECONDS: [f64; 15] = [
    0.000_001,
    0.000_002_5,
    0.000_01,
    0.000_025,
    0.000_1,
    0.000_25,
    0.001,
    0.002_5,
    0.01,
    0.025,
    0.1,
    0.25,
    1.0,
    2.5,
    10.0,
];

/// From a provider in the same room to the longest time-out of a provider.
pub(super) const PROVIDER_SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0];

pub(super) const COMMIT_SECONDS: [f64; 12] =
    [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5];

/// From a few unchanged files to more than a second, which is how long a save may take to come into force.
pub(super) const RELOAD_SECONDS: [f64; 12] = [0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

pub(super) const BATCH_SIZES: [f64; 11] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RouteStatus {
    pub(super) route: &'static str,
    pub(super) status: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RouteName {
    pub(super) route: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct StageName {
    pub(super) stage: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PageName {
    pub(super) page: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Reason {
    pub(super) reason: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OutcomeName {
    pub(super) outcome: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ClassName {
    pub(super) class: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ModeAndHome {
    pub(super) mode: &'static str,
    pub(super) home: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct CreatedFailed {
    pub(super) direction: &'static str,
    pub(super) cause: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ReloadResult {
    pub(super) result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Receiver {
    pub(super) receiver: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ShopName {
    pub(super) shop: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ShopOutcome {
    pub(super) shop: String,
    pub(super) outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Version {
    pub(super) version: String,
}

pub(super) type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// The metrics of a route.
#[derive(Debug)]
pub(super) struct RouteHandles {
    pub(super) duration: Histogram,
    pub(super) statuses: Slots<u16, Counter, 24>,
}

/// A family of counters with one label, whose values are words fixed in the code.
#[derive(Debug)]
pub(super) struct LabelCounters<L> {
    pub(super) label: fn(&'static str) -> L,
    pub(super) family: Family<L, Counter>,
    pub(super) handles: Slots<&'static str, Counter, 64>,
}

impl<L: Clone + Eq + std::hash::Hash> LabelCounters<L> {
    pub(super) fn new(label: fn(&'static str) -> L) -> Self {
        Self { label, family: Family::default(), handles: Slots::new() }
    }

    pub(super) fn count(&self, word: &'static str) {
        self.handles.find(word, OTHER, |word| self.family.get_or_create_owned(&(self.label)(word))).inc();
    }
}

/// A stage of a request whose latency is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// From the request head to a known caller.
    Admission,
    /// Reading the body.
    Body,
    /// Verifying the signature.
    Signature,
    /// Translating v1 to v2.
    Translate,
    /// The engine, including the commit.
    Engine,
}

impl Stage {
    pub(super) const ALL: [Self; 5] = [Self::Admission, Self::Body, Self::Signature, Self::Translate, Self::Engine];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Admission => "admission",
            Self::Body => "body",
            Self::Signature => "signature",
            Self::Translate => "translate",
            Self::Engine => "engine",
        }
    }
}
