//! Audits one snapshot while the writer continues, and checks the file itself: see [`audit`](crate::store::audit).

use std::sync::Arc;

use rusqlite::{Connection, ErrorCode};

use super::failures::store_error;
use super::schema::FORMATS;
use super::transaction::{SqliteTransaction, at_once};
use crate::store::audit::{AuditFindings, AuditRun, AuditSlice, SchemaParts, audited};
use crate::store::format;
use crate::store::vault::Vault;
use crate::store::{Audit, AuditProgress, StoreError};

/// Audits the store as it is when this begins. Ends early, with the findings so far, when it was cancelled.
///
/// # Errors
/// The store cannot be read.
pub(super) fn run(
    connection: &Connection,
    vault: Arc<Vault>,
    progress: &dyn Fn(AuditProgress),
    wanted: &dyn Fn() -> bool,
) -> Result<Audit, StoreError> {
    let mut findings = AuditFindings::new(vault);
    let audited = connection
        .execute_batch("BEGIN")
        .and_then(|()| all(connection, &mut findings, &SqliteRun { progress, wanted }))
        .and_then(|()| connection.execute_batch("COMMIT"));
    let damaged = match audited {
        Ok(()) => findings.found.problems.iter().any(|problem| problem.starts_with(OF_THE_FILE)),
        // The findings so far explain more than SQLite's error.
        Err(error) if is_damage(&error) => true,
        Err(error) => return Err(store_error(&error)),
    };
    let mut found = findings.found;
    if damaged {
        advise(&mut found, connection.path().unwrap_or_default());
    }
    Ok(found)
}

fn all(connection: &Connection, findings: &mut AuditFindings, run: &SqliteRun<'_>) -> rusqlite::Result<()> {
    pages(connection, findings)?;
    structure(connection, findings)?;
    at_once(audited(&SqliteTransaction(connection), findings, run))
}

struct SqliteRun<'a> {
    progress: &'a dyn Fn(AuditProgress),
    wanted: &'a dyn Fn() -> bool,
}

/// The audit has a thread of its own, on which it checks what it has read.
impl AuditRun<SqliteTransaction<'_>> for SqliteRun<'_> {
    async fn before_slices(&self) -> rusqlite::Result<()> {
        Ok(())
    }

    async fn check(&self, findings: &mut AuditFindings, slice: AuditSlice) -> rusqlite::Result<()> {
        slice.check(findings);
        Ok(())
    }

    fn report(&self, progress: AuditProgress) -> bool {
        (self.progress)(progress);
        (self.wanted)()
    }
}

/// The prefix of problems with the file's pages.
const OF_THE_FILE: &str = "the file: ";

/// Checks the structure of the pages, and the constraints of the tables.
fn pages(connection: &Connection, findings: &mut AuditFindings) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("PRAGMA quick_check(20)")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let stated: String = row.get(0)?;
        for line in stated.lines().filter(|line| *line != "ok") {
            // A row against a rule of its table is no damage of the pages.
            let of_rows = line.starts_with("CHECK constraint failed");
            findings.found.problem(if of_rows { line.to_owned() } else { format!("{OF_THE_FILE}{line}") });
        }
    }
    Ok(())
}

/// Checks that the tables and indexes are those that the steps of the formats create: without the index of orders, one order
/// could be created twice.
fn structure(connection: &Connection, findings: &mut AuditFindings) -> rusqlite::Result<()> {
    let fresh = Connection::open_in_memory()?;
    let formats = at_once(format::load(&SqliteTransaction(connection)))?;
    for step in formats.steps_taken(FORMATS) {
        fresh.execute_batch(step)?;
    }
    findings.structure(parts(&fresh)?, parts(connection)?, formats.count() > FORMATS.len());
    Ok(())
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Puts first what to do about a damaged file, however much else was found.
fn advise(found: &mut Audit, path: &str) {
    found.problem_count += 1;
    found.problems.truncate(Audit::MAX_PROBLEMS - 1);
    let advice = format!("{path}: the file is damaged: stop the gateway, keep the file aside and restore a backup");
    found.problems.insert(0, advice);
}

/// Returns the SQL of every table, index, view and trigger of the store, by type and name.
fn parts(connection: &Connection) -> rusqlite::Result<SchemaParts> {
    connection
        .prepare("SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")?
        .query_map([], |row| Ok((row.get(0)?, normal(&row.get::<_, String>(1)?))))?
        .collect()
}

/// Returns SQL without the parts that have no meaning: comments, white space, and the quotes that a renaming adds.
fn normal(sql: &str) -> String {
    let code = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
    code.flat_map(str::chars).filter(|char| !char.is_whitespace() && *char != '"').collect()
}
