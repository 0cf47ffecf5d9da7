//! Limits the callbacks in flight: a window for each target, a circuit breaker for dead targets, a bound for all
//! together.
//!
//! ```text
//!            answers                                  no answer, FAILURES times in a row
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
pub(super) const IN_ALL: usize = 1024;
/// After this many attempts in a row without an answer, a target is [`TargetHealth::Dead`].
const DEAD: u32 = 3;
/// After this many attempts in a row without an answer, a target's circuit opens.
const FAILURES: u32 = 5;
/// The longest wait between two probes, whatever the rules set for retries.
const LONGEST_PROBE_WAIT: Duration = Duration::from_mins(1);
/// The most healthy targets that are remembered.
const REMEMBERED: usize = 10_000;

/// The health of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TargetHealth {
    /// It answered lately.
    Proven,
    /// Unknown: no waiting callback to it was attempted before.
    Fresh,
    /// It gave no answer once or twice, or a slow one, or an attempt failed before this process knew of it.
    Troubled,
    /// It gave no answer [`DEAD`] times or more.
    Dead,
}

impl TargetHealth {
    /// Returns the most callbacks in flight to targets of this health. The limits leave a part of [`IN_ALL`] to targets
    /// that answered lately.
    const fn limit(self) -> usize {
        match self {
            Self::Proven => IN_ALL,
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
    under_way: usize,
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
        Self { under_way: 0, window, proven: false, silent: 0, probe_at: None }
    }

    const fn kind(&self, tried: bool) -> TargetHealth {
        match self.silent {
            0 if self.proven => TargetHealth::Proven,
            0 if !tried => TargetHealth::Fresh,
            0..DEAD => TargetHealth::Troubled,
            _ => TargetHealth::Dead,
        }
    }
}

/// The callbacks in flight, by the health of their targets.
#[derive(Debug, Clone, Copy, Default)]
struct UnderWay([usize; 4]);

impl UnderWay {
    fn of(&mut self, kind: TargetHealth) -> &mut usize {
        let [proven, fresh, troubled, dead] = &mut self.0;
        match kind {
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
    under_way: UnderWay,
    open: usize,
}

impl Targets {
    /// Begins to distribute the free capacity.
    pub(super) const fn sharing(&self) -> Sharing<'_> {
        Sharing { targets: self, under_way: self.under_way }
    }

    /// Counts a started callback under this health.
    pub(super) fn started(&mut self, target: &CallbackTarget, kind: TargetHealth) {
        let unknown = || Target::unknown(kind != TargetHealth::Fresh);
        self.known.entry(target.clone()).or_insert_with(unknown).under_way += 1;
        *self.under_way.of(kind) += 1;
    }

    /// Records the end of a callback that was counted under a health, and what it revealed. `random` spreads the
    /// probes.
    pub(super) fn landed(
        &mut self,
        (target, kind): (&CallbackTarget, TargetHealth),
        sign: ProbeResult,
        waits: Backoff,
        now: UnixMillis,
        random: u64,
    ) -> Option<CircuitChange> {
        let under_way = self.under_way.of(kind);
        *under_way = under_way.saturating_sub(1);
        let of_target = self.known.get_mut(target)?;
        of_target.under_way = of_target.under_way.saturating_sub(1);
        let was_open = of_target.probe_at.is_some();
        match sign {
            ProbeResult::Lives => {
                (of_target.proven, of_target.silent, of_target.probe_at) = (true, 0, None);
                of_target.window = (of_target.window + 1).min(LARGEST_WINDOW);
            }
            // A slow target opens no circuit, but may not use the capacity of the fast ones: each callback holds it
            // almost as long as to a dead one.
            ProbeResult::Slow => {
                (of_target.proven, of_target.silent, of_target.probe_at) = (false, 1, None);
                of_target.window = (of_target.window / 2).max(1);
            }
            ProbeResult::Silent => {
                of_target.proven = false;
                of_target.silent = of_target.silent.saturating_add(1);
                of_target.window = (of_target.window / 2).max(1);
                if of_target.silent >= FAILURES {
                    of_target.window = 1;
                    let longest = waits.longest.min(LONGEST_PROBE_WAIT);
                    let wait =
                        backoff::wait(waits.first.min(longest), longest, of_target.silent - FAILURES, None, random);
                    of_target.probe_at = Some(now.plus(wait));
                }
            }
            ProbeResult::Nothing => {}
        }
        match (was_open, of_target.probe_at.is_some()) {
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
    pub(super) fn forget(&mut self, waited_for: &HashSet<&CallbackTarget>) {
        let crowded = self.known.len() > REMEMBERED;
        self.known.retain(|target, of_target| match of_target {
            Target { under_way: 1.., .. } => true,
            Target { silent: 1.., .. } => waited_for.contains(target),
            Target { proven, .. } => *proven && !crowded,
        });
        self.open = self.known.values().filter(|target| target.probe_at.is_some()).count();
    }

    /// Returns how many circuits are open, and the first targets of them, sorted.
    pub(super) fn open(&self, at_most: usize) -> (usize, Vec<&CallbackTarget>) {
        if self.open == 0 {
            return (0, Vec::new());
        }
        let open = self.known.iter().filter(|(_, of_target)| of_target.probe_at.is_some());
        let mut targets: Vec<&CallbackTarget> = open.map(|(target, _)| target).collect();
        targets.sort_unstable();
        targets.truncate(at_most);
        (self.open, targets)
    }
}

/// A distribution of the free capacity: each target is queried once.
pub(super) struct Sharing<'a> {
    targets: &'a Targets,
    under_way: UnderWay,
}

impl Sharing<'_> {
    /// Returns how many callbacks may start for a queue's target, and counts them as started for the targets that
    /// follow.
    pub(super) fn room(&mut self, queue: &CallbackQueue, now: UnixMillis) -> Capacity {
        let unknown = Target::unknown(queue.tried);
        let of_target = self.targets.known.get(&queue.target).unwrap_or(&unknown);
        if let Some(at) = of_target.probe_at
            && of_target.under_way == 0
            && now < at
        {
            return Capacity::At(at);
        }
        let kind = of_target.kind(queue.tried);
        let in_all = IN_ALL.saturating_sub(self.under_way.all());
        let used = *self.under_way.of(kind);
        let left = kind.limit().saturating_sub(used).min(in_all);
        // One half of the capacity is for targets that need several places, the other half for one place each.
        let shared = (kind.limit() / 2).saturating_sub(used).min(in_all);
        let fair = if of_target.under_way == 0 { shared.max(left.min(1)) } else { shared };
        let room = of_target.window.saturating_sub(of_target.under_way).min(fair);
        *self.under_way.of(kind) += room;
        if room == 0 { Capacity::Full } else { Capacity::For(room, kind) }
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

    struct Desk {
        targets: Targets,
        now: UnixMillis,
    }

    impl Desk {
        fn new() -> Self {
            Self { targets: Targets::default(), now: NOW }
        }

        fn room(&self, name: &str) -> Capacity {
            self.targets.sharing().room(&queue(name, false), self.now)
        }

        /// Starts as many as there is capacity for.
        fn start(&mut self, name: &str) -> (usize, TargetHealth) {
            let Capacity::For(room, kind) = self.room(name) else { panic!("{name}: {:?}", self.room(name)) };
            (0..room).for_each(|_| self.targets.started(&target(name), kind));
            (room, kind)
        }

        fn tried(&mut self, name: &str, sign: ProbeResult) -> Option<CircuitChange> {
            self.targets.started(&target(name), TargetHealth::Fresh);
            self.targets.landed((&target(name), TargetHealth::Fresh), sign, WAITS, self.now, 0)
        }
    }

    #[test]
    fn a_window_grows_with_answers_and_shrinks_without() {
        let mut desk = Desk::new();
        assert_eq!(desk.room("a"), Capacity::For(FIRST_WINDOW, TargetHealth::Fresh));
        for _ in 0..100 {
            assert_eq!(desk.tried("a", ProbeResult::Lives), None);
        }
        assert_eq!(desk.room("a"), Capacity::For(LARGEST_WINDOW, TargetHealth::Proven));
        desk.tried("a", ProbeResult::Silent);
        assert_eq!(desk.room("a"), Capacity::For(LARGEST_WINDOW / 2, TargetHealth::Troubled));
        desk.tried("a", ProbeResult::Nothing);
        assert_eq!(desk.room("a"), Capacity::For(LARGEST_WINDOW / 2, TargetHealth::Troubled));
        desk.tried("a", ProbeResult::Silent);
        desk.tried("a", ProbeResult::Silent);
        assert_eq!(desk.room("a"), Capacity::For(LARGEST_WINDOW / 8, TargetHealth::Dead));
        for window in [4, 2, 1, 1] {
            assert_eq!(desk.tried("a", ProbeResult::Slow), None);
            assert_eq!(desk.room("a"), Capacity::For(window, TargetHealth::Troubled), "slow, but not dead");
        }
    }

    #[test]
    fn a_dead_target_is_probed_one_at_a_time_with_doubling_waits() {
        let mut desk = Desk::new();
        for round in 1..FAILURES {
            assert_eq!(desk.tried("a", ProbeResult::Silent), None, "{round}");
        }
        assert_eq!(desk.tried("a", ProbeResult::Silent), Some(CircuitChange::Opened));
        assert_eq!(desk.targets.open(10), (1, vec![&target("a")]));
        // With `random` 0, a wait is half of its maximum.
        for seconds in [5, 10, 20, 40, 60, 60] {
            let at = desk.now.plus(Duration::from_secs(seconds) / 2);
            assert_eq!(desk.room("a"), Capacity::At(at), "{seconds}");
            desk.now = at;
            assert_eq!(desk.start("a"), (1, TargetHealth::Dead));
            assert_eq!(desk.room("a"), Capacity::Full, "while it is probed");
            assert_eq!(
                desk.targets.landed((&target("a"), TargetHealth::Dead), ProbeResult::Silent, WAITS, desk.now, 0),
                None
            );
        }
        assert!(matches!(desk.room("b"), Capacity::For(FIRST_WINDOW, _)), "other targets are unaffected");
        assert_eq!(desk.tried("a", ProbeResult::Lives), Some(CircuitChange::Closed));
        assert_eq!((desk.room("a"), desk.targets.open(10)), (Capacity::For(2, TargetHealth::Proven), (0, vec![])));
    }

    #[test]
    fn however_many_are_silent_the_others_find_room() {
        let mut desk = Desk::new();
        for _ in 0..3 {
            desk.tried("proven", ProbeResult::Lives);
        }
        desk.tried("troubled", ProbeResult::Silent);
        let fill = |desk: &mut Desk, silences: usize, prefix: &str| {
            for number in 0..2 * IN_ALL {
                let name = format!("{prefix}{number}");
                for _ in 0..silences {
                    desk.tried(&name, ProbeResult::Silent);
                }
                if matches!(desk.room(&name), Capacity::For(..)) {
                    desk.start(&name);
                }
            }
        };
        fill(&mut desk, 3, "dead");
        assert_eq!(desk.targets.under_way.all(), TargetHealth::Dead.limit());
        assert!(matches!(desk.room("troubled"), Capacity::For(2, TargetHealth::Troubled)));
        fill(&mut desk, 1, "silent");
        assert!(matches!(desk.room("fresh"), Capacity::For(FIRST_WINDOW, TargetHealth::Fresh)));
        fill(&mut desk, 0, "new");
        assert_eq!(desk.room("fresh"), Capacity::Full);
        assert!(matches!(desk.room("proven"), Capacity::For(7, TargetHealth::Proven)));
        let [proven, others @ ..] = desk.targets.under_way.0;
        assert_eq!((proven, others.iter().sum::<usize>()), (0, 768), "a quarter is left");
    }

    #[test]
    fn what_was_tried_before_this_process_is_no_fresh_target() {
        let desk = Desk::new();
        let mut sharing = desk.targets.sharing();
        assert_eq!(sharing.room(&queue("a", true), NOW), Capacity::For(1, TargetHealth::Troubled));
        assert_eq!(sharing.room(&queue("b", false), NOW), Capacity::For(FIRST_WINDOW, TargetHealth::Fresh));
    }

    #[test]
    fn what_is_shared_out_at_once_counts_too() {
        let desk = Desk::new();
        let mut sharing = desk.targets.sharing();
        let mut started = 0;
        while let Capacity::For(room, _) = sharing.room(&queue(&format!("t{started}"), false), NOW) {
            started += room;
        }
        assert_eq!(started, TargetHealth::Fresh.limit());
    }

    #[test]
    fn all_have_a_bound() {
        let mut desk = Desk::new();
        for number in 0..2 * IN_ALL {
            let name = format!("t{number}");
            desk.tried(&name, ProbeResult::Lives);
            if matches!(desk.room(&name), Capacity::For(..)) {
                desk.start(&name);
            }
        }
        assert_eq!(desk.targets.under_way.all(), IN_ALL);
    }

    #[test]
    fn nothing_is_remembered_for_nothing() {
        let mut desk = Desk::new();
        desk.tried("well", ProbeResult::Lives);
        for _ in 0..FAILURES {
            desk.tried("dead", ProbeResult::Silent);
        }
        let dead = target("dead");
        desk.targets.forget(&HashSet::from([&dead]));
        assert_eq!((desk.targets.open(0).0, desk.targets.known.len()), (1, 2));
        desk.targets.forget(&HashSet::new());
        assert!(desk.targets.open(0).0 == 0 && desk.targets.known.len() == 1, "a healthy target is remembered");
        for number in 0..REMEMBERED {
            desk.tried(&format!("t{number}"), ProbeResult::Lives);
        }
        desk.targets.forget(&HashSet::new());
        assert!(desk.targets.known.is_empty());
    }
}
