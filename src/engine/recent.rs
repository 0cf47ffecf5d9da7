//! Orders that were made lately. Most repeats come soon after the first try, and neither what an order was made from nor what
//! its maker was told ever changes: such a repeat needs no store and none of today's rules.
//!
//! A v1 create is known by its very bytes, too: most repeats are the same to the byte, and those need not be understood.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Created;
use super::compare;
use crate::domain::{Direction, MerchantId, OrderId, RedirectUrl, TransactionId};
use crate::store::memory::{self, Keyer, Room};
use crate::store::{Comparer, Digest, Kept};
use crate::wire::v2::CreateRequest;

/// The last 200,000 orders or so: a record is some 240 bytes long, most of it the link of a deposit. Traces are left by half a
/// million orders. The system gives what is used of the 56 MiB.
const ROOM: Room = Room { chunk: Room::CHUNK, chunks: 48, keys: 1 << 20 };

/// The most lists of kept names that are told apart: one for each schema that was in use.
const MOST_LISTS: usize = 10_000;

/// The orders that were made last, by the store's keys of them and by those of v1 bodies.
#[derive(Debug)]
pub(super) struct Recent {
    keyer: Keyer,
    memory: Mutex<Memory>,
}

#[derive(Debug)]
struct Memory {
    orders: memory::Memory,
    lists: Lists,
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
        Self::of_size(ROOM)
    }
}

impl Recent {
    fn of_size(room: Room) -> Self {
        let memory = Memory { orders: memory::Memory::new(room), lists: Lists::default() };
        Self { keyer: Keyer::default(), memory: Mutex::new(memory) }
    }

    /// The key of the very bytes of a v1 create.
    pub(super) fn body_key(&self, merchant: &MerchantId, direction: Direction, body: &[u8]) -> Digest {
        self.keyer.key(&[merchant.as_str().as_bytes(), direction.as_str().as_bytes(), body])
    }

    /// Remembers an order, made by a v1 body if one is named. Its commit is on disk.
    pub(super) fn remember(&self, key: Digest, body: Option<Digest>, order: &Order) {
        self.memory().remember(key, body, order);
    }

    /// Whether an order was likely made in this process, half a million orders ago at most: worth a look into the store
    /// before all else.
    pub(super) fn has_trace(&self, key: Digest) -> bool {
        self.memory().orders.has_trace(key)
    }

    /// Forgets all but the traces.
    #[cfg(test)]
    pub(super) fn fade(&self) {
        self.memory().orders.clear();
    }

    /// What the first try of a v1 create was told; `None`: it is not remembered, or this is no repeat of it.
    pub(super) fn v1_repeat(&self, key: Digest, digest: Digest) -> Option<Created> {
        match self.memory().order(key)? {
            Order { created, origin: Origin::V1(made_from) } if made_from == digest => Some(created),
            _ => None,
        }
    }

