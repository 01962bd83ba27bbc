//! The settings of pools.

use std::time::Duration;

/// The name of the pool that every server has.
pub const DEFAULT_POOL: &str = "default";

/// A pool of application threads: its name, its bounds, and how its threads share their work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// The name in rules, logs and statistics.
    pub name: String,
    /// How many threads and requests, and for how long.
    pub limits: PoolLimits,
    /// How polling and running are shared between the threads.
    pub strategy: Strategy,
    /// The number of the host that makes the threads: its place among those of the server. Pools of one host share an interpreter.
    pub thread_host: usize,
}

impl Default for PoolSettings {
    /// The pool that every server has.
    fn default() -> Self {
        Self {
            name: DEFAULT_POOL.to_owned(),
            limits: PoolLimits::default(),
            strategy: Strategy::default(),
            thread_host: 0,
        }
    }
}

impl PoolSettings {
    /// A further pool with the defaults: those of [`PoolLimits::default`], but without a thread that is kept.
    pub fn named(name: impl Into<String>) -> Self {
        let limits = PoolLimits { min_threads: 0, ..PoolLimits::default() };
        Self { name: name.into(), limits, ..Self::default() }
    }
}

/// The bounds of a pool. All of them may be changed while it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Threads that are kept however idle; at least 1 in the default pool.
    pub min_threads: usize,
    /// The most threads, those of lost requests not counted; at least 1 and at least `min_threads`.
    pub max_threads: usize,
    /// Requests that may wait for a thread; at least 1.
    pub queue: usize,
    /// Percent of `queue`, at most `high_mark`. With fewer requests waiting no thread is made; 0: each request
    /// that waits may make one.
    pub low_mark: u8,
    /// Percent of `queue`, at most 100. From here on threads are made without waiting for one another, below one
    /// at a time; 100: always one at a time.
    pub high_mark: u8,
    /// A parked thread above `min_threads` ends after this time.
    pub thread_idle: Duration,
    /// The number of requests after which a thread is replaced; 0 for never.
    pub thread_requests: u64,
    /// The limit from a complete request to the first byte of its handler's response, waiting for a thread included;
    /// then the engine answers 504 and closes, and for the handler it is as if the peer were gone. A response whose
    /// head has left is not timed. With a body that is read as it comes, the time begins anew with every part, and
    /// stands still while the handler waits for its peer. `None`: for ever.
    pub request_timeout: Option<Duration>,
    /// Threads whose request has timed out and that are replaced until they return; 0 switches that off.
    pub max_lost: usize,
    /// Whether an exception is raised in the thread of a request that has timed out, where the language can.
    pub interrupt: bool,
    /// The treatment of a request when the queue is full.
    pub overflow: Overflow,
    /// Bytes per second that the responses of the pool take together; 0: any number.
    pub bandwidth: u64,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self {
            min_threads: 1,
            max_threads: 10,
            queue: 1000,
            low_mark: 0,
            high_mark: 80,
            thread_idle: Duration::from_secs(60),
            thread_requests: 10_000,
            request_timeout: None,
            // As `max_threads`.
            max_lost: 10,
            interrupt: false,
            overflow: Overflow::default(),
            bandwidth: 0,
        }
    }
}

/// The treatment of a request that finds the queue of its pool full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The request waits: its connection is not read until there is a place. Other connections are.
    #[default]
    Wait,
    /// 503 with `Retry-After: 1`.
    Refuse,
}

/// How the threads of a pool share polling (producing) and running (consuming), in the words of Jetty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Whichever of the others fits the request and the threads that are free.
    #[default]
    Adaptive,
    /// Produce, consume: the thread that polls runs the request that it has found, and none polls meanwhile.
    Pc,
    /// Produce, execute, consume: the thread that polls gives the request that it has found to another one.
    Pec,
    /// Execute, produce, consume: the thread that polls has another one poll, and runs the request that it has found.
    Epc,
}
