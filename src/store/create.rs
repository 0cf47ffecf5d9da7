//! Creates an operation with everything that belongs to it. All checks read before the first write, and the first write
//! is the operation itself: when its order exists, nothing has to be undone.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::callbacks::{self, NewCallback};
use super::lookups::{OrderRow, is_known_merchant};
use super::rows::ledger::{LedgerEntry, PostingSource};
use super::sql::{Sql, Transaction, params, sql};
use super::tasks::{self, NewTask};
use super::transaction::OwnStatements;
use super::usage::{self, Customer, Usage};
use super::{CallbackId, CallbackSubject, CallbackTarget, CreateOutcome, DailyLimit, InsertOutcome, NewOperation};
use crate::domain::{
    Amount, Bucket, CallbackSender, Currency, Direction, LedgerAccount, MerchantId, Operation, Outcome, Posting, State,
    Status, TransactionId, UnixMillis,
};
use crate::store::rows::operation::{NewRow, StoredRow};

impl From<OrderRow> for InsertOutcome<StoredRow> {
    /// Explains why a create found its order or its id taken.
    fn from(found: OrderRow) -> Self {
        match found {
            OrderRow::Operation(existing) => Self::Existing(existing),
            OrderRow::Elsewhere => Self::Reserved,
            OrderRow::Free => Self::IdTaken,
        }
    }
}

/// How a pending operation is to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decision {
    outcome: CreateOutcome,
    /// The customer's usage including this operation, when the operation counts.
    usage: Option<Usage>,
}

/// Creates an operation; `nonce` becomes part of its callback's id. Returns `None` when the order has a home or the id exists:
/// the transaction must not be committed then. Rows are locked in this order: the merchant, the customer's day, the balance,
/// the order.
pub(super) async fn create<T: OwnStatements>(
    tx: &T,
    new: &NewRow,
    nonce: u64,
) -> Result<Option<CreateOutcome>, T::Error> {
    let draft = new.draft();
    let operation = &draft.operation;
    let opening = match &draft.opening {
        Some(opening) if is_new_merchant(tx, &operation.merchant).await? => Some(&**opening),
        _ => None,
    };
    let Decision { outcome, usage } = check_limits(tx, draft, opening.unwrap_or_default()).await?;
    let state = match outcome.failure() {
        None => operation.state.clone(),
        Some(_) => State::Finished { outcome: Outcome::Failed, at: operation.created_at },
    };
    let failure = outcome.failure().or(draft.failure);
    let day = usage.and(draft.daily_limit).map(|limit| limit.day);
    if !tx.insert_operation(new, &state, failure, day).await? {
        return Ok(None);
    }
    if let Some(opening) = opening {
        open(tx, PostingSource::Operation(operation.id), &operation.merchant, opening, operation.created_at).await?;
    }
    if let (Some(customer), Some(usage), Some(day)) = (customer(operation), usage, day) {
        usage::set(tx, customer, day, usage).await?;
    }
    tx.post(Posting::of_creation(operation.direction(), state.status()), ledger_entry(operation)).await?;
    queue_follow_up(tx, draft, &state, nonce).await?;
    Ok(Some(outcome))
}

/// Queues the provider job or the callback of a new operation, depending on its state.
async fn queue_follow_up<T: OwnStatements>(
    tx: &T,
    draft: &NewOperation,
    state: &State,
    nonce: u64,
) -> Result<(), T::Error> {
    let operation = &draft.operation;
    match state {
        State::Pending => {
            let Some(due) = draft.provider_job else { return Ok(()) };
            tasks::put(tx, NewTask::provider_job(operation.id, &operation.shop, operation.created_at, due)).await
        }
        State::Finished { at, .. } => {
            let Some(url) = CallbackSender::called_address(draft.v1.as_ref(), &operation.callback_url) else {
                return Ok(());
            };
            let id = CallbackId::new(CallbackSubject::Operation(operation.id), nonce);
            let target = CallbackTarget::new(&operation.merchant, &url.origin());
            callbacks::queue(tx, NewCallback { id, target: &target, at: *at }).await
        }
    }
}