    /// What the very same v1 body was told before, if it is remembered.
    pub(super) fn same_body(&self, body: Digest) -> Option<Created> {
        self.memory().order(body).map(|order| order.created)
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
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first byte of a record.
const OF_V1: [u8; 1] = [1];
const OF_V2: [u8; 1] = [2];

/// Stands for the length of a link that is not there.
const NO_LINK: u16 = u16::MAX;

impl Memory {
    fn remember(&mut self, key: Digest, body: Option<Digest>, Order { created, origin }: &Order) {
        let (version, digest, kept) = match origin {
            Origin::V1(digest) => (OF_V1, digest, EVERYTHING),
            Origin::V2(digest, kept) => match self.number(kept) {
                Some(kept) => (OF_V2, digest, kept),
                None => return,
            },
        };
        let link = created.redirect_url.as_ref().map(|link| link.expose().as_bytes());
        // A link that is longer makes a record that is too long.
        let link_length = link.map_or(NO_LINK, |link| u16::try_from(link.len()).unwrap_or(NO_LINK - 1)).to_le_bytes();
        let (id, kept) = (created.id.to_stored().to_le_bytes(), kept.to_le_bytes());
        let order_id = created.order_id.as_str().as_bytes();
        let pieces = [&version[..], &digest.0, &kept, &id, &link_length, link.unwrap_or_default(), order_id];
        match body {
            Some(body) => self.orders.add(&[key, body], &pieces),
            None => self.orders.add(&[key], &pieces),
        }
    }

    fn number(&mut self, kept: &Kept) -> Option<u16> {
        if let Some(number) = self.lists.number(kept) {
            return Some(number);
        }
        // The lists of rules long gone are held for records that name them.
        self.orders.clear();
        self.lists = Lists::default();
        self.lists.number(kept)
    }

    fn order(&mut self, key: Digest) -> Option<Order> {
        let Self { orders, lists } = self;
        orders.find(key, |record| lists.order(Reading(record)))
    }
}

impl Lists {
    fn order(&self, mut record: Reading<'_>) -> Option<Order> {
        let (version, digest, kept) = (record.array()?, Digest(record.array()?), record.number()?);
        let id = TransactionId::from_stored(i64::from_le_bytes(record.array()?))?;
        let redirect_url = match record.number()? {
            NO_LINK => None,
            length => Some(RedirectUrl::new(record.text(length)?.to_owned())),
        };
        let order_id = OrderId::new(record.rest()?).ok()?;
        let origin = match version {
            OF_V1 => Origin::V1(digest),
            _ => Origin::V2(digest, self.kept(kept)?),
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

    fn rest(self) -> Option<&'r str> {
        std::str::from_utf8(self.0).ok()
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

    fn small(chunk: usize, chunks: usize) -> Recent {
        Recent::of_size(Room { chunk, chunks, keys: 1 << 16 })
    }

    fn v1(number: u32) -> Digest {
        Digest([number.to_le_bytes()[0]; 16])
    }

    #[test]
    fn the_last_orders_are_remembered_and_no_more_than_there_is_room_for() {
        let recent = small(512, 3);
        for number in 0..200 {
            let (key, made) = order(number, Origin::V1(v1(number)));
            recent.remember(key, None, &made);
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
    fn a_v1_body_is_known_by_its_bytes_too() {
        let recent = small(4096, 2);
        let ((first, made), (second, other)) = (order(1, Origin::V1(v1(1))), order(2, Origin::V1(v1(2))));
        recent.remember(first, Some(key(101)), &made);
        recent.remember(second, None, &other);
        assert_eq!(recent.same_body(key(101)), Some(made.created.clone()));
        assert_eq!(recent.v1_repeat(first, v1(1)), Some(made.created), "the same in other bytes");
        assert_eq!(recent.same_body(key(102)), None);
        assert!(recent.v1_repeat(second, v1(2)).is_some());
        recent.fade();
        assert_eq!(recent.same_body(key(101)), None);
    }

    #[test]
    fn of_v2_the_names_are_remembered_too() {
        let recent = small(4096, 4);
        let list = |name: &str| Kept::Names([name.into()].into());
        let kept = [Kept::Everything, list("a"), list("b"), list("a")];
        for (number, kept) in (0..).zip(&kept) {
            let (key, made) = order(number, Origin::V2(v1(number), kept.clone()));
            recent.remember(key, None, &made);
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
        let recent = small(Room::CHUNK, 2);
        let most = u32::try_from(MOST_LISTS).unwrap();
        for number in 0..=most {
            let (key, made) = order(number, Origin::V2(v1(number), Kept::Names([number.to_string().into()].into())));
            recent.remember(key, None, &made);
        }
        assert!(recent.memory().order(key(most - 1)).is_none());
        assert!(recent.memory().order(key(most)).is_some());
        assert_eq!(recent.memory().lists.lists.len(), 1);
    }

    #[test]
    fn what_is_too_long_leaves_its_trace() {
        let recent = small(256, 2);
        let (key, mut made) = order(1, Origin::V1(v1(1)));
        made.created.redirect_url = Some(RedirectUrl::new("x".repeat(70_000)));
        recent.remember(key, None, &made);
        assert!(recent.has_trace(key) && recent.v1_repeat(key, v1(1)).is_none());
    }
}
