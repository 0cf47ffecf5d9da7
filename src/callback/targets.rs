//! Limits the callbacks in flight: a window for each target, a circuit breaker for dead targets, and bounds for each
//! origin and for all together, of which no merchant gets everything.
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
//! tried find capacity. And a merchant may hold no more places of a class, or of an origin, than are left to the others:
//! half of them when it is alone. So the next merchant finds places at once, regardless of the others' targets.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::backoff;
use crate::domain::UnixMillis;
use crate::store::{CallbackQueue, CallbackTarget};

/// The window of a target without history.
const FIRST_WINDOW: usize = 4;
/// The most callbacks in flight to one target: what a merchant may hold of an origin's places.
const LARGEST_WINDOW: usize = MAX_AT_ORIGIN / 2;
/// The most callbacks in flight to one origin, of all merchants.
const MAX_AT_ORIGIN: usize = 64;
/// The most callbacks in flight in all.
pub(super) const MAX_IN_FLIGHT: usize = 1024;
/// After this many attempts in a row without an answer, a target is [`TargetHealth::Dead`].
const DEAD_AFTER: u32 = 3;
/// After this many attempts in a row without an answer, a target's circuit opens.
const OPEN_AFTER: u32 = 5;
/// The longest wait between two probes, regardless of the retries that the rules set.
const LONGEST_PROBE_WAIT: Duration = Duration::from_mins(1);
/// The most targets that are remembered.
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
pub(crate) enum ProbeResult {
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
    At(Instant),
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
    /// When the last of its callbacks was started.
    started_at: UnixMillis,
    window: usize,
    /// Its last attempt was answered in time.
    proven: bool,
    /// Attempts without an answer, in a row.
    silent: u32,
    /// While the circuit is open: when the target may be probed.
    probe_at: Option<Instant>,
}

