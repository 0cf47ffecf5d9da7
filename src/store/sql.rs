//! What the SQL of both databases has in common: the text of a statement, its parameters, and the columns of a row.
//!
//! A text is written once, with parameters `?1`, `?2`, which become `$1`, `$2` for PostgreSQL when it is compiled. Integers
//! of all widths are `i64` here: the narrower types of PostgreSQL's columns only save room.

use std::borrow::Cow;
use std::fmt;

use crate::domain::{Fingerprint, InvalidValue, MerchantId, TransactionId, UnixMillis};
use crate::store::StoreError;
use crate::store::vault::DecryptError;

/// A statement, as each database takes it.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct Sql {
    pub(in crate::store) sqlite: &'static str,
    pub(in crate::store) postgres: &'static str,
}

/// Makes a [`Sql`] of a text for both databases. PostgreSQL may need an addition at its end, such as `FOR UPDATE`, since
/// SQLite has a single writer; SQLite may be given the index to use, since it has no statistics. A statement that really
/// differs has two texts.
macro_rules! sql {
    (sqlite: $sqlite:expr, postgres: $postgres:expr $(,)?) => {{
        const TEXT: &str = $postgres;
        const BYTES: [u8; TEXT.len()] = $crate::store::sql::with_dollars(TEXT);
        $crate::store::sql::Sql { sqlite: $sqlite, postgres: $crate::store::sql::text_of(&BYTES) }
    }};
    ($text:expr, indexed by $index:literal, $rest:expr $(, postgres adds $addition:literal)? $(,)?) => {
        $crate::store::sql::sql!(
            sqlite: concat!($text, " INDEXED BY ", $index, " ", $rest),
            postgres: concat!($text, " ", $rest $(, " ", $addition)?)
        )
    };
    ($text:expr, postgres adds $addition:literal $(,)?) => {
        $crate::store::sql::sql!(sqlite: $text, postgres: concat!($text, " ", $addition))
    };
    ($text:expr $(,)?) => {
        $crate::store::sql::sql!(sqlite: $text, postgres: $text)
    };
}
pub(in crate::store) use sql;

/// Returns the bytes of a text with `$` in place of each `?`.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
pub(in crate::store) const fn with_dollars<const N: usize>(text: &str) -> [u8; N] {
    let (mut bytes, mut at) = ([0; N], 0);
    while at < N {
        let byte = text.as_bytes()[at];
        bytes[at] = if byte == b'?' { b'$' } else { byte };
        at += 1;
    }
    bytes
}

pub(in crate::store) const fn text_of(bytes: &'static [u8]) -> &'static str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("one ASCII character takes the place of another"),
    }
}

/// A parameter of a statement. `None` is NULL.
#[derive(Clone, Copy)]
pub(in crate::store) enum Parameter<'a> {
    Integer(Option<i64>),
    Text(Option<&'a str>),
    Bytes(Option<&'a [u8]>),
}

/// Shows no value, which may be a customer's.
impl fmt::Debug for Parameter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parameter(..)")
    }
}

/// Makes an array of [`Parameter`]s.
macro_rules! params {
    ($($value:expr),* $(,)?) => { [$($crate::store::sql::Parameter::from($value)),*] };
}
pub(in crate::store) use params;

macro_rules! parameter {
    ($($from:ty, $variant:ident, $value:pat => $into:expr;)*) => {
        $(impl<'a> From<$from> for Parameter<'a> {
            fn from($value: $from) -> Self {
                Self::$variant($into)
            }
        })*
    };
}
parameter! {
    i64, Integer, value => Some(value);
    i32, Integer, value => Some(value.into());
    Option<i64>, Integer, value => value;
    Option<u16>, Integer, value => value.map(i64::from);
    UnixMillis, Integer, UnixMillis(value) => Some(value);
    TransactionId, Integer, value => Some(value.to_stored());
    &'a str, Text, value => Some(value);
    Option<&'a str>, Text, value => value;
    &'a Box<str>, Text, value => Some(value);
    &'a Option<Box<str>>, Text, value => value.as_deref();
    &'a String, Text, value => Some(value);
    &'a MerchantId, Text, value => Some(value.as_str());
    &'a [u8], Bytes, value => Some(value);
    Option<&'a [u8]>, Bytes, value => value;
    &'a Vec<u8>, Bytes, value => Some(value);
    &'a Option<Vec<u8>>, Bytes, value => value.as_deref();
    &'a Fingerprint, Bytes, Fingerprint(value) => Some(value);
}

/// A row that was read.
pub(in crate::store) trait Columns {
    /// Returns the integer in a column; `None`: NULL.
    fn integer(&self, column: usize) -> Result<Option<i64>, CorruptRow>;

    /// Returns the text in a column; `None`: NULL.
    fn text(&self, column: usize) -> Result<Option<&str>, CorruptRow>;

    /// Returns the bytes in a column; `None`: NULL.
    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, CorruptRow>;

    /// Returns the error of a column with an invalid value.
    fn invalid(&self, column: usize) -> CorruptRow;
}

impl dyn Columns + '_ {
    /// Reads a column.
    ///
    /// # Errors
    /// It has another type, or is NULL where `T` has no place for that.
    pub(in crate::store) fn get<T: ColumnValue>(&self, column: usize) -> Result<T, CorruptRow> {
        T::read(self, column)?.ok_or_else(|| self.invalid(column))
    }
}

/// A value that is read from one column.
pub(in crate::store) trait ColumnValue: Sized {
    /// Reads the column; `None`: it is NULL, or has no value of this type.
    fn read(row: &dyn Columns, column: usize) -> Result<Option<Self>, CorruptRow>;
}

