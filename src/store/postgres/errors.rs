//! Errors of the database: what to do about them, and what callers and operators read.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use deadpool_postgres::{HookError, PoolError, TimeoutType};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::{Config, Error, NoTls};

use crate::connection_error;
use crate::store::StoreError;
use crate::store::sql::CorruptRow;

/// Why work did not complete. Nothing of it may be reported as done.
#[derive(Debug)]
pub(in crate::store) enum PgError {
    /// The server's error, or that of a lost connection.
    Database(Error),
    /// No connection is available.
    Pool(PoolError),
    /// The database did not respond in time.
    Silence,
    /// An error of the store, which is returned as it is.
    Store(StoreError),
}

/// How a further connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionRefusal {
    /// The server states that a limit is reached.
    Stated,
    /// No host responds: a pooler without a free connection accepts clients and lets them wait, as a frozen server does.
    Silent,
}

/// What to do after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryAction {
    /// Retry at once: two transactions were in conflict.
    Again,
    /// Retry on another connection: this one is unusable, and whether the work was committed is unknown.
    Elsewhere,
    /// Give up.
    None,
}

impl PgError {
    pub(super) fn retry_action(&self) -> RetryAction {
        match self {
            Self::Database(error) if is_lost(error) => RetryAction::Elsewhere,
            Self::Database(error) if is_race(error) => RetryAction::Again,
            Self::Database(error) => error.code().map_or(RetryAction::None, retry_action_of),
            Self::Pool(PoolError::Backend(error)) => match code_of(error) {
                // A wrong password or name stays wrong.
                Some(code) if retry_action_of(code) == RetryAction::None => RetryAction::None,
                _ => RetryAction::Elsewhere,
            },
            // A host that accepted the connection and did not respond: by now another one may lead.
            Self::Silence
            | Self::Pool(PoolError::Timeout(TimeoutType::Create) | PoolError::PostCreateHook(HookError::Message(_))) => {
                RetryAction::Elsewhere
            }
            Self::Pool(_) | Self::Store(_) => RetryAction::None,
        }
    }

    /// Returns the error when no connection becomes free in time.
    pub(super) const fn no_connection() -> Self {
        Self::Pool(PoolError::Timeout(TimeoutType::Wait))
    }

    /// Returns how the server, or a pooler before it, keeps this process from a further connection. `None`: another
    /// error.
    pub(super) fn connection_refusal(&self) -> Option<ConnectionRefusal> {
        match self {
            Self::Pool(PoolError::Backend(error)) if code_of(error) == Some(&SqlState::TOO_MANY_CONNECTIONS) => {
                Some(ConnectionRefusal::Stated)
            }
            Self::Pool(PoolError::Backend(error)) => {
                Refusals::of(error).filter(|refusals| refusals.are_silent()).map(|_| ConnectionRefusal::Silent)
            }
            Self::Pool(PoolError::PostCreateHook(HookError::Message(_))) => Some(ConnectionRefusal::Silent),
            Self::Database(_) | Self::Pool(_) | Self::Silence | Self::Store(_) => None,
        }
    }

    /// Returns the error of a list: its statements have a bound of their own.
    pub(super) fn of_list(self) -> Self {
        let is_too_long = matches!(&self, Self::Database(error) if error.code() == Some(&SqlState::QUERY_CANCELED));
        if is_too_long { Self::Store(StoreError::TooLong) } else { self }
    }

    /// Reports whether another transaction held a lock for too long.
    pub(super) fn is_lock_timeout(&self) -> bool {
        let Self::Database(error) = self else { return false };
        error.code().is_some_and(|code| [SqlState::LOCK_NOT_AVAILABLE, SqlState::QUERY_CANCELED].contains(code))
    }

    /// Returns the error for callers. The server's message may contain values of a row; its code does not.
    pub(super) fn reported(self) -> StoreError {
        let error = match self {
            Self::Store(error) => return error,
            Self::Pool(PoolError::Timeout(TimeoutType::Wait)) => {
                return StoreError::Unavailable("every connection to the database is in use".to_owned());
            }
            Self::Pool(PoolError::PostCreateHook(HookError::Message(reason))) => {
                return StoreError::Unavailable(reason.into_owned());
            }
            Self::Silence | Self::Pool(PoolError::Timeout(_)) => {
                return StoreError::Unavailable("the database does not answer".to_owned());
            }
            Self::Pool(PoolError::Closed) => return closed(),
            // No statement was sent yet.
            Self::Pool(PoolError::Backend(error)) => {
                return StoreError::Unavailable(error.as_db_error().map_or_else(|| unreachable(&error), describe));
            }
            Self::Database(error) => error,
            Self::Pool(error) => return StoreError::Unavailable(error.to_string()),
        };
        match error.as_db_error() {
            Some(fault) if is_data(fault.code()) => StoreError::Corrupt(describe_rejection(fault)),
            Some(fault) => StoreError::Unavailable(describe(fault)),
            None if is_lost(&error) => {
                StoreError::Unavailable(format!("the database is away: {}", with_source(&error)))
            }
            // A column has another type than expected.
            None => StoreError::Corrupt(format!("the database's reply cannot be decoded: {error}")),
        }
    }

