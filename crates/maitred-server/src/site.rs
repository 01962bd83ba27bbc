//! What every connection of a server shares: routes, bounds, logs and counters.

use std::sync::Arc;

use maitred_h1::Limits;

use crate::log::Log;
use crate::outcome::Counters;
use crate::route::Routes;
use crate::settings::Timeouts;
use crate::spool::Spooler;

/// Read-only after the start, but for the counters.
pub(crate) struct Site {
    pub(crate) routes: Routes,
    /// Answered by the engine, before any route.
    pub(crate) health_path: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    /// Whether a handler is interrupted whose request's time is over.
    pub(crate) interrupt: bool,
    pub(crate) max_body: u64,
    pub(crate) body_memory: u64,
    /// None without an application: nobody reads bodies then.
    pub(crate) spooler: Option<Spooler>,
    pub(crate) log: Arc<Log>,
    pub(crate) counters: Counters,
}
