//! How much may be under way to whom: a window for each target, a circuit for dead ones, a bound for all.
//!
//! ```text
//!            answers                                  no answer, FAILURES times in a row
//! closed <------------- open, probed one at a time <------------------------------------ closed
//! ```
//!
//! A window begins small, grows with every answer and shrinks to one when there is none. While a circuit is open, one
//! callback at a time probes the target, and the waits between probes double; the others stay where they are in the queue,
//! so that a dead target costs a connection now and then, however much waits for it.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::domain::UnixMillis;
use crate::outbound::backoff;
use crate::store::CallbackTarget;

/// How many may be under way to a target that is not known yet.
const FIRST_WINDOW: usize = 4;
/// The most under way to one target.
const LARGEST_WINDOW: usize = 64;
/// How many are under way in all before targets have to share: then each may have one more.
const SHARED: usize = 256;
/// The most under way in all.
const IN_ALL: usize = 512;
/// The most under way to targets that gave no answer lately: they must not use up what the others need.
const SILENT_IN_ALL: usize = 128;
/// So many times without an answer in a row open a circuit.
const FAILURES: u32 = 5;
/// The longest wait between two probes, whatever the rules say of retries.
const LONGEST_PROBE_WAIT: Duration = Duration::from_mins(1);
/// The most targets that are remembered while nothing is under way to them.
const REMEMBERED: usize = 10_000;

/// What a try told of its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It answered, whatever it said.
    Lives,
    /// It gave no answer.
    Silent,
    /// It was not asked.
    Nothing,
}

/// What a sign changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The circuit has opened: the target counts as dead.
    Opened,
    /// The circuit has closed again.
    Closed,
}

/// Whether more may start for a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// So many, at least one.
    For(usize),
    /// Not before one that is under way has landed.
    Full,
    /// Not before this time: the circuit is open.
    At(UnixMillis),
}

/// The waits of retries, by which probes are timed too.
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    pub first: Duration,
    pub longest: Duration,
}

#[derive(Debug)]
struct Target {
    under_way: usize,
    window: usize,
    /// Tries without an answer, in a row.
    silent: u32,
    /// While the circuit is open: when it may be probed.
    probe_at: Option<UnixMillis>,
}

impl Default for Target {
    fn default() -> Self {
        Self { under_way: 0, window: FIRST_WINDOW, silent: 0, probe_at: None }
    }
}

/// All targets that something is known of.
#[derive(Debug, Default)]
pub struct Targets {
    known: HashMap<CallbackTarget, Target>,
    under_way: usize,
    /// Of those, to targets that gave no answer lately.
    silent: usize,
    open: usize,
}

impl Targets {
    /// Begins to share out what may start now.
    pub const fn sharing(&self) -> Sharing<'_> {
        Sharing { targets: self, under_way: self.under_way, silent: self.silent }
    }

    /// One more is under way.
    pub fn started(&mut self, target: &CallbackTarget) {
        let of_target = self.known.entry(target.clone()).or_default();
        of_target.under_way += 1;
        self.under_way += 1;
        self.silent += usize::from(of_target.silent > 0);
    }

    /// One has landed, and what it told. `random` spreads the probes.
    pub fn landed(
        &mut self,
        target: &CallbackTarget,
        sign: Sign,
        waits: Waits,
        now: UnixMillis,
        random: u64,
    ) -> Option<Turn> {
        let of_target = self.known.get_mut(target)?;
        let was_silent = of_target.silent > 0;
        of_target.under_way = of_target.under_way.saturating_sub(1);
        self.under_way = self.under_way.saturating_sub(1);
        self.silent = self.silent.saturating_sub(usize::from(was_silent));
        let was_open = of_target.probe_at.is_some();
        match sign {
            Sign::Lives => {
                (of_target.silent, of_target.probe_at) = (0, None);
                of_target.window = (of_target.window + 1).min(LARGEST_WINDOW);
            }
            Sign::Silent => {
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
            Sign::Nothing => {}
        }
        // Those that are still under way count for what the target is now.
        let still = of_target.under_way;
        match (was_silent, of_target.silent > 0) {
            (false, true) => self.silent += still,
            (true, false) => self.silent = self.silent.saturating_sub(still),
            _ => {}
        }
        let is_open = of_target.probe_at.is_some();
        if still == 0 && of_target.silent == 0 {
            self.known.remove(target);
        }
        match (was_open, is_open) {
            (false, true) => {
                self.open += 1;
                Some(Turn::Opened)
            }
            (true, false) => {
                self.open -= 1;
                Some(Turn::Closed)
            }
            _ => None,
        }
    }

    /// Forgets the silent targets that nothing waits for any more, and all that are idle when there are too many.
    pub fn forget(&mut self, waited_for: &HashSet<&CallbackTarget>) {
        let crowded = self.known.len() > REMEMBERED;
        self.known.retain(|target, of_target| of_target.under_way > 0 || (!crowded && waited_for.contains(target)));
        self.open = self.known.values().filter(|target| target.probe_at.is_some()).count();
    }

    /// How many circuits are open, and the targets of some of them, in order.
    pub fn open(&self, at_most: usize) -> (usize, Vec<&str>) {
        if self.open == 0 {
            return (0, Vec::new());
        }
        let mut open: Vec<&str> = self
            .known
            .iter()
            .filter(|(_, of_target)| of_target.probe_at.is_some())
            .map(|(name, _)| name.as_str())
            .collect();
        open.sort_unstable();
        open.truncate(at_most);
        (self.open, open)
    }
}