impl<T: ColumnValue> ColumnValue for Option<T> {
    fn read(row: &dyn Columns, column: usize) -> Result<Option<Self>, CorruptRow> {
        T::read(row, column).map(Some)
    }
}

macro_rules! column {
    ($($of:ty, $reader:ident, $value:ident => $into:expr;)*) => {
        $(impl ColumnValue for $of {
            fn read(row: &dyn Columns, column: usize) -> Result<Option<Self>, CorruptRow> {
                row.$reader(column)?.map(|$value| $into.ok_or_else(|| row.invalid(column))).transpose()
            }
        })*
    };
}
column! {
    i64, integer, value => Some(value);
    i32, integer, value => value.try_into().ok();
    u32, integer, value => value.try_into().ok();
    u64, integer, value => value.try_into().ok();
    bool, integer, value => match value { 0 => Some(false), 1 => Some(true), _ => None };
    UnixMillis, integer, value => Some(UnixMillis(value));
    String, text, value => Some(value.to_owned());
    Box<str>, text, value => Some(value.into());
    Vec<u8>, bytes, value => Some(value.to_vec());
}

impl<const N: usize> ColumnValue for [u8; N] {
    fn read(row: &dyn Columns, column: usize) -> Result<Option<Self>, CorruptRow> {
        row.bytes(column)?.map(|bytes| bytes.try_into().map_err(|_| row.invalid(column))).transpose()
    }
}

/// An open transaction of a database, or a connection on which each statement is a transaction of its own. SQLite's futures
/// are ready at once.
pub(in crate::store) trait Transaction {
    type Error: From<CorruptRow>;

    /// Whether other transactions write meanwhile, so that a row stays as it was read only where it is locked.
    const IS_SHARED: bool;

    /// Runs a statement for each set of parameters, in their order. Returns how many rows each changed.
    async fn execute_each<const N: usize>(
        &self,
        sql: Sql,
        sets: &[[Parameter<'_>; N]],
    ) -> Result<Vec<u64>, Self::Error>;

    /// Runs a query for each set of parameters. Returns the rows of each, read by `read`.
    async fn query_each<T, const N: usize>(
        &self,
        sql: Sql,
        sets: &[[Parameter<'_>; N]],
        read: impl FnMut(&dyn Columns) -> Result<T, CorruptRow>,
    ) -> Result<Vec<Vec<T>>, Self::Error>;

    /// Runs a statement. Returns how many rows it changed.
    async fn execute(&self, sql: Sql, parameters: &[Parameter<'_>]) -> Result<u64, Self::Error>;

    /// Runs a query. Returns its rows, read by `read`.
    async fn query<T>(
        &self,
        sql: Sql,
        parameters: &[Parameter<'_>],
        read: impl FnMut(&dyn Columns) -> Result<T, CorruptRow>,
    ) -> Result<Vec<T>, Self::Error>;

    /// Runs a query that has at most one row, or whose first row counts.
    async fn query_opt<T>(
        &self,
        sql: Sql,
        parameters: &[Parameter<'_>],
        read: impl FnOnce(&dyn Columns) -> Result<T, CorruptRow>,
    ) -> Result<Option<T>, Self::Error>;

    /// Runs a query that always has one row, and returns its first column.
    async fn query_value<T: ColumnValue>(&self, sql: Sql, parameters: &[Parameter<'_>]) -> Result<T, Self::Error> {
        let found = self.query_opt(sql, parameters, |row| row.get(0)).await?;
        found.ok_or_else(|| CorruptRow::new("of a query without rows").into())
    }
}

/// The name of a column that contains an invalid value.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::store) struct CorruptRow(pub(in crate::store) Cow<'static, str>);

impl CorruptRow {
    pub(in crate::store) const fn new(column: &'static str) -> Self {
        Self(Cow::Borrowed(column))
    }

    /// Returns the error of the row that is called `subject`.
    pub(in crate::store) fn of(self, subject: impl fmt::Display) -> StoreError {
        let Self(column) = self;
        StoreError::Corrupt(format!("{subject}: the column {column} is invalid"))
    }
}

impl From<(DecryptError, &'static str)> for CorruptRow {
    fn from((DecryptError, column): (DecryptError, &'static str)) -> Self {
        Self::new(column)
    }
}

pub(in crate::store) trait OrCorrupt<T> {
    fn or_corrupt(self, column: &'static str) -> Result<T, CorruptRow>;
}

impl<T> OrCorrupt<T> for Result<T, InvalidValue> {
    fn or_corrupt(self, column: &'static str) -> Result<T, CorruptRow> {
        self.map_err(|_| CorruptRow::new(column))
    }
}

#[cfg(test)]
pub(in crate::store) static RECORDED: std::sync::Mutex<std::collections::BTreeSet<&str>> =
    std::sync::Mutex::new(std::collections::BTreeSet::new());

/// Notes that a test has run a statement, as one database takes it.
#[cfg(test)]
pub(in crate::store) fn record(text: &'static str) {
    RECORDED.lock().unwrap().insert(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_written_once() {
        const LOCKED: Sql = sql!("SELECT a FROM b WHERE c = ?1", postgres adds "FOR UPDATE");
        const ONE: Sql = sql!("SELECT a FROM b WHERE c = ?1 AND (?2 IS NULL OR d = ?2)");
        assert_eq!(ONE.postgres, "SELECT a FROM b WHERE c = $1 AND ($2 IS NULL OR d = $2)");
        assert_eq!(LOCKED.sqlite, "SELECT a FROM b WHERE c = ?1");
        assert_eq!(LOCKED.postgres, "SELECT a FROM b WHERE c = $1 FOR UPDATE");
    }
}
