//! How the thread of a store answers the callers of a batch.

use tokio::runtime::Handle;

/// Calls each answer once: of several callers in one runtime by a task there, else at once.
///
/// Waking a task of another thread costs a system call, which the store's thread would make for each create. Waking a
/// task of the same runtime costs nothing.
pub(super) fn answer_all<A: FnOnce() + Send + 'static>(mut answers: Vec<(Option<Handle>, A)>) {
    while let Some((runtime, _)) = answers.first() {
        let runtime = runtime.clone();
        let id = runtime.as_ref().map(Handle::id);
        let neighbours = answers.extract_if(.., |(runtime, _)| runtime.as_ref().map(Handle::id) == id);
        let answers = Answers(neighbours.map(|(_, answer)| answer).collect());
        match runtime {
            Some(runtime) if answers.0.len() > 1 => drop(runtime.spawn(async { drop(answers) })),
            _ => drop(answers),
        }
    }
}

/// Answers that are called when this is dropped, even if a runtime ends before its task has begun.
struct Answers<A: FnOnce()>(Vec<A>);

impl<A: FnOnce()> Drop for Answers<A> {
    fn drop(&mut self) {
        for answer in self.0.drain(..) {
            answer();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn callers_are_answered_in_their_runtimes() {
        let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (first, second, ended) = (runtime(), runtime(), runtime());
        let runtimes = [Some(&first), Some(&second), None, Some(&first), Some(&ended), Some(&ended), Some(&first)];
        let runtimes = runtimes.map(|runtime| runtime.map(|runtime| runtime.handle().clone()));
        drop(ended);
        let (sender, answered) = channel();
        let answer = |runtime| {
            let sender = sender.clone();
            (runtime, move || sender.send(std::thread::current().id()).unwrap())
        };
        let answers = runtimes.into_iter().map(answer).collect();
        let here = std::thread::current().id();
        std::thread::spawn(move || answer_all(answers)).join().unwrap();
        let at_once: Vec<_> = answered.try_iter().collect();
        assert_eq!(at_once.len(), 4, "callers that are alone in their runtime, and those of an ended runtime");
        assert!(at_once.iter().all(|thread| *thread != here));
        first.block_on(tokio::task::yield_now());
        let later: Vec<_> = answered.try_iter().collect();
        assert_eq!(later, [here; 3], "the others, on their own thread");
    }
}
