//! Settings that a running server takes, those of pools excepted.

use std::sync::Arc;

use maitred_filters::Filters;
use maitred_limits::Guard;
use maitred_tls::Terms;

use crate::connection::Group;
use maitred_exchange::site::Insight;
use maitred_exchange::spill::WriterSettings;

/// Settings of a server that hold at once when they are changed.
#[derive(Clone, Copy)]
pub struct LiveSettings<'s>(pub(crate) &'s Group);

impl<'s> LiveSettings<'s> {
    /// The measurements of requests.
    pub fn insight(self) -> Insight {
        self.0.site.measures.get(self.0.site.figures.is_on())
    }

    /// Changes the measurements of requests from now on.
    pub fn set_insight(self, insight: Insight) {
        self.0.site.measures.set(insight);
        self.0.site.figures.set_on(insight.statistics);
        for listening in &self.0.groups.listeners {
            listening.set_receipts(insight.receipt);
        }
    }

    /// The limits of output queues in memory and in files.
    pub fn writer(self) -> WriterSettings {
        self.0.site.spilling.get()
    }

    /// Changes the limits of output queues in memory and in files. Bytes in files stay there.
    pub fn set_writer(self, settings: WriterSettings) {
        self.0.site.spilling.set(settings);
    }

    /// The TLS settings, if listeners speak TLS.
    pub fn tls(self) -> Option<Arc<Terms>> {
        self.0.site.tls.load_full()
    }

    /// Changes the TLS settings for later handshakes. Open connections go on.
    pub fn set_tls(self, terms: Arc<Terms>) {
        self.0.site.tls.store(Some(terms));
    }

    /// The limits on peers, and counts of their application. Limits that are [set](Guard::set) hold at once, also for
    /// open connections; a bandwidth where there was none, for responses that begin later. The IPv6 prefix stays.
    pub fn guard(self) -> &'s Guard {
        &self.0.site.guard
    }

    /// The filters that requests pass before the routes.
    pub fn filters(self) -> &'s Filters {
        &self.0.site.filters
    }
}
