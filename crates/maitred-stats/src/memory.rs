//! The words of memory that figures live in: those of this process alone, or those that another one can read.
//!
//! Promises: no access is outside the memory. A read outside it finds nothing, and a write is dropped. Leaves out:
//! where the memory comes from.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Words of memory, zero at first. Memory that is shared with other processes is written by one of them only.
pub type Memory = Arc<dyn AsRef<[AtomicU64]> + Send + Sync>;

/// Memory of so many words that only this process sees. All of them take memory at once; pages that a program maps do
/// so when they are first written.
pub fn private(words: usize) -> Memory {
    let words: Box<[AtomicU64]> = (0..words).map(|_| AtomicU64::new(0)).collect();
    Arc::new(words)
}

#[derive(Clone)]
pub(crate) struct Run {
    memory: Memory,
    start: usize,
    words: usize,
}

impl Run {
    pub(crate) fn new(memory: Memory, start: usize, words: usize) -> Self {
        Self { memory, start, words }
    }

    pub(crate) fn private(words: usize) -> Self {
        Self::new(private(words), 0, words)
    }

    #[inline]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        let all: &[AtomicU64] = (*self.memory).as_ref();
        all.get(self.start..self.start + self.words).unwrap_or_default()
    }
}

/// A word; 0 where there is none.
#[inline]
pub(crate) fn load(words: &[AtomicU64], at: usize) -> u64 {
    words.get(at).map_or(0, |word| word.load(Relaxed))
}

/// Writes a word, if it is there.
#[inline]
pub(crate) fn store(words: &[AtomicU64], at: usize, value: u64) {
    if let Some(word) = words.get(at) {
        word.store(value, Relaxed);
    }
}

/// Adds to a word of which the caller is the only writer.
#[inline]
pub(crate) fn add(word: &AtomicU64, amount: u64) {
    word.store(word.load(Relaxed).wrapping_add(amount), Relaxed);
}

/// Words that a text of so many bytes takes, with its length.
pub(crate) const fn text_words(bytes: usize) -> usize {
    1 + bytes.div_ceil(8)
}

/// Writes a text, its length last; a text that is too long is cut.
pub(crate) fn write_text(words: &[AtomicU64], text: &str) {
    let Some((length, body)) = words.split_first() else { return };
    let bytes = text.as_bytes();
    let bytes = &bytes[..bytes.len().min(body.len() * 8)];
    for (word, part) in body.iter().zip(bytes.chunks(8)) {
        let mut padded = [0; 8];
        padded[..part.len()].copy_from_slice(part);
        word.store(u64::from_le_bytes(padded), Relaxed);
    }
    length.store(bytes.len() as u64, Release);
}

/// Reads a text; bytes that are no UTF-8 are replaced.
pub(crate) fn read_text(words: &[AtomicU64]) -> String {
    let Some((length, body)) = words.split_first() else { return String::new() };
    let length = usize::try_from(length.load(Acquire)).unwrap_or(usize::MAX).min(body.len() * 8);
    let bytes = body.iter().take(length.div_ceil(8)).flat_map(|word| word.load(Relaxed).to_le_bytes());
    let bytes: Vec<u8> = bytes.take(length).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_as_it_was_written() {
        let run = Run::private(text_words(20));
        for text in ["", "GET /user/*", "12345678", "äöü und weitere!"] {
            write_text(run.words(), text);
            assert_eq!(read_text(run.words()), text);
        }
        write_text(run.words(), &"x".repeat(30));
        assert_eq!(read_text(run.words()), "x".repeat(24), "no more than there is room for");
    }

    #[test]
    fn nothing_is_outside_the_memory() {
        let run = Run::new(private(4), 2, 4);
        assert_eq!(run.words().len(), 0);
        store(run.words(), 0, 7);
        assert_eq!(load(run.words(), 0), 0);
        write_text(run.words(), "x");
        assert_eq!(read_text(run.words()), "");
        let lies = Run::private(2);
        store(lies.words(), 0, u64::MAX);
        assert_eq!(read_text(lies.words()), "\0".repeat(8));
    }
}
