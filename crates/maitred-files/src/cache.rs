//! The cache of resources: small files in memory, larger ones as open descriptors.
//!
//! Promises: one budget bounds bytes, entries and descriptors; a hit makes no system call and no allocation. Leaves
//! out: loading, and the validity of an entry (`load.rs`).
//!
//! Sections below: cached resources.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use maitred_http::ResponseHead;
use maitred_http::coding::Coding;
use maitred_runtime::{Content, FileRange};
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Lifecycle, OptionsBuilder, Weighter};

use crate::load::Plan;
use crate::{Now, StaticSettings};

/// The cost of an entry besides its content and names, in bytes: two prepared heads of about 400 bytes with their
/// allocations, the resource, and the cache's own entry.
const ENTRY_OVERHEAD: u64 = 1024;

/// How long a descriptor stays open without being asked for. A deleted file keeps its disk space
/// while it is open. Source: the default of nginx's `open_file_cache … inactive=60s`.
const MAX_IDLE_DESCRIPTOR: Duration = Duration::from_secs(60);

/// How often idle descriptors are looked for.
const SWEEP_INTERVAL_NS: u64 = 10_000_000_000;

/// The most shards: enough that 16 threads seldom meet, few enough that a share holds large entries.
const MAX_SHARDS: u64 = 16;

/// The fewest entries of the largest kind that one shard must hold, so that a budget cut into shards
/// still admits them.
const MIN_ENTRIES_PER_SHARD: u64 = 16;

/// The counters and the present contents of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    /// Files that are cached now, in memory or open.
    pub entries: u64,
    /// Bytes of content in memory now.
    pub bytes: u64,
    /// Descriptors held open now.
    pub descriptors: u64,
    /// Requests answered from the cache.
    pub hits: u64,
    /// Requests for which a file was opened.
    pub misses: u64,
    /// Entries that gave way to others, or were too large for the budget.
    pub evictions: u64,
    /// Checks that found an entry unchanged.
    pub revalidations: u64,
    /// Checks that found an entry changed or gone.
    pub invalidations: u64,
    /// The time of loading, in total over all misses.
    pub load_time: Duration,
    /// The time saved by requests that were answered without a look at the file: for each one the time of loading its
    /// entry.
    pub saved_time: Duration,
}

impl CacheStatistics {
    /// Adds those of another cache.
    pub fn add(&mut self, other: &Self) {
        let Self {
            entries,
            bytes,
            descriptors,
            hits,
            misses,
            evictions,
            revalidations,
            invalidations,
            load_time,
            saved_time,
        } = other;
        self.entries += entries;
        self.bytes += bytes;
        self.descriptors += descriptors;
        self.hits += hits;
        self.misses += misses;
        self.evictions += evictions;
        self.revalidations += revalidations;
        self.invalidations += invalidations;
        self.load_time += *load_time;
        self.saved_time += *saved_time;
    }

    /// The share of requests answered from the cache, 0 to 1; 0 before the first.
    pub fn hit_rate(&self) -> f64 {
        let all = self.hits + self.misses;
        if all == 0 { 0.0 } else { self.hits as f64 / all as f64 }
    }
}

pub(crate) enum LookUp {
    Fresh(Arc<Resource>),
    /// The caller must check this first.
    Due(Arc<Resource>),
    Absent,
}

type Key = Box<[u8]>;

#[derive(Debug)]
pub(crate) struct ResourceCache {
    /// None when the budget is zero.
    entries: Option<Cache<Key, Arc<Resource>, Charge, DefaultHashBuilder, Evictions>>,
    max_descriptors: u64,
    validate_after_ns: u64,
    hits: Hits,
    misses: AtomicU64,
    load_ns: AtomicU64,
    revalidations: AtomicU64,
    invalidations: AtomicU64,
    evictions: Arc<AtomicU64>,
    swept_at: AtomicU64,
}