impl Target {
    /// Creates a target without history. `tried`: whether a callback that waits for it was attempted before.
    const fn unknown(tried: bool) -> Self {
        let window = if tried { 1 } else { FIRST_WINDOW };
        Self { in_flight: 0, started_at: UnixMillis(i64::MIN), window, proven: false, silent: 0, probe_at: None }
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

/// Callbacks in flight, counted by the health of their targets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Places([usize; 4]);

impl Places {
    const fn of(&mut self, health: TargetHealth) -> &mut usize {
        let [proven, fresh, troubled, dead] = &mut self.0;
        match health {
            TargetHealth::Proven => proven,
            TargetHealth::Fresh => fresh,
            TargetHealth::Troubled => troubled,
            TargetHealth::Dead => dead,
        }
    }

    fn total(self) -> usize {
        self.0.iter().sum()
    }
}

/// The callbacks in flight: in all, of each merchant, and to each origin.
#[derive(Debug, Clone, Default)]
struct InFlight {
    all: Places,
    merchants: HashMap<Box<str>, Places>,
    origins: HashMap<Box<str>, usize>,
}

impl InFlight {
    fn add(&mut self, target: &CallbackTarget, health: TargetHealth, count: usize) {
        *self.all.of(health) += count;
        *self.merchants.entry(target.merchant().into()).or_default().of(health) += count;
        *self.origins.entry(target.origin().into()).or_default() += count;
    }

    fn remove(&mut self, target: &CallbackTarget, health: TargetHealth) {
        let reduce = |count: &mut usize| *count = count.saturating_sub(1);
        reduce(self.all.of(health));
        if let Some(places) = self.merchants.get_mut(target.merchant()) {
            reduce(places.of(health));
            if places.total() == 0 {
                self.merchants.remove(target.merchant());
            }
        }
        if let Some(count) = self.origins.get_mut(target.origin()) {
            reduce(count);
            if *count == 0 {
                self.origins.remove(target.origin());
            }
        }
    }

    /// Returns how many more callbacks of this health a merchant may start.
    fn room(&self, merchant: &str, health: TargetHealth, has_none: bool) -> usize {
        let (mut all, mut own) = (self.all, self.merchants.get(merchant).copied().unwrap_or_default());
        let (used, held) = (*all.of(health), *own.of(health));
        let room = share(health.limit().saturating_sub(used), held)
            .min(share(MAX_IN_FLIGHT.saturating_sub(all.total()), own.total()));
        // One half of a merchant's places is for targets that need several, the other half for one each.
        let several = (held + room).div_euclid(2).saturating_sub(held);
        if has_none { several.max(room.min(1)) } else { several }
    }

    /// Returns how many more callbacks to this origin a merchant may start that has some in flight to it.
    fn room_at(&self, origin: &str, held: usize) -> usize {
        let used = self.origins.get(origin).copied().unwrap_or_default();
        share(MAX_AT_ORIGIN.saturating_sub(used), held)
    }
}

/// Returns how many of the free places a merchant may take that holds some: until it holds as many as are left.
const fn share(free: usize, held: usize) -> usize {
    free.saturating_sub(held).div_ceil(2)
}

/// All targets with a history.
#[derive(Debug, Default)]
pub(super) struct Targets {
    known: HashMap<CallbackTarget, Target>,
    in_flight: InFlight,
    /// How many open circuits each origin has.
    open: BTreeMap<Box<str>, usize>,
}

impl Targets {
    /// Begins to distribute the free capacity.
    pub(super) fn sharing(&self) -> Sharing<'_> {
        Sharing { targets: self, in_flight: self.in_flight.clone() }
    }

    /// Orders due queues so that merchants take turns: first the queue of each merchant that has waited longest, then
    /// the second one of each, and so on. A queue waits since its callback is due, or since its last one was started.
    /// `monotonic` is the same moment as `now`.
    pub(super) fn in_turns(
        &self,
        mut due: Vec<CallbackQueue>,
        now: UnixMillis,
        monotonic: Instant,
    ) -> Vec<CallbackQueue> {
        due.sort_by_cached_key(|queue| {
            let started_at = self.known.get(&queue.target).map_or(queue.due, |state| state.started_at.min(now));
            queue.due.max(started_at)
        });
        let mut turns: HashMap<&str, usize> = HashMap::new();
        let turn_of = |queue: &CallbackQueue, turn: &mut usize| {
            // A target that may not be probed yet takes no turn.
            *turn += usize::from(self.probe_at(&queue.target, monotonic).is_none());
            *turn
        };
        let mut turn_numbers = Vec::with_capacity(due.len());
        for queue in &due {
            turn_numbers.push(turn_of(queue, turns.entry(queue.target.merchant()).or_default()));
        }
        let mut due: Vec<(usize, CallbackQueue)> = turn_numbers.into_iter().zip(due).collect();
        due.sort_by_key(|(turn, _)| *turn);
        due.into_iter().map(|(_, queue)| queue).collect()
    }

    /// Returns when a target may be probed, if it has to wait for that.
    fn probe_at(&self, target: &CallbackTarget, now: Instant) -> Option<Instant> {
        let state = self.known.get(target).filter(|state| state.in_flight == 0)?;
        state.probe_at.filter(|at| now < *at)
    }

    /// Counts a started callback under this health.
    pub(super) fn started(&mut self, target: &CallbackTarget, health: TargetHealth, now: UnixMillis) {
        let unknown = || Target::unknown(health != TargetHealth::Fresh);
        let state = self.known.entry(target.clone()).or_insert_with(unknown);
        state.in_flight += 1;
        state.started_at = now;
        self.in_flight.add(target, health, 1);
    }

    /// Records the end of a callback that was counted under a health, and what it revealed. `random` spreads the
    /// probes.
    pub(super) fn finished(
        &mut self,
        (target, health): (&CallbackTarget, TargetHealth),
        probe: ProbeResult,
        retry_waits: Backoff,
        now: Instant,
        random: u64,
    ) -> Option<CircuitChange> {
        self.in_flight.remove(target, health);
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
                    state.probe_at = Some(now + wait);
                }
            }
            ProbeResult::Nothing => {}
        }
        match (was_open, state.probe_at.is_some()) {
            (false, true) => {
                *self.open.entry(target.origin().into()).or_default() += 1;
                Some(CircuitChange::Opened)
            }
            (true, false) => {
                close(&mut self.open, target.origin());
                Some(CircuitChange::Closed)
            }
            _ => None,
        }
    }

    /// Forgets the silent targets for which no callback waits any more, and those that have been unused for longest when
    /// there are too many.
    pub(super) fn forget(&mut self, is_idle: impl Fn(&CallbackTarget) -> bool) {
        self.retain(|target, state| match state {
            Target { in_flight: 1.., .. } => true,
            Target { silent: 1.., .. } => !is_idle(target),
            Target { proven, .. } => *proven,
        });
        let too_many = self.known.len().saturating_sub(MAX_REMEMBERED);
        if too_many == 0 {
            return;
        }
        let unused = self.known.values().filter(|state| state.in_flight == 0);
        let mut times: Vec<UnixMillis> = unused.map(|state| state.started_at).collect();
        times.sort_unstable();
        let Some(first_kept) = times.get(too_many) else { return };
        // Several may have been started in the millisecond of the first one that is kept.
        let mut left = too_many - times.partition_point(|at| at < first_kept);
        self.retain(|_, state| {
            let is_tied = state.in_flight == 0 && state.started_at == *first_kept && left > 0;
            left -= usize::from(is_tied);
            state.in_flight > 0 || state.started_at >= *first_kept && !is_tied
        });
    }

    fn retain(&mut self, mut keep: impl FnMut(&CallbackTarget, &Target) -> bool) {
        let Self { known, open, .. } = self;
        known.retain(|target, state| {
            let keep = keep(target, state);
            if !keep && state.probe_at.is_some() {
                close(open, target.origin());
            }
            keep
        });
    }

    /// Returns how many origins have an open circuit, and the first of them, sorted.
    pub(super) fn open_origins(&self, at_most: usize) -> (usize, Vec<&str>) {
        (self.open.len(), self.open.keys().take(at_most).map(|origin| &**origin).collect())
    }

    /// Returns the targets whose circuit is open.
    pub(super) fn open_targets(&self) -> HashSet<CallbackTarget> {
        let open = self.known.iter().filter(|(_, state)| state.probe_at.is_some());
        open.map(|(target, _)| target.clone()).collect()
    }
}

