//! Formats of stores: which releases can serve which stores (contract section 15).
//!
//! A store has a row for each format that it was given. A release serves stores of its own format and of the one before. An
//! upgrade has three states:
//!
//! ```text
//! added     the release has added what it needs; the release before serves the store, too
//! locked    `store finish-upgrade` has locked the release before out: its gateways leave, and none starts
//! narrowed  what only the release before needed was removed
//! ```
//!
//! Each row has a hash of what the release does to reach the format. A store with other hashes was made by an unreleased
//! build, whose schema or fingerprints this release would misread.

use std::path::Path;

use serde::Serialize;

use super::OpenError;
use super::sql::{Columns, CorruptRow, Sql, Transaction, params, sql};
use crate::build_info;
use crate::domain::{FingerprintInput, fingerprint_recipe};

/// The format of this release.
pub const FORMAT: u32 = if cfg!(feature = "next-format") { 2 } else { 1 };

/// The first format. No store can be served by releases of an older one.
pub(super) const FIRST: u32 = 1;

/// The release, as stores name it.
const RELEASE: &str = if cfg!(feature = "next-format") { "next" } else { build_info::VERSION };

/// What a release does to a store of the format before.
#[derive(Debug, Clone, Copy)]
pub(super) struct FormatSteps {
    /// The statements that run when it first opens the store. They only add.
    pub(super) adds: &'static str,
    /// The statements that run when the upgrade is finished.
    pub(super) narrows: &'static str,
}

/// The state of an upgrade to a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum UpgradeState {
    Added,
    Locked,
    Narrowed,
}

impl UpgradeState {
    const fn number(self) -> i64 {
        match self {
            Self::Added => 0,
            Self::Locked => 1,
            Self::Narrowed => 2,
        }
    }

    const fn of_number(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::Added),
            1 => Some(Self::Locked),
            2 => Some(Self::Narrowed),
            _ => None,
        }
    }
}

/// The formats that a store names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoreFormat {
    /// Its format: that of the newest release that has served it.
    pub format: u32,
    /// The oldest format whose releases can serve it.
    pub readable_from: u32,
    /// The release that gave it its format.
    pub release: String,
}

#[derive(Debug)]
struct FormatRow {
    format: u32,
    state: UpgradeState,
    release: String,
    hash: Vec<u8>,
}

impl FormatRow {
    fn read(row: &dyn Columns) -> Result<Self, CorruptRow> {
        let state = UpgradeState::of_number(row.get(1)?).ok_or_else(|| row.invalid(1))?;
        Ok(Self { format: row.get(0)?, state, release: row.get(2)?, hash: row.get(3)? })
    }
}

/// The formats of a store, oldest first. Empty: there is no store.
#[derive(Debug, Default)]
pub(super) struct Formats(Vec<FormatRow>);

/// Checks that a release with these formats can use a store.
pub(super) type FormatCheck = fn(&Formats, &[FormatSteps], &Path) -> Result<(), OpenError>;

impl Formats {
    /// Returns what the store names; `None`: there is no store.
    pub(super) fn stated(&self) -> Option<StoreFormat> {
        let newest = self.0.last()?;
        let locked = self.0.iter().rfind(|row| row.state > UpgradeState::Added);
        let readable_from = locked.map_or(FIRST, |row| row.format);
        Some(StoreFormat { format: newest.format, readable_from, release: newest.release.clone() })
    }

