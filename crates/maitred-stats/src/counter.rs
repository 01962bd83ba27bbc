//! Counters sharded per thread, and gauges.

use std::array;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::arena::{ALIGN, Arena, Kind};
use crate::memory::{self, Run};

/// Number of shards: threads up to this many never share a cache line. More threads share shards, still counting
/// exactly. 16 is the largest number of cores whose counters are expected to be hot at once; a shard costs 128 bytes.
const SHARDS: usize = 16;

/// `N` counters that are counted together, such as those of one listener. All counters of a shard lie side by side,
/// so that a thread that counts several of them touches one or two cache lines, which no other thread writes.
///
/// Memory: 16 shards of `N × 8` bytes, rounded up to 128.
///
/// ```
/// use maitred_stats::Counters;
///
/// #[derive(Clone, Copy)]
/// enum Event { Accepted, Refused }
///
/// let events = Counters::<2>::new();
/// events.add(Event::Accepted as usize, 1);
/// assert_eq!(events.snapshot(), [1, 0]);
/// # let _ = Event::Refused;
/// ```
pub struct Counters<const N: usize>(CounterWords<N>);

enum CounterWords<const N: usize> {
    Own([Shard<N>; SHARDS]),
    /// A word for each counter of each shard.
    Arena(Run),
}

/// 128 bytes: processors fetch pairs of 64-byte lines.
#[repr(align(128))]
struct Shard<const N: usize>([AtomicU64; N]);

impl<const N: usize> Counters<N> {
    /// Words of a shard in an arena.
    const STRIDE: usize = N.next_multiple_of(ALIGN);

    /// All zero.
    pub fn new() -> Self {
        Self(CounterWords::Own(array::from_fn(|_| Shard(array::from_fn(|_| AtomicU64::new(0))))))
    }

    /// All zero, in memory in which others find them by these names, which have no line ends.
    pub fn in_arena<S: AsRef<str>>(arena: &Arena, names: [S; N]) -> Self {
        Self(CounterWords::Arena(arena.take(Kind::Counters, SHARDS, &lines(&names), SHARDS * Self::STRIDE)))
    }

    /// Adds `amount` to counter `which`, a number below `N`. Wraps at 2^64.
    ///
    /// # Panics
    /// When `which` is not below `N`.
    pub fn add(&self, which: usize, amount: u64) {
        self.word(shard(), which).fetch_add(amount, Relaxed);
    }

    fn word(&self, shard: usize, which: usize) -> &AtomicU64 {
        match &self.0 {
            CounterWords::Own(shards) => &shards[shard].0[which],
            CounterWords::Arena(run) => &run.words()[shard * Self::STRIDE..][..N][which],
        }
    }

    /// The value of counter `which`, a number below `N`.
    ///
    /// # Panics
    /// When `which` is not below `N`.
    pub fn total(&self, which: usize) -> u64 {
        (0..SHARDS).fold(0, |sum, shard| sum.wrapping_add(self.word(shard, which).load(Relaxed)))
    }

    /// The values of all counters.
    pub fn snapshot(&self) -> [u64; N] {
        array::from_fn(|which| self.total(which))
    }
}

fn lines<S: AsRef<str>>(names: &[S]) -> String {
    names.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join("\n")
}

impl<const N: usize> Default for Counters<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// `N` counters that only one thread at a time writes, such as the one that holds a lock. Adding is a load and a store.
pub struct LockedCounters<const N: usize>(Run);

impl<const N: usize> LockedCounters<N> {
    /// All zero.
    pub fn new() -> Self {
        Self(Run::private(N))
    }

    /// All zero, in memory in which others find them by these names, which have no line ends.
    pub fn in_arena<S: AsRef<str>>(arena: &Arena, names: [S; N]) -> Self {
        Self(arena.take(Kind::Counters, 1, &lines(&names), N))
    }

    /// Adds `amount` to counter `which`, a number below `N`. Wraps at 2^64.
    ///
    /// # Panics
    /// When `which` is not below `N`.
    pub fn add(&self, which: usize, amount: u64) {
        memory::add(&self.0.words()[which], amount);
    }

    /// The value of counter `which`, a number below `N`.
    ///
    /// # Panics
    /// When `which` is not below `N`.
    pub fn total(&self, which: usize) -> u64 {
        self.0.words()[which].load(Relaxed)
    }
}

impl<const N: usize> Default for LockedCounters<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// One counter. Costs 2 KiB; counters that are counted together belong in [`Counters`].
#[derive(Default)]
pub struct Counter(Counters<1>);

impl Counter {
    /// A counter that is zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Zero, in memory in which others find it by this name, which has no line end.
    pub fn in_arena(arena: &Arena, name: &str) -> Self {
        Self(Counters::in_arena(arena, [name]))
    }

    /// Adds `amount`.
    pub fn add(&self, amount: u64) {
        self.0.add(0, amount);
    }

    /// The sum over all threads.
    pub fn total(&self) -> u64 {
        self.0.total(0)
    }
}

/// A value that goes up and down, such as the number of open connections. Not sharded: for a value that changes with
/// every request take two [`Counters`] and subtract.
#[derive(Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// A gauge that is zero.
    pub const fn new() -> Self {
        Self(AtomicI64::new(0))
    }

    /// Adds `amount`, which may be negative.
    pub fn add(&self, amount: i64) {
        self.0.fetch_add(amount, Relaxed);
    }

    /// Replaces the value.
    pub fn set(&self, value: i64) {
        self.0.store(value, Relaxed);
    }

    /// The value now.
    pub fn value(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

/// The shard of the calling thread: given out in turn, kept for the thread's life.
fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: usize = NEXT.fetch_add(1, Relaxed) % SHARDS;
    }
    // A destructor of another thread-local may count while this one is gone already.
    SHARD.try_with(|shard| *shard).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn counts_of_more_threads_than_shards_add_up() {
        let counters = Counters::<3>::new();
        thread::scope(|scope| {
            for _ in 0..SHARDS * 2 + 1 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        counters.add(1, 1);
                        counters.add(2, 5);
                    }
                });
            }
        });
        let threads = SHARDS as u64 * 2 + 1;
        assert_eq!(counters.snapshot(), [0, threads * 1000, threads * 5000]);
    }

    #[test]
    fn neighbouring_threads_have_shards_of_their_own() {
        let mine = thread::spawn(shard).join().expect("first");
        assert_eq!(shard(), shard(), "kept");
        let distinct: std::collections::HashSet<usize> =
            (0..SHARDS * 4).map(|_| thread::spawn(shard).join().expect("thread")).chain([mine]).collect();
        assert_eq!(distinct.len(), SHARDS, "all shards are given out");
    }

    #[test]
    fn shards_do_not_share_a_cache_line() {
        assert_eq!(size_of::<Shard<1>>(), 128);
        assert_eq!(size_of::<Shard<17>>(), 256);
        assert_eq!(align_of::<Counters<1>>(), 128);
    }

    #[test]
    fn a_gauge_goes_up_and_down() {
        let gauge = Gauge::new();
        gauge.add(3);
        gauge.add(-5);
        assert_eq!(gauge.value(), -2);
        gauge.set(9);
        assert_eq!(gauge.value(), 9);
    }

    #[test]
    fn a_single_counter_counts() {
        let counter = Counter::new();
        counter.add(2);
        counter.add(3);
        assert_eq!(counter.total(), 5);
    }
}
