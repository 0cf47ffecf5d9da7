//! `paybridge import-ids`: reserves the external ids that the old v1 service has (contract section 7).
//!
//! Every line is checked before the first id is reserved, so an invalid line reserves nothing: a file is read twice, a
//! pipe is kept in memory. Reservations are committed in batches and are idempotent: an interrupted import is run
//! again. The mark of `--complete` is a commit of its own after the last batch. An import leaves a row in the audit
//! trail, which is written before the first id is reserved.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Cursor, IsTerminal, Read, Seek, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::args::ImportIds;
use super::lines::{Line, LineContent, Lines};
use super::outcome::{CliError, ExitOutcome, merchant, on_runtime};
use super::progress::{Progress, span};
use super::signals::{stop_signals, stopped};
use super::trail::{CommandTrail, outcome_of};
use crate::clock::{Clock, SystemClock, SystemRandomness};
use crate::domain::{Direction, InvalidValue, MerchantId, OrderId, wide};
use crate::rules::RuleSet;
use crate::store::{ActionRecord, OpenError, OrderLookup, Reservations, Store, StoreError, open_beside, open_store};
use crate::store_settings::StoreSettings;
use crate::telemetry::Stopwatch;

/// How many ids one commit reserves.
const BATCH: usize = 1000;
/// The pause between two commits, in which a gateway on the same file can commit.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a batch is retried while the store is busy or unavailable, and the pause before each retry.
const RETRIES: u32 = 60;
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The longest pipe that is kept in memory, in bytes.
const LONGEST_PIPE: u64 = 256 * 1024 * 1024;
/// How many invalid lines, and how many skipped ids, are listed.
const MAX_LISTED: usize = 20;

/// Reserves the ids of a file, and prints one line with the counts.
///
/// # Errors
/// The merchant is unknown, the file cannot be read or has an invalid line, the store cannot be used, or a signal
/// interrupts the import. The message contains what was done, and that the command can be run again.
pub fn run(rules: &RuleSet, args: &ImportIds, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    let merchant = &merchant(rules, &args.merchant)?.id;
    let watch = Stopwatch::start();
    let (name, mut source) = open(&args.file, err)?;
    let lines = check(&mut source, &name, err)?;
    source.rewind().map_err(|cause| CliError::failed(format!("{name}: {cause}")))?;
    let ids = Lines::new(BufReader::new(source));
    let counts = on_runtime(reserve_all(rules, merchant, args, &name, ids, lines, err))?;
    let complete = if args.complete { "; the list is complete" } else { "" };
    Ok(writeln!(out, "{merchant} {}: {counts}, in {}{complete}", args.direction, span(watch.elapsed()))?)
}

/// An input that can be read twice.
trait Source: Read + Seek {}
impl<T: Read + Seek> Source for T {}

/// Opens a file, or reads a pipe to its end. Also returns its name for messages.
fn open(path: &Path, err: &mut dyn Write) -> Result<(String, Box<dyn Source>), CliError> {
    let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let unreadable = |cause: io::Error| CliError::failed(format!("{name}: {cause}"));
    let stream: Box<dyn Read> = if path == Path::new("-") {
        if io::stdin().is_terminal() {
            writeln!(err, "reading ids from standard input; end them with Ctrl-D")?;
        }
        Box::new(io::stdin())
    } else {
        let file = File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_file() {
            return Ok((name, Box::new(file)));
        }
        Box::new(file)
    };
    let mut held = Vec::new();
    stream.take(LONGEST_PIPE + 1).read_to_end(&mut held).map_err(unreadable)?;
    if wide(held.len()) > LONGEST_PIPE {
        return Err(CliError::failed(format!("{name}: more than {LONGEST_PIPE} bytes: name a file instead of a pipe")));
    }
    Ok((name, Box::new(Cursor::new(held))))
}

/// Checks every line; returns their number. Invalid lines are listed, and end the import.
fn check(source: &mut dyn Source, name: &str, err: &mut dyn Write) -> Result<u64, CliError> {
    let mut lines = Lines::new(BufReader::new(source));
    let mut progress = Progress::start("checking", "lines", None);
    let (mut count, mut flawed, mut first_flaws) = (0, 0, Vec::new());
    let (mut odd, mut first_odd) = (0, 0);
    while let Some(line) = next_line(&mut lines, name, count)? {
        count = line.number;
        progress.at(count, err);
        match line.content {
            LineContent::Blank => {}
            LineContent::Id(id) => {
                let text = id.as_str();
                if text.trim() != text || text.chars().any(char::is_control) {
                    first_odd = if odd == 0 { count } else { first_odd };
                    odd += 1;
                }
            }
            LineContent::Flawed(invalid) => {
                flawed += 1;
                if first_flaws.len() < MAX_LISTED {
                    first_flaws.push((count, invalid));
                }
            }
        }
    }
    drop(progress);
    if odd > 0 {
        writeln!(
            err,
            "note: {name}: {odd} ids contain control characters or have spaces at either end, the first in line {first_odd}; \
             they are reserved unchanged"
        )?;
    }
    if flawed == 0 { Ok(count) } else { Err(invalid_file(name, count, flawed, &first_flaws, err)?) }
}

