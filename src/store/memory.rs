//! What lately passed, in a bounded room: records of bytes that are found by hashes.
//!
//! ```text
//! places   eight to a bucket, the latest first: four bytes of a key (its trace), and where its record is
//! records  chunks of 1 MiB; the oldest begins anew, and what is asked for in the older half moves to the front
//! ```

mod records;

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

use records::{Place, Records};

use super::Digest;

/// Makes keys: hashes with a secret that is drawn for this process and never leaves it, as little as what it makes. That is
/// less work than keys that are stored or shown.
#[derive(Clone, Default)]
pub struct Keyer([RandomState; 2]);

impl fmt::Debug for Keyer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyer(..)")
    }
}

impl Keyer {
    /// The key of a list of texts.
    #[must_use]
    pub fn key(&self, parts: &[&[u8]]) -> Digest {
        // A slice is hashed with its length before it: no two lists are alike.
        let [first, last] = self.0.each_ref().map(|state| u128::from(state.hash_one(parts)));
        Digest((first << 64 | last).to_be_bytes())
    }
}

/// How much is remembered.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Bytes of a chunk of records: [`Room::CHUNK`] at most.
    pub chunk: usize,
    /// The most chunks.
    pub chunks: usize,
    /// The most keys; a multiple of eight. Each takes eight bytes.
    pub keys: usize,
}

impl Room {
    /// The largest chunk, 1 MiB.
    pub const CHUNK: usize = Records::LARGEST;
}

/// Records by keys, which are hashes: any of their last eight bytes are as good as all others. A record is there for as long
/// as all of its keys lead to it, so that a change by one of them is seen by all.
#[derive(Debug)]
pub struct Memory {
    places: Places,
    records: Records,
}

/// The most keys of a record.
const MOST_KEYS: usize = 2;

impl Memory {
    /// An empty one. Its room is taken when it is needed.
    #[must_use]
    pub const fn new(room: Room) -> Self {
        Self { places: Places::new(room.keys), records: Records::new(room.chunk, room.chunks) }
    }

    /// Remembers a record under keys, in place of what was there under them. One that is too large leaves only its traces.
    ///
    /// # Panics
    ///
    /// With more than two keys.
    pub fn add(&mut self, keys: &[Digest], pieces: &[&[u8]]) {
        assert!(keys.len() <= MOST_KEYS, "a record has few keys");
        let place = self.record(keys, pieces).unwrap_or(Place::NOWHERE);
        for key in keys {
            self.places.leave(*key, place);
        }
    }

    /// Writes down how long a record is, how many keys it has, the keys, and the record.
    fn record(&mut self, keys: &[Digest], pieces: &[&[u8]]) -> Option<Place> {
        let length = u16::try_from(pieces.iter().map(|piece| piece.len()).sum::<usize>()).ok()?.to_le_bytes();
        let count = u8::try_from(keys.len()).ok()?.to_le_bytes();
        let head = [&length[..], &count[..]].into_iter().chain(keys.iter().map(|key| &key.0[..]));
        self.records.add(head.chain(pieces.iter().copied()))
    }

    /// Whether something was likely remembered under a key, and not too long ago: its record may be gone.
    #[must_use]
    pub fn has_trace(&self, key: Digest) -> bool {
        self.places.of(key).next().is_some()
    }

    /// What `read` makes of the record of a key.
    pub fn find<T>(&mut self, key: Digest, read: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let (place, found) = self.found(key)?;
        let result = read(found.record)?;
        if self.records.is_old(place) {
            let (keys, record) = (found.keys(), found.record.to_vec());
            self.add(&keys, &[&record]);
        }
        Some(result)
    }

    fn found(&self, key: Digest) -> Option<(Place, Found<'_>)> {
        self.places.of(key).find_map(|place| {
            let found = Found::read(self.records.at(place)?)?;
            let leads_here = |key: &[u8; 16]| self.places.of(Digest(*key)).any(|leads_to| leads_to == place);
            (found.keys.contains(&key.0) && found.keys.iter().all(leads_here)).then_some((place, found))
        })
    }

    /// Changes the record of a key where it lies, if it is remembered.
    pub fn change(&mut self, key: Digest, change: impl FnOnce(&mut [u8])) {
        let Some((place, found)) = self.found(key) else { return };
        let start = found.start();
        let record = start..start + found.record.len();
        if let Some(record) = self.records.at_mut(place).and_then(|there| there.get_mut(record)) {
            change(record);
        }
    }

