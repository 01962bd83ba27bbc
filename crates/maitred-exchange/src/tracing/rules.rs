//! The rules of traces, as options say them.

use std::time::Duration;

use maitred_trace::{Limits, Sampler};

/// The peers whose `traceparent` is the parent of our span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceTrust {
    /// Trusted proxies.
    #[default]
    Proxies,
    /// All.
    All,
    /// None.
    None,
}

/// The form of a request's parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TracePhases {
    /// Events of its span.
    #[default]
    Events,
    /// Spans below it.
    Spans,
}

/// The rules of traces.
#[derive(Clone, Copy, Debug)]
pub struct TraceRules {
    /// Whose `traceparent` is the parent.
    pub trust: TraceTrust,
    /// The traces that are kept.
    pub sampler: Sampler,
    /// A request of this time is kept in any case; zero: none.
    pub slow: Duration,
    /// The form of a request's parts.
    pub phases: TracePhases,
    /// The longest texts, and how many.
    pub limits: Limits,
}
