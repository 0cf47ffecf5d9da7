//! `paybridge store adopt`: puts a restored backup to use (contract section 15).
//!
//! Every line is checked before anything is stored, so an invalid line adopts nothing. Ids get their home in batches, and the
//! mark of the backup is removed after the last of them: an interrupted run is run again. A row in the audit trail is written
//! before.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;

use super::lost_ids::{LostIds, LostOrder};
use crate::cli::args::StoreAdopt;
use crate::cli::batches::{BATCH, BatchWork, Interruption};
use crate::cli::input::{RereadableSource, rereadable};
use crate::cli::line_report::LineReport;
use crate::cli::outcome::{CliError, ExitOutcome, on_runtime};
use crate::cli::progress::{Progress, span};
use crate::cli::signals::stop_signals;
use crate::cli::trail::{CommandTrail, outcome_of};
use crate::clock::{Clock, SystemClock, SystemRandomness};
use crate::domain::{UnixMillis, wide};
use crate::rules::RuleSet;
use crate::store::{ActionRecord, Reservations, Store, StoreAccess, open_beside};
use crate::telemetry::Stopwatch;
use crate::wire::time::rfc3339;

const NO_BACKUP: &str = "the store is not marked as a backup: there is nothing to accept. After a restore with PostgreSQL's own \
    tools, name the ids that merchants have used since with --ids";

/// Adopts the store that the rules name, and prints one line.
///
/// # Errors
/// The list cannot be read or has an invalid line, the store cannot be used, or a signal interrupts it. The message has what
/// was done.
pub(super) fn run(rules: &RuleSet, args: &StoreAdopt, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    let watch = Stopwatch::start();
    let list = args.ids.as_deref().map(|file| CheckedList::open(rules, file, err)).transpose()?;
    let adopted = on_runtime(adopt(rules, list, err))?;
    Ok(writeln!(out, "{adopted}, in {}", span(watch.elapsed()))?)
}

/// A list without an invalid line.
struct CheckedList<'r> {
    /// For messages.
    name: String,
    ids: LostIds<'r, Box<dyn RereadableSource>>,
    count: u64,
}

impl<'r> CheckedList<'r> {
    /// Checks every line. Invalid lines are listed, and end the command.
    fn open(rules: &'r RuleSet, file: &Path, err: &mut dyn Write) -> Result<Self, CliError> {
        let (name, mut source) = rereadable(file, err)?;
        let unreadable = |cause| CliError::failed(format!("{name}: {cause}"));
        let mut ids = LostIds::open(rules, &mut source).map_err(unreadable)?;
        let mut progress = Progress::start("checking", "ids", None);
        let (mut count, mut report) = (0, LineReport::default());
        while let Some((line, order)) = ids.read().map_err(unreadable)? {
            count += 1;
            progress.at(count, err);
            match order {
                Ok((_, _, order_id)) => report.id(line, &order_id),
                Err(reason) => report.invalid(line, reason),
            }
        }
        drop(progress);
        report.end(&name, count, err)?;
        source.rewind().map_err(unreadable)?;
        let ids = LostIds::open(rules, source).map_err(unreadable)?;
        Ok(Self { name, ids, count })
    }
}

/// What was done.
#[derive(Debug, Clone, Copy, Default)]
struct Adopted {
    ids: Reservations,
    /// Until when the backup knows orders, where its mark was removed.
    known_until: Option<UnixMillis>,
    /// Whether ids were given.
    has_ids: bool,
}

impl fmt::Display for Adopted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reservations { new, known, operations } = self.ids;
        if self.has_ids {
            write!(f, "{new} lost, {} skipped, since they have a home", known + operations)?;
        }
        let separator = if self.has_ids { "; " } else { "" };
        match self.known_until {
            Some(at) => write!(f, "{separator}adopted the backup, which knows orders until {}", rfc3339(at)),
            None => Ok(()),
        }
    }
}

async fn adopt(rules: &RuleSet, list: Option<CheckedList<'_>>, err: &mut dyn Write) -> Result<Adopted, CliError> {
    let (stop, random) = (stop_signals()?, Arc::new(SystemRandomness::default()));
    let store = open_beside(&rules.gateway.store, StoreAccess::Adopt, random, Arc::default());
    let store = store.map_err(CliError::failed)?;
    let outcome = recorded(&*store, rules, list, stop, err).await;
    let closed = store.close().await.map_err(CliError::failed);
    outcome.and_then(|adopted| closed.map(|()| adopted))
}

