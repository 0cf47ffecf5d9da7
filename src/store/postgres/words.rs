//! What operators are told of a fault: words for the codes that they meet, never what may hold the values of a row.

use tokio_postgres::error::{DbError, SqlState};

/// What a code means, behind "the database".
const MEANT: &[(&str, &str)] = &[
    ("25006", "takes no writes: it is a standby, or read-only"),
    ("25P03", "ended a session that was idle in a transaction"),
    ("28000", "does not let this user in"),
    ("28P01", "refuses the password"),
    ("3D000", "has no database of this name"),
    ("3F000", "has no schema of this name"),
    ("40001", "could not order transactions that were in each other's way"),
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

/// What is wrong with a statement or its values, behind what it is about.
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

/// What the database says of itself.
pub(super) fn describe(error: &DbError) -> String {
    let code = error.code();
    if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        // It names the table, and nothing of a row.
        return format!("the database refuses: {} ({})", error.message(), code.code());
    }
    match found(MEANT, code) {
        Some(words) => format!("the database {words} ({})", code.code()),
        None => format!("the database says {}", code.code()),
    }
}

/// What the database says of a statement or its values.
pub(super) fn refused(error: &DbError) -> String {
    let (table, code) = (error.table().unwrap_or("a statement"), error.code());
    match found(WRONG, code) {
        Some(words) => format!("the database refused {table}: {words} ({})", code.code()),
        None => format!("the database refused {table}: {}", code.code()),
    }
}

/// The database's own words, for whoever opens the store, unless they may hold the values of a row.
pub(super) fn own(error: &DbError) -> String {
    match error.code().code() {
        code if code.starts_with("22") || code.starts_with("23") => refused(error),
        code => format!("{} ({code})", error.message()),
    }
}

/// An error of a connection, with what it came from.
pub(super) fn with_source(error: &tokio_postgres::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

fn found(known: &'static [(&str, &str)], code: &SqlState) -> Option<&'static str> {
    known.iter().find(|(of, _)| *of == code.code()).map(|(_, words)| *words)
}
