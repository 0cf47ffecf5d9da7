//! Limits the callbacks in flight: a window for each target, a circuit breaker for dead targets, a bound for all
//! together.
//!
//! ```text
//!            answers                                  no answer, OPEN_AFTER times in a row
//! closed <------------- open, probed one at a time <------------------------------------ closed
//! ```
//!
//! A window begins small, grows with every answer and shrinks when there is none. While a circuit is open, one callback
//! at a time probes the target, and the waits between probes double; the others stay in the queue, so that a dead
//! target costs one connection now and then, however many callbacks wait for it.
//!
//! A silent receiver occupies its place for a whole time-out. So targets are divided by their health into four classes,
//! each with a limit of its own: however many targets are silent, those that answered lately and those that were never
//! tried find capacity.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::backoff;
use crate::domain::UnixMillis;
use crate::store::{CallbackQueue, CallbackTarget};

/// The window of a target without history.
const FIRST_WINDOW: usize = 4;
/// The most callbacks in flight to one target.
const LARGEST_WINDOW: usize = 64;
/// The most callbacks in flight in all.
pub(super) const MAX_IN_FLIGHT: usize = 1024;
/// After this many attempts in a row without an answer, a target is [`TargetHealth::Dead`].
const DEAD_AFTER: u32 = 3;
/// After this many attempts in a row without an answer, a target's circuit opens.
const OPEN_AFTER: u32 = 5;
/// The longest wait between two probes, regardless of the retries that the rules set.
const LONGEST_PROBE_WAIT: Duration = Duration::from_mins(1);
/// The most healthy targets that are remembered.
const MAX_REMEMBERED: usize = 10_000;

/// The health of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TargetHealth {
    /// It answered lately.
    Proven,
    /// Unknown: no waiting callback to it was attempted before.
    Fresh,
    /// It gave no answer once or twice, or a slow one, or an attempt failed before this process knew of it.
    Troubled,
    /// It gave no answer [`DEAD_AFTER`] times or more.
    Dead,
}

impl TargetHealth {
    /// Returns the most callbacks in flight to targets of this health. The limits leave a part of [`MAX_IN_FLIGHT`] to
    /// targets that answered lately.
    const fn limit(self) -> usize {
        match self {
            Self::Proven => MAX_IN_FLIGHT,
            Self::Fresh => 448,
            Self::Troubled => 192,
            Self::Dead => 128,
        }
    }
}

/// What an attempt revealed about its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeResult {
    /// It answered, with any status.
    Lives,
    /// It answered, but slowly.
    Slow,
    /// It gave no answer.
    Silent,
    /// No request was sent.
    Nothing,
}

/// A change of a target's circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CircuitChange {
    /// The circuit has opened: the target counts as dead.
    Opened,
    /// The circuit has closed again.
    Closed,
}

/// Whether more callbacks may start for a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Capacity {
    /// This many, at least one, counted under this health.
    For(usize, TargetHealth),
    /// None before one in flight has finished.
    Full,
    /// None before this time: the circuit is open.
    At(UnixMillis),
}

/// The bounds of the waits between retries, which apply to probes too.
#[derive(Debug, Clone, Copy)]
pub(super) struct Backoff {
    pub first: Duration,
    pub longest: Duration,
}

#[derive(Debug)]
struct Target {
    in_flight: usize,
    window: usize,
    /// Its last attempt was answered in time.
    proven: bool,
    /// Attempts without an answer, in a row.
    silent: u32,
    /// While the circuit is open: when the target may be probed.
    probe_at: Option<UnixMillis>,
}

impl Target {
    /// Creates a target without history. `tried`: whether a callback that waits for it was attempted before.
    const fn unknown(tried: bool) -> Self {
        let window = if tried { 1 } else { FIRST_WINDOW };
        Self { in_flight: 0, window, proven: false, silent: 0, probe_at: None }
    }

    const fn health(&self, tried: bool) -> TargetHealth {
        match self.silent {
            0 if self.proven => TargetHealth::Proven,
            0 if !tried => TargetHealth::Fresh,
            0..DEAD_AFTER => TargetHealth::Troubled,
            _ => TargetHealth::Dead,
        }
    }
}

/// The callbacks in flight, by the health of their targets.
#[derive(Debug, Clone, Copy, Default)]
struct InFlight([usize; 4]);

