//! Creates an operation with everything that belongs to it. All checks read before the first write, and the first write
//! is the operation itself: when its order exists, nothing has to be undone.
//!
//! The home of an order (merchant, direction and `order_id`) is where it is stored, for ever (contract section 6). One insert
//! into the table `homes` decides between create, repeat and reservation. A home is released in one case only: a remote
//! engine has certainly refused the create (see [`cancel`](super::journal::moves::cancel)).

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::callbacks::NewCallback;
use super::rows::ledger::{LedgerEntry, PostingSource};
use super::rows::{CorruptRow, Transaction};
use super::tasks::NewTask;
use super::transaction::{Customer, Rows, Usage};
use super::{
    CallbackId, CallbackSubject, CallbackTarget, CreateOutcome, DailyLimit, EntryId, NewOperation, Reservations,
};
use crate::domain::{
    Amount, Bucket, CallbackSender, Currency, Direction, Fingerprint, LedgerAccount, MerchantId, Operation, Outcome,
    Posting, State, Status, TransactionId, UnixMillis,
};
use crate::store::rows::operation::{NewRow, StoredRow};

/// The outcome of [`create`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inserted {
    /// The operation was stored.
    New {
        verdict: CreateOutcome,
        /// Whether a callback was queued.
        queued: bool,
    },
    /// The order has a home, or the id exists. The transaction must not be committed.
    Taken,
}

/// The outcome of a create, with the existing operation where there is one.
pub(super) enum InsertedRow {
    Stored {
        verdict: CreateOutcome,
        /// Whether a callback was queued.
        queued: bool,
    },
    Existing(Box<StoredRow>),
    Reserved,
    IdTaken,
}

/// How a pending operation is to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decision {
    verdict: CreateOutcome,
    /// The customer's usage including this operation, when the operation counts.
    usage: Option<Usage>,
}

/// Creates an operation; `nonce` becomes part of its callback's id. Rows are locked in this order: the merchant, the
/// customer's day, the balance, the order.
pub(super) async fn create<R: Rows>(rows: &mut R, new: &NewRow, nonce: u64) -> Result<Inserted, R::Error> {
    let draft = new.draft();
    let operation = &draft.operation;
    let opening = match &draft.opening {
        Some(opening) if rows.is_new_merchant(&operation.merchant).await? => Some(&**opening),
        _ => None,
    };
    let Decision { verdict, usage } = check_limits(rows, draft, opening.unwrap_or_default()).await?;
    let state = match verdict {
        CreateOutcome::AsDrafted => operation.state.clone(),
        CreateOutcome::OverDailyLimit | CreateOutcome::NotCovered => {
            State::Finished { outcome: Outcome::Failed, at: operation.created_at }
        }
    };
    let day = usage.and(draft.daily_limit).map(|limit| limit.day);
    if !rows.insert_operation(new, &state, day).await? {
        return Ok(Inserted::Taken);
    }
    if let Some(opening) = opening {
        open(rows, PostingSource::Operation(operation.id), &operation.merchant, opening, operation.created_at).await?;
    }
    if let (Some(customer), Some(usage), Some(day)) = (customer(operation), usage, day) {
        rows.set_usage(customer, day, usage).await?;
    }
    rows.post(Posting::of_creation(operation.direction(), state.status()), ledger_entry(operation)).await?;
    let queued = queue_follow_up(rows, draft, &state, nonce).await?;
    Ok(Inserted::New { verdict, queued })
}

/// Queues the provider job or the callback of a new operation, depending on its state. Returns whether it queued a
/// callback.
async fn queue_follow_up<R: Rows>(
    rows: &mut R,
    draft: &NewOperation,
    state: &State,
    nonce: u64,
) -> Result<bool, R::Error> {
    let operation = &draft.operation;
    match state {
        State::Pending => {
            if let Some(due) = draft.provider_job {
                let job = NewTask::provider_job(operation.id, &operation.shop, operation.created_at, due);
                rows.put_task(job).await?;
            }
            Ok(false)
        }
        State::Finished { at, .. } => {
            let Some(url) = CallbackSender::called_address(draft.v1.as_ref(), &operation.callback_url) else {
                return Ok(false);
            };
            let id = CallbackId::new(CallbackSubject::Operation(operation.id), nonce);
            let target = CallbackTarget::new(&operation.merchant, &url.origin());
            rows.queue_callback(NewCallback { id, target: &target, at: *at }).await?;
            Ok(true)
        }
    }
}

