//! Operations after their creation, as operators see them in the console, the admin API and on the command line (contract
//! section 14): the list and its filter, what is known of one, and the words of what operators do about it.

mod actions;
mod filter;
mod list;
mod timeline;

use std::time::Duration;

pub use actions::{ActionRefusal, ask_result, confirm_result, new_resolution, resolve_result};
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
