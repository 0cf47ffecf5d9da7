//! The list of callbacks as operators see it, on the command line and in the admin API: filters, and JSON documents.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;

use super::message;
use super::sample::Sampled;
use crate::domain::{MerchantId, OrderId, UnixMillis};
use crate::rules::{RuleSet, read_span};
use crate::store::{
    CallbackCursor, CallbackId, CallbackQuery, CallbackRecord, CallbackState, CallbackTry, NextAttempt, Outbox,
    StoreError, TryOutcome,
};
use crate::telemetry::without_cards;
use crate::wire::time::{read_date, read_rfc3339, read_second, rfc3339};

/// How many callbacks a list shows by default.
pub const DEFAULT_LIMIT: usize = 50;

/// The most callbacks that a list shows.
pub const MAX_CALLBACKS: usize = 1000;

/// The states that a list shows by default: those that are not delivered.
pub const DEFAULT_STATES: [CallbackState; 2] = [CallbackState::Pending, CallbackState::Failed];

/// The end of a span that a filter names. A date there means all of its day, and a second all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanEnd {
    /// From this time on: of a date or a second, its first instant.
    Since,
    /// Up to and including this time: of a date or a second, its last instant.
    Until,
}

impl SpanEnd {
    /// Returns the name of the filter's member.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Since => "since",
            Self::Until => "until",
        }
    }
}

/// A time as operators write it: RFC 3339, a second in UTC as the console shows it, a date in UTC, or an age such as `2h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// An absolute time.
    At(UnixMillis),
    /// A time that is this long ago.
    Ago(Duration),
}

impl Moment {
    /// The error message for a malformed time.
    pub const EXPECTED: &str = "must be a time such as 2026-01-02T03:04:05Z, a date such as 2026-01-02 (in UTC), or an age such as 30m, 2h or 3d";

    /// Parses a time; returns `None` if it is malformed.
    #[must_use]
    pub fn parse(text: &str, end: SpanEnd) -> Option<Self> {
        let at = || read_rfc3339(text).map(|time| Self::At(UnixMillis(time.as_millisecond())));
        let edge = |[first, last]: [UnixMillis; 2]| match end {
            SpanEnd::Since => Self::At(first),
            SpanEnd::Until => Self::At(last),
        };
        let date_or_second = || read_date(text).or_else(|| read_second(text)).map(edge);
        read_span(text).map(Self::Ago).or_else(at).or_else(date_or_second)
    }

    /// Returns the absolute time, as of `now`.
    #[must_use]
    pub fn before(self, now: UnixMillis) -> UnixMillis {
        match self {
            Self::At(at) => at,
            Self::Ago(span) => UnixMillis(now.0.saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX))),
        }
    }
}

/// Parses the name of a state, as in lists and filters.
#[must_use]
pub fn read_state(word: &str) -> Option<CallbackState> {
    CallbackState::ALL.into_iter().find(|state| state.as_str() == word)
}

/// Parses the names of states, separated by commas; each is in the result once.
#[must_use]
pub fn read_states(text: &str) -> Option<Vec<CallbackState>> {
    let mut states = text.split(',').map(read_state).collect::<Option<Vec<_>>>()?;
    states.sort_unstable_by_key(|state| state.as_str());
    states.dedup();
    Some(states)
}

/// Returns the names and values of a filter, as the audit trail shows them.
#[must_use]
pub fn filter_parameters(query: &CallbackQuery) -> Vec<(&'static str, Box<str>)> {
    let merchant = query.merchant.as_ref().map(|merchant| ("merchant", merchant.as_str().into()));
    let order = query.order_id.as_ref().map(|order| ("order_id", order.as_str().into()));
    let times = [("since", query.since), ("until", query.until)];
    let times = times.into_iter().filter_map(|(name, time)| Some((name, rfc3339(time?).into())));
    merchant.into_iter().chain(order).chain(times).collect()
}

