//! The orders of a statement that does not name their merchants. Each may be of any merchant of the shop; one walk over the operations
//! finds those of the shop, in a time that does not grow with the merchants.

use std::hash::{BuildHasher as _, RandomState};
use std::io::Write;

use super::statement::{LineKey, StatementLine};
use crate::cli::outcome::CliError;
use crate::cli::progress::Progress;
use crate::domain::{OrderId, ShopCode, TransactionId, UnixMillis, wide};
use crate::store::{ExportQuery, ExportTable, Store, Stored};

/// How many orders are looked up in the time in which the walk reads a page, about.
const LOOKUPS_A_PAGE: u64 = 200;

/// Orders, and the operations that may be theirs.
#[derive(Default)]
pub(super) struct Orders {
    hasher: RandomState,
    /// The hashes of the orders.
    named: Vec<u64>,
    /// The operations whose orders have these hashes: hash and id.
    found: Vec<(u64, i64)>,
}

impl Orders {
    /// Adds the order of a line, unless the line names its merchant.
    pub(super) fn add(&mut self, line: &StatementLine) {
        if line.merchant.is_none() {
            let keys = [line.key.trimmed().as_ref(), Some(&line.key)].map(|key| match key {
                Some(LineKey::Order(id)) => Some(self.hasher.hash_one(id.as_str())),
                Some(LineKey::Transaction(_)) | None => None,
            });
            self.named.extend(keys.into_iter().flatten());
        }
    }

    /// Walks over the operations; `merchants`: how many the shop has. Returns `None` where looking up each order at each merchant
    /// takes less.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) async fn find(
        mut self,
        store: &dyn Store,
        shop: &ShopCode,
        merchants: usize,
        err: &mut dyn Write,
    ) -> Result<Option<Self>, CliError> {
        if self.named.is_empty() {
            return Ok(None);
        }
        let mut left_to_read = wide(self.named.len() * merchants * 2) / LOOKUPS_A_PAGE + 1;
        self.named.sort_unstable();
        let (from, to) = (UnixMillis(0), UnixMillis(i64::MAX));
        let query = ExportQuery { from, to, merchant: None, shop: Some(shop.clone()) };
        let mut keys = store.export_keys(ExportTable::Operations, query.clone()).await?;
        let mut progress = Progress::start("looking for the orders", "operations", None);
        let mut done = 0;
        while let Some(left) = keys {
            if left_to_read == 0 {
                return Ok(None);
            }
            left_to_read -= 1;
            let page = store.export_operations(query.clone(), left).await?;
            for (Stored { operation, .. }, _) in &page.rows {
                let hash = self.hasher.hash_one(operation.order_id.as_str());
                if self.named.binary_search(&hash).is_ok() {
                    self.found.push((hash, operation.id.to_stored()));
                }
            }
            done += wide(page.rows.len());
            progress.at(done, err);
            keys = page.rest;
        }
        self.found.sort_unstable();
        Ok(Some(self))
    }

    /// Returns the operations that may be of an order: those of its hash. `None`: it was not added, since the statement was
    /// changed meanwhile.
    pub(super) fn of(&self, order: &OrderId) -> Option<Vec<TransactionId>> {
        let hash = self.hasher.hash_one(order.as_str());
        self.named.binary_search(&hash).ok()?;
        let first = self.found.partition_point(|(other, _)| *other < hash);
        let found = self.found.iter().skip(first).take_while(|(other, _)| *other == hash);
        Some(found.filter_map(|(_, id)| TransactionId::from_stored(*id)).collect())
    }
}
