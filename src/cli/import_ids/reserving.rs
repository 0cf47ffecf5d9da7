//! Batches go into the store, gently and patiently.

use std::fmt;
use std::io::Write;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::feed::Batch;
use super::pace::Pace;
use crate::cli::progress::Progress;
use crate::cli::signals::stopped;
use crate::domain::{Direction, MerchantId, OrderId};
use crate::store::{Reservations, Standing, Store, StoreError};

/// How long a batch is tried again while the store is busy or away.
const PATIENCE: Duration = Duration::from_mins(1);

const FIRST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(5);

/// The most skipped ids that are told one by one.
const TOLD: u64 = 10;

/// What an import needs of a store.
pub trait Reserving {
    /// See [`Store::reserve`].
    fn reserve(
        &self,
        merchant: &MerchantId,
        direction: Direction,
        ids: &[OrderId],
    ) -> impl Future<Output = Result<Reservations, StoreError>>;

    /// Whether an id names an operation here.
    fn is_operation(
        &self,
        merchant: &MerchantId,
        direction: Direction,
        id: &OrderId,
    ) -> impl Future<Output = Result<bool, StoreError>>;
}

impl Reserving for dyn Store {
    async fn reserve(
        &self,
        merchant: &MerchantId,
        direction: Direction,
        ids: &[OrderId],
    ) -> Result<Reservations, StoreError> {
        Store::reserve(self, merchant, direction, ids).await
    }

    async fn is_operation(
        &self,
        merchant: &MerchantId,
        direction: Direction,
        id: &OrderId,
    ) -> Result<bool, StoreError> {
        Ok(matches!(self.by_order(merchant, direction, id).await?, Standing::Operation(_)))
    }
}

/// What was done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Of the ids.
    pub ids: Reservations,
    /// Blank lines.
    pub blank: u64,
    /// The last line that is done.
    pub through: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reservations { new, known, operations } = self.ids;
        write!(f, "{new} new, {known} reserved before, {operations} skipped (operations here)")?;
        let lines = if self.through == 1 { "line" } else { "lines" };
        write!(f, ", {} {lines}", self.through)?;
        if self.blank > 0 { write!(f, " ({} blank)", self.blank) } else { Ok(()) }
    }
}

/// Why an import stopped before the end.
#[derive(Debug)]
pub enum Halt {
    /// Somebody wants it.
    Interrupted,
    /// The store refused for too long, or for good.
    Store(StoreError),
}

/// An import under way.
pub struct Import<'a, S: ?Sized> {
    /// Where the ids are reserved.
    pub store: &'a S,
    /// Whose they are.
    pub merchant: &'a MerchantId,
    /// What they name.
    pub direction: Direction,
    /// Turns true when somebody wants it to stop.
    pub stop: watch::Receiver<bool>,
    /// How far it got.
    pub progress: Progress,
    /// What was done so far.
    pub tally: Tally,
    /// For messages.
    pub err: &'a mut dyn Write,
}

