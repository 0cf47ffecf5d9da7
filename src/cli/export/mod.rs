//! `paybridge export`: writes rows of the store out, in short reads beside a gateway that serves. Leaves a row in the
//! audit trail, unless the store is a backup that was not adopted, which nothing changes.

mod columns;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::args::{ExportArgs, Period};
use super::outcome::{CliError, ExitOutcome, load, note_unknown, on_runtime, plural};
use super::progress::Progress;
use super::rows::{NewFile, RowWriter};
use super::signals::stop_signals;
use super::trail::{CommandTrail, outcome_of};
use crate::clock::{SystemClock, SystemRandomness};
use crate::domain::wide;
use crate::rules::{Mode, RuleSet};
use crate::store::{
    ActionRecord, ExportKeys, ExportPage, ExportQuery, ExportTable, Store, StoreAccess, StoreError, open_beside,
};
use crate::wire::time::rfc3339;
use columns::ExportColumn;

/// The time between two pages, each of which takes some three milliseconds of the processor.
const PAUSE: Duration = Duration::from_millis(4);

/// Writes the rows that match to `out`, or to a file.
///
/// # Errors
/// The arguments contradict each other, the rules or the store cannot be used, or the rows cannot be written.
pub(super) fn run(args: &ExportArgs, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    check_period(args.period)?;
    if args.shop.is_some() && args.table == ExportTable::Audit {
        return Err(CliError::Usage("--shop selects nothing of the audit trail".to_owned()));
    }
    let rules = load(&args.rules.rules, err)?;
    note_unknown(&rules, args.merchant.as_ref(), err)?;
    if let Some(unknown) = args.shop.as_ref().filter(|code| !rules.shops.contains_key(*code)) {
        writeln!(err, "note: {}", rules.no_such_shop(unknown.as_str()))?;
    }
    let mut file = args.output.as_deref().map(NewFile::create).transpose()?;
    let rows = on_runtime(async {
        let random = Arc::new(SystemRandomness::default());
        let store =
            open_beside(&rules.gateway.store, StoreAccess::Read, random, Arc::default()).map_err(CliError::failed)?;
        let trail = CommandTrail { trail: &*store, rules_version: &rules.version, clock: &SystemClock };
        let target: &mut dyn Write = match &mut file {
            Some(file) => file.writer(),
            None => out,
        };
        let outcome = recorded(&*store, &trail, args, target, err).await;
        let closed = store.close().await.map_err(CliError::failed);
        outcome.and_then(|rows| closed.map(|()| rows))
    })?;
    if let Some(file) = file {
        file.publish()?;
    }
    if rows == 0 {
        writeln!(err, "no rows: {}", why_none(&rules, args))?;
    }
    Ok(())
}

/// Refuses a range of time without an instant.
pub(super) fn check_period(period: Period) -> ExitOutcome {
    if period.from < period.to { Ok(()) } else { Err(CliError::Usage("--to must be later than --from".to_owned())) }
}

