//! Stores what readiness is decided by (contract section 6): counts of checked creates, and which merchants' old ids were
//! imported completely.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};

use super::backend::{Backend, ReadKind};
use super::rows::{CorruptRow, direction_number, direction_of};
use super::sql::{Parameter, Sql, Transaction, params, sql};
use super::{StoreError, StoreFuture};
use crate::domain::{Direction, Fingerprint, FingerprintInput, FingerprintKey, MerchantId, UnixMillis};

/// What a count counts (contract section 6, "shadow").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CheckClass {
    /// Creates that v2 would accept.
    WouldCreate,
    /// Creates that v2 would refuse.
    WouldRefuse,
    /// Creates for whose check there was no room.
    NotChecked,
    /// Checked creates whose legacy reply shows neither acceptance nor refusal.
    NotCompared,
    /// Creates that legacy accepted and v2 would refuse.
    Blocker,
    /// Creates that legacy refused and v2 would accept.
    Widening,
    /// Creates with a member that translation or the shop's schema leaves out.
    Loss,
}

impl CheckClass {
    /// Returns the word used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WouldCreate => "would_create",
            Self::WouldRefuse => "would_refuse",
            Self::NotChecked => "not_checked",
            Self::NotCompared => "not_compared",
            Self::Blocker => "blocker",
            Self::Widening => "widening",
            Self::Loss => "loss",
        }
    }

    /// Returns the value of `check_counts.class`.
    const fn number(self) -> i64 {
        match self {
            Self::WouldCreate => 0,
            Self::WouldRefuse => 1,
            Self::NotChecked => 2,
            Self::NotCompared => 3,
            Self::Blocker => 4,
            Self::Widening => 5,
            Self::Loss => 6,
        }
    }

    const fn of_number(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::WouldCreate),
            1 => Some(Self::WouldRefuse),
            2 => Some(Self::NotChecked),
            3 => Some(Self::NotCompared),
            4 => Some(Self::Blocker),
            5 => Some(Self::Widening),
            6 => Some(Self::Loss),
            _ => None,
        }
    }
}

/// A count of checked creates of one merchant under one version of its rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckCount {
    /// The merchant.
    pub merchant: MerchantId,
    /// The hash of the rules that the creates were checked by.
    pub rules: Fingerprint,
    /// "" for shops that no rule has.
    pub shop: Box<str>,
    /// The direction of the creates.
    pub direction: Direction,
    /// What is counted.
    pub class: CheckClass,
    /// The v1 member; "" for the first four classes.
    pub member: Box<str>,
    /// Why v2 or legacy refused it; "" for the first four classes.
    pub reason: Box<str>,
    /// The file of the rule to change, for a blocker; else "".
    pub file: Box<str>,
    /// The key of that rule in the file, for a blocker; else "".
    pub key: Box<str>,
    /// How many creates.
    pub count: u64,
    /// When the first of them was checked.
    pub since: UnixMillis,
    /// Up to [`CheckCount::MAX_SAMPLES`] different samples: each a JSON text of names, lengths and shapes.
    pub samples: Vec<Box<str>>,
}

impl CheckCount {
    /// The most samples stored for a count.
    pub const MAX_SAMPLES: usize = 5;
}

/// Counts that nothing was added to for this long, in milliseconds, are deleted with the next ones of their merchant
/// under other rules. Until then, nodes may have different rules.
const KEPT_MILLIS: i64 = 3_600_000;

/// A count as a row.
#[derive(Debug)]
pub(super) struct CheckRow {
    pub(super) merchant: MerchantId,
    pub(super) rules: Fingerprint,
    /// The keyed hash of all that identifies the count: texts of any length have a key of one length.
    pub(super) id: Fingerprint,
    pub(super) columns: CheckColumns,
}

/// The columns of a count that do not belong to the key.
#[derive(Debug)]
pub(super) struct CheckColumns {
    pub(super) shop: Box<str>,
    pub(super) direction: i64,
    pub(super) class: i64,
    pub(super) member: Box<str>,
    pub(super) reason: Box<str>,
    pub(super) file: Box<str>,
    pub(super) key: Box<str>,
    pub(super) count: i64,
    pub(super) since: i64,
    /// A JSON array.
    pub(super) samples: String,
}