impl<S: Reserving + ?Sized> Import<'_, S> {
    /// Reserves what comes until nothing more does. Every commit stands, whatever follows.
    ///
    /// # Errors
    /// What stopped it; the tally is true to the last commit.
    pub async fn run(&mut self, batches: &mut mpsc::Receiver<Batch>) -> Result<(), Halt> {
        let mut pace = Pace::default();
        loop {
            let batch = tokio::select! {
                biased;
                () = stopped(&mut self.stop) => return Err(Halt::Interrupted),
                batch = batches.recv() => batch,
            };
            let Some(batch) = batch else { return Ok(()) };
            self.take(&batch, &mut pace).await?;
        }
    }

    async fn take(&mut self, batch: &Batch, pace: &mut Pace) -> Result<(), Halt> {
        let mut start = 0;
        while start < batch.ids.len() {
            self.pause(pace.pause).await?;
            // In equal parts: a small rest costs a whole commit and its pause.
            let rest = batch.ids.len() - start;
            let end = start + rest.div_ceil(rest.div_ceil(pace.size()));
            let (ids, numbers) = (&batch.ids[start..end], &batch.numbers[start..end]);
            let started = Instant::now();
            let done = self.reserve(ids).await?;
            pace.took(started.elapsed(), ids.len());
            self.tally.ids.new += done.new;
            self.tally.ids.known += done.known;
            if done.operations > 0 {
                self.tell_skipped(ids, numbers).await;
            }
            self.tally.ids.operations += done.operations;
            self.tally.through = numbers.last().copied().unwrap_or(self.tally.through);
            self.progress.at(self.tally.through, self.err);
            start = end;
        }
        self.tally.blank += batch.blank;
        self.tally.through = batch.through;
        self.progress.at(self.tally.through, self.err);
        Ok(())
    }

    /// One commit, tried again for a while when the store is busy. It is not given up half way: what was sent to the
    /// store is counted.
    async fn reserve(&mut self, ids: &[OrderId]) -> Result<Reservations, Halt> {
        let (mut waited, mut wait) = (Duration::ZERO, FIRST_RETRY);
        loop {
            match self.store.reserve(self.merchant, self.direction, ids).await {
                Ok(done) => return Ok(done),
                Err(error @ StoreError::Unavailable(_)) if waited < PATIENCE => {
                    if waited.is_zero() {
                        self.progress.say(&format!("{error}; it is tried again"), self.err);
                    }
                    self.pause(wait).await?;
                    waited += wait;
                    wait = (wait * 2).min(LONGEST_RETRY);
                }
                Err(error) => return Err(Halt::Store(error)),
            }
        }
    }

    async fn pause(&mut self, span: Duration) -> Result<(), Halt> {
        tokio::select! {
            biased;
            () = stopped(&mut self.stop) => Err(Halt::Interrupted),
            () = sleep(span) => Ok(()),
        }
    }

    /// Names the lines of the first ids that were skipped. The ids are reserved or skipped already: a store that cannot
    /// say which does not stop the import.
    async fn tell_skipped(&mut self, ids: &[OrderId], numbers: &[u64]) {
        let mut told = self.tally.ids.operations;
        for (id, number) in ids.iter().zip(numbers) {
            if told >= TOLD {
                return;
            }
            match self.store.is_operation(self.merchant, self.direction, id).await {
                Ok(false) => {}
                Ok(true) => {
                    told += 1;
                    let line = format!("line {number}: the id names an operation here, and is left alone");
                    self.progress.say(&line, self.err);
                }
                Err(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::HashSet;

    use super::*;

    /// A store in memory that fails as it is told.
    #[derive(Default)]
    struct Desk {
        reserved: RefCell<HashSet<String>>,
        operations: HashSet<String>,
        commits: RefCell<Vec<usize>>,
        failures: Cell<u32>,
        corrupt: bool,
        stop_after: Option<(usize, watch::Sender<bool>)>,
    }

    impl Reserving for Desk {
        async fn reserve(&self, _: &MerchantId, _: Direction, ids: &[OrderId]) -> Result<Reservations, StoreError> {
            if self.corrupt {
                return Err(StoreError::Corrupt("a row".to_owned()));
            }
            if self.failures.get() > 0 {
                self.failures.set(self.failures.get() - 1);
                return Err(StoreError::Unavailable("database is locked".to_owned()));
            }
            let mut done = Reservations::default();
            for id in ids {
                if self.operations.contains(id.as_str()) {
                    done.operations += 1;
                } else if self.reserved.borrow_mut().insert(id.as_str().to_owned()) {
                    done.new += 1;
                } else {
                    done.known += 1;
                }
            }
            self.commits.borrow_mut().push(ids.len());
            if let Some((commits, stop)) = &self.stop_after
                && self.commits.borrow().len() == *commits
            {
                stop.send(true).unwrap();
            }
            Ok(done)
        }

        async fn is_operation(&self, _: &MerchantId, _: Direction, id: &OrderId) -> Result<bool, StoreError> {
            Ok(self.operations.contains(id.as_str()))
        }
    }

    fn batch(numbers: std::ops::RangeInclusive<u64>) -> Batch {
        let through = *numbers.end();
        let ids = numbers.clone().map(|number| OrderId::new(&format!("o-{number}")).unwrap()).collect();
        Batch { ids, numbers: numbers.collect(), blank: 0, through }
    }

    /// Imports batches; gives the outcome, the tally and what was said.
    async fn import(desk: &Desk, batches: Vec<Batch>) -> (Result<(), Halt>, Tally, String) {
        let (to, mut from) = mpsc::channel(batches.len());
        for batch in batches {
            to.send(batch).await.unwrap();
        }
        drop(to);
        let stop = desk.stop_after.as_ref().map_or_else(|| watch::channel(false).1, |(_, stop)| stop.subscribe());
        let merchant = MerchantId::new("acme").unwrap();
        let mut err = Vec::new();
        let progress = Progress::start("importing", "lines", None);
        let mut import = Import {
            store: desk,
            merchant: &merchant,
            direction: Direction::Payin,
            stop,
            progress,
            tally: Tally::default(),
            err: &mut err,
        };
        let outcome = import.run(&mut from).await;
        let tally = import.tally;
        (outcome, tally, String::from_utf8(err).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn every_id_is_reserved_once() {
        let desk = Desk::default();
        let (outcome, tally, said) = import(&desk, vec![batch(1..=4000), batch(4001..=9000), batch(1..=10)]).await;
        outcome.unwrap();
        assert_eq!(tally.ids, Reservations { new: 9000, known: 10, operations: 0 });
        assert!(said.is_empty(), "{said}");
        let commits = desk.commits.borrow();
        assert_eq!(commits.iter().sum::<usize>(), 9010);
        assert_eq!(commits[0], 1000, "the pace decides");
        assert_eq!(tally.to_string(), "9000 new, 10 reserved before, 0 skipped (operations here), 10 lines");
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_skipped_lines_are_named() {
        let operations = (1..=100).map(|number| format!("o-{}", number * 90)).collect();
        let desk = Desk { operations, ..Desk::default() };
        let (outcome, tally, said) = import(&desk, vec![batch(1..=4000), batch(4001..=9000)]).await;
        outcome.unwrap();
        assert_eq!(tally.ids, Reservations { new: 8900, known: 0, operations: 100 });
        let lines: Vec<_> = said.lines().collect();
        assert_eq!(lines.len(), 10, "{said}");
        assert_eq!(lines[0], "line 90: the id names an operation here, and is left alone");
        assert!(lines[9].starts_with("line 900: "), "{said}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_store_is_tried_again_with_a_bound() {
        let desk = Desk { failures: Cell::new(8), ..Desk::default() };
        let (outcome, tally, said) = import(&desk, vec![batch(1..=10)]).await;
        outcome.unwrap();
        assert_eq!(tally.ids.new, 10);
        assert_eq!(said, "the store is unavailable: database is locked; it is tried again\n");
        let desk = Desk { failures: Cell::new(1000), ..Desk::default() };
        let (outcome, tally, _) = import(&desk, vec![batch(1..=10)]).await;
        assert!(matches!(outcome, Err(Halt::Store(StoreError::Unavailable(_)))));
        assert!(desk.failures.get() > 900, "it gives up");
        assert_eq!(tally, Tally::default());
        let desk = Desk { corrupt: true, ..Desk::default() };
        assert!(matches!(import(&desk, vec![batch(1..=10)]).await.0, Err(Halt::Store(StoreError::Corrupt(_)))));
    }

    #[tokio::test(start_paused = true)]
    async fn it_stops_between_commits() {
        let desk = Desk { stop_after: Some((2, watch::channel(false).0)), ..Desk::default() };
        let (outcome, tally, _) = import(&desk, vec![batch(1..=4000)]).await;
        assert!(matches!(outcome, Err(Halt::Interrupted)));
        let committed = desk.commits.borrow().iter().sum::<usize>();
        assert_eq!(desk.commits.borrow().len(), 2);
        assert_eq!((tally.ids.new, tally.through), (committed as u64, committed as u64), "what was committed counts");
    }
}