/// Writes the rows, between the beginning and the end of the export's row in the audit trail. Returns how many there were.
async fn recorded(
    store: &dyn Store,
    trail: &CommandTrail<'_>,
    args: &ExportArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u64, CliError> {
    let query = ExportQuery {
        from: args.period.from,
        to: args.period.to,
        merchant: args.merchant.clone(),
        shop: args.shop.clone(),
    };
    let keys = store.export_keys(args.table, query.clone()).await?;
    let parameters = [
        ("from", Some(rfc3339(query.from))),
        ("to", Some(rfc3339(query.to))),
        ("merchant", query.merchant.as_ref().map(ToString::to_string)),
        ("shop", query.shop.as_ref().map(ToString::to_string)),
        ("output", args.output.as_ref().map(|path| path.display().to_string())),
    ];
    let parameters = parameters.into_iter().filter_map(|(name, value)| Some((name, value?.into())));
    let mut export = Export { query: &query, args, rows: 0, progress: None, stop: stop_signals()? };
    let action = if store.known_until().await?.is_none() {
        Some(trail.begin(trail.action(ActionRecord::EXPORT, args.table.as_str(), parameters.collect())).await?)
    } else {
        writeln!(err, "note: the store is a backup that was not adopted: its audit trail has no row of this export")?;
        None
    };
    let written = export.table(store, keys, out, err).await;
    let rows = export.rows;
    drop(export);
    let counted = format!("{rows} row{}", plural(usize::try_from(rows).unwrap_or(usize::MAX)));
    let mut outcome = outcome_of(&written, |()| counted.clone());
    if written.is_err() {
        outcome = format!("{outcome}, after {counted}");
    }
    if let Some(action) = action {
        trail.end(action, &outcome, err).await?;
    }
    written.map(|()| rows)
}

/// An export that is under way.
struct Export<'a> {
    query: &'a ExportQuery,
    args: &'a ExportArgs,
    /// How many rows were written.
    rows: u64,
    progress: Option<Progress>,
    stop: watch::Receiver<bool>,
}

impl Export<'_> {
    async fn table(
        &mut self,
        store: &dyn Store,
        keys: Option<ExportKeys>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> ExitOutcome {
        let query = self.query;
        self.progress = Some(Progress::start("exporting", "rows", None));
        match self.args.table {
            ExportTable::Operations => {
                let read = async |keys| store.export_operations(query.clone(), keys).await;
                self.pages(columns::OPERATIONS, keys, read, out, err).await
            }
            ExportTable::Entries => {
                let read = async |keys| store.export_entries(query.clone(), keys).await;
                self.pages(columns::ENTRIES, keys, read, out, err).await
            }
            ExportTable::Callbacks => {
                let read = async |keys| store.export_callbacks(query.clone(), keys).await;
                self.pages(columns::CALLBACKS, keys, read, out, err).await
            }
            ExportTable::Audit => {
                let read = async |keys| store.export_actions(query.clone(), keys).await;
                self.pages(columns::AUDIT, keys, read, out, err).await
            }
        }
    }

    async fn pages<R>(
        &mut self,
        columns: &[ExportColumn<R>],
        mut keys: Option<ExportKeys>,
        read: impl AsyncFn(ExportKeys) -> Result<ExportPage<R>, StoreError>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> ExitOutcome {
        let mut writer = RowWriter::start(self.args.format, columns.iter().map(|(name, _)| *name), out)?;
        while let Some(left) = keys {
            let mut page = read(left).await?;
            for row in &page.rows {
                page.turns.give();
                writer.row(columns.iter().map(|(name, cell)| (*name, cell(row))))?;
            }
            self.rows += wide(page.rows.len());
            if let Some(progress) = &mut self.progress {
                progress.at(self.rows, err);
            }
            if *self.stop.borrow() {
                return Err(CliError::failed("interrupted"));
            }
            keys = page.rest;
            if keys.is_some() {
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(writer.finish()?)
    }
}

/// Returns why there were no rows, as far as the rules tell.
fn why_none(rules: &RuleSet, args: &ExportArgs) -> String {
    if args.table == ExportTable::Audit {
        return "no action of this time matches".to_owned();
    }
    if rules.gateway.engine.is_remote() && args.table != ExportTable::Callbacks {
        return "the engine is remote and has the operations; export them there".to_owned();
    }
    match args.merchant.as_ref().and_then(|id| rules.merchants.get(id)).map(|merchant| merchant.v1.mode) {
        Some(mode @ (Mode::Legacy | Mode::Shadow)) => {
            let (merchant, mode) = (args.merchant.as_ref().map_or("", |id| id.as_str()), mode.as_str());
            format!("{merchant} is in mode {mode}: the old v1 service makes its v1 orders, and has them")
        }
        Some(Mode::Translate | Mode::Staged(_)) | None => format!("no {} of this time match", args.table.as_str()),
    }
}