/// Applies the limits of a pending operation in order: the customer's daily limit, then the balance.
async fn check_limits<T: OwnStatements>(
    tx: &T,
    draft: &NewOperation,
    opening: &[(Currency, Amount)],
) -> Result<Decision, T::Error> {
    let operation = &draft.operation;
    let as_drafted = Decision { outcome: CreateOutcome::AsDrafted, usage: None };
    if operation.state.status() != Status::Pending {
        return Ok(as_drafted);
    }
    let amount = operation.amount.signed();
    let mut decision = as_drafted;
    if let (Some(customer), Some(limit)) = (customer(operation), &draft.daily_limit) {
        decision.usage = with_one_more(usage::used(tx, customer, limit.day).await?, limit, amount);
        if decision.usage.is_none() {
            return Ok(Decision { outcome: CreateOutcome::OverDailyLimit, usage: None });
        }
    }
    if operation.direction() == Direction::Payin {
        return Ok(decision);
    }
    let (merchant, currency, enforce) = (&operation.merchant, operation.currency, draft.enforce_balance);
    let available = tx.balance(merchant, currency, LedgerAccount::Available, enforce).await?;
    let held = tx.balance(merchant, currency, LedgerAccount::Held, false).await?;
    let opened = opening.iter().find(|(opened, _)| *opened == currency).map_or(0, |(_, amount)| amount.signed());
    if can_be_held(available.checked_add(opened), held, amount, enforce) {
        return Ok(decision);
    }
    Ok(Decision { outcome: CreateOutcome::NotCovered, usage: None })
}

/// Returns a customer's usage including one more operation; `None` when that exceeds the limit.
fn with_one_more(used: Usage, limit: &DailyLimit, amount: i64) -> Option<Usage> {
    let usage = Usage { operations: used.operations + 1, amount: used.amount.checked_add(amount)? };
    let over = limit.operations.is_some_and(|most| usage.operations > i64::from(most))
        || limit.amount.is_some_and(|most| usage.amount > most.signed());
    (!over).then_some(usage)
}

/// Reports whether a withdrawal's amount can be held: it is covered, if `enforce` is set, and no balance overflows.
fn can_be_held(available: Option<i64>, held: i64, amount: i64, enforce: bool) -> bool {
    let Some(available) = available else { return false };
    let in_range = available.checked_sub(amount).is_some() && held.checked_add(amount).is_some();
    in_range && (!enforce || available >= amount)
}

/// Opens the ledger of a merchant that has no operation, unless the merchant is known. `random` becomes part of the
/// number that its entries are posted under.
pub(super) async fn open_alone<T: OwnStatements>(
    tx: &T,
    merchant: &MerchantId,
    opening: &[(Currency, Amount)],
    at: UnixMillis,
    random: u64,
) -> Result<(), T::Error> {
    if !is_new_merchant(tx, merchant).await? {
        return Ok(());
    }
    // Merchants of the same bucket that are opened in the same millisecond may draw the same number; then the next one
    // is tried. If all are taken, posting fails on the existing entries of the last one.
    let mut source = PostingSource::opening(at, merchant, random);
    for step in 1..OPENING_IDS {
        if !has_entries(tx, source).await? {
            break;
        }
        source = PostingSource::opening(at, merchant, random.wrapping_add(step));
    }
    open(tx, source, merchant, opening, at).await
}

/// The count of numbers that a bucket has in a millisecond.
const OPENING_IDS: u64 = 1 << 12;

/// Inserts a new merchant and posts its opening balances.
async fn open<T: OwnStatements>(
    tx: &T,
    source: PostingSource,
    merchant: &MerchantId,
    opening: &[(Currency, Amount)],
    at: UnixMillis,
) -> Result<(), T::Error> {
    add_merchant(tx, merchant).await?;
    let merchant = merchant.as_str();
    for (currency, amount) in opening {
        let entry = LedgerEntry { source, merchant, currency: currency.as_str(), amount: amount.signed(), at };
        tx.post(&[Posting::Opened], entry).await?;
    }
    Ok(())
}

const ADD_MERCHANT: Sql = sql!("INSERT INTO merchants (merchant) VALUES (?1) ON CONFLICT DO NOTHING");

/// Reports whether a merchant is not known yet, and locks it. Where others write meanwhile, its row is inserted for that,
/// and goes if the transaction is rolled back. SQLite's transaction has other creates in it, and is never rolled back for one.
async fn is_new_merchant<T: Transaction>(tx: &T, merchant: &MerchantId) -> Result<bool, T::Error> {
    if T::IS_SHARED {
        return Ok(tx.execute(ADD_MERCHANT, &params![merchant]).await? == 1);
    }
    is_known_merchant(tx, merchant).await.map(|known| !known)
}

/// Inserts a merchant for which [`is_new_merchant`] returned `true`.
async fn add_merchant<T: Transaction>(tx: &T, merchant: &MerchantId) -> Result<(), T::Error> {
    if T::IS_SHARED { Ok(()) } else { tx.execute(ADD_MERCHANT, &params![merchant]).await.map(drop) }
}