/// Writes a position in the list as text, for requesting the next slice.
#[must_use]
pub fn write_cursor(place: CallbackCursor) -> String {
    format!("{}.{}", place.at.0, place.key)
}

/// Parses a position; returns `None` unless [`write_cursor`] would write the same text.
#[must_use]
pub fn read_cursor(text: &str) -> Option<CallbackCursor> {
    let (at, key) = text.split_once('.')?;
    let place = CallbackCursor { at: UnixMillis(at.parse().ok()?), key: key.parse().ok()? };
    (write_cursor(place) == text).then_some(place)
}

/// A slice of the list.
#[derive(Debug, Default)]
pub struct Slice {
    /// The callbacks, newest first.
    pub callbacks: Vec<CallbackRecord>,
    /// The position of the next slice; `None` if there is none.
    pub next: Option<CallbackCursor>,
}

impl Slice {
    /// Returns the first `limit` of the callbacks found. The query must allow for one more, which shows that there is a
    /// next slice.
    #[must_use]
    pub fn of(mut found: Vec<CallbackRecord>, limit: usize) -> Self {
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(CallbackRecord::place);
        Self { callbacks: found, next }
    }

    /// Returns the slice as a JSON document, as of `now`.
    #[must_use]
    pub fn document(&self, now: UnixMillis) -> ListDocument<'_> {
        let all = self.callbacks.iter();
        let callbacks = all.map(|callback| CallbackDocument::of(callback, now, callback.tries)).collect();
        ListDocument { callbacks, next: self.next.map(write_cursor) }
    }
}

/// Returns the order id of a filter, trimmed: pasting brings white space along. It stays as it is if the merchant has
/// callbacks of the untrimmed id.
///
/// # Errors
/// The store does not respond.
pub async fn pasted_order_id(
    outbox: &dyn Outbox,
    merchant: &MerchantId,
    order_id: OrderId,
) -> Result<OrderId, StoreError> {
    let trimmed = OrderId::new(order_id.as_str().trim()).ok();
    let Some(trimmed) = trimmed.filter(|trimmed| *trimmed != order_id) else { return Ok(order_id) };
    let exact = CallbackQuery {
        merchant: Some(merchant.clone()),
        order_id: Some(order_id.clone()),
        ..CallbackQuery::of(CallbackState::ALL, 1)
    };
    Ok(if outbox.callbacks(exact).await?.is_empty() { trimmed } else { order_id })
}

/// One callback, with its attempts and its body.
#[derive(Debug)]
pub struct CallbackDetail {
    /// The callback.
    pub record: CallbackRecord,
    /// Its attempts, oldest first.
    pub tries: Vec<CallbackTry>,
    /// Its body as the rules in force have it, with card numbers masked; or why there is none.
    pub body: Result<String, String>,
}

impl CallbackDetail {
    /// Reads a callback, and composes its body.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn find(
        outbox: &dyn Outbox,
        rules: &RuleSet,
        id: CallbackId,
        now: UnixMillis,
    ) -> Result<Option<Self>, StoreError> {
        let Some((record, tries)) = outbox.callback(id).await? else { return Ok(None) };
        let body = match outbox.result_of_callback(id).await {
            Ok(Some(change)) => match message::compose(rules, &id.to_string(), &change, now) {
                Ok(message) => Ok(without_cards(&String::from_utf8_lossy(&message.body)).into_owned()),
                Err(unsendable) => Err(unsendable.reason()),
            },
            Ok(None) | Err(StoreError::Corrupt(_)) => Err("its result cannot be read".to_owned()),
            Err(error) => return Err(error),
        };
        Ok(Some(Self { record, tries, body }))
    }

    /// Returns the callback as a JSON document, as of `now`.
    #[must_use]
    pub fn document(&self, now: UnixMillis) -> DetailDocument<'_> {
        let tries = self.tries.iter().map(TryDocument::of).collect();
        DetailDocument {
            callback: CallbackDocument::of(&self.record, now, tries),
            body: self.body.as_deref().ok(),
            no_body: self.body.as_ref().err().map(String::as_str),
        }
    }
}