    /// Forgets all but the traces.
    pub fn clear(&mut self) {
        self.records.clear();
    }
}

/// A record as it was written down.
struct Found<'r> {
    keys: &'r [[u8; 16]],
    record: &'r [u8],
}

impl<'r> Found<'r> {
    fn read(there: &'r [u8]) -> Option<Self> {
        let (length, rest) = there.split_first_chunk()?;
        let (count, rest) = rest.split_first()?;
        let (keys, rest) = rest.split_at_checked(usize::from(*count) * size_of::<Digest>())?;
        let record = rest.get(..usize::from(u16::from_le_bytes(*length)))?;
        Some(Self { keys: keys.as_chunks().0, record })
    }

    fn keys(&self) -> Vec<Digest> {
        self.keys.iter().copied().map(Digest).collect()
    }

    /// Where the record begins.
    const fn start(&self) -> usize {
        size_of::<u16>() + size_of::<u8>() + size_of_val(self.keys)
    }
}

/// Where the records of keys are. Of a key there are only four bytes: the record tells whose it is.
struct Places {
    entries: Vec<[u64; Self::WAYS]>,
    buckets: usize,
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Places({} buckets)", self.buckets)
    }
}

impl Places {
    /// The places of a bucket: a line of the processor's cache.
    const WAYS: usize = 8;

    const fn new(keys: usize) -> Self {
        assert!(keys >= Self::WAYS, "there is a bucket");
        Self { entries: Vec::new(), buckets: keys / Self::WAYS }
    }

    /// Puts a place first in its bucket, instead of one with the same trace, or of the oldest.
    fn leave(&mut self, key: Digest, place: Place) {
        if self.entries.is_empty() {
            self.entries = vec![[0; Self::WAYS]; self.buckets];
        }
        let (bucket, trace) = self.split(key);
        let bucket = &mut self.entries[bucket];
        let gone = bucket.iter().position(|entry| trace_of(*entry) == trace).unwrap_or(Self::WAYS - 1);
        bucket.copy_within(..gone, 1);
        bucket[0] = u64::from(trace) << u32::BITS | u64::from(place.number());
    }

    fn of(&self, key: Digest) -> impl Iterator<Item = Place> + '_ {
        let (bucket, trace) = self.split(key);
        let entries = self.entries.get(bucket).into_iter().flatten();
        entries.filter(move |entry| trace_of(**entry) == trace).map(|entry| Place::numbered(low(*entry)))
    }

    /// The bucket of a key, and its trace. No trace is zero, which is no trace.
    fn split(&self, Digest(key): Digest) -> (usize, u32) {
        let part = |from: usize| key.iter().skip(from).take(4).fold(0, |part, byte| part << 8 | u32::from(*byte));
        (part(8) as usize % self.buckets, part(12).max(1))
    }
}

