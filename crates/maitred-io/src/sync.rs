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

/// What [`NamedLock::lock`] returns.
pub type NamedGuard<'a, T> = MutexGuard<'a, T>;