impl CheckRow {
    /// Makes the rows of counts, one for each id, in the order of ids.
    pub(super) fn of_all(counts: Vec<CheckCount>, key: &FingerprintKey) -> Vec<Self> {
        let mut by_id = BTreeMap::new();
        for mut count in counts {
            for text in [&mut count.shop, &mut count.member, &mut count.reason, &mut count.file, &mut count.key] {
                // PostgreSQL cannot store U+0000, which a merchant's text may contain.
                *text = text.replace('\0', "\u{fffd}").into();
            }
            let id = id(&count, key);
            match by_id.entry(id.0) {
                Entry::Vacant(vacant) => {
                    count.samples = merged(&[], count.samples);
                    vacant.insert((id, count));
                }
                Entry::Occupied(mut occupied) => {
                    let (_, first) = occupied.get_mut();
                    first.count = first.count.saturating_add(count.count);
                    first.since = first.since.min(count.since);
                    first.samples = merged(&first.samples, count.samples);
                }
            }
        }
        by_id.into_values().map(|(id, count)| Self::new(id, count)).collect()
    }

    fn new(id: Fingerprint, count: CheckCount) -> Self {
        let columns = CheckColumns {
            shop: count.shop,
            direction: direction_number(count.direction),
            class: count.class.number(),
            member: count.member,
            reason: count.reason,
            file: count.file,
            key: count.key,
            count: i64::try_from(count.count).unwrap_or(i64::MAX),
            since: count.since.0,
            samples: encoded(&count.samples),
        };
        Self { merchant: count.merchant, rules: count.rules, id, columns }
    }
}

fn id(count: &CheckCount, key: &FingerprintKey) -> Fingerprint {
    let mut parts = FingerprintInput::of("check");
    parts.part(count.merchant.as_str().as_bytes());
    parts.part(&count.rules.0);
    parts.part(count.direction.as_str().as_bytes());
    parts.part(count.class.as_str().as_bytes());
    for text in [&count.shop, &count.member, &count.reason, &count.file, &count.key] {
        parts.part(text.as_bytes());
    }
    key.fingerprint(&parts)
}

impl CheckColumns {
    fn decode(self, merchant: &MerchantId, rules: Fingerprint) -> Result<CheckCount, CorruptRow> {
        Ok(CheckCount {
            merchant: merchant.clone(),
            rules,
            shop: self.shop,
            direction: direction_of(self.direction).ok_or(CorruptRow::new("direction"))?,
            class: CheckClass::of_number(self.class).ok_or(CorruptRow::new("class"))?,
            member: self.member,
            reason: self.reason,
            file: self.file,
            key: self.key,
            count: u64::try_from(self.count).map_err(|_| CorruptRow::new("count"))?,
            since: UnixMillis(self.since),
            samples: decoded(&self.samples)?,
        })
    }
}

/// Decodes the counts of a merchant under some rules, and sorts them.
///
/// # Errors
/// A column contains an invalid value.
pub(super) fn decode_all(
    rows: Vec<CheckColumns>,
    merchant: &MerchantId,
    rules: Fingerprint,
) -> Result<Vec<CheckCount>, StoreError> {
    let counts = rows.into_iter().map(|row| row.decode(merchant, rules)).collect::<Result<Vec<_>, _>>();
    let mut counts = counts.map_err(|corrupt| corrupt.of(format_args!("a count of checks of {merchant}")))?;
    counts.sort_by(|one, other| place(one).cmp(&place(other)));
    Ok(counts)
}

/// Returns what counts are sorted by.
fn place(count: &CheckCount) -> impl Ord {
    let CheckCount { shop, direction, class, member, reason, file, key, .. } = count;
    (shop, direction, class, Reverse(count.count), member, reason, file, key)
}

fn encoded(samples: &[Box<str>]) -> String {
    samples.iter().map(AsRef::as_ref).collect::<serde_json::Value>().to_string()
}

fn decoded(json: &str) -> Result<Vec<Box<str>>, CorruptRow> {
    serde_json::from_str(json).map_err(|_| CorruptRow::new("samples"))
}

/// Adds samples to stored ones, as long as there is room and they differ.
fn merged(stored: &[Box<str>], given: Vec<Box<str>>) -> Vec<Box<str>> {
    let mut samples = stored.to_vec();
    for sample in given {
        if samples.len() < CheckCount::MAX_SAMPLES && !samples.contains(&sample) {
            samples.push(sample);
        }
    }
    samples
}