fn trace_of(entry: u64) -> u32 {
    low(entry >> u32::BITS)
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
const fn low(entry: u64) -> u32 {
    entry as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> Digest {
        let number = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Digest((u128::from(number ^ number >> 32) << 64 | u128::from(number.wrapping_mul(number | 1))).to_be_bytes())
    }

    fn small(chunk: usize, chunks: usize) -> Memory {
        Memory::new(Room { chunk, chunks, keys: 4096 })
    }

    fn add(memory: &mut Memory, keys: &[Digest], text: &str) {
        memory.add(keys, &[text.as_bytes()]);
    }

    fn text(memory: &mut Memory, key: Digest) -> Option<String> {
        memory.find(key, |record| Some(String::from_utf8(record.to_vec()).unwrap()))
    }

    #[test]
    fn lists_of_texts_have_keys_of_their_own() {
        let keyer = Keyer::default();
        let one = keyer.key(&[b"acme", b"payin", b"{}"]);
        assert_eq!(one, keyer.clone().key(&[b"acme", b"payin", b"{}"]));
        for other in [&[&b"acme"[..], b"payin{}"][..], &[b"acmep", b"ayin", b"{}"], &[b"acme", b"payin", b"{} "]] {
            assert_ne!(one, keyer.key(other));
        }
        assert_ne!(one, Keyer::default().key(&[b"acme", b"payin", b"{}"]), "another process");
    }

    #[test]
    fn a_record_is_found_by_each_of_its_keys_and_by_no_other() {
        let mut memory = small(1024, 2);
        assert!(!memory.has_trace(key(0)) && text(&mut memory, key(0)).is_none());
        add(&mut memory, &[key(0), key(1)], "both");
        add(&mut memory, &[key(2)], "one");
        for (number, expected) in [(0, Some("both")), (1, Some("both")), (2, Some("one")), (3, None)] {
            assert_eq!(text(&mut memory, key(number)).as_deref(), expected, "{number}");
            assert_eq!(memory.has_trace(key(number)), expected.is_some(), "{number}");
        }
        let mut same_trace = key(0);
        same_trace.0[0] ^= 1;
        assert!(memory.has_trace(same_trace) && text(&mut memory, same_trace).is_none(), "the record tells");
    }

    #[test]
    fn the_oldest_are_forgotten_but_for_their_traces() {
        let mut memory = small(256, 4);
        for number in 0..200 {
            add(&mut memory, &[key(number)], &number.to_string());
            assert_eq!(text(&mut memory, key(number)), Some(number.to_string()));
        }
        assert!(memory.has_trace(key(0)) && text(&mut memory, key(0)).is_none());
        memory.clear();
        assert!(memory.has_trace(key(199)) && text(&mut memory, key(199)).is_none());
    }

    #[test]
    fn what_is_asked_for_stays() {
        let mut memory = small(256, 4);
        add(&mut memory, &[key(1000), key(1001)], "asked for");
        for number in 0..200 {
            add(&mut memory, &[key(number)], "other");
            let asked = key(1000 + number % 2);
            assert_eq!(text(&mut memory, asked).as_deref(), Some("asked for"), "after {number}");
        }
        assert_eq!(text(&mut memory, key(1000)), text(&mut memory, key(1001)));
    }

    #[test]
    fn a_change_is_seen_through_every_key_and_after_a_move() {
        let mut memory = small(256, 4);
        add(&mut memory, &[key(1000), key(1001)], "a");
        for number in 0..100 {
            add(&mut memory, &[key(number)], "other");
            memory.change(key(1000 + number % 2), |record| record[0] = b'a' + u8::try_from(number % 20).unwrap());
            let expected = char::from(b'a' + u8::try_from(number % 20).unwrap()).to_string();
            for asked in [1001, 1000] {
                assert_eq!(text(&mut memory, key(asked)).as_ref(), Some(&expected), "{asked} after {number}");
            }
        }
        memory.change(key(5000), |_| panic!("nobody's"));
    }

    #[test]
    fn a_later_record_under_a_key_is_the_one_that_is_found() {
        let mut memory = small(256, 4);
        for number in 0..50 {
            add(&mut memory, &[key(7)], &number.to_string());
            assert_eq!(text(&mut memory, key(7)), Some(number.to_string()));
        }
    }

    #[test]
    fn a_full_bucket_forgets_its_oldest_key() {
        let mut memory = Memory::new(Room { chunk: 4096, chunks: 2, keys: 8 });
        for number in 0..20 {
            add(&mut memory, &[key(number)], &number.to_string());
            let first = (number + 1).saturating_sub(8);
            for known in first..=number {
                assert_eq!(text(&mut memory, key(known)), Some(known.to_string()), "{known} after {number}");
            }
            assert!(first == 0 || !memory.has_trace(key(first - 1)));
        }
    }

    #[test]
    fn a_record_that_one_key_has_lost_is_found_by_none() {
        let mut memory = Memory::new(Room { chunk: 4096, chunks: 2, keys: 8 });
        add(&mut memory, &[key(1), key(2)], "before");
        for number in 10..17 {
            add(&mut memory, &[key(number)], "other");
        }
        memory.change(key(1), |_| panic!("its place is another's"));
        assert_eq!(text(&mut memory, key(2)), None, "it may have changed");
        assert_eq!(text(&mut memory, key(16)).as_deref(), Some("other"));
    }

    #[test]
    fn what_is_too_large_leaves_its_trace() {
        for (chunk, length) in [(256, 300), (Room::CHUNK, 70_000)] {
            let mut memory = small(chunk, 2);
            add(&mut memory, &[key(1)], "before");
            add(&mut memory, &[key(1)], &"x".repeat(length));
            assert!(memory.has_trace(key(1)) && text(&mut memory, key(1)).is_none());
        }
    }
}