pub(super) const HAS_ENTRIES: Sql = sql!("SELECT EXISTS (SELECT 1 FROM entries WHERE transaction_id = ?1)");

/// Reports whether any entry was posted under this source.
async fn has_entries<T: Transaction>(tx: &T, source: PostingSource) -> Result<bool, T::Error> {
    tx.query_value(HAS_ENTRIES, &params![source.to_stored()]).await
}

impl PostingSource {
    /// Composes the number of an opening without an operation.
    fn opening(at: UnixMillis, merchant: &MerchantId, random: u64) -> Self {
        Self::Opening(TransactionId::compose(at, Bucket::of(merchant), random))
    }
}

fn customer(operation: &Operation) -> Option<Customer<'_>> {
    operation.customer_account_id.map(|id| Customer {
        merchant: operation.merchant.as_str(),
        shop: operation.shop.as_str(),
        direction: operation.direction(),
        account_id: id.0,
    })
}

fn ledger_entry(operation: &Operation) -> LedgerEntry<'_> {
    LedgerEntry {
        source: PostingSource::Operation(operation.id),
        merchant: operation.merchant.as_str(),
        currency: operation.currency.as_str(),
        amount: operation.amount.signed(),
        at: operation.created_at,
    }
}

/// The most merchants remembered; then all are forgotten, which costs the store one check for each.
const REMEMBERED: usize = 65_536;

/// The merchants whose opening balances are known to be posted. The opening balances are part of a merchant's creates and
/// balance requests until one of them was committed. The store posts them once; this only saves it the check.
#[derive(Debug, Default)]
pub struct OpeningBalances {
    seen: Mutex<HashSet<MerchantId>>,
}

impl OpeningBalances {
    /// Returns the opening balances to post with a request of this merchant; `None` when they are posted already.
    pub fn offered(
        &self,
        merchant: &MerchantId,
        opening: &BTreeMap<Currency, Amount>,
    ) -> Option<Arc<[(Currency, Amount)]>> {
        if self.seen().contains(merchant) {
            return None;
        }
        Some(opening.iter().map(|(currency, amount)| (*currency, *amount)).collect())
    }

    /// Notes that a request with the opening balances was committed.
    pub fn confirmed(&self, merchant: &MerchantId) {
        let mut seen = self.seen();
        if seen.len() >= REMEMBERED {
            seen.clear();
        }
        seen.insert(merchant.clone());
    }

    fn seen(&self) -> MutexGuard<'_, HashSet<MerchantId>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::UnixDay;

    #[test]
    fn a_daily_limit_counts_this_operation() {
        let limit = |operations, amount: Option<u64>| DailyLimit {
            day: UnixDay(1),
            operations,
            amount: amount.map(|hundredths| Amount::from_hundredths(hundredths).unwrap()),
        };
        for (used, limit, amount, allowed) in [
            ((0, 0), limit(None, None), 1, true),
            ((0, 0), limit(Some(1), None), 1, true),
            ((1, 1), limit(Some(1), None), 1, false),
            ((0, 0), limit(None, Some(100)), 100, true),
            ((0, 0), limit(None, Some(100)), 101, false),
            ((5, 60), limit(Some(6), Some(100)), 40, true),
            ((5, 60), limit(Some(6), Some(100)), 41, false),
            ((6, 60), limit(Some(6), Some(100)), 1, false),
            ((0, i64::MAX), limit(None, None), 1, false),
        ] {
            let used = Usage { operations: used.0, amount: used.1 };
            let with = Usage { operations: used.operations + 1, amount: used.amount.wrapping_add(amount) };
            assert_eq!(with_one_more(used, &limit, amount), allowed.then_some(with), "{used:?} {limit:?} {amount}");
        }
    }

    #[test]
    fn a_hold_is_covered_where_that_is_enforced_and_in_range_always() {
        for (available, held, amount, enforce, can) in [
            (Some(100), 0, 100, true, true),
            (Some(99), 0, 100, true, false),
            (Some(99), 0, 100, false, true),
            (Some(-5), 0, 1, true, false),
            (Some(i64::MIN), 0, 1, false, false),
            (Some(0), i64::MAX, 1, false, false),
            (None, 0, 1, false, false),
        ] {
            assert_eq!(can_be_held(available, held, amount, enforce), can, "{available:?} {held} {amount} {enforce}");
        }
    }
}
