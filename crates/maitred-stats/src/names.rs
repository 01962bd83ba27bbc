//! A few names that others choose, numbered.
//!
//! In their memory: how many, and each with the number of its bytes.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{PoisonError, RwLock};

use crate::memory::{read_text, text_words, write_text};

/// The most names; the number of all further ones is that of the last, "other".
pub(crate) const MAX_NAMES: usize = 64;

/// Bytes of a name; longer ones are "other".
const MAX_NAME: usize = 64;

/// Words of their memory.
pub(crate) const NAMES_WORDS: usize = 1 + MAX_NAMES * text_words(MAX_NAME);

#[derive(Default)]
pub(crate) struct Names(RwLock<Vec<Box<str>>>);

impl Names {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The number of a name, which is also written to its memory when it is new.
    pub(crate) fn number(&self, name: &str, words: &[AtomicU64]) -> u8 {
        let position = |known: &Vec<Box<str>>| known.iter().position(|known| &**known == name);
        let read = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = position(&read) {
            return number as u8;
        }
        if read.len() == MAX_NAMES || name.len() > MAX_NAME {
            return MAX_NAMES as u8;
        }
        drop(read);
        let mut write = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = position(&write) {
            return number as u8;
        }
        if write.len() == MAX_NAMES {
            return MAX_NAMES as u8;
        }
        write.push(name.into());
        if let Some((count, places)) = words.split_first()
            && let Some(place) = places.chunks(text_words(MAX_NAME)).nth(write.len() - 1)
        {
            write_text(place, name);
            count.store(write.len() as u64, Release);
        }
        (write.len() - 1) as u8
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len() * (MAX_NAME + 32)
    }
}

/// The names in this memory, by number; behind the last known one only "other".
pub(crate) fn read_names(words: &[AtomicU64]) -> Vec<String> {
    let Some((count, places)) = words.split_first() else { return Vec::new() };
    let count = count.load(Acquire).min(MAX_NAMES as u64) as usize;
    let mut all: Vec<String> = places.chunks(text_words(MAX_NAME)).take(count).map(read_text).collect();
    all.resize(MAX_NAMES + 1, "other".to_owned());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Run;

    #[test]
    fn names_are_bounded_in_number_and_length() {
        let (names, run) = (Names::new(), Run::private(NAMES_WORDS));
        let number = |name: &str| names.number(name, run.words());
        assert_eq!(["db", "cache", "db"].map(number), [0, 1, 0]);
        assert_eq!(number(&"x".repeat(MAX_NAME + 1)), 64);
        for each in 0..1000 {
            assert!(number(&each.to_string()) <= 64);
        }
        let read = read_names(run.words());
        assert_eq!((number("61"), number("62"), read.len()), (63, 64, 65));
        assert_eq!((&*read[0], &*read[1], &*read[63], &*read[64]), ("db", "cache", "61", "other"));
    }
}
