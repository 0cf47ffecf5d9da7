//! Telling everyone of a batch at once.
//!
//! To wake a task of another thread costs a system call, and the thread of commits would make one for each create. A task
//! of the same runtime is woken for nothing, so the writer starts one in each runtime that waits, and that one tells all.

use rusqlite::Connection;
use tokio::runtime::Handle;

use crate::store::StoreError;

/// A command: statements, and someone who waits for their result.
pub(super) trait WriterCommand: Send {
    /// Runs the statements within the batch's transaction. Runs again when the batch was rolled back for another's fault.
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()>;

    /// Tells the outcome of the commit.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

/// A command in the queue.
pub(super) struct Waiting {
    pub(super) command: Box<dyn WriterCommand>,
    /// The runtime of whoever waits, if it was submitted in one.
    pub(super) home: Option<Handle>,
}

/// Tells everyone the outcome of their batch, and leaves it empty.
pub(super) fn answer(batch: &mut Vec<Waiting>, outcome: &Result<(), StoreError>) {
    while let Some(first) = batch.first() {
        let home = first.home.clone();
        let id = home.as_ref().map(Handle::id);
        let neighbours = batch.extract_if(.., |waiting| waiting.home.as_ref().map(Handle::id) == id);
        let answers =
            Answers { commands: neighbours.map(|waiting| waiting.command).collect(), outcome: outcome.clone() };
        match home {
            Some(home) if answers.commands.len() > 1 => drop(home.spawn(async { drop(answers) })),
            _ => drop(answers),
        }
    }
}

/// Commands that are answered when this is dropped: also where a runtime ends before its task began.
struct Answers {
    commands: Vec<Box<dyn WriterCommand>>,
    outcome: Result<(), StoreError>,
}

impl Drop for Answers {
    fn drop(&mut self) {
        for command in self.commands.drain(..) {
            command.answer(self.outcome.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Says on which thread, and what, it was answered.
    struct Reporter(Sender<(std::thread::ThreadId, bool)>);

    impl WriterCommand for Reporter {
        fn run(&mut self, _: &Connection) -> rusqlite::Result<()> {
            Ok(())
        }

        fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
            self.0.send((std::thread::current().id(), outcome.is_ok())).unwrap();
        }
    }

    #[test]
    fn everyone_is_reported_wherever_they_wait() {
        let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (first, second, ended) = (runtime(), runtime(), runtime());
        let homes = [Some(&first), Some(&second), None, Some(&first), Some(&ended), Some(&ended), Some(&first)];
        let homes = homes.map(|home| home.map(|home| home.handle().clone()));
        drop(ended);
        let (tell, reported) = channel();
        let waiting = |home| Waiting { command: Box::new(Reporter(tell.clone())), home };
        let mut batch: Vec<_> = homes.into_iter().map(waiting).collect();
        let here = std::thread::current().id();
        std::thread::spawn(move || answer(&mut batch, &Err(StoreError::Unavailable("full".into())))).join().unwrap();
        let at_once: Vec<_> = reported.try_iter().collect();
        assert_eq!(at_once.len(), 4, "those who are alone, and those whose runtime has ended");
        assert!(at_once.iter().all(|(thread, _)| *thread != here));
        first.block_on(tokio::task::yield_now());
        let later: Vec<_> = reported.try_iter().collect();
        assert_eq!(later, [(here, false); 3], "the neighbours, where they are");
    }
}
