//! The synchronisation primitives this crate uses: the standard library's, or, when the crate is built with
//! `--cfg shuttle`, those of the shuttle scheduler, which runs a test under many interleavings.
//!
//! Code whose interleavings are checked imports from here and never from `std::sync`. Shuttle explores
//! sequentially consistent executions only: weaker orderings need an argument in the code.
//!
//! With the feature `one-lock` all named locks are one, for the bench that shows what separate ones bring.

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
#[cfg(all(feature = "one-lock", not(shuttle)))]
mod one;

#[cfg(not(any(feature = "one-lock", shuttle)))]
pub use maitred_stats::NamedLock;
#[cfg(shuttle)]
pub use named::NamedLock;
#[cfg(all(feature = "one-lock", not(shuttle)))]
pub use one::{NamedGuard, NamedLock, one_lock};

/// What [`NamedLock::lock`] returns.
#[cfg(any(not(feature = "one-lock"), shuttle))]
pub type NamedGuard<'a, T> = MutexGuard<'a, T>;

/// What the one mutex has counted that stands for all named locks: there is none, see the feature `one-lock`.
#[cfg(any(not(feature = "one-lock"), shuttle))]
pub const fn one_lock() -> Option<maitred_stats::LockSnapshot> {
    None
}
