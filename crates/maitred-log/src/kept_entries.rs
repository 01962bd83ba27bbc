//! The last entries of the error log, for whoever asks: a bounded number of them, and of bytes.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

const MOST: usize = 1000;

/// Bytes of text that are kept in all, and of one entry: a traceback has some kilobytes.
const MOST_BYTES: usize = 512 * 1024;
const MOST_OF_ONE: usize = 8 * 1024;

/// An entry of the error log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptEntry {
    /// When, in microseconds since 1970.
    pub micros: u64,
    /// The level, or another word that stands there (`app`, `trace`); empty for text without time and level.
    pub mark: &'static str,
    /// As it is in the log, without its last line break.
    pub line: String,
}

#[derive(Default)]
struct State {
    entries: VecDeque<KeptEntry>,
    bytes: usize,
}

#[derive(Default)]
pub(crate) struct KeptEntries(Mutex<State>);

impl KeptEntries {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, micros: u64, mark: &'static str, line: &str) {
        let line = line.trim_end_matches('\n');
        let end = (0..=line.len().min(MOST_OF_ONE)).rev().find(|at| line.is_char_boundary(*at));
        let entry = KeptEntry { micros, mark, line: line[..end.unwrap_or(0)].to_owned() };
        let mut state = self.lock();
        state.bytes += entry.line.len();
        state.entries.push_back(entry);
        while state.entries.len() > MOST || state.bytes > MOST_BYTES {
            let Some(oldest) = state.entries.pop_front() else { break };
            state.bytes -= oldest.line.len();
        }
    }

    /// The oldest first.
    pub(crate) fn all(&self) -> Vec<KeptEntry> {
        self.lock().entries.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_number_of_entries_and_bytes_is_kept() {
        let kept = KeptEntries::default();
        (0..1500).for_each(|number| kept.add(number, "info", &format!("entry {number}\n")));
        let all = kept.all();
        assert_eq!((all.len(), &*all[0].line, &*all[999].line), (MOST, "entry 500", "entry 1499"));
        (0..100).for_each(|number| kept.add(number, "error", &"\u{e4}".repeat(MOST_OF_ONE)));
        let all = kept.all();
        assert!(all.iter().all(|entry| entry.line.len() == MOST_OF_ONE));
        assert_eq!(all.len(), MOST_BYTES / MOST_OF_ONE);
    }
}
