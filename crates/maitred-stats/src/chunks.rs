//! The memory of sparse histograms: chunks of 32 counts, given out of a bounded store.
//!
//! A count has 16 bits, since most stay small: those of a route that is seldom asked for, and those far from the middle.
//! A chunk of which one count is more gets a second one for the next 16 bits, and so on.
//!
//! ```text
//! nexts     for each chunk 32 bits: the chunk with the higher bits of its counts
//! chunks    from the start: 8 words each, a cache line      lists    from the end: a chunk for each slot, 32 bits each
//! ```
//! Numbers of chunks and lists begin at 1; 0 stands for none.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::memory::{add, load, store};
use crate::scale::{SLOTS, STEPS};

const CHUNK: usize = STEPS * size_of::<u16>() / size_of::<u64>();

const LIST: usize = SLOTS.div_ceil(2);

const CHUNK_COST: usize = CHUNK * size_of::<u64>() + size_of::<u32>();
const LIST_COST: usize = LIST * size_of::<u64>();

/// Stands for no chunk or list.
pub(crate) const NONE: u32 = 0;

/// How often a count can go on in a further chunk: 64 bits are enough.
const MAX_DEPTH: u32 = u64::BITS / u16::BITS;

/// Words before the chunks and lists.
pub(crate) const HEAD: usize = 2;
const USED: usize = 0;
const LISTS: usize = 1;

#[derive(Clone, Copy)]
pub(crate) struct Chunks<'a> {
    head: &'a [AtomicU64; HEAD],
    nexts: &'a [AtomicU64],
    chunks: &'a [AtomicU64],
}

impl<'a> Chunks<'a> {
    /// The chunks in this memory; none if there is not even enough for a chunk.
    pub(crate) fn new(words: &'a [AtomicU64]) -> Option<Self> {
        let (head, words) = words.split_first_chunk()?;
        let most = size_of_val(words) / CHUNK_COST;
        let (nexts, chunks) = words.split_at_checked(most.div_ceil(2).next_multiple_of(CHUNK))?;
        Some(Self { head, nexts, chunks })
    }

    /// A chunk of zeros; none when all are in use.
    pub(crate) fn take(&self) -> Option<u32> {
        self.has_room(CHUNK).then(|| {
            add(&self.head[USED], 1);
            self.head[USED].load(Relaxed) as u32
        })
    }

    /// Whether so many words are left between chunks and lists.
    fn has_room(&self, words: usize) -> bool {
        let (used, lists) = self.used();
        used.saturating_mul(CHUNK).saturating_add(lists.saturating_mul(LIST)).saturating_add(words)
            <= self.chunks.len()
            && used < self.nexts.len() * 2
    }

    fn used(&self) -> (usize, usize) {
        (self.head[USED].load(Relaxed) as usize, self.head[LISTS].load(Relaxed) as usize)
    }

    /// Counts one; false when there is no memory for so large a count, which then begins anew.
    #[inline]
    pub(crate) fn add(&self, chunk: u32, step: usize) -> bool {
        let (at, shift) = place(chunk, step);
        let Some(word) = self.chunks.get(at) else { return false };
        let old = word.load(Relaxed);
        if (old >> shift) as u16 == u16::MAX {
            return self.add_many(chunk, step, 1);
        }
        word.store(old + (1 << shift), Relaxed);
        true
    }

    /// Counts so many; false when there is no memory for so large a count, of which the lowest bits are kept then.
    #[cold]
    pub(crate) fn add_many(&self, chunk: u32, step: usize, count: u64) -> bool {
        let (mut chunk, mut left) = (chunk, self.read(chunk)[step].saturating_add(count));
        loop {
            let (at, shift) = place(chunk, step);
            let others = load(self.chunks, at) & !(u64::from(u16::MAX) << shift);
            store(self.chunks, at, others | (left & u64::from(u16::MAX)) << shift);
            left >>= u16::BITS;
            if left == 0 {
                return true;
            }
            let higher = match self.next(chunk) {
                NONE => self.take().inspect(|higher| self.set_next(chunk, *higher)),
                higher => Some(higher),
            };
            let Some(higher) = higher else { return false };
            chunk = higher;
        }
    }

    pub(crate) fn clear(&self, chunk: u32) {
        let mut chunk = chunk;
        for _ in 0..MAX_DEPTH {
            let first = place(chunk, 0).0;
            (0..CHUNK).for_each(|word| store(self.chunks, first.wrapping_add(word), 0));
            chunk = self.next(chunk);
            if chunk == NONE {
                break;
            }
        }
    }

    pub(crate) fn read(&self, chunk: u32) -> [u64; STEPS] {
        let mut read = [0; STEPS];
        let mut chunk = chunk;
        for depth in 0..MAX_DEPTH {
            for (step, count) in read.iter_mut().enumerate() {
                let (at, shift) = place(chunk, step);
                *count |= (load(self.chunks, at) >> shift & u64::from(u16::MAX)) << (depth * u16::BITS);
            }
            chunk = self.next(chunk);
            if chunk == NONE {
                break;
            }
        }
        read
    }

