//! When changed files are read: once they are left alone, and not later than some bounds. Moments in, a moment out.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long files must be left alone before they are read: an editor's save is several changes.
const QUIET: Duration = Duration::from_millis(120);

/// The same after something vanished: a save may unlink a file and then make it anew.
const ABSENCE: Duration = Duration::from_millis(400);

/// From the first change to the reading at the latest, whatever goes on, unless a file is half written.
const BOUND: Duration = Duration::from_millis(500);

/// How long files that somebody still writes are waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most paths of a kind that are followed.
const MOST_FOLLOWED: usize = 10_000;

/// What changed since files were last read.
#[derive(Debug, Default)]
pub(super) struct Settle(Option<Pending>);

/// Changes that nobody has read yet.
#[derive(Debug)]
struct Pending {
    first: Instant,
    last: Instant,
    /// When to read unless a file is half written.
    bound: Instant,
    /// Whether a writer was waited for beyond the bound. That moves it once: what comes right after has time to settle,
    /// and files that are written again and again still are not waited for for ever.
    waited: bool,
    /// What is being written.
    open: HashSet<PathBuf>,
    /// What vanished and is not back, and when the last of it did.
    gone: HashSet<PathBuf>,
    vanished: Instant,
}

impl Pending {
    fn new(at: Instant) -> Self {
        Self {
            first: at,
            last: at,
            bound: at + BOUND,
            waited: false,
            open: HashSet::new(),
            gone: HashSet::new(),
            vanished: at,
        }
    }

    fn reload_at(&self) -> Instant {
        if !self.open.is_empty() {
            return self.first + PATIENCE;
        }
        let quiet = self.last + QUIET;
        let settled = if self.gone.is_empty() { quiet } else { quiet.max(self.vanished + ABSENCE) };
        settled.min(self.bound)
    }

    /// What is written no more, as far as `ended` says so.
    fn end(&mut self, at: Instant, ended: impl Fn(&Path) -> bool) {
        let waiting = !self.open.is_empty();
        self.open.retain(|path| !ended(path));
        if waiting && self.open.is_empty() && !self.waited && at > self.bound {
            (self.bound, self.waited) = (at + BOUND, true);
        }
    }
}

impl Settle {
    fn at(&mut self, at: Instant) -> &mut Pending {
        let pending = self.0.get_or_insert_with(|| Pending::new(at));
        pending.last = pending.last.max(at);
        pending
    }

    /// Something changed.
    pub fn changed(&mut self, at: Instant) {
        self.at(at);
    }

    /// Something came under a name.
    pub fn appeared(&mut self, path: &Path, at: Instant) {
        self.at(at).gone.remove(path);
    }

    /// What had a name, and all that was below it, has it no more.
    pub fn vanished(&mut self, path: &Path, at: Instant) {
        let pending = self.at(at);
        pending.end(at, |open| open.starts_with(path));
        if pending.gone.len() < MOST_FOLLOWED {
            pending.gone.insert(path.to_owned());
        }
        pending.vanished = pending.vanished.max(at);
    }

    /// A file is being written, and its writer will be seen to close it.
    pub fn opened(&mut self, path: &Path, at: Instant) {
        let pending = self.at(at);
        pending.gone.remove(path);
        if pending.open.len() < MOST_FOLLOWED {
            pending.open.insert(path.to_owned());
        }
    }

    /// A file's writer closed it.
    pub fn closed(&mut self, path: &Path, at: Instant) {
        self.at(at).end(at, |open| open == path);
    }

    /// Changes were lost: a close may be among them.
    pub fn lost_track(&mut self, at: Instant) {
        self.at(at).end(at, |_| true);
    }

    /// Whether there is something to read.
    pub const fn is_pending(&self) -> bool {
        self.0.is_some()
    }

    /// When to read, as things are; nothing changed: never.
    pub fn reload_at(&self) -> Option<Instant> {
        self.0.as_ref().map(Pending::reload_at)
    }

