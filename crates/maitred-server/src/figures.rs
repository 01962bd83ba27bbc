//! Counts of several processes of one server, added: of running processes and of ended ones, whatever ended them.
//!
//! Each process counts in memory that the supervisor has, too ([`Settings::figures`](crate::Settings::figures)). When
//! a process has ended, even by SIGKILL, its memory is [retired](Retired): read once, and added to the counts of
//! earlier ones. The sum consists of the retired counts and the present counts of each running process:
//!
//! ```no_run
//! use maitred_server::figures::{Format, Owner, Retired, Statistics, WorkerPage, merge_pages};
//! # let memory = maitred_server::figures::SharedMemory::new(8)?;
//! # let (ended, runs) = (memory.words(), memory.words());
//!
//! let mut retired = Retired::default();
//! retired.add(ended, "the last page of that process, or nothing");
//!
//! // Of each process that runs, after it has been asked for ServerFigures::settle:
//! let mut statistics = retired.statistics.clone();
//! statistics.merge(&Statistics::read(runs, Owner::Runs).unwrap_or_default());
//! // and for ServerFigures::own_page:
//! let pages = [WorkerPage { worker: "1", text: "its page" }];
//! let page = merge_pages(&pages, &retired.counters, &statistics, Format::Prometheus);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Promises: each exchange that a process has written down is in the sum exactly once; no counter goes back when a
//! process ends; any content of the memory is survived. Leaves out: counters outside the memory (locks, caches,
//! processor time, lines dropped by a log): of these a killed process leaves the values of its last page.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use maitred_io::private_memory::PrivateMemory;
use maitred_stats::{ARENA_BYTES, Arena, UPSTREAMS_BYTES, memory};

pub use crate::merged::{WorkerPage, counters_of_page, merge_pages};
pub use crate::metrics::LOG_DROPPED_TOTAL;
pub use maitred_exchange::site::page_of_workers;
pub use maitred_exchange::site::{SPOOLED_TOTAL, Statistics, Totals, write_exchanges};
pub use maitred_io::shared_memory::SharedMemory;
pub use maitred_stats::exposition::{Format, series};
pub use maitred_stats::{Owner, each_counter, read_counters};

/// Bytes for counters beside those of exchanges: a server needs 20 KiB, of which compression takes 2 KiB, and 3 KiB
/// for each pool. Pools beyond about 70 are counted, but other processes cannot read their counts.
const COUNTERS_BYTES: usize = 256 * 1024;

/// Bytes of the memory of a process that counts. A page takes physical memory at its first count.
pub const MEMORY_BYTES: usize = ARENA_BYTES + UPSTREAMS_BYTES + COUNTERS_BYTES;

/// The memory for the counts of a server.
pub(crate) fn arena(shared: Option<Arc<SharedMemory>>) -> Arena {
    if let Some(shared) = shared {
        return Arena::new(shared);
    }
    match PrivateMemory::new(MEMORY_BYTES) {
        Ok(own) => Arena::new(Arc::new(own)),
        // Where mapping fails, the allocator supplies memory.
        Err(_) => Arena::new(memory::private(MEMORY_BYTES / size_of::<AtomicU64>())),
    }
}

/// The counts of ended processes.
#[derive(Clone, Debug, Default)]
pub struct Retired {
    /// The exchanges. Ended processes have no memory of their own any more, so `bytes` is 0.
    pub statistics: Statistics,
    /// The counters, by series as on a page. Those that end in `_seconds_total` are in nanoseconds.
    pub counters: BTreeMap<String, u64>,
}

impl Retired {
    /// Adds a process that has ended, once. `last_page` is the last of its [pages](crate::inspect::ServerFigures::own_page),
    /// for the counters outside its memory; empty if there is none.
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
