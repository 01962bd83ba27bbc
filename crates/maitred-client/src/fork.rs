//! Clients in a child process that was forked: they begin anew.
//!
//! Promises: the child closes its copies of the parent's connections without a word to the server, never takes a lock that the
//! parent has made, since a thread of the parent may have held it at the fork, and never frees what another thread may have been
//! changing.

use std::sync::atomic::{AtomicU64, Ordering};

static FORKS: AtomicU64 = AtomicU64::new(0);

/// To be called in a child process, directly behind fork(2) and before a client is used. All clients of the process are without
/// connections then, and calls that were begun in the parent fail.
pub fn after_fork_in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    maitred_io::forked::close_outgoing_in_child();
}

/// How many forks lie between the first process and this one.
pub(crate) fn count() -> u64 {
    FORKS.load(Ordering::Relaxed)
}
