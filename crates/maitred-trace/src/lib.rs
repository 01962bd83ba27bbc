//! OpenTelemetry without I/O and without a clock: ids, times and bytes are arguments.
//!
//! ```text
//! environment.rs  the OTEL_* variables as settings
//! context.rs      traceparent and tracestate (W3C Trace Context): read and written
//! sampler.rs      which traces are kept
//! span.rs         spans, and their names and attributes by the conventions for HTTP
//! metrics.rs      sums, gauges and histograms of maitred-stats
//! logs.rs         log records
//!     |  encode() makes one item: a span, a metric or a record
//!     v
//! exporter.rs     queue, batches, posts and retries of one signal
//! ```
//! Promises: the messages are those of OTLP 1 over HTTP, in protobuf or JSON, whatever bytes a request has brought. An exporter
//! keeps no more items and bytes than its settings say, and each item is sent, refused, dropped or waits.
//!
//! Leaves out: connections to a collector, threads, and the moment at which a request has ended (maitred-server).

pub mod context;
mod encoding;
pub mod environment;
pub mod exporter;
mod json;
pub mod logs;
pub mod metrics;
mod protobuf;
pub mod sampler;
pub mod span;
mod writer;

pub use context::{Context, Flags, Ids, SpanId, TraceId, TraceState};
pub use encoding::{Attribute, Format, Limits, Signal, Value};
pub use environment::{Endpoint, Environment};
pub use exporter::{Counts, Exporter, News, Post, Pushed, Step};
pub use sampler::Sampler;
pub use span::Span;
