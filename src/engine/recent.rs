//! Orders that were made lately. Most repeats come soon after the first try, and neither what an order was made from nor what
//! its maker was told ever changes: such a repeat needs no store and none of today's rules.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Created;
use super::compare;
use crate::store::{Comparer, Digest, Kept};
use crate::wire::v2::CreateRequest;

/// How many orders a generation has. Two are remembered, of some 350 bytes an order.
const GENERATION: usize = 16 * 1024;

/// The orders that were made last, by the store's keys of them.
#[derive(Debug)]
pub(super) struct Recent {
    generations: Mutex<Generations>,
    size: usize,
}

/// When the young generation is full, it takes the place of the old one, which is forgotten.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Digest, Order>,
    old: HashMap<Digest, Order>,
    traces: Traces,
}

/// Which orders were made in this process: of each a trace of four bytes, in one place of a table that never grows. A trace
/// is lost when a later order has the same place; it is mistaken for another's once in four thousand million times.
#[derive(Debug, Default)]
struct Traces(Vec<u32>);

impl Traces {
    /// A power of two: 4 MiB, of which the system gives what is used.
    const PLACES: usize = 1 << 20;

    fn leave(&mut self, key: Digest) {
        if self.0.is_empty() {
            self.0 = vec![0; Self::PLACES];
        }
        let (place, trace) = Self::of(key);
        self.0[place] = trace;
    }

    fn has(&self, key: Digest) -> bool {
        let (place, trace) = Self::of(key);
        self.0.get(place) == Some(&trace)
    }

    /// Keys are hashes: any of their bits are as good as all others. No trace is zero, which is no trace.
    fn of(Digest(key): Digest) -> (usize, u32) {
        let part = |from: usize| key.iter().skip(from).take(4).fold(0, |part, byte| part << 8 | u32::from(*byte));
        (part(0) as usize % Self::PLACES, part(4).max(1))
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
        Self::of_size(GENERATION)
    }
}

impl Recent {
    fn of_size(size: usize) -> Self {
        Self { generations: Mutex::default(), size }
    }

    /// Remembers an order. Its commit is on disk.
    pub(super) fn remember(&self, key: Digest, order: Order) {
        let mut generations = self.generations();
        if generations.young.len() >= self.size {
            // The table of the old generation is used again.
            let Generations { young, old, .. } = &mut *generations;
            old.clear();
            std::mem::swap(young, old);
        }
        generations.young.insert(key, order);
        generations.traces.leave(key);
    }

    /// Whether an order was likely made in this process, a million orders ago at most: worth a look into the store before
    /// all else.
    pub(super) fn has_trace(&self, key: Digest) -> bool {
        self.generations().traces.has(key)
    }

    /// Forgets all but the traces.
    #[cfg(test)]
    pub(super) fn fade(&self) {
        let mut generations = self.generations();
        generations.young.clear();
        generations.old.clear();
    }

    /// What the first try of a v1 create was told; `None`: it is not remembered, or this is no repeat of it.
    pub(super) fn v1_repeat(&self, key: Digest, digest: Digest) -> Option<Created> {
        match self.order(key)? {
            Order { created, origin: Origin::V1(made_from) } if made_from == digest => Some(created),
            _ => None,
        }
    }

    /// The same for a native v2 request.
    pub(super) fn v2_repeat(&self, comparer: &Comparer, key: Digest, request: &CreateRequest<'_>) -> Option<Created> {
        match self.order(key)? {
            Order { created, origin: Origin::V2(made_from, kept) } => {
                (compare::digest(comparer, request, &kept) == made_from).then_some(created)
            }
            Order { .. } => None,
        }
    }

    fn order(&self, key: Digest) -> Option<Order> {
        let generations = self.generations();
        generations.young.get(&key).or_else(|| generations.old.get(&key)).cloned()
    }

    fn generations(&self) -> MutexGuard<'_, Generations> {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{OrderId, TransactionId};

    fn order(number: u8) -> (Digest, Order) {
        let created = Created {
            id: TransactionId::from_stored(i64::from(number) + 1).unwrap(),
            order_id: OrderId::new("o").unwrap(),
            redirect_url: None,
        };
        (Digest([number; 16]), Order { created, origin: Origin::V1(Digest([number ^ 0xff; 16])) })
    }

    #[test]
    fn the_last_orders_are_remembered_and_no_more_than_two_generations() {
        let recent = Recent::of_size(4);
        for number in 0..20 {
            let (key, order) = order(number);
            recent.remember(key, order);
            let generations = recent.generations();
            assert!(generations.young.len() <= 4 && generations.old.len() <= 4);
            drop(generations);
            for remembered in number.saturating_sub(3)..=number {
                let (key, order) = self::order(remembered);
                let Origin::V1(digest) = order.origin else { unreachable!() };
                assert_eq!(recent.v1_repeat(key, digest), Some(order.created), "{remembered} after {number}");
                assert_eq!(recent.v1_repeat(key, Digest([0x55; 16])), None, "another body");
            }
        }
        let (key, order) = order(3);
        let Origin::V1(digest) = order.origin else { unreachable!() };
        assert_eq!(recent.v1_repeat(key, digest), None, "long ago");
        assert!(recent.has_trace(key) && !recent.has_trace(self::order(20).0));
    }
}