/// Returns a sample and its outcome as a JSON document, with the body exactly as sent.
#[must_use]
pub fn sample_document(sampled: &Sampled) -> SampleDocument<'_> {
    let Sampled { id, through, url, body, tried } = sampled;
    SampleDocument { id, through: through.as_str(), url: url.as_str(), body, tried: TryDocument::of(tried) }
}

/// A sample with its outcome.
#[derive(Serialize)]
pub struct SampleDocument<'a> {
    id: &'a str,
    #[serde(rename = "kind")]
    through: &'static str,
    url: &'a str,
    body: &'a str,
    #[serde(flatten)]
    tried: TryDocument<'a>,
}

/// A slice of the list.
#[derive(Serialize)]
pub struct ListDocument<'a> {
    callbacks: Vec<CallbackDocument<'a, u32>>,
    next: Option<String>,
}

/// A callback, with the number of its attempts or with the attempts themselves.
#[derive(Serialize)]
struct CallbackDocument<'a, Tries> {
    id: String,
    state: &'static str,
    merchant: &'a str,
    #[serde(rename = "type")]
    direction: &'static str,
    order_id: &'a str,
    transaction_id: Option<&'a str>,
    #[serde(rename = "kind")]
    through: &'static str,
    url: &'a str,
    target: &'a str,
    under_way: bool,
    queued_at: String,
    /// The time since it was queued or last resent.
    age_seconds: u64,
    /// When it is or was due; set while it is pending.
    next_try_at: Option<String>,
    /// `receiver`: it is due, and its receiver cannot take it now.
    waits_for: Option<&'static str>,
    last_status: Option<u16>,
    /// Why the last attempt did not deliver it.
    last_error: Option<Cow<'a, str>>,
    tries: Tries,
}

/// One callback, with its attempts and its body.
#[derive(Serialize)]
pub struct DetailDocument<'a> {
    #[serde(flatten)]
    callback: CallbackDocument<'a, Vec<TryDocument<'a>>>,
    body: Option<&'a str>,
    /// Why there is no body.
    no_body: Option<&'a str>,
}

/// An attempt to send a callback.
#[derive(Serialize)]
pub struct TryDocument<'a> {
    at: String,
    duration_ms: u64,
    status: Option<u16>,
    error: Option<&'a str>,
}

/// Returns the API version in whose format a callback's body is written.
#[must_use]
pub const fn through(callback: &CallbackRecord) -> &'static str {
    if callback.is_v1 { "v1" } else { "v2" }
}

impl<'a, Tries> CallbackDocument<'a, Tries> {
    fn of(callback: &'a CallbackRecord, now: UnixMillis, tries: Tries) -> Self {
        let is_pending = callback.state == CallbackState::Pending;
        let (last_status, last_error) = match &callback.last {
            None => (None, None),
            Some(TryOutcome::Status(status @ 200..=299)) => (Some(*status), None),
            Some(outcome @ TryOutcome::Status(status)) => (Some(*status), Some(outcome.to_string().into())),
            Some(TryOutcome::Error(error)) => (None, Some((&**error).into())),
        };
        Self {
            id: callback.id.to_string(),
            state: callback.state.as_str(),
            merchant: callback.merchant.as_str(),
            direction: callback.direction.as_str(),
            order_id: callback.order_id.as_str(),
            transaction_id: callback.transaction_id.as_deref(),
            through: through(callback),
            url: callback.url.as_str(),
            target: callback.target.origin(),
            under_way: callback.is_under_way(now),
            queued_at: rfc3339(callback.queued_at),
            age_seconds: callback.queued_at.until(now).as_secs(),
            next_try_at: is_pending.then(|| rfc3339(callback.due)),
            waits_for: (callback.next_attempt(now) == NextAttempt::WaitsForReceiver).then_some("receiver"),
            last_status,
            last_error,
            tries,
        }
    }
}

