//! The second leg: looks whether files changed that the system told nothing of. There are filesystems without events, and
//! files that are written by another way than the watched one.

use std::time::{Duration, Instant};

use super::Shared;

/// Between two looks, as a multiple of what a look takes.
const COST: u32 = 20;
const SHORTEST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(3);

/// So many looks in a row may find something: somebody edits.
const IN_A_ROW: u32 = 20;

/// Between two looks of which each finds something, far beyond what somebody edits.
const LONGEST_IN_A_ROW: Duration = Duration::from_secs(10);

/// Looks until the watcher is stopped.
pub(super) fn run(shared: &Shared, is_stale: &dyn Fn() -> bool) {
    let mut in_a_row = 0;
    let mut pause = SHORTEST;
    while let Some(reloads) = rest(shared, pause) {
        let began = Instant::now();
        let found = is_stale();
        in_a_row = if found { in_a_row + 1 } else { 0 };
        pause = interval(began.elapsed(), in_a_row);
        let mut state = shared.state();
        // A reload that began meanwhile has read what was found.
        if found && !state.busy() && state.reloads == reloads {
            tracing::debug!("files changed that the system told nothing of");
            state.noticed.settle.changed(Instant::now());
            drop(state);
            shared.woken.notify_all();
        }
    }
}

/// Waits for so long, and on while a reload is on its way, which makes looking vain. Gives the number of reloads until
/// now; nothing once the watcher is stopped.
fn rest(shared: &Shared, pause: Duration) -> Option<u64> {
    let mut until = Instant::now() + pause;
    let mut state = shared.state();
    while !state.stopped {
        let now = Instant::now();
        if now >= until {
            if !state.busy() {
                return Some(state.reloads);
            }
            until = now + pause;
        }
        state = shared.wait(state, Some(until));
    }
    None
}

/// How long to wait after a look that took so long. Looks that find something every time are put further apart: reading
/// does not seem to help.
fn interval(cost: Duration, in_a_row: u32) -> Duration {
    let pause = cost.saturating_mul(COST).clamp(SHORTEST, LONGEST);
    let doubled = pause.saturating_mul(2_u32.saturating_pow(in_a_row.saturating_sub(IN_A_ROW)));
    doubled.min(LONGEST_IN_A_ROW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_follows_the_cost_and_what_is_found() {
        let ms = Duration::from_millis;
        for (cost, in_a_row, expected) in [
            (ms(0), 0, SHORTEST),
            (ms(4), 0, SHORTEST),
            (ms(50), 0, ms(1000)),
            (ms(900), 0, LONGEST),
            (ms(0), IN_A_ROW, SHORTEST),
            (ms(0), IN_A_ROW + 1, ms(500)),
            (ms(50), IN_A_ROW + 2, ms(4000)),
            (ms(0), u32::MAX, LONGEST_IN_A_ROW),
            (Duration::MAX, 1, LONGEST),
        ] {
            assert_eq!(interval(cost, in_a_row), expected, "{cost:?}, {in_a_row}");
        }
    }
}
