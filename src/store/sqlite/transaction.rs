//! The writer's transaction, or a reader's connection.
//!
//! Nothing else writes meanwhile, so every row is locked. Every statement completes at once, so the logic over them needs no
//! runtime ([`at_once`]).

use std::borrow::Cow;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{CachedStatement, Connection, Row, params_from_iter};

use crate::store::sql::{Columns, CorruptRow, Parameter, Sql, Transaction};

pub(in crate::store) struct SqliteTransaction<'a>(pub(super) &'a Connection);

/// The error of a transaction that waited for something other than its statements.
#[derive(Debug, thiserror::Error)]
#[error("a transaction of SQLite waited for something")]
struct Waited;

/// Runs logic that waits for statements only.
///
/// # Errors
/// Its own; or it waited for something else, which is a defect.
pub(super) fn at_once<T>(work: impl Future<Output = rusqlite::Result<T>>) -> rusqlite::Result<T> {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => Err(rusqlite::Error::ToSqlConversionFailure(Box::new(Waited))),
    }
}

/// The error of a column with an invalid value.
#[derive(Debug, thiserror::Error)]
#[error("the column {0} is invalid")]
struct InvalidColumn(String);

impl From<CorruptRow> for rusqlite::Error {
    fn from(CorruptRow(column): CorruptRow) -> Self {
        Self::ToSqlConversionFailure(Box::new(InvalidColumn(column.into_owned())))
    }
}

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match *self {
            Self::Integer(Some(value)) => ToSqlOutput::Owned(Value::Integer(value)),
            Self::Text(Some(text)) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Bytes(Some(bytes)) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Self::Integer(None) | Self::Text(None) | Self::Bytes(None) => ToSqlOutput::Owned(Value::Null),
        })
    }
}

impl Columns for Row<'_> {
    fn integer(&self, column: usize) -> Result<Option<i64>, CorruptRow> {
        match self.get_ref(column) {
            Ok(ValueRef::Integer(value)) => Ok(Some(value)),
            Ok(ValueRef::Null) => Ok(None),
            _ => Err(self.invalid(column)),
        }
    }

    fn text(&self, column: usize) -> Result<Option<&str>, CorruptRow> {
        match self.get_ref(column) {
            Ok(ValueRef::Text(text)) => std::str::from_utf8(text).map(Some).map_err(|_| self.invalid(column)),
            Ok(ValueRef::Null) => Ok(None),
            _ => Err(self.invalid(column)),
        }
    }

    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, CorruptRow> {
        match self.get_ref(column) {
            Ok(ValueRef::Blob(bytes)) => Ok(Some(bytes)),
            Ok(ValueRef::Null) => Ok(None),
            _ => Err(self.invalid(column)),
        }
    }

    fn invalid(&self, column: usize) -> CorruptRow {
        CorruptRow(Cow::Owned(self.as_ref().column_name(column).unwrap_or("?").to_owned()))
    }
}

impl<'a> SqliteTransaction<'a> {
    fn prepare(&self, sql: Sql) -> rusqlite::Result<CachedStatement<'a>> {
        #[cfg(test)]
        crate::store::sql::record(sql.sqlite);
        self.0.prepare_cached(sql.sqlite)
    }
}

impl Transaction for SqliteTransaction<'_> {
    type Error = rusqlite::Error;

    const IS_SHARED: bool = false;

    async fn execute_each<const N: usize>(&self, sql: Sql, sets: &[[Parameter<'_>; N]]) -> rusqlite::Result<Vec<u64>> {
        let mut statement = self.prepare(sql)?;
        let execute = |set| statement.execute(params_from_iter(set)).map(count);
        sets.iter().map(execute).collect()
    }

    async fn query_each<T, const N: usize>(
        &self,
        sql: Sql,
        sets: &[[Parameter<'_>; N]],
        mut read: impl FnMut(&dyn Columns) -> Result<T, CorruptRow>,
    ) -> rusqlite::Result<Vec<Vec<T>>> {
        let mut statement = self.prepare(sql)?;
        let mut query = |set| {
            let mut rows = statement.query(params_from_iter(set))?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(read(row)?);
            }
            Ok(found)
        };
        sets.iter().map(&mut query).collect()
    }

    async fn execute(&self, sql: Sql, parameters: &[Parameter<'_>]) -> rusqlite::Result<u64> {
        self.prepare(sql)?.execute(params_from_iter(parameters)).map(count)
    }

    async fn query<T>(
        &self,
        sql: Sql,
        parameters: &[Parameter<'_>],
        mut read: impl FnMut(&dyn Columns) -> Result<T, CorruptRow>,
    ) -> rusqlite::Result<Vec<T>> {
        let mut statement = self.prepare(sql)?;
        statement.query_map(params_from_iter(parameters), |row| Ok(read(row)?))?.collect()
    }

    async fn query_opt<T>(
        &self,
        sql: Sql,
        parameters: &[Parameter<'_>],
        read: impl FnOnce(&dyn Columns) -> Result<T, CorruptRow>,
    ) -> rusqlite::Result<Option<T>> {
        let mut statement = self.prepare(sql)?;
        let mut rows = statement.query(params_from_iter(parameters))?;
        Ok(rows.next()?.map(|row| read(row)).transpose()?)
    }
}

fn count(changed: usize) -> u64 {
    u64::try_from(changed).unwrap_or(u64::MAX)
}