impl<'a> TryDocument<'a> {
    fn of(tried: &'a CallbackTry) -> Self {
        let (status, error) = reported(&tried.outcome);
        let duration_ms = u64::try_from(tried.duration.as_millis()).unwrap_or(u64::MAX);
        Self { at: rfc3339(tried.at), duration_ms, status, error }
    }
}

fn reported(outcome: &TryOutcome) -> (Option<u16>, Option<&str>) {
    match outcome {
        TryOutcome::Status(status) => (Some(*status), None),
        TryOutcome::Error(error) => (None, Some(error)),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::auth::Interface;
    use crate::domain::{CallbackUrl, Direction, TransactionId};
    use crate::store::{CallbackId, CallbackSubject, CallbackTarget};

    /// Returns a callback with two attempts, of the operation with this number.
    pub(crate) fn record(number: u64, state: CallbackState) -> CallbackRecord {
        let operation = TransactionId::from_stored(i64::try_from(number).unwrap()).unwrap();
        let url = CallbackUrl::new("https://shop.example/cb?a=b").unwrap();
        CallbackRecord {
            id: CallbackId::new(CallbackSubject::Operation(operation), 255),
            merchant: MerchantId::new("acme").unwrap(),
            direction: Direction::Payin,
            order_id: OrderId::new(&format!("o-{number}")).unwrap(),
            transaction_id: Some(number.to_string().into()),
            target: CallbackTarget::new(&MerchantId::new("acme").unwrap(), &url.origin()),
            url,
            is_v1: false,
            state,
            is_claimed: false,
            queued_at: UnixMillis(1_767_323_045_678),
            due: UnixMillis(1_767_323_055_678),
            tries: 2,
            last: Some(TryOutcome::Status(503)),
        }
    }

    #[test]
    fn moments_are_times_or_ages() {
        let now = UnixMillis(1_767_323_045_678);
        for (text, expected) in [
            ("2h", Some(now.0 - 7_200_000)),
            ("3d", Some(now.0 - 3 * 86_400_000)),
            ("250ms", Some(now.0 - 250)),
            ("2026-01-02T03:04:05.678Z", Some(now.0)),
            ("2026-01-02T05:04:05+02:00", Some(now.0 - 678)),
            ("", None),
            ("2", None),
            ("-2h", None),
            ("yesterday", None),
            ("2026-13-02", None),
        ] {
            for end in [SpanEnd::Since, SpanEnd::Until] {
                assert_eq!(Moment::parse(text, end).map(|moment| moment.before(now).0), expected, "{text}");
            }
        }
        for (end, edge) in [(SpanEnd::Since, "2026-01-02T00:00:00.000Z"), (SpanEnd::Until, "2026-01-02T23:59:59.999Z")]
        {
            let day = Moment::parse("2026-01-02", end).map(|moment| rfc3339(moment.before(now)));
            assert_eq!(day.as_deref(), Some(edge));
        }
        for (end, edge) in [(SpanEnd::Since, now.0 - 678), (SpanEnd::Until, now.0 + 321)] {
            let second = Moment::parse("2026-01-02 03:04:05", end).map(|moment| moment.before(now).0);
            assert_eq!(second, Some(edge), "as the console shows it");
        }
    }

    #[test]
    fn places_are_read_as_they_are_written() {
        for (at, key) in [(1_767_323_045_678, 7), (0, -1), (1, i64::MIN)] {
            let place = CallbackCursor { at: UnixMillis(at), key };
            assert_eq!(read_cursor(&write_cursor(place)), Some(place));
        }
        for wrong in ["", "1", "1.", ".1", "1.2.3", "+1.2", "01.2", "1.x", "99999999999999999999.1"] {
            assert_eq!(read_cursor(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn states_are_read_as_they_are_written() {
        for state in CallbackState::ALL {
            assert_eq!(read_state(state.as_str()), Some(state));
        }
        assert_eq!(read_state("Failed"), None);
    }

    #[test]
    fn a_slice_reports_whether_there_is_more() {
        let found = |count: u64| (1..=count).map(|number| record(number, CallbackState::Failed)).collect::<Vec<_>>();
        let (whole, part) = (Slice::of(found(2), 2), Slice::of(found(3), 2));
        assert_eq!((whole.callbacks.len(), whole.next), (2, None));
        assert_eq!((part.callbacks.len(), part.next), (2, Some(found(2)[1].place())));
        assert_eq!(Slice::of(Vec::new(), 2).next, None);
    }

    fn json(document: &impl Serialize) -> String {
        serde_json::to_string(document).unwrap()
    }

    #[test]
    fn the_document_of_a_sample() {
        let outcome = TryOutcome::Status(200);
        let tried = CallbackTry { at: UnixMillis(1_767_323_045_678), duration: Duration::from_millis(12), outcome };
        let expected = concat!(
            r#"{"id":"sample_1","kind":"v2","url":"https://shop.example/cb","body":"{\"order_id\":\"sample-1\"}","#,
            r#""at":"2026-01-02T03:04:05.678Z","duration_ms":12,"status":200,"error":null}"#
        );
        let sampled = Sampled {
            id: "sample_1".to_owned(),
            through: Interface::V2,
            url: CallbackUrl::new("https://shop.example/cb").unwrap(),
            body: r#"{"order_id":"sample-1"}"#.to_owned(),
            tried,
        };
        assert_eq!(json(&sample_document(&sampled)), expected);
    }

    #[test]
    fn the_documents_of_lists_and_of_one() {
        let now = UnixMillis(1_767_323_135_678);
        let pending = Slice::of(vec![record(7, CallbackState::Pending), record(8, CallbackState::Failed)], 1);
        let shown = concat!(
            r#"{"id":"cb_000000000000000700000000000000ff","state":"pending","merchant":"acme","type":"payin","#,
            r#""order_id":"o-7","transaction_id":"7","kind":"v2","url":"https://shop.example/cb?a=b","#,
            r#""target":"https://shop.example:443","under_way":false,"queued_at":"2026-01-02T03:04:05.678Z","#,
            r#""age_seconds":90,"next_try_at":"2026-01-02T03:04:15.678Z","waits_for":"receiver","last_status":503,"last_error":"HTTP 503","tries":"#
        );
        let expected = format!(r#"{{"callbacks":[{shown}2}}],"next":"1767323045678.7"}}"#);
        assert_eq!(json(&pending.document(now)), expected);
        let tries = [
            CallbackTry {
                at: UnixMillis(1_767_323_045_678),
                duration: Duration::from_millis(12),
                outcome: TryOutcome::Error("no connection".into()),
            },
            CallbackTry {
                at: UnixMillis(1_767_323_050_678),
                duration: Duration::from_micros(1999),
                outcome: TryOutcome::Status(503),
            },
        ];
        let expected = concat!(
            r#"[{"at":"2026-01-02T03:04:05.678Z","duration_ms":12,"status":null,"error":"no connection"},"#,
            r#"{"at":"2026-01-02T03:04:10.678Z","duration_ms":1,"status":503,"error":null}],"body":"{}","no_body":null}"#
        );
        let detail =
            CallbackDetail { record: pending.callbacks[0].clone(), tries: tries.into(), body: Ok("{}".into()) };
        assert_eq!(json(&detail.document(now)), format!("{shown}{expected}"));
        let given_up = CallbackRecord {
            last: Some(TryOutcome::Error("given up".into())),
            is_v1: true,
            ..record(7, CallbackState::Failed)
        };
        let detail = CallbackDetail { record: given_up, tries: Vec::new(), body: Err("no merchant".to_owned()) };
        let reported = json(&detail.document(now));
        for part in [
            r#""next_try_at":null,"waits_for":null"#,
            r#""last_status":null,"last_error":"given up""#,
            r#""kind":"v1""#,
            r#""body":null,"no_body":"no merchant""#,
        ] {
            assert!(reported.contains(part), "{part}: {reported}");
        }
    }
}