/// The counts of checked creates.
pub trait CheckCounts: Send + Sync + 'static {
    /// Adds counts of checked creates to the stored ones in one commit: the sum of the counts, the earliest `since`,
    /// and different samples up to [`CheckCount::MAX_SAMPLES`]. Also deletes the counts of the same merchants under
    /// rules that nothing was added to for an hour before `at`. Counts may be added twice when a database server is
    /// lost during the commit.
    fn add_check_counts(&self, counts: Vec<CheckCount>, at: UnixMillis) -> StoreFuture<'_, ()>;

    /// Returns the counts of a merchant under the rules with a hash, sorted by shop, direction, class, count
    /// (descending), member and reason.
    fn check_counts<'a>(&'a self, merchant: &'a MerchantId, rules: Fingerprint) -> StoreFuture<'a, Vec<CheckCount>>;
}

impl<B: Backend> CheckCounts for B {
    fn add_check_counts(&self, counts: Vec<CheckCount>, at: UnixMillis) -> StoreFuture<'_, ()> {
        let given = CheckRow::of_all(counts, self.vault().fingerprint_key());
        Box::pin(async move {
            if given.is_empty() {
                return Ok(());
            }
            self.transact(async move |tx| add(tx, &given, at).await).await
        })
    }

    fn check_counts<'a>(&'a self, merchant: &'a MerchantId, rules: Fingerprint) -> StoreFuture<'a, Vec<CheckCount>> {
        Box::pin(async move {
            let of = merchant.clone();
            let read = self.read(ReadKind::Rows, async move |tx| of_rules(tx, &of, rules).await).await?;
            decode_all(read, merchant, rules)
        })
    }
}

const ADD: Sql = sql!(
    "INSERT INTO check_counts (merchant, rules, id, shop, direction, class, member, reason, file, key, count, since, \
     updated_at, samples) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) \
     ON CONFLICT (merchant, rules, id) DO UPDATE SET count = check_counts.count + excluded.count, \
     since = CASE WHEN check_counts.since < excluded.since THEN check_counts.since ELSE excluded.since END, \
     updated_at = CASE WHEN check_counts.updated_at > excluded.updated_at THEN check_counts.updated_at \
     ELSE excluded.updated_at END RETURNING samples"
);

const SET_SAMPLES: Sql = sql!("UPDATE check_counts SET samples = ?4 WHERE merchant = ?1 AND rules = ?2 AND id = ?3");

const DELETE: Sql = sql!(
    "DELETE FROM check_counts WHERE merchant = ?1 AND rules IN \
     (SELECT rules FROM check_counts WHERE merchant = ?1 GROUP BY rules HAVING max(updated_at) < ?2)"
);

/// Adds counts to those with the same ids, and deletes those of their merchants under rules that nothing was added to for an
/// hour. Keeps the earlier `since`, the later time of change, and both samples. The ids are different and ascend, so that two
/// transactions wait for each other in one direction only.
pub(super) async fn add<T: Transaction>(tx: &T, given: &[CheckRow], at: UnixMillis) -> Result<(), T::Error> {
    let sets: Vec<_> = given.iter().map(|row| row.columns(at)).collect();
    let stored: Vec<Vec<String>> = tx.query_each(ADD, &sets, |row| row.get(0)).await?;
    for (row, samples) in given.iter().zip(stored.concat()) {
        if samples == row.columns.samples {
            continue;
        }
        let all = encoded(&merged(&decoded(&samples)?, decoded(&row.columns.samples)?));
        if all != samples {
            tx.execute(SET_SAMPLES, &params![&row.merchant, &row.rules, &row.id, &all]).await?;
        }
    }
    let (mut done, until) = (HashSet::new(), UnixMillis(at.0.saturating_sub(KEPT_MILLIS)));
    for CheckRow { merchant, .. } in given {
        if done.insert(merchant) {
            tx.execute(DELETE, &params![merchant, until]).await?;
        }
    }
    Ok(())
}

impl CheckRow {
    fn columns(&self, at: UnixMillis) -> [Parameter<'_>; 14] {
        let CheckColumns { shop, direction, class, member, reason, file, key, count, since, samples } = &self.columns;
        params![
            &self.merchant,
            &self.rules,
            &self.id,
            shop,
            *direction,
            *class,
            member,
            reason,
            file,
            key,
            *count,
            *since,
            at,
            samples,
        ]
    }
}

