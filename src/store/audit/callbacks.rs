//! The outbox. That every result has its callback is seen with the operations.

use super::{AuditFindings, Found, LAST, RowPlace};
use crate::domain::CallbackUrl;
use crate::store::rows::callback::{DELIVERED, FAILED, PENDING, kept};
use crate::store::{CallbackSubject, CallbackTarget};

/// A callback, and what stands under the number of what it is about.
pub(in crate::store) struct Callback {
    pub(in crate::store) state: i64,
    /// Its task, whose data are whole.
    pub(in crate::store) task: Option<AuditedTask>,
    pub(in crate::store) tries: i64,
    pub(in crate::store) merchant: Box<str>,
    pub(in crate::store) target: Box<str>,
    /// Whether something came of its last try.
    pub(in crate::store) last: Result<bool, &'static str>,
    /// The merchant of the operation or entry.
    pub(in crate::store) about: Option<Box<str>>,
    /// Where that is told.
    pub(in crate::store) url: Option<Box<str>>,
}

/// The task of a callback.
pub(in crate::store) struct AuditedTask {
    pub(in crate::store) leased: i64,
    pub(in crate::store) attempts: i64,
    /// Whether its queue is the target, and it was queued when the callback was.
    pub(in crate::store) fits: bool,
}

impl Callback {
    /// The target of where it is told; `None`: nobody is told.
    fn origin(&self) -> Option<String> {
        CallbackUrl::new_allowing_http(self.url.as_deref()?).ok().map(|url| url.origin())
    }
}

/// The tries of a callback together.
pub(in crate::store) struct Tries {
    pub(in crate::store) place: RowPlace,
    pub(in crate::store) count: i64,
    /// The numbers of the first and the last one.
    pub(in crate::store) first: i64,
    pub(in crate::store) last: i64,
    /// How many say nothing or two things.
    pub(in crate::store) senseless: i64,
}

impl AuditFindings {
    /// Looks at a slice of callbacks and at the tries up to its last one, both in the order of their places.
    pub(in crate::store) fn callbacks(&mut self, rows: Vec<Found<Callback>>, tries: Vec<Tries>) {
        let mut tries = tries.into_iter().peekable();
        for (place, row) in rows {
            self.found.callbacks += 1;
            while let Some(tries) = tries.next_if(|tries| tries.place < place) {
                self.without_callback(&tries);
            }
            let own = tries.next_if(|tries| tries.place == place);
            match row {
                Some(callback) => self.callback(place.1, &callback, own.as_ref()),
                None => self.found.problem(format!("{}: a column is not ours", name(place.1))),
            }
        }
        while let Some(tries) = tries.next_if(|tries| tries.place < LAST) {
            self.without_callback(&tries);
        }
    }

    fn without_callback(&mut self, tries: &Tries) {
        self.found.problem(format!("{}: has tries but does not exist", name(tries.place.1)));
    }

    fn callback(&mut self, key: i64, callback: &Callback, own: Option<&Tries>) {
        let Some(merchant) = &callback.about else {
            return self.found.problem(format!("{}: what it is about does not exist", name(key)));
        };
        let (pending, task) = (callback.state == PENDING, callback.task.as_ref());
        let claimed = |task: &AuditedTask| task.leased == 0 || task.leased == 1 && task.attempts > 0;
        let waits_for_engine = key < 0 && *callback.target == *CallbackTarget::Engine.as_str();
        let origin = callback.origin();
        let kept = callback.tries.clamp(0, kept());
        let whole = match own {
            None => callback.tries == 0,
            Some(own) => own.count == kept && own.last == callback.tries && own.first == callback.tries - kept + 1,
        };
        let problems = [
            (pending && task.is_none(), "it is pending and has no task"),
            (!pending && task.is_some(), "it was delivered or given up and has a task"),
            (task.is_some_and(|task| !task.fits), "its task is not in the queue of its target, or of another time"),
            (*merchant != callback.merchant, "its merchant is another one"),
            (origin.is_none(), "nobody is to be told"),
            (
                !waits_for_engine && origin.is_some_and(|origin| *origin != *callback.target),
                "its target is not the one of its address",
            ),
            (![PENDING, DELIVERED, FAILED].contains(&callback.state), "its state is none"),
            (task.is_some_and(|task| !claimed(task)), "nobody can have claimed it"),
            (task.is_some_and(|task| task.attempts < 0), "its attempts are less than none"),
            (callback.state == DELIVERED && callback.tries == 0, "it was delivered without a try"),
            (callback.state == FAILED && callback.last == Ok(false), "it was given up for no reason"),
            (callback.last.is_err(), "its last outcome is none"),
            (!whole, "its tries are not those that were made"),
            (own.is_some_and(|own| own.senseless > 0), "what came of a try is not ours"),
        ];
        self.note(name(key), problems);
    }
}

/// As people find it: by what it is about.
fn name(key: i64) -> String {
    match CallbackSubject::from_key(key) {
        Some(CallbackSubject::Operation(id)) => format!("the callback of operation {id}"),
        Some(CallbackSubject::Entry(entry)) => format!("the callback of journal entry {}", entry.0),
        None => format!("callback {key}"),
    }
}
