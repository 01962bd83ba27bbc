//! Figures from many threads: each notes what it has in a ring of its own, which goes into the table when it is full.
//!
//! ```text
//! thread: sample, sample, ... 64  --full, or the thread ends--> table <--whoever reads has all rings emptied first
//!                                  `--full, table in use--> left behind --the next one that has it--> table
//! ```
//! Promises: 63 times out of 64 no lock on the way of a request, and no wait for one that a thread without a processor
//! holds; a stated bound of memory. What was counted before a reading began is in it.

use std::cell::RefCell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::distribution::Distribution;
use crate::lock::{LockSnapshot, NamedLock};
use crate::names::{MAX_NAMES, Names};
use crate::table::{Leaf, LeafKey, Table, TimingKey};
use crate::times::{Span, Spans};

const _: () = assert!(MAX_NAMES < IS_TIMING as usize && SAMPLES.is_power_of_two());

/// Samples of a thread before they go into the table: enough that its lock costs nothing, little enough (4 KiB) that a
/// hundred threads need no half megabyte.
const SAMPLES: usize = 64;

/// What a thread's ring takes, with its place among all.
const SHARD_COST: usize = size_of::<Shard>() + 64;

/// Bytes that the figures of one process may take, so that four fit into 32 MiB: without what a reading makes of them.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Of that, for the rings of threads: of over a hundred. Further threads count in the table at once.
const SHARDS_BYTES: usize = MAX_BYTES / 16;

/// Of that, for names and numbers of [`Routes`](crate::Routes).
const ROUTES_BYTES: usize = MAX_BYTES / 32;

/// Of that, for what threads leave behind that find the table in use: 32 full rings. Who finds no place there waits.
const LEFT_BYTES: usize = MAX_BYTES / 64;

/// The rest.
const TABLE_BYTES: usize = MAX_BYTES - SHARDS_BYTES - ROUTES_BYTES - LEFT_BYTES;

/// Leaves that are read at a time: the table is locked meanwhile, for some ten microseconds.
const BATCH: usize = 16;

/// One thing to count: a key and what is counted of it.
///
/// ```text
/// of an exchange: packed LeafKey,               body bytes, spans or UNTIMED
/// of a timing:    packed TimingKey | IS_TIMING, nanoseconds
/// ```
type Sample<T> = [T; 2 + Span::ALL.len()];

/// What was in a ring.
type Lot = Box<[Sample<u64>]>;

const LOT_BYTES: usize = SAMPLES * size_of::<Sample<u64>>();

/// Neither a class of status nor the number of a name has this bit.
const IS_TIMING: u64 = 0x80;

/// In the place of the first span: nobody has looked at the clock. As a span it would be 584 years.
const UNTIMED: u64 = u64::MAX;

fn exchange(key: LeafKey, bytes: u64, spans: Option<Spans>) -> Sample<u64> {
    let Spans([a, b, c, d, e, f]) = spans.unwrap_or(Spans([UNTIMED; Span::ALL.len()]));
    [key.pack() & !IS_TIMING, bytes, a, b, c, d, e, f]
}

fn timing(key: TimingKey, nanos: u64) -> Sample<u64> {
    [key.pack() | IS_TIMING, nanos, 0, 0, 0, 0, 0, 0]
}

fn count([key, value, a, b, c, d, e, f]: Sample<u64>, table: &mut Table) {
    if key & IS_TIMING == 0 {
        table.count(key, value, (a != UNTIMED).then_some(&Spans([a, b, c, d, e, f])));
    } else {
        table.count_timing(TimingKey::unpack(key & !IS_TIMING), value);
    }
}

/// The figures of a server. To be shared in an `Arc`: threads refer to it.
pub struct Recorder {
    on: AtomicBool,
    table: NamedLock<Table>,
    /// What waits for the one that has the table next; locked for some nanoseconds.
    left: Mutex<Vec<Lot>>,
    shards: Mutex<Vec<Arc<Shard>>>,
    shard_bytes: AtomicUsize,
    names: Names,
}