pub(super) const OF_RULES: Sql = sql!(
    "SELECT shop, direction, class, member, reason, file, key, count, since, samples FROM check_counts \
     WHERE merchant = ?1 AND rules = ?2"
);

/// Reads the counts of checked creates of a merchant under the rules with a hash.
pub(super) async fn of_rules<T: Transaction>(
    tx: &T,
    merchant: &MerchantId,
    rules: Fingerprint,
) -> Result<Vec<CheckColumns>, T::Error> {
    tx.query(OF_RULES, &params![merchant, &rules], |row| {
        Ok(CheckColumns {
            shop: row.get(0)?,
            direction: row.get(1)?,
            class: row.get(2)?,
            member: row.get(3)?,
            reason: row.get(4)?,
            file: row.get(5)?,
            key: row.get(6)?,
            count: row.get(7)?,
            since: row.get(8)?,
            samples: row.get(9)?,
        })
    })
    .await
}

const MARK_COMPLETE: Sql = sql!(
    "INSERT INTO complete_ids (merchant, direction, complete_at) VALUES (?1, ?2, ?3) \
     ON CONFLICT (merchant, direction) DO UPDATE SET complete_at = excluded.complete_at"
);

/// Marks a merchant's ids of a direction as complete.
pub(super) async fn mark_complete<T: Transaction>(
    tx: &T,
    merchant: &MerchantId,
    direction: Direction,
    at: UnixMillis,
) -> Result<(), T::Error> {
    tx.execute(MARK_COMPLETE, &params![merchant, direction_number(direction), at]).await.map(drop)
}

const MARK_INCOMPLETE: Sql = sql!("DELETE FROM complete_ids WHERE merchant = ?1 AND direction = ?2");

/// Removes that mark, if it is there.
pub(super) async fn mark_incomplete<T: Transaction>(
    tx: &T,
    merchant: &MerchantId,
    direction: Direction,
) -> Result<(), T::Error> {
    tx.execute(MARK_INCOMPLETE, &params![merchant, direction_number(direction)]).await.map(drop)
}

const MARK_ALL_INCOMPLETE: Sql = sql!("DELETE FROM complete_ids WHERE merchant >= ''");

/// Removes the marks of all merchants.
pub(super) async fn mark_all_incomplete<T: Transaction>(tx: &T) -> Result<(), T::Error> {
    tx.execute(MARK_ALL_INCOMPLETE, &[]).await.map(drop)
}

pub(super) const IS_COMPLETE: Sql =
    sql!("SELECT EXISTS (SELECT 1 FROM complete_ids WHERE merchant = ?1 AND direction = ?2)");

/// Reports whether a merchant's ids of a direction are marked as complete.
pub(super) async fn is_complete<T: Transaction>(
    tx: &T,
    merchant: &MerchantId,
    direction: Direction,
) -> Result<bool, T::Error> {
    tx.query_value(IS_COMPLETE, &params![merchant, direction_number(direction)]).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_round_trip() {
        let mut words = HashSet::new();
        for number in 0..7 {
            let class = CheckClass::of_number(number).unwrap();
            assert_eq!(class.number(), number);
            words.insert(class.as_str());
        }
        assert_eq!(words.len(), 7);
        assert_eq!((CheckClass::of_number(7), CheckClass::of_number(-1)), (None, None));
    }

    #[test]
    fn counts_with_invalid_columns_are_reported() {
        let acme = MerchantId::new("acme").unwrap();
        let text = || Box::<str>::default();
        let columns = |direction, class, count, samples: &str| CheckColumns {
            shop: text(),
            direction,
            class,
            member: text(),
            reason: text(),
            file: text(),
            key: text(),
            count,
            since: 0,
            samples: samples.to_owned(),
        };
        let decode = |row| decode_all(vec![row], &acme, Fingerprint([0; 16]));
        assert_eq!(decode(columns(0, 6, 1, "[]")).unwrap().len(), 1);
        for (row, column) in [
            (columns(2, 6, 1, "[]"), "direction"),
            (columns(0, 7, 1, "[]"), "class"),
            (columns(0, 6, -1, "[]"), "count"),
            (columns(0, 6, 1, "[1]"), "samples"),
        ] {
            let StoreError::Corrupt(stated) = decode(row).unwrap_err() else { panic!("it is invalid") };
            assert_eq!(stated, format!("a count of checks of acme: the column {column} is invalid"));
        }
    }
}
