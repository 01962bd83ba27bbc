//! Routes that are slow again and again, learnt from what their requests took.
//!
//! ```text
//! word:  tag (32) | learnt (1) | computes (1) | second of the last slow one (22) | last 8 results (8), latest lowest; 1: slow
//!
//! none --slow--> entry --3 of 8 slow--> learnt --1 of 8 slow, or nothing slow for an hour--> entry or none
//! ```
//! Promises: a table of a fixed size, no lock, no allocation. While nothing has been slow nothing is hashed: one load
//! says so. Who invents paths cannot make it grow, cannot displace a route that is learnt, and cannot know which
//! paths share a place: the hash is keyed by chance.
//!
//! Leaves out: what is done with a learnt route, and the clock. Its limit: whoever can make 1,024 different shapes slow
//! within a minute keeps new routes from being learnt for that minute.

use std::hash::RandomState;

use maitred_io::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// So many of the last 8 slow: the route is learnt. Two are chance (a cold cache, a collection).
const MANY: u32 = 3;

/// So many of the last 8 slow, or fewer: it is forgotten. Less than [`MANY`] by two, so that it does not swing.
const FEW: u32 = 1;

/// Seconds after which an entry without another slow request counts for nothing, unless it is learnt.
const DECAY: u64 = 60;

/// The same of a learnt one: a burst every few minutes is known when it comes again.
const LEARNT_DECAY: u64 = 3_600;

/// Places for one key. Four that lie in one half of a cache line: with 50 slow routes a fifth of all buckets is in use,
/// and about one key in 20,000 finds all its places taken.
const WAYS: usize = 4;

/// Buckets, a power of two: 1,024 words, 8 KiB, some times as many routes as an application has.
const BUCKETS: usize = 256;

/// How often a change is tried against others of the same word. What is lost then is one result among many.
const MAX_TRIES: usize = 4;

const RESULTS: u64 = 0xff;
const SECONDS_SHIFT: u32 = 8;
const SECONDS: u64 = 0x003f_ffff;
const COMPUTES: u64 = 1 << 30;
const LEARNT: u64 = 1 << 31;
const TAG_SHIFT: u32 = 32;

const _: () = assert!(BUCKETS.is_power_of_two() && FEW + 1 < MANY && MANY <= RESULTS.count_ones());

/// The routes of one server.
pub struct LearntRoutes {
    words: Box<[AtomicU64]>,
    hasher: RandomState,
    /// Entries. It may be behind the words for a moment, as the next one.
    entries: AtomicUsize,
    /// Learnt ones among them.
    learnt: AtomicUsize,
}

/// What a route is known by: a hash of its method and its shape. Meant for one table only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(u64);

/// What is said of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was not slow.
    Usual,
    /// It was slow, and nothing else is known.
    Slow,
    /// It was slow because it waited.
    Waited,
    /// It was slow because it computed.
    Computed,
}

/// What a request has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The route counts as slow from now on.
    Learnt,
    /// It does not any more.
    Forgotten,
}

impl Default for LearntRoutes {
    fn default() -> Self {
        Self {
            words: (0..BUCKETS * WAYS).map(|_| AtomicU64::new(0)).collect(),
            hasher: RandomState::new(),
            entries: AtomicUsize::new(0),
            learnt: AtomicUsize::new(0),
        }
    }
}

impl LearntRoutes {
    /// Whether any route is learnt. One load.
    pub fn any(&self) -> bool {
        self.learnt.load(Ordering::Relaxed) > 0
    }

    /// Whether any route has been slow lately: then fast requests are to be noted too, because they may be of that
    /// route. One load.
    pub fn is_watching(&self) -> bool {
        self.entries.load(Ordering::Relaxed) > 0
    }

    /// The key of a request whose route has this hash, made with a state that no peer knows.
    pub fn key(&self, hash: impl FnOnce(&RandomState) -> u64) -> Key {
        Key(hash(&self.hasher))
    }

    /// Whether the route counts as slow, and then whether it is for computing.
    pub fn learnt(&self, key: Key) -> Option<bool> {
        let entries = self.bucket(key).iter().map(|word| Entry(word.load(Ordering::Relaxed)));
        entries.into_iter().find(|entry| entry.is_of(key) && entry.is_learnt()).map(Entry::computes)
    }

    /// Whether a request of this route has been slow lately.
    pub fn knows(&self, key: Key) -> bool {
        self.is_watching()
            && self.bucket(key).iter().any(|word| Entry(word.load(Ordering::Relaxed)).is_of(key))
    }

