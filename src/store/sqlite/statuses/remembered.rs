//! Statuses of the operations that were made lately: to ask for them, again and again, needs no file.
//!
//! Only the writer's thread fills and changes this, commit by commit and before anyone is told of them. So what is read here
//! is never older than what was acknowledged, and an operation that was asked for from the file is not put here: its status
//! may have changed meanwhile. No other process changes operations while a gateway serves them (see `opening`).

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::domain::{
    Amount, Currency, Direction, MerchantId, OrderId, Outcome, Record, Shown, Status, TransactionId, UnixMillis,
};
use crate::store::Digest;
use crate::store::memory::{Keyer, Memory, Room};
use crate::store::rows::operation::NewRow;
use crate::store::rows::{direction_number, direction_of, status_number, status_of};

/// The last 150,000 operations or more: a record is some 130 bytes long. The system gives what is used of the 32 MiB.
const ROOM: Room = Room { chunk: Room::CHUNK, chunks: 24, keys: 1 << 20 };

/// Stands for the status of an operation that is changing, or of which more has changed than is remembered.
const ASK_THE_FILE: u8 = u8::MAX;

/// Where the status is in a record: first.
const STATUS: usize = 0;

/// What statuses tell of operations, by v1 orders and by ids.
pub(in crate::store::sqlite) struct Remembered {
    keyer: Keyer,
    /// `None`: nothing is remembered any more.
    memory: Mutex<Option<Memory>>,
}

impl Default for Remembered {
    fn default() -> Self {
        Self { keyer: Keyer::default(), memory: Mutex::new(Some(Memory::new(ROOM))) }
    }
}

impl Remembered {
    /// An operation was made in this status. Its commit is on disk.
    pub(in crate::store::sqlite) fn created(&self, row: &NewRow, status: Status) {
        if let Some(memory) = &mut *self.memory() {
            let _ = self.add(memory, row, status);
        }
    }

    /// An operation comes to an end, with the commit that is about to be made: readers of the file may see it before
    /// [`Remembered::finished`] is called, and nobody may see it undone after that.
    pub(in crate::store::sqlite) fn finishing(&self, id: TransactionId) {
        self.change(id, ASK_THE_FILE);
    }

    /// An operation came to an end. The commit is on disk.
    pub(in crate::store::sqlite) fn finished(&self, id: TransactionId, outcome: &Outcome) {
        let status = match outcome {
            Outcome::Success { payer: None } => number_of(Status::Success),
            Outcome::Success { payer: Some(_) } => ASK_THE_FILE,
            Outcome::Failed => number_of(Status::Failed),
        };
        self.change(id, status);
    }

    fn change(&self, id: TransactionId, status: u8) {
        if let Some(memory) = &mut *self.memory() {
            memory.change(key_of(id), |record| record[STATUS] = status);
        }
    }

    /// Forgets everything: the file may hold something else than was thought.
    pub(in crate::store::sqlite) fn forget(&self) {
        if let Some(memory) = &mut *self.memory() {
            memory.clear();
        }
    }

    /// Forgets everything, and remembers nothing from now on.
    pub(in crate::store::sqlite) fn close(&self) {
        *self.memory() = None;
    }

    /// What v1 tells of the operation that it made under an order.
    pub(in crate::store::sqlite) fn v1(
        &self,
        merchant: &MerchantId,
        direction: Direction,
        order_id: &OrderId,
    ) -> Option<Shown> {
        let key = self.order_key(merchant, direction, order_id);
        self.memory().as_mut()?.find(key, |record| {
            let told = Told::read(record)?;
            Some(Shown {
                transaction_id: told.id.digits().as_str().into(),
                external_id: order_id.clone(),
                direction: told.direction,
                status: told.status,
                amount: told.amount,
                currency: told.currency,
                shop_code: told.shop.into(),
                account_number: told.account.map(str::to_owned),
                created_at: told.created_at,
            })
        })
    }

    /// What v2 tells of an operation of this merchant.
    pub(in crate::store::sqlite) fn v2(&self, merchant: &MerchantId, id: TransactionId) -> Option<Record> {
        self.memory().as_mut()?.find(key_of(id), |record| {
            let told = Told::read(record).filter(|told| told.id == id && told.merchant == merchant.as_str())?;
            Some(Record {
                order_id: OrderId::new(told.order_id).ok()?,
                transaction_id: id,
                status: told.status,
                amount: told.amount,
                currency: told.currency,
                method: told.method.into(),
                account_number: told.account.map(str::to_owned),
            })
        })
    }

