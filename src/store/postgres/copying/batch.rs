//! Some rows at a time, and the statements that take them: their columns are arrays.

use rusqlite::Rows;
use rusqlite::types::Value;
use tokio_postgres::types::ToSql;

use crate::store::copy::{CopyError, Kind, Table};

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
    /// The source cannot be read.
    pub(super) fn next(&mut self) -> Result<Option<Batch>, CopyError> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while rows.len() < ROWS && bytes < BYTES {
            let Some(row) = self.rows.next()? else { break };
            let values = (0..self.table.columns.len()).map(|at| row.get::<_, Value>(at));
            let values = values.collect::<rusqlite::Result<Vec<_>>>()?;
            bytes += values.iter().map(size).sum::<usize>();
            rows.push(values);
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

    /// The columns, each as an array.
    ///
    /// # Errors
    /// A value is of another type than its column.
    pub(super) fn columns(&self) -> Result<Columns, CopyError> {
        let columns = self.table.columns.iter().enumerate();
        let columns = columns.map(|(at, (_, kind))| array(*kind, self.rows.iter().map(|row| &row[at])));
        let columns: Option<Vec<_>> = columns.collect();
        columns.map(Columns).ok_or(CopyError::NotOurs { table: self.table.name })
    }

    /// Adds the rows to the sums of a table: see [`sums`].
    pub(super) fn add_to(&self, sums: &mut [i128]) {
        for row in &self.rows {
            sums[0] += 1;
            for (sum, value) in sums[1..].iter_mut().zip(row) {
                *sum += match value {
                    Value::Integer(number) => i128::from(*number),
                    Value::Text(text) => text.len() as i128,
                    Value::Blob(bytes) => bytes.len() as i128,
                    Value::Null | Value::Real(_) => 0,
                };
            }
        }
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

/// Inserts rows; the columns are the parameters.
pub(super) fn insert(table: &Table) -> String {
    let names: Vec<_> = table.columns.iter().map(|(name, _)| *name).collect();
    let given = (1..).zip(table.columns).map(|(number, (_, kind))| format!("${number}::{}", array_type(*kind)));
    let given: Vec<_> = given.collect();
    format!("INSERT INTO {} ({}) SELECT * FROM unnest({})", table.name, names.join(", "), given.join(", "))
}

/// Sums a table up, in text: how many rows there are, and of each column the sum of its numbers or of its lengths in bytes.
pub(super) fn sums(table: &Table) -> String {
    let sum = |(name, kind): &(&str, Kind)| {
        let summand = match kind {
            Kind::Big | Kind::Integer | Kind::Small => (*name).to_owned(),
            Kind::Bool => format!("{name}::integer"),
            Kind::Text | Kind::Bytes => format!("octet_length({name})"),
        };
        format!(", coalesce(sum({summand}), 0)::text")
    };
    format!("SELECT count(*)::text{} FROM {}", table.columns.iter().map(sum).collect::<String>(), table.name)
}