/// Adopts the store, between the beginning and the end of the row in the audit trail.
async fn recorded(
    store: &dyn Store,
    rules: &RuleSet,
    list: Option<CheckedList<'_>>,
    stop: watch::Receiver<bool>,
    err: &mut dyn Write,
) -> Result<Adopted, CliError> {
    let known_until = store.known_until().await?;
    if list.is_none() && known_until.is_none() {
        return Err(CliError::failed(NO_BACKUP));
    }
    let trail = CommandTrail { trail: store, rules_version: &rules.version, clock: &SystemClock };
    let row = trail.begin(trail.action(ActionRecord::ADOPT, "store", parameters(list.as_ref(), known_until))).await?;
    let adopted = take_effect(store, list, known_until, stop, err).await;
    trail.end(row, &outcome_of(&adopted, ToString::to_string), err).await?;
    adopted
}

/// Returns what the audit trail shows; of the list, only its name and length.
fn parameters(list: Option<&CheckedList<'_>>, known_until: Option<UnixMillis>) -> Vec<(&'static str, Box<str>)> {
    let known_until = known_until.map(|at| ("known_until", rfc3339(at).into()));
    let given = match list {
        Some(list) => vec![("file", list.name.as_str().into()), ("ids", list.count.to_string().into())],
        None => vec![("accept_loss", "true".into())],
    };
    given.into_iter().chain(known_until).collect()
}

/// Gives the ids their home, and removes the mark.
async fn take_effect(
    store: &dyn Store,
    list: Option<CheckedList<'_>>,
    known_until: Option<UnixMillis>,
    stop: watch::Receiver<bool>,
    err: &mut dyn Write,
) -> Result<Adopted, CliError> {
    let mut adopted = Adopted { has_ids: list.is_some(), ..Adopted::default() };
    if let Some(list) = list {
        let work = BatchWork::start(stop, Progress::start("adopting", "ids", Some(list.count)), err);
        lose_all(store, list, work, &mut adopted.ids).await.map_err(|why| {
            CliError::failed(format!("{why}\nso far: {adopted}; run the command again to continue: lost ids stay lost"))
        })?;
    }
    if known_until.is_some() {
        store.adopt().await?;
        adopted.known_until = known_until;
    }
    Ok(adopted)
}

/// Gives all ids of a list without a home the home lost, in batches. Committed batches stay, even if a later one fails.
async fn lose_all(
    store: &dyn Store,
    mut list: CheckedList<'_>,
    mut work: BatchWork<'_>,
    counts: &mut Reservations,
) -> Result<(), Interruption> {
    let (mut batch, mut done): (Vec<LostOrder>, u64) = (Vec::with_capacity(BATCH), 0);
    loop {
        let next = list.ids.read()?;
        let ends = next.is_none();
        // An invalid line: the file has changed since it was checked.
        batch.extend(next.map(|(_, order)| order.map_err(std::io::Error::other)).transpose()?);
        if batch.len() < BATCH && !ends {
            continue;
        }
        let found = work.retry(async || store.lose(&batch, SystemClock.now()).await).await?;
        counts.new += found.new;
        counts.known += found.known;
        counts.operations += found.operations;
        done += wide(batch.len());
        work.show(done);
        if ends {
            return Ok(());
        }
        batch.clear();
        work.pause().await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_one_line() {
        let ids = Reservations { new: 1000, known: 1, operations: 2 };
        let adopted = Adopted { ids, known_until: None, has_ids: true };
        assert_eq!(adopted.to_string(), "1000 lost, 3 skipped, since they have a home");
        let marked = Adopted { known_until: Some(UnixMillis(1_790_000_000_000)), ..adopted };
        let until = "adopted the backup, which knows orders until 2026-09-21T14:13:20.000Z";
        assert_eq!(marked.to_string(), format!("{adopted}; {until}"));
        assert_eq!(Adopted { has_ids: false, ..marked }.to_string(), until);
    }
}
