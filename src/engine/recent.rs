//! Orders that were made lately. Most repeats come soon after the first try, and neither what an order was made from nor what
//! its maker was told ever changes: such a repeat needs no store and none of today's rules.
//!
//! ```text
//! places   a million, by the order's key: four bytes of it (its trace), and where its record is
//! records  32 MiB at most: what was made and from what, of the last 100,000 orders or more
//! ```

mod records;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use records::{Place, Records};

use super::Created;
use super::compare;
use crate::domain::{OrderId, RedirectUrl, TransactionId};
use crate::store::{Comparer, Digest, Kept};
use crate::wire::v2::CreateRequest;

/// The most chunks of records, of 1 MiB each. A record is some 200 bytes long, most of it the link of a deposit.
const CHUNKS: usize = 32;

/// The most lists of kept names that are told apart: one for each schema that was in use.
const MOST_LISTS: usize = 10_000;

/// The orders that were made last, by the store's keys of them.
#[derive(Debug)]
pub(super) struct Recent(Mutex<Memory>);

#[derive(Debug)]
struct Memory {
    traces: Traces,
    records: Records,
    lists: Lists,
}

/// Which orders were made in this process: of each a trace of four bytes, in one place of a table that never grows. A trace
/// is lost when a later order has the same place; it is mistaken for another's once in four thousand million times.
#[derive(Debug, Default)]
struct Traces(Vec<u64>);

impl Traces {
    /// A power of two: 8 MiB, of which the system gives what is used.
    const PLACES: usize = 1 << 20;

    fn leave(&mut self, key: Digest, record: Place) {
        if self.0.is_empty() {
            self.0 = vec![0; Self::PLACES];
        }
        let (place, trace) = Self::of(key);
        self.0[place] = (u64::from(trace) << u32::BITS) | u64::from(record.number());
    }

    /// Where the record of an order was, if it left its trace.
    fn record(&self, key: Digest) -> Option<Place> {
        let (place, trace) = Self::of(key);
        let left = *self.0.get(place)?;
        let record = u32::try_from(left & u64::from(u32::MAX)).ok()?;
        (left >> u32::BITS == u64::from(trace)).then(|| Place::numbered(record))
    }

    /// The end of a key is a hash of its order: any of its bits are as good as all others. No trace is zero, which is no
    /// trace.
    fn of(Digest(key): Digest) -> (usize, u32) {
        let part = |from: usize| key.iter().skip(from).take(4).fold(0, |part, byte| part << 8 | u32::from(*byte));
        (part(8) as usize % Self::PLACES, part(12).max(1))
    }
}

/// Lists of kept names by small numbers.
#[derive(Debug, Default)]
struct Lists {
    /// By where they lie, which is theirs as long as they are held here.
    numbers: HashMap<usize, u16>,
    lists: Vec<Arc<[Box<str>]>>,
}

/// The number of [`Kept::Everything`].
const EVERYTHING: u16 = u16::MAX;

impl Lists {
    /// The number of a list; `None` when there are too many.
    fn number(&mut self, kept: &Kept) -> Option<u16> {
        let Kept::Names(names) = kept else { return Some(EVERYTHING) };
        let address = names.as_ptr().addr();
        if let Some(number) = self.numbers.get(&address) {
            return Some(*number);
        }
        let number = u16::try_from(self.lists.len()).ok().filter(|number| usize::from(*number) < MOST_LISTS)?;
        self.lists.push(Arc::clone(names));
        self.numbers.insert(address, number);
        Some(number)
    }

    fn kept(&self, number: u16) -> Option<Kept> {
        match number {
            EVERYTHING => Some(Kept::Everything),
            number => self.lists.get(usize::from(number)).cloned().map(Kept::Names),
        }
    }
}

/// What is remembered of an order, whose commit is on disk.
#[derive(Debug, Clone)]
pub(super) struct Order {
    /// What whoever made it was told.
    pub(super) created: Created,
    /// What it was made from.
    pub(super) origin: Origin,
}

/// What a repeat is compared with.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    /// The hash of what the v1 body said.
    V1(Digest),
    /// The hash of what the v2 request said, and the names of `fields` that it took in.
    V2(Digest, Kept),
}

