//! `paybridge import-ids`: reserves the external ids that the old v1 service has (contract section 7).
//!
//! A file is read twice: the first pass only looks, so that a bad file reserves nothing. What can be read once, a pipe, is
//! looked at as it goes. Reservations are committed in batches, and reserving again changes nothing: an import that
//! ended half way is run again.

mod feed;
mod pace;
mod reserving;

use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Read, Seek, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;

use super::args::{ImportIds, Kind};
use super::progress::{Counters, Progress, span};
use super::signals::{stop_signals, stopped};
use super::{Outcome, Stop, merchant, on_runtime};
use crate::clock::SystemRandomness;
use crate::domain::MerchantId;
use crate::rules::{RuleSet, StoreRules};
use crate::store::{OpenError, Store, open_beside, open_store};
use feed::{AHEAD, Survey, Unreadable, feed};
use reserving::{Halt, Import, Tally};

const BUFFER: usize = 256 * 1024;

/// Reserves the ids of a file, and prints one line on what was new and what was there.
///
/// # Errors
/// The merchant is unknown, the file cannot be read or holds what is no id, the store cannot be used, or somebody
/// interrupts: the message says what was done, and that it can be run again.
pub fn run(rules: &RuleSet, asked: &ImportIds, out: &mut dyn Write, err: &mut dyn Write) -> Outcome {
    let merchant = &merchant(rules, &asked.merchant)?.id;
    let started = Instant::now();
    let source = Source::open(&asked.file, err)?;
    let desk = Desk { store: &rules.gateway.store, merchant, kind: asked.kind };
    let tally = on_runtime(desk.import(source, err))?;
    let (kind, time) = (kind_name(asked.kind), span(started.elapsed()));
    Ok(writeln!(out, "{merchant} {kind}: {tally}, in {time}")?)
}

const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Payin => "payin",
        Kind::Payout => "payout",
    }
}

/// Where the ids come from.
struct Source {
    /// As messages call it.
    name: String,
    reader: Reader,
}

enum Reader {
    /// Can be read twice.
    File(File),
    /// Can be read once.
    Stream(Box<dyn Read + Send>),
}

impl Source {
    fn open(path: &Path, err: &mut dyn Write) -> Result<Self, Stop> {
        if path == Path::new("-") {
            let stdin = io::stdin();
            if stdin.is_terminal() {
                writeln!(err, "reading ids from standard input; end them with Ctrl-D")?;
            }
            return Ok(Self { name: "standard input".to_owned(), reader: Reader::Stream(Box::new(stdin)) });
        }
        let name = path.display().to_string();
        let unreadable = |cause: io::Error| Stop::failed(format!("{name}: {cause}"));
        let file = File::open(path).map_err(unreadable)?;
        let twice = file.metadata().map_err(unreadable)?.is_file();
        let reader = if twice { Reader::File(file) } else { Reader::Stream(Box::new(file)) };
        Ok(Self { name, reader })
    }
}

/// Whose ids are reserved where.
struct Desk<'a> {
    store: &'a StoreRules,
    merchant: &'a MerchantId,
    kind: Kind,
}

impl Desk<'_> {
    async fn import(&self, source: Source, err: &mut dyn Write) -> Result<Tally, Stop> {
        let mut stop = stop_signals()?;
        let Source { name, reader } = source;
        let (reader, total) = match reader {
            Reader::Stream(stream) => (stream, None),
            Reader::File(file) => {
                let (file, lines) = survey(file, &name, &mut stop, err).await?;
                (Box::new(file) as Box<dyn Read + Send>, Some(lines))
            }
        };
        let store = open_or_make_store(self.store)?;
        let outcome = self.reserve(&*store, reader, &name, total, stop, err).await;
        let closed = store.close().await.map_err(Stop::failed);
        outcome.and_then(|tally| closed.map(|()| tally))
    }

    async fn reserve(
        &self,
        store: &dyn Store,
        reader: Box<dyn Read + Send>,
        name: &str,
        total: Option<u64>,
        stop: watch::Receiver<bool>,
        err: &mut dyn Write,
    ) -> Result<Tally, Stop> {
        let (to, mut batches) = mpsc::channel(AHEAD);
        let reading = spawn_blocking(move || feed(BufReader::with_capacity(BUFFER, reader), &to));
        let mut import = Import {
            store,
            merchant: self.merchant,
            direction: self.kind.into(),
            stop,
            progress: Progress::start("importing", "lines", total),
            tally: Tally::default(),
            err,
        };
        let outcome = import.run(&mut batches).await;
        let tally = import.tally;
        let why = match outcome {
            Ok(()) => match reading.await {
                Ok(Ok(())) => return Ok(tally),
                Ok(Err(unreadable)) => format!("{name}: {unreadable}"),
                Err(ended) => format!("{name}: the reading ended: {ended}"),
            },
            Err(Halt::Interrupted) => "interrupted".to_owned(),
            Err(Halt::Store(error)) => error.to_string(),
        };
        Err(Stop::failed(format!("{why}\nso far: {tally}; run it again to go on: what is reserved stays reserved")))
    }
}

