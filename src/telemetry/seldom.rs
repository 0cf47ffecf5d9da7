//! A line of the log now and then, where one for each request would be a flood.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the line is written, at most.
const BETWEEN: Duration = Duration::from_secs(10);

/// Says when a line is due.
#[derive(Debug, Default)]
pub struct Seldom(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last: Option<Instant>,
    left_out: u64,
}

impl Seldom {
    /// Whether the line is due at a time; if so, how many were left out since the last one.
    pub fn due(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.last.is_some_and(|last| now.duration_since(last) < BETWEEN) {
            state.left_out += 1;
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_now_and_then() {
        let (seldom, start) = (Seldom::default(), Instant::now());
        assert_eq!(seldom.due(start), Some(0));
        assert_eq!(seldom.due(start), None);
        assert_eq!(seldom.due(start + BETWEEN / 2), None);
        assert_eq!(seldom.due(start + BETWEEN), Some(2));
        assert_eq!(seldom.due(start + BETWEEN), None);
    }
}