    /// Returns the error for an operator that opens the store: the server's message, which is about the connection
    /// then.
    pub(super) fn reported_to_operators(self) -> String {
        let (Self::Database(error) | Self::Pool(PoolError::Backend(error))) = &self else {
            return match self.reported() {
                // The message already names the store.
                StoreError::Unavailable(reason) => reason,
                error @ (StoreError::TooLong | StoreError::Corrupt(_)) => error.to_string(),
            };
        };
        match (error.as_db_error(), Refusals::of(error)) {
            (Some(fault), _) => for_operators(fault),
            (None, Some(refusals)) => refusals.reported(for_operators),
            (None, None) => with_source(error),
        }
    }
}

fn unreachable(error: &Error) -> String {
    let why = Refusals::of(error).map_or_else(|| with_source(error), |refusals| refusals.reported(describe));
    format!("the database cannot be reached: {why}")
}

/// Returns the code of a failed connection attempt.
fn code_of(error: &Error) -> Option<&SqlState> {
    error.code().or_else(|| Refusals::of(error)?.code())
}

/// Reports whether a connection is unusable, or never was usable.
fn is_lost(error: &Error) -> bool {
    let source = std::error::Error::source(error);
    error.is_closed() || source.is_some_and(<dyn std::error::Error>::is::<io::Error>)
}

/// Reports whether another transaction has stored the same `transaction_id` of a remote engine meanwhile: run again, the
/// transaction finds it.
fn is_race(error: &Error) -> bool {
    let stated = error.as_db_error().filter(|stated| *stated.code() == SqlState::UNIQUE_VIOLATION);
    stated.is_some_and(|stated| stated.constraint() == Some("journal_by_transaction"))
}

fn retry_action_of(code: &SqlState) -> RetryAction {
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

/// Reports whether a code is about the data or the statement, and not temporary. A missing privilege is neither: an
/// operator can grant it.
fn is_data(code: &SqlState) -> bool {
    *code != SqlState::INSUFFICIENT_PRIVILEGE
        && ["21", "22", "23", "42"].iter().any(|class| code.code().starts_with(class))
}

pub(super) fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}

impl From<Error> for PgError {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl From<PoolError> for PgError {
    fn from(error: PoolError) -> Self {
        // Setting up a session is part of connecting.
        if let PoolError::PostCreateHook(HookError::Backend(error)) = error {
            return Self::Pool(PoolError::Backend(error));
        }
        Self::Pool(error)
    }
}

impl From<StoreError> for PgError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// A column that belongs to no named row.
impl From<CorruptRow> for PgError {
    fn from(CorruptRow(column): CorruptRow) -> Self {
        Self::Store(StoreError::Corrupt(format!("the column {column} is invalid")))
    }
}

/// The meaning of codes, as a sentence after "the database".
const MEANT: &[(&str, &str)] = &[
    ("25006", "takes no writes: it is a standby, or read-only"),
    ("25P03", "ended a session that was idle in a transaction"),
    ("28000", "does not let this user in"),
    ("28P01", "refuses the password"),
    ("3D000", "has no database of this name"),
    ("3F000", "has no schema of this name"),
    ("40001", "could not order two transactions that conflict"),
    ("40P01", "ended one of two transactions that waited for each other"),
    ("53100", "has no room left on its disk"),
    ("53200", "has no memory left"),
    ("53300", "takes no more connections"),
    ("53400", "has reached a limit of its configuration"),
    ("55P03", "did not get a lock in time"),
    ("57014", "gave a statement up, which took too long"),
    ("57P01", "is shutting down, or an administrator ended the connection"),
    ("57P02", "crashed and ended the connection"),
    ("57P03", "takes no connections now: it starts or stops"),
    ("57P04", "was dropped"),
    ("58030", "cannot read or write its files"),
    ("XX001", "has found its data damaged"),
    ("XX002", "has found an index damaged"),
];

/// The meaning of codes about a statement or its values.
const WRONG: &[(&str, &str)] = &[
    ("22003", "a number is out of range"),
    ("23502", "a column that must not be empty is"),
    ("23503", "a row that it names is not there"),
    ("23505", "its key is there already"),
    ("23514", "a CHECK does not hold"),
    ("42703", "a column is missing"),
    ("42883", "a function is missing"),
    ("42P01", "a table is missing"),
    ("42P10", "an index is missing"),
];

/// Describes an error of the server itself.
pub(super) fn describe(error: &DbError) -> String {
    let code = error.code();
    if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        // The message names the table, and no value of a row.
        return format!("the database refuses: {} ({})", error.message(), code.code());
    }
    match lookup(MEANT, code) {
        Some(words) => format!("the database {words} ({})", code.code()),
        None => format!("the database failed ({})", code.code()),
    }
}

