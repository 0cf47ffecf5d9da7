//! What an audit looks at in the outbox. That every result has its callback is seen with the operations.

use std::iter::Peekable;
use std::vec::IntoIter;

use rusqlite::{Connection, Row};

use super::subject;
use crate::store::rows::callback::{DELIVERED, FAILED, PENDING, kept, outcome_of};
use crate::store::{Audit, CallbackSubject, CallbackTarget};

/// How many callbacks there are.
pub(in crate::store::sqlite) fn count(connection: &Connection) -> rusqlite::Result<u64> {
    connection.query_row("SELECT count(*) FROM callbacks", [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
}

/// A callback, and what stands under the number of what it is about.
struct Found {
    state: i64,
    leased: i64,
    attempts: i64,
    tries: i64,
    merchant: String,
    target: String,
    last: Result<bool, &'static str>,
    /// The merchant of the operation or entry, and where it is told.
    about: Option<(String, Option<String>)>,
}

impl Found {
    const SLICE: &str = "SELECT c.key, c.state, c.leased, c.attempts, c.tries, c.merchant, c.target, c.last_status, \
        c.last_error, coalesce(o.merchant, j.merchant), \
        CASE o.relayed WHEN 0 THEN o.callback_url ELSE coalesce(o.v1_callback_url, j.v1_callback_url) END \
        FROM callbacks c LEFT JOIN operations o ON o.transaction_id = c.key LEFT JOIN journal j ON j.entry = -c.key \
        WHERE c.key > ?1 ORDER BY c.key LIMIT ?2";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let about = match row.get::<_, Option<String>>(9)? {
            None => None,
            Some(merchant) => Some((merchant, row.get(10)?)),
        };
        Ok(Self {
            state: row.get(1)?,
            leased: row.get(2)?,
            attempts: row.get(3)?,
            tries: row.get(4)?,
            merchant: row.get(5)?,
            target: row.get(6)?,
            last: outcome_of(row.get(7)?, row.get(8)?).map(|last| last.is_some()),
            about,
        })
    }

    /// The target of where it is told; `None`: nobody is told.
    fn origin(&self) -> Option<String> {
        let (_, url) = self.about.as_ref()?;
        subject::origin_of(url.as_deref()?).ok()
    }
}

/// The tries of a callback together.
struct Tries {
    key: i64,
    count: i64,
    first: i64,
    last: i64,
    /// How many say nothing or two things.
    senseless: i64,
}

impl Tries {
    const SLICE: &str = "SELECT key, count(*), min(number), max(number), \
        sum((status IS NULL) = (error IS NULL) OR duration_us < 0 OR coalesce(status NOT BETWEEN 0 AND 65535, 0)) \
        FROM callback_tries WHERE key > ?1 AND key <= ?2 GROUP BY key ORDER BY key";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { key: row.get(0)?, count: row.get(1)?, first: row.get(2)?, last: row.get(3)?, senseless: row.get(4)? })
    }
}

/// Looks at the next `limit` callbacks and their tries; gives the last number, or `None` after the last slice.
///
/// # Errors
/// The outbox cannot be read.
pub(in crate::store::sqlite) fn slice(
    connection: &Connection,
    after: i64,
    limit: i64,
    found: &mut Audit,
) -> rusqlite::Result<Option<i64>> {
    let callbacks: Vec<_> = connection
        .prepare_cached(Found::SLICE)?
        .query_map((after, limit), |row| Ok((row.get::<_, i64>(0)?, Found::read(row).ok())))?
        .collect::<Result<_, _>>()?;
    let last = callbacks.last().map(|(key, _)| *key);
    let tries: Vec<_> = connection
        .prepare_cached(Tries::SLICE)?
        .query_map((after, last.unwrap_or(i64::MAX)), Tries::read)?
        .collect::<Result<_, _>>()?;
    let mut tries = tries.into_iter().peekable();
    for (key, callback) in callbacks {
        found.callbacks += 1;
        without_callback(&mut tries, key, found);
        let own = tries.next_if(|tries| tries.key == key);
        match callback {
            Some(callback) => look_at(key, &callback, own.as_ref(), found),
            None => found.problem(format!("{}: a column is not ours", name(key))),
        }
    }
    without_callback(&mut tries, i64::MAX, found);
    Ok(last)
}

/// Tells of tries before a number, whose callbacks were not met.
fn without_callback(tries: &mut Peekable<IntoIter<Tries>>, before: i64, found: &mut Audit) {
    while let Some(tries) = tries.next_if(|tries| tries.key < before) {
        found.problem(format!("{}: has tries but does not exist", name(tries.key)));
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

fn look_at(key: i64, callback: &Found, own: Option<&Tries>, found: &mut Audit) {
    let Some((merchant, _)) = &callback.about else {
        return found.problem(format!("{}: what it is about does not exist", name(key)));
    };
    let (pending, leased) = (callback.state == PENDING, callback.leased == 1);
    let waits_for_engine = key < 0 && callback.target == CallbackTarget::Engine.as_str();
    let origin = callback.origin();
    let kept = callback.tries.clamp(0, kept());
    let whole = match own {
        None => callback.tries == 0,
        Some(own) => own.count == kept && own.last == callback.tries && own.first == callback.tries - kept + 1,
    };
    let problems = [
        (*merchant != callback.merchant, "its merchant is another one"),
        (origin.is_none(), "nobody is to be told"),
        (
            !waits_for_engine && origin.is_some_and(|origin| origin != callback.target),
            "its target is not the one of its address",
        ),
        (![PENDING, DELIVERED, FAILED].contains(&callback.state), "its state is none"),
        (!(callback.leased == 0 || leased && pending && callback.attempts > 0), "nobody can have claimed it"),
        (callback.attempts < 0, "its attempts are less than none"),
        (callback.state == DELIVERED && callback.tries == 0, "it was delivered without a try"),
        (callback.state == FAILED && callback.last == Ok(false), "it was given up for no reason"),
        (callback.last.is_err(), "its last outcome is none"),
        (!whole, "its tries are not those that were made"),
        (own.is_some_and(|own| own.senseless > 0), "what came of a try is not ours"),
    ];
    for (_, problem) in problems.into_iter().filter(|(wrong, _)| *wrong) {
        found.problem(format!("{}: {problem}", name(key)));
    }
}
