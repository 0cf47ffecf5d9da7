//! Reads the list of `paybridge store adopt`: CSV with the head `merchant,direction,order_id`.

use std::io::{self, Read};

use crate::cli::csv_records::CsvRecords;
use crate::domain::{Direction, InvalidValue, MerchantId, OrderId};
use crate::rules::RuleSet;

/// The names of the columns, and so the head.
const COLUMNS: [&str; 3] = ["merchant", "direction", "order_id"];

/// A merchant's order.
pub(super) type LostOrder = (MerchantId, Direction, OrderId);

/// A list that is read.
pub(super) struct LostIds<'r, R> {
    rules: &'r RuleSet,
    records: CsvRecords<R>,
}

impl<'r, R: Read> LostIds<'r, R> {
    /// Reads the head of a list.
    ///
    /// # Errors
    /// The list cannot be read, or has another head.
    pub(super) fn open(rules: &'r RuleSet, source: R) -> io::Result<Self> {
        let mut records = CsvRecords::new(source, b',');
        records.read()?;
        if records.record().iter().ne(COLUMNS.iter().map(|name| name.as_bytes())) {
            return Err(io::Error::other(format!("line 1: must be the head {}", COLUMNS.join(","))));
        }
        Ok(Self { rules, records })
    }

    /// Reads the next line that is not empty; `None` at the end. Returns its number, and its order or why it is none.
    ///
    /// # Errors
    /// The list cannot be read.
    pub(super) fn read(&mut self) -> io::Result<Option<(u64, Result<LostOrder, String>)>> {
        Ok(self.records.read()?.map(|line| (line, self.order())))
    }

    fn order(&self) -> Result<LostOrder, String> {
        let fields: Vec<&[u8]> = self.records.record().iter().collect();
        let [merchant, direction, order_id] = fields.as_slice() else {
            return Err(format!("has {} fields instead of {}", fields.len(), COLUMNS.len()));
        };
        let [merchant_name, direction_name, order_name] = COLUMNS;
        let merchant = parsed(merchant_name, merchant, MerchantId::new)?;
        // A wrong name would leave an order without its home.
        if !self.rules.merchants.contains_key(&merchant) {
            return Err(format!("`{merchant_name}`: {}", self.rules.no_such_merchant(merchant.as_str())));
        }
        let direction = parsed(direction_name, direction, Direction::parse)?;
        let order_id = parsed(order_name, order_id, OrderId::new)?;
        if order_id.as_str().contains(['\n', '\r']) {
            return Err(format!("`{order_name}` must not have a line break: a quotation mark may not be closed"));
        }
        Ok((merchant, direction, order_id))
    }
}

fn parsed<T>(name: &str, field: &[u8], parse: impl FnOnce(&str) -> Result<T, InvalidValue>) -> Result<T, String> {
    let text = std::str::from_utf8(field).map_err(|_| format!("`{name}` must be UTF-8"))?;
    parse(text).map_err(|invalid| format!("`{name}` {}", invalid.reason()))
}
