//! The rules of traces, as options say them.

use std::time::Duration;

use maitred_http::target;
use maitred_log::Mask;
use maitred_match::PathPattern;
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
#[derive(Clone, Debug)]
pub struct TraceRules {
    /// Whose `traceparent` is the parent.
    pub trust: TraceTrust,
    /// The traces that are kept.
    pub sampler: Sampler,
    /// A request of this time is kept in any case; zero: none.
    pub slow: Duration,
    /// The form of a request's parts.
    pub phases: TracePhases,
    /// Queries are sent.
    pub query: bool,
    /// Bits of addresses that are sent; all without a mask.
    pub mask: Option<Mask>,
    /// Paths whose requests have no record.
    pub except: Vec<PathPattern>,
    /// The longest texts, and how many.
    pub limits: Limits,
}

impl TraceRules {
    /// Whether requests of this path have no record, as they have no line in the access log.
    pub(super) fn leaves_out(&self, path: &[u8]) -> bool {
        if self.except.is_empty() {
            return false;
        }
        let mut decoded = Vec::new();
        target::normalise_decoded(path, &mut decoded);
        self.except.iter().any(|pattern| pattern.matches(&decoded))
    }
}