impl InFlight {
    fn of(&mut self, health: TargetHealth) -> &mut usize {
        let [proven, fresh, troubled, dead] = &mut self.0;
        match health {
            TargetHealth::Proven => proven,
            TargetHealth::Fresh => fresh,
            TargetHealth::Troubled => troubled,
            TargetHealth::Dead => dead,
        }
    }

    fn all(self) -> usize {
        self.0.iter().sum()
    }
}

/// All targets with a history.
#[derive(Debug, Default)]
pub(super) struct Targets {
    known: HashMap<CallbackTarget, Target>,
    in_flight: InFlight,
    open: usize,
}

impl Targets {
    /// Begins to distribute the free capacity.
    pub(super) const fn sharing(&self) -> Sharing<'_> {
        Sharing { targets: self, in_flight: self.in_flight }
    }

    /// Counts a started callback under this health.
    pub(super) fn started(&mut self, target: &CallbackTarget, health: TargetHealth) {
        let unknown = || Target::unknown(health != TargetHealth::Fresh);
        self.known.entry(target.clone()).or_insert_with(unknown).in_flight += 1;
        *self.in_flight.of(health) += 1;
    }

    /// Records the end of a callback that was counted under a health, and what it revealed. `random` spreads the
    /// probes.
    pub(super) fn finished(
        &mut self,
        (target, health): (&CallbackTarget, TargetHealth),
        probe: ProbeResult,
        retry_waits: Backoff,
        now: UnixMillis,
        random: u64,
    ) -> Option<CircuitChange> {
        let in_flight = self.in_flight.of(health);
        *in_flight = in_flight.saturating_sub(1);
        let state = self.known.get_mut(target)?;
        state.in_flight = state.in_flight.saturating_sub(1);
        let was_open = state.probe_at.is_some();
        match probe {
            ProbeResult::Lives => {
                (state.proven, state.silent, state.probe_at) = (true, 0, None);
                state.window = (state.window + 1).min(LARGEST_WINDOW);
            }
            // A slow target opens no circuit, but may not use the capacity of the fast ones: each callback holds it
            // almost as long as to a dead one.
            ProbeResult::Slow => {
                (state.proven, state.silent, state.probe_at) = (false, 1, None);
                state.window = (state.window / 2).max(1);
            }
            ProbeResult::Silent => {
                state.proven = false;
                state.silent = state.silent.saturating_add(1);
                state.window = (state.window / 2).max(1);
                if state.silent >= OPEN_AFTER {
                    state.window = 1;
                    let longest = retry_waits.longest.min(LONGEST_PROBE_WAIT);
                    let wait =
                        backoff::wait(retry_waits.first.min(longest), longest, state.silent - OPEN_AFTER, None, random);
                    state.probe_at = Some(now.plus(wait));
                }
            }
            ProbeResult::Nothing => {}
        }
        match (was_open, state.probe_at.is_some()) {
            (false, true) => {
                self.open += 1;
                Some(CircuitChange::Opened)
            }
            (true, false) => {
                self.open -= 1;
                Some(CircuitChange::Closed)
            }
            _ => None,
        }
    }

    /// Forgets the silent targets that no callback waits for any more, and all healthy ones when there are too many.
    pub(super) fn forget(&mut self, queued: &HashSet<&CallbackTarget>) {
        let too_many = self.known.len() > MAX_REMEMBERED;
        self.known.retain(|target, state| match state {
            Target { in_flight: 1.., .. } => true,
            Target { silent: 1.., .. } => queued.contains(target),
            Target { proven, .. } => *proven && !too_many,
        });
        self.open = self.known.values().filter(|target| target.probe_at.is_some()).count();
    }

    /// Returns how many circuits are open, and the first targets of them, sorted.
    pub(super) fn open(&self, at_most: usize) -> (usize, Vec<&CallbackTarget>) {
        if self.open == 0 {
            return (0, Vec::new());
        }
        let open = self.known.iter().filter(|(_, state)| state.probe_at.is_some());
        let mut targets: Vec<&CallbackTarget> = open.map(|(target, _)| target).collect();
        targets.sort_unstable();
        targets.truncate(at_most);
        (self.open, targets)
    }
}

/// A distribution of the free capacity: each target is queried once.
pub(super) struct Sharing<'a> {
    targets: &'a Targets,
    in_flight: InFlight,
}

