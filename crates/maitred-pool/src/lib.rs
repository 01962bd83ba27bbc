//! The rules of a pool of threads, without threads, locks and clocks, so that tests can call them directly.
//!
//! | module | |
//! |---|---|
//! | [`settings`] | the settings of a pool |
//! | [`scaling`] | the need for one more thread, and the end of a thread |
//! | [`fair`] | the order in which waiting requests are taken |
//!
//! Leaves out: counting, waiting and waking, and the costs of requests (maitred-dispatch).

pub mod fair;
pub mod scaling;
pub mod settings;

pub use settings::{DEFAULT_POOL, Overflow, PoolLimits, PoolSettings, Strategy};

/// The known behaviour of the requests of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouteClass {
    /// Nothing is known: the usual case.
    #[default]
    Normal,
    /// The requests wait for long: for a database, a disk, another server.
    Blocking,
    /// The requests compute for long.
    CpuBound,
    /// The requests compute for long without the interpreter, beside others: hashes, compression, pictures.
    Parallel,
}

impl RouteClass {
    /// Whether most of the time of these requests is spent without the interpreter.
    pub fn does_without(self) -> bool {
        matches!(self, Self::Blocking | Self::Parallel)
    }
}
