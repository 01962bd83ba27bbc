//! Figures from many threads: each thread notes samples in a ring of its own, and counts many of them in the table at once.
//!
//! ```text
//! thread: sample, sample, ... 64  --the table is free, or the ring is full--> table <--a reader has all rings emptied first
//! ```
//! All of it is in memory that another process can have, too ([`Foreign`](crate::Foreign)), also when this one was killed.
//!
//! Promises: 63 times out of 64 a request takes no lock here; a thread waits for the table only behind 32 further requests;
//! a stated bound of memory. A reading has all samples that were noted before it began.

use std::cell::RefCell;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::area::{self, Area, BYTES, FIXED_BYTES, LOST, ON, RINGS_USED, area_words};
use crate::arena::{Arena, Kind, run_words};
use crate::distribution::Distribution;
use crate::lock::{LockSnapshot, NamedLock};
use crate::memory::Run;
use crate::names::{MAX_NAMES, Names, read_names};
use crate::rings::{Fill, IS_TIMING, Owners, RING_BYTES, Sample, exchange, timing};
use crate::routes::ROUTES_BYTES;
use crate::table::{Leaf, LeafKey, Table, TimingKey};
use crate::times::Spans;

const _: () = assert!(MAX_NAMES < IS_TIMING as usize);

/// Bytes that the figures of one process may take, so that four processes fit into 32 MiB. Copies made by a reader are
/// not part of it.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Bytes for leaves and histograms: without rings, names and [`Routes`](crate::Routes).
const TABLE_BYTES: usize = (MAX_BYTES - ROUTES_BYTES - FIXED_BYTES) / 128 * 128;

/// The share of chunks of histograms in the table's bytes. The rest is for leaves.
const CHUNKS_BYTES: usize = TABLE_BYTES / 128 * 93;
pub(crate) const LEAVES_BYTES: usize = TABLE_BYTES - CHUNKS_BYTES;

pub(crate) const WORDS: usize = area_words(LEAVES_BYTES, CHUNKS_BYTES);

const NAME: &str = "exchanges";

/// Bytes of an [`Arena`] that one recorder and its [`Routes`](crate::Routes) take. Their indexes outside the arena are
/// part of [`MAX_BYTES`], too.
pub const ARENA_BYTES: usize =
    (crate::arena::ALIGN + run_words(NAME, WORDS) + crate::routes::RUN_WORDS) * size_of::<u64>();

const _: () = assert!(ARENA_BYTES <= MAX_BYTES);

/// Leaves that are read at a time: the table is locked meanwhile, for some ten microseconds.
pub(crate) const BATCH: usize = 16;

/// The figures of a server. To be shared in an `Arc`: threads refer to it.
pub struct Recorder {
    on: AtomicBool,
    /// The memory. The table decides which thread writes leaves.
    run: Run,
    table: NamedLock<Table>,
    /// Locked for some nanoseconds.
    owners: Mutex<Owners>,
    names: Names,
    /// A child of this process shares the memory, and has no part in it.
    process: u32,
}

/// A thread's ring in the recorder that it has used last.
struct Own {
    recorder: Weak<Recorder>,
    /// None where there was no memory for it.
    ring: Option<u16>,
}

thread_local! {
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
}

impl Recorder {
    /// A recorder without figures, switched on, in memory of its own, all of which it takes at once.
    pub fn new() -> Self {
        Self::in_arena(&Arena::private(crate::arena::ALIGN + run_words(NAME, WORDS)))
    }

    /// A recorder without figures, switched on, in this memory.
    pub fn in_arena(arena: &Arena) -> Self {
        let recorder = Self {
            on: AtomicBool::new(true),
            run: arena.take(Kind::Recorder, 0, NAME, WORDS),
            table: NamedLock::new("statistics", Table::new(LEAVES_BYTES)),
            owners: Mutex::default(),
            names: Names::new(),
            process: std::process::id(),
        };
        recorder.set_on(true);
        recorder.change(&mut recorder.table.lock(), Table::keep_those_of_several);
        recorder
    }

    /// Switches it on or off; figures stay.
    pub fn set_on(&self, on: bool) {
        self.on.store(on, Relaxed);
        crate::memory::store(self.run.words(), ON, on.into());
    }

