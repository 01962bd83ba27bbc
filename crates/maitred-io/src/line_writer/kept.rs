//! Lines in memory that another process can read when this one was killed: those that were accepted and are not written.
//!
//! ```text
//!   word  0  magic and version                  the same for all versions
//!         1  key of the target
//!         2  accepted   ─┐ positions in the ring, in words, which only grow; what lies between
//!         3  written    ─┘ them is left
//!         4  lines that were dropped and that no line tells of yet
//!         5  noted      the place below is that of the lines at `written`, if this is `written` + 1
//!         6  device, inode, offset, length: where a file is about to get them, and how many bytes
//!        16  the ring: records of a word (tag, severity, length) and the text without its line feed
//! ```
//!
//! Promises: a line is there as soon as it is accepted, and until it is known to be written or lost; a reader survives any
//! content. One thread at a time may accept, one may note and settle. A child by fork(2) has the memory, too, and leaves it alone.

use super::Severity;
use super::batch::Batch;
use crate::shared_memory::SharedMemory;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};

pub(super) const MAGIC: usize = 0;
pub(super) const KEY: usize = 1;
pub(super) const ACCEPTED: usize = 2;
pub(super) const WRITTEN: usize = 3;
pub(super) const MISSING: usize = 4;
const NOTED: usize = 5;
const PLACE: usize = 6;
pub(super) const HEADER: usize = 16;

pub(super) const WORD: usize = size_of::<AtomicU64>();

/// `mlines` and the version of the layout.
pub(super) const VERSION: u64 = u64::from_le_bytes(*b"mlines\x00\x01");

/// In the upper bits of the first word of a record, so that memory of another content is no line.
pub(super) const TAG: u64 = 0x6c6e65 << 40;

/// Part of a [`SharedMemory`], for the lines of one writer.
#[derive(Clone)]
pub struct Kept {
    memory: Arc<SharedMemory>,
    from: usize,
    words: usize,
}

/// Where in a file lines were about to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl Kept {
    /// Memory that holds as much as the buffer of a writer of `capacity` bytes.
    #[must_use]
    pub const fn bytes(capacity: usize) -> usize {
        // A line costs no more words than the buffer counts for it; and some notices.
        (HEADER + capacity.div_ceil(WORD)) * WORD + 1024
    }

    /// All of `memory`.
    #[must_use]
    pub fn whole(memory: Arc<SharedMemory>) -> Self {
        let words = memory.words().len();
        Self { memory, from: 0, words }
    }

    /// The parts of `memory` that have `bytes` each, for several writers. What is left over belongs to none.
    pub fn parts(memory: &Arc<SharedMemory>, bytes: usize) -> impl Iterator<Item = Self> + use<> {
        let (memory, words) = (Arc::clone(memory), (bytes / WORD).max(1));
        let count = memory.words().len() / words;
        (0..count).map(move |part| Self { memory: Arc::clone(&memory), from: part * words, words })
    }

    /// The words of this part.
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        &self.memory.words()[self.from..self.from + self.words]
    }

    /// Notes that the next lines are about to be written there. A note that is being changed is none.
    pub(super) fn note(&self, place: Place) {
        let words = self.words();
        words[NOTED].store(0, Release);
        let values = [place.device, place.inode, place.offset, place.length];
        for (word, value) in words[PLACE..].iter().zip(values) {
            // Not before the line above: each is released itself.
            word.store(value, Release);
        }
        words[NOTED].store(words[WRITTEN].load(Relaxed).wrapping_add(1), Release);
    }
}

/// What the first word of a record says, if it is one.
pub(super) fn record(word: &AtomicU64) -> Option<(Severity, usize)> {
    let word = word.load(Relaxed);
    let severity = Severity::of_number(word >> 32 & 0xff).filter(|_| word >> 40 == TAG >> 40)?;
    Some((severity, usize::try_from(word & u64::from(u32::MAX)).ok()?))
}

/// Words of a record with so many bytes of text.
pub(super) fn record_words(length: usize) -> usize {
    1 + length.div_ceil(WORD)
}

