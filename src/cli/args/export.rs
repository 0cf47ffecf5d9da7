//! The arguments of `paybridge export`.

use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum, ValueHint};

use super::common::{Rules, merchant_id};
use crate::domain::{MerchantId, ShopCode, UnixMillis};
use crate::store::ExportTable;
use crate::wire::time::{read_date, read_rfc3339};

/// `paybridge export`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ExportArgs {
    /// What to write out
    #[arg(value_enum, value_name = "WHAT")]
    pub table: ExportTable,
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// The times of the rows.
    #[command(flatten)]
    pub period: Period,
    /// Only of this merchant
    #[arg(long, value_name = "ID", value_parser = merchant_id)]
    pub merchant: Option<MerchantId>,
    /// Only of this shop; not for `audit`
    #[arg(long, value_name = "CODE", value_parser = shop_code)]
    pub shop: Option<ShopCode>,
    /// The format of the rows
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: ExportFormat,
    /// Write to this file, which must not exist and appears when it is complete [default: standard output]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Rows are selected by their time: operations by created_at, entries of the ledger by posted_at, callbacks \
by queued_at, actions of the audit trail by began_at. Every row that exists when the command starts comes \
once, as it is when it is read. Columns are described in docs/operations.md; new ones are added at the end.

In CSV, a text chosen by others that a spreadsheet would run as a formula begins with an apostrophe. \
Account numbers are masked. With --merchant, `audit` has the actions whose target or parameter it is.

It may run while a gateway serves, and leaves a row in the audit trail.

Examples:
  paybridge export operations --from 2026-11-01 --to 2026-12-01 --output november.csv
  paybridge export entries --from 2026-11-01 --to 2026-12-01 --merchant demo
  paybridge export callbacks --from 2026-11-24 --to 2026-11-25 --format jsonl | jq .state
  paybridge export audit --from 2026-11-24T08:00:00Z --to 2026-11-24T09:00:00Z";

/// A range of time, without its end.
#[derive(Debug, Clone, Copy, Args)]
pub struct Period {
    /// From this time on: a date (its first instant, in UTC) or a time (RFC 3339)
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub from: UnixMillis,
    /// Before this time: a date (its first instant, in UTC) or a time (RFC 3339)
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub to: UnixMillis,
}

/// The format of exported rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Comma-separated values with a header (RFC 4180)
    #[default]
    Csv,
    /// One JSON object per line
    Jsonl,
}

impl ValueEnum for ExportTable {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Operations, Self::Entries, Self::Callbacks, Self::Audit]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Operations => "Deposits and withdrawals, each with its state",
            Self::Entries => "The entries of the double-entry ledger",
            Self::Callbacks => "The callbacks to merchants, each with its state",
            Self::Audit => "The actions of operators, and the commands that change something",
        };
        Some(PossibleValue::new(self.as_str()).help(help))
    }
}

fn moment(text: &str) -> Result<UnixMillis, String> {
    let time = || read_rfc3339(text).map(|time| UnixMillis(time.as_millisecond()));
    let moment = read_date(text).map(|[first, _]| first).or_else(time);
    moment.ok_or_else(|| "must be a date such as 2026-01-02 or a time such as 2026-01-02T03:04:05Z".to_owned())
}

pub(super) fn shop_code(text: &str) -> Result<ShopCode, String> {
    ShopCode::new(text).map_err(|invalid| invalid.reason().to_owned())
}
