//! Records of bytes in a bounded room, the oldest of which make place for new ones.

use std::fmt;

/// Records lie in chunks, in the order in which they came; with too many chunks the oldest begins anew.
pub(super) struct Records {
    chunks: Vec<Vec<u8>>,
    /// Bytes of a chunk.
    size: usize,
    /// How many chunks there are at most.
    most: usize,
    /// The number of the chunk that is being filled, counted from the first ever.
    current: usize,
}

/// What records say is nobody's business.
impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Records({} chunks)", self.chunks.len())
    }
}

/// Where a record lies: the number of its chunk, and its offset there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(u32);

impl Place {
    /// Where no record fits: too near to the end of the largest chunk.
    pub(super) const NOWHERE: Self = Self(u32::MAX);

    /// The place of a number that was one.
    pub(super) const fn numbered(number: u32) -> Self {
        Self(number)
    }

    /// The place as a number.
    pub(super) const fn number(self) -> u32 {
        self.0
    }

    /// The lower bits of the number of its chunk.
    const fn chunk(self) -> usize {
        (self.0 >> OFFSET_BITS) as usize
    }

    const fn offset(self) -> usize {
        self.0 as usize % (1 << OFFSET_BITS) * STEP
    }
}

/// Offsets are multiples of this.
const STEP: usize = 8;

/// The bits of an offset in a [`Place`], and so the largest chunk, 1 MiB. The other bits are those of its chunk's number.
const OFFSET_BITS: u32 = 17;
const MOST_NUMBERS: usize = 1 << (u32::BITS - OFFSET_BITS);

impl Records {
    /// The largest chunk.
    pub(super) const LARGEST: usize = STEP << OFFSET_BITS;

    /// Room for `most` chunks of `size` bytes, which is taken when it is needed.
    pub(super) const fn new(size: usize, most: usize) -> Self {
        assert!(size <= Self::LARGEST && most > 0 && most < MOST_NUMBERS, "the room fits into a place");
        Self { chunks: Vec::new(), size, most, current: 0 }
    }

    /// Adds a record; `None` when it is larger than a chunk.
    pub(super) fn add<'p>(&mut self, pieces: impl Iterator<Item = &'p [u8]> + Clone) -> Option<Place> {
        let length: usize = pieces.clone().map(<[u8]>::len).sum();
        if length > self.size {
            return None;
        }
        let (number, size) = (self.current, self.size);
        let chunk = self.room_for(length);
        let offset = chunk.len();
        pieces.for_each(|piece| chunk.extend_from_slice(piece));
        chunk.resize(chunk.len().next_multiple_of(STEP).min(size), 0);
        let number = if offset == 0 { self.current } else { number };
        u32::try_from(((number % MOST_NUMBERS) << OFFSET_BITS) | (offset / STEP)).ok().map(Place)
    }

    /// The chunk that a record of this length goes into.
    fn room_for(&mut self, length: usize) -> &mut Vec<u8> {
        if self.chunks.is_empty() {
            self.chunks.push(Vec::with_capacity(self.size));
        } else if self.chunks[self.current % self.most].len() + length > self.size {
            self.current += 1;
            match self.chunks.get_mut(self.current % self.most) {
                Some(oldest) => oldest.clear(),
                None => self.chunks.push(Vec::with_capacity(self.size)),
            }
        }
        &mut self.chunks[self.current % self.most]
    }

    /// What lies at a place, and after it; `None` when it is forgotten. After thousands of chunks a place may be that of
    /// another record.
    pub(super) fn at(&self, place: Place) -> Option<&[u8]> {
        let number = self.number(place)?;
        self.chunks[number % self.most].get(place.offset()..)
    }

    /// The same, to be changed.
    pub(super) fn at_mut(&mut self, place: Place) -> Option<&mut [u8]> {
        let number = self.number(place)?;
        self.chunks[number % self.most].get_mut(place.offset()..)
    }

    /// Whether what lies at a place has come half of the way to being forgotten.
    pub(super) fn is_old(&self, place: Place) -> bool {
        self.number(place).is_some_and(|number| self.current - number >= self.most.div_ceil(2))
    }

    /// The number of the chunk of a place, as long as it is there.
    fn number(&self, place: Place) -> Option<usize> {
        let age = self.current.wrapping_sub(place.chunk()) % MOST_NUMBERS;
        self.current.checked_sub(age).filter(|_| age < self.chunks.len())
    }

    /// Forgets all of them. Their places are not given again soon.
    pub(super) fn clear(&mut self) {
        self.chunks = Vec::new();
        self.current = (self.current + 1).next_multiple_of(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(records: &mut Records, pieces: &[&str]) -> Option<Place> {
        records.add(pieces.iter().map(|piece| piece.as_bytes()))
    }

    #[test]
    fn the_last_records_are_there_and_the_oldest_make_place() {
        let mut records = Records::new(32, 3);
        assert_eq!(records.at(Place::numbered(0)), None);
        let mut places = Vec::new();
        for number in 0..200_000 {
            let text = format!("{number:010}");
            places.push((add(&mut records, &[&text[..4], &text[4..]]).unwrap(), text));
            // Two in a chunk: of the last two chunks all are there, and what is there is right.
            for (place, text) in places.iter().rev().take(4) {
                assert_eq!(&records.at(*place).unwrap()[..10], text.as_bytes());
            }
            if let Some((place, text)) = places.iter().rev().nth(6) {
                assert!(!records.at(*place).is_some_and(|there| there.starts_with(text.as_bytes())));
            }
        }
        assert_eq!(records.chunks.len(), 3);
        assert!(records.chunks.iter().all(|chunk| chunk.capacity() == 32));
        records.clear();
        assert!(places.iter().all(|(place, _)| records.at(*place).is_none()));
    }

    #[test]
    fn a_record_fills_a_chunk_and_no_more() {
        let mut records = Records::new(30, 2);
        assert_eq!(add(&mut records, &["0123456789", "0123456789", "0123456789x"]), None);
        let place = add(&mut records, &["0123456789", "0123456789", "0123456789"]).unwrap();
        assert_eq!(records.at(place).unwrap().len(), 30);
        let next = add(&mut records, &["x"]).unwrap();
        assert_eq!((records.at(place).unwrap().len(), records.at(next).unwrap()[0]), (30, b'x'));
        assert_eq!(add(&mut records, &[]).and_then(|place| records.at(place)), Some(&b""[..]));
    }
}