/// The ring of one thread. Only that thread writes samples and `head`; only who holds `emptied` writes `tail`.
struct Shard {
    emptied: Mutex<()>,
    samples: [Sample<AtomicU64>; SAMPLES],
    /// Samples ever written.
    head: AtomicUsize,
    /// Of these, counted.
    tail: AtomicUsize,
}

impl Shard {
    fn new() -> Self {
        let samples = std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0)));
        Self { emptied: Mutex::new(()), samples, head: AtomicUsize::new(0), tail: AtomicUsize::new(0) }
    }

    /// By its own thread, when it is not full; whether it is now.
    fn push(&self, sample: Sample<u64>) -> bool {
        let head = self.head.load(Relaxed);
        for (word, value) in self.samples[head % SAMPLES].iter().zip(sample) {
            word.store(value, Relaxed);
        }
        // Whoever sees the new head sees the sample.
        self.head.store(head.wrapping_add(1), Release);
        // Whoever counted a sample has read it before its place is written again.
        head.wrapping_add(1).wrapping_sub(self.tail.load(Acquire)) == SAMPLES
    }

    fn fold(&self, table: &mut Table) {
        let _emptied = lock(&self.emptied);
        let (tail, head) = self.all();
        self.read(tail, head).for_each(|sample| count(sample, table));
        self.tail.store(head, Release);
    }

    /// By its own thread: leaves all it has behind. Whether there was room, and nobody else empties it now.
    fn leave(&self, left: &Mutex<Vec<Lot>>) -> bool {
        let Ok(_emptied) = self.emptied.try_lock() else { return false };
        let (tail, head) = self.all();
        let lot = self.read(tail, head).collect();
        let mut left = lock(left);
        let has_room = (left.len() + 1) * LOT_BYTES <= LEFT_BYTES;
        if has_room {
            left.push(lot);
            self.tail.store(head, Release);
        }
        has_room
    }

    fn all(&self) -> (usize, usize) {
        (self.tail.load(Relaxed), self.head.load(Acquire))
    }

    fn read(&self, tail: usize, head: usize) -> impl Iterator<Item = Sample<u64>> {
        let sample = move |at: usize| &self.samples[tail.wrapping_add(at) % SAMPLES];
        (0..head.wrapping_sub(tail)).map(move |at| sample(at).each_ref().map(|word| word.load(Relaxed)))
    }
}

/// What a thread has of the recorder it has used last.
struct Own {
    recorder: Weak<Recorder>,
    /// None where there was no memory for it.
    shard: Option<Arc<Shard>>,
}

thread_local! {
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
}

impl Recorder {
    /// Without figures, and on.
    #[must_use]
    pub fn new() -> Self {
        Self {
            on: AtomicBool::new(true),
            table: NamedLock::new("statistics", Table::new(TABLE_BYTES)),
            left: Mutex::new(Vec::new()),
            shards: Mutex::new(Vec::new()),
            shard_bytes: AtomicUsize::new(0),
            names: Names::new(),
        }
    }

    /// Switches it on or off; figures stay.
    pub fn set_on(&self, on: bool) {
        self.on.store(on, Relaxed);
    }

    /// Whether it counts. One load.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// Counts one exchange, with the body bytes of its response, and its spans if they are known; nothing while it is off.
    pub fn record(self: &Arc<Self>, key: LeafKey, bytes: u64, spans: Option<Spans>) {
        if self.is_on() {
            self.note(exchange(key, bytes, spans));
        }
    }

    /// Counts one entry of a `Server-Timing` field of an application; nothing while it is off.
    pub fn record_timing(self: &Arc<Self>, pool: u16, route: u32, name: &str, nanos: u64) {
        if self.is_on() {
            let name = self.names.number(name);
            self.note(timing(TimingKey { pool, route, name }, nanos));
        }
    }

