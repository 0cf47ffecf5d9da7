//! Which callbacks came before, by their ids, in bounded memory.

use std::collections::{HashMap, VecDeque};

use sha2::{Digest as _, Sha256};

/// How many ids are remembered; the oldest is forgotten first.
const REMEMBERED: usize = 4096;

type Hash = [u8; 32];

/// How often each id was seen.
#[derive(Debug, Default)]
pub struct Seen {
    times: HashMap<Hash, u64>,
    order: VecDeque<Hash>,
}

impl Seen {
    /// How often this id was seen, this time included.
    pub fn count(&mut self, id: &[u8]) -> u64 {
        let hash: Hash = Sha256::digest(id).into();
        if let Some(times) = self.times.get_mut(&hash) {
            *times += 1;
            return *times;
        }
        if self.order.len() >= REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.times.remove(&oldest);
        }
        self.order.push_back(hash);
        self.times.insert(hash, 1);
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_counted_within_a_bound() {
        let mut seen = Seen::default();
        assert_eq!([seen.count(b"a"), seen.count(b"b"), seen.count(b"a"), seen.count(b"a")], [1, 1, 2, 3]);
        for number in 0..REMEMBERED {
            assert_eq!(seen.count(&number.to_be_bytes()), 1);
        }
        assert_eq!((seen.times.len(), seen.order.len()), (REMEMBERED, REMEMBERED));
        assert_eq!(seen.count(b"a"), 1, "it is forgotten");
        assert_eq!(seen.count(&(REMEMBERED - 1).to_be_bytes()), 2);
    }
}
