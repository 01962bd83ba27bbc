//! The lines of a writer that wait, in memory that another process can read: a ring, whose layout is that of [`kept`](super::kept).
//!
//! Promises: a line is copied once, as into a buffer of the process's own. What the thread takes stays in the ring until it is written. A
//! child by fork(2) leaves the memory alone.

use super::Severity;
use super::batch::{Batch, MAX_CHUNK};
use super::kept::{
    ACCEPTED, HEADER, KEY, Kept, MAGIC, MISSING, TAG, VERSION, WORD, WRITTEN, copy_out, record, record_words,
};
use std::collections::VecDeque;
use std::io;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::Release};

/// The lines that wait to be written, in that memory. What the thread has taken stays there until it is written.
pub(super) struct Ring {
    kept: Kept,
    /// Positions as in the memory, which nobody else writes.
    accepted: u64,
    taken: u64,
    written: u64,
    /// What may be accepted: as much as the ring has, beyond what is written.
    limit: u64,
    /// Where the next record begins in the ring, and the next one to be taken.
    at: usize,
    taken_at: usize,
    /// The positions of notices, and the numbers of lines they tell of.
    notices: VecDeque<(u64, u64)>,
}

impl Ring {
    /// Begins with none, whatever is in the memory.
    pub(super) fn begin(kept: Kept, key: u64) -> io::Result<Self> {
        watch_for_children()?;
        let words = kept.words();
        if words.len() <= HEADER {
            return Err(io::Error::other("the memory for log lines is too small"));
        }
        words[MAGIC].store(0, Release);
        words[1..HEADER].iter().for_each(|word| word.store(0, Release));
        words[KEY].store(key, Release);
        words[MAGIC].store(VERSION, Release);
        let notices = VecDeque::new();
        let limit = (words.len() - HEADER) as u64;
        Ok(Self { kept, accepted: 0, taken: 0, written: 0, limit, at: 0, taken_at: 0, notices })
    }

    /// Room for the words of records, in bytes.
    pub(super) fn room(&self) -> usize {
        (self.kept.words().len() - HEADER) * WORD
    }

    /// Everything is taken.
    pub(super) fn is_empty(&self) -> bool {
        self.taken == self.accepted
    }

    /// Takes `line`; false if there is no room for it.
    #[inline]
    pub(super) fn push(&mut self, severity: Severity, line: &[u8]) -> bool {
        if FORKED.load(Relaxed) {
            return true;
        }
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let need = record_words(text.len());
        let (header, ring) = self.kept.words().split_at(HEADER);
        let Ok(length) = u32::try_from(text.len()) else { return false };
        if need as u64 > self.limit - self.accepted {
            return false;
        }
        let (first, more) = ring.split_at(self.at);
        more[0].store(TAG | (severity as u64) << 32 | u64::from(length), Relaxed);
        self.at += need;
        if need < more.len() {
            copy_in(&more[1..], text);
        } else {
            self.at -= ring.len();
            let (one, other) = text.split_at(((more.len() - 1) * WORD).min(text.len()));
            copy_in(&more[1..], one);
            copy_in(first, other);
        }
        self.accepted += need as u64;
        header[ACCEPTED].store(self.accepted, Release);
        true
    }

    /// The same of a notice, which tells of so many lines.
    pub(super) fn push_notice(&mut self, line: &[u8], missing: u64) -> bool {
        let position = self.accepted;
        let is_kept = self.push(Severity::Warning, line);
        if is_kept {
            self.notices.push_back((position, missing));
        }
        is_kept
    }

    /// Copies the oldest lines to `batch`, which is empty: as many as one call writes.
    pub(super) fn take(&mut self, batch: &mut Batch) {
        let ring = &self.kept.words()[HEADER..];
        while self.taken < self.accepted && batch.rest().len() < MAX_CHUNK {
            let Some((severity, length)) = record(&ring[self.taken_at]) else { break };
            let missing = match self.notices.front() {
                Some((position, missing)) if *position == self.taken => Some(*missing),
                _ => None,
            };
            batch.push_with(severity, missing.unwrap_or(0), |bytes| {
                self.taken_at = copy_out(ring, self.taken_at, length, bytes);
            });
            if missing.is_some() {
                self.notices.pop_front();
            }
            self.taken += record_words(length) as u64;
        }
    }

    /// Notes how many lines were dropped that no line tells of.
    pub(super) fn set_missing(&self, lines: u64) {
        if !FORKED.load(Relaxed) {
            self.kept.words()[MISSING].store(lines, Release);
        }
    }

    /// Nothing waits: the next line is the first one in the ring, so that memory is used which is in the caches of the processor, and not
    /// all of it. A reader in between finds more written than accepted, which is nothing.
    fn begin_again(&mut self) {
        let words = self.kept.words();
        let length = (words.len() - HEADER) as u64;
        let position = (self.accepted / length + 1) * length;
        words[WRITTEN].store(position, Release);
        words[ACCEPTED].store(position, Release);
        (self.accepted, self.taken, self.written) = (position, position, position);
        (self.at, self.taken_at) = (0, 0);
    }