/// Applies the limits of a pending operation in order: the customer's daily limit, then the balance.
async fn check_limits<R: Rows>(
    rows: &mut R,
    draft: &NewOperation,
    opening: &[(Currency, Amount)],
) -> Result<Decision, R::Error> {
    let operation = &draft.operation;
    let as_drafted = Decision { verdict: CreateOutcome::AsDrafted, usage: None };
    if operation.state.status() != Status::Pending {
        return Ok(as_drafted);
    }
    let amount = operation.amount.signed();
    let mut decision = as_drafted;
    if let (Some(customer), Some(limit)) = (customer(operation), &draft.daily_limit) {
        decision.usage = with_one_more(rows.usage(customer, limit.day).await?, limit, amount);
        if decision.usage.is_none() {
            return Ok(Decision { verdict: CreateOutcome::OverDailyLimit, usage: None });
        }
    }
    if operation.direction() == Direction::Payin {
        return Ok(decision);
    }
    let (merchant, currency, enforce) = (&operation.merchant, operation.currency, draft.enforce_balance);
    let available = rows.balance(merchant, currency, LedgerAccount::Available, enforce).await?;
    let held = rows.balance(merchant, currency, LedgerAccount::Held, false).await?;
    let opened = opening.iter().find(|(opened, _)| *opened == currency).map_or(0, |(_, amount)| amount.signed());
    if can_be_held(available.checked_add(opened), held, amount, enforce) {
        return Ok(decision);
    }
    Ok(Decision { verdict: CreateOutcome::NotCovered, usage: None })
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
pub(super) async fn open_alone<R: Rows>(
    rows: &mut R,
    merchant: &MerchantId,
    opening: &[(Currency, Amount)],
    at: UnixMillis,
    random: u64,
) -> Result<(), R::Error> {
    if !rows.is_new_merchant(merchant).await? {
        return Ok(());
    }
    // Merchants of the same bucket that are opened in the same millisecond may draw the same number; then the next one
    // is tried. If all are taken, posting fails on the existing entries of the last one.
    let mut source = PostingSource::opening(at, merchant, random);
    for step in 1..OPENING_IDS {
        if !rows.has_entries(source).await? {
            break;
        }
        source = PostingSource::opening(at, merchant, random.wrapping_add(step));
    }
    open(rows, source, merchant, opening, at).await
}

/// The count of numbers that a bucket has in a millisecond.
const OPENING_IDS: u64 = 1 << 12;

/// Inserts a new merchant and posts its opening balances.
async fn open<R: Rows>(
    rows: &mut R,
    source: PostingSource,
    merchant: &MerchantId,
    opening: &[(Currency, Amount)],
    at: UnixMillis,
) -> Result<(), R::Error> {
    rows.add_merchant(merchant).await?;
    let merchant = merchant.as_str();
    for (currency, amount) in opening {
        let entry = LedgerEntry { source, merchant, currency: currency.as_str(), amount: amount.signed(), at };
        rows.post(&[Posting::Opened], entry).await?;
    }
    Ok(())
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

/// Where an order is stored. Each of the numbers contains the bucket of the merchant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// In this store, as an operation.
    Operation(TransactionId),
    /// With a remote engine, as an entry of the journal.
    Entry(EntryId),
    /// With the old v1 service, to which a create was forwarded. The number encodes the time of the claim, in the form of
    /// a `transaction_id`.
    Claimed(TransactionId),
    /// With the old v1 service. The number encodes the time of the import.
    Imported(TransactionId),
    /// With a remote engine, to which a native create was forwarded. The number encodes the time of the claim.
    Native(TransactionId),
}

/// Who a new order is claimed for, before its create is forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HomeClaim {
    /// The old v1 service.
    Legacy,
    /// A remote engine, as a native order.
    Native,
}

/// Where an order is at home, for ever (contract section 6, "Homes and modes").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderHome {
    /// Here, as an operation.
    Operation,
    /// Here, as an entry of the journal.
    Entry,
    /// Here, as a native order of a remote engine.
    Native,
    /// At the old v1 service: claimed or imported.
    Legacy,
}

