//! Operations after their creation, as operators see them in the console, the admin API and on the command line (contract
//! section 14): the list and its filter, what is known of one, and the words of what operators do about it.

mod actions;
mod filter;
mod list;
mod timeline;

use std::time::Duration;

pub use actions::{ActionRefusal, acknowledge, ask, confirm_result, new_resolution, own_id, resolve_result};
pub use filter::{DEFAULT_LIMIT, MAX_OPERATIONS, OperationFilter, OperationSearch};
pub use list::{OperationDocument, OperationsDocument, OtherHome, find};
pub use timeline::{OperationTimeline, TimelineEvent, WaitingResolution, timeline};

use crate::clock::ClockJumps;
use crate::domain::{Direction, UnixMillis};
use crate::rules::RuleSet;
use crate::store::LateRule;

/// After which a resolution waits no more for another operator.
const RESOLUTION_LIFE: Duration = Duration::from_hours(24);

/// The waits that are over now. The time by which the clock was set ahead does not count.
#[derive(Debug, Clone, Default)]
pub struct Overdue {
    /// Until when operations must have been created to be late.
    pub late: LateRule,
    /// Resolutions made until then wait no more; `None`: all wait.
    pub lapsed: Option<UnixMillis>,
}

impl Overdue {
    /// Computes them by the rules in force.
    #[must_use]
    pub fn of(rules: &RuleSet, jumps: &ClockJumps) -> Self {
        let mut late = LateRule::default();
        for shop in rules.shops.values() {
            let expected = shop.expected_within;
            for (direction, span) in [(Direction::Payin, expected.payin), (Direction::Payout, expected.payout)] {
                let until = span.and_then(|span| jumps.began_until(span, Duration::ZERO));
                late.created_until.extend(until.map(|until| ((shop.code.clone(), direction), until)));
            }
            if expected.customers_too && expected.payin.is_some() {
                late.customers_too.push(shop.code.clone());
            }
        }
        Self { late, lapsed: jumps.began_until(RESOLUTION_LIFE, Duration::ZERO) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;
    use crate::clock::{Clock as _, ManualClock};
    use crate::domain::ShopCode;
    use crate::rules::{LoadOptions, load};

    const DAY: Duration = Duration::from_hours(24);

    #[test]
    fn a_clock_that_is_set_ends_no_wait() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("shops")).unwrap();
        fs::write(directory.path().join("gateway.toml"), "").unwrap();
        let shop = "currency = \"EUR\"\n[provider]\nkind = \"sandbox\"\nexpected_within = \"24h\"\n";
        fs::write(directory.path().join("shops/card-eur.toml"), shop).unwrap();
        let clock = Arc::new(ManualClock::at(UnixMillis(1_790_000_000_000)));
        let rules = load(directory.path(), clock.now(), None, LoadOptions::default()).unwrap();
        let jumps = ClockJumps::new(Arc::clone(&clock) as _);
        let code = ShopCode::new("card-eur").unwrap();
        let ended = || {
            let Overdue { late, lapsed } = Overdue::of(&rules, &jumps);
            let until =
                [Direction::Payin, Direction::Payout].map(|way| late.created_until.get(&(code.clone(), way)).copied());
            assert_eq!(until, [lapsed; 2], "both waits are of a day");
            lapsed.unwrap()
        };
        clock.advance(DAY * 2);
        let before = clock.now();
        let a_day_before = |now: UnixMillis| UnixMillis(now.0 - 86_400_000);
        assert_eq!(ended(), a_day_before(before));
        clock.set_ahead(30 * 3_600_000);
        assert_eq!(ended(), a_day_before(before), "what began since then still waits");
        clock.set_ahead(-60 * 3_600_000);
        assert!(ended() < a_day_before(before), "less is over than before");
        clock.set_ahead(30 * 3_600_000);
        clock.advance(DAY);
        assert_eq!(ended(), before, "a day later it is over");
    }
}
