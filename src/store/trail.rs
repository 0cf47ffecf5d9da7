//! The audit trail (contract section 13, "The console"): a row for every action of an operator and for every command
//! that changes something.
//!
//! ```text
//!           begin_action               end_action
//! (nothing) -------------> unfinished ------------> ended
//! ```
//!
//! The row is on disk before the action takes effect, and has an outcome after it. A row without an outcome belongs to an
//! action that is under way, or whose process ended. A row with an outcome is never changed, and no row is ever deleted.

mod api;

pub use api::AuditTrail;

use std::collections::BTreeMap;
use std::fmt;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use super::sql::{Columns, CorruptRow, Parameter, Sql, Transaction, params, sql};
use crate::clock::Random;
use crate::domain::{MerchantId, TransactionId, UnixMillis};
use crate::telemetry::without_cards;

/// The id of an action; ascends with time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub i64);

impl ActionId {
    /// Draws the id of an action that begins at a time.
    fn draw(at: UnixMillis, random: &dyn Random) -> Self {
        Self(TransactionId::of_other(at, random.number()).to_stored())
    }
}

/// The idempotency key of a form: a form that is sent twice acts once. Written as 32 lowercase hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(pub [u8; 16]);

impl IdempotencyKey {
    /// Draws the key of a new form.
    #[must_use]
    pub fn draw(random: &dyn Random) -> Self {
        let mut bytes = [0; 16];
        random.fill(&mut bytes);
        Self(bytes)
    }

    /// Hashes the key with the user, the action, its target and the form's values: only an identical submission counts as a
    /// repeat.
    #[must_use]
    pub fn scoped<'a>(
        self,
        (user, action, target): (&'a str, &'a str, &'a str),
        values: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let mut hash = Sha256::new().chain_update(self.0);
        let values = values.into_iter().flat_map(|(name, value)| [name, value]);
        for part in [user, action, target].into_iter().chain(values) {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(hash.finalize()).for_each(|(byte, hashed)| *byte = hashed);
        Self(bytes)
    }

    /// Parses the written form of a key.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 16];
        hex::decode_to_slice(text, &mut bytes).ok().map(|()| Self(bytes))
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// An action that is about to take effect. Its texts hold no secret, signed link or value of `fields`. Writing the row
/// masks card numbers in `request_id` and in the `parameters` that are no ids. It cuts texts longer than
/// [`ActionRecord::MAX_TEXT`] bytes, order ids longer than [`ActionRecord::MAX_ID`], and reasons longer than
/// [`ActionRecord::MAX_REASON`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAction {
    /// When it begins.
    pub at: UnixMillis,
    /// The user; for a command, `cli:` and the system's name of the user.
    pub user: Box<str>,
    /// The user's role; "" for a command.
    pub role: Box<str>,
    /// The user's address; "" for a command.
    pub address: Box<str>,
    /// The id of the request.
    pub request_id: Box<str>,
    /// The kind of action, such as [`ActionRecord::RESEND_CALLBACK`].
    pub action: &'static str,
    /// What the action changes: an id of this gateway, or a name of its rules.
    pub target: Box<str>,
    /// Names and values of what was requested; only the first [`ActionRecord::MAX_PARAMETERS`] are stored.
    pub parameters: Vec<(&'static str, Box<str>)>,
    /// The version of the rules in force.
    pub rules_version: Box<str>,
    /// The key of the form, or of the repeatable request.
    pub idempotency_key: Option<IdempotencyKey>,
}

impl NewAction {
    /// Returns the row, with its texts cut to their bounds.
    fn into_record(self, id: ActionId) -> ActionRecord {
        let text = |text: &str| bounded(text, ActionRecord::MAX_TEXT);
        let parameters = self.parameters.iter().take(ActionRecord::MAX_PARAMETERS);
        let value = |name: &str, value: &str| match name {
            // Ids are kept whole, so that operators can search for them.
            "order_id" | "transaction_id" | "resolution" => bounded(value, ActionRecord::MAX_ID),
            "reason" => bounded(&without_cards(value), ActionRecord::MAX_REASON),
            _ => text(&without_cards(value)),
        };
        let parameters = parameters.map(|(name, given)| ((*name).to_owned(), String::from(value(name, given)).into()));
        ActionRecord {
            id,
            at: self.at,
            user: text(&self.user),
            role: text(&self.role),
            address: text(&self.address),
            request_id: text(&without_cards(&self.request_id)),
            action: self.action.into(),
            target: text(&self.target),
            parameters: serde_json::Value::Object(parameters.collect()).to_string().into(),
            rules_version: text(&self.rules_version),
            idempotency_key: self.idempotency_key,
            end: None,
        }
    }
}

/// An action as stored, and as the console shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ActionRecord {
    /// Its id.
    #[serde(skip)]
    pub id: ActionId,
    /// When it began.
    pub at: UnixMillis,
    /// The user.
    pub user: Box<str>,
    /// The user's role; "" for a command.
    pub role: Box<str>,
    /// The user's address; "" for a command.
    pub address: Box<str>,
    /// The id of the request.
    pub request_id: Box<str>,
    /// The kind of action.
    pub action: Box<str>,
    /// What the action changes.
    pub target: Box<str>,
    /// The request's parameters: a JSON object with string values.
    #[serde(serialize_with = "serialize_members")]
    pub parameters: Box<str>,
    /// The version of the rules that were in force.
    pub rules_version: Box<str>,
    /// The key of the form that was sent.
    #[serde(skip)]
    pub idempotency_key: Option<IdempotencyKey>,
    /// Its end; `None`: unfinished.
    pub end: Option<ActionEnd>,
}

impl ActionRecord {
    /// The kind of action that queues one callback again.
    pub const RESEND_CALLBACK: &str = "callbacks.resend";
    /// The kind of action that queues failed callbacks again.
    pub const RESEND_FAILED: &str = "callbacks.resend_failed";
    /// The kind of action that reserves ids of the old v1 service.
    pub const IMPORT_IDS: &str = "ids.import";
    /// The kind of action that sends a sample to a receiver.
    pub const SAMPLE: &str = "callbacks.sample";
    /// The kind of action that writes rows of the store out.
    pub const EXPORT: &str = "export";
    /// The kind of action that loads the rules from disk.
    pub const RELOAD: &str = "rules.reload";
    /// The kind of action that has a provider called again.
    pub const ASK: &str = "operations.ask";
    /// The kind of action that sets the result of an operation.
    pub const RESOLVE: &str = "operations.resolve";
    /// The kind of action that confirms a resolution.
    pub const CONFIRM: &str = "operations.confirm";
    /// The kind of action that acknowledges a contradicting report.
    pub const ACKNOWLEDGE: &str = "operations.acknowledge";
    /// The kind of action that makes pending callbacks due.
    pub const RESEND_PENDING: &str = "callbacks.resend_pending";
    /// The kind of action that wraps the store's data keys with another key.
    pub const REKEY: &str = "store.rekey";
    /// The kind of action that adopts a restored backup.
    pub const ADOPT: &str = "store.adopt";
    /// The kind of action that finishes the upgrade of the store.
    pub const FINISH_UPGRADE: &str = "store.finish_upgrade";