    fn next(&self, chunk: u32) -> u32 {
        half(self.nexts, chunk as usize)
    }

    fn set_next(&self, chunk: u32, next: u32) {
        set_half(self.nexts, chunk as usize, next);
    }

    /// A list of a chunk for each slot, [`NONE`] at first; none without memory for it.
    pub(crate) fn take_list(&self) -> Option<u32> {
        self.has_room(LIST).then(|| {
            add(&self.head[LISTS], 1);
            self.head[LISTS].load(Relaxed) as u32
        })
    }

    fn list_of(&self, list: u32) -> &'a [AtomicU64] {
        let start = self.chunks.len().checked_sub(list as usize * LIST);
        start.and_then(|start| self.chunks.get(start..start + LIST)).unwrap_or_default()
    }

    /// Notes in such a list that `chunk` is that of `slot`.
    pub(crate) fn list(&self, list: u32, slot: usize, chunk: u32) {
        set_half(self.list_of(list), slot, chunk);
    }

    pub(crate) fn listed(&self, list: u32, slot: usize) -> u32 {
        half(self.list_of(list), slot)
    }

    pub(crate) fn bytes(&self) -> usize {
        let (used, lists) = self.used();
        used.saturating_mul(CHUNK_COST).saturating_add(lists.saturating_mul(LIST_COST))
    }
}

/// The word of a step, and where in it.
fn place(chunk: u32, step: usize) -> (usize, u32) {
    let first = (chunk as usize).wrapping_sub(1).wrapping_mul(CHUNK);
    (first.wrapping_add(step / 4), step as u32 % 4 * u16::BITS)
}

/// One of the numbers of 32 bits of which there are two in a word.
pub(crate) fn half(words: &[AtomicU64], index: usize) -> u32 {
    (load(words, index / 2) >> (index % 2 * 32)) as u32
}

pub(crate) fn set_half(words: &[AtomicU64], index: usize, value: u32) {
    let shift = index % 2 * 32;
    let others = load(words, index / 2) & !(u64::from(u32::MAX) << shift);
    store(words, index / 2, others | u64::from(value) << shift);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Run;

    /// Memory for so many chunks, if there are no lists.
    fn room(chunks: usize) -> Run {
        Run::private(HEAD + (chunks * CHUNK_COST).div_ceil(8) + CHUNK)
    }

    #[test]
    fn a_count_goes_on_beyond_16_and_32_bits() {
        let memory = room(100);
        let chunks = Chunks::new(memory.words()).unwrap();
        let (first, second) = (chunks.take().unwrap(), chunks.take().unwrap());
        for _ in 0..70_000 {
            assert!(chunks.add(first, 3));
        }
        assert!(chunks.add(second, 3) && chunks.add(first, 4));
        assert_eq!((chunks.read(first)[3], chunks.read(first)[4], chunks.read(second)[3]), (70_000, 1, 1));
        for chunk in [first, 3] {
            let (at, shift) = place(chunk, 3);
            store(chunks.chunks, at, u64::from(u16::MAX) << shift);
        }
        assert!(chunks.add(first, 3));
        assert_eq!(chunks.read(first)[3], 1 << 32);
    }

    #[test]
    fn a_count_without_memory_for_it_says_so() {
        let memory = room(10);
        let chunks = Chunks::new(memory.words()).unwrap();
        let first = std::iter::from_fn(|| chunks.take()).min().unwrap();
        assert!((0..u16::MAX).all(|_| chunks.add(first, 0)));
        assert!(!chunks.add(first, 0));
        assert_eq!(chunks.read(first)[0], 0);
    }

    #[test]
    fn chunks_and_lists_share_the_memory_and_do_not_meet() {
        let memory = room(1000);
        let chunks = Chunks::new(memory.words()).unwrap();
        let lists: Vec<u32> = (0..50).map(|_| chunks.take_list().unwrap()).collect();
        let all: Vec<u32> = std::iter::from_fn(|| chunks.take()).collect();
        assert!(chunks.take_list().is_none() || chunks.take().is_none());
        assert!((800..1000).contains(&all.len()), "{}", all.len());
        assert!(chunks.bytes() <= size_of_val(memory.words()));
        lists.iter().for_each(|list| (0..SLOTS).for_each(|slot| chunks.list(*list, slot, u32::MAX)));
        assert!(all.iter().all(|chunk| chunks.read(*chunk) == [0; STEPS]));
        all.iter().for_each(|chunk| assert!(chunks.add(*chunk, 31)));
        assert!(lists.iter().all(|list| (0..SLOTS).all(|slot| chunks.listed(*list, slot) == u32::MAX)));
    }

    #[test]
    fn a_list_has_a_place_for_each_slot() {
        let memory = room(100);
        let chunks = Chunks::new(memory.words()).unwrap();
        let list = chunks.take_list().unwrap();
        assert!((0..SLOTS).all(|slot| chunks.listed(list, slot) == NONE));
        (0..SLOTS).for_each(|slot| chunks.list(list, slot, slot as u32 + 7));
        assert!((0..SLOTS).all(|slot| chunks.listed(list, slot) == slot as u32 + 7));
    }
}