impl ResourceCache {
    /// A cache within the limits of `settings`; `max_descriptors` is given apart because the
    /// process limit may lower it.
    pub(crate) fn new(settings: &StaticSettings, max_descriptors: u64) -> Self {
        let evictions = Arc::new(AtomicU64::new(0));
        let charge = Charge {
            per_entry: settings.max_cache_bytes / (settings.max_cache_entries as u64).max(1),
            per_descriptor: settings.max_cache_bytes / max_descriptors.max(1),
        };
        let largest = settings.max_cached_file.max(charge.per_descriptor).max(charge.per_entry).max(1);
        let shards =
            (settings.max_cache_bytes / (largest.saturating_mul(MIN_ENTRIES_PER_SHARD))).clamp(1, MAX_SHARDS);
        let options = OptionsBuilder::new()
            .shards(1 << shards.ilog2())
            .estimated_items_capacity(settings.max_cache_entries)
            .weight_capacity(settings.max_cache_bytes)
            .build()
            .ok()
            .filter(|_| settings.max_cache_bytes > 0 && settings.max_cache_entries > 0);
        Self {
            entries: options.map(|options| {
                let on_evict = Evictions(Arc::clone(&evictions));
                Cache::with_options(options, charge, DefaultHashBuilder::default(), on_evict)
            }),
            max_descriptors,
            validate_after_ns: u64::try_from(settings.validate_after.as_nanos()).unwrap_or(u64::MAX),
            hits: Hits::default(),
            misses: AtomicU64::new(0),
            load_ns: AtomicU64::new(0),
            revalidations: AtomicU64::new(0),
            invalidations: AtomicU64::new(0),
            evictions,
            swept_at: AtomicU64::new(0),
        }
    }

    /// The resource for `path`. At most one thread per `validate_after` learns that a check is due; to the others the
    /// entry is fresh until that thread has finished.
    pub(crate) fn look_up(&self, path: &[u8], now: Now) -> LookUp {
        let Some(resource) = self.entries.as_ref().and_then(|entries| entries.get(path)) else {
            return LookUp::Absent;
        };
        if !resource.is_fresh(now.monotonic_ns, self.validate_after_ns)
            && resource.claim_check(now.monotonic_ns, self.validate_after_ns)
        {
            return LookUp::Due(resource);
        }
        self.hits.add(resource.load_ns.load(Ordering::Relaxed));
        LookUp::Fresh(resource)
    }

    /// A due check found the entry unchanged, or could not be made for want of descriptors.
    pub(crate) fn note_revalidated(&self) {
        self.revalidations.fetch_add(1, Ordering::Relaxed);
        self.hits.add(0);
    }

    /// A due check found the entry changed or gone.
    pub(crate) fn invalidate(&self, path: &[u8], stale: &Arc<Resource>) {
        self.invalidations.fetch_add(1, Ordering::Relaxed);
        if let Some(entries) = &self.entries {
            entries.remove_if(path, |found| Arc::ptr_eq(found, stale));
        }
    }

    pub(crate) fn insert(&self, path: &[u8], resource: &Arc<Resource>, cost: Duration) {
        self.misses.fetch_add(1, Ordering::Relaxed);
        let cost = u64::try_from(cost.as_nanos()).unwrap_or(u64::MAX);
        self.load_ns.fetch_add(cost, Ordering::Relaxed);
        resource.load_ns.store(cost, Ordering::Relaxed);
        if resource.is_unsettled || resource.descriptors > self.max_descriptors {
            return;
        }
        if let Some(entries) = &self.entries {
            entries.insert(path.into(), Arc::clone(resource));
        }
    }

    /// Puts a resource with a further form into the place of the one it was made of, if that is still there.
    pub(crate) fn replace(&self, path: &[u8], resource: &Arc<Resource>) {
        if let Some(entries) = self.entries.as_ref().filter(|entries| entries.contains_key(path)) {
            entries.insert(path.into(), Arc::clone(resource));
        }
    }

    /// Closes every descriptor that only the cache holds. Returns whether there were any.
    pub(crate) fn release_descriptors(&self) -> bool {
        self.retain(|resource| resource.descriptors == 0)
    }

