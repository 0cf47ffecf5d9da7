//! The differences between a statement and the operations: as a table, as CSV, and as a JSON document.

use std::borrow::Cow;
use std::io::{self, Seek as _, Write};

use serde::Serialize;
use tempfile::SpooledTempFile;

use crate::cli::args::{ExportFormat, ReportFormat};
use crate::cli::columns::{cut, plain};
use crate::cli::rows::{Cell, RowWriter};
use crate::domain::Operation;

/// A kind of difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DifferenceKind {
    MissingHere,
    MissingThere,
    Duplicate,
    Ambiguous,
    Amount,
    Currency,
    Status,
}

impl DifferenceKind {
    const ALL: [Self; 7] = [
        Self::MissingHere,
        Self::MissingThere,
        Self::Duplicate,
        Self::Ambiguous,
        Self::Amount,
        Self::Currency,
        Self::Status,
    ];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::MissingHere => "missing_here",
            Self::MissingThere => "missing_there",
            Self::Duplicate => "duplicate",
            Self::Ambiguous => "ambiguous",
            Self::Amount => "amount",
            Self::Currency => "currency",
            Self::Status => "status",
        }
    }
}

/// A difference.
#[derive(Debug)]
pub(super) struct Difference<'a> {
    pub(super) kind: DifferenceKind,
    /// The line of the statement, if it is on one.
    pub(super) line: Option<u64>,
    pub(super) key: Cow<'a, str>,
    pub(super) operation: Option<&'a Operation>,
    pub(super) theirs: Option<Cow<'a, str>>,
    pub(super) ours: Option<Cow<'a, str>>,
}

/// The columns of a difference.
const NAMES: [&str; 7] = ["difference", "line", "key", "transaction_id", "order_id", "theirs", "ours"];

impl Difference<'_> {
    fn cells(&self) -> [Cell<'_>; 7] {
        // A status is the provider's word; an amount is a number.
        let theirs = |text| {
            if self.kind == DifferenceKind::Status { Cell::foreign(text) } else { Cell::own(text) }
        };
        [
            Cell::own(self.kind.as_str()),
            Cell::of(self.line, |line| Cell::Number(i64::try_from(line).unwrap_or(i64::MAX))),
            Cell::foreign(&*self.key),
            Cell::of(self.operation, |operation| Cell::own(operation.id.to_string())),
            Cell::of(self.operation, |operation| Cell::foreign(operation.order_id.as_str())),
            Cell::of(self.theirs.as_deref(), theirs),
            Cell::of(self.ours.as_deref(), Cell::own),
        ]
    }
}

/// A report that is being written.
pub(super) struct DifferenceReport<'w> {
    output: Output<'w>,
    counts: [u64; DifferenceKind::ALL.len()],
}

/// How many bytes of a JSON document are kept in memory.
const MAX_IN_MEMORY: usize = 16 << 20;

enum Output<'w> {
    Table(io::BufWriter<&'w mut dyn Write>),
    Csv(RowWriter<'w>),
    /// The differences, separated by commas: their counts precede them. Many are kept in a file without a name.
    Json(&'w mut dyn Write, io::BufWriter<SpooledTempFile>),
}

impl<'w> DifferenceReport<'w> {
    /// Starts a report.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(super) fn start(format: ReportFormat, out: &'w mut dyn Write) -> io::Result<Self> {
        let output = match format {
            ReportFormat::Table => Output::Table(io::BufWriter::new(out)),
            ReportFormat::Csv => Output::Csv(RowWriter::start(ExportFormat::Csv, NAMES, out)?),
            ReportFormat::Json => Output::Json(out, io::BufWriter::new(SpooledTempFile::new(MAX_IN_MEMORY))),
        };
        Ok(Self { output, counts: Default::default() })
    }

    /// Adds a difference.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(super) fn add(&mut self, difference: &Difference<'_>) -> io::Result<()> {
        let is_first = self.total() == 0;
        let counts = self.counts.iter_mut().zip(DifferenceKind::ALL);
        counts.filter(|(_, kind)| *kind == difference.kind).for_each(|(count, _)| *count += 1);
        let cells = difference.cells();
        match &mut self.output {
            Output::Table(out) => {
                if is_first {
                    write_line(out, NAMES.map(|name| name.to_uppercase().into()))?;
                }
                write_line(out, cells.map(Cell::plain))
            }
            Output::Csv(writer) => writer.row(NAMES.into_iter().zip(cells)),
            Output::Json(_, json) => {
                if !is_first {
                    json.write_all(b",")?;
                }
                Ok(serde_json::to_writer(json, &Members(NAMES.into_iter().zip(cells).collect()))?)
            }
        }
    }

    /// Returns how many differences there are.
    pub(super) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the counts of all kinds that there are, in words.
    pub(super) fn summary(&self) -> String {
        let counts = self.counts.iter().zip(DifferenceKind::ALL).filter(|(count, _)| **count > 0);
        let counts: Vec<_> = counts.map(|(count, kind)| format!("{count} {}", kind.as_str())).collect();
        if counts.is_empty() { "no differences".to_owned() } else { counts.join(", ") }
    }

    /// Completes the report.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(super) fn finish(self) -> io::Result<()> {
        match self.output {
            Output::Table(mut out) => out.flush(),
            Output::Csv(writer) => writer.finish(),
            Output::Json(out, differences) => {
                let counts = self.counts.iter().zip(DifferenceKind::ALL);
                let counts = counts
                    .map(|(count, kind)| (kind.as_str(), Cell::Number(i64::try_from(*count).unwrap_or(i64::MAX))));
                write!(out, "{{\"counts\":{},\"differences\":[", serde_json::to_string(&Members(counts.collect()))?)?;
                let mut differences = differences.into_inner()?;
                differences.rewind()?;
                io::copy(&mut differences, out)?;
                out.write_all(b"]}\n")
            }
        }
    }
}

/// The members of a JSON object, in their order.
struct Members<'c>(Vec<(&'static str, Cell<'c>)>);

impl Serialize for Members<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, cell)| (name, cell)))
    }
}

/// Writes a line of the table. Its columns have fixed widths, since the differences are not known in advance.
fn write_line(out: &mut impl Write, cells: [Cow<'_, str>; 7]) -> io::Result<()> {
    const WIDTHS: [usize; 7] = [13, 7, 20, 19, 20, 12, 0];
    for (cell, width) in cells.into_iter().zip(WIDTHS) {
        let cell = cut(plain(&cell));
        match width {
            0 => writeln!(out, "{cell}")?,
            width => write!(out, "{cell:<width$}  ")?,
        }
    }
    Ok(())
}