    /// The most bytes of a text other than the outcome, and of the value of a parameter.
    pub const MAX_TEXT: usize = 256;
    /// The most bytes of an id that a merchant chose: 255 characters of any script are whole.
    pub const MAX_ID: usize = 1024;
    /// The most bytes of the reason for a resolution: 500 characters of any script are whole.
    pub const MAX_REASON: usize = 2000;
    /// The most bytes of an outcome.
    pub const MAX_OUTCOME: usize = 1024;
    /// The most parameters.
    pub const MAX_PARAMETERS: usize = 16;

    /// Reports whether the action's target, or its parameter of that name, is this merchant.
    pub(super) fn names_merchant(&self, merchant: &MerchantId) -> bool {
        let parameters: BTreeMap<String, String> = serde_json::from_str(&self.parameters).unwrap_or_default();
        let named = parameters.get("merchant").map(String::as_str);
        *self.target == *merchant.as_str() || named == Some(merchant.as_str())
    }
}

/// Serializes stored JSON as an object instead of a string.
fn serialize_members<S: Serializer>(json: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serde_json::from_str::<BTreeMap<String, String>>(json).unwrap_or_default().serialize(serializer)
}

/// The end of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionEnd {
    /// When it ended.
    pub at: UnixMillis,
    /// The result, as text for people.
    pub outcome: Box<str>,
}

impl Serialize for ActionEnd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut end = serializer.serialize_struct("ActionEnd", 3)?;
        end.serialize_field("at", &self.at)?;
        end.serialize_field("outcome", &self.outcome)?;
        end.serialize_field("is_failure", &self.is_failure())?;
        end.end()
    }
}

impl ActionEnd {
    /// Reports whether the action failed, which its outcome states first.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        self.outcome.starts_with("failed") || self.outcome.starts_with("not ")
    }

    /// Joins two columns, which are NULL while the action is unfinished.
    ///
    /// # Errors
    /// Only one of them is NULL.
    pub(super) fn of_columns(ended_at: Option<i64>, outcome: Option<Box<str>>) -> Result<Option<Self>, CorruptRow> {
        match (ended_at, outcome) {
            (None, None) => Ok(None),
            (Some(at), Some(outcome)) => Ok(Some(Self { at: UnixMillis(at), outcome })),
            (None, Some(_)) | (Some(_), None) => Err(CorruptRow::new("ended_at")),
        }
    }
}