    /// Closes descriptors that have not been asked for, at most once per interval.
    pub(crate) fn sweep(&self, now: Now) {
        let last = self.swept_at.load(Ordering::Relaxed);
        let due = now.monotonic_ns.saturating_sub(last) >= SWEEP_INTERVAL_NS;
        let taken = || {
            self.swept_at
                .compare_exchange(last, now.monotonic_ns, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        };
        if due && taken() {
            self.retain(|resource| {
                resource.descriptors == 0 || resource.idle_for(now.monotonic_ns) < MAX_IDLE_DESCRIPTOR
            });
        }
    }

    fn retain(&self, keep: impl Fn(&Resource) -> bool) -> bool {
        let Some(entries) = &self.entries else { return false };
        let before = entries.len();
        entries.retain(|_, resource| keep(resource));
        entries.len() < before
    }

    pub(crate) fn statistics(&self) -> CacheStatistics {
        let (hits, saved) = self.hits.sums();
        let mut statistics = CacheStatistics {
            hits,
            saved_time: Duration::from_nanos(saved),
            misses: self.misses.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
            revalidations: self.revalidations.load(Ordering::Relaxed),
            invalidations: self.invalidations.load(Ordering::Relaxed),
            load_time: Duration::from_nanos(self.load_ns.load(Ordering::Relaxed)),
            ..CacheStatistics::default()
        };
        for (_, resource) in self.entries.iter().flat_map(|entries| entries.iter()) {
            statistics.entries += 1;
            statistics.bytes += resource.bytes;
            statistics.descriptors += resource.descriptors;
        }
        statistics
    }
}

/// The charge of an entry to the budget. An entry is charged at least its share of the entry limit and a descriptor its
/// share of the descriptor limit, so one sum keeps all three.
#[derive(Clone, Debug)]
struct Charge {
    per_entry: u64,
    per_descriptor: u64,
}

impl Weighter<Key, Arc<Resource>> for Charge {
    fn weight(&self, path: &Key, resource: &Arc<Resource>) -> u64 {
        let names = (path.len() + resource.name_length()) as u64;
        (resource.bytes + names + ENTRY_OVERHEAD)
            .max(self.per_entry)
            .saturating_add(resource.descriptors.saturating_mul(self.per_descriptor))
    }
}

/// Counts evictions and carries the evicted resources out of the lock, where closing may take long.
#[derive(Clone, Debug)]
struct Evictions(Arc<AtomicU64>);

impl Lifecycle<Key, Arc<Resource>> for Evictions {
    type RequestState = Vec<Arc<Resource>>;

    fn on_evict(&self, evicted: &mut Self::RequestState, _: Key, resource: Arc<Resource>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        evicted.push(resource);
    }
}

/// Counts hits, and the nanoseconds that each has saved, without threads sharing a cache line.
#[derive(Debug, Default)]
struct Hits([Seat; 16]);

/// 128 bytes: processors fetch lines of 64 bytes in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Seat {
    hits: AtomicU64,
    saved: AtomicU64,
}

impl Hits {
    fn add(&self, saved: u64) {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static SEAT: usize = NEXT.fetch_add(1, Ordering::Relaxed) % 16;
        }
        let seat = &self.0[SEAT.with(|seat| *seat)];
        seat.hits.fetch_add(1, Ordering::Relaxed);
        seat.saved.fetch_add(saved, Ordering::Relaxed);
    }

    fn sums(&self) -> (u64, u64) {
        let of = |sum: (u64, u64), seat: &Seat| {
            (sum.0 + seat.hits.load(Ordering::Relaxed), sum.1 + seat.saved.load(Ordering::Relaxed))
        };
        self.0.iter().fold((0, 0), of)
    }
}

// ---- Cached resources ----

