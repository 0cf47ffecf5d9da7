//! Callbacks as text for people.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};

use crate::callback::listing::through;
use crate::cli::columns::{age, aligned, cut, plain};
use crate::domain::UnixMillis;
use crate::store::{CallbackRecord, CallbackTry, NextAttempt, TryOutcome};
use crate::wire::time::rfc3339;

const HEADINGS: [&str; 10] =
    ["ID", "STATE", "MERCHANT", "ORDER_ID", "THROUGH", "TRIES", "AGE", "NEXT", "TARGET", "LAST"];

/// Writes one line per callback, below a line of headings; nothing if there are none.
pub(super) fn list(callbacks: &[CallbackRecord], now: UnixMillis, out: &mut dyn Write) -> io::Result<()> {
    if callbacks.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = callbacks.iter().map(|callback| cells(callback, now)).collect();
    aligned(&HEADINGS.map(Cow::Borrowed), &rows, out)
}

fn cells(callback: &CallbackRecord, now: UnixMillis) -> [Cow<'_, str>; 10] {
    [
        callback.id.to_string().into(),
        callback.state.as_str().into(),
        callback.merchant.as_str().into(),
        cut(plain(callback.order_id.as_str())),
        through(callback).into(),
        callback.tries.to_string().into(),
        age(callback.queued_at.until(now)).into(),
        next(callback, now),
        cut(plain(callback.target.origin())),
        cut(plain(&last(callback)).into_owned().into()),
    ]
}

/// Writes a callback and its attempts, oldest first.
pub(super) fn detail(
    callback: &CallbackRecord,
    tries: &[CallbackTry],
    now: UnixMillis,
    out: &mut dyn Write,
) -> io::Result<()> {
    let transaction_id = callback.transaction_id.as_deref().unwrap_or("not known yet");
    let queued = format!("{} ({} ago)", rfc3339(callback.queued_at), age(callback.queued_at.until(now)));
    let last = last(callback);
    for (name, value) in [
        ("id", callback.id.to_string().into()),
        ("state", Cow::from(callback.state.as_str())),
        ("merchant", callback.merchant.as_str().into()),
        ("order_id", plain(callback.order_id.as_str())),
        ("type", callback.direction.as_str().into()),
        ("transaction_id", transaction_id.into()),
        ("through", through(callback).into()),
        ("url", plain(callback.url.as_str())),
        ("queue", plain(callback.target.origin())),
        ("queued", queued.into()),
        ("next", next(callback, now)),
        ("last", plain(&last)),
        ("tries", callback.tries.to_string().into()),
    ] {
        writeln!(out, "{name:<15}{value}")?;
    }
    if tries.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let row = |tried: &CallbackTry| {
        let took = format!("{} ms", tried.duration.as_millis());
        [rfc3339(tried.at).into(), Cow::from(took), plain(&outcome(&tried.outcome)).into_owned().into()]
    };
    let rows: Vec<_> = tries.iter().map(row).collect();
    aligned(&["WHEN", "TOOK", "OUTCOME"].map(Cow::Borrowed), &rows, out)
}

/// Returns when the next attempt is.
fn next(callback: &CallbackRecord, now: UnixMillis) -> Cow<'static, str> {
    match callback.next_attempt(now) {
        NextAttempt::None => "-".into(),
        NextAttempt::UnderWay => "under way".into(),
        NextAttempt::WaitsForReceiver => "waits for its receiver".into(),
        NextAttempt::At(due) => format!("in {}", age(now.until(due))).into(),
    }
}

fn last(callback: &CallbackRecord) -> String {
    callback.last.as_ref().map_or_else(|| "-".to_owned(), outcome)
}

/// Describes the result of an attempt.
pub(super) fn outcome(outcome: &TryOutcome) -> String {
    match outcome {
        TryOutcome::Status(status) => status.to_string(),
        TryOutcome::Error(error) => error.to_string(),
    }
}

/// Words the absence of a callback.
pub(super) fn unknown(id: impl Display) -> String {
    format!("there is no callback {id} in the store")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::callback::listing::tests::record;
    use crate::cli::columns::MAX_WIDTH;
    use crate::domain::OrderId;
    use crate::store::CallbackState;

    const NOW: UnixMillis = UnixMillis(1_767_323_045_678 + 4000);

    fn listed(callbacks: &[CallbackRecord]) -> String {
        let mut out = Vec::new();
        list(callbacks, NOW, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_list_is_a_table() {
        let delivered = CallbackRecord {
            is_v1: true,
            tries: 12,
            last: Some(TryOutcome::Status(204)),
            queued_at: UnixMillis(NOW.0 - 3 * 86_400_000),
            ..record(12, CallbackState::Delivered)
        };
        let waiting =
            CallbackRecord { tries: 0, last: None, due: UnixMillis(NOW.0), ..record(9, CallbackState::Pending) };
        let failed = CallbackRecord {
            last: Some(TryOutcome::Error("no connection".into())),
            ..record(8, CallbackState::Failed)
        };
        insta::assert_snapshot!(listed(&[record(7, CallbackState::Pending), waiting, failed, delivered]));
        assert_eq!(listed(&[]), "");
    }

    #[test]
    fn a_callback_is_shown_with_every_try() {
        let tries = [
            CallbackTry {
                at: UnixMillis(1_767_323_045_678),
                duration: Duration::from_millis(10_003),
                outcome: TryOutcome::Error("no answer in time".into()),
            },
            CallbackTry {
                at: UnixMillis(1_767_323_050_678),
                duration: Duration::from_millis(7),
                outcome: TryOutcome::Status(503),
            },
        ];
        let shown = |callback: &CallbackRecord, tries: &[CallbackTry]| {
            let mut out = Vec::new();
            detail(callback, tries, NOW, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        insta::assert_snapshot!(shown(&record(7, CallbackState::Pending), &tries));
        let unreported = CallbackRecord { transaction_id: None, ..record(7, CallbackState::Pending) };
        let unreported = shown(&unreported, &[]);
        assert!(unreported.contains("transaction_id not known yet\n") && !unreported.contains("WHEN"), "{unreported}");
    }

    #[test]
    fn text_of_merchants_is_escaped() {
        let order_id = OrderId::new("o\n\u{1b}[31m\u{202e}é\t").unwrap();
        let odd = CallbackRecord {
            order_id,
            last: Some(TryOutcome::Error("a\r\nb".into())),
            ..record(7, CallbackState::Failed)
        };
        let table = listed(&[odd]);
        assert!(table.contains(r"o\u{a}\u{1b}[31m\u{202e}é\u{9}") && table.contains(r"a\u{d}\u{a}b"), "{table}");
        assert_eq!(table.lines().count(), 2);
        let long =
            CallbackRecord { order_id: OrderId::new(&"é".repeat(255)).unwrap(), ..record(7, CallbackState::Failed) };
        let table = listed(&[long]);
        assert!(table.contains(&format!(" {}…  v2", "é".repeat(MAX_WIDTH - 1))), "{table}");
    }
}
