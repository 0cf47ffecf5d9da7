//! The samples that were sent last, with their bodies, which the audit trail does not have.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::callback::Sampled;
use crate::store::ActionId;

/// The most samples that are kept.
const MAX_SAMPLES: usize = 32;

/// The last samples of this process, by the numbers of their actions.
#[derive(Default)]
pub(super) struct RecentSamples(Mutex<VecDeque<(ActionId, Box<str>, Sampled)>>);

impl RecentSamples {
    /// Keeps a sample of a merchant, in place of the oldest one if there are too many.
    pub(super) fn keep(&self, id: ActionId, merchant: &str, sample: Sampled) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.truncate(MAX_SAMPLES - 1);
        kept.push_front((id, merchant.into(), sample));
    }

    /// Returns the sample of an action, if it is a sample of this merchant and still kept.
    pub(super) fn get(&self, id: ActionId, merchant: &str) -> Option<Sampled> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |(known, whose, _): &&(ActionId, Box<str>, Sampled)| *known == id && **whose == *merchant;
        kept.iter().find(is_it).map(|(_, _, sample)| sample.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::auth::Interface;
    use crate::domain::{CallbackUrl, UnixMillis};
    use crate::store::{CallbackTry, TryOutcome};

    #[test]
    fn the_last_samples_are_kept() {
        let samples = RecentSamples::default();
        let outcome = TryOutcome::Status(200);
        let sample = Sampled {
            id: String::new(),
            through: Interface::V1,
            url: CallbackUrl::new("https://shop.example/cb").unwrap(),
            body: String::new(),
            tried: CallbackTry { at: UnixMillis(0), duration: Duration::ZERO, outcome },
        };
        for number in 0..=32 {
            samples.keep(ActionId(number), "acme", Sampled { id: number.to_string(), ..sample.clone() });
        }
        let known = |number| samples.get(ActionId(number), "acme").map(|sample| sample.id);
        assert_eq!([known(0), known(1), known(32)], [None, Some("1".into()), Some("32".into())]);
        assert!(samples.get(ActionId(32), "demo").is_none(), "it is another merchant's");
    }
}
