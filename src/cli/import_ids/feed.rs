//! Reading the ids: a first pass that only looks, and batches for the import, read on a thread of their own.

use std::io::{self, BufRead};
use std::sync::atomic::Ordering;

use tokio::sync::mpsc;

use crate::cli::lines::{Content, Lines};
use crate::cli::progress::Counters;
use crate::domain::{Invalid, OrderId};

/// Lines in a batch.
pub const BATCH: u64 = 4000;

/// Batches that wait to be imported.
pub const AHEAD: usize = 2;

/// The most flaws that are told one by one.
pub const TOLD: usize = 20;

/// Why reading stopped.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The operating system refused.
    #[error("cannot be read after line {after}: {cause}")]
    Io {
        /// The last line that was read.
        after: u64,
        /// Why.
        cause: io::Error,
    },
    /// A line cannot be an id. The line itself is not shown: nobody knows what it holds.
    #[error("line {line} {reason}", reason = .invalid.reason())]
    Flawed {
        /// Its number.
        line: u64,
        /// Why.
        invalid: Invalid,
    },
}

/// What a file holds.
#[derive(Debug, Default)]
pub struct Survey {
    /// All lines.
    pub lines: u64,
    /// Lines that cannot be ids.
    pub flawed: u64,
    /// The first of them.
    pub first_flaws: Vec<(u64, Invalid)>,
    /// Ids that hold control characters or have spaces at an edge. They are ids all the same.
    pub odd: u64,
    /// The line of the first one.
    pub first_odd: u64,
}

impl Survey {
    /// Reads everything and keeps nothing.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(source: impl BufRead, counters: &Counters) -> Result<Self, Unreadable> {
        let mut lines = Lines::new(source);
        let mut survey = Self::default();
        while let Some(line) = lines.read().map_err(|cause| Unreadable::Io { after: survey.lines, cause })? {
            survey.lines = line.number;
            counters.done.store(line.number, Ordering::Relaxed);
            match line.content {
                Content::Blank => {}
                Content::Id(id) => survey.look_at(line.number, &id),
                Content::Flawed(invalid) => {
                    survey.flawed += 1;
                    if survey.first_flaws.len() < TOLD {
                        survey.first_flaws.push((line.number, invalid));
                    }
                }
            }
        }
        Ok(survey)
    }

    fn look_at(&mut self, number: u64, id: &OrderId) {
        let text = id.as_str();
        if text.trim() != text || text.chars().any(char::is_control) {
            self.first_odd = if self.odd == 0 { number } else { self.first_odd };
            self.odd += 1;
        }
    }
}

/// Lines that were read together.
#[derive(Debug, Default)]
pub struct Batch {
    /// The ids.
    pub ids: Vec<OrderId>,
    /// Their lines.
    pub numbers: Vec<u64>,
    /// How many lines were blank.
    pub blank: u64,
    /// The last line of the batch, blank or not.
    pub through: u64,
}

/// Reads to the end, or to the first line that cannot be an id; what comes before it is passed on.
///
/// # Errors
/// What stopped the reading.
pub fn feed(source: impl BufRead, to: &mpsc::Sender<Batch>) -> Result<(), Unreadable> {
    let mut lines = Lines::new(source);
    let (mut batch, mut start) = (Batch::default(), 0);
    let outcome = loop {
        let line = match lines.read() {
            Ok(Some(line)) => line,
            Ok(None) => break Ok(()),
            Err(cause) => break Err(Unreadable::Io { after: batch.through, cause }),
        };
        match line.content {
            Content::Blank => batch.blank += 1,
            Content::Id(id) => {
                batch.ids.push(id);
                batch.numbers.push(line.number);
            }
            Content::Flawed(invalid) => break Err(Unreadable::Flawed { line: line.number, invalid }),
        }
        batch.through = line.number;
        if line.number - start == BATCH {
            start = line.number;
            let full = std::mem::replace(&mut batch, Batch { through: start, ..Batch::default() });
            // Nobody takes it any more: the import has stopped, and knows why.
            if to.blocking_send(full).is_err() {
                return Ok(());
            }
        }
    };
    let _ = to.blocking_send(batch);
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(text: &str) -> (Vec<Batch>, Result<(), Unreadable>) {
        let (to, mut batches) = mpsc::channel(AHEAD);
        let text = text.to_owned();
        let reader = std::thread::spawn(move || feed(text.as_bytes(), &to));
        let mut received = Vec::new();
        while let Some(batch) = batches.blocking_recv() {
            received.push(batch);
        }
        (received, reader.join().unwrap())
    }

    #[test]
    fn a_survey_names_the_first_flaws() {
        let text = format!("a\n\n b\nc\td\n{}", "\0\n".repeat(30));
        let counters = Counters::default();
        let survey = Survey::of(text.as_bytes(), &counters).unwrap();
        assert_eq!((survey.lines, survey.flawed, survey.first_flaws.len()), (34, 30, TOLD));
        assert_eq!((survey.first_flaws[0].0, survey.first_flaws[TOLD - 1].0), (5, 24));
        assert_eq!((survey.odd, survey.first_odd), (2, 3));
        assert_eq!(counters.done.load(Ordering::Relaxed), 34);
    }

    #[test]
    fn batches_hold_every_id_with_its_line() {
        let text: String = (1..=9001).map(|n| if n % 10 == 0 { "\n".to_owned() } else { format!("o-{n}\n") }).collect();
        let (batches, outcome) = fed(&text);
        outcome.unwrap();
        assert_eq!(batches.iter().map(|batch| batch.through).collect::<Vec<_>>(), [4000, 8000, 9001]);
        assert_eq!(batches.iter().map(|batch| batch.blank).sum::<u64>(), 900);
        let all: Vec<_> = batches.iter().flat_map(|batch| batch.ids.iter().zip(&batch.numbers)).collect();
        assert_eq!(all.len(), 8101);
        assert!(all.iter().all(|(id, number)| id.as_str() == format!("o-{number}")));
    }

    #[test]
    fn a_file_may_end_with_a_full_batch() {
        let (batches, outcome) = fed(&"o\n".repeat(4000));
        outcome.unwrap();
        assert_eq!(
            batches.iter().map(|batch| (batch.ids.len(), batch.through)).collect::<Vec<_>>(),
            [(4000, 4000), (0, 4000)]
        );
    }

    #[test]
    fn what_comes_before_a_flaw_is_passed_on() {
        let (batches, outcome) = fed("a\nb\n\n\0\nc\n");
        assert_eq!((batches.len(), batches[0].ids.len(), batches[0].through), (1, 2, 3));
        assert_eq!(outcome.unwrap_err().to_string(), "line 4 must not contain U+0000");
    }
}