/// Looks at a whole file, and gives it back at its start with the number of its lines. A bad one is refused.
async fn survey(
    mut file: File,
    name: &str,
    stop: &mut watch::Receiver<bool>,
    err: &mut dyn Write,
) -> Result<(File, u64), Stop> {
    let counters = Arc::new(Counters::default());
    let looking = {
        let counters = Arc::clone(&counters);
        spawn_blocking(move || {
            let survey = Survey::of(BufReader::with_capacity(BUFFER, &file), &counters)?;
            file.rewind().map_err(|cause| Unreadable::Io { after: survey.lines, cause })?;
            Ok::<_, Unreadable>((file, survey))
        })
    };
    let mut progress = Progress::start("looking", "lines", None);
    let looked = tokio::select! {
        () = stopped(stop) => return Err(Stop::failed("interrupted; nothing was reserved")),
        looked = progress.during(&counters, err, looking) => looked,
    };
    drop(progress);
    let (file, survey) = looked.map_err(Stop::failed)?.map_err(|error| Stop::failed(format!("{name}: {error}")))?;
    refuse_flawed(name, &survey, err)?;
    if survey.odd > 0 {
        writeln!(
            err,
            "note: {name}: {} of the ids hold control characters or have spaces at an edge, the first in line {}; they \
             are reserved as they are",
            survey.odd, survey.first_odd
        )?;
    }
    Ok((file, survey.lines))
}

fn refuse_flawed(name: &str, survey: &Survey, err: &mut dyn Write) -> Outcome {
    if survey.flawed == 0 {
        return Ok(());
    }
    for (line, invalid) in &survey.first_flaws {
        writeln!(err, "{name}:{line}: {}", invalid.reason())?;
    }
    let more = survey.flawed - survey.first_flaws.len() as u64;
    if more > 0 {
        writeln!(err, "... and {more} more")?;
    }
    let (flawed, lines) = (survey.flawed, survey.lines);
    Err(Stop::failed(format!("{name}: {flawed} of {lines} lines cannot be ids; nothing was reserved")))
}

/// The store, made when there is none: ids may be reserved before the first operation.
fn open_or_make_store(rules: &StoreRules) -> Result<Arc<dyn Store>, Stop> {
    let beside = || open_beside(rules, Arc::new(SystemRandomness::default()), Arc::default());
    match beside() {
        Err(OpenError::Missing { .. }) => {
            // Only for as long as it takes to make it: a gateway may start while ids are reserved.
            drop(open_store(rules, Arc::new(SystemRandomness::default()), Arc::default()).map_err(Stop::failed)?);
            beside()
        }
        opened => opened,
    }
    .map_err(Stop::failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Invalid;

    #[test]
    fn flaws_are_told_one_by_one_up_to_a_bound() {
        let said = |flawed: u64| {
            let first_flaws = (1..=flawed.min(3)).map(|line| (line, Invalid::new("must be UTF-8"))).collect();
            let survey = Survey { lines: 90, flawed, first_flaws, ..Survey::default() };
            let mut err = Vec::new();
            let outcome = refuse_flawed("ids.txt", &survey, &mut err);
            let stop = match outcome {
                Err(Stop::Failed(message)) => message,
                _ => String::new(),
            };
            String::from_utf8(err).unwrap() + &stop
        };
        assert_eq!(said(0), "");
        let two = "ids.txt:1: must be UTF-8\nids.txt:2: must be UTF-8\n";
        assert_eq!(said(2), format!("{two}ids.txt: 2 of 90 lines cannot be ids; nothing was reserved"));
        let three = format!("{two}ids.txt:3: must be UTF-8\n... and 4 more\n");
        assert_eq!(said(7), format!("{three}ids.txt: 7 of 90 lines cannot be ids; nothing was reserved"));
    }
}