/// The outcome of beginning an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BeginOutcome {
    /// The row is on disk: the action may take effect.
    New(ActionId),
    /// The form was sent before: nothing was written. Holds the row of the first submission.
    Repeated(Box<ActionRecord>),
}

/// Selects actions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActionQuery {
    /// Only of this user.
    pub user: Option<Box<str>>,
    /// Only of this kind.
    pub action: Option<Box<str>>,
    /// Begun at or after this time.
    pub since: Option<UnixMillis>,
    /// Begun at or before this time.
    pub until: Option<UnixMillis>,
    /// Only actions older than this one.
    pub after: Option<ActionId>,
    /// The most actions to return.
    pub limit: usize,
}

impl ActionQuery {
    /// Cuts the filters' texts as stored texts are, so that they match.
    fn bounded(self) -> Self {
        let text = |text: Box<str>| bounded(&text, ActionRecord::MAX_TEXT);
        Self { user: self.user.map(text), action: self.action.map(text), ..self }
    }

    /// Returns the least and the greatest id that match: an id contains the millisecond in which its action
    /// began.
    pub(super) fn id_range(&self) -> (i64, i64) {
        let first = self.since.map_or(i64::MIN, |since| TransactionId::first_of(since).to_stored());
        let last = self.until.map_or(i64::MAX, |until| TransactionId::last_of(until).to_stored());
        (first, self.after.map_or(last, |after| last.min(after.0.saturating_sub(1))))
    }
}

/// Returns a text as it is stored: without U+0000, which PostgreSQL cannot store, and with at most `most` bytes.
fn bounded(text: &str, most: usize) -> Box<str> {
    const CUT: &str = "…";
    let text = text.replace('\0', "\u{fffd}");
    if text.len() <= most {
        return text.into();
    }
    let kept = text.get(..text.floor_char_boundary(most - CUT.len())).unwrap_or_default();
    format!("{kept}{CUT}").into()
}

/// Selects actions, in the order of [`ActionRecord::read`].
macro_rules! select_actions {
    ($rest:expr) => {
        concat!(
            "SELECT id, began_at, ended_at, user_name, role, address, request_id, action, target, parameters, \
             rules_version, idempotency_key, outcome FROM actions ",
            $rest
        )
    };
}
pub(super) use select_actions;

impl ActionRecord {
    pub(super) fn read(row: &dyn Columns) -> Result<Self, CorruptRow> {
        Ok(Self {
            id: ActionId(row.get(0)?),
            at: row.get(1)?,
            user: row.get(3)?,
            role: row.get(4)?,
            address: row.get(5)?,
            request_id: row.get(6)?,
            action: row.get(7)?,
            target: row.get(8)?,
            parameters: row.get(9)?,
            rules_version: row.get(10)?,
            idempotency_key: row.get::<Option<[u8; 16]>>(11)?.map(IdempotencyKey),
            end: ActionEnd::of_columns(row.get(2)?, row.get(12)?)?,
        })
    }
}

/// Waits for a transaction that inserts the same idempotency key.
const INSERT: Sql = sql!(
    "INSERT INTO actions (id, began_at, user_name, role, address, request_id, action, target, parameters, rules_version, \
     idempotency_key) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT DO NOTHING"
);

/// The actions that have an id or an idempotency key.
const SAME: Sql = sql!(select_actions!("WHERE id = ?1 OR idempotency_key = ?2"));

/// Inserts an action. Returns `None` if its id is taken.
async fn begin<T: Transaction>(tx: &T, new: &ActionRecord) -> Result<Option<BeginOutcome>, T::Error> {
    let key = new.idempotency_key.as_ref().map(|IdempotencyKey(key)| key.as_slice());
    let columns = params![
        new.id.0,
        new.at,
        &new.user,
        &new.role,
        &new.address,
        &new.request_id,
        &new.action,
        &new.target,
        &new.parameters,
        &new.rules_version,
        key,
    ];
    if tx.execute(INSERT, &columns).await? == 1 {
        return Ok(Some(BeginOutcome::New(new.id)));
    }
    let same = tx.query(SAME, &params![new.id.0, key], ActionRecord::read).await?;
    Ok(match same.into_iter().max_by_key(|row| row.idempotency_key == new.idempotency_key) {
        // An earlier attempt of this transaction was committed, but its confirmation was lost.
        Some(row) if row.id == new.id && row.request_id == new.request_id => Some(BeginOutcome::New(new.id)),
        Some(row) if row.idempotency_key.is_some() && row.idempotency_key == new.idempotency_key => {
            Some(BeginOutcome::Repeated(Box::new(row)))
        }
        Some(_) | None => None,
    })
}

const FINISH: Sql = sql!("UPDATE actions SET ended_at = ?2, outcome = ?3 WHERE id = ?1 AND ended_at IS NULL");

