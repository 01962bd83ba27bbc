//! Memory that is given out in runs with names, so that another process finds the content.
//!
//! ```text
//! word 0      "maitred" and the version                  word 16    the first run; others follow without a gap
//!
//! a run       word 0      words in all (32 bits), kind (8), shards (16); 0: no run is there, nor behind it
//!             word 1..    its name: the number of bytes, and the bytes; of counters all their names, one a line
//!             word 16 n   its content, to the end of the run
//! counters    shards one behind the other, each with a word for each counter: a counter is the sum over the shards
//! texts       how many, and each with the number of its bytes
//! ```
//! All starts are multiples of 16 words (128 bytes). A run is there when its first word is written; it never goes or moves.
//!
//! Promises: reading survives any content. Leaves out: the layout of the figures of exchanges (`area.rs`, `routes.rs`).

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, PoisonError};

use crate::memory::{self, Memory, Run, load, read_text, store, text_words, write_text};

/// "maitred" and the version of the layout above, including the content of the runs.
const MAGIC: u64 = u64::from_le_bytes(*b"maitred\x02");

/// Words between two places at which something may start: two cache lines.
pub(crate) const ALIGN: usize = 16;

/// The kind of content of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Counters = 1,
    Texts = 2,
    Recorder = 3,
    Routes = 4,
    Upstreams = 5,
}

/// Gives out memory for counters, texts and figures. A counter that finds no room is private to the process: it counts,
/// but other processes cannot read it.
///
/// ```
/// use maitred_stats::{Arena, Counter, memory};
///
/// let memory = memory::private(1024);
/// let arena = Arena::new(memory.clone());
/// let requests = Counter::in_arena(&arena, "requests_total");
/// requests.add(3);
/// // Another process has the same words, also when this one has been killed.
/// assert_eq!(maitred_stats::read_counters((*memory).as_ref())["requests_total"], 3);
/// ```
pub struct Arena {
    memory: Memory,
    used: Mutex<usize>,
}

impl Arena {
    /// An arena in memory that is zero.
    pub fn new(memory: Memory) -> Self {
        store((*memory).as_ref(), 0, MAGIC);
        Self { memory, used: Mutex::new(ALIGN) }
    }

    /// The words, as another process has them.
    pub fn memory(&self) -> Memory {
        Memory::clone(&self.memory)
    }

    /// Texts that others find by this name.
    pub fn texts(&self, name: &str, texts: &[String]) {
        let words = 1 + texts.iter().map(|text| text_words(text.len())).sum::<usize>();
        let run = self.take(Kind::Texts, 0, name, words);
        let Some((count, mut left)) = run.words().split_first() else { return };
        for text in texts {
            let (own, others) = left.split_at(text_words(text.len()).min(left.len()));
            write_text(own, text);
            left = others;
        }
        count.store(texts.len() as u64, Release);
    }

    pub(crate) fn take(&self, kind: Kind, shards: usize, name: &str, words: usize) -> Run {
        let head = (1 + text_words(name.len())).next_multiple_of(ALIGN);
        let total = head + words.next_multiple_of(ALIGN);
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let start = *used;
        let all: &[AtomicU64] = (*self.memory).as_ref();
        let Some(own) = all.get(start..start + total) else { return Run::private(words) };
        *used += total;
        write_text(&own[1..head], name);
        own[0].store(total as u64 | (kind as u64) << 32 | (shards as u64) << 40, Release);
        Run::new(self.memory.clone(), start + head, words)
    }

    pub(crate) fn private(words: usize) -> Self {
        Self::new(memory::private(words))
    }
}

pub(crate) const fn run_words(name: &str, words: usize) -> usize {
    (1 + text_words(name.len())).next_multiple_of(ALIGN) + words.next_multiple_of(ALIGN)
}

pub(crate) struct ForeignRun<'a> {
    pub(crate) kind: u8,
    pub(crate) shards: usize,
    pub(crate) name: String,
    pub(crate) content: &'a [AtomicU64],
}

/// All runs, in the order in which they were given out; none in memory that is no arena of this version.
pub(crate) fn runs(words: &[AtomicU64]) -> impl Iterator<Item = ForeignRun<'_>> {
    let mut left = if load(words, 0) == MAGIC { words.get(ALIGN..).unwrap_or_default() } else { &[] };
    std::iter::from_fn(move || {
        let first = left.first()?.load(Acquire);
        let (total, kind, shards) = (first as u32 as usize, (first >> 32) as u8, (first >> 40) as u16);
        let own = left.get(..total).filter(|own| !own.is_empty())?;
        left = &left[total..];
        let length = usize::try_from(load(own, 1)).unwrap_or(usize::MAX).min(own.len() * 8);
        let head = (1 + text_words(length)).next_multiple_of(ALIGN);
        let name = read_text(own.get(1..head).unwrap_or_default());
        Some(ForeignRun { kind, shards: shards.into(), name, content: own.get(head..).unwrap_or_default() })
    })
}

