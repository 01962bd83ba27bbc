//! Named counters, sharded per thread, with snapshots.
//!
//! There is no registry: statistics are plain structs of [`Counter`]s, [`Counters`], [`Gauge`]s, [`Distribution`]s and
//! [`NamedLock`]s, owned by the objects that they describe. Each has a `snapshot()` or a reading method; a caller that
//! shows them collects [`Metric`]s and calls [`exposition::write`].
//!
//! An [`Arena`] shares figures with another process, also after this one was killed: counters by their names, and all
//! figures of exchanges. The other process reads them by [`read_counters`], [`read_texts`] and [`Foreign`].
//!
//! Updates are relaxed: a snapshot taken while others count is no consistent cut across several counters. A count is
//! never lost and never goes back.

mod area;
mod arena;
mod chunks;
mod counter;
mod distribution;
pub mod exposition;
mod foreign;
mod lock;
pub mod memory;
mod names;
pub mod pool;
mod recorder;
mod rings;
mod routes;
mod scale;
pub mod server_timing;
mod sparse;
mod table;
mod times;
mod upstreams;

pub use arena::{Arena, each_counter, read_counters, read_texts};
pub use counter::{Counter, Counters, Gauge, LockedCounters};
pub use distribution::Distribution;
pub use exposition::{Metric, Value};
pub use foreign::{Foreign, Owner};
pub use lock::{LockSnapshot, NamedLock};
pub use recorder::{ARENA_BYTES, MAX_BYTES, Recorder};
pub use routes::{MAX_ROUTE_TEXT, MAX_ROUTES, OTHER, Routes};
pub use table::{CHOSEN, CHOSEN_OTHER, Leaf, LeafKey, SEVERAL, TimingKey};
pub use times::{Span, Spans, Times};
pub use upstreams::{
    CallEnd, EndedCall, MAX_UPSTREAMS, OTHER_UPSTREAM, Part, UPSTREAMS_BYTES, Upstream, Upstreams,
    read_upstreams,
};
