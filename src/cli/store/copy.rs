//! `paybridge store copy`: moves a store from SQLite to PostgreSQL.

use std::io::Write;
use std::sync::Arc;

use super::check;
use crate::cli::args::StoreCopy;
use crate::cli::outcome::{CliError, ExitOutcome, on_runtime, plural};
use crate::cli::progress::{Counters, Progress, span};
use crate::cli::signals::{stop_signals, stopped};
use crate::clock::SystemRandomness;
use crate::rules::{RuleSet, secret_named};
use crate::store::postgres::copying::{Copying, RowsProgress, begin_copy};
use crate::store::{Audit, AuditProgress, CopyError};
use crate::store_settings::StoreUrl;
use crate::telemetry::Stopwatch;

const NO_TARGET: &str = "--to is missing, and store.url of the rules names no PostgreSQL database: put its postgres:// URL into \
    a file, and name that as --to file:PATH";

/// Copies a store, compares counts and sums, checks the copy, and prints one line about it.
///
/// # Errors
/// A URL is invalid or of the wrong kind, the source or the target cannot be used, or the check finds problems. An
/// unfinished or faulty copy stays marked as incomplete, and no gateway uses it.
pub(super) fn run(rules: &RuleSet, args: &StoreCopy, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    let (StoreUrl::Sqlite(from), StoreUrl::Postgres(to)) =
        (parse_store_url("--from", &args.from)?, target_url(rules, args)?)
    else {
        return Err(CliError::Usage("a store can only be copied from sqlite: to postgres://".to_owned()));
    };
    let watch = Stopwatch::start();
    let random: Arc<dyn crate::clock::Random> = Arc::new(SystemRandomness::default());
    let copying = begin_copy(&from, &to, &rules.gateway.store.keys, &random).map_err(CliError::failed)?;
    let (rows, audit) = on_runtime(copy_all(copying, out, err))?;
    let Audit { operations, journal, .. } = audit;
    let plural_suffix = |count: u64| plural(usize::try_from(count).unwrap_or(usize::MAX));
    let entries = if journal == 1 { "entry" } else { "entries" };
    writeln!(
        out,
        "copied {operations} operation{} and {journal} journal {entries}, {rows} row{} in all, with the same sums, in {}",
        plural_suffix(operations),
        plural_suffix(rows),
        span(watch.elapsed())
    )?;
    let advice = if args.to.is_some() { ": set store.url to the copy" } else { "" };
    Ok(writeln!(err, "note: the file is marked as moved, and no gateway uses it any more{advice}")?)
}

/// Parses the URL of a store; paths are relative to the working directory. The error does not contain the URL, which may
/// have a password.
fn parse_store_url(argument: &str, url: &str) -> Result<StoreUrl, CliError> {
    StoreUrl::parse(url, |path| path.into()).map_err(|error| CliError::Usage(format!("{argument} {error}")))
}

/// Returns the URL of the target: from `--to`, which may name a file or a variable, or from the rules.
fn target_url(rules: &RuleSet, args: &StoreCopy) -> Result<StoreUrl, CliError> {
    let Some(named) = &args.to else {
        return match &rules.gateway.store.url {
            url @ StoreUrl::Postgres(_) => Ok(url.clone()),
            StoreUrl::Sqlite(_) => Err(CliError::Usage(NO_TARGET.to_owned())),
        };
    };
    let url = secret_named(named).map_err(|error| CliError::Usage(format!("--to {error}")))?;
    let url = String::from_utf8(url).map_err(|_| CliError::Usage("--to names a value that is not UTF-8".to_owned()))?;
    parse_store_url("--to", &url)
}

/// Runs the copy to its end. Returns how many rows were copied, and the result of the check.
async fn copy_all(mut copying: Copying, out: &mut dyn Write, err: &mut dyn Write) -> Result<(u64, Audit), CliError> {
    let mut stop = stop_signals()?;
    let checked = tokio::select! {
        () = stopped(&mut stop) => return Err(resumable_error("interrupted")),
        checked = copy_and_check(&mut copying, out, err) => checked?,
    };
    copying.finish().await.map_err(copy_error)?;
    Ok(checked)
}

/// Copies the missing rows, compares counts and sums for each table, and checks the copy.
async fn copy_and_check(
    copying: &mut Copying,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(u64, Audit), CliError> {
    let counters = Arc::new(Counters::default());
    let mut progress = Progress::start("copying", "rows", None);
    let filled = progress.during(&counters, err, copying.fill(progress_callback(&counters))).await;
    drop(progress);
    let rows = filled.map_err(copy_error)?;

    let counters = Arc::new(Counters::default());
    let mut progress = Progress::start("comparing", "rows", None);
    let compared = progress.during(&counters, err, copying.compare(progress_callback(&counters))).await;
    drop(progress);
    compared.map_err(CliError::failed)?;

    let counters = Arc::new(Counters::default());
    let report = progress_callback(&counters);
    let mut progress = Progress::start("checking the copy", "operations", None);
    let reported = Arc::new(move |AuditProgress { done, total }| report(done, total));
    let audited = progress.during(&counters, err, copying.audit(reported)).await;
    drop(progress);
    let audit = audited.map_err(copy_error)?;
    if !audit.is_clean() {
        check::print_problems(&audit, out, err)?;
        return Err(CliError::failed("the copy has problems, and no gateway uses it"));
    }
    Ok((rows, audit))
}

fn copy_error(error: CopyError) -> CliError {
    match error {
        CopyError::Target(_) | CopyError::Mark(_) => resumable_error(error),
        CopyError::Open(_)
        | CopyError::NoSource { .. }
        | CopyError::Source(_)
        | CopyError::NotOurs { .. }
        | CopyError::Changed
        | CopyError::Differs { .. } => CliError::failed(error),
    }
}

fn resumable_error(error: impl std::fmt::Display) -> CliError {
    CliError::failed(format!("{error}\nrun the command again to continue: copied rows stay"))
}

fn progress_callback(counters: &Arc<Counters>) -> RowsProgress {
    let counters = Arc::clone(counters);
    Arc::new(move |done, total| counters.set(done, total))
}
