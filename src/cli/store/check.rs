//! `paybridge store check`: checks the invariants of the store.

use std::io::Write;
use std::sync::Arc;

use rusqlite::ErrorCode;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::cli::outcome::{CliError, ExitOutcome, on_runtime, plural};
use crate::cli::progress::{Counters, Progress};
use crate::clock::SystemRandomness;
use crate::domain::wide;
use crate::rules::RuleSet;
use crate::store::{Audit, AuditProgress, OpenError, Store, StoreAccess, StoreError, open_beside};
use crate::wire::time::rfc3339;

/// Checks the store that the rules name. Writes one line of counts to `out`, one for each problem, and one if it is a backup.
///
/// # Errors
/// The store cannot be read, or there are problems.
pub(super) fn run(rules: &RuleSet, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    let random = Arc::new(SystemRandomness::default());
    let store = open_beside(&rules.gateway.store, StoreAccess::Read, random, Arc::default())
        .map_err(|error| open_failed(&error))?;
    let (audit, known_until) = on_runtime(async {
        let audit = audit(Arc::clone(&store), err).await;
        let known_until = store.known_until().await;
        store.close().await.map_err(CliError::failed)?;
        Ok((audit?, known_until))
    })?;
    let reported = report(&audit, out, err);
    if let Some(until) = known_until? {
        writeln!(out, "a backup, which knows orders until {} and was not adopted", rfc3339(until))?;
    }
    reported
}

/// Adds advice to the error if the file is damaged in a part that opening reads.
fn open_failed(error: &OpenError) -> CliError {
    let damaged = if let OpenError::Sqlite { source, .. } = error {
        matches!(source.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
    } else {
        false
    };
    let advice =
        if damaged { ": the file is damaged: stop the gateway, keep the file aside and restore a backup" } else { "" };
    CliError::failed(format!("{error}{advice}"))
}

async fn audit(store: Arc<dyn Store>, err: &mut dyn Write) -> Result<Audit, CliError> {
    let counters = Arc::new(Counters::default());
    let report_progress = {
        let counters = Arc::clone(&counters);
        Arc::new(move |AuditProgress { done, total }: AuditProgress| {
            counters.set(done, total);
        })
    };
    // A store may read on the calling thread, and this thread shows the progress.
    let handle = Handle::current();
    let auditing =
        spawn_blocking(move || -> Result<Audit, StoreError> { handle.block_on(store.audit(report_progress)) });
    let mut progress = Progress::start("checking", "operations", None);
    progress.during(&counters, err, auditing).await.map_err(CliError::failed)?.map_err(CliError::failed)
}

fn report(audit: &Audit, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    let Audit { operations, entries, journal, problem_count, .. } = audit;
    let problems = match problem_count {
        0 => "no problems".to_owned(),
        1 => "1 problem".to_owned(),
        count => format!("{count} problems"),
    };
    let many = |count: u64| plural(usize::try_from(count).unwrap_or(usize::MAX));
    let entry = |count: u64| if count == 1 { "entry" } else { "entries" };
    let (operations, ledger) =
        (format!("{operations} operation{}", many(*operations)), format!("{entries} ledger {}", entry(*entries)));
    match journal {
        0 => writeln!(out, "checked {operations} and {ledger}: {problems}")?,
        _ => writeln!(out, "checked {operations}, {ledger} and {journal} journal {}: {problems}", entry(*journal))?,
    }
    print_problems(audit, out, err)?;
    if *problem_count == 0 { Ok(()) } else { Err(CliError::failed("the store has problems")) }
}

/// Writes each problem as a line to `out`, and how many more there are to `err`.
///
/// # Errors
/// The output cannot be written.
pub(super) fn print_problems(audit: &Audit, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    for problem in &audit.problems {
        writeln!(out, "{problem}")?;
    }
    let more = audit.problem_count.saturating_sub(wide(audit.problems.len()));
    if more > 0 {
        writeln!(err, "... and {more} more")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(operations: u64, problems: &[&str], problem_count: u64) -> (bool, String, String) {
        let problems = problems.iter().map(|problem| (*problem).to_owned()).collect();
        printed(&Audit { operations, entries: operations, problems, problem_count, ..Audit::default() })
    }

    fn printed(audit: &Audit) -> (bool, String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let sound = report(audit, &mut out, &mut err).is_ok();
        (sound, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    #[test]
    fn problems_are_reported_one_per_line() {
        let good = (true, "checked 1 operation and 1 ledger entry: no problems\n".to_owned(), String::new());
        assert_eq!(reported(1, &[], 0), good);
        let (sound, out, err) = reported(20, &["a", "b"], 2);
        assert!(!sound && err.is_empty());
        assert_eq!(out, "checked 20 operations and 20 ledger entries: 2 problems\na\nb\n");
        let (_, out, err) = reported(20, &["a"], 3);
        assert_eq!((out.lines().count(), err.as_str()), (2, "... and 2 more\n"));
    }

    #[test]
    fn journal_entries_are_counted() {
        for (journal, line) in [
            (1, "checked 0 operations, 0 ledger entries and 1 journal entry: no problems\n"),
            (2, "checked 0 operations, 0 ledger entries and 2 journal entries: no problems\n"),
        ] {
            assert_eq!(printed(&Audit { journal, ..Audit::default() }), (true, line.to_owned(), String::new()));
        }
    }

    #[test]
    fn a_damaged_file_gets_advice() {
        let stated = |code| {
            let source = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
            match open_failed(&OpenError::Sqlite { path: "a.db".into(), source }) {
                CliError::Failed(reason) => reason,
                other => panic!("{other:?}"),
            }
        };
        for code in [rusqlite::ffi::SQLITE_CORRUPT, rusqlite::ffi::SQLITE_NOTADB] {
            let reason = stated(code);
            assert!(reason.starts_with("a.db: ") && reason.ends_with("restore a backup"), "{reason}");
        }
        assert!(!stated(rusqlite::ffi::SQLITE_BUSY).contains("backup"));
    }
}
