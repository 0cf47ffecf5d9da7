//! A transaction, or a connection on which each statement is a transaction of its own. Other transactions write meanwhile: a
//! documented lock is a locked row, which is inserted first if there is none.

use std::borrow::Cow;

use bytes::BytesMut;
use deadpool_postgres::Object;
use futures_util::future::try_join_all;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Row, SimpleQueryMessage, Statement};

use super::errors::PgError;
use crate::store::sql::{Columns, CorruptRow, Parameter, Sql, Transaction};

/// What statements are sent on.
#[derive(Clone, Copy)]
pub(super) enum Executor<'a> {
    Connection(&'a Object),
    Transaction(&'a deadpool_postgres::Transaction<'a>),
}

impl Executor<'_> {
    pub(super) async fn prepare(self, text: &str) -> Result<Statement, PgError> {
        Ok(match self {
            Self::Connection(client) => client.prepare_cached(text).await,
            Self::Transaction(transaction) => transaction.prepare_cached(text).await,
        }?)
    }

    pub(super) async fn query(
        self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, PgError> {
        Ok(match self {
            Self::Connection(client) => client.query(statement, parameters).await,
            Self::Transaction(transaction) => transaction.query(statement, parameters).await,
        }?)
    }

    /// Runs statements without parameters, which are not prepared.
    #[cfg(test)]
    pub(super) async fn batch_execute(self, text: &str) -> Result<(), PgError> {
        Ok(match self {
            Self::Connection(client) => client.batch_execute(text).await,
            Self::Transaction(transaction) => transaction.batch_execute(text).await,
        }?)
    }

    pub(super) async fn execute(
        self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, PgError> {
        Ok(match self {
            Self::Connection(client) => client.execute(statement, parameters).await,
            Self::Transaction(transaction) => transaction.execute(statement, parameters).await,
        }?)
    }
}

pub(in crate::store) struct PgTransaction<'a> {
    pub(super) executor: Executor<'a>,
    /// By how many milliseconds this node's clock is wrongly ahead: see [`Offset::wrong_by`](super::node::Offset::wrong_by).
    pub(super) ahead: i64,
}

impl ToSql for Parameter<'_> {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match *self {
            Self::Integer(None) | Self::Text(None) | Self::Bytes(None) => Ok(IsNull::Yes),
            Self::Integer(Some(value)) => match *of {
                Type::INT2 => i16::try_from(value)?.to_sql(of, out),
                Type::INT4 => i32::try_from(value)?.to_sql(of, out),
                _ => value.to_sql_checked(of, out),
            },
            Self::Text(Some(text)) => text.to_sql_checked(of, out),
            Self::Bytes(Some(bytes)) => bytes.to_sql_checked(of, out),
        }
    }

    /// A value of another kind fails when it is written.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// An integer of any width. A truth value is 0 or 1, as in SQLite.
struct Integer(i64);

impl<'a> FromSql<'a> for Integer {
    fn from_sql(of: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(match *of {
            Type::BOOL => bool::from_sql(of, raw)?.into(),
            Type::INT2 => i16::from_sql(of, raw)?.into(),
            Type::INT4 => i32::from_sql(of, raw)?.into(),
            _ => i64::from_sql(of, raw)?,
        }))
    }

    fn accepts(of: &Type) -> bool {
        [Type::BOOL, Type::INT2, Type::INT4, Type::INT8].contains(of)
    }
}

impl Columns for Row {
    fn integer(&self, column: usize) -> Result<Option<i64>, CorruptRow> {
        let value = self.try_get::<_, Option<Integer>>(column).map_err(|_| self.invalid(column))?;
        Ok(value.map(|Integer(value)| value))
    }

    fn text(&self, column: usize) -> Result<Option<&str>, CorruptRow> {
        self.try_get(column).map_err(|_| self.invalid(column))
    }

    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, CorruptRow> {
        self.try_get(column).map_err(|_| self.invalid(column))
    }

    fn invalid(&self, column: usize) -> CorruptRow {
        let name = self.columns().get(column).map_or("?", |column| column.name());
        CorruptRow(Cow::Owned(name.to_owned()))
    }
}

fn sendable<'a>(parameters: &'a [Parameter<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    parameters.iter().map(|parameter| -> &(dyn ToSql + Sync) { parameter }).collect()
}

impl PgTransaction<'_> {
    async fn prepare(&self, sql: Sql) -> Result<Statement, PgError> {
        #[cfg(test)]
        crate::store::sql::record(sql.postgres);
        self.executor.prepare(sql.postgres).await
    }
}

/// Statements for several sets of parameters are sent at once and run one after the other.
impl Transaction for PgTransaction<'_> {
    type Error = PgError;

    const IS_SHARED: bool = true;

    async fn execute_each<const N: usize>(&self, sql: Sql, sets: &[[Parameter<'_>; N]]) -> Result<Vec<u64>, PgError> {
        if sets.is_empty() {
            return Ok(Vec::new());
        }
        let statement = &self.prepare(sql).await?;
        let execute = async |set| self.executor.execute(statement, &sendable(set)).await;
        try_join_all(sets.iter().map(|set| execute(set))).await
    }

    async fn query_each<T, const N: usize>(
        &self,
        sql: Sql,
        sets: &[[Parameter<'_>; N]],
        mut read: impl FnMut(&dyn Columns) -> Result<T, CorruptRow>,
    ) -> Result<Vec<Vec<T>>, PgError> {
        if sets.is_empty() {
            return Ok(Vec::new());
        }
        let statement = &self.prepare(sql).await?;
        let query = async |set| self.executor.query(statement, &sendable(set)).await;
        let found = try_join_all(sets.iter().map(|set| query(set))).await?;
        let mut read_all = |rows: Vec<Row>| rows.iter().map(|row| Ok(read(row)?)).collect();
        found.into_iter().map(&mut read_all).collect()
    }

    async fn execute(&self, sql: Sql, parameters: &[Parameter<'_>]) -> Result<u64, PgError> {
        self.executor.execute(&self.prepare(sql).await?, &sendable(parameters)).await
    }

    async fn query<T>(
        &self,
        sql: Sql,
        parameters: &[Parameter<'_>],
        mut read: impl FnMut(&dyn Columns) -> Result<T, CorruptRow>,
    ) -> Result<Vec<T>, PgError> {
        let rows = self.executor.query(&self.prepare(sql).await?, &sendable(parameters)).await?;
        rows.iter().map(|row| Ok(read(row)?)).collect()
    }

    async fn query_opt<T>(
        &self,
        sql: Sql,
        parameters: &[Parameter<'_>],
        read: impl FnOnce(&dyn Columns) -> Result<T, CorruptRow>,
    ) -> Result<Option<T>, PgError> {
        let rows = self.executor.query(&self.prepare(sql).await?, &sendable(parameters)).await?;
        Ok(rows.first().map(|row| read(row)).transpose()?)
    }
}

/// Returns a column.
///
/// # Errors
/// It has another type.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, PgError> {
    Ok(row.try_get(column)?)
}

/// Returns the only value that a query returns; "": it returns no row.
///
/// # Errors
/// The database does not respond.
pub(super) async fn value(client: &Client, query: &str) -> Result<String, tokio_postgres::Error> {
    let messages = client.simple_query(query).await?;
    let value = messages.iter().find_map(|message| {
        let SimpleQueryMessage::Row(row) = message else { return None };
        row.get(0)
    });
    Ok(value.unwrap_or_default().to_owned())
}
