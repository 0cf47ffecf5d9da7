//! `paybridge reconcile`: compares a provider's statement with the operations of its shop (contract section 14,
//! "Reconcile"). The statement is read twice, so that a line that cannot be read ends the command before any output. Of
//! each line no more is kept than the id of its operation, or a hash.

mod orders;
mod report;
mod statement;

use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::args::ReconcileArgs;
use super::export::check_period;
use super::outcome::{CliError, ExitOutcome, load, on_runtime, plural};
use super::progress::Progress;
use crate::clock::SystemRandomness;
use crate::domain::{Direction, FailureCause, MerchantId, Operation, State, TransactionId};
use crate::rules::{Shop, StatementKey, StatementRules};
use crate::store::{ExportQuery, ExportTable, OrderName, Store, StoreAccess, Stored, open_beside};
use orders::Orders;
use report::{Difference, DifferenceKind, DifferenceReport};
use statement::{LineKey, Statement, StatementLine};

/// How many ids and orders are looked up at once: a line without a merchant may be of any.
const LOOKUPS_AT_ONCE: usize = 1000;

/// Writes the differences between the statement and the operations.
///
/// # Errors
/// There are differences, a line cannot be read, the rules or the store cannot be used, or the engine is remote.
pub(super) fn run(args: &ReconcileArgs, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    check_period(args.period)?;
    let rules = load(&args.rules.rules, err)?;
    if rules.gateway.engine.is_remote() {
        return Err(CliError::Usage("the engine is remote and has the operations; reconcile them there".to_owned()));
    }
    let code = args.shop.as_str();
    let shop = rules.shops.get(code).ok_or_else(|| CliError::failed(rules.no_such_shop(code)))?;
    let Some(reading) = &shop.reconcile else {
        let reason = format!("shops/{code}.toml has no [reconcile], which states how its provider's statement is read");
        return Err(CliError::Failed(reason));
    };
    let (lines, orders) = checked_lines(args, reading, err)?;
    let mut report = DifferenceReport::start(args.format, out)?;
    on_runtime(async {
        let random = Arc::new(SystemRandomness::default());
        let store =
            open_beside(&rules.gateway.store, StoreAccess::Read, random, Arc::default()).map_err(CliError::failed)?;
        let compared = match Comparison::start(&*store, shop, reading, orders, &mut report, err).await {
            Ok(mut comparison) => comparison.run(args, lines, err).await,
            Err(error) => Err(error),
        };
        let closed = store.close().await.map_err(CliError::failed);
        compared.and(closed)
    })?;
    let (differ, summary) = (report.total() > 0, report.summary());
    report.finish()?;
    out.flush()?;
    writeln!(err, "{lines} line{} compared: {summary}", plural(usize::try_from(lines).unwrap_or(usize::MAX)))?;
    if differ { Err(CliError::NotReady) } else { Ok(()) }
}

/// Reads the whole statement, and returns how many of its lines are of operations, and the orders that they name without their
/// merchants.
fn checked_lines(
    args: &ReconcileArgs,
    reading: &StatementRules,
    err: &mut dyn Write,
) -> Result<(u64, Orders), CliError> {
    let mut statement = Statement::open(&args.file, reading)?;
    let mut progress = Progress::start("reading", "lines", None);
    let (mut lines, mut orders) = (0, Orders::default());
    while let Some(line) = statement.read()? {
        orders.add(&line);
        lines += 1;
        progress.at(lines, err);
    }
    Ok((lines, orders))
}

/// A comparison that is under way.
struct Comparison<'a, 'w> {
    store: &'a dyn Store,
    shop: &'a Shop,
    reading: &'a StatementRules,
    /// The merchants that a line without a merchant may be of. Not read where the key is no `order_id`.
    merchants: Vec<MerchantId>,
    /// The orders of lines without a merchant. `None`: they are looked up at each merchant.
    orders: Option<Orders>,
    report: &'a mut DifferenceReport<'w>,
    /// The operations that a line has.
    matched: HashSet<i64>,
    /// The operations that a line may have.
    ambiguous: HashSet<i64>,
    /// Hashes of the lines without an operation.
    unmatched: HashSet<[u8; 16]>,
}

impl<'a, 'w> Comparison<'a, 'w> {
    async fn start(
        store: &'a dyn Store,
        shop: &'a Shop,
        reading: &'a StatementRules,
        orders: Orders,
        report: &'a mut DifferenceReport<'w>,
        err: &mut dyn Write,
    ) -> Result<Self, CliError> {
        let (merchants, orders) = match reading.key {
            StatementKey::TransactionId => (Vec::new(), None),
            StatementKey::OrderId => {
                let merchants = store.merchants_of_shop(shop.code.clone()).await?;
                let orders = orders.find(store, &shop.code, merchants.len(), err).await?;
                (merchants, orders)
            }
        };
        let (matched, ambiguous, unmatched) = (HashSet::new(), HashSet::new(), HashSet::new());
        Ok(Self { store, shop, reading, merchants, orders, report, matched, ambiguous, unmatched })
    }