/// The counters that another process has in this memory, by their names; those of the same name are one. A process that runs may
/// count meanwhile.
pub fn read_counters(words: &[AtomicU64]) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::<String, u64>::new();
    each_counter(words, |name, total| {
        let sum = counters.entry(name.to_owned()).or_default();
        *sum = sum.wrapping_add(total);
    });
    counters
}

/// Calls `visit` with each of these counters; a name may come several times.
pub fn each_counter(words: &[AtomicU64], mut visit: impl FnMut(&str, u64)) {
    for found in runs(words).filter(|found| found.kind == Kind::Counters as u8) {
        let Some(stride) = found.content.len().checked_div(found.shards) else { continue };
        for (which, name) in found.name.split('\n').enumerate().take(stride) {
            let shards = (0..found.shards).map(|shard| load(found.content, shard * stride + which));
            visit(name, shards.fold(0, u64::wrapping_add));
        }
    }
}

/// The texts that another process has in this memory by this name; none where there are none.
pub fn read_texts(words: &[AtomicU64], name: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let found = runs(words).find(|found| found.kind == Kind::Texts as u8 && found.name == name);
    let Some((count, mut left)) = found.as_ref().and_then(|found| found.content.split_first()) else {
        return texts;
    };
    for _ in 0..count.load(Acquire) {
        let Some(length) = left.first() else { break };
        texts.push(read_text(left));
        let length = usize::try_from(length.load(Acquire)).unwrap_or(usize::MAX).min(left.len() * 8);
        left = left.get(text_words(length)..).unwrap_or_default();
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Counter, Counters, LockedCounters};

    fn words(memory: &Memory) -> &[AtomicU64] {
        (**memory).as_ref()
    }

    #[test]
    fn counters_of_one_name_are_summed_wherever_they_are() {
        let memory = memory::private(4096);
        let arena = Arena::new(Memory::clone(&memory));
        let requests = Counter::in_arena(&arena, "requests_total");
        let pool =
            LockedCounters::in_arena(&arena, ["waited_total{pool=\"a\"}", "refused_total{pool=\"a\"}"]);
        let part = LockedCounters::in_arena(&arena, ["waited_total{pool=\"a\"}"]);
        let rules = Counters::<2>::in_arena(&arena, ["rule{name=\"x\"}", "rule{name=\"y\"}"]);
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| requests.add(5));
            }
        });
        pool.add(0, 3);
        pool.add(1, 1);
        part.add(0, 4);
        rules.add(1, 9);
        let expected = [
            ("refused_total{pool=\"a\"}", 1),
            ("requests_total", 100),
            ("rule{name=\"x\"}", 0),
            ("rule{name=\"y\"}", 9),
            ("waited_total{pool=\"a\"}", 7),
        ];
        let expected = expected.map(|(name, count)| (name.to_owned(), count));
        assert_eq!(read_counters(words(&memory)), BTreeMap::from(expected));
        assert_eq!((requests.total(), rules.snapshot(), pool.total(0)), (100, [0, 9], 3));
    }

    #[test]
    fn a_counter_without_room_in_the_arena_counts_privately() {
        let memory = memory::private(ALIGN + 32);
        let arena = Arena::new(Memory::clone(&memory));
        let counter = Counter::in_arena(&arena, "x_total");
        counter.add(3);
        assert_eq!((counter.total(), read_counters(words(&memory)).len()), (3, 0));
        let small = LockedCounters::in_arena(&arena, ["y_total"]);
        small.add(0, 1);
        assert_eq!(read_counters(words(&memory)), BTreeMap::from([("y_total".to_owned(), 1)]));
    }

    #[test]
    fn texts_are_found_by_name() {
        let memory = memory::private(4096);
        let arena = Arena::new(Memory::clone(&memory));
        let (pools, listeners) = (["default", "", "reports\n"].map(str::to_owned), ["[::1]:80".to_owned()]);
        arena.texts("pools", &pools);
        arena.texts("listeners", &listeners);
        assert_eq!(read_texts(words(&memory), "pools"), pools);
        assert_eq!(read_texts(words(&memory), "listeners"), listeners);
        assert_eq!(read_texts(words(&memory), "hosts"), [""; 0]);
    }

    #[test]
    fn memory_of_another_version_has_nothing() {
        let memory = memory::private(4096);
        let arena = Arena::new(Memory::clone(&memory));
        Counter::in_arena(&arena, "x_total").add(1);
        store(words(&memory), 0, u64::from_le_bytes(*b"maitred\x01"));
        assert!(read_counters(words(&memory)).is_empty());
    }
}