    /// Returns how many formats the store was given.
    pub(super) const fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the steps that were run to make the store what it is, of those that a release knows.
    pub(super) fn steps_taken(&self, known: &[FormatSteps]) -> Vec<&'static str> {
        let taken = |(row, steps): (&FormatRow, &FormatSteps)| {
            let narrows = (row.state == UpgradeState::Narrowed).then_some(steps.narrows);
            [Some(steps.adds), narrows].into_iter().flatten()
        };
        self.0.iter().zip(known).flat_map(|pair| taken(pair).collect::<Vec<_>>()).collect()
    }

    /// Checks that a release with the formats `known` can serve the store, once it has added what is missing.
    ///
    /// # Errors
    /// The store is too new or too old, its last upgrade is not finished, or an unreleased build made it.
    pub(super) fn require_served(&self, known: &[FormatSteps], store: &Path) -> Result<(), OpenError> {
        let Some(StoreFormat { format, readable_from, .. }) = self.stated() else { return Ok(()) };
        let path = || store.to_owned();
        if !self.were_released(known) {
            return Err(OpenError::OtherBuild { path: path() });
        }
        let own = number(known.len());
        if readable_from > own {
            return Err(OpenError::LockedOut { path: path(), format, readable_from, own });
        }
        if format + 1 < own {
            return Err(OpenError::TooOld { path: path(), format, own });
        }
        if format < own { self.require_narrowed(store) } else { Ok(()) }
    }

    /// Checks that there is a store: as [`Formats::require_served`].
    ///
    /// # Errors
    /// As there; also if there is no store.
    pub(super) fn require_present(&self, known: &[FormatSteps], store: &Path) -> Result<(), OpenError> {
        if self.count() == 0 {
            Err(OpenError::Missing { path: store.into() })
        } else {
            self.require_served(known, store)
        }
    }

    /// Checks that a tool can use the store: as [`Formats::require_present`], and nothing has to be added.
    ///
    /// # Errors
    /// As there; also if it was not upgraded yet.
    pub(super) fn require_upgraded(&self, known: &[FormatSteps], store: &Path) -> Result<(), OpenError> {
        self.require_present(known, store)?;
        let (format, own) = (number(self.count()), number(known.len()));
        if format < own { Err(OpenError::NotUpgraded { path: store.into(), format, own }) } else { Ok(()) }
    }

    /// Checks that a copy by a release with the formats `known` is complete.
    ///
    /// # Errors
    /// As [`Formats::require_upgraded`]; also if a newer release has added to the store, or its upgrade is not finished.
    pub(super) fn require_copied(&self, known: &[FormatSteps], store: &Path) -> Result<(), OpenError> {
        self.require_upgraded(known, store)?;
        let own = number(known.len());
        match self.stated() {
            Some(StoreFormat { format, .. }) if format > own => {
                Err(OpenError::NotCopied { path: store.into(), format, own })
            }
            _ => self.require_narrowed(store),
        }
    }

    fn require_narrowed(&self, store: &Path) -> Result<(), OpenError> {
        match self.0.last() {
            Some(FormatRow { format, state: UpgradeState::Added | UpgradeState::Locked, .. }) => {
                Err(OpenError::UpgradeUnfinished { path: store.into(), format: *format })
            }
            _ => Ok(()),
        }
    }

    /// Reports whether releases made the store, as far as a release with the formats `known` can tell.
    fn were_released(&self, known: &[FormatSteps]) -> bool {
        let of_known = |(row, count): (&FormatRow, usize)| {
            let steps = known.get(..count);
            row.format == number(count) && steps.is_none_or(|steps| row.hash == hash(steps))
        };
        !self.0.is_empty() && self.0.iter().zip(1..).all(of_known)
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Returns the hash of a format: of the steps up to it, and of the recipe of fingerprints.
fn hash(steps: &[FormatSteps]) -> [u8; 16] {
    let mut input = FingerprintInput::of("format of a store");
    for FormatSteps { adds, narrows } in steps {
        input.part(adds.as_bytes());
        input.part(narrows.as_bytes());
    }
    input.part(&fingerprint_recipe().0);
    input.unkeyed().0
}

/// Reads the formats of a store.
///
/// # Errors
/// The database fails, or a row is invalid.
pub(super) async fn load<T: Transaction>(tx: &T) -> Result<Formats, T::Error> {
    const LOAD: Sql = sql!("SELECT format, state, release, hash FROM paybridge_formats ORDER BY format");
    tx.query(LOAD, &[], FormatRow::read).await.map(Formats)
}

/// Notes that the last of `steps` was run. A new store has no older releases, so both parts of it were.
///
/// # Errors
/// The database fails.
pub(super) async fn note_added<T: Transaction>(tx: &T, steps: &[FormatSteps], is_new: bool) -> Result<(), T::Error> {
    const ADD: Sql = sql!("INSERT INTO paybridge_formats (format, state, release, hash) VALUES (?1, ?2, ?3, ?4)");
    let state = if is_new { UpgradeState::Narrowed } else { UpgradeState::Added };
    let format = i64::from(number(steps.len()));
    tx.execute(ADD, &params![format, state.number(), RELEASE, &hash(steps)[..]]).await.map(drop)
}

/// Logs that a store that was given `count` formats was added to.
pub(super) fn log_added(count: usize, steps: &[FormatSteps]) {
    if (1..steps.len()).contains(&count) {
        tracing::info!(
            from = count,
            to = steps.len(),
            "the store was upgraded; releases of the format before can serve it until paybridge store finish-upgrade"
        );
    }
}

/// Reads the oldest format whose releases can serve the store.
///
/// # Errors
/// The database fails.
pub(super) async fn oldest<T: Transaction>(tx: &T) -> Result<u32, T::Error> {
    Ok(tx.query_opt(OLDEST, &[], |row| row.get(0)).await?.unwrap_or(FIRST))
}

/// The query of [`oldest`].
pub(super) const OLDEST: Sql =
    sql!("SELECT format FROM paybridge_formats WHERE state > 0 ORDER BY format DESC LIMIT 1");

/// Locks releases out that are older than this one. Returns `false` if the upgrade was finished before.
///
/// # Errors
/// The database fails.
pub(super) async fn lock_out<T: Transaction>(tx: &T) -> Result<bool, T::Error> {
    const LOCK: Sql = sql!("UPDATE paybridge_formats SET state = 1 WHERE format = ?1 AND state < 2");
    Ok(tx.execute(LOCK, &params![i64::from(FORMAT)]).await? > 0)
}

/// Notes that the store was narrowed. Returns `false` if older releases are not locked out.
///
/// # Errors
/// The database fails.
pub(super) async fn note_narrowed<T: Transaction>(tx: &T) -> Result<bool, T::Error> {
    const NARROW: Sql = sql!("UPDATE paybridge_formats SET state = 2 WHERE format = ?1 AND state = 1");
    Ok(tx.execute(NARROW, &params![i64::from(FORMAT)]).await? > 0)
}

/// Returns why this release cannot serve the store any more.
#[must_use]
pub fn locked_out(oldest: u32) -> String {
    format!(
        "a newer release has finished its upgrade of the store: only releases from format {oldest} on can serve it, and this \
         release has format {FORMAT}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: FormatSteps = FormatSteps { adds: "CREATE TABLE one", narrows: "" };
    const TWO: FormatSteps = FormatSteps { adds: "CREATE TABLE two", narrows: "DROP TABLE one" };
    const THREE: FormatSteps = FormatSteps { adds: "CREATE TABLE three", narrows: "" };
    const KNOWN: [FormatSteps; 3] = [ONE, TWO, THREE];

    /// The formats of a store after upgrades, each finished but the last, which is in a state.
    fn formats(count: usize, last: UpgradeState) -> Formats {
        let row = |format: usize| FormatRow {
            format: number(format),
            state: if format == count { last } else { UpgradeState::Narrowed },
            release: format!("0.{format}.0"),
            hash: hash(&KNOWN[..format]).to_vec(),
        };
        Formats((1..=count).map(row).collect())
    }

    fn refused(formats: &Formats, own: usize) -> Option<String> {
        formats.require_served(&KNOWN[..own], Path::new("here")).err().map(|error| format!("{error:?}"))
    }

    #[test]
    fn neighbouring_releases_share_a_store_until_the_upgrade_is_finished() {
        use UpgradeState::{Added, Locked, Narrowed};
        for (count, state, own, expected) in [
            (1, Narrowed, 1, None),
            (1, Narrowed, 2, None),
            (2, Added, 1, None),
            (2, Added, 2, None),
            (2, Locked, 2, None),
            (2, Narrowed, 2, None),
            (2, Narrowed, 3, None),
            (2, Locked, 1, Some("LockedOut { path: \"here\", format: 2, readable_from: 2, own: 1 }")),
            (2, Narrowed, 1, Some("LockedOut { path: \"here\", format: 2, readable_from: 2, own: 1 }")),
            (3, Added, 1, Some("LockedOut { path: \"here\", format: 3, readable_from: 2, own: 1 }")),
            (1, Narrowed, 3, Some("TooOld { path: \"here\", format: 1, own: 3 }")),
            (2, Added, 3, Some("UpgradeUnfinished { path: \"here\", format: 2 }")),
            (2, Locked, 3, Some("UpgradeUnfinished { path: \"here\", format: 2 }")),
        ] {
            let found = refused(&formats(count, state), own);
            assert_eq!(
                found.as_deref(),
                expected,
                "a store of format {count}, {state:?}, and a release of format {own}"
            );
        }
        assert_eq!(refused(&Formats::default(), 2), None, "there is no store yet");
    }

    #[test]
    fn tools_upgrade_nothing_and_copy_only_what_they_know() {
        use UpgradeState::{Added, Narrowed};
        let store = Path::new("here");
        let not_used = |formats: &Formats, own| formats.require_upgraded(&KNOWN[..own], store).unwrap_err();
        assert!(matches!(not_used(&Formats::default(), 1), OpenError::Missing { .. }));
        let behind = not_used(&formats(1, Narrowed), 2);
        assert!(matches!(behind, OpenError::NotUpgraded { format: 1, own: 2, .. }), "{behind}");
        formats(2, Added).require_upgraded(&KNOWN[..1], store).unwrap();

        let not_copied = |formats: &Formats, own| formats.require_copied(&KNOWN[..own], store).unwrap_err();
        let newer = not_copied(&formats(2, Added), 1);
        assert!(matches!(newer, OpenError::NotCopied { format: 2, own: 1, .. }), "{newer}");
        assert!(matches!(not_copied(&formats(2, Added), 2), OpenError::UpgradeUnfinished { .. }));
        formats(2, Narrowed).require_copied(&KNOWN[..2], store).unwrap();
    }

    #[test]
    fn unreleased_builds_are_recognized_by_what_they_do() {
        let made = formats(2, UpgradeState::Added);
        let other = FormatSteps { adds: "CREATE TABLE too", narrows: "" };
        for known in [&[ONE][..], &[ONE, TWO], &[ONE, TWO, other]] {
            assert!(made.were_released(known));
        }
        for known in [&[other][..], &[ONE, other], &[ONE, FormatSteps { narrows: "", ..TWO }]] {
            let refused = made.require_served(known, Path::new("here")).unwrap_err();
            assert!(matches!(refused, OpenError::OtherBuild { .. }), "{refused}");
        }
        assert!(!Formats(made.0.into_iter().skip(1).collect()).were_released(&KNOWN), "a row is missing");
        assert!(!Formats::default().were_released(&KNOWN));
    }

    #[test]
    fn the_steps_taken_are_known() {
        assert_eq!(formats(2, UpgradeState::Added).steps_taken(&KNOWN), [ONE.adds, "", TWO.adds]);
        assert_eq!(formats(2, UpgradeState::Narrowed).steps_taken(&KNOWN), [ONE.adds, "", TWO.adds, TWO.narrows]);
        assert_eq!(formats(2, UpgradeState::Narrowed).steps_taken(&[ONE]), [ONE.adds, ""]);
    }

    #[test]
    fn what_a_store_names_is_serialized() {
        let stated = formats(2, UpgradeState::Added).stated().unwrap();
        let json = serde_json::to_string(&stated).unwrap();
        assert_eq!(json, r#"{"format":2,"readable_from":1,"release":"0.2.0"}"#);
    }
}
