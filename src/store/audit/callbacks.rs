//! Checks callbacks. That every result has its callback is checked with the operations.

use super::{AuditFindings, Found};
use crate::domain::CallbackUrl;
use crate::store::rows::callback::{DELIVERED, FAILED, PENDING, max_tries};
use crate::store::tasks::{LEASED, WAITING};
use crate::store::{CallbackSubject, CallbackTarget};

/// A callback, and the operation or entry with its number.
pub(in crate::store) struct Callback {
    pub(super) state: i64,
    /// Its task, if it has one.
    pub(super) task: Option<AuditedTask>,
    pub(super) tries: i64,
    pub(super) merchant: Box<str>,
    pub(super) target: Box<str>,
    /// Whether it has a last outcome, or the column with an invalid value.
    pub(super) last: Result<bool, &'static str>,
    /// The merchant of the operation or entry.
    pub(super) about: Option<Box<str>>,
    /// The callback address of that operation or entry.
    pub(super) url: Option<Box<str>>,
}

/// The task of a callback.
pub(in crate::store) struct AuditedTask {
    pub(super) state: i64,
    pub(super) attempts: i64,
    /// Whether its queue is that of the callback's merchant and target, and both have the same time of queueing.
    pub(super) fits: bool,
}

impl Callback {
    /// Returns the target of the callback address; `None`: the merchant is not called back.
    fn origin(&self) -> Option<String> {
        CallbackUrl::new_allowing_http(self.url.as_deref()?).ok().map(|url| url.origin())
    }
}

/// A summary of a callback's tries.
pub(in crate::store) struct Tries {
    pub(super) key: i64,
    pub(super) count: i64,
    /// The numbers of the first and the last try.
    pub(super) first: i64,
    pub(super) last: i64,
    /// How many have invalid data.
    pub(super) senseless: i64,
}

impl AuditFindings {
    /// Checks a slice of callbacks and the tries up to its last one, both in the order of their positions.
    pub(super) fn callbacks(&mut self, rows: Vec<Found<Callback>>, tries: Vec<Tries>) {
        let mut tries = tries.into_iter().peekable();
        for (key, row) in rows {
            self.found.callbacks += 1;
            while let Some(tries) = tries.next_if(|tries| tries.key < key) {
                self.without_callback(&tries);
            }
            let own = tries.next_if(|tries| tries.key == key);
            match row {
                Some(callback) => self.callback(key, &callback, own.as_ref()),
                None => self.found.problem(format!("{}: a column is invalid", display_name(key))),
            }
        }
        tries.for_each(|tries| self.without_callback(&tries));
    }

    fn without_callback(&mut self, tries: &Tries) {
        self.found.problem(format!("{}: has tries but does not exist", display_name(tries.key)));
    }

    fn callback(&mut self, key: i64, callback: &Callback, own: Option<&Tries>) {
        let Some(merchant) = &callback.about else {
            return self.found.problem(format!("{}: its operation or entry does not exist", display_name(key)));
        };
        let (pending, task) = (callback.state == PENDING, callback.task.as_ref());
        let is_lease_consistent =
            |task: &AuditedTask| task.state == WAITING || task.state == LEASED && task.attempts > 0;
        let waits_for_engine = key < 0 && *callback.target == *CallbackTarget::ENGINE;
        let origin = callback.origin();
        let stored = callback.tries.clamp(0, max_tries());
        let tries_match = match own {
            None => callback.tries == 0,
            Some(own) => own.count == stored && own.last == callback.tries && own.first == callback.tries - stored + 1,
        };
        let problems = [
            (pending && task.is_none(), "it is pending and has no task"),
            (!pending && task.is_some(), "it was delivered or given up and has a task"),
            (task.is_some_and(|task| !task.fits), "its task has another queue or time of queueing"),
            (*merchant != callback.merchant, "its operation or entry has another merchant"),
            (origin.is_none(), "its operation or entry has no callback address"),
            (
                !waits_for_engine && origin.is_some_and(|origin| *origin != *callback.target),
                "its target is not that of its callback address",
            ),
            (![PENDING, DELIVERED, FAILED].contains(&callback.state), "its state is invalid"),
            (task.is_some_and(|task| !is_lease_consistent(task)), "its lease and its attempts do not match"),
            (task.is_some_and(|task| task.attempts < 0), "its count of attempts is negative"),
            (callback.state == DELIVERED && callback.tries == 0, "it was delivered without a try"),
            (callback.state == FAILED && callback.last == Ok(false), "it was given up without an error"),
            (callback.last.is_err(), "its last outcome is invalid"),
            (!tries_match, "its tries do not match their count"),
            (own.is_some_and(|own| own.senseless > 0), "a try has invalid data"),
        ];
        self.note_problems(display_name(key), problems);
    }
}

/// Returns the name by which an operator finds the callback.
fn display_name(key: i64) -> String {
    match CallbackSubject::from_key(key) {
        Some(CallbackSubject::Operation(id)) => format!("the callback of operation {id}"),
        Some(CallbackSubject::Entry(entry)) => format!("the callback of journal entry {}", entry.0),
        None => format!("callback {key}"),
    }
}
