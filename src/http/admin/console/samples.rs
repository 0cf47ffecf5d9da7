//! The samples that were sent last, with their bodies, which the audit trail does not have.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::console::SampleResult;
use crate::store::ActionId;

/// The most samples that are kept.
const MAX_SAMPLES: usize = 32;

/// The last samples of this process, by the numbers of their actions.
#[derive(Default)]
pub(in crate::http::admin) struct RecentSamples(Mutex<VecDeque<(ActionId, Box<str>, SampleResult)>>);

impl RecentSamples {
    /// Keeps a sample of a merchant, in place of the oldest one if there are too many.
    pub(super) fn keep(&self, id: ActionId, merchant: &str, sample: SampleResult) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.truncate(MAX_SAMPLES - 1);
        kept.push_front((id, merchant.into(), sample));
    }

    /// Returns the sample of an action, if it is a sample of this merchant and still kept.
    pub(super) fn get(&self, id: ActionId, merchant: &str) -> Option<SampleResult> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |(known, whose, _): &&(ActionId, Box<str>, SampleResult)| *known == id && **whose == *merchant;
        kept.iter().find(is_it).map(|(_, _, sample)| sample.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_samples_are_kept() {
        let samples = RecentSamples::default();
        for number in 0..=32 {
            samples.keep(ActionId(number), "acme", SampleResult { id: number.to_string(), ..SampleResult::default() });
        }
        let known = |number| samples.get(ActionId(number), "acme").map(|sample| sample.id);
        assert_eq!([known(0), known(1), known(32)], [None, Some("1".into()), Some("32".into())]);
        assert!(samples.get(ActionId(32), "demo").is_none(), "it is another merchant's");
    }
}
