//! What several processes of one server have counted, put together: those that run and those that have ended, however.
//!
//! Each process counts in memory of its own that the one above it has, too ([`Settings::figures`](crate::Settings::figures)). When a process has ended,
//! even by SIGKILL, it is [retired](Retired): read once, and added to what earlier ones have left. What all have counted is what the
//! retired ones have left, and what each that runs has now:
//!
//! ```no_run
//! use maitred_server::figures::{Format, Owner, Retired, Statistics, WorkerPage, merge_pages};
//! # let memory = maitred_server::figures::SharedMemory::new(8)?;
//! # let (ended, runs) = (memory.words(), memory.words());
//!
//! let mut retired = Retired::default();
//! retired.add(ended, "the last page of that process, or nothing");
//!
//! // Of each process that runs, after it has been asked for Server::settle_figures:
//! let mut statistics = retired.statistics.clone();
//! statistics.merge(&Statistics::read(runs, Owner::Runs).unwrap_or_default());
//! // and for Server::own_metrics_in:
//! let pages = [WorkerPage { worker: "1", text: "its page" }];
//! let page = merge_pages(&pages, &retired.counters, &statistics, Format::Prometheus);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Promises: each exchange that a process has written down is in the sum exactly once; no counter goes back when a process
//! ends; any content of the memory is survived. Leaves out: counters that are not in the memory (locks, caches, processor time, lines dropped
//! by a log): of these a process that was killed leaves what its last page said.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use maitred_io::private_memory::PrivateMemory;
use maitred_stats::{ARENA_BYTES, Arena, memory};

pub use crate::merged::{WorkerPage, counters_of_page, merge_pages};
pub use crate::metrics::LOG_DROPPED_TOTAL;
pub use crate::site::page_of_workers;
pub use crate::site::{SPOOLED_TOTAL, Statistics, Totals, write_exchanges};
pub use maitred_io::shared_memory::SharedMemory;
pub use maitred_stats::exposition::{Format, series};
pub use maitred_stats::{Owner, each_counter, read_counters};

/// Bytes for counters beside those of exchanges: of a server 20 KiB, 18 KiB with compression, and 3 KiB for each pool. Pools beyond that,
/// about 70, are counted, but not read by others.
const COUNTERS_BYTES: usize = 256 * 1024;

/// Bytes of the memory of a process that counts. A page of it takes memory when something is first counted there.
pub const MEMORY_BYTES: usize = ARENA_BYTES + COUNTERS_BYTES;

/// Where a server counts.
pub(crate) fn arena(shared: Option<Arc<SharedMemory>>) -> Arena {
    if let Some(shared) = shared {
        return Arena::new(shared);
    }
    match PrivateMemory::new(MEMORY_BYTES) {
        Ok(own) => Arena::new(Arc::new(own)),
        // Where no memory can be mapped, the allocator has some.
        Err(_) => Arena::new(memory::private(MEMORY_BYTES / size_of::<AtomicU64>())),
    }
}

/// What processes that have ended have counted.
#[derive(Clone, Debug, Default)]
pub struct Retired {
    /// Their exchanges. They take no memory of their own any more, so `bytes` is 0.
    pub statistics: Statistics,
    /// Their counters, by series as a page has them. Those that end in `_seconds_total` are in nanoseconds.
    pub counters: BTreeMap<String, u64>,
}

impl Retired {
    /// Adds a process that has ended, once. `last_page` is the last of its [pages](crate::Server::own_metrics_in) that was shown, for the counters that
    /// are not in its memory; empty if there is none.
    pub fn add(&mut self, words: &[AtomicU64], last_page: &str) {
        if let Some(statistics) = Statistics::read(words, Owner::Ended) {
            self.statistics.merge(&statistics);
        }
        let counted = read_counters(words);
        let others = counters_of_page(last_page).into_iter().filter(|(name, _)| !counted.contains_key(name));
        let others: Vec<(String, u64)> = others.collect();
        for (name, count) in counted.into_iter().chain(others) {
            let sum = self.counters.entry(name).or_default();
            *sum = sum.saturating_add(count);
        }
    }
}
