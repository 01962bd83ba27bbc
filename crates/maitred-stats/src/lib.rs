//! Named counters, sharded per thread, with snapshots.
//!
//! There is no registry: statistics are plain structs of [`Counter`]s, [`Counters`], [`Gauge`]s, [`Distribution`]s and
//! [`NamedLock`]s, owned by what they describe. Each has a `snapshot()` or a reading method; who wants to show them
//! collects [`Metric`]s and calls [`exposition::write`].
//!
//! Updates are relaxed: a snapshot taken while others count is no consistent cut across several counters. A count is
//! never lost and never goes back.

mod chunks;
mod counter;
mod distribution;
pub mod exposition;
mod lock;
mod names;
mod recorder;
mod routes;
mod scale;
pub mod server_timing;
mod sparse;
mod table;
mod times;

pub use counter::{Counter, Counters, Gauge};
pub use distribution::Distribution;
pub use exposition::{Metric, Value};
pub use lock::{LockSnapshot, NamedLock};
pub use recorder::{MAX_BYTES, Recorder};
pub use routes::{MAX_ROUTE_TEXT, MAX_ROUTES, OTHER, Routes};
pub use table::{Leaf, LeafKey, SEVERAL, TimingKey};
pub use times::{Span, Spans, Times};
