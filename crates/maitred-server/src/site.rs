//! What every connection of a server shares: routes, bounds, logs and counters.

use std::sync::{Arc, OnceLock};

use maitred_h1::Limits;
use maitred_io::clock;
use maitred_io::sync::atomic::{AtomicBool, Ordering};
use maitred_stats::exposition::Format;

use crate::counters::Counters;
use crate::insight::Insight as Figures;
use crate::route::Routes;
use crate::settings::{Insight, Timeouts};
use crate::spill::Spilling;
use crate::traced::Traced;
use maitred_compress::Compression;
use maitred_files::Submissions;
use maitred_filters::Filters;
use maitred_limits::Guard;
use maitred_log::Log;
use maitred_spool::Spooler;

/// Read-only after the start, but for the counters.
pub(crate) struct Site {
    pub(crate) routes: Routes,
    /// What requests meet before that.
    pub(crate) filters: Filters,
    /// Answered by the engine, before any route.
    pub(crate) health_path: Option<String>,
    pub(crate) metrics_path: Option<String>,
    pub(crate) limits: Limits,
    /// What limits peers beside these.
    pub(crate) guard: Guard,
    pub(crate) timeouts: Timeouts,
    pub(crate) max_body: u64,
    pub(crate) body_memory: u64,
    /// None without an application: nobody reads bodies then.
    pub(crate) spooler: Option<Spooler>,
    /// None where it is off.
    pub(crate) compression: Option<Compression>,
    pub(crate) spilling: Spilling,
    pub(crate) submissions: Submissions,
    pub(crate) log: Arc<Log>,
    pub(crate) counters: Counters,
    /// What is measured of each exchange.
    pub(crate) measures: Measures,
    /// What becomes of these measures.
    pub(crate) figures: Figures,
    /// How the last requests got their threads, while that is traced.
    pub(crate) traced: Traced,
    /// All figures as text, for `metrics_path`; there from the start on.
    pub(crate) metrics: OnceLock<MetricsText>,
}

/// Makes the figures of a server as text.
pub(crate) type MetricsText = Box<dyn Fn(Format) -> String + Send + Sync>;

/// What is measured of each exchange, as [`Insight`] says; may change at any time.
pub(crate) struct Measures {
    pub(crate) times: AtomicBool,
    pub(crate) receipt: AtomicBool,
    pub(crate) server_timing: AtomicBool,
    pub(crate) ids: AtomicBool,
}

impl Measures {
    pub(crate) fn new(insight: Insight) -> Self {
        let Insight { times, receipt, server_timing, ids, .. } = insight;
        Self {
            times: times.into(),
            receipt: receipt.into(),
            server_timing: server_timing.into(),
            ids: ids.into(),
        }
    }

    pub(crate) fn set(&self, insight: Insight) {
        self.times.store(insight.times, Ordering::Relaxed);
        self.receipt.store(insight.receipt, Ordering::Relaxed);
        self.server_timing.store(insight.server_timing, Ordering::Relaxed);
        self.ids.store(insight.ids, Ordering::Relaxed);
    }

    /// `statistics` is known to [`Figures`].
    pub(crate) fn get(&self, statistics: bool) -> Insight {
        let [times, receipt, server_timing, ids] =
            [&self.times, &self.receipt, &self.server_timing, &self.ids].map(|on| on.load(Ordering::Relaxed));
        Insight { times, receipt, server_timing, ids, statistics }
    }
}

impl Site {
    /// A later time of an exchange: looked at only where somebody wants to know, else `then`, in monotonic nanoseconds.
    pub(crate) fn later(&self, then: u64) -> u64 {
        if self.times() { clock::monotonic() } else { then }
    }

    /// Whether the times of exchanges are looked at.
    pub(crate) fn times(&self) -> bool {
        self.measures.times.load(Ordering::Relaxed) || self.log.writes_access()
    }
}