    /// Files are read now: what changes from here on is another change. Gives those that are still being written. They
    /// are followed again after their next change only, so that one that is never closed does not hold up all others.
    pub fn take(&mut self) -> Vec<PathBuf> {
        let mut open: Vec<PathBuf> =
            self.0.take().map(|pending| pending.open.into_iter().collect()).unwrap_or_default();
        open.sort();
        open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "/rules/merchants/m.toml";

    /// A made-up history, in milliseconds.
    struct History(Instant, Settle);

    impl History {
        fn new() -> Self {
            Self(Instant::now(), Settle::default())
        }

        fn ms(&self, ms: u64) -> Instant {
            self.0 + Duration::from_millis(ms)
        }

        fn then(mut self, ms: u64, change: impl FnOnce(&mut Settle, Instant)) -> Self {
            let at = self.ms(ms);
            change(&mut self.1, at);
            self
        }

        #[track_caller]
        fn reloads_at(self, ms: u64) -> Self {
            let at = self.1.reload_at().map(|at| at.duration_since(self.0).as_millis());
            assert_eq!(at, Some(u128::from(ms)));
            self
        }
    }

    fn opened(settle: &mut Settle, at: Instant) {
        settle.opened(Path::new(FILE), at);
    }

    fn closed(settle: &mut Settle, at: Instant) {
        settle.closed(Path::new(FILE), at);
    }

    #[test]
    fn nothing_changed_nothing_to_read() {
        let mut settle = Settle::default();
        assert!(!settle.is_pending() && settle.reload_at().is_none() && settle.take().is_empty());
    }

    #[test]
    fn quiet_ends_a_save_and_a_bound_ends_a_storm() {
        let mut history = History::new().then(0, Settle::changed).reloads_at(120).then(100, Settle::changed);
        history = history.reloads_at(220);
        for ms in (150..500).step_by(50) {
            history = history.then(ms, Settle::changed);
        }
        let mut history = history.reloads_at(500);
        assert!(history.1.take().is_empty() && history.1.reload_at().is_none());
        history.then(510, Settle::changed).reloads_at(630);
    }

    #[test]
    fn changes_that_are_told_late_count_from_when_they_happened() {
        History::new().then(50, Settle::changed).then(40, Settle::changed).reloads_at(170);
    }

    #[test]
    fn a_writer_is_waited_for_beyond_the_bound() {
        let history = History::new().then(0, opened).reloads_at(10_000).then(50, opened).then(3000, closed);
        history
            .reloads_at(3120)
            .then(3100, Settle::changed)
            .reloads_at(3220)
            .then(3450, Settle::changed)
            .reloads_at(3500);
    }

    #[test]
    fn a_writer_that_closes_soon_moves_no_bound() {
        let mut history = History::new();
        for ms in (0..460).step_by(50) {
            history = history.then(ms, opened).then(ms + 1, closed);
        }
        history.reloads_at(500);
    }

    #[test]
    fn files_written_again_and_again_are_waited_for_once() {
        let history = History::new().then(0, opened).then(600, closed).then(650, opened).then(1200, closed);
        history.reloads_at(1100);
    }

    #[test]
    fn a_writer_that_never_closes_is_named_and_not_followed_on() {
        let mut history = History::new().then(0, opened).then(9000, Settle::changed).reloads_at(10_000);
        assert_eq!(history.1.take(), [Path::new(FILE)]);
        history.then(10_001, Settle::changed).reloads_at(10_121);
    }

    #[test]
    fn all_writers_are_waited_for() {
        let other = |settle: &mut Settle, at| settle.opened(Path::new("/rules/shops/s.toml"), at);
        History::new().then(0, opened).then(10, other).then(20, closed).reloads_at(10_000);
    }

    #[test]
    fn what_vanished_may_come_back() {
        let vanished = |settle: &mut Settle, at| settle.vanished(Path::new(FILE), at);
        let appeared = |settle: &mut Settle, at| settle.appeared(Path::new(FILE), at);
        let history = History::new().then(0, vanished).reloads_at(400).then(10, Settle::changed).reloads_at(400);
        let history = history.then(300, appeared).reloads_at(420).then(310, vanished).reloads_at(500);
        history.then(320, opened).then(330, closed).reloads_at(450);
    }

    #[test]
    fn what_vanished_is_written_no_more() {
        let directory = |settle: &mut Settle, at| settle.vanished(Path::new("/rules/merchants"), at);
        History::new().then(0, opened).then(50, directory).reloads_at(450);
        History::new().then(0, opened).then(50, Settle::lost_track).reloads_at(170);
    }

    #[test]
    fn what_is_followed_is_bounded() {
        let history = History::new().then(0, |settle, at| {
            for number in 0..=MOST_FOLLOWED {
                settle.opened(&PathBuf::from(number.to_string()), at);
                settle.vanished(&PathBuf::from(format!("g{number}")), at);
            }
        });
        let pending = history.1.0.unwrap();
        assert_eq!((pending.open.len(), pending.gone.len()), (MOST_FOLLOWED, MOST_FOLLOWED));
    }
}
