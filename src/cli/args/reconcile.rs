//! The arguments of `paybridge reconcile`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::common::Rules;
use super::export::{Period, shop_code};
use crate::domain::ShopCode;

/// `paybridge reconcile`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReconcileArgs {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// The shop whose provider made the statement; its rules state how it is read
    #[arg(long, value_name = "CODE", value_parser = shop_code)]
    pub shop: ShopCode,
    /// The times between which an operation is expected in the statement.
    #[command(flatten)]
    pub period: Period,
    /// The provider's statement, a CSV file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The format of the differences
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: ReportFormat,
}

const EXAMPLES: &str = "\
Differences:
  missing_here    a line without an operation of this shop
  missing_there   an operation that was created between --from and --to, and is on no line
  duplicate       a line with the key of an earlier one
  ambiguous       a line whose order_id several operations have
  amount, currency, status   a line that differs from its operation

A line that cannot be read ends the command before it compares anything. Lines are compared regardless of \
their time. Operations that are PENDING, or that were refused before the provider received them, are not \
missing there.

Exits with 0 if there is no difference, 4 if there is one, 1 if a line cannot be read, and 2 if the engine \
is remote.

Examples:
  paybridge reconcile --shop card-eur --from 2026-11-01 --to 2026-12-01 november.csv
  paybridge reconcile --shop card-eur --from 2026-11-24 --to 2026-11-25 day.csv --format json |
    jq .counts";

/// The format of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// A table for people
    #[default]
    Table,
    /// Comma-separated values with a header (RFC 4180)
    Csv,
    /// One JSON document
    Json,
}