    /// Whether it counts. One load.
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
            let name = self.number_of(name);
            self.note(timing(TimingKey { pool, route, name }, nanos));
        }
    }

    /// The number of a name, which stays.
    pub fn number_of(&self, name: &str) -> u8 {
        self.names.number(name, area::names(self.run.words()))
    }

    /// The same as [`record_timing`](Self::record_timing), without a look at the names, and also while it is off.
    pub fn record_numbered(self: &Arc<Self>, key: TimingKey, nanos: u64) {
        self.note(timing(key, nanos));
    }

    fn note(self: &Arc<Self>, sample: Sample) {
        let noted = OWN.try_with(|own| {
            let mut own = own.borrow_mut();
            let own = match &mut *own {
                Some(own) if std::ptr::eq(own.recorder.as_ptr(), Arc::as_ptr(self)) => own,
                other => other.insert(self.join()),
            };
            let Some(number) = own.ring else { return false };
            let Some(ring) = area::ring(self.run.words(), number) else { return false };
            let table = match ring.push(sample) {
                Fill::Little => None,
                Fill::Much => self.table.try_lock(),
                Fill::Full => Some(self.table.lock()),
            };
            if let Some(mut table) = table {
                self.change(&mut table, |table, area| table.fold(area, ring));
            }
            true
        });
        // A thread that ends has no ring any more.
        if noted != Ok(true) {
            self.change(&mut self.table.lock(), |table, area| table.count(area, sample));
        }
    }

    fn change(&self, table: &mut Table, work: impl FnOnce(&mut Table, &Area<'_>)) {
        if let Some(area) = self.area() {
            area.change(|| work(table, &area));
        }
    }

    fn area(&self) -> Option<Area<'_>> {
        Area::new(self.run.words(), LEAVES_BYTES)
    }

    #[cold]
    fn join(self: &Arc<Self>) -> Own {
        let mut owners = self.owners();
        let ring = owners.join();
        if let Some(area) = self.area() {
            area.head[RINGS_USED].store(owners.used.into(), Release);
        }
        Own { recorder: Arc::downgrade(self), ring }
    }

    fn leave(&self, ring: u16) {
        if std::process::id() != self.process {
            return;
        }
        if let Some(noted) = area::ring(self.run.words(), ring) {
            self.change(&mut self.table.lock(), |table, area| table.fold(area, noted));
        }
        self.owners().give_back(ring);
    }

    fn owners(&self) -> MutexGuard<'_, Owners> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts all noted samples in the leaves. Readers of the leaves call it first.
    pub fn fold_all(&self) {
        let Some(area) = self.area() else { return };
        for ring in area.rings().filter(|ring| !ring.is_empty()) {
            // One at a time: others may want the table.
            self.change(&mut self.table.lock(), |table, area| table.fold(area, ring));
        }
        area.head[BYTES].store(self.bytes() as u64, Relaxed);
    }

    /// Exchanges that were counted for each route, by number.
    pub fn requests(&self) -> Vec<u64> {
        self.fold_all();
        let table = self.table.lock();
        self.area().map_or_else(Vec::new, |area| table.requests(&area))
    }

    /// Moves counts between routes: each pair is a number and its replacement, which is not the first of another pair.
    /// The numbers can be given to other routes afterwards; an exchange that has one of them already and ends later is
    /// counted there.
    pub fn move_routes(&self, moves: &[(u32, u32)]) {
        self.fold_all();
        let moves = moves.iter().copied().collect();
        self.change(&mut self.table.lock(), |table, area| table.move_routes(area, &moves));
    }

    /// All leaves, in the order in which they came. Exchanges that end meanwhile may be in some of them.
    pub fn leaves(&self, visit: impl FnMut(LeafKey, Leaf)) {
        self.read(|area, first| area.read_leaves(first, BATCH), visit);
    }

    /// The durations of all `Server-Timing` entries, likewise, in nanoseconds.
    pub fn timings(&self, visit: impl FnMut(TimingKey, Distribution)) {
        self.read(|area, first| area.read_timings(first, BATCH), visit);
    }

    fn read<K, T>(&self, read: impl Fn(&Area<'_>, usize) -> Vec<(K, T)>, mut visit: impl FnMut(K, T)) {
        self.fold_all();
        let Some(area) = self.area() else { return };
        for first in (0..).step_by(BATCH) {
            let batch = {
                let _unchanged = self.table.lock();
                read(&area, first)
            };
            let last = batch.len() < BATCH;
            batch.into_iter().for_each(|(key, figures)| visit(key, figures));
            if last {
                return;
            }
        }
    }

    /// The names of `Server-Timing` entries, by number.
    pub fn names(&self) -> Vec<String> {
        read_names(area::names(self.run.words()))
    }

    /// `Server-Timing` entries that were counted nowhere, for want of memory.
    pub fn lost_timings(&self) -> u64 {
        crate::memory::load(self.run.words(), LOST)
    }

    /// Bytes that the figures take now: at most [`MAX_BYTES`], with the [`Routes`](crate::Routes) that belong to them.
    pub fn bytes(&self) -> usize {
        let table = self.area().map_or(0, |area| self.table.lock().bytes(&area));
        usize::from(self.owners().used) * RING_BYTES + self.names.bytes() + table
    }

    /// The counts of the table's lock.
    pub fn lock_snapshot(&self) -> LockSnapshot {
        self.table.snapshot()
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let (Some(recorder), Some(ring)) = (self.recorder.upgrade(), self.ring) {
            recorder.leave(ring);
        }
    }
}

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;
