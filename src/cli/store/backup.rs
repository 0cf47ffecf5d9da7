//! `paybridge store backup`: copies a SQLite store while a gateway uses it.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::check;
use crate::cli::outcome::{CliError, ExitOutcome, on_runtime, plural};
use crate::cli::progress::{Counters, Progress, span};
use crate::cli::signals::stop_signals;
use crate::clock::{Clock, SystemClock, SystemRandomness};
use crate::rules::RuleSet;
use crate::store::sqlite::backup::{self, BackupError};
use crate::store::{Audit, AuditProgress};
use crate::store_settings::StoreUrl;
use crate::telemetry::Stopwatch;

const MIB: u64 = 1024 * 1024;

/// Copies the store that the rules name to a file, and prints one line about the copy. Writes each problem of the store
/// to `out`, as `store check` does.
///
/// # Errors
/// `to` is written as a URL, the store is PostgreSQL, or it cannot be copied; or it has problems, and so has the copy,
/// which is kept.
pub(super) fn run(rules: &RuleSet, to: &Path, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    if ["sqlite:", "file:"].iter().any(|scheme| to.as_os_str().as_encoded_bytes().starts_with(scheme.as_bytes())) {
        return Err(CliError::Usage(
            "FILE is the path of the copy, and no URL: write it without sqlite: or file:".to_owned(),
        ));
    }
    let path = match &rules.gateway.store.url {
        StoreUrl::Sqlite(path) => path,
        StoreUrl::Postgres(url) => {
            return Err(CliError::failed(format!(
                "{url}: PostgreSQL has tools of its own for backups: pg_dump copies this database, pg_basebackup the whole \
                 server"
            )));
        }
    };
    let watch = Stopwatch::start();
    let (now, random) = (SystemClock.now(), Arc::new(SystemRandomness::default()));
    let begun = backup::begin(path, &rules.gateway.store.keys, to, now, random);
    let audit = on_runtime(copy_and_check(begun.map_err(CliError::failed)?, err))?;
    let (operations, many) = (audit.operations, plural(usize::try_from(audit.operations).unwrap_or(usize::MAX)));
    let (to, time) = (to.display(), span(watch.elapsed()));
    writeln!(out, "{to}: a copy of the store with {operations} operation{many}, in {time}")?;
    check::print_problems(&audit, out, err)?;
    if audit.is_clean() {
        return Ok(());
    }
    Err(CliError::failed("the copy is complete, but the store has problems"))
}

/// Copies the store, checks the copy and gives it its name. Blocking steps run on other threads while this one shows
/// the progress.
async fn copy_and_check(begun: backup::Begun, err: &mut dyn Write) -> Result<Audit, CliError> {
    let stop = stop_signals()?;
    let copied = on_thread("copying", "MiB", err, &stop, move |counters, wanted| {
        let report = |done: u64, total: u64| counters.set(done.div_ceil(MIB), total.div_ceil(MIB));
        begun.copy(&report, wanted)
    });
    let copied = copied.await?;
    let checked = on_thread("checking the copy", "operations", err, &stop, move |counters, wanted| {
        copied.check(&|AuditProgress { done, total }| counters.set(done, total), wanted)
    });
    checked.await?.publish().map_err(CliError::failed)
}

async fn on_thread<T: Send + 'static>(
    what: &'static str,
    unit: &'static str,
    err: &mut dyn Write,
    stop: &watch::Receiver<bool>,
    job: impl FnOnce(&Counters, &dyn Fn() -> bool) -> Result<T, BackupError> + Send + 'static,
) -> Result<T, CliError> {
    let counters = Arc::new(Counters::default());
    let working = {
        let (counters, stop) = (Arc::clone(&counters), stop.clone());
        spawn_blocking(move || job(&counters, &|| !*stop.borrow()))
    };
    let mut progress = Progress::start(what, unit, None);
    progress.during(&counters, err, working).await.map_err(CliError::failed)?.map_err(CliError::failed)
}