    /// The oldest lines are written or lost; `lengths` are theirs, with line feeds.
    pub(super) fn settle(&mut self, lengths: impl Iterator<Item = usize>) {
        self.written += lengths.map(|length| record_words(length - 1) as u64).sum::<u64>();
        if self.written == self.accepted && self.at > 0 {
            self.begin_again();
        } else {
            self.kept.words()[WRITTEN].store(self.written, Release);
        }
        self.limit = self.written + (self.kept.words().len() - HEADER) as u64;
    }
}

/// Only for the thread that may accept.
#[inline]
fn copy_in(words: &[AtomicU64], text: &[u8]) {
    let length = text.len().min(words.len() * WORD);
    // SAFETY: the words have room for so many bytes and may be written through a shared reference. No thread reads them meanwhile:
    // in this process by the writer's lock, in another one because this one has ended by then.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), words.as_ptr().cast_mut().cast::<u8>(), length) };
}

static FORKED: AtomicBool = AtomicBool::new(false);

/// A child of a process that keeps lines must not write into the memory of its parent.
fn watch_for_children() -> io::Result<()> {
    static REGISTERED: Once = Once::new();
    let mut failed = 0;
    // SAFETY: a function without arguments that may be called in a child at any time: it stores a value.
    REGISTERED.call_once(|| failed = unsafe { libc::pthread_atfork(None, None, Some(in_child)) });
    if failed == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(failed)) }
}

unsafe extern "C" fn in_child() {
    FORKED.store(true, Relaxed);
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    use super::super::kept::{Place, left_behind};
    use crate::shared_memory::SharedMemory;
    use std::sync::Arc;

    use proptest::prelude::*;

    fn ring(bytes: usize) -> Ring {
        Ring::begin(Kept::whole(Arc::new(SharedMemory::new(bytes).expect("memory"))), 7).expect("a ring")
    }

    proptest! {
        /// Lines come and go, and what is left is what came and did not go, wherever in the ring it is.
        #[test]
        fn what_is_left_is_what_is_not_written(
            steps in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..60), 0..3_usize), 1..200),
        ) {
            let mut ring = ring(600);
            let mut waiting: VecDeque<Vec<u8>> = VecDeque::new();
            for (line, written) in steps {
                let line: Vec<u8> = line.into_iter().filter(|byte| *byte != b'\n').collect();
                if ring.push(Severity::Notice, &line) {
                    waiting.push_back(line);
                } else {
                    let used: usize = waiting.iter().map(|line| record_words(line.len())).sum();
                    prop_assert!(used + record_words(line.len()) > 600 / WORD - HEADER, "there is room");
                }
                let gone: Vec<Vec<u8>> = waiting.drain(..written.min(waiting.len())).collect();
                ring.settle(gone.iter().map(|line| line.len() + 1));
                let left = left_behind(ring.kept.words());
                prop_assert_eq!(left.key(), 7);
                let lines: Vec<Vec<u8>> = left.lines.into_iter().map(|(_, line)| line).collect();
                prop_assert_eq!(&lines, waiting.make_contiguous());
            }
        }
    }

    #[test]
    fn lines_are_taken_in_pieces_and_stay_until_they_are_written() {
        let mut ring = ring(Kept::bytes(4 * MAX_CHUNK));
        let line = [b'x'; 999];
        for _ in 0..130 {
            assert!(ring.push(Severity::Info, &line));
        }
        assert!(ring.push_notice(b"missing", 3));
        let (mut batch, mut lines) = (Batch::default(), 0);
        while !ring.is_empty() {
            ring.take(&mut batch);
            assert!(batch.rest().len() < MAX_CHUNK + 1000);
            assert_eq!(left_behind(ring.kept.words()).lines.len(), 131 - lines);
            let length = batch.rest().len();
            let done = batch.advance(length);
            ring.settle(batch.lengths_of_last(done));
            lines += usize::try_from(done).expect("some lines");
            batch.clear();
        }
        assert_eq!(lines, 131);
        assert!(left_behind(ring.kept.words()).is_empty());
    }

    #[test]
    fn a_note_is_of_the_lines_that_come_next() {
        let mut ring = ring(600);
        assert!(ring.push(Severity::Info, b"one") && ring.push(Severity::Info, b"two"));
        let place = Place { device: 1, inode: 2, offset: 3, length: 8 };
        ring.kept.note(place);
        assert_eq!(left_behind(ring.kept.words()).place, Some(place));
        ring.settle([4].into_iter());
        assert_eq!(left_behind(ring.kept.words()).place, None);
    }
}