/// Counts a circuit of an origin less.
fn close(open: &mut BTreeMap<Box<str>, usize>, origin: &str) {
    if let Some(count) = open.get_mut(origin) {
        *count -= 1;
        if *count == 0 {
            open.remove(origin);
        }
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
    pub(super) fn capacity(&mut self, queue: &CallbackQueue, now: Instant) -> Capacity {
        let target = &queue.target;
        if let Some(at) = self.targets.probe_at(target, now) {
            return Capacity::At(at);
        }
        let unknown = Target::unknown(queue.tried);
        let state = self.targets.known.get(target).unwrap_or(&unknown);
        let health = state.health(queue.tried);
        let room = self.in_flight.room(target.merchant(), health, state.in_flight == 0);
        let room_at_origin = self.in_flight.room_at(target.origin(), state.in_flight);
        let capacity = state.window.saturating_sub(state.in_flight).min(room).min(room_at_origin);
        if capacity == 0 {
            return Capacity::Full;
        }
        self.in_flight.add(target, health, capacity);
        Capacity::For(capacity, health)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, SystemClock};
    use crate::domain::MerchantId;

    const WAITS: Backoff = Backoff { first: Duration::from_secs(5), longest: Duration::from_hours(1) };
    const NOW: UnixMillis = UnixMillis(1_790_000_000_000);

    /// Returns a target of `merchant/origin`, or of `acme`.
    fn target(name: &str) -> CallbackTarget {
        let (merchant, origin) = name.split_once('/').unwrap_or(("acme", name));
        CallbackTarget::new(&MerchantId::new(merchant).unwrap(), origin)
    }

    fn queue(name: &str, tried: bool) -> CallbackQueue {
        CallbackQueue { target: target(name), due: NOW, tried }
    }

    struct Fixture {
        targets: Targets,
        /// When targets are started; their probes go by `now`.
        started_at: UnixMillis,
        now: Instant,
    }

    impl Fixture {
        fn new() -> Self {
            Self { targets: Targets::default(), started_at: NOW, now: SystemClock.monotonic() }
        }

        fn capacity(&self, name: &str) -> Capacity {
            self.targets.sharing().capacity(&queue(name, false), self.now)
        }

        /// Starts as many as there is capacity for; returns how many.
        fn fill(&mut self, name: &str) -> usize {
            let Capacity::For(capacity, health) = self.capacity(name) else { return 0 };
            (0..capacity).for_each(|_| self.targets.started(&target(name), health, self.started_at));
            capacity
        }

        /// Starts what there is capacity for, of targets of a merchant that were silent so many times. Returns how many
        /// are in flight.
        fn fill_many(&mut self, merchant: &str, silences: usize) -> usize {
            let name = |number| format!("{merchant}/{silences}-{number}");
            let fill = |number| {
                (0..silences).for_each(|_| assert_eq!(self.tried(&name(number), ProbeResult::Silent), None));
                self.fill(&name(number))
            };
            (0..MAX_IN_FLIGHT).map(fill).sum()
        }

        fn tried(&mut self, name: &str, probe: ProbeResult) -> Option<CircuitChange> {
            self.targets.started(&target(name), TargetHealth::Fresh, self.started_at);
            self.finished(name, TargetHealth::Fresh, probe)
        }

        fn finished(&mut self, name: &str, health: TargetHealth, probe: ProbeResult) -> Option<CircuitChange> {
            self.targets.finished((&target(name), health), probe, WAITS, self.now, 0)
        }

        fn open_circuit(&mut self, name: &str) {
            (1..OPEN_AFTER).for_each(|_| assert_eq!(self.tried(name, ProbeResult::Silent), None));
            assert_eq!(self.tried(name, ProbeResult::Silent), Some(CircuitChange::Opened));
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
        for window in [2, 1, 1] {
            assert_eq!(fixture.tried("a", ProbeResult::Slow), None);
            assert_eq!(fixture.capacity("a"), Capacity::For(window, TargetHealth::Troubled), "slow, but not dead");
        }
    }

    #[test]
    fn a_dead_target_is_probed_one_at_a_time_with_doubling_waits() {
        let mut fixture = Fixture::new();
        fixture.open_circuit("a");
        // With `random` 0, a wait is half of its maximum.
        for seconds in [5, 10, 20, 40, 60, 60] {
            let at = fixture.now + Duration::from_secs(seconds) / 2;
            assert_eq!(fixture.capacity("a"), Capacity::At(at), "{seconds}");
            fixture.now = at;
            assert_eq!(fixture.capacity("a"), Capacity::For(1, TargetHealth::Dead));
            assert_eq!(fixture.fill("a"), 1);
            assert_eq!(fixture.capacity("a"), Capacity::Full, "while it is probed");
            assert_eq!(fixture.finished("a", TargetHealth::Dead, ProbeResult::Silent), None);
        }
        for other in ["b", "beta/a"] {
            assert_eq!(fixture.capacity(other), Capacity::For(FIRST_WINDOW, TargetHealth::Fresh), "{other}");
        }
        assert_eq!(fixture.tried("a", ProbeResult::Lives), Some(CircuitChange::Closed));
        assert_eq!(fixture.capacity("a"), Capacity::For(2, TargetHealth::Proven));
    }

    #[test]
    fn open_circuits_are_counted_by_origin() {
        let mut fixture = Fixture::new();
        for name in ["acme/b", "beta/b", "acme/a"] {
            fixture.open_circuit(name);
        }
        assert_eq!(fixture.targets.open_origins(10), (2, vec!["a", "b"]));
        assert_eq!(fixture.targets.open_origins(1), (2, vec!["a"]));
        assert_eq!(fixture.targets.open_targets(), ["acme/a", "acme/b", "beta/b"].map(target).into());
        assert_eq!(fixture.tried("acme/b", ProbeResult::Lives), Some(CircuitChange::Closed));
        assert_eq!(fixture.targets.open_origins(10).0, 2, "another merchant's is open");
        fixture.targets.forget(|target| target.merchant() == "beta");
        assert_eq!(fixture.targets.open_origins(10), (1, vec!["a"]));
    }

    #[test]
    fn a_merchant_holds_at_most_half_of_the_places_for_unproven_targets() {
        let mut fixture = Fixture::new();
        for (silences, health) in [(3, TargetHealth::Dead), (1, TargetHealth::Troubled), (0, TargetHealth::Fresh)] {
            assert_eq!(fixture.fill_many("acme", silences), health.limit() / 2, "{health:?}");
            for _ in 0..silences {
                fixture.tried("beta/shop", ProbeResult::Silent);
            }
            let Capacity::For(_, found) = fixture.capacity("beta/shop") else { panic!("{health:?}") };
            assert_eq!(found, health);
            fixture.tried("beta/shop", ProbeResult::Lives);
            fixture.targets.forget(|_| true);
            fixture.targets.known.remove(&target("beta/shop"));
        }
        assert_eq!(fixture.capacity("new"), Capacity::Full, "there is none left for this merchant");
        for _ in 0..2 {
            fixture.tried("proven", ProbeResult::Lives);
        }
        assert_eq!(fixture.capacity("proven"), Capacity::For(6, TargetHealth::Proven));
    }

    #[test]
    fn merchants_leave_places_to_the_next_one() {
        let mut fixture = Fixture::new();
        let filled: Vec<usize> = (0..8).map(|number| fixture.fill_many(&format!("silent-{number}"), 0)).collect();
        assert_eq!(filled, [224, 112, 56, 28, 14, 7, 4, 2]);
        assert!(matches!(fixture.capacity("new"), Capacity::For(1, TargetHealth::Fresh)));
        for number in 0..100 {
            fixture.finished(&format!("silent-0/0-{number}"), TargetHealth::Fresh, ProbeResult::Silent);
        }
        assert_eq!(fixture.capacity("silent-0/new"), Capacity::Full, "it holds more than are left");
        assert!(matches!(fixture.capacity("silent-7/new"), Capacity::For(FIRST_WINDOW, TargetHealth::Fresh)));
    }

    #[test]
    fn one_half_of_a_merchants_places_is_for_one_callback_each() {
        let mut fixture = Fixture::new();
        let filled: Vec<usize> = (0..MAX_IN_FLIGHT).map(|number| fixture.fill(&number.to_string())).collect();
        let half = TargetHealth::Fresh.limit() / 4;
        assert!(filled[..half / FIRST_WINDOW].iter().all(|count| *count == FIRST_WINDOW), "{filled:?}");
        assert!(filled[half / FIRST_WINDOW..][..half].iter().all(|count| *count == 1), "{filled:?}");
    }

    #[test]
    fn merchants_share_the_places_of_an_origin() {
        let mut fixture = Fixture::new();
        let name = |number| format!("merchant-{number}/platform");
        for _ in 0..100 {
            fixture.tried("acme/platform", ProbeResult::Lives);
        }
        assert_eq!(fixture.fill("acme/platform"), MAX_AT_ORIGIN / 2, "a merchant alone");
        assert_eq!(fixture.fill("acme/platform"), 0);
        let others: Vec<usize> = (0..100).map(|number| fixture.fill(&name(number))).collect();
        assert_eq!((others[0], others.iter().sum()), (FIRST_WINDOW, MAX_AT_ORIGIN / 2), "{others:?}");
        assert_eq!(fixture.capacity(&name(100)), Capacity::Full);
        assert!(matches!(fixture.capacity("merchant-100/elsewhere"), Capacity::For(FIRST_WINDOW, _)));
        fixture.finished("acme/platform", TargetHealth::Proven, ProbeResult::Lives);
        assert_eq!(fixture.capacity("acme/platform"), Capacity::Full, "it is another merchant's turn");
        assert!(matches!(fixture.capacity(&name(100)), Capacity::For(1, _)));
    }

    #[test]
    fn merchants_take_turns() {
        let mut fixture = Fixture::new();
        let due = |names: &[(&str, i64)]| {
            let queue = |(name, at): &(&str, i64)| CallbackQueue { due: UnixMillis(*at), ..queue(name, false) };
            names.iter().map(queue).collect::<Vec<_>>()
        };
        let order = |fixture: &Fixture, due: Vec<CallbackQueue>| {
            let ordered = fixture.targets.in_turns(due, NOW, fixture.now).into_iter();
            ordered.map(|queue| format!("{}/{}", queue.target.merchant(), queue.target.origin())).collect::<Vec<_>>()
        };
        let waiting = [("acme/3", 3), ("beta/1", 9), ("acme/1", 1), ("acme/2", 2), ("gamma/1", 7), ("gamma/2", 8)];
        assert_eq!(order(&fixture, due(&waiting)), ["acme/1", "gamma/1", "beta/1", "acme/2", "gamma/2", "acme/3"]);
        fixture.tried("acme/1", ProbeResult::Lives);
        assert_eq!(
            order(&fixture, due(&waiting)),
            ["acme/2", "gamma/1", "beta/1", "acme/3", "gamma/2", "acme/1"],
            "what was started last comes last"
        );
        fixture.open_circuit("gamma/1");
        assert_eq!(order(&fixture, due(&waiting))[..3], ["acme/2", "gamma/2", "beta/1"], "a circuit takes no turn");
    }

    #[test]
    fn a_target_with_earlier_attempts_is_not_fresh() {
        let fixture = Fixture::new();
        let mut sharing = fixture.targets.sharing();
        assert_eq!(sharing.capacity(&queue("a", true), fixture.now), Capacity::For(1, TargetHealth::Troubled));
        assert_eq!(sharing.capacity(&queue("b", false), fixture.now), Capacity::For(FIRST_WINDOW, TargetHealth::Fresh));
    }

    #[test]
    fn capacity_given_out_in_one_round_counts() {
        let fixture = Fixture::new();
        let mut sharing = fixture.targets.sharing();
        let mut started = 0;
        while let Capacity::For(capacity, _) = sharing.capacity(&queue(&format!("t{started}"), false), fixture.now) {
            started += capacity;
        }
        assert_eq!(started, TargetHealth::Fresh.limit() / 2);
    }

    #[test]
    fn the_total_is_bounded() {
        let mut fixture = Fixture::new();
        let fill = |fixture: &mut Fixture, merchant: usize| {
            for number in 0..MAX_IN_FLIGHT {
                let name = format!("merchant-{merchant}/{number}");
                fixture.tried(&name, ProbeResult::Lives);
                fixture.fill(&name);
            }
            fixture.targets.in_flight.all.total()
        };
        assert_eq!(fill(&mut fixture, 0), MAX_IN_FLIGHT / 2, "of one merchant");
        let filled: Vec<usize> = (1..16).map(|merchant| fill(&mut fixture, merchant)).collect();
        assert!(filled.is_sorted() && filled[14] > 900 && filled[14] <= MAX_IN_FLIGHT, "{filled:?}");
    }

    #[test]
    fn idle_targets_are_forgotten() {
        let mut fixture = Fixture::new();
        fixture.tried("well", ProbeResult::Lives);
        fixture.open_circuit("dead");
        fixture.targets.forget(|_| false);
        assert_eq!((fixture.targets.open_origins(0).0, fixture.targets.known.len()), (1, 2));
        fixture.targets.forget(|_| true);
        assert_eq!((fixture.targets.open_origins(0).0, fixture.targets.known.len()), (0, 1), "a healthy one is kept");
    }

    #[test]
    fn the_longest_unused_targets_are_forgotten_first() {
        let mut fixture = Fixture::new();
        fixture.open_circuit("dead");
        fixture.fill("busy");
        for number in 0..MAX_REMEMBERED {
            fixture.started_at = NOW.plus(Duration::from_millis(1 + number as u64 / 3));
            fixture.tried(&number.to_string(), ProbeResult::Lives);
        }
        fixture.targets.forget(|_| false);
        let known = &fixture.targets.known;
        assert_eq!((known.len(), fixture.targets.open_origins(0).0), (MAX_REMEMBERED, 0));
        assert!(known.contains_key(&target("busy")), "its callbacks are in flight");
        assert_eq!((0..3).filter(|number| known.contains_key(&target(&number.to_string()))).count(), 2);
    }
}