/// Describes an error about a statement or its values.
pub(super) fn describe_rejection(error: &DbError) -> String {
    let (table, code) = (error.table().unwrap_or("a statement"), error.code());
    match lookup(WRONG, code) {
        Some(words) => format!("the database refused {table}: {words} ({})", code.code()),
        None => format!("the database refused {table}: {}", code.code()),
    }
}

/// Returns the server's message for operators, unless it may contain values of a row.
pub(super) fn for_operators(error: &DbError) -> String {
    match error.code().code() {
        code if code.starts_with("22") || code.starts_with("23") => describe_rejection(error),
        code => format!("{} ({code})", error.message()),
    }
}

/// Returns why a connection failed in words, or else the text of the error with its source.
pub(super) fn with_source(error: &Error) -> String {
    let source = std::error::Error::source(error);
    let text = || source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
    connection_error::reason(error).unwrap_or_else(text)
}

fn lookup(known: &'static [(&str, &str)], code: &SqlState) -> Option<&'static str> {
    known.iter().find(|(of, _)| *of == code.code()).map(|(_, words)| *words)
}

/// Why no host accepted a connection: each host with its error; `None`: it did not respond.
#[derive(Debug)]
pub(super) struct Refusals(Vec<(String, Option<Error>)>);

impl Refusals {
    pub(super) const fn new(refusals: Vec<(String, Option<Error>)>) -> Self {
        Self(refusals)
    }

    /// Returns the refusals that an error contains.
    pub(super) fn of(error: &Error) -> Option<&Self> {
        let source: &io::Error = std::error::Error::source(error)?.downcast_ref()?;
        source.get_ref()?.downcast_ref()
    }

    /// Returns a server's code. It explains more than that another host is no leader, or unreachable.
    pub(super) fn code(&self) -> Option<&SqlState> {
        self.0.iter().find_map(|(_, error)| error.as_ref()?.code())
    }

    /// Reports whether no host responded at all.
    fn are_silent(&self) -> bool {
        self.0.iter().all(|(_, error)| error.is_none())
    }

    /// Describes each host with its reason; `describe` words the errors of servers.
    pub(super) fn reported(&self, describe: impl Fn(&DbError) -> String) -> String {
        let reason = |error: &Error| error.as_db_error().map_or_else(|| with_source(error), &describe);
        let reported = |(host, error): &(String, Option<Error>)| {
            format!("{host}: {}", error.as_ref().map_or_else(|| "does not answer".to_owned(), reason))
        };
        self.0.iter().map(reported).collect::<Vec<_>>().join("; ")
    }

    /// Returns the driver's error, which the pool requires and only the driver can create: a connection attempt that
    /// fails with these refusals.
    pub(super) async fn into_error(self) -> Error {
        match Config::new().user("none").connect_raw(Refusing(Some(self)), NoTls).await {
            Err(error) => error,
            // Impossible, since nothing responds. The caller has a time limit.
            Ok(_) => std::future::pending().await,
        }
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no host takes connections")
    }
}

impl std::error::Error for Refusals {}

/// A connection that fails at the first byte.
struct Refusing(Option<Refusals>);

impl Refusing {
    fn fail<T>(&mut self) -> Poll<io::Result<T>> {
        Poll::Ready(Err(self.0.take().map_or_else(|| io::ErrorKind::BrokenPipe.into(), io::Error::other)))
    }
}

impl AsyncRead for Refusing {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.fail()
    }
}

impl AsyncWrite for Refusing {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        self.fail()
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.fail()
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.fail()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_for_operators_name_their_subject_once() {
        assert_eq!(PgError::Silence.reported_to_operators(), "the database does not answer");
        let corrupt = PgError::Store(StoreError::Corrupt("no".to_owned())).reported_to_operators();
        assert_eq!(corrupt, "the store holds invalid data: no");
    }
}