/// Appends the text of the record at `at` to `bytes`; returns where the next one is.
pub(super) fn copy_out(ring: &[AtomicU64], at: usize, length: usize, bytes: &mut Vec<u8>) -> usize {
    let after =
        |at: usize, words: usize| if at + words < ring.len() { at + words } else { at + words - ring.len() };
    let begin = after(at, 1);
    let (first, more) = ring.split_at(begin);
    let end = bytes.len() + length;
    bytes.reserve(length.next_multiple_of(WORD) + 1);
    for word in more.iter().chain(first).take(length.div_ceil(WORD)) {
        bytes.extend_from_slice(&word.load(Relaxed).to_ne_bytes());
    }
    bytes.truncate(end);
    after(begin, length.div_ceil(WORD))
}

/// What a process that has ended has left of one log.
#[derive(Debug, Default)]
pub struct LeftBehind {
    /// Lines that it had accepted and not written, or not noted as written yet, with what they mean to syslog. Without line feeds.
    pub lines: Vec<(Severity, Vec<u8>)>,
    /// So many further lines it had dropped, and no line tells of them.
    pub missing: u64,
    /// The key of its target; 0 if there was no log.
    key: u64,
    /// Where the first of the lines may be already.
    pub(super) place: Option<Place>,
}

impl LeftBehind {
    /// Which target the lines were for, as [`Target::key`](super::Target::key) has it; 0 if no writer has used the memory.
    #[must_use]
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.missing == 0
    }

    /// The lines as the writer's thread has them.
    pub(super) fn batch(&self, notice: Option<&str>) -> (Batch, Option<Place>) {
        let mut batch = Batch::default();
        for (severity, line) in &self.lines {
            batch.push(*severity, line);
        }
        if let Some(notice) = notice {
            batch.push_notice(notice.as_bytes(), self.missing);
        }
        (batch, self.place)
    }
}

/// Reads what a writer has left in `words`, whatever is in there: a line ends the reading that is not as it should be. Only for the
/// memory of a process that has ended.
#[must_use]
pub fn left_behind(words: &[AtomicU64]) -> LeftBehind {
    let Some((header, ring)) = words.split_at_checked(HEADER) else { return LeftBehind::default() };
    let word = |at: usize| header[at].load(Relaxed);
    if word(MAGIC) != VERSION || ring.is_empty() {
        return LeftBehind::default();
    }
    let (accepted, written) = (word(ACCEPTED), word(WRITTEN));
    let mut left = LeftBehind { key: word(KEY), missing: word(MISSING), ..LeftBehind::default() };
    let mut remaining = usize::try_from(accepted.wrapping_sub(written)).unwrap_or(usize::MAX);
    if remaining > ring.len() {
        return left;
    }
    let mut at = usize::try_from(written % ring.len() as u64).unwrap_or(0);
    while remaining > 0 {
        let Some((severity, length)) = record(&ring[at]) else { break };
        if length > remaining * WORD || record_words(length) > remaining {
            break;
        }
        remaining -= record_words(length);
        let mut line = Vec::new();
        at = copy_out(ring, at, length, &mut line);
        left.lines.push((severity, line));
    }
    if word(NOTED) == written.wrapping_add(1) {
        let [device, inode, offset, length] = std::array::from_fn(|at| word(PLACE + at));
        left.place = Some(Place { device, inode, offset, length });
    }
    left
}

/// Notes that what was left has been taken: it is not left any more.
pub(super) fn take(words: &[AtomicU64]) {
    if words.len() > HEADER {
        words[WRITTEN].store(words[ACCEPTED].load(Relaxed), Release);
        words[MISSING].store(0, Release);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    use proptest::prelude::*;

    proptest! {
        /// Whatever a process has done to its memory.
        #[test]
        fn a_reader_survives_any_content(
            mut words in prop::collection::vec(any::<u64>(), 0..80),
            accepted in 0..200_u64,
            written in 0..200_u64,
            lengths in prop::collection::vec((0..80_usize, 0..600_u64), 0..20),
        ) {
            if words.len() > WRITTEN {
                (words[MAGIC], words[ACCEPTED], words[WRITTEN]) = (VERSION, accepted, written);
            }
            for (at, length) in lengths {
                if let Some(word) = words.get_mut(HEADER + at) {
                    *word = TAG | 6 << 32 | length;
                }
            }
            let words: Vec<AtomicU64> = words.into_iter().map(AtomicU64::new).collect();
            let left = left_behind(&words);
            let bytes: usize = left.lines.iter().map(|(_, line)| line.len()).sum();
            prop_assert!(bytes <= words.len() * WORD);
            take(&words);
            prop_assert!(left_behind(&words).lines.is_empty());
        }
    }
}
