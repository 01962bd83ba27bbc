//! Named counters, sharded per thread, with snapshots.
//!
//! There is no registry: statistics are plain structs of [`Counter`]s, [`Counters`], [`Gauge`]s, [`Histogram`]s and
//! [`NamedLock`]s, owned by what they describe. Each has a `snapshot()` or a reading method; who wants to show them
//! collects [`Metric`]s and calls [`exposition::write`].
//!
//! Updates are relaxed: a snapshot taken while others count is no consistent cut across several counters. A count is
//! never lost and never goes back.

mod counter;
pub mod exposition;
mod histogram;
mod lock;
mod times;

pub use counter::{Counter, Counters, Gauge};
pub use exposition::{Metric, Value};
pub use histogram::{Histogram, HistogramSnapshot};
pub use lock::{LockSnapshot, NamedLock};
pub use times::{Span, Spans, Times};
