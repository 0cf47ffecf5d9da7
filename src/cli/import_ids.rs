//! `paybridge import-ids`: reserves the external ids that the old v1 service has (contract section 7).
//!
//! Every line is checked before the first id is reserved, so an invalid line reserves nothing: a file is read twice, a
//! pipe is kept in memory. Reservations are committed in batches and are idempotent: an interrupted import is run
//! again. The mark of `--complete` is a commit of its own after the last batch. An import leaves a row in the audit
//! trail, which is written before the first id is reserved.

use std::fmt;
use std::io::{self, BufReader, Write};
use std::sync::Arc;

use super::args::ImportIds;
use super::batches::{BATCH, BatchWork, Interruption};
use super::input::{RereadableSource, rereadable};
use super::line_report::{LineReport, MAX_LISTED};
use super::lines::{Line, LineContent, Lines};
use super::outcome::{CliError, ExitOutcome, merchant, on_runtime};
use super::progress::{Progress, span};
use super::signals::stop_signals;
use super::trail::{CommandTrail, outcome_of};
use crate::clock::{Clock, SystemClock, SystemRandomness};
use crate::domain::{Direction, MerchantId, OrderId};
use crate::rules::RuleSet;
use crate::store::{
    ActionRecord, OpenError, OrderLookup, Reservations, Store, StoreAccess, StoreError, open_beside, open_store,
};
use crate::store_settings::StoreSettings;
use crate::telemetry::Stopwatch;

/// Reserves the ids of a file, and prints one line with the counts.
///
/// # Errors
/// The merchant is unknown, the file cannot be read or has an invalid line, the store cannot be used, or a signal
/// interrupts the import. The message contains what was done, and that the command can be run again.
pub fn run(rules: &RuleSet, args: &ImportIds, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    let merchant = &merchant(rules, &args.merchant)?.id;
    let watch = Stopwatch::start();
    let (name, mut source) = rereadable(&args.file, err)?;
    let lines = check(&mut source, &name, err)?;
    source.rewind().map_err(|cause| CliError::failed(format!("{name}: {cause}")))?;
    let ids = Lines::new(BufReader::new(source));
    let counts = on_runtime(reserve_all(rules, merchant, args, &name, ids, lines, err))?;
    let complete = if args.complete { "; the list is complete" } else { "" };
    Ok(writeln!(out, "{merchant} {}: {counts}, in {}{complete}", args.direction, span(watch.elapsed()))?)
}

/// Checks every line; returns their number. Invalid lines are listed, and end the import.
fn check(source: &mut dyn RereadableSource, name: &str, err: &mut dyn Write) -> Result<u64, CliError> {
    let mut lines = Lines::new(BufReader::new(source));
    let mut progress = Progress::start("checking", "lines", None);
    let (mut count, mut report) = (0, LineReport::default());
    while let Some(line) = next_line(&mut lines, name, count)? {
        count = line.number;
        progress.at(count, err);
        match line.content {
            LineContent::Blank => {}
            LineContent::Id(id) => report.id(count, &id),
            LineContent::Flawed(invalid) => report.invalid(count, invalid.reason()),
        }
    }
    drop(progress);
    report.end(name, count, err)?;
    Ok(count)
}

fn next_line<R: io::BufRead>(lines: &mut Lines<R>, name: &str, after: u64) -> Result<Option<Line>, CliError> {
    lines.read().map_err(|cause| CliError::failed(format!("{name}: cannot be read after line {after}: {cause}")))
}

