//! Reads the statement of a provider line by line, as the rules of its shop state.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use csv::ByteRecord;

use crate::cli::csv_records::CsvRecords;
use crate::cli::outcome::CliError;
use crate::domain::{Amount, Currency, Direction, InvalidValue, MerchantId, OrderId, Status, TransactionId};
use crate::rules::{StatementEncoding, StatementKey, StatementRules};

/// A line of a statement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StatementLine {
    /// Its number in the file, from 1.
    pub(super) line: u64,
    pub(super) key: LineKey,
    pub(super) amount: Amount,
    /// Whether the amount begins with a minus.
    pub(super) is_negative: bool,
    /// `None`: there is no such column.
    pub(super) currency: Option<Currency>,
    /// The word of its status; `SUCCESS` where there is no such column.
    pub(super) word: Box<str>,
    /// What the word means; `None`: none of the rules' words.
    pub(super) status: Option<Status>,
    /// `None`: there is no such column, or it is empty.
    pub(super) merchant: Option<MerchantId>,
    /// `None`: there is no such column, or it is empty.
    pub(super) direction: Option<Direction>,
}

/// The key of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LineKey {
    Transaction(TransactionId),
    /// With the white space around it: an id may have some.
    Order(OrderId),
}

impl LineKey {
    /// Returns its text.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Transaction(id) => id.to_string(),
            Self::Order(id) => id.as_str().to_owned(),
        }
    }

    /// Returns the key without the white space around it; `None`: it has none.
    pub(super) fn trimmed(&self) -> Option<Self> {
        match self {
            Self::Transaction(_) => None,
            Self::Order(id) => OrderId::new(id.as_str().trim()).ok().filter(|trimmed| trimmed != id).map(Self::Order),
        }
    }
}

/// A statement that is read.
pub(super) struct Statement<'r, R = File> {
    rules: &'r StatementRules,
    path: PathBuf,
    records: CsvRecords<R>,
    columns: Indexes,
}

/// The places of the columns.
struct Indexes {
    key: usize,
    amount: usize,
    currency: Option<usize>,
    status: Option<usize>,
    merchant: Option<usize>,
    direction: Option<usize>,
    skip: Option<usize>,
    /// How many fields a line has; more are empty.
    width: usize,
}

impl<'r> Statement<'r> {
    /// Opens a file and reads the names of its columns.
    ///
    /// # Errors
    /// The file cannot be read, or has not the columns of the rules.
    pub(super) fn open(path: &Path, rules: &'r StatementRules) -> Result<Self, CliError> {
        let file = File::open(path).map_err(|error| CliError::failed(format!("{}: {error}", path.display())))?;
        Self::read_from(file, path, rules)
    }
}

impl<'r, R: Read> Statement<'r, R> {
    fn read_from(source: R, path: &Path, rules: &'r StatementRules) -> Result<Self, CliError> {
        let mut records = CsvRecords::new(source, rules.delimiter);
        records.read().map_err(|error| unreadable(path, &error))?;
        let columns = Indexes::of(records.record(), rules);
        let columns = columns.map_err(|reason| CliError::failed(format!("{}: {reason}", path.display())))?;
        Ok(Self { rules, path: path.into(), records, columns })
    }

    /// Returns the next line that is of an operation; `None` at the end.
    ///
    /// # Errors
    /// The file, or a line of it, cannot be read.
    pub(super) fn read(&mut self) -> Result<Option<StatementLine>, CliError> {
        while let Some(line) = self.records.read().map_err(|error| unreadable(&self.path, &error))? {
            match self.line(line) {
                Ok(Some(read)) => return Ok(Some(read)),
                Ok(None) => {}
                Err(reason) => {
                    return Err(CliError::failed(format!("{}: line {line}: {reason}", self.path.display())));
                }
            }
        }
        Ok(None)
    }

    /// Returns the line that was read; `None` if it is skipped.
    fn line(&self, line: u64) -> Result<Option<StatementLine>, String> {
        let Indexes { width, .. } = self.columns;
        let (rules, names, record) = (self.rules, &self.rules.columns, self.records.record());
        if record.iter().all(|field| field.trim_ascii().is_empty()) {
            return Ok(None);
        }
        if let (Some(skip), Some(place)) = (&rules.skip, self.columns.skip)
            && skip.values.contains(&self.field(place, &skip.column)?)
        {
            return Ok(None);
        }
        let extra = record.iter().skip(width).filter(|field| !field.trim_ascii().is_empty()).count();
        if record.len() < width || extra > 0 {
            return Err(format!("has {} fields instead of {width}", record.len()));
        }
        let optional = |place: Option<usize>, name: &Option<Box<str>>| {
            place.map(|place| self.field(place, name.as_deref().unwrap_or_default())).transpose()
        };
        let (key, amount) =
            (self.whole_field(self.columns.key, &names.key)?, self.field(self.columns.amount, &names.amount)?);
        let (amount, is_negative) =
            amount_of(&amount, rules.decimal).map_err(|reason| wrong(&names.amount, &reason))?;
        let currency = optional(self.columns.currency, &names.currency)?;
        let word = optional(self.columns.status, &names.status)?;
        if let (Some(""), Some(name)) = (word.as_deref(), &names.status) {
            return Err(wrong(name, "is empty"));
        }
        let merchant = optional(self.columns.merchant, &names.merchant)?.filter(|id| !id.is_empty());
        let direction = optional(self.columns.direction, &names.direction)?.filter(|word| !word.is_empty());
        Ok(Some(StatementLine {
            line,
            key: key_of(&key, rules.key).map_err(|invalid| wrong(&names.key, invalid.reason()))?,
            amount,
            is_negative,
            currency: parsed(currency.as_deref(), names.currency.as_deref(), Currency::new)?,
            status: word.as_deref().map_or(Some(Status::Success), |word| rules.status(word)),
            word: word.unwrap_or_else(|| Status::Success.as_str().into()),
            merchant: parsed(merchant.as_deref(), names.merchant.as_deref(), MerchantId::new)?,
            direction: parsed(direction.as_deref(), names.direction.as_deref(), Direction::parse)?,
        }))
    }