impl Sharing<'_> {
    /// Returns how many callbacks may start for a queue's target, and counts them as started for the targets that
    /// follow.
    pub(super) fn capacity(&mut self, queue: &CallbackQueue, now: UnixMillis) -> Capacity {
        let unknown = Target::unknown(queue.tried);
        let state = self.targets.known.get(&queue.target).unwrap_or(&unknown);
        if let Some(at) = state.probe_at
            && state.in_flight == 0
            && now < at
        {
            return Capacity::At(at);
        }
        let health = state.health(queue.tried);
        let total_left = MAX_IN_FLIGHT.saturating_sub(self.in_flight.all());
        let used = *self.in_flight.of(health);
        let left = health.limit().saturating_sub(used).min(total_left);
        // One half of the capacity is for targets that need several places, the other half for one place each.
        let shared = (health.limit() / 2).saturating_sub(used).min(total_left);
        let fair = if state.in_flight == 0 { shared.max(left.min(1)) } else { shared };
        let capacity = state.window.saturating_sub(state.in_flight).min(fair);
        *self.in_flight.of(health) += capacity;
        if capacity == 0 { Capacity::Full } else { Capacity::For(capacity, health) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITS: Backoff = Backoff { first: Duration::from_secs(5), longest: Duration::from_hours(1) };
    const NOW: UnixMillis = UnixMillis(1_790_000_000_000);

    fn target(name: &str) -> CallbackTarget {
        CallbackTarget::Origin(name.into())
    }

    fn queue(name: &str, tried: bool) -> CallbackQueue {
        CallbackQueue { target: target(name), due: NOW, tried }
    }

    struct Fixture {
        targets: Targets,
        now: UnixMillis,
    }

    impl Fixture {
        fn new() -> Self {
            Self { targets: Targets::default(), now: NOW }
        }

        fn capacity(&self, name: &str) -> Capacity {
            self.targets.sharing().capacity(&queue(name, false), self.now)
        }

        /// Starts as many as there is capacity for.
        fn start(&mut self, name: &str) -> (usize, TargetHealth) {
            let Capacity::For(capacity, health) = self.capacity(name) else {
                panic!("{name}: {:?}", self.capacity(name))
            };
            (0..capacity).for_each(|_| self.targets.started(&target(name), health));
            (capacity, health)
        }

        fn tried(&mut self, name: &str, probe: ProbeResult) -> Option<CircuitChange> {
            self.targets.started(&target(name), TargetHealth::Fresh);
            self.targets.finished((&target(name), TargetHealth::Fresh), probe, WAITS, self.now, 0)
        }
    }

    #[test]
    fn a_window_grows_with_answers_and_shrinks_without_them() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.capacity("a"), Capacity::For(FIRST_WINDOW, TargetHealth::Fresh));
        for _ in 0..100 {
            assert_eq!(fixture.tried("a", ProbeResult::Lives), None);
        }
        assert_eq!(fixture.capacity("a"), Capacity::For(LARGEST_WINDOW, TargetHealth::Proven));
        fixture.tried("a", ProbeResult::Silent);
        assert_eq!(fixture.capacity("a"), Capacity::For(LARGEST_WINDOW / 2, TargetHealth::Troubled));
        fixture.tried("a", ProbeResult::Nothing);
        assert_eq!(fixture.capacity("a"), Capacity::For(LARGEST_WINDOW / 2, TargetHealth::Troubled));
        fixture.tried("a", ProbeResult::Silent);
        fixture.tried("a", ProbeResult::Silent);
        assert_eq!(fixture.capacity("a"), Capacity::For(LARGEST_WINDOW / 8, TargetHealth::Dead));
        for window in [4, 2, 1, 1] {
            assert_eq!(fixture.tried("a", ProbeResult::Slow), None);
            assert_eq!(fixture.capacity("a"), Capacity::For(window, TargetHealth::Troubled), "slow, but not dead");
        }
    }

    #[test]
    fn a_dead_target_is_probed_one_at_a_time_with_doubling_waits() {
        let mut fixture = Fixture::new();
        for round in 1..OPEN_AFTER {
            assert_eq!(fixture.tried("a", ProbeResult::Silent), None, "{round}");
        }
        assert_eq!(fixture.tried("a", ProbeResult::Silent), Some(CircuitChange::Opened));
        assert_eq!(fixture.targets.open(10), (1, vec![&target("a")]));
        // With `random` 0, a wait is half of its maximum.
        for seconds in [5, 10, 20, 40, 60, 60] {
            let at = fixture.now.plus(Duration::from_secs(seconds) / 2);
            assert_eq!(fixture.capacity("a"), Capacity::At(at), "{seconds}");
            fixture.now = at;
            assert_eq!(fixture.start("a"), (1, TargetHealth::Dead));
            assert_eq!(fixture.capacity("a"), Capacity::Full, "while it is probed");
            assert_eq!(
                fixture.targets.finished(
                    (&target("a"), TargetHealth::Dead),
                    ProbeResult::Silent,
                    WAITS,
                    fixture.now,
                    0
                ),
                None
            );
        }
        assert!(matches!(fixture.capacity("b"), Capacity::For(FIRST_WINDOW, _)), "other targets are unaffected");
        assert_eq!(fixture.tried("a", ProbeResult::Lives), Some(CircuitChange::Closed));
        assert_eq!(
            (fixture.capacity("a"), fixture.targets.open(10)),
            (Capacity::For(2, TargetHealth::Proven), (0, vec![]))
        );
    }

    #[test]
    fn silent_targets_leave_capacity_for_others() {
        let mut fixture = Fixture::new();
        for _ in 0..3 {
            fixture.tried("proven", ProbeResult::Lives);
        }
        fixture.tried("troubled", ProbeResult::Silent);
        let fill = |fixture: &mut Fixture, silences: usize, prefix: &str| {
            for number in 0..2 * MAX_IN_FLIGHT {
                let name = format!("{prefix}{number}");
                for _ in 0..silences {
                    fixture.tried(&name, ProbeResult::Silent);
                }
                if matches!(fixture.capacity(&name), Capacity::For(..)) {
                    fixture.start(&name);
                }
            }
        };
        fill(&mut fixture, 3, "dead");
        assert_eq!(fixture.targets.in_flight.all(), TargetHealth::Dead.limit());
        assert!(matches!(fixture.capacity("troubled"), Capacity::For(2, TargetHealth::Troubled)));
        fill(&mut fixture, 1, "silent");
        assert!(matches!(fixture.capacity("fresh"), Capacity::For(FIRST_WINDOW, TargetHealth::Fresh)));
        fill(&mut fixture, 0, "new");
        assert_eq!(fixture.capacity("fresh"), Capacity::Full);
        assert!(matches!(fixture.capacity("proven"), Capacity::For(7, TargetHealth::Proven)));
        let [proven, others @ ..] = fixture.targets.in_flight.0;
        assert_eq!((proven, others.iter().sum::<usize>()), (0, 768), "a quarter is left");
    }

    #[test]
    fn a_target_with_earlier_attempts_is_not_fresh() {
        let fixture = Fixture::new();
        let mut sharing = fixture.targets.sharing();
        assert_eq!(sharing.capacity(&queue("a", true), NOW), Capacity::For(1, TargetHealth::Troubled));
        assert_eq!(sharing.capacity(&queue("b", false), NOW), Capacity::For(FIRST_WINDOW, TargetHealth::Fresh));
    }

    #[test]
    fn capacity_given_out_in_one_round_counts() {
        let fixture = Fixture::new();
        let mut sharing = fixture.targets.sharing();
        let mut started = 0;
        while let Capacity::For(capacity, _) = sharing.capacity(&queue(&format!("t{started}"), false), NOW) {
            started += capacity;
        }
        assert_eq!(started, TargetHealth::Fresh.limit());
    }

    #[test]
    fn the_total_is_bounded() {
        let mut fixture = Fixture::new();
        for number in 0..2 * MAX_IN_FLIGHT {
            let name = format!("t{number}");
            fixture.tried(&name, ProbeResult::Lives);
            if matches!(fixture.capacity(&name), Capacity::For(..)) {
                fixture.start(&name);
            }
        }
        assert_eq!(fixture.targets.in_flight.all(), MAX_IN_FLIGHT);
    }

    #[test]
    fn idle_targets_are_forgotten() {
        let mut fixture = Fixture::new();
        fixture.tried("well", ProbeResult::Lives);
        for _ in 0..OPEN_AFTER {
            fixture.tried("dead", ProbeResult::Silent);
        }
        let dead = target("dead");
        fixture.targets.forget(&HashSet::from([&dead]));
        assert_eq!((fixture.targets.open(0).0, fixture.targets.known.len()), (1, 2));
        fixture.targets.forget(&HashSet::new());
        assert!(fixture.targets.open(0).0 == 0 && fixture.targets.known.len() == 1, "a healthy target is remembered");
        for number in 0..MAX_REMEMBERED {
            fixture.tried(&format!("t{number}"), ProbeResult::Lives);
        }
        fixture.targets.forget(&HashSet::new());
        assert!(fixture.targets.known.is_empty());
    }
}
