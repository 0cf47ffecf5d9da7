//! Batches of rows of a copy, and the statements that insert them, with columns as arrays.

use rusqlite::types::Value;
use rusqlite::{Connection, Rows, Statement};
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use crate::domain::wide;
use crate::store::copy::{CopiedTable, CopyError};
use crate::store::postgres::errors::PgError;

/// The most rows of a batch.
const ROWS: usize = 2_000;

/// A batch of this many bytes is full.
const BYTES: usize = 4 * 1024 * 1024;

/// A table with its columns, as in the target.
pub(super) struct TableColumns {
    pub(super) table: &'static CopiedTable,
    columns: Vec<(String, Type)>,
}

impl TableColumns {
    /// Reads them from the target.
    pub(super) async fn of(client: &Client, table: &'static CopiedTable) -> Result<Self, PgError> {
        let statement = client.prepare(&format!("SELECT * FROM {}", table.name)).await?;
        let columns = statement.columns().iter().map(|column| (column.name().to_owned(), column.type_().clone()));
        Ok(Self { table, columns: columns.collect() })
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn count(&self) -> usize {
        self.columns.len()
    }

    /// Returns the statement that reads the rows of the source after a number of rows.
    pub(super) fn rows<'a>(&self, source: &'a Connection) -> rusqlite::Result<Statement<'a>> {
        source.prepare(&self.table.rows(self.names()))
    }

    /// Returns the statement that inserts rows; its parameters are the columns.
    pub(super) fn insert(&self) -> String {
        let names: Vec<_> = self.names().collect();
        let given = (1..).zip(&self.columns).map(|(number, (_, of))| format!("${number}::{}[]", of.name()));
        let given: Vec<_> = given.collect();
        format!("INSERT INTO {} ({}) SELECT * FROM unnest({})", self.table.name, names.join(", "), given.join(", "))
    }

    /// Returns the statement that sums up the table, as text: the number of rows, and for each column the sum of its
    /// numbers or of its lengths in bytes.
    pub(super) fn sums(&self) -> String {
        let sum = |(name, of): &(String, Type)| {
            let summand = match *of {
                Type::TEXT | Type::BYTEA => format!("octet_length({name})"),
                _ => name.clone(),
            };
            format!(", coalesce(sum({summand}), 0)::text")
        };
        format!("SELECT count(*)::text{} FROM {}", self.columns.iter().map(sum).collect::<String>(), self.table.name)
    }
}

/// The rows of a table of the source, as they will be in the target.
pub(super) struct RowBatches<'a> {
    rows: Rows<'a>,
    columns: &'a TableColumns,
}

impl<'a> RowBatches<'a> {
    pub(super) const fn new(rows: Rows<'a>, columns: &'a TableColumns) -> Self {
        Self { rows, columns }
    }

    /// Returns the next rows; `None` if there are no more.
    ///
    /// # Errors
    /// The source cannot be read.
    pub(super) fn next(&mut self) -> Result<Option<Batch<'a>>, CopyError> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while rows.len() < ROWS && bytes < BYTES {
            let Some(row) = self.rows.next()? else { break };
            let values = (0..self.columns.count()).map(|at| row.get::<_, Value>(at));
            let values = values.collect::<rusqlite::Result<Vec<_>>>()?;
            bytes += values.iter().map(size).sum::<usize>();
            rows.push(values);
        }
        Ok(if rows.is_empty() { None } else { Some(Batch { columns: self.columns, rows }) })
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
        Value::Null | Value::Integer(_) | Value::Real(_) => 8,
    }
}

pub(super) struct Batch<'a> {
    columns: &'a TableColumns,
    rows: Vec<Vec<Value>>,
}

impl Batch<'_> {
    pub(super) fn count(&self) -> i64 {
        i64::try_from(self.rows.len()).unwrap_or(i64::MAX)
    }

    /// Converts the columns to arrays.
    ///
    /// # Errors
    /// A value has another type than its column.
    #[expect(clippy::indexing_slicing, reason = "a row has a value for each column")]
    pub(super) fn arrays(&self) -> Result<Vec<Array>, CopyError> {
        let columns = self.columns.columns.iter().enumerate();
        let arrays = columns.map(|(at, (_, of))| array(of, self.rows.iter().map(|row| &row[at])));
        arrays.collect::<Option<_>>().ok_or(CopyError::NotOurs { table: self.columns.table.name })
    }

    /// Adds the rows to the sums of a table: see [`TableColumns::sums`].
    pub(super) fn add_to(&self, sums: &mut [i128]) {
        let (count, of_columns) = sums.split_first_mut().expect("the count of rows comes before the sums of columns");
        for row in &self.rows {
            *count += 1;
            for (sum, value) in of_columns.iter_mut().zip(row) {
                *sum += match value {
                    Value::Integer(number) => i128::from(*number),
                    Value::Text(text) => wide(text.len()).into(),
                    Value::Blob(bytes) => wide(bytes.len()).into(),
                    Value::Null | Value::Real(_) => 0,
                };
            }
        }
    }
}

/// The values of a column.
pub(super) type Array = Box<dyn ToSql + Sync>;

/// Adds a value; returns `None` if it has another type.
fn array<'a>(of: &Type, values: impl Iterator<Item = &'a Value>) -> Option<Array> {
    fn all<'a, T: ToSql + Sync + 'static>(
        values: impl Iterator<Item = &'a Value>,
        of: impl Fn(&Value) -> Option<T>,
    ) -> Option<Array> {
        let values = values.map(|value| if *value == Value::Null { Some(None) } else { of(value).map(Some) });
        Some(Box::new(values.collect::<Option<Vec<Option<T>>>>()?))
    }
    let integer = |value: &Value| if let Value::Integer(number) = value { Some(*number) } else { None };
    match *of {
        Type::INT8 => all(values, integer),
        Type::INT4 => all(values, |value| i32::try_from(integer(value)?).ok()),
        Type::INT2 => all(values, |value| i16::try_from(integer(value)?).ok()),
        Type::TEXT => all(values, |value| if let Value::Text(text) = value { Some(text.clone()) } else { None }),
        Type::BYTEA => all(values, |value| if let Value::Blob(bytes) = value { Some(bytes.clone()) } else { None }),
        _ => None,
    }
}
