//! Compiles `[reconcile]` of a shop: how its provider's statement is read.

use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::{Context, FileContext};
use crate::domain::Status;
use crate::names::quoted;
use crate::rules::raw::{DisplayName, Field, FromToml, List, RawReader, from_words, raw_table};
use crate::rules::{SkippedLines, StatementColumns, StatementEncoding, StatementKey, StatementRules};

raw_table! {
    /// `[reconcile]`: how `paybridge reconcile` reads the provider's statement, a CSV file with a line of column names.
    struct RawReconcile {
        /// What the key column has: `transaction_id` or `order_id`.
        key: StatementKey = required,
        /// The names of the columns.
        columns: RawStatementColumns = required,
        /// The words of the status column, by what they mean. Another word differs from every status.
        statuses: RawStatementStatuses = section,
        /// The character between two fields: a tab, or an ASCII character that is neither a letter, a digit, a space,
        /// a point nor a quotation mark.
        delimiter: Delimiter = "," where { "examples": [",", ";", "\t"] },
        /// The character before the hundredths of an amount: `.` or `,`. Thousands have no separator.
        decimal: DecimalMark = ".",
        /// The encoding of the file: `utf-8` (with or without a byte order mark) or `latin1`.
        encoding: StatementEncoding = "utf-8",
        /// Lines to skip, such as totals. Any other line that is of no operation ends the command.
        skip: RawSkippedLines,
    }
}

raw_table! {
    /// `[reconcile.columns]`. White space around names and values does not count, but it may belong to an order id.
    struct RawStatementColumns {
        /// The id of the operation.
        key: DisplayName = required where { "examples": ["reference"] },
        /// The amount. A leading minus of a withdrawal does not count.
        amount: DisplayName = required,
        /// The currency. Without it, all amounts are in the shop's currency.
        currency: DisplayName,
        /// The status. Without it, all lines are of operations that succeeded. Needs `statuses`.
        status: DisplayName,
        /// The merchant's id.
        merchant: DisplayName,
        /// The direction: `payin` or `payout`.
        direction: DisplayName,
    }
}

raw_table! {
    /// `[reconcile.statuses]`.
    struct RawStatementStatuses {
        /// The words for operations that succeeded.
        success "SUCCESS": List<DisplayName> = [] where { "examples": [["paid"]] },
        /// The words for operations that failed. Without any, the statement is not expected to list them.
        failed "FAILED": List<DisplayName> = [],
        /// The words for operations that have no result yet.
        pending "PENDING": List<DisplayName> = [],
    }
}

raw_table! {
    /// `[reconcile.skip]`.
    struct RawSkippedLines {
        /// The name of a column.
        column: DisplayName = required,
        /// The values of that column in the lines to skip; `""`: an empty one.
        values: List<String> = required where { "examples": [["Total"]] },
    }
}

from_words! {
    StatementKey { "transaction_id" => StatementKey::TransactionId, "order_id" => StatementKey::OrderId, }
    StatementEncoding { "utf-8" => StatementEncoding::Utf8, "latin1" => StatementEncoding::Latin1, }
    DecimalMark { "." => DecimalMark('.'), "," => DecimalMark(','), }
}

/// The character before the hundredths of an amount.
#[derive(Debug, Clone, Copy)]
pub(in crate::rules) struct DecimalMark(pub char);

/// The character between two fields.
#[derive(Debug, Clone, Copy)]
pub(in crate::rules) struct Delimiter(pub u8);

impl FromToml for Delimiter {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        let text = reader.text(value, "a string of one character")?;
        let delimiter = match text.as_bytes() {
            [byte @ (b'\t' | b'!'..=b'~')] if !byte.is_ascii_alphanumeric() && !b".\"'-".contains(byte) => Some(*byte),
            _ => None,
        };
        if delimiter.is_none() {
            reader.wrong(value.span(), "must be one character that separates fields, such as \",\", \";\" or \"\\t\"");
        }
        delimiter.map(Self)
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": r"^[\t!#$%&()*+,/:;<=>?@\[\\\]^_`{|}~]$" })
    }
}

impl Context<'_> {
    pub(super) fn reconcile(
        &mut self,
        context: FileContext<'_>,
        field: &Field<RawReconcile>,
    ) -> Option<StatementRules> {
        let given = field.given()?;
        let raw = given.get_ref();
        let named = |name: &Field<DisplayName>| name.get().map(|name| Box::from(name.0.trim()));
        let columns = raw.columns.get()?;
        let statuses = self.statement_words(context, &raw.statuses);
        if let Some(at) = columns.status.place().filter(|_| statuses.is_empty()) {
            let message = "`reconcile.columns.status` needs `reconcile.statuses`, which states what its words mean";
            self.problem(context, at, message);
        }
        if columns.status.is_absent() && !statuses.is_empty() {
            let at = raw.statuses.place().unwrap_or_else(|| given.span());
            self.problem(context, at, "`reconcile.statuses` needs `reconcile.columns.status`");
        }
        let skip = raw.skip.get().and_then(|skip| {
            let values = skip.values.get()?.values().map(|value| value.trim().into()).collect();
            Some(SkippedLines { column: named(&skip.column)?, values })
        });
        Some(StatementRules {
            key: *raw.key.get()?,
            columns: StatementColumns {
                key: named(&columns.key)?,
                amount: named(&columns.amount)?,
                currency: named(&columns.currency),
                status: named(&columns.status),
                merchant: named(&columns.merchant),
                direction: named(&columns.direction),
            },
            statuses,
            delimiter: raw.delimiter.0,
            decimal: raw.decimal.0,
            encoding: *raw.encoding,
            skip,
        })
    }

    /// Returns the words of the status column. Notes words that are there twice.
    fn statement_words(&mut self, context: FileContext<'_>, raw: &RawStatementStatuses) -> Vec<(Box<str>, Status)> {
        let mut statuses: Vec<(Box<str>, Status)> = Vec::new();
        let lists = [(&raw.success, Status::Success), (&raw.failed, Status::Failed), (&raw.pending, Status::Pending)];
        for (words, status) in lists {
            for word in &words.0 {
                let text = word.get_ref().0.trim();
                if statuses.iter().any(|(known, _)| **known == *text) {
                    let message = format!("`reconcile.statuses` has the word {} twice", quoted(text));
                    self.problem(context, word.span(), message);
                }
                statuses.push((text.into(), status));
            }
        }
        statuses
    }
}