    fn note(self: &Arc<Self>, sample: Sample<u64>) {
        let noted = OWN.try_with(|own| {
            let mut own = own.borrow_mut();
            let own = match &mut *own {
                Some(own) if std::ptr::eq(own.recorder.as_ptr(), Arc::as_ptr(self)) => own,
                other => other.insert(self.join()),
            };
            let Some(shard) = &own.shard else { return false };
            if shard.push(sample) {
                self.empty(shard);
            }
            true
        });
        // A thread that ends has no ring any more.
        if noted != Ok(true) {
            count(sample, &mut self.table.lock());
        }
    }

    /// Has what is in a full ring counted, by this thread or, if another one has the table, by the next one.
    fn empty(&self, shard: &Shard) {
        let free = self.table.try_lock();
        if free.is_none() && shard.leave(&self.left) {
            return;
        }
        let mut table = free.unwrap_or_else(|| self.table.lock());
        shard.fold(&mut table);
        self.count_left(&mut table);
    }

    fn count_left(&self, table: &mut Table) {
        let left = std::mem::take(&mut *lock(&self.left));
        left.iter().flatten().for_each(|sample| count(*sample, table));
    }

    #[cold]
    fn join(self: &Arc<Self>) -> Own {
        let recorder = Arc::downgrade(self);
        let mut shards = self.shards();
        if (shards.len() + 1) * SHARD_COST > SHARDS_BYTES {
            return Own { recorder, shard: None };
        }
        let shard = Arc::new(Shard::new());
        shards.push(Arc::clone(&shard));
        self.shard_bytes.store(shards.len() * SHARD_COST, Relaxed);
        Own { recorder, shard: Some(shard) }
    }

    fn leave(&self, shard: &Arc<Shard>) {
        shard.fold(&mut self.table.lock());
        let mut shards = self.shards();
        shards.retain(|other| !Arc::ptr_eq(other, shard));
        self.shard_bytes.store(shards.len() * SHARD_COST, Relaxed);
    }

    fn shards(&self) -> MutexGuard<'_, Vec<Arc<Shard>>> {
        lock(&self.shards)
    }

    fn fold_all(&self) {
        let shards = self.shards().clone();
        // One at a time: others may want the table.
        shards.iter().for_each(|shard| shard.fold(&mut self.table.lock()));
        // Afterwards: until then threads may have left more behind.
        self.count_left(&mut self.table.lock());
    }

    /// All leaves, in the order in which they came. Exchanges that end meanwhile may be in some of them.
    pub fn leaves(&self, mut visit: impl FnMut(LeafKey, Leaf)) {
        self.fold_all();
        for first in (0..).step_by(BATCH) {
            let batch = self.table.lock().leaves(first, BATCH);
            let last = batch.len() < BATCH;
            batch.into_iter().for_each(|(key, leaf)| visit(key, leaf));
            if last {
                return;
            }
        }
    }

    /// The durations of all `Server-Timing` entries, likewise, in nanoseconds.
    pub fn timings(&self, mut visit: impl FnMut(TimingKey, Distribution)) {
        self.fold_all();
        for first in (0..).step_by(BATCH) {
            let batch = self.table.lock().timings(first, BATCH);
            let last = batch.len() < BATCH;
            batch.into_iter().for_each(|(key, nanos)| visit(key, nanos));
            if last {
                return;
            }
        }
    }

    /// The names of `Server-Timing` entries, by number.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.names.all()
    }

    /// `Server-Timing` entries that were counted nowhere, for want of memory.
    #[must_use]
    pub fn lost_timings(&self) -> u64 {
        self.table.lock().unkept_timings()
    }

    /// What the figures take now, in bytes: at most [`MAX_BYTES`], with the [`Routes`](crate::Routes) that belong to them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let left = lock(&self.left).len() * LOT_BYTES;
        self.shard_bytes.load(Relaxed) + left + self.names.bytes() + self.table.lock().bytes()
    }

    /// The counts of the table's lock.
    #[must_use]
    pub fn lock_snapshot(&self) -> LockSnapshot {
        self.table.snapshot()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let (Some(recorder), Some(shard)) = (self.recorder.upgrade(), &self.shard) {
            recorder.leave(shard);
        }
    }
}

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;
