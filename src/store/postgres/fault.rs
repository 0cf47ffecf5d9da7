//! What goes wrong between here and the database, and what may be tried again.

use deadpool_postgres::{HookError, PoolError, TimeoutType};
use tokio_postgres::error::SqlState;

use super::refusals::Refusals;
use super::words::{describe, own, refused, with_source};
use crate::store::StoreError;
use crate::store::rows::CorruptRow;

/// Why a piece of work did not come to its end. Nothing of it may be told as done.
#[derive(Debug)]
pub(in crate::store) enum PgError {
    /// The database's word, or the lack of one.
    Database(tokio_postgres::Error),
    /// There is no connection.
    Pool(PoolError),
    /// The database did not answer in time, and may never.
    Silence,
    /// It is clear what has to be said.
    Said(StoreError),
}

/// What to do about a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryAction {
    /// Two transactions were in each other's way: this one may be tried again at once.
    Again,
    /// The connection is of no use any more, and nobody knows what became of the work: on another one it is asked for again.
    Elsewhere,
    /// None.
    None,
}

impl PgError {
    pub(super) fn remedy(&self) -> RetryAction {
        match self {
            Self::Database(error) if is_lost(error) => RetryAction::Elsewhere,
            Self::Database(error) => error.code().map_or(RetryAction::None, remedy_of),
            Self::Pool(PoolError::Backend(error)) => match code_of(error) {
                // A wrong password or name stays wrong.
                Some(code) if remedy_of(code) == RetryAction::None => RetryAction::None,
                _ => RetryAction::Elsewhere,
            },
            // A host that took the connection and said nothing: by now another one may lead.
            Self::Silence | Self::Pool(PoolError::Timeout(TimeoutType::Create)) => RetryAction::Elsewhere,
            Self::Pool(_) | Self::Said(_) => RetryAction::None,
        }
    }

    /// Whether somebody else held a row for too long.
    pub(super) fn waited(&self) -> bool {
        let Self::Database(error) = self else { return false };
        error.code().is_some_and(|code| [SqlState::LOCK_NOT_AVAILABLE, SqlState::QUERY_CANCELED].contains(code))
    }

    /// What is told of it. The database's own words may hold values of a row, its code does not.
    pub(super) fn reported(self) -> StoreError {
        let error = match self {
            Self::Said(error) => return error,
            Self::Pool(PoolError::Timeout(TimeoutType::Wait)) => {
                return StoreError::Unavailable("every connection to the database is in use".to_owned());
            }
            Self::Silence | Self::Pool(PoolError::Timeout(_)) => {
                return StoreError::Unavailable("the database does not answer".to_owned());
            }
            Self::Pool(PoolError::Closed) => return closed(),
            // Whatever it is, nothing was asked of the data yet.
            Self::Pool(PoolError::Backend(error)) => {
                return StoreError::Unavailable(error.as_db_error().map_or_else(|| unreachable(&error), describe));
            }
            Self::Database(error) => error,
            Self::Pool(error) => return StoreError::Unavailable(error.to_string()),
        };
        match error.as_db_error() {
            Some(fault) if is_data(fault.code()) => StoreError::Corrupt(refused(fault)),
            Some(fault) => StoreError::Unavailable(describe(fault)),
            None if is_lost(&error) => {
                StoreError::Unavailable(format!("the database is away: {}", with_source(&error)))
            }
            // A column that does not hold what it is made for.
            None => StoreError::Corrupt(format!("the database's answer is not understood: {error}")),
        }
    }

    /// What is told to whoever opens the store: the database's own words, which are about the connection then.
    pub(super) fn reported_to_operators(self) -> String {
        let (Self::Database(error) | Self::Pool(PoolError::Backend(error))) = &self else {
            return match self.reported() {
                // Whoever is told knows that it is about the store.
                StoreError::Unavailable(reason) => reason,
                error @ StoreError::Corrupt(_) => error.to_string(),
            };
        };
        match (error.as_db_error(), Refusals::of(error)) {
            (Some(fault), _) => own(fault),
            (None, Some(refusals)) => refusals.reported(own),
            (None, None) => with_source(error),
        }
    }
}

fn unreachable(error: &tokio_postgres::Error) -> String {
    let why = Refusals::of(error).map_or_else(|| with_source(error), |refusals| refusals.reported(describe));
    format!("the database cannot be reached: {why}")
}

/// The code of a connection that did not come to be.
fn code_of(error: &tokio_postgres::Error) -> Option<&SqlState> {
    error.code().or_else(|| Refusals::of(error)?.code())
}

/// Whether a connection is of no use any more, or never was.
fn is_lost(error: &tokio_postgres::Error) -> bool {
    let source = std::error::Error::source(error);
    error.is_closed() || source.is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
}

fn remedy_of(code: &SqlState) -> RetryAction {
    const SHUTTING_DOWN_OR_READ_ONLY: [SqlState; 5] = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ];
    if [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::LOCK_NOT_AVAILABLE]
        .contains(code)
    {
        RetryAction::Again
    } else if code.code().starts_with("08") || SHUTTING_DOWN_OR_READ_ONLY.contains(code) {
        RetryAction::Elsewhere
    } else {
        RetryAction::None
    }
}

/// Whether a code is of the data or the statement, rather than of the moment. What the user may not do is neither: an
/// operator grants it, and all goes on.
fn is_data(code: &SqlState) -> bool {
    *code != SqlState::INSUFFICIENT_PRIVILEGE
        && ["21", "22", "23", "42"].iter().any(|class| code.code().starts_with(class))
}

pub(super) fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}

impl From<tokio_postgres::Error> for PgError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl From<PoolError> for PgError {
    fn from(error: PoolError) -> Self {
        // What sets a session up is a part of connecting.
        if let PoolError::PostCreateHook(HookError::Backend(error)) = error {
            return Self::Pool(PoolError::Backend(error));
        }
        Self::Pool(error)
    }
}

impl From<StoreError> for PgError {
    fn from(error: StoreError) -> Self {
        Self::Said(error)
    }
}

/// A column outside of a row that has a name of its own.
impl From<CorruptRow> for PgError {
    fn from(CorruptRow(column): CorruptRow) -> Self {
        Self::Said(StoreError::Corrupt(format!("the column {column} is not ours")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_reported_once_what_it_is_about() {
        assert_eq!(PgError::Silence.reported_to_operators(), "the database does not answer");
        let corrupt = PgError::Said(StoreError::Corrupt("no".to_owned())).reported_to_operators();
        assert_eq!(corrupt, "the store holds invalid data: no");
    }
}