/// Reserves all ids in batches, and marks the list as complete if `args` does. Committed batches stay, even if a later
/// one fails.
async fn reserve_all<R: io::BufRead>(
    rules: &RuleSet,
    merchant: &MerchantId,
    args: &ImportIds,
    name: &str,
    mut ids: Lines<R>,
    total: u64,
    err: &mut dyn Write,
) -> Result<ImportCounts, CliError> {
    let stop = stop_signals()?;
    let store = open_or_make_store(&rules.gateway.store)?;
    let trail = CommandTrail { trail: &*store, rules_version: &rules.version, clock: &SystemClock };
    let action = trail.action(ActionRecord::IMPORT_IDS, merchant.as_str(), parameters(args, name, total));
    let work = BatchWork::start(stop, Progress::start("importing", "lines", Some(total)), &mut *err);
    let (direction, counts) = (args.direction, ImportCounts::default());
    let mut import = Import { store: &*store, merchant, direction, work, counts, was_complete: false };
    let (id, done) = match import.work.retry(async || trail.begin(action.clone()).await).await {
        Ok(id) => (Some(id), import.run(&mut ids, args.complete).await),
        Err(why) => (None, Err(why)),
    };
    import.note_if_incomplete().await;
    let counts = import.counts;
    drop(import);
    let outcome = done.map(|()| counts).map_err(|why| {
        let again = "run the command again to continue: reserved ids stay reserved";
        CliError::failed(format!("{why}\nso far: {counts}; {again}"))
    });
    if let Some(id) = id {
        trail.end(id, &outcome_of(&outcome, ToString::to_string), err).await?;
    }
    let closed = store.close().await.map_err(CliError::failed);
    outcome.and_then(|counts| closed.map(|()| counts))
}

/// Returns what the audit trail shows of an import; of the file, only its name.
fn parameters(args: &ImportIds, name: &str, lines: u64) -> Vec<(&'static str, Box<str>)> {
    let complete = args.complete.then(|| ("complete", "true".into()));
    let given = [("kind", args.direction.as_str().into()), ("file", name.into()), ("lines", lines.to_string().into())];
    given.into_iter().chain(complete).collect()
}

/// Opens the store, and creates it if it is missing: ids may be reserved before the first operation.
fn open_or_make_store(rules: &StoreSettings) -> Result<Arc<dyn Store>, CliError> {
    let beside = || open_beside(rules, StoreAccess::Change, Arc::new(SystemRandomness::default()), Arc::default());
    match beside() {
        Err(OpenError::Missing { .. }) => {
            // Closed at once, since a gateway may start while ids are reserved.
            let random = Arc::new(SystemRandomness::default());
            drop(open_store(rules, Arc::new(SystemClock), random, Arc::default()).map_err(CliError::failed)?);
            beside()
        }
        opened => opened,
    }
    .map_err(CliError::failed)
}

/// The progress of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ImportCounts {
    ids: Reservations,
    blank: u64,
    /// The last line that was processed.
    through: u64,
}

impl fmt::Display for ImportCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reservations { new, known, operations } = self.ids;
        write!(f, "{new} new, {known} reserved before, {operations} skipped (operations here)")?;
        let lines = if self.through == 1 { "line" } else { "lines" };
        write!(f, ", {} {lines}", self.through)?;
        if self.blank > 0 { write!(f, " ({} blank)", self.blank) } else { Ok(()) }
    }
}

/// A running import.
struct Import<'a> {
    store: &'a dyn Store,
    merchant: &'a MerchantId,
    direction: Direction,
    work: BatchWork<'a>,
    counts: ImportCounts,
    /// Whether the list was marked as complete before.
    was_complete: bool,
}

