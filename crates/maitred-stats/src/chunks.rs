//! The memory of sparse histograms: chunks of 32 counts, given out of a bounded store.
//!
//! A count has 16 bits, since most stay small: those of a route that is seldom asked for, and those far from the middle.
//! A chunk of which one count is more gets a second one for the next 16 bits, and so on.

use crate::scale::{SLOTS, STEPS};

/// Chunks that are allocated together: 8 KiB and a bit.
const SEGMENT: usize = 128;

/// What a segment costs: its chunks, and what the allocator and its place in the list take.
const SEGMENT_COST: usize = SEGMENT * size_of::<Chunk>() + 48;

/// What a list costs, likewise.
const LIST_COST: usize = SLOTS * size_of::<u32>() + 32;

/// In the place of a chunk: none.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Chunk {
    counts: [u16; STEPS],
    /// Where the higher bits of these counts are.
    next: u32,
}

/// All chunks, and lists of them for histograms that have many.
pub(crate) struct Chunks {
    segments: Vec<Box<[Chunk]>>,
    #[expect(
        clippy::vec_box,
        reason = "it grows without a copy of all lists, which would be twice the memory"
    )]
    lists: Vec<Box<[u32; SLOTS]>>,
    used: usize,
    max_bytes: usize,
}

impl Chunks {
    /// At most `bytes`.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { segments: Vec::new(), lists: Vec::new(), used: 0, max_bytes: bytes }
    }

    /// A chunk of zeros; none when all are in use.
    pub(crate) fn take(&mut self) -> Option<u32> {
        if self.used == self.segments.len() * SEGMENT {
            if self.bytes() + SEGMENT_COST > self.max_bytes {
                return None;
            }
            let empty = Chunk { counts: [0; STEPS], next: NONE };
            self.segments.push(vec![empty; SEGMENT].into_boxed_slice());
        }
        self.used += 1;
        Some((self.used - 1) as u32)
    }

    /// Counts one; false when there is no memory for so large a count, which then begins anew.
    #[inline]
    pub(crate) fn add(&mut self, chunk: u32, step: usize) -> bool {
        let count = &mut self.chunk(chunk).counts[step];
        *count = count.wrapping_add(1);
        *count != 0 || self.carry(chunk, step)
    }

    #[cold]
    fn carry(&mut self, chunk: u32, step: usize) -> bool {
        if self.chunk(chunk).next == NONE {
            let Some(higher) = self.take() else { return false };
            self.chunk(chunk).next = higher;
        }
        let higher = self.chunk(chunk).next;
        self.add(higher, step)
    }

    pub(crate) fn read(&self, chunk: u32) -> [u64; STEPS] {
        let Chunk { counts, next } = self.at(chunk);
        let mut read = counts.map(u64::from);
        if *next != NONE {
            for (count, higher) in read.iter_mut().zip(self.read(*next)) {
                *count += higher << u16::BITS;
            }
        }
        read
    }

    /// A list of a chunk for each slot, [`NONE`] at first; none without memory for it.
    pub(crate) fn take_list(&mut self) -> Option<u32> {
        if self.bytes() + LIST_COST > self.max_bytes {
            return None;
        }
        self.lists.push(Box::new([NONE; SLOTS]));
        Some((self.lists.len() - 1) as u32)
    }

    /// Notes in such a list that `chunk` is that of `slot`.
    pub(crate) fn list(&mut self, list: u32, slot: usize, chunk: u32) {
        self.lists[list as usize][slot] = chunk;
    }

    /// The chunk of `slot` in such a list.
    pub(crate) fn listed(&self, list: u32, slot: usize) -> u32 {
        self.lists[list as usize][slot]
    }

    fn chunk(&mut self, chunk: u32) -> &mut Chunk {
        &mut self.segments[chunk as usize / SEGMENT][chunk as usize % SEGMENT]
    }

    fn at(&self, chunk: u32) -> &Chunk {
        &self.segments[chunk as usize / SEGMENT][chunk as usize % SEGMENT]
    }

    /// What is allocated.
    pub(crate) fn bytes(&self) -> usize {
        self.segments.len() * SEGMENT_COST + self.lists.len() * LIST_COST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_goes_on_beyond_16_and_32_bits() {
        let mut chunks = Chunks::new(usize::MAX);
        let (first, second) = (chunks.take().unwrap(), chunks.take().unwrap());
        for _ in 0..70_000 {
            assert!(chunks.add(first, 3));
        }
        assert!(chunks.add(second, 3) && chunks.add(first, 4));
        assert_eq!((chunks.read(first)[3], chunks.read(first)[4], chunks.read(second)[3]), (70_000, 1, 1));
        chunks.chunk(first).counts[3] = u16::MAX;
        chunks.chunk(2).counts[3] = u16::MAX;
        assert!(chunks.add(first, 3));
        assert_eq!(chunks.read(first)[3], 1 << 32);
    }

    #[test]
    fn a_count_without_memory_for_it_says_so() {
        let mut chunks = Chunks::new(SEGMENT_COST);
        let first = std::iter::from_fn(|| chunks.take()).min().unwrap();
        assert!((0..u16::MAX).all(|_| chunks.add(first, 0)));
        assert!(!chunks.add(first, 0));
        assert_eq!(chunks.read(first)[0], 0);
    }

    #[test]
    fn no_chunk_is_given_out_beyond_the_bound() {
        let mut chunks = Chunks::new(3 * SEGMENT_COST - 1);
        assert_eq!(std::iter::from_fn(|| chunks.take()).count(), 2 * SEGMENT);
        assert_eq!(chunks.bytes(), 2 * SEGMENT_COST);
        let lists = std::iter::from_fn(|| chunks.take_list()).count();
        assert_eq!(lists, (SEGMENT_COST - 1) / LIST_COST);
        assert!(chunks.bytes() < 3 * SEGMENT_COST);
    }

    #[test]
    fn a_list_has_a_place_for_each_slot() {
        let mut chunks = Chunks::new(usize::MAX);
        let list = chunks.take_list().unwrap();
        assert!((0..SLOTS).all(|slot| chunks.listed(list, slot) == NONE));
        (0..SLOTS).for_each(|slot| chunks.list(list, slot, slot as u32 + 7));
        assert!((0..SLOTS).all(|slot| chunks.listed(list, slot) == slot as u32 + 7));
    }
}