    /// Writes down what [`Told::read`] reads. `None`: something is too long.
    fn add(&self, memory: &mut Memory, row: &NewRow, status: Status) -> Option<()> {
        let draft = row.draft();
        let operation = &draft.operation;
        let account = operation.shown_account();
        let texts = [
            operation.merchant.as_str(),
            operation.order_id.as_str(),
            operation.shop.as_str(),
            operation.shown_method(),
            account.as_deref().unwrap_or_default(),
        ];
        let lengths = texts.map(|text| u16::try_from(text.len()));
        let [Ok(merchant), Ok(order_id), Ok(shop), Ok(method), Ok(_)] = lengths else { return None };
        let lengths = [merchant, order_id, shop, method].map(u16::to_le_bytes);
        let direction = u8::try_from(direction_number(operation.direction())).ok()?;
        let [merchant, order_id, shop, method, account_text] = texts.map(str::as_bytes);
        let pieces = [
            &[number_of(status), direction, u8::from(account.is_some())][..],
            &operation.id.to_stored().to_le_bytes(),
            &operation.amount.hundredths().to_le_bytes(),
            &operation.created_at.0.to_le_bytes(),
            operation.currency.as_str().as_bytes(),
            lengths.as_flattened(),
            merchant,
            order_id,
            shop,
            method,
            account_text,
        ];
        // By its order only v1 may ask, and only for what it made.
        match &draft.v1 {
            Some(_) => {
                let order = self.order_key(&operation.merchant, operation.direction(), &operation.order_id);
                memory.add(&[key_of(operation.id), order], &pieces);
            }
            None => memory.add(&[key_of(operation.id)], &pieces),
        }
        Some(())
    }

    fn order_key(&self, merchant: &MerchantId, direction: Direction, order_id: &OrderId) -> Digest {
        let parts = [merchant.as_str(), direction.as_str(), order_id.as_str()];
        self.keyer.key(&parts.map(str::as_bytes))
    }

    fn memory(&self) -> MutexGuard<'_, Option<Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ids are no hashes: their bits are spread by multiplying.
fn key_of(id: TransactionId) -> Digest {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let id = id.to_stored().cast_unsigned();
    let spread = (id ^ id >> 32).wrapping_mul(ODD);
    let spread = (spread ^ spread >> 29).wrapping_mul(ODD);
    let mut key = [0; 16];
    key[..8].copy_from_slice(&id.to_be_bytes());
    key[8..].copy_from_slice(&(spread ^ spread >> 32).to_be_bytes());
    Digest(key)
}

fn number_of(status: Status) -> u8 {
    u8::try_from(status_number(status)).unwrap_or(ASK_THE_FILE)
}

/// A record as it was written down.
struct Told<'r> {
    status: Status,
    direction: Direction,
    id: TransactionId,
    amount: Amount,
    created_at: UnixMillis,
    currency: Currency,
    merchant: &'r str,
    order_id: &'r str,
    shop: &'r str,
    method: &'r str,
    account: Option<&'r str>,
}

impl<'r> Told<'r> {
    /// `None`: the file has to be asked.
    fn read(record: &'r [u8]) -> Option<Self> {
        let ([status, direction, has_account], rest) = record.split_first_chunk()?;
        let status = status_of(i64::from(*status))?;
        let (id, rest) = rest.split_first_chunk()?;
        let (amount, rest) = rest.split_first_chunk()?;
        let (created_at, rest) = rest.split_first_chunk()?;
        let (currency, rest) = rest.split_first_chunk::<3>()?;
        let (lengths, rest) = rest.split_first_chunk::<8>()?;
        let mut rest = std::str::from_utf8(rest).ok()?;
        let mut texts = [""; 4];
        for (text, length) in texts.iter_mut().zip(lengths.as_chunks().0) {
            (*text, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        }
        let [merchant, order_id, shop, method] = texts;
        Some(Self {
            status,
            direction: direction_of(i64::from(*direction))?,
            id: TransactionId::from_stored(i64::from_le_bytes(*id))?,
            amount: Amount::from_hundredths(u64::from_le_bytes(*amount)).ok()?,
            created_at: UnixMillis(i64::from_le_bytes(*created_at)),
            currency: Currency::new(std::str::from_utf8(currency).ok()?).ok()?,
            merchant,
            order_id,
            shop,
            method,
            account: (*has_account == 1).then_some(rest),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_ids_made_in_a_row_are_spread() {
        let keys: Vec<_> =
            (1..5000_i64).map(|number| key_of(TransactionId::from_stored(number << 12).unwrap()).0).collect();
        for part in [8..10, 10..12, 12..14, 14..16] {
            let mut parts: Vec<_> = keys.iter().map(|key| &key[part.clone()]).collect();
            parts.sort_unstable();
            parts.dedup();
            assert!(parts.len() > 4500, "bytes {part:?}: {} of 4999", parts.len());
        }
    }
}