/// Writes the end of an unfinished action.
async fn finish<T: Transaction>(tx: &T, id: ActionId, end: &ActionEnd) -> Result<(), T::Error> {
    tx.execute(FINISH, &params![id.0, end.at, &end.outcome]).await.map(drop)
}

/// Selects a page of the actions that match the filters. SQLite is given the index. PostgreSQL compares and sorts by the
/// filters' columns too, since it would otherwise follow the primary key and skip other users' actions.
macro_rules! page {
    ($index:literal, $filter:literal, $keys:literal, $values:literal, $order:literal) => {
        sql!(
            sqlite: select_actions!(concat!(
                "INDEXED BY ", $index, " WHERE ", $filter, " AND id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT ?3"
            )),
            postgres: select_actions!(concat!(
                "WHERE (", $keys, ", id) >= (", $values, ", ?1) AND (", $keys, ", id) <= (", $values, ", ?2) ORDER BY ",
                $order, ", id DESC LIMIT ?3"
            )),
        )
    };
}

/// Select a page of actions. Parameters: the least and the greatest id, the limit, and the filters in the order of the
/// name.
pub(super) const ALL: Sql = sql!(select_actions!("WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT ?3"));
pub(super) const OF_USER: Sql = page!("actions_by_user", "user_name = ?4", "user_name", "?4", "user_name DESC");
pub(super) const OF_ACTION: Sql = page!("actions_by_action", "action = ?4", "action", "?4", "action DESC");
pub(super) const OF_USER_AND_ACTION: Sql = page!(
    "actions_by_both",
    "user_name = ?4 AND action = ?5",
    "user_name, action",
    "?4, ?5",
    "user_name DESC, action DESC"
);

/// Reads a page of actions, newest first.
async fn page<T: Transaction>(tx: &T, query: &ActionQuery) -> Result<Vec<ActionRecord>, T::Error> {
    let sql = match (&query.user, &query.action) {
        (None, None) => ALL,
        (Some(_), None) => OF_USER,
        (None, Some(_)) => OF_ACTION,
        (Some(_), Some(_)) => OF_USER_AND_ACTION,
    };
    let (first, last) = query.id_range();
    let parameters = params![first, last, i64::try_from(query.limit).unwrap_or(i64::MAX)];
    let filters = [&query.user, &query.action].into_iter().flatten().map(Parameter::from);
    let parameters: Vec<_> = parameters.into_iter().chain(filters).collect();
    tx.query(sql, &parameters, ActionRecord::read).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemRandomness;

    #[test]
    fn texts_are_bounded() {
        assert_eq!(&*bounded("a\0b", 5), "a\u{fffd}b");
        assert_eq!(&*bounded("abcdef", 6), "abcdef");
        assert_eq!(&*bounded("abcdefg", 6), "abc…");
        assert_eq!(&*bounded("aбвгд", 6), "aб…");
    }

    #[test]
    fn idempotency_keys_round_trip() {
        let key = IdempotencyKey::draw(&SystemRandomness::default());
        assert_eq!(IdempotencyKey::parse(&key.to_string()), Some(key));
        let scopes: [(_, &[_]); 6] = [
            (("a", "b", "c"), &[("d", "e")]),
            (("ab", "", "c"), &[("d", "e")]),
            (("a", "b", ""), &[("d", "e")]),
            (("a", "b", "c"), &[]),
            (("a", "b", "c"), &[("d", "f")]),
            (("a", "b", "c"), &[("de", "")]),
        ];
        let keys = scopes.map(|(scope, values)| key.scoped(scope, values.iter().copied()));
        assert!(keys.iter().all(|one| keys.iter().filter(|other| *other == one).count() == 1), "{keys:?}");
        assert_eq!(keys[0], key.scoped(("a", "b", "c"), [("d", "e")]));
        for wrong in ["", "00", "0g000000000000000000000000000000", "000000000000000000000000000000000"] {
            assert_eq!(IdempotencyKey::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ids_are_within_their_times() {
        let at = UnixMillis(1_790_000_000_000);
        let ActionId(id) = ActionId::draw(at, &SystemRandomness::default());
        let query = ActionQuery { since: Some(at), until: Some(at), ..ActionQuery::default() };
        let (first, last) = query.id_range();
        assert!((first..=last).contains(&id));
        assert_eq!(last - first, (1 << 22) - 1);
        assert_eq!(ActionQuery { after: Some(ActionId(first)), ..query }.id_range(), (first, first - 1));
        assert_eq!(ActionQuery::default().id_range(), (i64::MIN, i64::MAX));
    }

    #[test]
    fn half_an_end_is_corrupt() {
        assert!(ActionEnd::of_columns(Some(1), None).is_err() && ActionEnd::of_columns(None, Some("".into())).is_err());
    }
}
