//! Some rows at a time, and the statements that take them: their columns are arrays.

use std::fmt::Write as _;

use rusqlite::Rows;
use rusqlite::types::Value;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::store::copy::{CopyError, Finisher, Kind, Table};
use crate::store::postgres::fault::Fault;
use crate::store::postgres::row::get;

/// The most rows of a batch.
const ROWS: usize = 2_000;

/// A batch with so many bytes is full.
const BYTES: usize = 4 * 1024 * 1024;

/// The rows of a table of the source, as they are to be in the target.
pub(super) struct Batches<'a> {
    rows: Rows<'a>,
    table: &'static Table,
}

impl<'a> Batches<'a> {
    pub(super) const fn new(rows: Rows<'a>, table: &'static Table) -> Self {
        Self { rows, table }
    }

    /// The next rows; `None`: there are no more.
    ///
    /// # Errors
    /// The source cannot be read, or holds what it should not.
    pub(super) fn next(&mut self, finisher: &mut Finisher<'_>) -> Result<Option<Batch>, CopyError> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while rows.len() < ROWS && bytes < BYTES {
            let Some(row) = self.rows.next()? else { break };
            let values = (0..self.table.columns.len()).map(|at| row.get::<_, Value>(at));
            let values = values.collect::<rusqlite::Result<Vec<_>>>()?;
            bytes += values.iter().map(size).sum::<usize>();
            rows.push(finisher.finish(self.table, values)?);
        }
        Ok(if rows.is_empty() { None } else { Some(Batch { table: self.table, rows }) })
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
        Value::Null | Value::Integer(_) | Value::Real(_) => 8,
    }
}

pub(super) struct Batch {
    pub(super) table: &'static Table,
    pub(super) rows: Vec<Vec<Value>>,
}

impl Batch {
    pub(super) fn count(&self) -> i64 {
        i64::try_from(self.rows.len()).unwrap_or(i64::MAX)
    }

    /// The first columns, each as an array.
    ///
    /// # Errors
    /// A value is of another type than its column.
    pub(super) fn columns(&self, count: usize) -> Result<Columns, CopyError> {
        let kinds = self.table.columns.iter().take(count).enumerate();
        let columns = kinds.map(|(at, (_, kind))| array(*kind, self.rows.iter().map(|row| &row[at])));
        let columns: Option<Vec<_>> = columns.collect();
        columns.map(Columns).ok_or(CopyError::NotOurs { table: self.table.name })
    }
}

type Array = Box<dyn ToSql + Sync>;

pub(super) struct Columns(Vec<Array>);

impl Columns {
    pub(super) fn parameters(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.0.iter().map(|array| &**array).collect()
    }
}

/// `None`: a value is of another type.
fn array<'a>(kind: Kind, values: impl Iterator<Item = &'a Value>) -> Option<Array> {
    fn all<'a, T: ToSql + Sync + 'static>(
        values: impl Iterator<Item = &'a Value>,
        of: impl Fn(&Value) -> Option<T>,
    ) -> Option<Array> {
        let values = values.map(|value| match value {
            Value::Null => Some(None),
            value => of(value).map(Some),
        });
        Some(Box::new(values.collect::<Option<Vec<Option<T>>>>()?))
    }
    let integer = |value: &Value| match value {
        Value::Integer(number) => Some(*number),
        _ => None,
    };
    match kind {
        Kind::Big => all(values, integer),
        Kind::Integer => all(values, |value| i32::try_from(integer(value)?).ok()),
        Kind::Small => all(values, |value| i16::try_from(integer(value)?).ok()),
        Kind::Bool => all(values, |value| match integer(value)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }),
        Kind::Text => all(values, |value| match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }),
        Kind::Bytes => all(values, |value| match value {
            Value::Blob(bytes) => Some(bytes.clone()),
            _ => None,
        }),
    }
}

const fn array_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Big => "bigint[]",
        Kind::Integer => "integer[]",
        Kind::Small => "smallint[]",
        Kind::Bool => "boolean[]",
        Kind::Text => "text[]",
        Kind::Bytes => "bytea[]",
    }
}

/// `unnest` of the first columns, which are the parameters.
fn given(table: &Table, count: usize) -> String {
    let mut sql = String::from("unnest(");
    for (number, (_, kind)) in (1..).zip(table.columns.iter().take(count)) {
        let comma = if number == 1 { "" } else { ", " };
        // Writing to a String does not fail.
        let _ = write!(sql, "{comma}${number}::{}", array_type(*kind));
    }
    sql + ")"
}

fn names(table: &Table, count: usize, before: &str) -> String {
    let names: Vec<_> = table.columns.iter().take(count).map(|(name, _)| format!("{before}{name}")).collect();
    names.join(", ")
}

/// Inserts rows.
pub(super) fn insert(table: &Table) -> String {
    let count = table.columns.len();
    format!("INSERT INTO {} ({}) SELECT * FROM {}", table.name, names(table, count, ""), given(table, count))
}

/// Selects the rows of some keys, in their order.
pub(super) fn select(table: &Table) -> String {
    let keys = table.columns.iter().take(table.key);
    let same: Vec<_> = keys.map(|(name, _)| format!("found.{name} = given.{name}")).collect();
    format!(
        "SELECT {} FROM {} WITH ORDINALITY AS given ({}, place) JOIN {} AS found ON {} ORDER BY given.place",
        names(table, table.columns.len(), "found."),
        given(table, table.key),
        names(table, table.key, ""),
        table.name,
        same.join(" AND "),
    )
}

/// A row of the target as the source would have it.
///
/// # Errors
/// A column is of another type.
pub(super) fn read(table: &Table, row: &Row) -> Result<Vec<Value>, Fault> {
    let column = |(at, (_, kind)): (usize, &(&str, Kind))| {
        let value = match kind {
            Kind::Big => get::<Option<i64>>(row, at)?.map(Value::Integer),
            Kind::Integer => get::<Option<i32>>(row, at)?.map(|number| Value::Integer(number.into())),
            Kind::Small => get::<Option<i16>>(row, at)?.map(|number| Value::Integer(number.into())),
            Kind::Bool => get::<Option<bool>>(row, at)?.map(|is| Value::Integer(is.into())),
            Kind::Text => get::<Option<String>>(row, at)?.map(Value::Text),
            Kind::Bytes => get::<Option<Vec<u8>>>(row, at)?.map(Value::Blob),
        };
        Ok(value.unwrap_or(Value::Null))
    };
    table.columns.iter().enumerate().map(column).collect()
}