    /// Notes that a request was slow or not. To be called after each slow one, and after others while
    /// [`is_watching`](Self::is_watching) says so; `now` in seconds of a clock that does not go back.
    pub fn note(&self, key: Key, result: Outcome, now: u64) -> Option<Change> {
        let slow = result != Outcome::Usual;
        for _ in 0..MAX_TRIES {
            let (word, before) = self.place(key, slow, now)?;
            let own = before.is_of(key);
            let fresh = !own || before.has_decayed(now);
            let after = if fresh { Entry::NONE } else { before }.after(key, result, now);
            if word.compare_exchange(before.0, after.0, Ordering::Relaxed, Ordering::Relaxed).is_err() {
                continue;
            }
            count(&self.entries, before != Entry::NONE, after != Entry::NONE);
            count(&self.learnt, before.is_learnt(), after.is_learnt());
            return match (own && before.is_learnt(), after.is_learnt()) {
                (false, true) => Some(Change::Learnt),
                (true, false) => Some(Change::Forgotten),
                _ => None,
            };
        }
        None
    }

    /// Forgets what has decayed, so that nothing is hashed for it; how many of these routes were learnt. A thousand
    /// loads: for whoever looks round every few seconds anyway.
    pub fn sweep(&self, now: u64) -> usize {
        if !self.is_watching() {
            return 0;
        }
        let mut forgotten = 0;
        for word in &self.words {
            let entry = Entry(word.load(Ordering::Relaxed));
            let empties = entry != Entry::NONE && entry.has_decayed(now);
            if empties && word.compare_exchange(entry.0, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                count(&self.entries, true, false);
                count(&self.learnt, entry.is_learnt(), false);
                forgotten += usize::from(entry.is_learnt());
            }
        }
        forgotten
    }

    fn bucket(&self, key: Key) -> &[AtomicU64] {
        let first = (key.0 as usize % BUCKETS) * WAYS;
        &self.words[first..first + WAYS]
    }

    /// The word of `key`; for a slow one that has none, a free or a decayed one.
    fn place(&self, key: Key, slow: bool, now: u64) -> Option<(&AtomicU64, Entry)> {
        let mut free = None;
        for word in self.bucket(key) {
            let entry = Entry(word.load(Ordering::Relaxed));
            if entry.is_of(key) {
                return Some((word, entry));
            }
            if free.is_none() && (entry == Entry::NONE || entry.has_decayed(now)) {
                free = Some((word, entry));
            }
        }
        free.filter(|_| slow)
    }
}

/// A word as it was read. With a slow result among the last 8 or not at all.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry(u64);

impl Entry {
    const NONE: Self = Self(0);

    fn is_of(self, key: Key) -> bool {
        self != Self::NONE && self.0 >> TAG_SHIFT == key.0 >> TAG_SHIFT
    }

    fn is_learnt(self) -> bool {
        self.0 & LEARNT != 0
    }

    fn computes(self) -> bool {
        self.0 & COMPUTES != 0
    }

    /// Seconds are kept modulo 48 days: after such a time an old entry is fresh for a while once more.
    fn has_decayed(self, now: u64) -> bool {
        let decay = if self.is_learnt() { LEARNT_DECAY } else { DECAY };
        let last = self.0 >> SECONDS_SHIFT & SECONDS;
        let since = now.wrapping_sub(last) & SECONDS;
        // Another thread's later second, seen with an earlier one of this thread, is not 48 days old.
        (decay..SECONDS - decay).contains(&since)
    }

    /// The entry of `key` after one more result.
    fn after(self, key: Key, result: Outcome, now: u64) -> Self {
        let slow = result != Outcome::Usual;
        let results = (self.0 << 1 | u64::from(slow)) & RESULTS;
        let count = results.count_ones();
        let learnt = count >= MANY || (self.is_learnt() && count > FEW);
        if count == 0 {
            return Self::NONE;
        }
        let seconds = if slow { now & SECONDS } else { self.0 >> SECONDS_SHIFT & SECONDS };
        let learnt = if learnt { LEARNT } else { 0 };
        let computes = match result {
            Outcome::Computed => COMPUTES,
            Outcome::Waited => 0,
            Outcome::Usual | Outcome::Slow => self.0 & COMPUTES,
        };
        Self(key.0 >> TAG_SHIFT << TAG_SHIFT | learnt | computes | seconds << SECONDS_SHIFT | results)
    }
}

/// Threads that change one word after the other may count in the other order: it wraps for a moment.
fn count(counter: &AtomicUsize, before: bool, after: bool) {
    match (before, after) {
        (false, true) => _ = counter.fetch_add(1, Ordering::Relaxed),
        (true, false) => _ = counter.fetch_sub(1, Ordering::Relaxed),
        _ => {}
    }
}

#[cfg(all(test, not(shuttle)))]
#[path = "slow_routes_tests.rs"]
mod tests;