    /// Returns a field, without the white space around it.
    fn field(&self, place: usize, name: &str) -> Result<Box<str>, String> {
        Ok(self.whole_field(place, name)?.trim().into())
    }

    /// Returns a field, with the white space around it.
    fn whole_field(&self, place: usize, name: &str) -> Result<Cow<'_, str>, String> {
        let bytes = self.records.record().get(place).unwrap_or_default();
        decoded(bytes, self.rules.encoding).ok_or_else(|| wrong(name, "is not UTF-8"))
    }
}

impl Indexes {
    /// Finds the columns of the rules in the first line.
    fn of(header: &ByteRecord, rules: &StatementRules) -> Result<Self, String> {
        let names = header.iter().map(|name| decoded(name, rules.encoding).map(|name| name.trim().to_owned()));
        let names: Vec<String> = names.collect::<Option<_>>().ok_or("line 1: is not UTF-8")?;
        let find = |name: &str| {
            let mut places = names.iter().enumerate().filter(|(_, named)| **named == *name).map(|(place, _)| place);
            match (places.next(), places.next()) {
                (Some(place), None) => Ok(place),
                (None, _) => Err(format!("line 1: has no column `{name}`, but: {}", names.join(", "))),
                (Some(_), Some(_)) => Err(format!("line 1: has several columns `{name}`")),
            }
        };
        let find_named = |name: &Option<Box<str>>| name.as_deref().map(find).transpose();
        let columns = &rules.columns;
        Ok(Self {
            key: find(&columns.key)?,
            amount: find(&columns.amount)?,
            currency: find_named(&columns.currency)?,
            status: find_named(&columns.status)?,
            merchant: find_named(&columns.merchant)?,
            direction: find_named(&columns.direction)?,
            skip: rules.skip.as_ref().map(|skip| find(&skip.column)).transpose()?,
            width: names.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1),
        })
    }
}

fn wrong(column: &str, reason: &str) -> String {
    format!("`{column}` {reason}")
}

fn unreadable(path: &Path, error: &io::Error) -> CliError {
    CliError::failed(format!("{}: {error}", path.display()))
}

fn decoded(bytes: &[u8], encoding: StatementEncoding) -> Option<Cow<'_, str>> {
    match encoding {
        StatementEncoding::Utf8 => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        StatementEncoding::Latin1 => Some(bytes.iter().copied().map(char::from).collect::<String>().into()),
    }
}

fn parsed<T>(
    text: Option<&str>,
    column: Option<&str>,
    parse: impl Fn(&str) -> Result<T, InvalidValue>,
) -> Result<Option<T>, String> {
    let wrong = |invalid: InvalidValue| wrong(column.unwrap_or_default(), invalid.reason());
    text.map(|text| parse(text).map_err(wrong)).transpose()
}

/// Returns the key of a field, which white space alone is not.
fn key_of(text: &str, key: StatementKey) -> Result<LineKey, InvalidValue> {
    let trimmed = text.trim();
    match key {
        StatementKey::TransactionId => TransactionId::parse(trimmed).map(LineKey::Transaction),
        // With the white space around it, a field may be too long for an id.
        StatementKey::OrderId => {
            OrderId::new(trimmed).map(|trimmed| LineKey::Order(OrderId::new(text).unwrap_or(trimmed)))
        }
    }
}

/// Returns an amount, and whether it begins with a minus.
fn amount_of(text: &str, decimal: char) -> Result<(Amount, bool), String> {
    let (is_negative, digits) = match text.strip_prefix(['-', '\u{2212}']) {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_digit() || c == decimal) {
        return Err(format!("must be an amount such as 1234{decimal}50, without a separator of thousands"));
    }
    // By its value: zeros behind the hundredths do not count.
    let amount = Amount::from_json_number(&digits.replace(decimal, "."));
    amount.map(|amount| (amount, is_negative)).map_err(|invalid| match invalid.reason() {
        "must be a JSON number" => "must be an amount".to_owned(),
        reason => reason.to_owned(),
    })
}

#[cfg(test)]
pub(super) mod tests;
