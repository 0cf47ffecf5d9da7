//! What readiness is decided by (contract section 6): counts of creates that were checked without being made, and marks
//! of the merchants whose lists of old ids were imported completely.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::StoreError;
use super::rows::{CorruptRow, Transaction, direction_number, direction_of};
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
            direction: direction_of(self.direction).ok_or(CorruptRow("direction"))?,
            class: CheckClass::of_number(self.class).ok_or(CorruptRow("class"))?,
            member: self.member,
            reason: self.reason,
            file: self.file,
            key: self.key,
            count: u64::try_from(self.count).map_err(|_| CorruptRow("count"))?,
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
    let mut counts = counts.map_err(|CorruptRow(column)| {
        StoreError::Corrupt(format!("a count of checks of {merchant}: the column {column} is invalid"))
    })?;
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
    serde_json::from_str(json).map_err(|_| CorruptRow("samples"))
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

/// The row operations on counts of checks and on marks of completeness.
pub(super) trait CheckRows: Transaction {
    /// Adds each count to the stored one with its id, or inserts it, and locks it. Keeps the earlier `since`, the later
    /// time of change, and the stored samples. The rows have different ids, which ascend. Returns the samples that are
    /// stored now, by id.
    async fn add_checks(
        &mut self,
        given: &[CheckRow],
        at: UnixMillis,
    ) -> Result<HashMap<Fingerprint, String>, Self::Error>;

    /// Replaces the samples of a count.
    async fn set_samples(&mut self, of: &CheckRow, samples: &str) -> Result<(), Self::Error>;

    /// Deletes a merchant's counts under those rules whose counts were all changed before `until`.
    async fn delete_checks(&mut self, merchant: &MerchantId, until: UnixMillis) -> Result<(), Self::Error>;

    /// Marks a merchant's ids of a direction as complete.
    async fn mark_complete(
        &mut self,
        merchant: &MerchantId,
        direction: Direction,
        at: UnixMillis,
    ) -> Result<(), Self::Error>;

    /// Removes that mark, if it is there.
    async fn mark_incomplete(&mut self, merchant: &MerchantId, direction: Direction) -> Result<(), Self::Error>;
}

/// Adds counts, and deletes those of their merchants under rules that nothing was added to for an hour.
pub(super) async fn add<R: CheckRows>(rows: &mut R, given: &[CheckRow], at: UnixMillis) -> Result<(), R::Error> {
    let stored = rows.add_checks(given, at).await?;
    for row in given {
        let Some(samples) = stored.get(&row.id).filter(|samples| **samples != row.columns.samples) else { continue };
        let all = encoded(&merged(&decoded(samples)?, decoded(&row.columns.samples)?));
        if all != *samples {
            rows.set_samples(row, &all).await?;
        }
    }
    let (mut done, until) = (HashSet::new(), UnixMillis(at.0.saturating_sub(KEPT_MILLIS)));
    for CheckRow { merchant, .. } in given {
        if done.insert(merchant) {
            rows.delete_checks(merchant, until).await?;
        }
    }
    Ok(())
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
