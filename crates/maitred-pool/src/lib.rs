//! The rules of a pool of threads, without threads, locks and clocks: a test asks them whatever it likes.
//!
//! | module | |
//! |---|---|
//! | [`settings`] | what may be set of a pool |
//! | [`scaling`] | when requests that wait are a reason for one more thread, and when a thread ends |
//! | [`fair`] | in which order requests that wait are taken |
//!
//! Leaves out: who counts, waits and wakes, and what requests take (maitred-dispatch).

pub mod fair;
pub mod scaling;
pub mod settings;

pub use settings::{DEFAULT_POOL, Overflow, PoolLimits, PoolSettings, Strategy};

/// What requests of a route are known to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouteClass {
    /// Nothing is known: the usual case.
    #[default]
    Normal,
    /// They wait for long: for a database, a disk, another server.
    Blocking,
    /// They compute for long.
    CpuBound,
    /// They compute for long without the interpreter, beside others: hashes, compression, pictures.
    Parallel,
}

impl RouteClass {
    /// Whether most of the time of these requests is spent without the interpreter.
    pub fn does_without(self) -> bool {
        matches!(self, Self::Blocking | Self::Parallel)
    }
}