    /// Compares each line with its operation, then looks for the operations without a line.
    async fn run(&mut self, args: &ReconcileArgs, total: u64, err: &mut dyn Write) -> ExitOutcome {
        let mut statement = Statement::open(&args.file, self.reading)?;
        let mut progress = Progress::start("comparing", "lines", Some(total));
        let mut done = 0;
        loop {
            let (mut lines, mut lookups) = (Vec::new(), 0);
            while lookups < LOOKUPS_AT_ONCE
                && let Some(line) = statement.read()?
            {
                lookups += self.lookups_of(&line, &line.key);
                lookups += line.key.trimmed().map_or(0, |trimmed| self.lookups_of(&line, &trimmed));
                lines.push(line);
            }
            if lines.is_empty() {
                break;
            }
            let found = self.operations_of(&mut lines).await?;
            for (line, operations) in lines.iter().zip(found) {
                self.compare(line, &operations)?;
                done += 1;
            }
            progress.at(done, err);
        }
        drop(progress);
        self.missing_there(args, err).await
    }

    /// Returns the operations that each line may have. A key with which nothing is found loses the white space around it,
    /// and is looked up once more.
    async fn operations_of(&self, lines: &mut [StatementLine]) -> Result<Vec<Vec<Operation>>, CliError> {
        let mut found = self.look_up(&lines.iter().collect::<Vec<_>>()).await?;
        let (mut trimmed_lines, mut their_operations) = (Vec::new(), Vec::new());
        for (line, operations) in lines.iter_mut().zip(&mut found) {
            if operations.is_empty()
                && let Some(trimmed) = line.key.trimmed()
            {
                line.key = trimmed;
                trimmed_lines.push(&*line);
                their_operations.push(operations);
            }
        }
        if !trimmed_lines.is_empty() {
            let found = self.look_up(&trimmed_lines).await?;
            their_operations.into_iter().zip(found).for_each(|(operations, found)| *operations = found);
        }
        Ok(found)
    }

    /// Looks up the operations that each line may have, by its key as it is.
    async fn look_up(&self, lines: &[&StatementLine]) -> Result<Vec<Vec<Operation>>, CliError> {
        let (mut ids, mut orders) = (Vec::new(), Vec::<OrderName>::new());
        let mut counts = Vec::with_capacity(lines.len());
        for line in lines {
            let before = (ids.len(), orders.len());
            match (&line.key, self.ids_of(line, &line.key)) {
                (_, Some(found)) => ids.extend(found),
                (LineKey::Transaction(_), None) => {}
                (LineKey::Order(order_id), None) => {
                    for merchant in self.merchants_of(line) {
                        let names = directions(line).iter().map(|way| (merchant.clone(), *way, order_id.clone()));
                        orders.extend(names);
                    }
                }
            }
            counts.push((ids.len() - before.0, orders.len() - before.1));
        }
        let mut by_id = self.store.operations_by_ids(ids).await?.into_iter();
        let mut by_order = self.store.operations_by_orders(orders).await?.into_iter();
        let of_line = |(line, (ids, orders)): (&StatementLine, (usize, usize))| {
            let operations = by_id.by_ref().take(ids).chain(by_order.by_ref().take(orders)).flatten();
            operations.filter(|operation| self.may_have(line, operation)).collect()
        };
        Ok(lines.iter().copied().zip(counts).map(of_line).collect())
    }

    /// Returns the ids of the operations that a line with a key may be of; `None`: its order is looked up.
    fn ids_of(&self, line: &StatementLine, key: &LineKey) -> Option<Vec<TransactionId>> {
        match key {
            LineKey::Transaction(id) => Some(vec![*id]),
            LineKey::Order(_) if line.merchant.is_some() => None,
            LineKey::Order(order_id) => self.orders.as_ref().and_then(|orders| orders.of(order_id)),
        }
    }

    /// Returns how many ids or orders are looked up for a line with a key.
    fn lookups_of(&self, line: &StatementLine, key: &LineKey) -> usize {
        let orders = || self.merchants_of(line).len() * directions(line).len();
        self.ids_of(line, key).map_or_else(orders, |ids| ids.len()).max(1)
    }

    /// Returns the merchants that a line may be of.
    fn merchants_of<'l>(&'l self, line: &'l StatementLine) -> &'l [MerchantId] {
        line.merchant.as_ref().map_or(&self.merchants[..], std::slice::from_ref)
    }

    /// Reports whether a line may be of an operation.
    fn may_have(&self, line: &StatementLine, operation: &Operation) -> bool {
        let has_key = match &line.key {
            LineKey::Transaction(id) => *id == operation.id,
            LineKey::Order(id) => *id == operation.order_id,
        };
        has_key
            && operation.shop == self.shop.code
            && line.merchant.as_ref().is_none_or(|merchant| *merchant == operation.merchant)
            && line.direction.is_none_or(|direction| direction == operation.direction())
    }

