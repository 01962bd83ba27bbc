//! The synchronisation primitives this crate uses: the standard library's, or, when the crate is built with
//! `--cfg shuttle`, those of the shuttle scheduler, which runs a test under many interleavings.
//!
//! Code whose interleavings are checked imports from here and never from `std::sync`. Shuttle explores
//! sequentially consistent executions only: weaker orderings need an argument in the code.

#[cfg(not(shuttle))]
pub use std::{
    hint,
    sync::{Arc, Condvar, Mutex, MutexGuard, atomic},
    thread, thread_local,
};

#[cfg(shuttle)]
pub use shuttle::{
    hint,
    sync::{Arc, Condvar, Mutex, MutexGuard, atomic},
    thread, thread_local,
};

#[cfg(shuttle)]
mod named;

#[cfg(not(shuttle))]
pub use maitred_stats::NamedLock;
#[cfg(shuttle)]
pub use named::NamedLock;

/// How many schedules a test explores of `full`: all with `MAITRED_LONG=1` (`make test-all`), else a tenth.
#[cfg(shuttle)]
pub fn schedules(full: usize) -> usize {
    if std::env::var_os("MAITRED_LONG").is_some() { full } else { full.div_ceil(10) }
}

/// The guard of [`NamedLock::lock`].
pub type NamedGuard<'a, T> = MutexGuard<'a, T>;