impl OrderHome {
    pub(super) const fn of(home: Home) -> Self {
        match home {
            Home::Operation(_) => Self::Operation,
            Home::Entry(_) => Self::Entry,
            Home::Native(_) => Self::Native,
            Home::Claimed(_) | Home::Imported(_) => Self::Legacy,
        }
    }
}

/// `homes.home` of operations. SQL statements contain the literal 0.
const OPERATION: i64 = 0;
const ENTRY: i64 = 1;
const CLAIMED: i64 = 2;
const IMPORTED: i64 = 3;
const NATIVE: i64 = 4;

impl Home {
    /// The home of an order that is imported now.
    pub(super) fn imported(merchant: &MerchantId, at: UnixMillis) -> Self {
        Self::Imported(TransactionId::compose(at, Bucket::of(merchant), 0))
    }

    /// The home of an order that is claimed now.
    pub(super) fn claimed(claim: HomeClaim, merchant: &MerchantId, at: UnixMillis) -> Self {
        let at = TransactionId::compose(at, Bucket::of(merchant), 0);
        match claim {
            HomeClaim::Legacy => Self::Claimed(at),
            HomeClaim::Native => Self::Native(at),
        }
    }

    /// Returns the columns `home` and `ref`.
    pub(super) const fn columns(self) -> (i64, i64) {
        match self {
            Self::Operation(id) => (OPERATION, id.to_stored()),
            Self::Entry(EntryId(id)) => (ENTRY, id),
            Self::Claimed(at) => (CLAIMED, at.to_stored()),
            Self::Imported(at) => (IMPORTED, at.to_stored()),
            Self::Native(at) => (NATIVE, at.to_stored()),
        }
    }

    /// Decodes the columns `home` and `ref`.
    ///
    /// # Errors
    /// They hold what was never written there.
    pub(super) fn of_columns(home: i64, reference: i64) -> Result<Self, CorruptRow> {
        let id = TransactionId::from_stored(reference).ok_or(CorruptRow("ref"))?;
        match home {
            OPERATION => Ok(Self::Operation(id)),
            ENTRY => Ok(Self::Entry(EntryId(reference))),
            CLAIMED => Ok(Self::Claimed(id)),
            IMPORTED => Ok(Self::Imported(id)),
            NATIVE => Ok(Self::Native(id)),
            _ => Err(CorruptRow("home")),
        }
    }
}

/// What is stored under an order.
pub(super) enum OrderRow {
    Free,
    Operation(Box<StoredRow>),
    /// Its home is no operation.
    Elsewhere,
}

/// The row operations on homes.
pub(super) trait HomeRows: Transaction {
    /// Claims a home for each of several orders of one merchant. Returns for each order its existing home, if any,
    /// which is kept.
    async fn claim_homes(&mut self, orders: &[Fingerprint], home: Home) -> Result<Vec<Option<Home>>, Self::Error>;

    /// Reads the home of an order.
    async fn home(&mut self, merchant: &MerchantId, order: Fingerprint) -> Result<Option<Home>, Self::Error>;
}

/// Reserves orders of a merchant for v1. Orders that have another home are left unchanged.
pub(super) async fn reserve<R: HomeRows>(
    rows: &mut R,
    orders: &[Fingerprint],
    imported: Home,
) -> Result<Reservations, R::Error> {
    let mut reservations = Reservations::default();
    for existing in rows.claim_homes(orders, imported).await? {
        match existing {
            None => reservations.new += 1,
            Some(Home::Claimed(_) | Home::Imported(_)) => reservations.known += 1,
            Some(Home::Operation(_) | Home::Entry(_) | Home::Native(_)) => reservations.operations += 1,
        }
    }
    Ok(reservations)
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

    #[test]
    fn homes_round_trip() {
        let merchant = MerchantId::new("acme").unwrap();
        let Home::Imported(id) = Home::imported(&merchant, UnixMillis(1_790_000_000_000)) else { panic!("it is") };
        assert_eq!(id.bucket(), Bucket::of(&merchant));
        let entry = Home::Entry(EntryId(id.to_stored()));
        for home in [Home::Operation(id), entry, Home::Claimed(id), Home::Imported(id), Home::Native(id)] {
            let (kind, reference) = home.columns();
            assert_eq!(Home::of_columns(kind, reference).ok(), Some(home));
        }
        assert!(Home::of_columns(5, id.to_stored()).is_err() && Home::of_columns(0, 0).is_err());
    }
}