/// What may start now, being shared out: each target asks once.
pub struct Sharing<'a> {
    targets: &'a Targets,
    under_way: usize,
    silent: usize,
}

impl Sharing<'_> {
    /// How many may start for a target; they count as started for those who ask later.
    pub fn room(&mut self, target: &CallbackTarget, now: UnixMillis) -> Room {
        let unknown = Target::default();
        let of_target = self.targets.known.get(target).unwrap_or(&unknown);
        if let Some(at) = of_target.probe_at
            && of_target.under_way == 0
            && now < at
        {
            return Room::At(at);
        }
        let is_silent = of_target.silent > 0;
        let own = of_target.window.saturating_sub(of_target.under_way);
        let shared = SHARED.saturating_sub(self.under_way);
        let fair = if of_target.under_way == 0 { shared.max(1) } else { shared };
        let of_silent = if is_silent { SILENT_IN_ALL.saturating_sub(self.silent) } else { usize::MAX };
        let room = own.min(fair).min(of_silent).min(IN_ALL.saturating_sub(self.under_way));
        self.under_way += room;
        self.silent += if is_silent { room } else { 0 };
        if room == 0 { Room::Full } else { Room::For(room) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITS: Waits = Waits { first: Duration::from_secs(5), longest: Duration::from_hours(1) };
    const NOW: UnixMillis = UnixMillis(1_790_000_000_000);

    fn target(name: &str) -> CallbackTarget {
        CallbackTarget::Origin(name.into())
    }

    struct Desk {
        targets: Targets,
        now: UnixMillis,
    }

    impl Desk {
        fn new() -> Self {
            Self { targets: Targets::default(), now: NOW }
        }

        fn room(&self, name: &str) -> Room {
            self.targets.sharing().room(&target(name), self.now)
        }

        fn tried(&mut self, name: &str, sign: Sign) -> Option<Turn> {
            self.targets.started(&target(name));
            self.targets.landed(&target(name), sign, WAITS, self.now, 0)
        }
    }

    #[test]
    fn a_window_grows_with_answers_and_shrinks_without() {
        let mut desk = Desk::new();
        assert_eq!(desk.room("a"), Room::For(FIRST_WINDOW));
        // One that stays under way keeps the target known.
        desk.targets.started(&target("a"));
        for _ in 0..100 {
            assert_eq!(desk.tried("a", Sign::Lives), None);
        }
        assert_eq!(desk.room("a"), Room::For(LARGEST_WINDOW - 1));
        desk.tried("a", Sign::Silent);
        assert_eq!(desk.room("a"), Room::For(LARGEST_WINDOW / 2 - 1));
        desk.tried("a", Sign::Nothing);
        assert_eq!(desk.room("a"), Room::For(LARGEST_WINDOW / 2 - 1));
    }

    #[test]
    fn a_dead_target_is_probed_one_at_a_time_with_doubling_waits() {
        let mut desk = Desk::new();
        for round in 1..FAILURES {
            assert_eq!(desk.tried("a", Sign::Silent), None, "{round}");
        }
        assert_eq!(desk.tried("a", Sign::Silent), Some(Turn::Opened));
        assert_eq!(desk.targets.open(10), (1, vec!["a"]));
        // With no randomness a wait is half of the whole one.
        for seconds in [5, 10, 20, 40, 60, 60] {
            let at = desk.now.plus(Duration::from_secs(seconds) / 2);
            assert_eq!(desk.room("a"), Room::At(at), "{seconds}");
            desk.now = at;
            assert_eq!(desk.room("a"), Room::For(1));
            desk.targets.started(&target("a"));
            assert_eq!(desk.room("a"), Room::Full, "while it is probed");
            assert_eq!(desk.targets.landed(&target("a"), Sign::Silent, WAITS, desk.now, 0), None);
        }
        assert!(matches!(desk.room("b"), Room::For(FIRST_WINDOW)), "another target has nothing to do with it");
        assert_eq!(desk.tried("a", Sign::Lives), Some(Turn::Closed));
        assert_eq!((desk.room("a"), desk.targets.open(10)), (Room::For(FIRST_WINDOW), (0, vec![])));
    }

    #[test]
    fn what_was_under_way_when_a_circuit_closed_counts_on() {
        let mut desk = Desk::new();
        for _ in 0..FIRST_WINDOW {
            desk.targets.started(&target("a"));
        }
        desk.targets.landed(&target("a"), Sign::Silent, WAITS, desk.now, 0);
        assert_eq!((desk.targets.silent, desk.targets.under_way), (FIRST_WINDOW - 1, FIRST_WINDOW - 1));
        desk.targets.landed(&target("a"), Sign::Lives, WAITS, desk.now, 0);
        assert_eq!((desk.targets.silent, desk.targets.under_way), (0, FIRST_WINDOW - 2));
        desk.targets.landed(&target("a"), Sign::Silent, WAITS, desk.now, 0);
        desk.targets.landed(&target("a"), Sign::Silent, WAITS, desk.now, 0);
        assert_eq!((desk.targets.silent, desk.targets.under_way), (0, 0));
    }

    #[test]
    fn everyone_has_a_share_and_all_have_a_bound() {
        let mut desk = Desk::new();
        let start = |desk: &mut Desk, name: &str| {
            let Room::For(room) = desk.room(name) else { panic!("{name}: {:?}", desk.room(name)) };
            (0..room).for_each(|_| desk.targets.started(&target(name)));
            room
        };
        for number in 0..SHARED / FIRST_WINDOW {
            assert_eq!(start(&mut desk, &format!("t{number}")), FIRST_WINDOW);
        }
        for number in SHARED..IN_ALL {
            assert_eq!(start(&mut desk, &format!("t{number}")), 1, "one in any case");
        }
        assert_eq!(desk.room("last"), Room::Full);
    }

    #[test]
    fn what_is_shared_out_at_once_counts_too() {
        let mut desk = Desk::new();
        for number in 0..2 * SILENT_IN_ALL {
            desk.tried(&format!("s{number}"), Sign::Silent);
        }
        let mut sharing = desk.targets.sharing();
        let mut shares = (0..2 * SILENT_IN_ALL).map(|number| sharing.room(&target(&format!("s{number}")), NOW));
        let total = shares.try_fold(0, |total, room| match room {
            Room::For(room) => Ok(total + room),
            Room::Full | Room::At(_) => Err(total),
        });
        assert_eq!(total, Err(SILENT_IN_ALL));
    }

    #[test]
    fn silent_targets_leave_room_for_the_others() {
        let mut desk = Desk::new();
        for number in 0..SILENT_IN_ALL {
            let name = format!("s{number}");
            desk.tried(&name, Sign::Silent);
            desk.targets.started(&target(&name));
        }
        desk.tried("one more", Sign::Silent);
        assert_eq!(desk.room("one more"), Room::Full);
        assert_eq!(desk.room("fresh"), Room::For(FIRST_WINDOW));
    }

    #[test]
    fn nothing_is_remembered_for_nothing() {
        let mut desk = Desk::new();
        desk.tried("well", Sign::Lives);
        assert!(desk.targets.known.is_empty());
        for _ in 0..FAILURES {
            desk.tried("dead", Sign::Silent);
        }
        let dead = target("dead");
        desk.targets.forget(&HashSet::from([&dead]));
        assert_eq!(desk.targets.open(0).0, 1);
        desk.targets.forget(&HashSet::new());
        assert!(desk.targets.known.is_empty() && desk.targets.open(0).0 == 0);
    }
}