impl Default for Recent {
    fn default() -> Self {
        Self::of_size(Records::LARGEST, CHUNKS)
    }
}

impl Recent {
    fn of_size(chunk: usize, chunks: usize) -> Self {
        let records = Records::new(chunk, chunks);
        Self(Mutex::new(Memory { traces: Traces::default(), records, lists: Lists::default() }))
    }

    /// Remembers an order. Its commit is on disk.
    pub(super) fn remember(&self, key: Digest, order: &Order) {
        self.memory().remember(key, order);
    }

    /// Whether an order was likely made in this process, a million orders ago at most: worth a look into the store before
    /// all else.
    pub(super) fn has_trace(&self, key: Digest) -> bool {
        self.memory().traces.record(key).is_some()
    }

    /// Forgets all but the traces.
    #[cfg(test)]
    pub(super) fn fade(&self) {
        self.memory().records.clear();
    }

    /// What the first try of a v1 create was told; `None`: it is not remembered, or this is no repeat of it.
    pub(super) fn v1_repeat(&self, key: Digest, digest: Digest) -> Option<Created> {
        match self.memory().order(key)? {
            Order { created, origin: Origin::V1(made_from) } if made_from == digest => Some(created),
            _ => None,
        }
    }

    /// The same for a native v2 request.
    pub(super) fn v2_repeat(&self, comparer: &Comparer, key: Digest, request: &CreateRequest<'_>) -> Option<Created> {
        let order = self.memory().order(key)?;
        match order {
            Order { created, origin: Origin::V2(made_from, kept) } => {
                (compare::digest(comparer, request, &kept) == made_from).then_some(created)
            }
            Order { .. } => None,
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first byte after the key of a record.
const OF_V1: [u8; 1] = [1];
const OF_V2: [u8; 1] = [2];

/// Stands for the length of a link that is not there.
const NO_LINK: u16 = u16::MAX;

impl Memory {
    fn remember(&mut self, key: Digest, order: &Order) {
        let place = self.record(key, order);
        self.traces.leave(key, place.unwrap_or_default());
    }

    /// A record: the key, what the order was made from, and what was told. `None` when there is no room for one like it.
    fn record(&mut self, key: Digest, Order { created, origin }: &Order) -> Option<Place> {
        let (version, digest, kept) = match origin {
            Origin::V1(digest) => (OF_V1, digest, EVERYTHING),
            Origin::V2(digest, kept) => (OF_V2, digest, self.number(kept)?),
        };
        let order_id = created.order_id.as_str().as_bytes();
        let link = created.redirect_url.as_ref().map(|link| link.expose().as_bytes());
        let length = |text: &[u8]| u16::try_from(text.len()).ok().filter(|length| *length != NO_LINK);
        let order_length = length(order_id)?.to_le_bytes();
        let link_length = match link {
            Some(link) => length(link)?,
            None => NO_LINK,
        };
        let (id, kept, link_length) =
            (created.id.to_stored().to_le_bytes(), kept.to_le_bytes(), link_length.to_le_bytes());
        let fixed = [&key.0[..], &version, &digest.0, &kept, &id, &order_length, &link_length];
        self.records.add(fixed.into_iter().chain([order_id, link.unwrap_or_default()]))
    }

    fn number(&mut self, kept: &Kept) -> Option<u16> {
        if let Some(number) = self.lists.number(kept) {
            return Some(number);
        }
        // The lists of rules long gone are held for records that name them.
        self.records.clear();
        self.lists = Lists::default();
        self.lists.number(kept)
    }

    fn order(&self, key: Digest) -> Option<Order> {
        let mut record = Reading(self.records.at(self.traces.record(key)?)?);
        if record.array()? != key.0 {
            return None;
        }
        let (version, digest, kept) = (record.array()?, Digest(record.array()?), record.number()?);
        let id = TransactionId::from_stored(i64::from_le_bytes(record.array()?))?;
        let (order_length, link_length) = (record.number()?, record.number()?);
        let order_id = OrderId::new(record.text(order_length)?).ok()?;
        let redirect_url = match link_length {
            NO_LINK => None,
            length => Some(RedirectUrl::new(record.text(length)?.to_owned())),
        };
        let origin = match version {
            OF_V1 => Origin::V1(digest),
            _ => Origin::V2(digest, self.lists.kept(kept)?),
        };
        Some(Order { created: Created { id, order_id, redirect_url }, origin })
    }
}

/// What is left of a record.
struct Reading<'r>(&'r [u8]);

impl<'r> Reading<'r> {
    fn array<const LENGTH: usize>(&mut self) -> Option<[u8; LENGTH]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn number(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn text(&mut self, length: u16) -> Option<&'r str> {
        let (text, rest) = self.0.split_at_checked(usize::from(length))?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(number: u32, origin: Origin) -> (Digest, Order) {
        let created = Created {
            id: TransactionId::from_stored(i64::from(number) + 1).unwrap(),
            order_id: OrderId::new(&format!("order-{number}")).unwrap(),
            redirect_url: (!number.is_multiple_of(3))
                .then(|| RedirectUrl::new(format!("https://pay.example/{number}"))),
        };
        (key(number), Order { created, origin })
    }

    fn key(number: u32) -> Digest {
        Comparer::new(&[7; 32]).digest(&{
            let mut parts = crate::store::Parts::of("test");
            parts.part(&number.to_le_bytes());
            parts
        })
    }

    fn v1(number: u32) -> Digest {
        Digest([number.to_le_bytes()[0]; 16])
    }

    #[test]
    fn the_last_orders_are_remembered_and_no_more_than_there_is_room_for() {
        let recent = Recent::of_size(512, 3);
        for number in 0..200 {
            let (key, made) = order(number, Origin::V1(v1(number)));
            recent.remember(key, &made);
            for remembered in number.saturating_sub(8)..=number {
                let (key, made) = order(remembered, Origin::V1(v1(remembered)));
                let told = recent.v1_repeat(key, v1(remembered));
                assert_eq!(told, Some(made.created), "{remembered} after {number}");
                assert_eq!(recent.v1_repeat(key, v1(remembered + 1)), None, "another body");
            }
        }
        assert_eq!(recent.v1_repeat(key(100), v1(100)), None, "long ago");
        assert!(recent.has_trace(key(100)) && !recent.has_trace(key(200)));
        recent.fade();
        assert!(recent.v1_repeat(key(199), v1(199)).is_none() && recent.has_trace(key(199)));
    }

    #[test]
    fn of_v2_the_names_are_remembered_too() {
        let recent = Recent::of_size(4096, 4);
        let list = |name: &str| Kept::Names([name.into()].into());
        let kept = [Kept::Everything, list("a"), list("b"), list("a")];
        for (number, kept) in (0..).zip(&kept) {
            let (key, made) = order(number, Origin::V2(v1(number), kept.clone()));
            recent.remember(key, &made);
        }
        for (number, kept) in (0..).zip(&kept) {
            match recent.memory().order(key(number)).unwrap().origin {
                Origin::V2(digest, remembered) => assert_eq!((digest, &remembered), (v1(number), kept)),
                Origin::V1(_) => panic!("{number}"),
            }
            assert_eq!(recent.v1_repeat(key(number), v1(number)), None, "made by v2");
        }
    }

    #[test]
    fn with_too_many_lists_all_is_forgotten_and_new_ones_are_remembered() {
        let recent = Recent::of_size(Records::LARGEST, 2);
        let most = u32::try_from(MOST_LISTS).unwrap();
        for number in 0..=most {
            let (key, made) = order(number, Origin::V2(v1(number), Kept::Names([number.to_string().into()].into())));
            recent.remember(key, &made);
        }
        assert!(recent.memory().order(key(most - 1)).is_none());
        assert!(recent.memory().order(key(most)).is_some());
        assert_eq!(recent.memory().lists.lists.len(), 1);
    }

    #[test]
    fn what_is_too_long_leaves_its_trace() {
        let recent = Recent::of_size(256, 2);
        let (key, mut made) = order(1, Origin::V1(v1(1)));
        made.created.redirect_url = Some(RedirectUrl::new("x".repeat(70_000)));
        recent.remember(key, &made);
        assert!(recent.has_trace(key) && recent.v1_repeat(key, v1(1)).is_none());
    }
}