    fn compare(&mut self, line: &StatementLine, operations: &[Operation]) -> ExitOutcome {
        let amount = || format!("{}{}", if line.is_negative { "-" } else { "" }, line.amount);
        let mut difference = Difference {
            kind: DifferenceKind::MissingHere,
            line: Some(line.line),
            key: line.key.text().into(),
            operation: None,
            theirs: Some(amount().into()),
            ours: None,
        };
        match operations {
            [] => {
                if !self.unmatched.insert(hash_of(line)) {
                    difference.kind = DifferenceKind::Duplicate;
                }
                Ok(self.report.add(&difference)?)
            }
            [operation] => {
                difference.operation = Some(operation);
                if self.matched.insert(operation.id.to_stored()) {
                    self.compare_with(line, operation, difference)
                } else {
                    difference.kind = DifferenceKind::Duplicate;
                    Ok(self.report.add(&difference)?)
                }
            }
            several => {
                self.ambiguous.extend(several.iter().map(|operation| operation.id.to_stored()));
                let mut ids: Vec<_> = several.iter().map(|operation| operation.id).collect();
                ids.sort_unstable();
                let ids: Vec<_> = ids.iter().map(TransactionId::to_string).collect();
                let ours = Some(ids.join(" ").into());
                Ok(self.report.add(&Difference { kind: DifferenceKind::Ambiguous, ours, ..difference })?)
            }
        }
    }

    /// Compares a line with its operation. A leading minus of a withdrawal does not count.
    fn compare_with(
        &mut self,
        line: &StatementLine,
        operation: &Operation,
        mut difference: Difference<'_>,
    ) -> ExitOutcome {
        let is_refund = line.is_negative && operation.direction() == Direction::Payin;
        if is_refund || line.amount != operation.amount {
            difference.kind = DifferenceKind::Amount;
            if !is_refund {
                difference.theirs = Some(line.amount.to_string().into());
            }
            difference.ours = Some(operation.amount.to_string().into());
            self.report.add(&difference)?;
        }
        if let Some(currency) = line.currency.filter(|currency| *currency != operation.currency) {
            difference.kind = DifferenceKind::Currency;
            difference.theirs = Some(currency.to_string().into());
            difference.ours = Some(operation.currency.to_string().into());
            self.report.add(&difference)?;
        }
        let status = operation.state.status();
        if line.status != Some(status) {
            difference.kind = DifferenceKind::Status;
            difference.theirs = Some(line.word.to_string().into());
            difference.ours = Some(status.as_str().into());
            self.report.add(&difference)?;
        }
        Ok(())
    }

    /// Reports the operations of the period that should be on a line and are not.
    async fn missing_there(&mut self, args: &ReconcileArgs, err: &mut dyn Write) -> ExitOutcome {
        let (from, to) = (args.period.from, args.period.to);
        let query = ExportQuery { from, to, merchant: None, shop: Some(self.shop.code.clone()) };
        let mut keys = self.store.export_keys(ExportTable::Operations, query.clone()).await?;
        let mut progress = Progress::start("looking for operations without a line", "operations", None);
        let mut done = 0;
        while let Some(left) = keys {
            let page = self.store.export_operations(query.clone(), left).await?;
            for (Stored { operation, .. }, failure) in &page.rows {
                done += 1;
                let id = operation.id.to_stored();
                if !is_expected(operation, failure.as_ref().map(|(cause, _)| *cause), self.reading)
                    || self.matched.contains(&id)
                    || self.ambiguous.contains(&id)
                {
                    continue;
                }
                let key = match self.reading.key {
                    StatementKey::TransactionId => operation.id.to_string(),
                    StatementKey::OrderId => operation.order_id.as_str().to_owned(),
                };
                self.report.add(&Difference {
                    kind: DifferenceKind::MissingThere,
                    line: None,
                    key: key.into(),
                    operation: Some(operation),
                    theirs: None,
                    ours: Some(operation.amount.to_string().into()),
                })?;
            }
            progress.at(done, err);
            keys = page.rest;
        }
        Ok(())
    }
}

/// Reports whether a statement should list an operation: it has a result that is listed, and reached the provider, which one
/// that a check refused did not.
fn is_expected(operation: &Operation, failure: Option<FailureCause>, reading: &StatementRules) -> bool {
    let was_refused = match failure {
        Some(FailureCause::Provider | FailureCause::Operator) | None => false,
        Some(_) => true,
    };
    operation.state != State::Pending && reading.lists(operation.state.status()) && !was_refused
}

const fn directions(line: &StatementLine) -> &'static [Direction] {
    match line.direction {
        Some(Direction::Payin) => &[Direction::Payin],
        Some(Direction::Payout) => &[Direction::Payout],
        None => &[Direction::Payin, Direction::Payout],
    }
}

/// Hashes what a line names.
fn hash_of(line: &StatementLine) -> [u8; 16] {
    let merchant = line.merchant.as_ref().map_or("", MerchantId::as_str);
    let direction = line.direction.map_or("", Direction::as_str);
    let mut hash = Sha256::new();
    for part in [merchant, direction, &line.key.text()] {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(hash.finalize()).for_each(|(byte, hashed)| *byte = hashed);
    bytes
}

#[cfg(test)]
mod tests;
