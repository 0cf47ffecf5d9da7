//! What an audit looks at in the outbox. That every result has its callback is seen with the operations.

use std::iter::Peekable;
use std::vec::IntoIter;

use tokio_postgres::Row;

use super::{Auditor, FIRST, Findings, LAST, Place};
use crate::domain::CallbackUrl;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::row::{get, small};
use crate::store::rows::callback::{DELIVERED, FAILED, PENDING, kept, outcome_of};
use crate::store::{CallbackSubject, CallbackTarget};

/// Callbacks after a place, wherever they are, each with what stands under the number of what it is about. The least number
/// of all has no opposite.
pub(in crate::store::postgres) const SLICE: &str = "WITH slice AS MATERIALIZED (SELECT * FROM (\
    (SELECT bucket, key, 0::smallint AS state, leased, attempts, tries, merchant, target, last_status, last_error \
    FROM callbacks WHERE (bucket, key) > ($1, $2) ORDER BY bucket, key LIMIT 500) UNION ALL \
    (SELECT bucket, key, CASE state WHEN 0 THEN -1::smallint ELSE state END, false, attempts, tries, merchant, target, \
    last_status, last_error FROM callbacks_told WHERE (bucket, key) > ($1, $2) ORDER BY bucket, key LIMIT 500)) AS both_of \
    ORDER BY bucket, key, state LIMIT 500) \
    SELECT c.bucket, c.key, c.state, c.leased, c.attempts, c.tries, c.merchant, c.target, c.last_status, c.last_error, \
    c.state = 0 AND EXISTS (SELECT FROM callbacks_told t WHERE t.bucket = c.bucket AND t.key = c.key), \
    coalesce(o.merchant, j.merchant), \
    CASE WHEN o.relayed = false THEN o.callback_url ELSE coalesce(o.v1_callback_url, j.v1_callback_url) END \
    FROM slice c LEFT JOIN operations o ON o.bucket = c.bucket AND o.transaction_id = c.key \
    LEFT JOIN journal j ON j.bucket = c.bucket AND j.entry = -nullif(c.key, '-9223372036854775808'::bigint) \
    ORDER BY c.bucket, c.key, c.state";

/// A callback, and what stands under the number of what it is about.
struct Found {
    key: i64,
    state: i64,
    leased: bool,
    attempts: i32,
    tries: i64,
    merchant: Box<str>,
    target: Box<str>,
    last: Result<bool, &'static str>,
    /// It is pending, and was told as well.
    twice: bool,
    /// The merchant of the operation or entry.
    about: Option<Box<str>>,
    /// Where that is told.
    url: Option<Box<str>>,
}

impl Found {
    fn read(row: &Row) -> Result<Self, Fault> {
        let last_status = get::<Option<i32>>(row, 8)?.map(i64::from);
        Ok(Self {
            key: get(row, 1)?,
            state: small(row, 2)?,
            leased: get(row, 3)?,
            attempts: get(row, 4)?,
            tries: get(row, 5)?,
            merchant: get(row, 6)?,
            target: get(row, 7)?,
            last: outcome_of(last_status, get(row, 9)?).map(|last| last.is_some()),
            twice: get(row, 10)?,
            about: get(row, 11)?,
            url: get(row, 12)?,
        })
    }

    /// The target of where it is told; `None`: nobody is told.
    fn origin(&self) -> Option<String> {
        CallbackUrl::new_allowing_http(self.url.as_deref()?).ok().map(|url| url.origin())
    }
}

fn place_of(row: &Row) -> Result<Place, Fault> {
    Ok((get(row, 0)?, get(row, 1)?))
}

/// The tries of a callback together.
struct Tries {
    place: Place,
    count: i64,
    first: i64,
    last: i64,
    /// How many say nothing or two things.
    senseless: i64,
}