impl Import<'_> {
    /// Reserves the ids, and then marks the list as complete if it is.
    async fn run<R: io::BufRead>(&mut self, lines: &mut Lines<R>, complete: bool) -> Result<(), Interruption> {
        self.reserve_lines(lines).await?;
        if complete { self.mark_complete().await } else { Ok(()) }
    }

    async fn reserve_lines<R: io::BufRead>(&mut self, lines: &mut Lines<R>) -> Result<(), Interruption> {
        let (store, merchant, direction) = (self.store, self.merchant, self.direction);
        self.was_complete = self.work.retry(async || store.ids_complete(merchant, direction).await).await?;
        let (mut batch, mut blank, mut through) = (Vec::with_capacity(BATCH), 0, 0);
        loop {
            let line = lines.read()?;
            let ends = line.is_none();
            if let Some(line) = line {
                through = line.number;
                match line.content {
                    LineContent::Id(id) => batch.push((line.number, id)),
                    LineContent::Blank => blank += 1,
                    // The file has changed since it was checked.
                    LineContent::Flawed(invalid) => return Err(io::Error::other(invalid.reason()).into()),
                }
            }
            if batch.len() == BATCH || ends {
                self.reserve(&batch).await?;
                batch.clear();
                self.counts.blank += std::mem::take(&mut blank);
                self.counts.through = through;
                self.work.show(through);
                if ends {
                    return Ok(());
                }
                self.work.pause().await?;
            }
        }
    }

    /// Commits a batch.
    async fn reserve(&mut self, batch: &[(u64, OrderId)]) -> Result<(), Interruption> {
        let ids: Vec<_> = batch.iter().map(|(_, id)| id.clone()).collect();
        let (store, merchant, direction) = (self.store, self.merchant, self.direction);
        let done = self.work.retry(async || store.reserve(merchant, direction, &ids, SystemClock.now()).await).await?;
        self.list_skipped(batch, done.operations).await?;
        self.counts.ids.new += done.new;
        self.counts.ids.known += done.known;
        self.counts.ids.operations += done.operations;
        Ok(())
    }

    async fn mark_complete(&mut self) -> Result<(), Interruption> {
        let (store, merchant, direction) = (self.store, self.merchant, self.direction);
        self.work.retry(async || store.mark_complete(merchant, direction, SystemClock.now()).await).await
    }

    /// Prints a note if the list was marked as complete before this import, and is not any more.
    async fn note_if_incomplete(&mut self) {
        let (merchant, direction) = (self.merchant, self.direction);
        // A store that fails here has its error reported elsewhere.
        if self.was_complete
            && let Ok(false) = self.store.ids_complete(merchant, direction).await
        {
            let note = format!(
                "note: the list of {direction} ids of {merchant} was complete and counts as incomplete again, since ids were added; \
                 import the last of them with --complete"
            );
            self.work.print_line(&note);
        }
    }

    /// Lists the lines of the first ids that were skipped.
    async fn list_skipped(&mut self, batch: &[(u64, OrderId)], skipped: u64) -> Result<(), StoreError> {
        let mut named = usize::try_from(self.counts.ids.operations).unwrap_or(MAX_LISTED);
        let mut left = skipped;
        for (number, id) in batch {
            if left == 0 || named >= MAX_LISTED {
                break;
            }
            if let OrderLookup::Operation(_) = self.store.by_order(self.merchant, self.direction, id).await? {
                let line = format!("line {number}: skipped, since an operation here has this id");
                self.work.print_line(&line);
                (left, named) = (left - 1, named + 1);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn invalid_lines_are_listed_up_to_a_bound() {
        let mut err = Vec::new();
        let text = format!("a\n\n b\nc\td\n{}", "\0\n".repeat(30));
        let outcome = check(&mut Cursor::new(text), "ids.txt", &mut err);
        let stated = String::from_utf8(err).unwrap();
        assert!(stated.starts_with("note: ids.txt: 2 ids contain control characters"), "{stated}");
        assert_eq!(stated.lines().count(), 1 + MAX_LISTED + 1, "{stated}");
        assert!(stated.ends_with("ids.txt:24: must not contain U+0000\n... and 10 more\n"), "{stated}");
        let Err(CliError::Failed(message)) = outcome else { panic!("the file has invalid lines") };
        assert_eq!(message, "ids.txt: 30 of 34 lines cannot be ids; nothing was reserved");
        assert!(matches!(check(&mut Cursor::new("a\n\nb"), "ids.txt", &mut Vec::new()), Ok(3)));
    }

    #[test]
    fn counts_are_formatted() {
        let ids = Reservations { new: 9000, known: 10, operations: 1 };
        let counts = ImportCounts { ids, blank: 0, through: 1 };
        assert_eq!(counts.to_string(), "9000 new, 10 reserved before, 1 skipped (operations here), 1 line");
        let counts = ImportCounts { blank: 2, through: 9013, ..counts };
        assert!(counts.to_string().ends_with(", 9013 lines (2 blank)"));
    }
}