fn invalid_file(
    name: &str,
    lines: u64,
    flawed: usize,
    first: &[(u64, InvalidValue)],
    err: &mut dyn Write,
) -> io::Result<CliError> {
    for (line, invalid) in first {
        writeln!(err, "{name}:{line}: {}", invalid.reason())?;
    }
    if flawed > first.len() {
        writeln!(err, "... and {} more", flawed - first.len())?;
    }
    Ok(CliError::failed(format!("{name}: {flawed} of {lines} lines cannot be ids; nothing was reserved")))
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
    let progress = Progress::start("importing", "lines", Some(total));
    let (direction, counts, err_again) = (args.direction, ImportCounts::default(), &mut *err);
    let mut import =
        Import { store: &*store, merchant, direction, stop, progress, counts, was_complete: false, err: err_again };
    let (id, done) = match import.retry(async || trail.begin(action.clone()).await).await {
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
    let beside = || open_beside(rules, Arc::new(SystemRandomness::default()), Arc::default());
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

/// Why an import ended early.
#[derive(Debug, thiserror::Error)]
enum Interruption {
    #[error("interrupted")]
    Signal,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the ids cannot be read to the end: {0}")]
    Source(#[from] io::Error),
}

/// A running import.
struct Import<'a> {
    store: &'a dyn Store,
    merchant: &'a MerchantId,
    direction: Direction,
    stop: watch::Receiver<bool>,
    progress: Progress,
    counts: ImportCounts,
    /// Whether the list was marked as complete before.
    was_complete: bool,
    err: &'a mut dyn Write,
}

impl Import<'_> {
    /// Reserves the ids, and then marks the list as complete if it is.
    async fn run<R: io::BufRead>(&mut self, lines: &mut Lines<R>, complete: bool) -> Result<(), Interruption> {
        self.reserve_lines(lines).await?;
        if complete { self.mark_complete().await } else { Ok(()) }
    }

    async fn reserve_lines<R: io::BufRead>(&mut self, lines: &mut Lines<R>) -> Result<(), Interruption> {
        let (store, merchant, direction) = (self.store, self.merchant, self.direction);
        self.was_complete = self.retry(async || store.ids_complete(merchant, direction).await).await?;
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
                self.progress.at(through, self.err);
                if ends {
                    return Ok(());
                }
                self.pause(PAUSE).await?;
            }
        }
    }

    /// Commits a batch.
    async fn reserve(&mut self, batch: &[(u64, OrderId)]) -> Result<(), Interruption> {
        let ids: Vec<_> = batch.iter().map(|(_, id)| id.clone()).collect();
        let (store, merchant, direction) = (self.store, self.merchant, self.direction);
        let done = self.retry(async || store.reserve(merchant, direction, &ids, SystemClock.now()).await).await?;
        self.list_skipped(batch, done.operations).await?;
        self.counts.ids.new += done.new;
        self.counts.ids.known += done.known;
        self.counts.ids.operations += done.operations;
        Ok(())
    }

    async fn mark_complete(&mut self) -> Result<(), Interruption> {
        let (store, merchant, direction) = (self.store, self.merchant, self.direction);
        self.retry(async || store.mark_complete(merchant, direction, SystemClock.now()).await).await
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
            self.progress.print_line(&note, self.err);
        }
    }

    /// Calls the store; retries for a while if it is busy.
    async fn retry<T>(&mut self, call: impl AsyncFn() -> Result<T, StoreError>) -> Result<T, Interruption> {
        let mut retries = 0;
        loop {
            match call().await {
                Err(error @ StoreError::Unavailable(_)) if retries < RETRIES => {
                    if retries == 0 {
                        self.progress.print_line(&format!("{error}; retrying"), self.err);
                    }
                    retries += 1;
                    self.pause(RETRY_AFTER).await?;
                }
                done => return Ok(done?),
            }
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
                self.progress.print_line(&line, self.err);
                (left, named) = (left - 1, named + 1);
            }
        }
        Ok(())
    }

    async fn pause(&mut self, span: Duration) -> Result<(), Interruption> {
        tokio::select! {
            biased;
            () = stopped(&mut self.stop) => Err(Interruption::Signal),
            () = sleep(span) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
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