impl Tries {
    const BETWEEN: &str = "SELECT bucket, key, count(*), min(number), max(number), \
        count(*) FILTER (WHERE (status IS NULL) = (error IS NULL) OR duration_us < 0 \
        OR status NOT BETWEEN 0 AND 65535) FROM callback_tries \
        WHERE (bucket, key) > ($1, $2) AND (bucket, key) <= ($3, $4) GROUP BY bucket, key ORDER BY bucket, key";

    fn read(row: &Row) -> Result<Self, Fault> {
        Ok(Self {
            place: place_of(row)?,
            count: get(row, 2)?,
            first: get(row, 3)?,
            last: get(row, 4)?,
            senseless: get(row, 5)?,
        })
    }
}

/// Looks at all callbacks and their tries.
pub(super) async fn all(auditor: &Auditor<'_>, mut findings: Findings) -> Result<Findings, Fault> {
    let mut after = FIRST;
    loop {
        let rows = auditor.after(SLICE, after).await?;
        let last = rows.last().map(place_of).transpose()?;
        let tries = auditor.between(Tries::BETWEEN, after, last.unwrap_or(LAST)).await?;
        findings = auditor.look(findings, move |findings| slice(findings, &rows, &tries)).await?;
        match last {
            Some(last) => after = last,
            None => return Ok(findings),
        }
    }
}

/// Looks at callbacks and at the tries up to the last of them.
fn slice(findings: &mut Findings, rows: &[Row], tries: &[Row]) -> Result<(), Fault> {
    let tries: Vec<_> = tries.iter().map(Tries::read).collect::<Result<_, _>>()?;
    let mut tries = tries.into_iter().peekable();
    for row in rows {
        let place = place_of(row)?;
        findings.found.callbacks += 1;
        without_callback(findings, &mut tries, place);
        let own = tries.next_if(|tries| tries.place == place);
        look_at(findings, &Found::read(row)?, own.as_ref());
    }
    without_callback(findings, &mut tries, LAST);
    Ok(())
}

/// Tells of tries before a place, whose callbacks were not met.
fn without_callback(findings: &mut Findings, tries: &mut Peekable<IntoIter<Tries>>, before: Place) {
    while let Some(tries) = tries.next_if(|tries| tries.place < before) {
        findings.found.problem(format!("{}: has tries but does not exist", name(tries.place.1)));
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

fn look_at(findings: &mut Findings, callback: &Found, own: Option<&Tries>) {
    let name = name(callback.key);
    let Some(merchant) = &callback.about else {
        return findings.found.problem(format!("{name}: what it is about does not exist"));
    };
    let pending = callback.state == PENDING;
    let waits_for_engine = callback.key < 0 && *callback.target == *CallbackTarget::Engine.as_str();
    let origin = callback.origin();
    let kept = callback.tries.clamp(0, kept());
    let whole = match own {
        None => callback.tries == 0,
        Some(own) => own.count == kept && own.last == callback.tries && own.first == callback.tries - kept + 1,
    };
    let problems = [
        (callback.twice, "it is pending, and was delivered or given up as well"),
        (*merchant != callback.merchant, "its merchant is another one"),
        (origin.is_none(), "nobody is to be told"),
        (
            !waits_for_engine && origin.is_some_and(|origin| *origin != *callback.target),
            "its target is not the one of its address",
        ),
        (![PENDING, DELIVERED, FAILED].contains(&callback.state), "its state is none"),
        (callback.leased && !(pending && callback.attempts > 0), "nobody can have claimed it"),
        (callback.attempts < 0, "its attempts are less than none"),
        (callback.state == DELIVERED && callback.tries == 0, "it was delivered without a try"),
        (callback.state == FAILED && callback.last == Ok(false), "it was given up for no reason"),
        (callback.last.is_err(), "its last outcome is none"),
        (!whole, "its tries are not those that were made"),
        (own.is_some_and(|own| own.senseless > 0), "what came of a try is not ours"),
    ];
    for (_, problem) in problems.into_iter().filter(|(wrong, _)| *wrong) {
        findings.found.problem(format!("{name}: {problem}"));
    }
}