#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) plan: Plan,
    pub(crate) original: Variant,
    pub(crate) siblings: Vec<(Coding, Variant)>,
    /// Whether further siblings may be made by compressing it.
    pub(crate) is_compressible: bool,
    /// When it was last known to be equal to the file, in nanoseconds of the monotonic clock.
    pub(crate) checked_at: AtomicU64,
    /// The time of loading it, in nanoseconds.
    pub(crate) load_ns: AtomicU64,
    /// Whether the file may change without a new stamp; then the resource must not be kept.
    pub(crate) is_unsettled: bool,
    /// Bytes of content in memory.
    pub(crate) bytes: u64,
    /// Descriptors held open.
    pub(crate) descriptors: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Variant {
    /// ETag, Vary, Cache-Control, Content-Type, Accept-Ranges, Content-Encoding and Last-Modified.
    pub(crate) full: Arc<ResponseHead>,
    pub(crate) not_modified: Arc<ResponseHead>,
    pub(crate) entity_tag: Box<str>,
    pub(crate) last_modified: Option<u64>,
    pub(crate) media_type: &'static str,
    /// The size in bytes of this form.
    pub(crate) length: u64,
    pub(crate) has_ranges: bool,
    pub(crate) payload: Payload,
}

#[derive(Clone, Debug)]
pub(crate) enum Payload {
    Memory(Arc<[u8]>),
    File(Arc<File>),
}

impl Resource {
    pub(crate) fn varies(&self) -> bool {
        self.is_compressible || !self.siblings.is_empty()
    }

    pub(crate) fn original(&self) -> &Variant {
        &self.original
    }

    pub(crate) fn has(&self, coding: Coding) -> bool {
        coding == Coding::Identity || self.siblings.iter().any(|(own, _)| *own == coding)
    }

    pub(crate) fn variant(&self, coding: Coding) -> &Variant {
        self.siblings.iter().find(|(own, _)| *own == coding).map_or(&self.original, |(_, sibling)| sibling)
    }

    /// The bytes of names it holds, for its weight in the cache.
    pub(crate) fn name_length(&self) -> usize {
        self.plan.name.len()
    }

    pub(crate) fn matches(&self, plan: &Plan) -> bool {
        self.plan == *plan
    }

    /// Whether it was checked less than `validate_after` ago.
    pub(crate) fn is_fresh(&self, monotonic_ns: u64, validate_after_ns: u64) -> bool {
        monotonic_ns.saturating_sub(self.checked_at.load(Ordering::Relaxed)) < validate_after_ns
    }

    /// Takes the duty of the next check, for one thread of those that find it due; the others go on with the cached
    /// resource. A check that fails removes the resource, so the duty is never lost.
    pub(crate) fn claim_check(&self, monotonic_ns: u64, validate_after_ns: u64) -> bool {
        let seen = self.checked_at.load(Ordering::Relaxed);
        monotonic_ns.saturating_sub(seen) >= validate_after_ns
            && self
                .checked_at
                .compare_exchange(seen, monotonic_ns, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// How long ago it was last checked, which is also how long it has not been asked for.
    pub(crate) fn idle_for(&self, monotonic_ns: u64) -> Duration {
        Duration::from_nanos(monotonic_ns.saturating_sub(self.checked_at.load(Ordering::Relaxed)))
    }
}

impl Variant {
    /// The whole payload: memory that the cache shares, or the part of an open file from which the kernel sends.
    pub(crate) fn whole(&self) -> Content {
        match &self.payload {
            Payload::Memory(bytes) => Content::Shared(Arc::clone(bytes)),
            Payload::File(file) => {
                Content::File(FileRange { file: Arc::clone(file), offset: 0, length: self.length })
            }
        }
    }

    /// `length` bytes from `offset`, which lie inside.
    pub(crate) fn part(&self, offset: u64, length: u64) -> Content {
        match &self.payload {
            Payload::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let end = usize::try_from(offset.saturating_add(length)).unwrap_or(usize::MAX);
                Content::Bytes(bytes.get(start..end).unwrap_or_default().to_vec())
            }
            Payload::File(file) => Content::File(FileRange { file: Arc::clone(file), offset, length }),
        }
    }
}
